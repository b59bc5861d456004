"""Which groups of channels are widened: each where that saves time over all of its layers together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from convlint.engine.coupling import Coupling
from convlint.engine.hits import Hit
from convlint.engine.players import Changes, Key, key_of
from convlint.engine.pricing import Pricer
from convlint.engine.shapley import SAME, Stake
from convlint.report import Scalar

MOST_ROUNDS = 4  # in which decisions that hang together are looked at again
MOST_WORK = 300_000  # parts of the axes that one round looks at: beyond, groups that hang together go together

Widths = Mapping[int, int]  # of groups, by their number


class Lever(NamedTuple):
    """The width that a group may get, and the hits that ask for it: those that their layers' games have taken.

    Where none is, a wider group may still pay in layers of which no rule speaks: then all that played.
    """

    width: int
    hits: list[Hit]


class Widening:
    """The layers of a network as groups have new widths; of a layer's own advice, what then pays is taken.

    `sided` are the hits on each group, `own` by layer those that are advised and no group's.
    """

    def __init__(
        self, coupling: Coupling, pricer: Pricer, sided: Mapping[int, list[Hit]], own: Mapping[int, list[Hit]],
        stakes: Mapping[int, Stake],
    ) -> None:  # fmt: skip
        self._coupling, self._pricer = coupling, pricer
        self._own, self._stakes = own, stakes
        self._kept: dict[tuple[int, Key], list[Hit]] = {}
        self._times: dict[tuple[int, Key], float | None] = {}
        self._taken: dict[int, dict[str, Scalar]] = {}  # by layer: of its C and K, what its own game has taken
        for hits in sided.values():
            for hit in hits:
                if (stake := stakes.get(id(hit))) is not None and stake.advised:
                    self._taken.setdefault(hit.indices[0], {}).update(hit.sets[0])
        self.levers = {number: self._lever(number, hits, stakes) for number, hits in sided.items()}

    def _lever(self, number: int, hits: list[Hit], stakes: Mapping[int, Stake]) -> Lever:
        playing = [(hit, stakes[id(hit)]) for hit in hits if id(hit) in stakes]
        taken = [hit for hit, stake in playing if stake.advised]
        now = self._coupling.group(number).width
        wanted = taken or [hit for hit, _ in playing if hit.flaw.width > now]
        width = max(hit.flaw.width for hit in wanted or hits)
        return Lever(self._coupling.width(number, width), wanted)

    def chosen(self) -> dict[int, int]:
        """The widths of those that are widened; groups that have no layer in common are decided on their own."""
        every = {number: lever.width for number, lever in self.levers.items() if lever.hits}
        chosen: dict[int, int] = {}
        for members in self._components(every):
            widths = {number: every[number] for number in members}
            if not all(map(self._all_agree, members)):
                layers = sorted({index for number in members for index in self.layers(number)})
                starts: tuple[dict[int, int], dict[int, int]] = (widths, {})
                parts = self._coupling.channels.parts
                work = sum(len(parts.get(index, ())) + 1 for number in members for index in self.layers(number))
                ends = [self._descended(start, widths) for start in starts] if work <= MOST_WORK else starts
                widths = min(ends, key=lambda end: self._time(layers, end))
            chosen |= widths
        return {number: width for number, width in every.items() if number in chosen}

    def _components(self, numbers: Iterable[int]) -> list[list[int]]:
        """Groups that hang together by their layers."""
        parent: dict[int, int] = {}  # of layers

        def root(index: int) -> int:
            while parent.setdefault(index, index) != index:
                parent[index] = index = parent[parent[index]]
            return index

        numbers = list(numbers)
        for number in numbers:
            first, *others = self.layers(number)
            for index in others:
                parent[root(index)] = root(first)
        found: dict[int, list[int]] = {}
        for number in numbers:
            found.setdefault(root(self.layers(number)[0]), []).append(number)
        return list(found.values())

    def _descended(self, start: Mapping[int, int], every: Mapping[int, int]) -> dict[int, int]:
        """From `start` on or off one by one, until nothing is gained by changing any."""
        widths, doubtful = dict(start), list(every)
        for _ in range(MOST_ROUNDS):
            changed: set[int] = set()
            for number in doubtful:
                layers = self.layers(number)
                was_on = widths.pop(number, None) is not None
                without_us = self._time(layers, widths)
                widths[number] = every[number]
                saves = self._time(layers, widths) < without_us * (1 - SAME)
                if not saves:
                    del widths[number]
                if saves != was_on:
                    changed.update(layers)
            doubtful = [number for number in every if changed.intersection(self.layers(number))]
            if not doubtful:
                break
        return widths

    def layers(self, number: int) -> tuple[int, ...]:
        """The layers that change with a group."""
        return self._coupling.group(number).layers

    def _all_agree(self, number: int) -> bool:
        lever = self.levers[number]
        asked = {
            hit.indices[0]
            for hit in lever.hits
            if hit.flaw.width == lever.width and not self._is_part(hit) and self._stakes[id(hit)].advised
        }
        return asked == set(self.layers(number))

    def _is_part(self, hit: Hit) -> bool:
        return self._coupling.group_of(hit.indices[0], hit.flaw.side) != hit.flaw.group

    def _time(self, layers: Iterable[int], widths: Widths) -> float:
        """Of all of them, in us; one whose time cannot be predicted speaks neither for a width nor against it."""
        return sum(self.time_us(index, self.after(index, widths)) or 0.0 for index in layers)

    def time_us(self, index: int, changes: Changes) -> float | None:
        """Of a layer after `changes`, in us; None where it is not predictable."""
        estimate = self._pricer.estimates[index]
        if estimate is None:
            return None
        if not changes:
            return estimate.time_us
        key = index, key_of(changes)
        if key not in self._times:
            self._times[key] = self._pricer.time_after(index, changes)
        return self._times[key]

    def after(self, index: int, widths: Widths) -> Changes:
        """All that changes in a layer once groups have these widths."""
        own = joined_changes(hit.sets[0] for hit in self.kept(index, widths))
        return {**own, **self._of_groups(index, widths)}

    def _of_groups(self, index: int, widths: Widths) -> Changes:
        return self._coupling.channels.changes_of(index, self._coupling.layers[index], widths)

    def is_as_its_game(self, index: int, widths: Widths) -> bool:
        """Whether these widths are in a layer what its own game has taken."""
        return self._of_groups(index, widths) == self._taken.get(index, {})

    def kept(self, index: int, widths: Widths) -> list[Hit]:
        """Of a layer's own advice, what is taken beside these widths: all, unless they are not what its game took."""
        own = self._own.get(index, [])
        if not own or self.is_as_its_game(index, widths):
            return own
        sizes = self._of_groups(index, widths)
        key = index, key_of(sizes)
        if key not in self._kept:
            every = [
                [hit for number, hit in enumerate(own) if members >> number & 1] for members in range(1 << len(own))
            ]
            times = [self.time_us(index, {**joined_changes(hit.sets[0] for hit in some), **sizes}) for some in every]
            known = [(time, -len(some), some) for time, some in zip(times, every, strict=True) if time is not None]
            self._kept[key] = min(known, key=lambda entry: entry[:2])[2] if known else own
        return self._kept[key]

    def change_us(self, number: int, width: int) -> float | None:
        """What a width alone changes over all the layers of a group, in us; None where that cannot be predicted."""
        layers = self.layers(number)
        sets = self._coupling.sets(layers, {number: width}, number)
        changes = [self._pricer.change_us(index, each) for index, each in zip(layers, sets, strict=True)]
        known = [change for change in changes if change is not None]
        return sum(known) if len(known) == len(changes) else None


def joined_changes(parts: Iterable[Changes]) -> Changes:
    """All of them at once."""
    changes: dict[str, Scalar] = {}
    for part in parts:
        changes |= part
    return changes
