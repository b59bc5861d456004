"""Shapley's shares by themselves; with the search for the best fixes, in `test_game`."""

from __future__ import annotations

import pytest

from convlint.engine.shapley import Stake, shares


@pytest.mark.parametrize(
    ("times", "earned"),
    [
        ([70.0], [30.0]),
        ([90.0, 80.0, 70.0], [10.0, 20.0]),
        ([100.0, 100.0, 60.0], [20.0, 20.0]),
        ([None, None, 60.0], [20.0, 20.0]),  # neither goes without the other
    ],
)
def test_what_each_adds_on_average(times: list[float | None], earned: list[float]) -> None:
    """`times` of the sets {A}, {B}, {A, B}; 100 us with none."""
    found = shares(["A", "B"][: len(earned)], 100.0, lambda members: times[members - 1])
    assert [stake.lost_us for stake in found] == pytest.approx(earned)
    assert all(stake.advised for stake in found)


def test_alone_a_fix_earns_what_it_saves_and_never_less_than_nothing() -> None:
    assert [Stake(change).alone_us for change in (-3.0, 0.0, 3.0, None)] == [3.0, 0.0, 0.0, 0.0]


def test_it_pays_with_the_fewest_that_earn_its_share() -> None:
    """C and B do nothing alone; each pays once A is there."""
    times = {1: 100.0, 2: 100.0, 4: 100.0, 3: 40.0, 5: 40.0, 6: 100.0, 7: 34.0}
    found = shares(["A", "B", "C"], 100.0, times.__getitem__)
    assert [stake.pays_with for stake in found] == [("B",), ("A",), ("A",)]
    assert sum(stake.lost_us for stake in found) == pytest.approx(66.0)
