"""Sizes as a message prints them, and whether they agree with each other and with what arrives."""

from __future__ import annotations

from typing import Any

import pytest
from layer_facts import facts

from convlint.facts.unknown import UNKNOWN

THREE = "D: 4, H: 32, W: 32, T: 3, R: 3, S: 3, dilation: 6, padding: 6"
CASES: list[tuple[str, dict[str, Any]]] = [
    (THREE, {"filter_size": "3x3x3", "dilation_size": "6x6x6", "stride_size": "1x1x1", "input_size": "4x32x32"}),
    (THREE + ", C: 3", {"input_shape": "C=3, D=4, H=32, W=32", "padding_sizes": "PadD=6, PadH=6, PadW=6"}),
    ("H: 9, W: 8, R: 3, S: 5, stride: [2, 1], padding: [1, 2]", {"filter_size": "3x5", "stride_size": "2x1"}),
    ("H: 9, W: 8, R: 3, S: 5, padding: [1, 2]", {"padding_sizes": "PadH=1, PadW=2", "input_size": "9x8"}),
    ("dims: 1, W: 8, S: 5, C: 4", {"filter_size": "1x5", "input_shape": "C=4, W=8"}),
    ("H: 9, S: 5", {"filter_size": "?x5", "input_size": "9x?", "input_shape": "C=?, H=9, W=?"}),
    ("C: 8, K: 12, groups: 4", {"groups_divide": True}),
    ("C: 8, K: 13, groups: 4", {"groups_divide": False}),
    ("C: 9, groups: 4", {"groups_divide": False}),
    ("C: 8, groups: 4", {"groups_divide": UNKNOWN}),
    ("K: 8", {"groups_divide": True, "matches_arriving": True, "arriving_shape": "C=?, H=?, W=?"}),
]


@pytest.mark.parametrize(("layer", "expected"), CASES)
def test_sizes_of_one_layer(layer: str, expected: dict[str, Any]) -> None:
    found = facts(layer)
    for name, value in expected.items():
        assert found[name] is value if value is UNKNOWN else found[name] == value, name


BEFORE = "name: a, C: 3, H: 32, W: 32, K: 64, kernel_size: 3"


@pytest.mark.parametrize(
    ("layer", "matches", "arriving"),
    [
        ("K: 8, kernel_size: 1", True, "C=64, H=30, W=30"),
        ("input: a, C: 64, H: 30, W: 30", True, "C=64, H=30, W=30"),
        ("input: a, C: 32, H: 30, W: 30", False, "C=64, H=30, W=30"),
        ("input: a, C: 64, H: 31, W: 30", False, "C=64, H=30, W=30"),
        ("input: a, C: 64, H: 30, W: 29", False, "C=64, H=30, W=30"),
    ],
)
def test_what_arrives(layer: str, matches: bool, arriving: str) -> None:
    found = facts(BEFORE, f"name: b, {layer}")
    assert (found["matches_arriving"], found["arriving_shape"]) == (matches, arriving)


def test_what_arrives_is_unknown_where_its_producer_has_no_size() -> None:
    found = facts("name: a, C: 3, K: 64, kernel_size: 3", "name: b, input: a, C: 64, K: 8")
    assert found["matches_arriving"] is UNKNOWN
    assert found["arriving_shape"] == "C=64, H=?, W=?"
