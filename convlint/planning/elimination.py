"""The least sum of costs that each depend on a few choices, found exactly by eliminating one choice after the other.

Variables are numbered, each with a number of choices; a table has the costs of every combination of those in its
scope. To eliminate a variable, all tables that know it are added up, and for every combination of the others its best
choice is kept. On chains no table has more than two variables, in residual networks hardly more; where a table would
grow beyond a bound, a variable is held at the choice that it has, and the result is the best beside what is held.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from operator import add
from typing import NamedTuple

WIDEST = 64  # variables of one scope


class Table(NamedTuple):
    """Costs of all combinations of the choices of `scope`, the last variable's changing fastest."""

    scope: tuple[int, ...]
    costs: Sequence[float]


class Solution(NamedTuple):
    """A choice for every variable, and which of them were held where they were."""

    choices: dict[int, int]
    held: tuple[int, ...]


def order(choices: Mapping[int, int], scopes: Iterable[tuple[int, ...]], most: int) -> tuple[list[int], list[int]]:
    """(the variables in the order in which they are eliminated, those held), so that no table exceeds `most` entries.

    `choices` has how many each variable has. The one with the smallest table goes first; where all are too large, the
    one with most neighbours is held, which divides the tables of all of them. All variables of a scope that is wider
    than `WIDEST` are held from the start.
    """
    scopes = list(scopes)
    wide = {variable for scope in scopes if len(scope) > WIDEST for variable in scope}
    near: dict[int, set[int]] = {variable: set() for variable in choices if variable not in wide}
    for scope in scopes:
        free = [variable for variable in scope if variable not in wide]
        for variable in free:
            near[variable].update(free)
    for variable, others in near.items():
        others.discard(variable)
    entries = {variable: _entries(variable, near[variable], choices, most) for variable in near}
    smallest = [(size, variable) for variable, size in entries.items()]
    heapify(smallest)
    eliminated: list[int] = []
    held = sorted(wide)
    while near:
        size, variable = heappop(smallest)
        if variable not in near or entries[variable] != size:
            continue
        holds = size > most
        if holds:
            heappush(smallest, (size, variable))
            variable = max(near, key=lambda one: (len(near[one]), choices[one], -one))
        (held if holds else eliminated).append(variable)
        others = near.pop(variable)
        for other in others:
            near[other].discard(variable)
            if not holds:
                near[other] |= others - {other}
        for other in others:
            entries[other] = _entries(other, near[other], choices, most)
            heappush(smallest, (entries[other], other))
    return eliminated, held


def _entries(variable: int, near: Iterable[int], choices: Mapping[int, int], most: int) -> int:
    """Of the table that eliminates a variable; counted no further than just beyond `most`."""
    entries = choices[variable]
    for other in near:
        if entries > most:
            break
        entries *= choices[other]
    return entries


def eliminate(choices: Mapping[int, int], tables: Iterable[Table], sequence: Sequence[int]) -> dict[int, int]:
    """The choices of the least sum; `sequence` has every variable once, in the order of elimination.

    Of equal sums, that with the first choice of the variable eliminated last.
    """
    turn = {variable: number for number, variable in enumerate(sequence)}
    waiting: list[list[Table]] = [[] for _ in sequence]  # each table where the first of its variables is eliminated
    for table in tables:
        waiting[min(turn[variable] for variable in table.scope)].append(table)
    kept: list[tuple[int, tuple[int, ...], list[int]]] = []  # variable, what its best choice depends on, that choice
    for variable, mine in zip(sequence, waiting, strict=True):
        scope = tuple(sorted({other for table in mine for other in table.scope} - {variable}))
        least, best = _without(variable, scope, mine, choices)
        kept.append((variable, scope, best))
        if scope:
            waiting[min(turn[other] for other in scope)].append(Table(scope, least))
    found: dict[int, int] = {}
    for variable, scope, best in reversed(kept):
        place = 0
        for other in scope:
            place = place * choices[other] + found[other]
        found[variable] = best[place]
    return found


def _without(
    variable: int, scope: tuple[int, ...], tables: Sequence[Table], choices: Mapping[int, int]
) -> tuple[list[float], list[int]]:
    """For each combination of `scope`, the least sum over the variable's choices, and the choice."""
    sums: list[list[float]] | None = None  # by choice of the variable
    for table in tables:
        *steps, mine = _steps(table.scope, (*scope, variable), choices)
        places = [0]
        for other, step in zip(scope, steps, strict=True):
            places = [place + choice * step for place in places for choice in range(choices[other])]
        costs = table.costs
        added = [[costs[place + choice * mine] for place in places] for choice in range(choices[variable])]
        sums = added if sums is None else [list(map(add, one, more)) for one, more in zip(sums, added, strict=True)]
    if sums is None:
        return [0.0], [0]
    ways = list(zip(*sums, strict=True))
    least = list(map(min, ways))
    return least, [way.index(lowest) for way, lowest in zip(ways, least, strict=True)]


def _steps(scope: tuple[int, ...], over: tuple[int, ...], choices: Mapping[int, int]) -> list[int]:
    """By how much the place in a table of `scope` moves with one step of each variable in `over`."""
    moves: dict[int, int] = {}
    step = 1
    for variable in reversed(scope):
        moves[variable] = step
        step *= choices[variable]
    return [moves.get(variable, 0) for variable in over]
