"""Paths through a body that nobody can choose between: each is run from the same state, and they are joined."""

from __future__ import annotations

from collections.abc import Callable

from convlint.readers.python.evaluator import joining
from convlint.readers.python.evaluator.journal import Changing, Content, Journal, content, restore
from convlint.readers.python.evaluator.scope import Scope

# How a statement ends
GOES_ON, BREAKS, CONTINUES, RETURNS, RAISES = range(5)
Run = Callable[[Scope], int]
Held = dict[int, tuple[Changing, Content]]


class State:
    """What a path leaves behind: variables, what it changed of older objects, and the value that it returns."""

    __slots__ = ("held", "value", "variables")

    def __init__(self, scope: Scope, held: Held) -> None:
        self.variables, self.held, self.value = scope.variables, held, scope.value


class Meeting:
    """Where paths arrive that left a loop or function on a condition; `journal` has what changed since the first."""

    __slots__ = ("journal", "states")

    def __init__(self) -> None:
        self.states: list[State] = []
        self.journal: Journal | None = None

    def arrive(self, scope: Scope, state: State) -> None:
        """A path ends here; the others go on first."""
        if self.journal is None:
            self.journal = scope.machine.journals.begin()
        self.states.append(state)

    def settle(self, scope: Scope, *, alive: bool) -> bool:
        """Join all that arrived with the path that runs now, if that is `alive`; whether any is."""
        if self.journal is None:
            return alive
        journals, journal, lost = scope.machine.journals, self.journal, scope.machine.lost
        states, self.states, self.journal = self.states, [], None
        journals.end(journal)
        changed: Held = dict(journal.saved)
        for state in states:
            for key, pair in state.held.items():
                if key not in changed:
                    changed[key] = pair[0], content(pair[0])
        current = {key: (thing, content(thing)) for key, (thing, _) in changed.items()}
        for state in states:
            if not alive:
                alive = True
                scope.variables, scope.value = state.variables, state.value
                current = {key: state.held.get(key) or journal.saved.get(key) or pair for key, pair in current.items()}
                continue
            scope.variables = joining.variables(scope.variables, state.variables, lost)
            scope.value = joining.joined(scope.value, state.value, lost)
            for key, (thing, held) in current.items():
                other = state.held.get(key) or journal.saved.get(key)
                if other is not None:
                    current[key] = thing, joining.contents(thing, held, other[1], lost)
        for thing, held in current.values():
            journals.touch(thing)
            restore(thing, held)
        return alive


class Loop:
    """A loop that runs: where its undecided continue and break statements lead."""

    __slots__ = ("again", "out")

    def __init__(self) -> None:
        self.again, self.out = Meeting(), Meeting()


def fork(scope: Scope, first: Run, second: Run, if_first: str = "", if_second: str = "") -> int:
    """Run both sides from the same state and join what they leave; how the whole of it ends."""
    machine = scope.machine
    journals = machine.journals
    before, value = scope.variables, scope.value
    scope.variables = dict(before)
    journal = journals.begin()
    how_first = _under(scope, first, if_first)
    state = State(scope, journal.now())
    journals.undo(journal)
    scope.variables, scope.value = before, value
    other = journals.begin()
    how_second = _under(scope, second, if_second)
    if how_first == how_second:
        _join(scope, state, journal, other)
        journals.end(other)
        return how_first
    if how_first == RAISES:
        journals.end(other)
        return how_second
    if how_second == RAISES or how_first == GOES_ON:
        leaving = State(scope, other.now())
        journals.undo(other)
        if how_second != RAISES:
            _send(scope, how_second, leaving)
        _take(scope, state)
        if how_second != RAISES and if_first:
            machine.conditions.append(if_first)  # of all that follows
        return how_first
    journals.end(other)
    _send(scope, how_first, state)
    if if_second:
        machine.conditions.append(if_second)
    return how_second


def _under(scope: Scope, run: Run, condition: str) -> int:
    conditions = scope.machine.conditions
    mark = len(conditions)
    if condition:
        conditions.append(condition)
    how = run(scope)
    del conditions[mark:]
    return how


def _join(scope: Scope, state: State, journal: Journal, other: Journal) -> None:
    machine = scope.machine
    here = scope.variables
    scope.variables = joining.variables(state.variables, here, machine.lost)
    scope.value = joining.joined(state.value, scope.value, machine.lost)
    for thing, held in state.held.values():
        if thing is scope:
            continue
        machine.journals.touch(thing)
        restore(thing, joining.contents(thing, held, content(thing), machine.lost))
    for key, (thing, held) in other.saved.items():
        if key not in journal.saved and thing is not scope:
            restore(thing, joining.contents(thing, held, content(thing), machine.lost))


def _take(scope: Scope, state: State) -> None:
    scope.variables, scope.value = state.variables, state.value
    for thing, held in state.held.values():
        scope.machine.journals.touch(thing)
        restore(thing, held)


def _send(scope: Scope, how: int, state: State) -> None:
    if how == RETURNS:
        if scope.leaving is None:
            scope.leaving = Meeting()
        scope.leaving.arrive(scope, state)
    elif scope.loops:
        (scope.loops[-1].out if how == BREAKS else scope.loops[-1].again).arrive(scope, state)


def leave(scope: Scope, how: int, meeting: Meeting) -> None:
    """The path that runs now leaves its loop or function; those that wait at `meeting` go on."""
    held: Held = dict(meeting.journal.saved) if meeting.journal is not None else {}
    for state in meeting.states:
        held.update(state.held)
    _send(scope, how, State(scope, {key: (thing, content(thing)) for key, (thing, _) in held.items()}))
