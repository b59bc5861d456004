"""Shapley's shares by themselves; of the members of B in `test_dealing`."""

from __future__ import annotations

import pytest

from convlint.engine.shapley import Stake, shares


@pytest.mark.parametrize(
    ("times", "earned"),
    [
        ([70.0], [30.0]),
        ([90.0, 80.0, 70.0], [10.0, 20.0]),
        ([100.0, 100.0, 60.0], [20.0, 20.0]),
        ([130.0, 100.0, 60.0], [20.0, 20.0]),  # alone it costs: then it is left
        ([120.0, 80.0, 90.0], [0.0, 20.0]),  # and so it is beside another
    ],
)
def test_what_each_adds_on_average(times: list[float], earned: list[float]) -> None:
    """`times` of the sets {A}, {B}, {A, B}; 100 us with none."""
    found = shares(len(earned), 100.0, lambda members: times[members - 1])
    assert [share for share, _ in found] == pytest.approx(earned)


def test_alone_a_fix_earns_what_it_saves_and_never_less_than_nothing() -> None:
    assert [Stake(change).alone_us for change in (-3.0, 0.0, 3.0, None)] == [3.0, 0.0, 0.0, 0.0]


def test_it_pays_with_the_fewest_that_earn_its_share() -> None:
    """C and B do nothing alone; each pays once A is there."""
    times = {1: 100.0, 2: 100.0, 4: 100.0, 3: 40.0, 5: 40.0, 6: 100.0, 7: 34.0}
    found = shares(3, 100.0, times.__getitem__)
    assert [others for _, others in found] == [{1}, {0}, {0}]
    assert sum(share for share, _ in found) == pytest.approx(66.0)


def test_nobody_plays() -> None:
    assert shares(0, 100.0, lambda _: 0.0) == []
