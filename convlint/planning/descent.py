"""One choice of widths for all groups, moved step by step to where it costs less."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from convlint.planning.prices import Prices, added

Value = Callable[[int, int, int], float]  # (layer, C, K) -> what it costs


class Position:
    """Widths, and what every layer costs at them; `penalty` is what each group costs that has another one than today.

    `of_group` are the layers that depend on each group with a choice.
    """

    def __init__(
        self, prices: Prices, candidates: Mapping[int, Sequence[int]], of_group: Mapping[int, Sequence[int]],
        value: Value, penalty: float,
    ) -> None:  # fmt: skip
        self._prices, self._candidates, self._of_group = prices, candidates, of_group
        self._value, self._penalty = value, penalty
        self._layers = sorted({index for layers in of_group.values() for index in layers})
        self.evaluations = 0  # of layers
        self.widths: dict[int, int] = {}
        self._C: dict[int, int] = {}
        self._costs: dict[int, float] = {}

    @property
    def total(self) -> float:
        """What all of it costs."""
        return sum(self._costs.values()) + self._penalty * self._changes(self.widths)

    def _changes(self, widths: Mapping[int, int]) -> int:
        return sum(width != self._candidates[group][0] for group, width in widths.items())

    def go(self, widths: Mapping[int, int]) -> None:
        """To these widths, which name every group."""
        self.widths = dict(widths)
        for index in self._layers:
            C, K = self._prices.sizes(index, widths)
            self._C[index], self._costs[index] = C, self._value(index, C, K)

    def move(self, groups: Sequence[int]) -> None:
        """These groups, which have the same candidates, to the best of them that all can have, all else equal."""
        layers = sorted({index for group in groups for index in self._of_group[group]})
        least = sum(self._costs[index] for index in layers) + self._penalty * self._changes(self.widths)
        best: tuple[dict[int, int], dict[int, int], dict[int, float]] | None = None
        for width in self._candidates[groups[0]]:
            widths = self.widths | dict.fromkeys(groups, width)
            wide = {index: self._C[index] for index in layers}
            for group in groups:
                by = width - self.widths[group]
                for index in self._of_group[group] if by else ():
                    wide[index] += added(by, self._prices.reads[index].get(group, 0))
            self.evaluations += len(wide)
            costs = {index: self._value(index, C, self._prices.K(index, C, widths)) for index, C in wide.items()}
            cost = sum(costs.values()) + self._penalty * self._changes(widths)
            if cost < least:
                least, best = cost, (widths, wide, costs)
        if best is not None:
            self.widths = best[0]
            self._C.update(best[1])
            self._costs.update(best[2])
