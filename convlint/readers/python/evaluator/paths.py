"""Scopes and control flow: an undecided test runs both sides, each on a path of its own, and joins the results."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property, partial
from math import prod
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from convlint.readers.python.evaluator import names_of
from convlint.readers.python.evaluator.limits import ROUNDS, ROUNDS_OF_NEST
from convlint.readers.python.evaluator.state import Heap, HeapLayer
from convlint.readers.python.evaluator.values import Entries, Instance, Items, List, Object, Table, Value, same, unknown

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine
    from convlint.readers.python.evaluator.values import Function, Module, Name
    from convlint.readers.python.source_file import SourceFile

# How a statement ends; None if it goes on
BREAKS, CONTINUES, RETURNS, RAISES = range(1, 5)
RETURNED, YIELDED = "<return>", "<yield>"  # variables of a function's results, which paths join like all others
MOST_AGAIN = 2  # nested loops whose bodies are run a second time for what the first round changed


class Scope(Object):
    """The variables of a body that runs, or that inner functions still refer to.

    `parent` is the enclosing scope for lookups, never that of a class; `module` is the outermost one. `leaving` has
    the states of paths that have returned, `loops` the running loops with the states that have left them.
    """

    __slots__ = (
        "born", "file", "first", "function", "heap", "leaving", "loops", "machine", "module", "of_class", "parent",
        "stars",
    )  # fmt: skip
    variables: dict[str, Value] = Object.items  # type: ignore[assignment]  # of its names, on the current path

    def __init__(self, machine: Machine, file: SourceFile, parent: Scope | None, function: Function | None) -> None:
        self._begin(machine.heap, Entries({}))
        self.machine, self.file, self.parent, self.function = machine, file, parent, function
        self.module: Scope = self if parent is None else parent.module
        self.stars: list[Module | Name] = []  # modules that `from m import *` names, of a module's scope
        self.of_class = False
        self.leaving: list[HeapLayer] = []
        self.loops: list[Loop] = []


class Test(str):
    """The condition of a side of an `if` statement, which stands at `place`: path, line and column."""

    place: tuple[str, int, int] | None = None


class Negation(Test):
    """The condition of the `else` side. `last` is the test of that side if it is the last `elif` of a chain."""

    last = ""


class KindTest(str):
    """The condition under which a call of a OneKind calls a certain one of its classes."""

    __slots__ = ()


Run = Callable[[Scope], int | None]
Side = tuple[str, int, int]  # path, first and last line


class Choices(Struct):
    """The sides of `if` statements that a decided test left out, and those that some run takes or may take.

    `refused` are those that were left out in a call, in contrast to a root by itself and to a module that tries itself.
    """

    left: set[Side] = set()
    refused: set[Side] = set()
    taken: set[Side] = set()

    def leave_out(self, sides: Sequence[Side], is_called: Callable[[], bool]) -> None:
        """Note sides that a decided test left out; `is_called` says whether that was in a call."""
        self.left.update(sides)
        if not self.refused.issuperset(sides) and is_called():
            self.refused.update(sides)


class Untaken:
    """The lines of sides that some run left out and no run took."""

    def __init__(self, left: AbstractSet[Side], taken: AbstractSet[Side]) -> None:
        self._spans: dict[str, list[tuple[int, int]]] = {}  # by path, in order, none within another
        for path, first, last in sorted(left - taken):
            spans = self._spans.setdefault(path, [])
            if not spans or last > spans[-1][1]:
                spans.append((first, last))

    def holds(self, path: str, line: int) -> bool:
        """Whether a line of a file is among them."""
        spans = self._spans.get(path, [])
        at = bisect_right(spans, line, key=lambda span: span[0])
        return at > 0 and line <= spans[at - 1][1]


class Loop(Struct):
    """A running loop: the states of paths that continued with the next round, and of those that left by `break`."""

    rounds: int = 1  # the number that is known before it begins
    again: list[HeapLayer] = []
    out: list[HeapLayer] = []


def nothing(_: Scope) -> None:
    """Run no statement at all."""


def fork(scope: Scope, first: Run, second: Run, if_first: str = "", if_second: str = "") -> int | None:
    """Run both sides from the same state and join their states; return how the statement ends."""
    heap, conditions = scope.heap, scope.machine.conditions
    base = heap.begin()
    recorded = len(scope.machine.recorded)
    how_first = under(scope, first, if_first)
    between = len(scope.machine.recorded)
    first_layer, heap.layer = heap.layer, heap.layer_on(base)
    how_second = under(scope, second, if_second)
    if how_first == how_second:
        heap.meet(first_layer, base)
        return how_first
    # A path that raises ends here: what follows is the other side's state alone.
    if how_first == RAISES:
        scope.machine.doomed(recorded, between)
        heap.settle(base)
        return how_second
    if how_second == RAISES or how_first is None:
        if how_second == RAISES:
            scope.machine.doomed(between, len(scope.machine.recorded))
        else:
            _send(scope, how_second)
            if if_first:
                conditions.append(if_first)  # of all that follows
        heap.layer = first_layer
        heap.settle(base)
        return how_first
    second_layer, heap.layer = heap.layer, first_layer
    _send(scope, how_first)
    heap.layer = second_layer
    if if_second:
        conditions.append(if_second)
    return how_second


def under(scope: Scope, run: Run, condition: str) -> int | None:
    """Run code under an undecided condition; return how it ends."""
    conditions = scope.machine.conditions
    mark = len(conditions)
    if condition:
        conditions.append(condition)
    how = run(scope)
    if condition and how is None and len(conditions) > mark + 1:
        scope.machine.doubts.append(run)  # some paths of this side have left, and only the others see what follows
    del conditions[mark:]
    return how


def doubtful(run: Run) -> Run:
    """Wrap code so that its records are marked as doubtful: a real run may never reach it."""

    def in_doubt(scope: Scope) -> int | None:
        doubts = scope.machine.doubts
        mark = len(doubts)
        doubts.append(run)
        how = run(scope)
        del doubts[mark:]
        return how

    return in_doubt


def _send(scope: Scope, how: int | None) -> None:
    """Keep the state of the current path, which leaves its loop or function, until the others arrive."""
    if how == RETURNS:
        scope.leaving.append(scope.heap.keep())
    elif scope.loops:
        (scope.loops[-1].out if how == BREAKS else scope.loops[-1].again).append(scope.heap.keep())


def gather(heap: Heap, waiting: list[HeapLayer], *, alive: bool) -> bool:
    """Join all waiting states into the current path if it is `alive`; return whether any path is."""
    while waiting:
        state = heap.release(waiting.pop())
        if alive:
            heap.meet(state)
        else:
            heap.go_on(state)
        alive = True
    return alive


def unrolled(
    scope: Scope, items: Iterable[Value], put: Callable[[Scope, Value], None], body: Run, orelse: Run, rounds: int = 1
) -> int | None:
    """Run a loop round by round, then `orelse` on the path that no `break` left; return how the loop ends."""
    machine, loop = scope.machine, Loop(rounds)
    how: int | None = None
    scope.loops.append(loop)
    conditions = machine.conditions
    mark = len(conditions)
    for item in items:
        machine.step()
        put(scope, item)
        how = body(scope)
        if loop.again:
            how = None if gather(scope.heap, loop.again, alive=_stays(scope, how)) else how
        del conditions[mark:]
        if how == CONTINUES:
            how = None
        if how:
            break
    scope.loops.pop()
    alive = how == BREAKS
    if how is None:
        how = orelse(scope)
        alive = how is None
    if not loop.out:
        return None if alive else how
    if not alive and how != RAISES:
        _send(scope, how)
    gather(scope.heap, loop.out, alive=alive)
    return None


def is_unrolled(scope: Scope, rounds: int) -> bool:
    """Whether a loop of so many rounds is run round by round, within the loops around it."""
    return rounds <= ROUNDS and rounds * prod(loop.rounds for loop in scope.loops) <= ROUNDS_OF_NEST


def _stays(scope: Scope, how: int | None) -> bool:
    """Whether the current path continues with the next round; one that leaves is kept for those who wait."""
    if how in (RETURNS, BREAKS):
        _send(scope, how)
    return how in (None, CONTINUES)


class LoopChanges:
    """The names and attributes that a loop changes, computed only if it is not run round by round."""

    def __init__(self, nodes: Sequence[ast.AST]) -> None:
        self._nodes = nodes

    @cached_property
    def _changes(self) -> tuple[set[str], set[str], set[tuple[str, str]]]:
        return (names_of.BodyNames(self._nodes).bound, *names_of.changed(self._nodes))

    def blur(self, scope: Scope, why: str) -> None:
        """Make the variables and lists that the loop changes unknown, so that one round stands for all."""
        heap, variables = scope.heap, scope.variables
        names, objects, attributes = self._changes
        for name in objects & variables.keys():
            # `a |= other` changes what `a` is, which may have other names; what tables hold is found by running it
            if name in names or isinstance(variables[name], List):
                heap.soften(variables[name], why)
        for name in names & variables.keys():
            heap.put(scope, name, unknown(why))
        for name, attr in attributes:
            thing = variables.get(name)
            if isinstance(thing, Instance) and attr in thing.attributes:
                _blur(heap, thing, attr, why)


def once(scope: Scope, changes: LoopChanges, why: str, body: Run) -> int | None:
    """Run a body once for any number of rounds, with what it changes unknown, as a path that may not be taken."""
    machine, heap = scope.machine, scope.heap
    changes.blur(scope, why)
    if machine.again >= MOST_AGAIN:
        return _maybe(scope, body)
    waiting = [scope.leaving, *(states for loop in scope.loops for states in (loop.again, loop.out))]
    marks, recorded = [len(states) for states in waiting], len(machine.recorded)
    before = heap.begin()
    machine.again += 1
    how = _maybe(scope, body)
    machine.again -= 1
    # Attributes and items are changed through calls, which names alone do not show: run again without them.
    more = _unforeseen(heap, before, why)
    if more:
        for states, mark in zip(waiting, marks, strict=True):
            while len(states) > mark:
                heap.release(states.pop())
        heap.layer = heap.layer_on(before)
        # The first round saw values that only the first round of a real loop has.
        del machine.recorded[recorded:]
        for change in more:
            change()
        how = _maybe(scope, body)
    heap.settle(before)
    return how


def _maybe(scope: Scope, body: Run) -> int | None:
    def one_round(at: Scope) -> int | None:
        loop = Loop()
        at.loops.append(loop)
        how = body(at)
        at.loops.pop()
        alive = how not in (RETURNS, RAISES)
        if loop.again or loop.out:
            if how == RETURNS:
                _send(at, how)
            gather(at.heap, [*loop.again, *loop.out], alive=alive)
            return None
        return None if alive else how

    return fork(scope, one_round, nothing)


def _unforeseen(heap: Heap, before: HeapLayer, why: str) -> list[Callable[[], None]]:
    """Return functions that make unknown what a round changed of older objects, such as attributes."""
    changes: list[Callable[[], None]] = []
    for thing, old, new in heap.changed_since(before):
        if isinstance(old, Items):
            alike = new.complete and len(old.items) == len(new.items) and all(map(same, old.items, new.items))
            if old.complete and not alike:
                changes.append(partial(heap.soften, thing, why))
            continue
        changed = [key for key, value in old.items.items() if not same(value, new.items.get(key, unknown("branch")))]
        changes += [partial(_blur, heap, thing, key, why) for key in changed]
        if not isinstance(thing, Scope) and not new.ordered:
            added = [key for key in new.items if key not in old.items and not isinstance(new.items[key], Instance)]
            changes += [partial(_may_have, heap, thing, key, why) for key in added]
        if (
            isinstance(thing, (Table, Instance))
            and old.complete
            and (not new.complete or (isinstance(thing, Table) and len(old.items) != len(new.items)))
        ):
            changes.append(partial(_open, heap, thing, why))
    return changes


def _blur(heap: Heap, thing: Any, key: Any, why: str) -> None:
    value = heap.read(thing).items.get(key)
    if value is None:
        return  # what else it holds is unknown by now
    if isinstance(value, List) or (isinstance(value, Table) and value.of is None):
        heap.soften(value, why)
    else:
        heap.put(thing, key, unknown(why))


def _may_have(heap: Heap, thing: Any, key: Any, why: str) -> None:
    cell = heap.edit(thing, key)
    cell.items[key], cell.may = unknown(why), cell.may | {key}


def _open(heap: Heap, thing: Any, why: str) -> None:
    cell = heap.edit(thing.owner if isinstance(thing, Table) else thing)
    cell.complete, cell.why = False, why
