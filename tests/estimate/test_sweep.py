"""Axes name swept values alone."""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from convlint.estimate.sweep import (
    FIGURES,
    figure_layer,
    figure_sweep,
    geometric,
    parse_values,
    passes_of,
    peak_flops,
    series,
    ticks,
    unknown_time,
    vary,
)
from convlint.gpus.gpu import load_gpu
from convlint.model.errors import UsageError
from convlint.model.layer import PASSES, ConvLayer, Dtype, with_output
from convlint.model.runtime import Runtime
from convlint.reporters.ink import painter
from convlint.reporters.sweeps import plot


def test_training_runs_three_passes_and_a_first_layer_two() -> None:
    layer = ConvLayer(name="a")
    assert passes_of([layer], "inference") == ("fprop",)
    assert passes_of([layer], "training") == PASSES
    assert passes_of([replace(layer, first=True)], "training") == ("fprop", "wgrad")


@pytest.mark.parametrize(
    ("values", "most", "expected"),
    [
        (range(50, 59), 16, tuple(range(50, 59))),
        (range(1, 257), 16, tuple(range(16, 257, 16))),
        (range(1, 257), 10, tuple(range(32, 257, 32))),
        (range(56, 601, 8), 10, tuple(range(64, 601, 64))),
        (range(1, 24, 2), 4, (1, 9, 17, 23)),
        ((64, 96, 112, 256, 300), 3, (64, 112, 300)),
        ((7,), 2, (7,)),
    ],
)
def test_all_or_rounder_ones_or_every_nth(values: range, most: int, expected: tuple[int, ...]) -> None:
    assert ticks(values, most) == expected


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=60, unique=True).map(sorted), st.integers(2, 20))
def test_ticks_are_swept_values_in_order(values: list[int], most: int) -> None:
    found = ticks(values, most)
    assert set(found) <= set(values)
    assert list(found) == sorted(set(found))
    assert 1 <= len(found) <= most


@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=60, unique=True).map(sorted), st.booleans())
def test_the_terminals_axis_names_swept_values_apart_from_each_other(values: list[int], log_x: bool) -> None:
    lines = [("a", [(float(x), 1.0) for x in values])]
    axis = plot(lines, (60, 10), paint=painter(False), dots=False, log_x=log_x)[-1]
    assert len(axis) <= 60
    assert set(map(int, axis.split())) <= set(values)
    assert axis.split()


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
    assert (
        unknown_time(replace(LAYER, dtype=Dtype.fp64), load_gpu("a10g"))
        == "the fp64 peak of NVIDIA A10G (AWS) is not known"
    )


def test_efficiency_is_of_the_peak_of_what_multiplies():
    a100 = load_gpu("a100")
    (point,) = series("f", "fprop", (256,), lambda n: vary(LAYER, "N", n), ("a100", a100), Runtime()).points
    assert peak_flops(LAYER, a100, Runtime()) == 312e12
    assert point.value("efficiency") == pytest.approx(point.value("tflops") / 312)
    assert peak_flops(LAYER, load_gpu("k80"), Runtime()) == load_gpu("k80").peak_flops["fp32"]
    nano = load_gpu("jetson-nano")
    assert peak_flops(LAYER, nano, Runtime(framework="tensorrt")) == nano.peak_flops["fp16"]


@pytest.mark.parametrize(
    ("gpu", "dtype"), [("a10g", "int8"), ("v100", "int8"), ("gtx-1650", "int8"), ("orin-nano", "tf32")]
)
def test_a_rate_that_the_gpus_file_lacks_is_no_other_dtypes(gpu, dtype):
    one = (gpu, load_gpu(gpu))
    (point,) = series("f", "fprop", (64,), lambda n: replace(LAYER, N=n, dtype=Dtype(dtype)), one, Runtime()).points
    assert 0 < point.value("efficiency") <= 1


def test_the_guides_charts_are_all_there():
    assert set(FIGURES) == {2, *range(4, 14), 15}


