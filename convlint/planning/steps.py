"""In which order levers are pulled: what saves most for each change comes first, what only pays together is one step.

Every step is the one that saves most per lever as the network then stands: a lever, or two neighbours, which are looked
at together from the start, since C and K of one layer often pay only together. Of two that are taken together, one that
pays alone is a step of its own. Where none of these saves anything, all that are connected are one step; else all that
are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from heapq import heapify, heappop, heappush
from itertools import combinations

from convlint.planning.subsets import Subsets

LEAST_GAIN = 1e-3  # of the network's time; what saves less is no step
PAIRS_EACH = 4  # of neighbours that are looked at for each lever, on average
MOST_LAYERS = (
    32  # that a lever changes which has the neighbours of its layers; beyond, it has those that change as many
)
FEW = 8  # of the latter, after each of which all others are looked at anew

Unit = tuple[int, ...]  # levers that are pulled together


def ordered(subsets: Subsets, levers: Iterable[int]) -> list[Unit]:
    """The steps, in order; levers that shorten nothing are in none."""
    left = [(number,) for number in levers]
    units: list[Unit] = []
    pulled: set[int] = set()
    while True:
        taken = _Greedy(subsets, left, pulled).taken()
        gone = {number for unit in taken for number in unit}
        together = _together(subsets, [unit[0] for unit in left if unit[0] not in gone], pulled)
        units += [*taken, *together]
        gone.update(number for unit in together for number in unit)
        left = [unit for unit in left if unit[0] not in gone]
        if not together:
            again: set[int] = set()
            reordered = _Greedy(subsets, units, again).taken()
            # In another order some may pay no more, though together they do: then each stays where it was found to pay.
            lost_us = subsets.gpu_us(again) - subsets.gpu_us(pulled)
            return reordered if lost_us <= _least(subsets, pulled)(()) else units


class _Greedy:
    """Units, and pairs of neighbours among them, by what they save per lever from `pulled` on."""

    def __init__(self, subsets: Subsets, units: Sequence[Unit], pulled: set[int]) -> None:
        self._subsets, self._pulled = subsets, pulled
        self._least = _least(subsets, pulled)
        self._gpu_us = subsets.gpu_us(pulled)
        near = {unit: subsets.touched(unit) for unit in units}
        self._made_of: dict[Unit, tuple[Unit, ...]] = {unit: (unit,) for unit in units}  # levers -> units
        self._made_of |= {(*one, *other): (one, other) for one, other in _pairs(near)}
        self._around = _neighbours(self._made_of, near)
        self._saves: dict[Unit, float] = {}  # what each lever of it saves, as far as that was worked out
        self._waiting: list[tuple[float, int, Unit]] = []  # by that, what saves most and has fewest levers first

    def taken(self) -> list[Unit]:
        """As long as any saves something; they are pulled.

        What a set saves is worked out anew when it is about to be taken, when a neighbour is, and for all once none
        seems to pay.
        """
        found: list[Unit] = []
        is_fresh = self._look_at_all()
        while self._waiting:
            before, _, levers = heappop(self._waiting)
            if self._saves.get(levers) != -before:
                continue
            self._look_at(levers)
            if self._saves[levers] != -before and self._waiting and self._entry(levers) > self._waiting[0]:
                continue
            if self._saves[levers] * len(levers) > self._least(levers):
                found += self._take(levers)
                is_fresh = False
            elif is_fresh:  # others may have less to save to be worth it
                del self._saves[levers]
            else:
                is_fresh = self._look_at_all()
        return found

    def _look_at_all(self) -> bool:
        self._saves = {one: self._saved(one) / len(one) for one in self._made_of if self._pulled.isdisjoint(one)}
        self._waiting = [self._entry(one) for one in self._saves]
        heapify(self._waiting)
        return True

    def _look_at(self, levers: Unit) -> None:
        self._saves[levers] = self._saved(levers) / len(levers)
        heappush(self._waiting, self._entry(levers))

    def _entry(self, levers: Unit) -> tuple[float, int, Unit]:
        return -self._saves[levers], len(levers), levers

    def _take(self, levers: Unit) -> list[Unit]:
        """The steps that these levers make: one for each unit that pays as it is taken, or all in one."""
        steps = self._in_steps(levers)
        around = dict.fromkeys(other for unit in self._made_of[levers] for other in self._around[unit])
        for other in around:
            if not self._pulled.isdisjoint(other):
                self._saves.pop(other, None)
            else:
                self._look_at(other)
        return steps

    def _in_steps(self, levers: Unit) -> list[Unit]:
        first, *others = sorted(self._made_of[levers], key=lambda unit: (-self._saved(unit) / len(unit), unit))
        if not others or self._saved(first) <= self._least(first):
            self._pull(levers)
            return [levers]
        self._pull(first)
        paying = [unit for unit in others if self._saved(unit) > self._least(unit)]
        for unit in paying:
            self._pull(unit)
        return [first, *paying]

    def _saved(self, levers: Unit) -> float:
        return _with(self._subsets, levers, self._pulled, self._gpu_us)[1]

    def _pull(self, levers: Unit) -> None:
        self._gpu_us, _ = _with(self._subsets, levers, self._pulled, self._gpu_us)
        self._pulled.update(levers)


def _least(subsets: Subsets, pulled: Set[int]) -> Callable[[Unit], float]:
    """What a step has to save."""
    of_network = LEAST_GAIN * subsets.step_us(subsets.gpu_us(frozenset()), frozenset())
    return lambda unit: max(of_network, subsets.least_us(unit, pulled))


def _with(subsets: Subsets, unit: Unit, pulled: set[int], gpu_us: float) -> tuple[float, float]:
    """(what the GPU needs once `unit` is pulled too, what that takes off the step); it needs `gpu_us` now."""
    touched = subsets.touched(unit)
    now_us, before_us = subsets.step_us(gpu_us, pulled), subsets.gpu_us(pulled, touched)
    pulled.update(unit)
    after_us = gpu_us + subsets.gpu_us(pulled, touched) - before_us
    saved = now_us - subsets.step_us(after_us, pulled)
    pulled.difference_update(unit)
    return after_us, saved


def _together(subsets: Subsets, left: Sequence[int], pulled: set[int]) -> list[Unit]:
    """Sets of these levers that save something, though neither one nor two neighbours do; they are pulled.

    Connected ones, as many as do; else all of them, if they do.
    """
    near = {number: frozenset(subsets.touched([number])) for number in left}
    least = _least(subsets, pulled)
    for sets in (_connected(left, near), iter([tuple(left)])):
        gpu_us, taken = subsets.gpu_us(pulled), list[Unit]()
        tried = [(-_with(subsets, unit, pulled, gpu_us)[1] / len(unit), unit) for unit in sets if unit]
        for _, unit in sorted(tried):
            after_us, saved = _with(subsets, unit, pulled, gpu_us)
            if saved > least(unit):
                gpu_us = after_us
                pulled.update(unit)
                taken.append(unit)
        if taken:
            return taken
    return []


def _pairs(near: Mapping[Unit, Sequence[int]]) -> Iterator[tuple[Unit, Unit]]:
    """Two that change a layer in common, those first that do so in a layer which few change."""
    of_layer: dict[int, list[Unit]] = {}
    for unit, layers in near.items():
        for index in layers if len(layers) <= MOST_LAYERS else ():
            of_layer.setdefault(index, []).append(unit)
    wide = [unit for unit, layers in near.items() if len(layers) > MOST_LAYERS]
    found: dict[tuple[Unit, Unit], None] = {}
    for mine in sorted([*of_layer.values(), wide], key=len):
        for pair in combinations(mine, 2):
            if len(found) >= PAIRS_EACH * len(near):
                return iter(found)
            found[pair] = None
    return iter(found)


def _neighbours(
    made_of: Mapping[Unit, tuple[Unit, ...]], near: Mapping[Unit, Sequence[int]]
) -> Mapping[Unit, Sequence[Unit]]:
    """For each unit, the sets that it is part of, or that change a layer in common with it."""
    of_layer: dict[int, list[Unit]] = {}
    of_unit: dict[Unit, list[Unit]] = {unit: [] for unit in near}
    for levers, units in made_of.items():
        for unit in units:
            of_unit[unit].append(levers)
            for index in near[unit] if len(near[unit]) <= MOST_LAYERS else ():
                of_layer.setdefault(index, []).append(levers)
    wide = [unit for unit in near if len(near[unit]) > MOST_LAYERS]
    every = list(made_of) if len(wide) <= FEW else []
    return {
        unit: every or of_unit[unit] if len(near[unit]) > MOST_LAYERS
        else [levers for index in near[unit] for levers in of_layer[index]]
        for unit in near
    }  # fmt: skip


def _connected(left: Sequence[int], near: Mapping[int, frozenset[int]]) -> Iterator[Unit]:
    """Levers that change a layer in common, directly or through others."""
    of_layer: dict[int, list[int]] = {}
    for number in left:
        for index in near[number]:
            of_layer.setdefault(index, []).append(number)
    waiting = set(left)
    for first in left:
        found, reached = set(), [first]
        while reached:
            number = reached.pop()
            if number in waiting:
                waiting.remove(number)
                found.add(number)
                reached += [other for index in near[number] for other in of_layer.pop(index, [])]
        if found:
            yield tuple(sorted(found))
