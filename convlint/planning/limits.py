"""The widths that make a network fastest while its parameters and FLOPs stay within limits.

A parameter and a FLOP get a price, as high as it takes for the search to keep the limits (Lagrange's multiplier, by
bisection); what that leaves unused is then spent group by group, on what saves most for its share. That is not exact:
between two prices there may be widths that no price leads to.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from convlint.engine.shapley import SAME
from convlint.planning.prices import Cost
from convlint.planning.search import FREE, Search, Weights

_DEAREST = 1e6  # times the network's time, for as many parameters as it has
_BISECTIONS = 8
_PASSES = 3  # over all groups, to spend what is left
_MOST_PAIRS = 5000  # of widths of two groups, tried together
_LEAST_SHARE = 1e-12


class Limits:
    """How many parameters and FLOPs there may be, as shares more than today; None: any number."""

    def __init__(self, search: Search, parameters: float | None, flops: float | None) -> None:
        self._search = search
        self._now = search.cost({})
        self._most = [
            None if share is None else now * (1 + share)
            for share, now in ((parameters, self._now.parameters), (flops, self._now.flops))
        ]

    def hold(self, cost: Cost) -> bool:
        """Whether this is within both."""
        pairs = zip(self._most, (cost.parameters, cost.flops), strict=True)
        return all(most is None or size <= most for most, size in pairs)

    def best(self) -> dict[int, int]:
        """The groups that get another width, and which."""
        search = self._search
        widths = search.best()
        if self.hold(search.cost(widths)):
            return widths
        low, high, within, beyond = 0.0, 1.0, dict[int, int](), widths
        while high < _DEAREST and not self.hold(search.cost(tried := search.best(self._weights(high)))):
            low, high, beyond = high, 10 * high, tried
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            tried = search.best(self._weights(middle))
            if self.hold(search.cost(tried)):
                high, within = middle, tried
            else:
                low, beyond = middle, tried
        ends = [self._spent(within), self._spent(self._cut(beyond)), self._spent({})]
        return min(ends, key=lambda end: search.cost(end).time_us)

    def _cut(self, widths: Mapping[int, int]) -> dict[int, int]:
        """With groups put back to what they are, those first that save least for their share, until the limits hold."""
        now = dict(widths)
        cost = self._search.cost(now)
        while now and not self.hold(cost):
            back = {group: self._moved(cost, now, {group: self._search.candidates[group][0]}) for group in now}
            group = min(back, key=lambda one: (back[one].time_us - cost.time_us) / self._less(cost, back[one]))
            cost = back[group]
            del now[group]
        return now

    def _less(self, before: Cost, after: Cost) -> float:
        return max(self._share(before) - self._share(after), _LEAST_SHARE)

    def _weights(self, price: float) -> Weights:
        us = price * self._now.time_us
        parameters, flops = self._most
        return Weights(
            FREE.parameter if parameters is None else us / max(1, self._now.parameters),
            FREE.flop if flops is None else us / max(1, self._now.flops),
        )

    def _spent(self, widths: Mapping[int, int]) -> dict[int, int]:
        """With what is left spent, on what saves most for its share of the limits first."""
        candidates, now = self._search.candidates, dict(widths)
        moves = self._moves()
        for _ in range(_PASSES):
            cost = self._search.cost(now)
            paying = []
            for number, move in enumerate(moves):
                moved = self._moved(cost, now, move)
                if moved.time_us < cost.time_us * (1 - SAME):
                    paying.append(((cost.time_us - moved.time_us) / self._less(moved, cost), number))
            is_moved = False
            for _, number in sorted(paying, reverse=True):
                moved = self._moved(cost, now, moves[number])
                if moved.time_us < cost.time_us * (1 - SAME) and self.hold(moved):
                    now, cost, is_moved = now | moves[number], moved, True
            if not is_moved:
                break
        return {group: width for group, width in now.items() if width != candidates[group][0]}

    def _moves(self) -> list[dict[int, int]]:
        """Every group to every width; and every two that share a layer, where those are not too many."""
        candidates = self._search.candidates
        single = [{group: width} for group, widths in candidates.items() for width in widths]
        pairs = {pair for scope in self._search.scopes.values() for pair in combinations(scope, 2)}
        if sum(len(candidates[one]) * len(candidates[other]) for one, other in pairs) > _MOST_PAIRS:
            return single
        return single + [
            {one: width, other: wide} for one, other in sorted(pairs)
            for width in candidates[one] for wide in candidates[other]
        ]  # fmt: skip

    def _moved(self, cost: Cost, widths: Mapping[int, int], move: Mapping[int, int]) -> Cost:
        """Of all layers after a move; `cost` is that of `widths`."""
        layers = {index for group in move for index in self._search.of_group[group]}
        old, new = (self._search.cost(one, layers) for one in (widths, {**widths, **move}))
        return Cost(
            cost.time_us - old.time_us + new.time_us,
            cost.parameters - old.parameters + new.parameters,
            cost.flops - old.flops + new.flops,
        )

    def _share(self, cost: Cost) -> float:
        return cost.parameters / max(1, self._now.parameters) + cost.flops / max(1, self._now.flops)
