"""Who wishes for nothing keeps nothing as it is."""

from __future__ import annotations

from convlint.planning.wishes import LOTS, Wishes


def test_nothing_is_kept_and_nothing_limited_unless_asked() -> None:
    wishes = Wishes()
    assert not wishes.keeps_results
    assert wishes.fixed.isdisjoint(LOTS)
    assert wishes.max_parameters is wishes.max_flops is wishes.target_us is None
