"""Memory of evaluated calls: an equal call gets a copy of the result, and the library's records once more.

Networks construct the same block many times; without memory their constructors take most of a run.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from convlint.readers.python.evaluator.limits import DEEPEST, DEEPEST_VALUE, MOST_RECORDED
from convlint.readers.python.evaluator.state import Copying, NotCopied
from convlint.readers.python.evaluator.values import (
    Class,
    Const,
    Function,
    Items,
    List,
    Module,
    Name,
    OneKind,
    Partial,
    Preset,
    Table,
    Tensor,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.library import LibraryCall
    from convlint.readers.python.evaluator.machine import Machine

DOOMED = "raises"  # among the doubts of what was recorded on a path that raises
_MOST = 50_000  # calls that are remembered
_MOST_OBJECTS = 400_000  # in the results of all of them
_LARGEST = 1000  # objects in one result
_FEW_STEPS = 3  # a call that takes no more is quicker evaluated again


class Recorded(Struct, frozen=True):
    """A record of the library, with the undecided tests, the other doubts and the calls around it."""

    thing: Any
    conditions: tuple[str, ...]
    stack: tuple[Any, ...]
    doubts: tuple[object, ...] = ()


class _Remembered(Struct, frozen=True):
    """The result of a call, its records, and its cost."""

    value: Value
    given: tuple[Value, ...]  # lists and dicts among the arguments, which the result may contain
    start: int
    records: tuple[Recorded, ...]
    steps: int
    height: int
    inactive: frozenset[ast.AST]  # functions whose recursion was cut: in a call within one of them, it is cut sooner
    reads: frozenset[Any]  # objects of modules that it read, which must be unchanged
    counted: bool  # whether it differs where the command line says how often loops run


class CallMemory:
    """The calls remembered in a run: those that changed no object older than themselves."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.hits = 0
        self.tallest = 0  # the most Python frames since the current call began
        self.unique = False  # whether the current call's result must not be shared
        self.counted = False  # whether the command line says how often some loop of the current call runs
        self.limited: set[ast.AST] = set()  # functions whose recursion was cut since the current call began
        self.forget()

    def forget(self) -> None:
        """Forget all calls, so that a file's results do not depend on the files read before it."""
        self._calls: dict[Hashable, _Remembered] = {}
        self._reads: dict[frozenset[Any], frozenset[Any]] = {}  # interned sets: many calls read the same objects
        self._room = _MOST_OBJECTS

    def spoil(self) -> None:
        """Prevent remembering of all calls that run now, as they depend on more than their arguments."""
        self.machine.heap.oldest = 0

    def evaluate(self, what: Function | Class, call: LibraryCall, run: Callable[[], Value]) -> Value:
        """Return the result of a call, from memory if an equal call is there."""
        machine = self.machine
        if machine.heap.in_module:  # a module's body runs once, so that nothing would be saved
            return run()
        given: dict[int, Value] = {}
        try:
            key: Hashable = (
                _frozen(what, given, 0),
                call.exact,
                call.others,
                machine.by_defaults() if machine.decided else None,  # which layers keep
                machine.again,  # a loop within MOST_AGAIN others is evaluated less exactly
                tuple([_frozen(value, given, 0) for value in call.args]),
                tuple([(name, _frozen(value, given, 0)) for name, value in call.keywords.items()]),
            )
        except NotCopied:
            return run()
        entry = self._calls.get(key)
        if entry is not None and entry.counted:
            entry = self._calls.get((key, machine.by_defaults_alone))
        if (
            entry is not None
            and entry.steps <= machine.steps
            and machine.height + entry.height <= DEEPEST
            and machine.heap.changed.isdisjoint(entry.reads)
            and not (entry.inactive and any(map(machine.active.get, entry.inactive)))
        ):
            self.hits += 1
            try:
                return self._again(entry, given)
            except NotCopied:
                return run()
        return self._first(key, given, run)

    def _first(self, key: Hashable, given: dict[int, Value], run: Callable[[], Value]) -> Value:
        machine, heap = self.machine, self.machine.heap
        steps = machine.steps
        marks = [len(values) for values in (machine.recorded, machine.conditions, machine.stack, machine.doubts)]
        outer, heap.oldest = heap.oldest, float("inf")
        outer_reads, heap.reads = heap.reads, set()
        taller, self.tallest, self.unique = self.tallest, 0, False
        limited, self.limited = self.limited, set()
        outer_counted, self.counted = self.counted, False
        start = heap.time
        tensors = [(value, value.data.state()) for value in given.values() if isinstance(value, Tensor)]
        try:
            value = run()
        finally:
            inactive = frozenset(self.limited)
            pure = heap.oldest > start and not self.unique and not any(map(machine.active.get, inactive))
            heap.oldest, height = min(outer, heap.oldest), max(self.tallest - machine.height, 0)
            self.tallest, self.unique = max(taller, self.tallest), False
            self.limited = limited | inactive
            counted, self.counted = self.counted, self.counted or outer_counted
            reads, heap.reads = heap.reads, outer_reads
            outer_reads |= reads
        steps_taken, calls = steps - machine.steps, self._calls
        if not pure or steps_taken <= _FEW_STEPS or len(calls) >= _MOST or self._room <= 0:
            return value
        if len(machine.recorded) >= MOST_RECORDED:
            return value  # more may have been recorded than was kept
        if any(tensor.data.state() != state for tensor, state in tensors):
            return value  # something reads them
        try:
            copying = Copying(heap, start, {id(tensor): tensor for tensor, _ in tensors}, _LARGEST, DEEPEST_VALUE)
            copy = copying.copy(value)
        except NotCopied:
            return value
        self._room -= len(copying.done)
        records: dict[tuple[int, tuple[str, ...]], Recorded] = {}
        for item in machine.recorded[marks[0] :]:
            here = Recorded(item.thing, item.conditions[marks[1] :], item.stack[marks[2] :], item.doubts[marks[3] :])
            records.setdefault((id(here.thing), here.conditions), here)
        seen = frozenset(reads)
        seen = self._reads.setdefault(seen, seen)
        calls[key] = entry = _Remembered(
            copy, tuple(given.values()), start, tuple(records.values()), steps_taken, height, inactive, seen, counted
        )
        if counted:
            calls[key, machine.by_defaults_alone] = entry
        return value

    def _again(self, entry: _Remembered, given: dict[int, Value]) -> Value:
        machine = self.machine
        places = {id(old): new for old, new in zip(entry.given, given.values(), strict=True)}
        value = Copying(machine.heap, entry.start, places, _LARGEST, DEEPEST_VALUE).copy(entry.value)
        machine.steps -= entry.steps
        machine.remembered += entry.steps
        self.tallest = max(self.tallest, machine.height + entry.height)
        self.limited |= entry.inactive
        if entry.counted:
            machine.counted = self.counted = True
        machine.heap.reads |= entry.reads
        if entry.records:
            machine.recorded_at = machine.steps + machine.remembered
            conditions, stack = tuple(machine.conditions), tuple(machine.stack)
            room = MOST_RECORDED - len(machine.recorded)
            doubts = tuple(machine.doubts)
            machine.recorded += [Recorded(item.thing, conditions + item.conditions, stack + item.stack,
                                          doubts + item.doubts) for item in entry.records[: max(room, 0)]]  # fmt: skip
        return value


