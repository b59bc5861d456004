"""What arrives at a layer from those that it reads."""

from __future__ import annotations

import pytest
from layer_facts import facts

from convlint.facts.unknown import UNKNOWN

FROM = "name: a, N: 1, C: 3, H: 32, W: 32, K: 64, kernel_size: 3"


def test_a_layer_that_stands_alone_is_reached_by_nothing() -> None:
    assert facts(FROM)["arriving"] is UNKNOWN
    assert facts(FROM)["connected"] is False


@pytest.mark.parametrize(
    ("producer", "layout", "arrives", "layout_of", "grouped"),
    [
        ("layout: NHWC", "NHWC", "NHWC", "a", False),
        ("layout: NCHW", "NHWC", "NCHW", "a", False),
        ("layout: NCHW, groups: 3, K: 63", "NHWC", "NCHW", "a", False),  # depthwise is not grouped
        ("layout: NCHW, C: 4, groups: 2", "NHWC", "NCHW", "a", True),
        ("layout: auto", "NHWC", "NHWC", "a", False),  # the framework's business
        ("layout: NCHW", "auto", "auto", "a", False),
    ],
)
def test_the_layout_that_differs(producer: str, layout: str, arrives: str, layout_of: str, grouped: bool) -> None:
    given = dict(part.split(": ") for part in f"{FROM}, {producer}".split(", "))
    found = facts(", ".join(f"{key}: {value}" for key, value in given.items()), f"name: b, K: 8, layout: {layout}")
    seen = found["arriving"]
    assert (seen.layout, seen.layout_of, seen.grouped, seen.source) == (arrives, layout_of, grouped, "a")
    assert (int(given["K"]), 30, 30) == (seen.C, seen.H, seen.W)


def test_sizes_that_a_producer_lacks_are_unknown() -> None:
    seen = facts("name: a, C: 3, K: 64, kernel_size: 3", "name: b, input: a, K: 8")["arriving"]
    assert seen.C == 64
    assert seen.H is UNKNOWN
