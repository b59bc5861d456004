"""Calls that were evaluated before: their results are copied, and what the library recorded is recorded again."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from convlint.readers.python.evaluator.copying import Copying, NotEqual
from convlint.readers.python.evaluator.journal import Trial
from convlint.readers.python.evaluator.limits import DEEPEST, DEEPEST_VALUE, MOST_RECORDED
from convlint.readers.python.evaluator.values import (
    Class,
    Const,
    Function,
    Items,
    Module,
    Name,
    Partial,
    Table,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

MOST = 50_000  # calls that are remembered
MOST_OBJECTS = 400_000  # in the results of all of them
FEW_STEPS = 3  # a call that takes no more is quicker evaluated again


class Recorded(Struct, frozen=True):
    """What a library recorded: under which undecided tests, and by which calls."""

    thing: Any
    conditions: tuple[str, ...]
    stack: tuple[Any, ...]


class Remembered(Struct, frozen=True):
    """A call's result, what was recorded in it, and what it took."""

    value: Value
    given: tuple[Value, ...]  # lists and dicts among the arguments, which the result may hold
    start: int
    records: tuple[Recorded, ...]
    steps: int
    height: int


class Store:
    """Calls that were evaluated, and how many more objects their results may have."""

    __slots__ = ("calls", "room")

    def __init__(self) -> None:
        self.calls: dict[Hashable, Remembered] = {}
        self.room = MOST_OBJECTS


class Memory:
    """What was evaluated so far in a run."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.hits = 0
        self._store = Store()
        self._changed, self._world = Store(), 0  # what holds as long as what modules made is as changed as it is now

    def evaluate(
        self, what: Function | Class, args: list[Value], keywords: dict[str, Value], exact: bool,
        run: Callable[[], Value],
    ) -> Value:  # fmt: skip
        """What the call gives: from memory where it has an equal there."""
        machine = self.machine
        if not machine.root:  # the body of a module: what it makes is there for good
            return run()
        given: dict[int, Value] = {}
        try:
            key: Hashable = (
                _frozen(what, given, 0),
                exact,
                machine.again,  # loops go by it
                tuple([_frozen(value, given, 0) for value in args]),
                tuple([(name, _frozen(value, given, 0)) for name, value in keywords.items()]) if keywords else (),
            )
        except NotEqual:
            return run()
        store = self._of_now()
        found = store.calls.get(key)
        if found is not None and found.steps <= machine.steps and machine.height + found.height <= DEEPEST:
            self.hits += 1
            try:
                return self._again(found, given)
            except NotEqual:
                return run()
        return self._first(store, key, given, run)

    def _of_now(self) -> Store:
        world = self.machine.journals.world
        if not world:
            return self._store
        if world != self._world:
            self._changed, self._world = Store(), world
        return self._changed

    def _first(self, store: Store, key: Hashable, given: dict[int, Value], run: Callable[[], Value]) -> Value:
        machine = self.machine
        steps, marks = machine.steps, (len(machine.recorded), len(machine.conditions), len(machine.stack))
        trial = Trial()
        trials = machine.journals.trials
        trials.append(trial)
        try:
            value = run()
        finally:
            trials.pop()
        if trials:
            trials[-1].tallest = max(trials[-1].tallest, trial.tallest)
        taken = steps - machine.steps
        if not trial.pure or taken <= FEW_STEPS or len(store.calls) >= MOST or store.room <= 0:
            return value
        if len(machine.recorded) >= MOST_RECORDED:
            return value  # more may have been recorded than was kept
        try:
            copying = Copying(trial.start, {})
            kept = copying.copy(value)
        except NotEqual:
            return value
        store.room -= len(copying.done)
        records: dict[tuple[int, tuple[str, ...]], Recorded] = {}
        for each in machine.recorded[marks[0] :]:
            conditions = each.conditions[marks[1] :]
            records.setdefault((id(each.thing), conditions), Recorded(each.thing, conditions, each.stack[marks[2] :]))
        height = max(trial.tallest - machine.height, 0)
        store.calls[key] = Remembered(kept, tuple(given.values()), trial.start, tuple(records.values()), taken, height)
        return value

    def _again(self, found: Remembered, given: dict[int, Value]) -> Value:
        machine = self.machine
        places = {id(old): new for old, new in zip(found.given, given.values(), strict=True)}
        value = Copying(found.start, places).copy(found.value)
        machine.steps -= found.steps
        machine.remembered += found.steps
        for trial in machine.journals.trials:
            trial.tallest = max(trial.tallest, machine.height + found.height)
        if found.records:
            conditions, stack = tuple(machine.conditions), tuple(machine.stack)
            room = MOST_RECORDED - len(machine.recorded)
            machine.recorded += [Recorded(each.thing, conditions + each.conditions, stack + each.stack)
                                 for each in found.records[: max(room, 0)]]  # fmt: skip
        return value


def _frozen(value: Value, given: dict[int, Value], depth: int) -> Hashable:
    """What two values have in common exactly where they cannot be told apart. Raises NotEqual."""
    kind = value.__class__
    if kind is Const:
        held = value.value  # type: ignore[union-attr]
        return held.__class__, held or str(held), value.stated  # type: ignore[union-attr]  # 0.0 is not -0.0
    if kind is Unknown:
        return value
    if depth > DEEPEST_VALUE:
        raise NotEqual
    match value:
        case Name():
            return "name", value.name
        case Module():
            return "module", value.path
        case Class():
            if value.born:
                raise NotEqual  # it may change, and its methods may see what does
            return value
        case Function():
            if value.scope.parent is not None or not (value.bound is None or isinstance(value.bound, Class)):
                raise NotEqual
            if value.bound is not None:
                _frozen(value.bound, given, depth + 1)
            defaults = (*value.defaults, *value.kw_defaults.values())  # these very objects
            return value.node, value.scope, value.bound, value.owner, value.kind, defaults
        case Items() | Table() if not value.born:
            return value  # others see it too: no equal one can stand for it
        case Items() | Table() if id(value) in given:
            return "again", list(given).index(id(value))
        case Items():
            given[id(value)] = value
            inner = tuple([_frozen(item, given, depth + 1) for item in value.items])
            return value.kind, value.complete, value.why, inner
        case Table():
            if value.default is not None:
                raise NotEqual
            given[id(value)] = value
            return (
                "table",
                value.complete,
                value.why,
                tuple([(key.__class__, key, _frozen(item, given, depth + 1)) for key, item in value.items.items()]),
            )
        case Partial():
            return (
                "partial",
                _frozen(value.function, given, depth + 1),
                tuple([_frozen(item, given, depth + 1) for item in value.args]),
                tuple([(key, _frozen(item, given, depth + 1)) for key, item in value.keywords.items()]),
            )
    raise NotEqual
