"""What follows from a layer's own fields."""

from __future__ import annotations

from typing import Any

import pytest
from layer_facts import facts

from convlint.facts.unknown import UNKNOWN


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        ("C: 64, K: 96, groups: 4", {"C_group": 16, "K_group": 24, "depthwise": False}),
        ("C: 64, K: 128, groups: 64", {"C_group": 1, "K_group": 2, "depthwise": True}),
        ("K: 128, groups: 64", {"C_group": UNKNOWN, "K_group": 2, "depthwise": False}),
        ("R: 3, S: 5, dilation: [2, 3]", {"extent_R": 5, "extent_S": 13, "extent_T": 1}),
        ("S: 5, dilation: [2, 3]", {"extent_R": UNKNOWN, "extent_S": 13}),
        ("N: 2, C: 3, H: 8, W: 9, K: 4, R: 3, S: 3", {"NPQ": 2 * 6 * 7, "dead_taps": 0}),
        ("C: 3, H: 8, W: 9, K: 4, R: 3, S: 3", {"NPQ": UNKNOWN}),
        # of 3x3 taps 18 apart on 16x16, all but the middle one read padding
        ("H: 16, W: 16, R: 3, S: 3, dilation: 18, padding: 18", {"dead_taps": 8, "live_R": 1, "live_S": 1}),
        # every tap of a transposed convolution reads input
        ("op: conv_transpose, H: 2, W: 2, R: 9, S: 9, padding: 4", {"live_R": 9, "dead_taps": 0, "transposed": True}),
        ("op: conv_transpose, R: 9", {"live_R": 9, "live_S": UNKNOWN, "dead_taps": UNKNOWN}),
        ("H: 1, W: 1, R: 1, S: 1", {"pointwise_map": True, "connected": False}),
        ("H: 2, W: 1, R: 1, S: 1", {"pointwise_map": False}),
        ("W: 1, R: 1, S: 1", {"pointwise_map": UNKNOWN}),  # may be squeeze-and-excite's
        ("W: 1, R: 3, S: 3", {"pointwise_map": False}),
    ],
)
def test_shapes(layer: str, expected: dict[str, Any]) -> None:
    found = facts(layer)
    for name, value in expected.items():
        assert found[name] is value if value is UNKNOWN else found[name] == value, name
