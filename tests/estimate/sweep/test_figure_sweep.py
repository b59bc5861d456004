"""What the guide says about its figures must be seen in their sweeps."""

from __future__ import annotations

import itertools

import pytest

from convlint.errors import UsageError
from convlint.estimate.sweep.figure_sweep import figure_layer, figure_sweep
from convlint.estimate.sweep.figures import FIGURES
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import PASSES


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
    assert (at[54].estimate.tiles, at[54].estimate.waves) == (216, 1.0)
    assert (at[55].estimate.tiles, at[55].estimate.last_wave_tiles) == (220, 4)
    assert at[55].value("tflops") < 0.75 * at[54].value("tflops")
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


def test_figure_15_dilation_makes_no_difference():
    lines = rates(15)
    for which in PASSES:
        assert lines[f"{which}, dilation 2"] == lines[f"{which}, dilation 1"]