@pytest.mark.parametrize("number", FIGURES)
def test_the_sections_are_the_guides(number):
    assert re.fullmatch(r"[45]\.\d(\.\d)? [A-Z].+", FIGURES[number].section)


def rates(number):
    """Label -> {x: TFLOPS}."""
    return {one.label: {point.x: point.value("tflops") for point in one.points} for one in figure_sweep(number).series}


@pytest.mark.parametrize("number", FIGURES)
def test_every_point_has_a_time_on_the_guides_gpu_and_cites_its_section(number):
    sweep, figure = figure_sweep(number), FIGURES[number]
    assert sweep.reasons == {}
    assert "A100 SXM4 80GB" in sweep.setting
    assert any(figure.section in note and f"Figure {number}" in note for note in sweep.notes)
    assert any("Chosen here" in note for note in sweep.notes)
    assert len({one.label for one in sweep.series}) == len(sweep.series)
    for line, value in itertools.product(figure.lines, figure.values):
        layer = figure_layer(figure, line, value)
        assert (layer.P * layer.U, layer.Q * layer.V) == (layer.H, layer.W)


@pytest.mark.parametrize("number", [0, 1, 3, 14, 16])
def test_other_figures_are_refused(number):
    with pytest.raises(UsageError, match="2, 4, 5"):
        figure_sweep(number)


def test_figure_2_nchw_costs_more_where_filters_are_small():
    lines = rates(2)
    for c in FIGURES[2].values:
        assert lines["NHWC 3x3"][c] > lines["NCHW 3x3"][c]
        small = lines["NCHW 1x1"][c] / lines["NHWC 1x1"][c]
        assert small < lines["NCHW 3x3"][c] / lines["NHWC 3x3"][c]


def test_figure_4_counts_tiles_and_waves_as_the_guide_does():
    (fprop,) = figure_sweep(4).series
    at = {point.x: point for point in fprop.points}
    assert load_gpu(fprop.gpu).sms == 108
    drop = 1 - at[487].value("tflops") / at[486].value("tflops")
    assert 0 < drop < 0.1  # less pronounced once the convolution is large (b)
    assert all(at[n].value("tflops") >= at[n + 1].value("tflops") for n in (54, 108, 216, 324, 432))


def test_figure_5_equal_products_perform_equally_and_larger_ones_better():
    lines = list(rates(5).values())
    for x in FIGURES[5].values:
        assert max(line[x] for line in lines) <= 1.02 * min(line[x] for line in lines)
    for line in lines:
        assert list(line.values()) == sorted(line.values())


@pytest.mark.parametrize("number", [6, 7])
def test_figures_6_and_7_rise_with_channels_and_with_the_filter(number):
    lines = list(rates(number).values())  # from 7x7 to 1x1
    for line in lines:
        assert list(line.values()) == sorted(line.values())
    for x in FIGURES[number].values:
        column = [line[x] for line in lines]
        assert column == sorted(column, reverse=True)


def test_figure_8_first_layers_like_4_and_multiples_of_8():
    for line in rates(8).values():
        assert line[4] > line[3]
        assert line[8] > line[7]
        assert line[16] > line[15]
    assert max(rates(8)["fprop"], key=rates(8)["fprop"].get) in (4, 8, 16)


@pytest.mark.parametrize("number", [9, 10])
def test_figures_9_and_10_rise_with_diminishing_returns(number):
    for line in rates(number).values():
        values = list(line.values())
        assert values == sorted(values)
        assert values[2] / values[0] > 3 > 1.2 > values[-1] / values[-3]


def test_figures_11_and_12_stride_weighs_on_dgrad_most():
    least = min(min(line.values()) / line[1] for line in rates(11).values())
    for line in rates(12).values():
        assert line[2] / line[1] < 0.7
        assert min(line.values()) / line[1] < 0.75 * least
    assert least > 0.75
    assert all(line[2] / line[1] > 0.9 for line in rates(11).values())


def test_figure_13_is_near_250_tflops_at_large_n():
    lines = rates(13)
    assert set(lines) == set(PASSES)
    for line in lines.values():
        assert all(235 <= line[n] <= 265 for n in line if n >= 32)
