"""What each member of B earns: Shapley's shares of what all of them save together.

The players are each setting of B, and its sizes and forms together as one; that one's share is divided in proportion to
what B loses without each of them. Shares are never negative, and add up to the time now minus the time after.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

from convlint.engine.levers import Advice, Key, Kind, Lever, Levers
from convlint.engine.optimum import Choices, Optimum, Search
from convlint.engine.shapley import Stake, shares
from convlint.engine.timing import SAME, Setting


class Deal(NamedTuple):
    """The stakes of B's members, and what all layers take before and after; in us."""

    settings: Mapping[Kind, Stake]
    levers: Mapping[Key, Stake]
    time_us: float
    after_us: float


def dealt(best: Optimum, search: Search, advice: Advice, codes: Mapping[Kind, str]) -> Deal:
    """The shares in `best`; `codes` are the rules that speak for its settings."""
    return _Dealing(best, search, advice, codes).deal()


class _Dealing:
    def __init__(self, best: Optimum, search: Search, advice: Advice, codes: Mapping[Kind, str]) -> None:
        self.best, self.search, self.advice, self.codes = best, search, advice, codes
        self.kinds = list(best.choices)
        self.touching: dict[int, dict[Key, Lever]] = {}
        for key, lever in best.levers.items():
            for index in lever.layers:
                self.touching.setdefault(index, {})[key] = lever
        self.subsets = [
            {kind: best.choices[kind] for kind in some}
            for size in range(len(self.kinds) + 1)
            for some in combinations(self.kinds, size)
        ]

    def deal(self) -> Deal:
        best, search, kinds = self.best, self.search, self.kinds
        now_us = search.total_us({}, {})
        count = len(kinds) + bool(best.levers)

        def time_of(members: int) -> float:
            way = {kind: best.choices[kind] for i, kind in enumerate(kinds) if members >> i & 1}
            return search.total_us(way, best.levers if members >> len(kinds) & 1 else {})

        found = shares(count, now_us, time_of)
        of_sizes = tuple(sorted({lever.code for lever in best.levers.values()}))
        settings = {}
        for (share, others), kind in zip(found, kinds, strict=False):
            codes = {self.codes[kinds[i]] for i in others if i < len(kinds)}
            codes.update(of_sizes if len(kinds) in others else ())
            change_us = search.total_us({kind: best.choices[kind]}, {}) - now_us
            settings[kind] = Stake(change_us, True, share, tuple(sorted(codes - {self.codes[kind]})))
        levers = self._divided(found[-1][0]) if best.levers else {}
        return Deal(settings, levers, now_us, search.total_us(best.choices, best.levers))

    def _divided(self, block_us: float) -> dict[Key, Stake]:
        """The share of all sizes, dealt out to each."""
        best = self.best
        losses = {
            key: max(0.0, self._without(best.setting, lever, self._near(lever))) for key, lever in best.levers.items()
        }
        whole = sum(losses.values())
        now, found = self.search.timing.now, {}
        for key, lever in best.levers.items():
            share = block_us * losses[key] / whole if whole > 0 else block_us / len(losses)
            alone_us = self._without(now, lever, {})
            pays_with: tuple[str, ...] = ()
            if max(0.0, alone_us) < share / 2:
                pays_with = self._company(lever, share)
            found[key] = Stake(-alone_us, True, share, pays_with)
        return found

    def _near(self, lever: Lever) -> Levers:
        """The other sizes of B that change layers of this one."""
        near = {key: other for index in lever.layers for key, other in self.touching[index].items()}
        return {key: other for key, other in near.items() if key != lever.key}

    def _without(self, setting: Setting, lever: Lever, beside: Levers) -> float:
        """What its layers take longer without it, `beside` others."""
        return self._us(setting, lever, beside) - self._us(setting, lever, {**beside, lever.key: lever})

    def _us(self, setting: Setting, lever: Lever, on: Levers) -> float:
        total = 0.0
        for index in lever.layers:
            here = {key: other for key, other in self.touching[index].items() if key in on}
            changes = self.advice.changes(here, (index,)).get(index, {}) if here else {}
            total += self.search.timing.time_us(setting, index, changes) or 0.0
        return total

    def _company(self, lever: Lever, share: float) -> tuple[str, ...]:
        """The rules of the fewest others with which it earns its share; of all of them, where that takes all."""
        near = self._near(lever)
        for way, others in self._companies(near):
            if self._without(self.search.setting(way), lever, others) >= share * (1 - SAME):
                return self._named(way, others)
        return self._named(self.best.choices, near)

    def _companies(self, near: Levers) -> Iterator[tuple[Choices, Levers]]:
        for way in self.subsets:
            if way:
                yield way, {}
        for way in self.subsets if near else ():
            for key, other in near.items():
                yield way, {key: other}
            yield way, near

    def _named(self, way: Choices, others: Levers) -> tuple[str, ...]:
        codes = {self.codes[kind] for kind in way} | {other.code for other in others.values()}
        return tuple(sorted(codes))
