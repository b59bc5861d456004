"""One value for two paths that meet: what both agree on, else unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from convlint.readers.python.evaluator.journal import Changing, Content
from convlint.readers.python.evaluator.scope import Scope
from convlint.readers.python.evaluator.stated import union
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
    Unknown,
    Value,
    unknown,
)

DEEPEST = 6  # of lists within lists
Lost = Callable[[Value], None]  # told of a value that no path keeps


def joined(first: Value, second: Value, lost: Lost, depth: int = 0) -> Value:
    """What a variable holds that is `first` on one path and `second` on the other."""
    if first is second:
        return first
    found = _joined(first, second, lost, depth)
    if found is not None:
        return found
    lost(first)
    lost(second)
    for value in (first, second):
        if value.__class__ is Unknown and value.why != "branch":
            return value
    return unknown("branch")


def _joined(first: Value, second: Value, lost: Lost, depth: int) -> Value | None:
    if first.__class__ is not second.__class__ or depth > DEEPEST:
        return None
    match first, second:
        case Const(), Const():
            if first.value.__class__ is second.value.__class__ and first.value == second.value:
                return Const(first.value, union(first.stated, second.stated))
        case Items(), Items():
            if first.kind == second.kind and first.complete and second.complete and first.kind != "iterator":
                if len(first.items) != len(second.items):
                    return None
                pairs = zip(first.items, second.items, strict=True)
                return Items(first.kind, [joined(left, right, lost, depth + 1) for left, right in pairs])
        case Table(), Table():
            if first.complete and second.complete and first.items.keys() == second.items.keys():
                return Table({key: joined(value, second.items[key], lost, depth + 1)
                              for key, value in first.items.items()})  # fmt: skip
        case Function(), Function():
            return first if _same_function(first, second) else None
        case Name(), Name():
            return first if first.name == second.name else None
        case Module(), Module():
            return first if first.path == second.path else None
        case Partial(), Partial():
            if same(first, second):
                return first
        case Instance(), Instance():
            either = getattr(first.extra, "either", None)
            extra = either(second.extra) if either is not None and not (first.attributes or second.attributes) else None
            if extra is not None and isinstance(first.cls, Name) and isinstance(second.cls, Name):
                return Instance(first.cls, extra)
    return None


def same(first: Value, second: Value, depth: int = 0) -> bool:
    """Whether both are one object, or equal and unable to change."""
    if first is second:
        return True
    if first.__class__ is not second.__class__ or depth > DEEPEST:
        return False
    match first, second:
        case Const(), Const():
            return first.value.__class__ is second.value.__class__ and first.value == second.value
        case Function(), Function():
            return _same_function(first, second)
        case Name(), Name():
            return first.name == second.name
        case Module(), Module():
            return first.path == second.path
        case Partial(), Partial():
            return (
                same(first.function, second.function, depth + 1)
                and len(first.args) == len(second.args)
                and all(same(left, right, depth + 1) for left, right in zip(first.args, second.args, strict=True))
                and first.keywords.keys() == second.keywords.keys()
                and all(same(value, second.keywords[key], depth + 1) for key, value in first.keywords.items())
            )
    return False


def _same_function(first: Function, second: Function) -> bool:
    return first.node is second.node and first.scope is second.scope and first.bound is second.bound


def variables(first: dict[str, Value], second: dict[str, Value], lost: Lost) -> dict[str, Value]:
    """Both sets of names; one that only one path binds is bound, as reading it on the other would be an error."""
    both = dict(first)
    for name, value in second.items():
        held = first.get(name)
        both[name] = value if held is None or held is value else joined(held, value, lost)
    return both


def contents(thing: Changing, first: Content, second: Content, lost: Lost) -> Content:
    """What an object holds that holds `first` on one path and `second` on the other."""
    if isinstance(thing, Items):
        return _items(first, second, lost)
    if isinstance(thing, Table):
        keys = first[0].keys() == second[0].keys()
        return variables(first[0], second[0], lost), first[1] and second[1] and keys, first[2]
    if isinstance(thing, Instance):
        extra = first[2] if first[2] is not None else second[2]
        whole = first[1] and second[1] and _equal(first[2], second[2])
        if isinstance(thing.cls, Name) and first[0].keys() != second[0].keys():
            return _parts(first[0], second[0]), False, extra
        return _attributes(thing, first[0], second[0], lost), whole, extra
    if isinstance(thing, (Class, Scope)):
        return (variables(first[0], second[0], lost),)
    return first


def _items(first: Content, second: Content, lost: Lost) -> Content:
    left, right = first[0], second[0]
    whole = first[1] and second[1]
    if len(left) == len(right):
        pairs = zip(left, right, strict=True)
        return [joined(one, other, lost) for one, other in pairs], whole, first[2]
    shorter, longer = sorted((left, right), key=len)
    known = {id(item) for item in longer}
    why = first[2] if not first[1] else second[2] if not second[1] else "branch"
    return [*longer, *(item for item in shorter if id(item) not in known)], False, why


def _attributes(
    thing: Instance, first: dict[str, Value], second: dict[str, Value], lost: Lost,
) -> dict[str, Value]:  # fmt: skip
    """Attributes; one that only one path sets may be the class's own on the other."""
    both = variables(first, second, lost)
    for name in first.keys() ^ second.keys():
        inherited = _of_class(thing, name)
        if inherited is not None:
            both[name] = joined(both[name], inherited, lost)
    return both


def _parts(first: dict[str, Value], second: dict[str, Value]) -> dict[str, Value]:
    """What a framework's object holds that got other parts on one path than on the other; order tells what each is.

    An unknown part stands wherever nobody knows which others lie there.
    """
    open_ = unknown("branch")
    both: dict[str, Value] = {}
    for name, value in first.items():
        if second.get(name) is not value or len(both) != list(second).index(name):
            break
        both[name] = value
    for side in (first, second, {}):
        rest = [(name, value) for name, value in side.items() if both.get(name) is not value]
        for name, value in (("?", open_), *rest):
            key = name
            while key in both:
                key += "?"
            both[key] = value
    return both


def _of_class(thing: Instance, name: str) -> Value | None:
    order = thing.cls.order if isinstance(thing.cls, Class) else None
    for cls in order or ():
        if isinstance(cls, Class) and name in cls.namespace:
            return cls.namespace[name]
    return None


def _equal(first: Any, second: Any) -> bool:
    return first is second or bool(first == second)
