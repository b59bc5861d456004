"""Widths within limits of parameters and FLOPs."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from planned import searched
from random_networks import chain, tangle
from wirings import resnet50

from convlint.planning.limits import Limits

BAD = (60, 124, 250, 500)


@pytest.mark.parametrize("share", [0.0, 0.002, 0.005, 0.01, 0.05])
@pytest.mark.parametrize("what", ["parameters", "flops"])
def test_limits_hold(share: float, what: str) -> None:
    search = searched(resnet50(BAD))
    limits = Limits(search, share if what == "parameters" else None, share if what == "flops" else None)
    now, after = search.cost({}), search.cost(limits.best())
    assert getattr(after, what) <= getattr(now, what) * (1 + share)
    assert limits.hold(after)
    assert after.time_us < now.time_us or share == 0.0


def test_more_room_is_never_slower_by_much() -> None:
    search = searched(resnet50(BAD))
    times = [search.cost(Limits(search, share, None).best()).time_us for share in (0.0, 0.003, 0.006, 0.012, 0.1)]
    assert all(more <= 1.01 * less for less, more in pairwise(times))
    assert times[-1] == search.cost(search.best()).time_us


def test_wide_limits_leave_the_best() -> None:
    search = searched(resnet50(BAD))
    assert Limits(search, 1.0, 1.0).best() == search.best()
    assert Limits(search, None, None).best() == search.best()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_within_limits_it_is_near_what_brute_force_finds(seed: int) -> None:
    search = searched((chain if seed % 2 else tangle)(seed, 4))
    now = search.cost({})
    share = 0.5 * (search.cost(search.best()).parameters / now.parameters - 1)
    limits = Limits(search, share, None)
    costs = [
        search.cost(dict(zip(search.candidates, widths, strict=True)))
        for widths in product(*search.candidates.values())
    ]
    best = min(cost.time_us for cost in costs if limits.hold(cost))
    assert search.cost(limits.best()).time_us <= 1.02 * best
