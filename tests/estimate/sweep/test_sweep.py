"""Sweeps: the values that an option gives, and the layers they make."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convlint.errors import UsageError
from convlint.estimate.sweep.sweep import geometric, parse_values, peak_flops, series, unknown_time, vary
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import ConvLayer, Dtype, with_output
from convlint.model.runtime import Runtime


@pytest.mark.parametrize(
    ("text", "values"),
    [("1:4", (1, 2, 3, 4)), ("5:5", (5,)), ("64:200:64", (64, 128, 192)), (" 1 : 3 ", (1, 2, 3)),
     ("1,2,4,8", (1, 2, 4, 8)), ("8, 2,8", (8, 2)), ("7", (7,))],
)  # fmt: skip
def test_values(text, values):
    assert parse_values("-N", text) == values


@pytest.mark.parametrize(
    ("text", "message"),
    [("5:1", "did you mean 1:5"), ("0:4", "not between 1 and"), ("-1:4", "not between 1 and"), ("1:x", "whole number"),
     ("1.5:3", "whole number"), ("1:2:3:4", "START:STOP:STEP"), ("1:9:0", "the step '0'"), ("1:1000000", "larger step"),
     ("1:10001", "10001 points are more than 10000; use a larger step"),
     (":5", "whole number"), ("1,,2", "whole number"), ("1,0", "not between"), ("", "whole number"),
     ("9" * 5000 + ":1", "whole number"), ("1:3000000000:1000000", "not between"), ("1e3:2e3", "whole number")],
)  # fmt: skip
def test_bad_values_say_what_is_wrong(text, message):
    with pytest.raises(UsageError, match=message) as caught:
        parse_values("-N", text)
    assert str(caught.value).startswith("-N: ")
    assert len(str(caught.value)) < 200


@given(st.integers(1, 2**31), st.integers(0, 5000), st.integers(1, 2**31))
def test_a_range_holds_start_and_every_step_up_to_stop(start, length, step):
    stop = min(start + length, 2**31)
    values = parse_values("-N", f"{start}:{stop}:{step}")
    assert values[0] == start
    assert stop - step < values[-1] <= stop
    assert len(values) <= 10_000


@given(st.text(alphabet="0123456789:,- x", max_size=12))
def test_any_text_gives_values_or_a_usage_error(text):
    try:
        values = parse_values("-N", text)
    except UsageError:
        return
    assert values
    assert min(values) >= 1
    assert len(set(values)) == len(values)


@pytest.mark.parametrize(
    ("values", "expected"),
    [((1, 2, 4, 8), True), ((64, 128, 192), False), ((1, 2, 3, 4), False), ((1, 99), False)],
)
def test_geometric_values_get_a_logarithmic_axis(values, expected):
    assert geometric(values) is expected


LAYER = with_output(
    ConvLayer(name="l", N=8, C=64, H=28, W=28, K=64, R=3, S=3, PadH=1, PadW=1, PadH_end=1, PadW_end=1, declared_P=28,
              dtype=Dtype.fp16, layout="NHWC")
)  # fmt: skip


@pytest.mark.parametrize(
    ("parameter", "value", "fields"),
    [("N", 3, {"N": 3, "P": 28}), ("H", 14, {"P": 14, "Q": 28}), ("stride", 2, {"U": 2, "V": 2, "P": 14, "Q": 14}),
     ("dilation", 2, {"DilH": 2, "DilW": 2, "P": 26}), ("groups", 4, {"groups": 4}),
     ("R", 5, {"R": 5, "S": 3, "P": 26})],
)  # fmt: skip
def test_vary_sets_the_parameter_and_computes_the_output_anew(parameter, value, fields):
    layer = vary(LAYER, parameter, value)
    assert {name: getattr(layer, name) for name in fields} == fields


def test_depth_varies_in_3d_layers_only():
    with pytest.raises(UsageError, match="3-D"):
        vary(LAYER, "D", 4)


def test_a_point_without_a_time_has_its_reason():
    gpu = load_gpu("a100")
    line = series("f", "fprop", (1, 3), lambda g: vary(LAYER, "groups", g), ("a100", gpu), Runtime())
    assert [point.estimate is None for point in line.points] == [False, True]
    assert "not both divisible by groups=3" in line.points[1].reason
    assert line.points[1].value("time") is None
    assert "P=-1" in unknown_time(vary(vary(LAYER, "R", 32), "H", 1), gpu).replace("P=-28", "P=-1")
    assert (
        unknown_time(vary(LAYER, "N", 1), load_gpu("k80"))
        == "NVIDIA Tesla K80 (per die; board = 2x) has no unit for fp16"
    )


def test_efficiency_is_of_the_peak_of_what_multiplies():
    a100 = load_gpu("a100")
    (point,) = series("f", "fprop", (256,), lambda n: vary(LAYER, "N", n), ("a100", a100), Runtime()).points
    assert peak_flops(LAYER, a100, Runtime()) == 312e12
    assert point.value("efficiency") == pytest.approx(point.value("tflops") / 312)
    assert peak_flops(LAYER, load_gpu("k80"), Runtime()) == load_gpu("k80").peak_flops["fp32"]
