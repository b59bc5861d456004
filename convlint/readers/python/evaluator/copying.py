"""Copies of values, as deep as they go: of a remembered result for each call, and of what copy.deepcopy gets."""

from __future__ import annotations

from convlint.readers.python.evaluator.limits import DEEPEST_VALUE
from convlint.readers.python.evaluator.values import (
    Class,
    Const,
    Function,
    Instance,
    Items,
    Module,
    Name,
    Partial,
    Table,
    Tensor,
    Unknown,
    Value,
    unknown,
)

LARGEST = 1000  # objects in one result


class NotEqual(Exception):
    """The value has no equal: an object, a closure."""


class Copying:
    """Copies objects that are younger than a call, as deep as they go; older ones stay what they are.

    `start` is when the call began; None copies all but functions and classes, as copy.deepcopy does. `places` has what
    stands for an older one.
    """

    def __init__(self, start: int | None, places: dict[int, Value]) -> None:
        self.start, self.done, self.depth = start, dict(places), 0
        self.most = LARGEST + len(places)

    def _young(self, born: int) -> bool:
        return self.start is not None and born > self.start

    def copy(self, value: Value) -> Value:
        """The copy. Raises NotEqual for what cannot be copied."""
        kind = value.__class__
        if kind is Const or kind is Unknown or kind is Name or kind is Module:
            return value
        if isinstance(value, Class):
            if self._young(value.born):
                raise NotEqual  # each call has a class of its own
            return value
        known = self.done.get(id(value))
        if known is not None:
            return known
        if isinstance(value, (Items, Table, Instance)) and self.start is not None and value.born <= self.start:
            return value
        self.depth += 1
        if self.depth > DEEPEST_VALUE or len(self.done) > self.most:
            raise NotEqual
        found = self._new(value)
        self.depth -= 1
        return found

    def _new(self, value: Value) -> Value:
        copy, done = self.copy, self.done
        found: Value
        match value:
            case Instance():
                copy(value.cls)
                found = done[id(value)] = Instance(value.cls)
                found.complete = value.complete
                found.attributes = {name: copy(held) for name, held in value.attributes.items()}
                copied = getattr(value.extra, "copied", None)
                found.extra = copied(copy) if copied is not None else value.extra
            case Items():
                found = done[id(value)] = Items(value.kind, [], complete=value.complete, why=value.why)
                found.items = [copy(item) for item in value.items]
            case Table():
                found = done[id(value)] = Table({}, complete=value.complete, why=value.why)
                found.default = copy(value.default) if value.default is not None else None
                found.items = {key: copy(item) for key, item in value.items.items()}
            case Partial():
                found = done[id(value)] = self._partial(value)
            case Function():
                found = self._function(value)
            case Tensor():
                copied = getattr(value.data, "copied", None)
                found = done[id(value)] = Tensor(copied(copy)) if copied is not None else value
            case _:
                found = value
        return found

    def _partial(self, value: Partial) -> Partial:
        function, args = self.copy(value.function), [self.copy(held) for held in value.args]
        keywords = {name: self.copy(held) for name, held in value.keywords.items()}
        parts = zip((function, *args, *keywords.values()), (value.function, *value.args, *value.keywords.values()),
                    strict=True)  # fmt: skip
        return value if all(new is old for new, old in parts) else Partial(function, args, keywords)

    def _function(self, value: Function) -> Function:
        if self._young(value.scope.born):
            raise NotEqual  # a closure over what the call bound
        if value.bound is None or isinstance(value.bound, Class):
            return value
        found = Function(value.node, value.file, value.scope, value.name)
        found.defaults, found.kw_defaults, found.owner, found.kind = (
            value.defaults, value.kw_defaults, value.owner, value.kind,
        )  # fmt: skip
        found.bound = self.copy(value.bound)
        return found


def copied(value: Value, *, deep: bool) -> Value:
    """copy.copy or copy.deepcopy."""
    if deep:
        try:
            return Copying(None, {}).copy(value)
        except NotEqual:
            return unknown("call")
    match value:
        case Instance():
            found = Instance(value.cls, value.extra)
            found.attributes, found.complete = dict(value.attributes), value.complete
            return found
        case Items():
            return Items(value.kind, list(value.items), complete=value.complete, why=value.why)
        case Table():
            return Table(dict(value.items), complete=value.complete, why=value.why)
    return value
