"""The plot in characters."""

import pytest
from convolutions import conv

from convlint.reporters.ink import painter
from convlint.reporters.sweeps import fixed, plot


def test_the_plot_starts_at_zero_and_keeps_high_and_low_in_their_place():
    drawn = plot([("a", [(1.0, 10.0), (2.0, 0.0)])], (30, 10), paint=painter(False), dots=False)
    assert drawn[0].startswith("10 +o")
    assert drawn[7].rstrip().endswith("o")
    assert drawn[7].startswith(" 0 +")
    assert plot([("a", [])], (30, 10), paint=painter(False), dots=True) == []


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({}, "N=256 C=64 H=56 W=56 R=3 S=3 pad=1"),
        ({"U": 2, "V": 2, "groups": 2}, "N=256 C=64 H=56 W=56 R=3 S=3 stride=2 pad=1 groups=2"),
        ({"pad": (0, 1), "U": 1, "V": 2}, "N=256 C=64 H=56 W=56 R=3 S=3 stride=1,2 pad=0,1"),
        ({"dims": 1, "H": 1, "R": 1, "V": 2}, "N=256 C=64 W=56 S=3 stride=2 pad=1"),
        (
            {"dims": 3, "D": 16, "T": 3, "U": 2, "V": 2, "PadD": 1, "PadD_end": 1, "DilD": 2},
            "N=256 C=64 D=16 H=56 W=56 T=3 R=3 S=3 stride=1,2,2 pad=1 dilation=2,1,1",
        ),
        (
            {"dims": 3, "D": 16, "T": 3, "R": 1, "S": 1, "PadD": 1},
            "N=256 C=64 D=16 H=56 W=56 T=3 R=1 S=1 pad=1,0,0,0,0,0",
        ),
    ],
)
def test_what_a_sweep_leaves_as_it_is_has_the_axes_of_its_layer(changes, shown):
    assert fixed(conv(**changes), "K") == shown
