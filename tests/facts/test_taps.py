"""What a filter can be changed to: without dead taps, and so that its stride divides it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from layer_facts import facts

from convlint.facts.layer import LayerFacts
from convlint.facts.unknown import UNKNOWN
from convlint.model.geometry import transposed_output_size

DEAD = "H: 16, W: 16, R: 3, S: 3, dilation: 24, padding: 24"
TINY = "H: 2, W: 2, R: 5, S: 5, padding: 2"
THREE = "D: 4, H: 32, W: 32, T: 3, R: 3, S: 3, dilation: 6, padding: 6"
UP = "op: conv_transpose, H: 32, W: 32, R: 3, S: 4, stride: 2, padding: 1"
CASES: list[tuple[str, dict[str, Any]]] = [
    (DEAD, {"fitting_DilH": 15, "fitting_PadH": 15, "fitting_PadH_end": 15, "fitting_DilD": 1, "fitting_PadD": 0}),
    (DEAD, {"live_R": 1, "live_PadH": 0, "live_PadH_end": 0, "live_T": 1, "live_PadD": 0}),
    (TINY, {"live_R": 3, "live_PadW": 1, "live_PadW_end": 1, "spatial_filter": True, "padded": True}),
    # uneven: one tap above is dead, none below
    ("H: 8, W: 8, R: 3, S: 3, padding: [5, 0, 0, 0]", {"live_PadH": 5, "live_PadH_end": 0, "has_output": True}),
    (THREE, {"live_T": 1, "live_PadD": 0, "fitting_DilD": 3, "fitting_PadD": 3, "fitting_DilH": 6, "fitting_PadW": 6}),
    ("R: 1, S: 1, H: 4, W: 4", {"spatial_filter": False, "padded": False, "has_output": True}),
    ("R: 5, S: 5, H: 4, W: 9", {"has_output": False}),
    # known as soon as one decides it
    ("R: 3, H: 4, W: 4", {"spatial_filter": True, "has_output": UNKNOWN}),
    ("R: 1, H: 4, W: 4", {"spatial_filter": UNKNOWN}),
    (UP, {"even_PadH": 2, "even_PadH_end": 2, "even_OutPadH": 1, "even_PadW": 1, "even_OutPadW": 0}),
    (UP + ", output_padding: 1", {"even_PadH": 1, "even_PadH_end": 1, "even_OutPadH": 0, "even_OutPadW": 1}),
    ("op: conv_transpose, R: 3, S: 3, stride: 2", {"even_PadH": 1, "even_OutPadH": 1}),
    ("op: conv_transpose, S: 3, stride: 2", {"even_PadH": UNKNOWN, "even_PadW": 1}),
]


@pytest.mark.parametrize(("layer", "expected"), CASES)
def test_filters(layer: str, expected: dict[str, Any]) -> None:
    found = facts(layer)
    for name, value in expected.items():
        assert found[name] is value if value is UNKNOWN else found[name] == value, name


sizes = st.integers(1, 40)


@given(
    size=sizes, taps=st.integers(1, 7), stride=st.integers(1, 4), dilation=st.integers(1, 30), pad=st.integers(0, 60)
)
def test_changed_filters_keep_the_output_and_have_no_dead_taps(
    size: int, taps: int, stride: int, dilation: int, pad: int
) -> None:
    found = facts(
        f"H: {size}, W: 64, R: {taps}, S: 1, stride: [{stride}, 1], dilation: {dilation}, padding: [{pad}, 0]"
    )
    if not found["has_output"] or found["live_R"] == 0:
        return

    def changed(taps: int, dilation: int, begin: int, end: int) -> LayerFacts:
        step = f"stride: [{stride}, 1], dilation: {dilation}"
        return facts(f"H: {size}, W: 64, R: {taps}, S: 1, {step}, padding: [{begin}, {end}, 0, 0]")

    begin, end = found["live_PadH"], found["live_PadH_end"]
    if min(begin, end) >= 0:
        live = changed(found["live_R"], dilation, begin, end)
        assert (live["P"], live["dead_taps"]) == (found["P"], 0)
    fitting, begin, end = (found[f"fitting_{name}"] for name in ("DilH", "PadH", "PadH_end"))
    assert fitting <= dilation
    if fitting >= 1 and min(begin, end) > 0:
        fits = changed(taps, fitting, begin, end)
        assert (fits["P"], fits["dead_taps"]) == (found["P"], 0)


@given(size=sizes, taps=st.integers(1, 9), stride=st.integers(2, 4), pad=st.integers(0, 3), extra=st.integers(0, 1))
def test_even_filters_keep_the_output(size: int, taps: int, stride: int, pad: int, extra: int) -> None:
    found = facts(
        f"op: conv_transpose, H: {size}, W: 8, R: {taps}, S: {stride}, stride: {stride}, padding: [{pad}, 0],"
        f" output_padding: [{extra}, 0]"
    )
    raised = -(-taps // stride) * stride
    kept = transposed_output_size(
        size, stride=stride, pad=found["even_PadH"] + found["even_PadH_end"], dilation=1, taps=raised,
        output_padding=found["even_OutPadH"],
    )  # fmt: skip
    assert kept == found["P"]
