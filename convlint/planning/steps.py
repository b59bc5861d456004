"""In which order levers are pulled: what saves most for each change comes first, what only pays together is one step.

Every step is the one that saves most per lever as the network then stands. Where no lever saves anything alone, pairs
of neighbours that do are steps; where none does, all that are connected; else all that are left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import combinations

from convlint.planning.subsets import Subsets

LEAST_GAIN = 1e-4  # of the network's time; what saves less is no step
PAIRS_EACH = 4  # of neighbours that are looked at for each lever, on average

Unit = tuple[int, ...]  # levers that are pulled together


def ordered(subsets: Subsets, levers: Iterable[int]) -> list[Unit]:
    """The steps, in order; levers that shorten nothing are in none."""
    left = [(number,) for number in levers]
    units: list[Unit] = []
    pulled: set[int] = set()
    while True:
        taken = _greedy(subsets, left, pulled)
        together = _together(subsets, [unit[0] for unit in left if unit not in set(taken)], pulled)
        units += [*taken, *together]
        gone = {number for unit in (*taken, *together) for number in unit}
        left = [unit for unit in left if unit[0] not in gone]
        if not together:
            again: set[int] = set()
            reordered = _greedy(subsets, units, again)
            # In another order some may pay no more, though together they do: then each stays where it was found to pay.
            lost_us = subsets.gpu_us(again) - subsets.gpu_us(pulled)
            return reordered if lost_us <= _least(subsets) else units


def _greedy(subsets: Subsets, units: Sequence[Unit], pulled: set[int]) -> list[Unit]:
    """Units by what they save per lever, from `pulled` on, as long as any saves something; they are pulled.

    What a unit saves is worked out anew when it is about to be taken, and for all once none seems to pay.
    """
    gpu_us, least = subsets.gpu_us(pulled), _least(subsets)
    taken: list[Unit] = []
    waiting: list[tuple[float, Unit]] = [(float("-inf"), unit) for unit in units]  # by minus what each lever saves
    is_fresh = False
    while waiting:
        before, unit = heappop(waiting)
        after_us, saved = _with(subsets, unit, pulled, gpu_us)
        each = -saved / len(unit)
        if before != each and waiting and (each, unit) > waiting[0]:
            heappush(waiting, (each, unit))
        elif saved > least:
            is_fresh = False
            gpu_us = after_us
            pulled.update(unit)
            taken.append(unit)
        elif is_fresh:
            break
        else:
            every = [unit, *(one for _, one in waiting)]
            waiting = [(-_with(subsets, one, pulled, gpu_us)[1] / len(one), one) for one in every]
            heapify(waiting)
            is_fresh = True
    return taken


def _least(subsets: Subsets) -> float:
    return LEAST_GAIN * subsets.step_us(subsets.gpu_us(frozenset()), frozenset())


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
    """Sets of these levers that save something, though none of them does alone; they are pulled.

    Pairs of neighbours, as many as do; else the connected ones, or all of them, that do.
    """
    near = {number: frozenset(subsets.touched([number])) for number in left}
    for sets in (_pairs(left, near), _connected(left, near), iter([tuple(left)])):
        gpu_us, taken = subsets.gpu_us(pulled), list[Unit]()
        tried = [(-_with(subsets, unit, pulled, gpu_us)[1] / len(unit), unit) for unit in sets if unit]
        for _, unit in sorted(tried):
            if pulled.isdisjoint(unit):
                after_us, saved = _with(subsets, unit, pulled, gpu_us)
                if saved > _least(subsets):
                    gpu_us = after_us
                    pulled.update(unit)
                    taken.append(unit)
        if taken:
            return taken
    return []


def _pairs(left: Sequence[int], near: Mapping[int, frozenset[int]]) -> Iterator[Unit]:
    """Two that change a layer in common, those first that do so in a layer which few change."""
    found: dict[Unit, None] = {}
    for numbers in sorted(_by_layer(left, near).values(), key=len):
        for pair in combinations(numbers, 2):
            if len(found) >= PAIRS_EACH * len(left):
                return iter(found)
            found[pair] = None
    return iter(found)


def _by_layer(left: Sequence[int], near: Mapping[int, frozenset[int]]) -> dict[int, list[int]]:
    of_layer: dict[int, list[int]] = {}
    for number in left:
        for index in near[number]:
            of_layer.setdefault(index, []).append(number)
    return of_layer


def _connected(left: Sequence[int], near: Mapping[int, frozenset[int]]) -> Iterator[Unit]:
    """Levers that change a layer in common, directly or through others."""
    waiting, of_layer = set(left), _by_layer(left, near)
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
