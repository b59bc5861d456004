"""The plot in characters."""

from convlint.reporters.ink import painter
from convlint.reporters.sweeps import plot


def test_the_plot_starts_at_zero_and_keeps_high_and_low_in_their_place():
    drawn = plot([("a", [(1.0, 10.0), (2.0, 0.0)])], (30, 10), paint=painter(False), dots=False)
    assert drawn[0].startswith("10 +o")
    assert drawn[7].rstrip().endswith("o")
    assert drawn[7].startswith(" 0 +")
    assert plot([("a", [])], (30, 10), paint=painter(False), dots=True) == []
