"""The widths that make a network fastest in one setting: exact on chains and small graphs, else a descent.

Each group of channels is a variable, each layer a table of its costs over the groups that it reads and writes. Where
elimination needs no table larger than `MOST_ENTRIES`, which holds for chains, residual networks and U-Nets, the result
is the best that there is. Where every layer reads what all before it wrote (DenseNet), the groups with most neighbours
are held while the rest is solved exactly, and then moved one by one and class by class, until nothing gets faster:
from several starts, since such a descent ends wherever no single move helps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from convlint.planning.descent import Position, Value
from convlint.planning.elimination import Table, eliminate, order
from convlint.planning.prices import Cost, Prices, added

MOST_ENTRIES = 16384  # of one table; and where that is not enough, of
HELD_ENTRIES = 256  # those beside what is held
STARTS = (8, 32, 64)  # of what all widths are multiples where a descent starts, as far as there are such
MOST_SWEEPS = 4  # of a descent, and
MOST_EVALUATIONS = 100_000  # of layers, after which no held group moves any more
_PENALTY = 1e-9  # of all layers' time, for a changed group: of equals, what changes least


class Weights(NamedTuple):
    """What a parameter and a FLOP cost, in us: a search within limits makes them dear."""

    parameter: float = 0.0
    flop: float = 0.0


FREE = Weights()


class Search:
    """The search over `candidates`, the widths of each group, for `layers`, those whose time is predicted."""

    def __init__(
        self, prices: Prices, candidates: Mapping[int, Sequence[int]], layers: Iterable[int],
    ) -> None:  # fmt: skip
        self.prices, self.candidates = prices, candidates
        written = prices.channels.written
        self.scopes = {
            index: tuple(sorted(candidates.keys() & {*prices.reads[index], written.get(index, -1)})) for index in layers
        }
        self.of_group: dict[int, list[int]] = {group: [] for group in candidates}
        for index, scope in self.scopes.items():
            for group in scope:
                self.of_group[group].append(index)
        self._counts = {group: len(widths) for group, widths in candidates.items()}
        self._sequence, held = order(self._counts, self.scopes.values(), MOST_ENTRIES)
        if held:
            self._sequence, held = order(self._counts, self.scopes.values(), HELD_ENTRIES)
        self._held = dict.fromkeys(held)  # in order

    @property
    def is_exact(self) -> bool:
        """Whether nothing is held on the way."""
        return not self._held

    def cost(self, widths: Mapping[int, int], layers: Iterable[int] | None = None) -> Cost:
        """Of these layers, or of all, at these widths."""
        costs = [
            self.prices.cost(index, *self.prices.sizes(index, widths))
            for index in (self.scopes if layers is None else layers)
        ]
        return Cost(*map(sum, zip(*costs, strict=True))) if costs else Cost(0.0, 0, 0)

    def best(self, weights: Weights = FREE) -> dict[int, int]:
        """The groups that get another width, and which, so that the whole costs least."""
        penalty = _PENALTY * self.cost({}).time_us
        present = {group: widths[0] for group, widths in self.candidates.items()}
        if self._held:
            ends = [self._descended(start, weights, penalty) for start in self._starts()]
            found = min(ends, key=lambda end: end.total).widths
        else:
            found = self._solved(present, weights, penalty)
        return {group: width for group, width in found.items() if width != present[group]}

    def glimpse_us(self) -> float:
        """The least time of those from which a descent starts."""
        return min(self.cost(start).time_us for start in self._starts())

    def _starts(self) -> list[dict[int, int]]:
        present = {group: widths[0] for group, widths in self.candidates.items()}
        return [present, *map(self._aligned, STARTS)]

    def _aligned(self, step: int) -> dict[int, int]:
        return {
            group: next((width for width in widths if width % step == 0), widths[0])
            for group, widths in self.candidates.items()
        }

    def _value(self, weights: Weights) -> Value:
        def value(index: int, C: int, K: int) -> float:
            cost = self.prices.cost(index, C, K)
            return cost.time_us + weights.parameter * cost.parameters + weights.flop * cost.flops

        return value

    def _solved(self, widths: Mapping[int, int], weights: Weights, penalty: float) -> dict[int, int]:
        """The best widths of all groups beside those that are held, which stay at `widths`."""
        value = self._value(weights)
        tables = [Table((group,), [0.0] + [penalty] * (self._counts[group] - 1)) for group in self._sequence]
        tables += [self._table(index, widths, value) for index in self.scopes]
        found = eliminate(self._counts, [table for table in tables if table.scope], self._sequence)
        return {**widths, **{group: self.candidates[group][choice] for group, choice in found.items()}}

    def _table(self, index: int, widths: Mapping[int, int], value: Value) -> Table:
        scope = tuple(group for group in self.scopes[index] if group not in self._held)
        if not scope:
            return Table((), ())
        prices, written = self.prices, self.prices.channels.written.get(index)
        reads = prices.reads[index]
        C, _ = prices.sizes(index, {group: width for group, width in widths.items() if group in self._held})
        moves = [
            [added(width - self.candidates[group][0], reads.get(group, 0)) for width in self.candidates[group]]
            for group in scope
        ]
        costs = []
        for choices in product(*(range(self._counts[group]) for group in scope)):
            wide = C + sum(moves[at][choice] for at, choice in enumerate(choices))
            own = widths
            if written is not None and written in scope:
                own = {written: self.candidates[written][choices[scope.index(written)]]}
            costs.append(value(index, wide, prices.K(index, wide, own)))
        return Table(scope, costs)

    def _descended(self, start: Mapping[int, int], weights: Weights, penalty: float) -> Position:
        """Where moves of what is held, with the rest solved in between, get no further."""
        value = self._value(weights)
        now = Position(self.prices, self.candidates, self.of_group, value, penalty)
        now.go(self._solved(start, weights, penalty))
        for _ in range(MOST_SWEEPS):
            before = now.total
            for groups in (*_alike(self.candidates, self._held), *((group,) for group in self._held)):
                if now.evaluations < MOST_EVALUATIONS:
                    now.move(groups)
            now.go(self._solved(now.widths, weights, penalty))
            if not now.total < before:
                break
        return now


def _alike(candidates: Mapping[int, Sequence[int]], held: Iterable[int]) -> list[tuple[int, ...]]:
    """Held groups of the same candidates, which move together."""
    classes: dict[tuple[int, ...], list[int]] = {}
    for group in held:
        classes.setdefault(tuple(candidates[group]), []).append(group)
    return [tuple(groups) for groups in classes.values() if len(groups) > 1]