def _frozen(value: Value, given: dict[int, Value], depth: int) -> Hashable:
    """Return a key that two values share if and only if no code can tell them apart. Raises NotCopied."""
    kind = value.__class__
    if kind is Const:
        plain = value.value  # type: ignore[union-attr]
        return plain.__class__, plain or str(plain), value.stated  # type: ignore[union-attr]  # 0.0 is not -0.0
    if kind is Unknown:
        return value
    if kind is Preset:
        return "preset", _frozen(value.number, given, depth)  # type: ignore[union-attr]
    if depth > DEEPEST_VALUE:
        raise NotCopied
    match value:
        case Name():
            return "name", value.name
        case OneKind():
            return "one of", value.why, tuple([_frozen(cls, given, depth + 1) for cls in value.kinds])
        case Module():
            return "module", value.path
        case Class():
            if value.born > 0:
                raise NotCopied  # it may change, and its methods may see what does
            return value
        case Function():
            if value.scope.parent is not None or not (value.bound is None or isinstance(value.bound, Class)):
                raise NotCopied
            if value.bound is not None:
                _frozen(value.bound, given, depth + 1)
            defaults = (*value.defaults, *value.kw_defaults.values())  # these very objects
            return value.node, value.scope, value.bound, value.owner, value.kind, defaults
        case List() | Table() if value.born < 0:
            return value  # others see it too: no equal one can stand for it
        case List() | Table() | Tensor() if id(value) in given:
            return "again", list(given).index(id(value))
        case List():
            given[id(value)] = value
            items = tuple([_frozen(item, given, depth + 1) for item in value.items])
            if value.cell.also:
                raise NotCopied
            return value.kind, value.complete, value.why, items
        case Table():
            cell = value.cell
            if cell.default is not None or value.of is not None or cell.also:
                raise NotCopied
            given[id(value)] = value
            inner = [(key.__class__, key, _frozen(item, given, depth + 1)) for key, item in cell.items.items()]
            return "table", cell.complete, cell.may, cell.why, tuple(inner)
        case Tensor():
            given[id(value)] = value
            traits, sizes = value.data.known()
            return "tensor", traits, tuple([_frozen(size, given, depth + 1) for size in sizes])
        case Items():
            return (value.kind, value.complete, value.why,
                    tuple([_frozen(item, given, depth + 1) for item in value.items]))  # fmt: skip
        case Partial():
            return (
                "partial",
                _frozen(value.function, given, depth + 1),
                tuple([_frozen(item, given, depth + 1) for item in value.args]),
                tuple([(key, _frozen(item, given, depth + 1)) for key, item in value.keywords.items()]),
            )
    raise NotCopied
