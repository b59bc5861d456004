"""Widths moved step by step: what a position says it costs is what it costs."""

from __future__ import annotations

from random import Random

import pytest
from planned import searched
from random_networks import tangle

from convlint.planning.descent import Position


@pytest.mark.parametrize("seed", range(8))
def test_moves_keep_the_books(seed: int) -> None:
    search, random = searched(tangle(seed, 5)), Random(seed)
    prices = search.prices
    now = Position(prices, search.candidates, search.of_group, lambda i, C, K: prices.cost(i, C, K).time_us, 1.0)
    now.go({group: random.choice(widths) for group, widths in search.candidates.items()})
    for group in random.sample(sorted(search.candidates), len(search.candidates)):
        before, widths = now.total, dict(now.widths)
        now.move([group])
        assert now.total <= before
        assert {one for one, width in now.widths.items() if width != widths[one]} <= {group}
        layers = {index for own in search.of_group.values() for index in own}
        changes = sum(width != search.candidates[one][0] for one, width in now.widths.items())
        assert now.total == pytest.approx(search.cost(now.widths, layers).time_us + changes)
        for width in search.candidates[group]:  # none of its widths is better
            other = search.cost(now.widths | {group: width}, layers).time_us
            rest = changes - (now.widths[group] != widths_now(search.candidates, group))
            assert now.total <= other + rest + (width != widths_now(search.candidates, group)) + 1e-6
    assert now.evaluations > 0


def widths_now(candidates: object, group: int) -> int:
    return candidates[group][0]  # type: ignore[index,no-any-return]


def test_groups_move_together() -> None:
    search = searched(tangle(3, 5))
    prices = search.prices
    now = Position(prices, search.candidates, search.of_group, lambda _i, C, K: float(C % 64 + K % 64), 0.0)
    now.go({group: widths[0] for group, widths in search.candidates.items()})
    alike = [group for group, widths in search.candidates.items() if widths == next(iter(search.candidates.values()))]
    now.move(alike)
    assert len({now.widths[group] for group in alike}) == 1
