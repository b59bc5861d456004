"""Single ways to run a pass: the bytes they move, and what untiled kernels lose."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from convolutions import A100, RUNTIME, conv, fprop

from convlint.estimate import estimate_pass
from convlint.estimate.board import board_of
from convlint.estimate.copies import NONE
from convlint.estimate.kernels import (
    Priced,
    calibrated,
    depthwise_factor,
    is_quantized,
    moved_bytes,
    tile_efficiency,
    without_quantization,
    without_waves,
)
from convlint.estimate.lowering import Lowering
from convlint.estimate.price import Situation, cheapest
from convlint.estimate.problem import problem_of
from convlint.estimate.search import Choice, Program, join
from convlint.model.layer import PASSES, Dtype


def test_fact_2_arithmetic_intensity_counts_the_weights():
    assert round(fprop(conv(K=128)).arithmetic_intensity, 1) == 383.8


def test_depthwise_is_bound_by_memory_and_loses_nothing_to_tiles():
    for which in PASSES:
        estimate = estimate_pass(conv(C=96, K=96, groups=96), which, A100, RUNTIME)
        assert estimate.algorithm == "direct"
        assert not estimate.tensor_cores
        assert (estimate.bound_by, estimate.tile) == ("memory", (1, 1))
        assert estimate.lost_to_tiles_us == estimate.lost_to_waves_us == 0
        assert estimate.unquantized_us == estimate.time_us


TEN_SMS = SimpleNamespace(sms=10)


def priced(*, useful=100, compute_us=24.0, memory_us=0.0, algorithm="implicit-gemm", fused_tiles=0, split=1, share=1.0):
    """25 tiles of 2 x 4 outputs; ten run at once, for 8 us: of three waves the last is half full."""
    lowering = Lowering(algorithm, "", 1, 1, 1, 1, useful, fused_tiles=fused_tiles, peak_share=share)
    choice = Choice(lowering, Program(2, 4, 1, (0.0, 8.0), 0.0, 8.0, 10), split, 25, 1, compute_us, memory_us, 0)
    return Priced(SimpleNamespace(family=SimpleNamespace(round_us=0.0)), choice, 100.0, 5.0, NONE)


@pytest.mark.parametrize(
    ("parts", "efficiency"),
    [
        ({}, 0.5),
        ({"useful": 200}, 1.0),
        ({"useful": 50, "split": 2}, 0.5),  # each output is summed from two tiles
        ({"useful": 25 * 128 * 8, "fused_tiles": 25}, 0.25),  # whose tiles are not the program's
        ({"useful": 300}, 1.0),
        ({"algorithm": "direct"}, 1.0),
    ],
)
def test_useful_share_of_the_tiles(parts, efficiency):
    assert tile_efficiency(priced(**parts).choice) == efficiency


@pytest.mark.parametrize(
    ("parts", "quantized"),
    [
        ({}, True),
        ({"memory_us": 24.0}, True),
        ({"memory_us": 24.1}, False),
        ({"algorithm": "direct"}, False),
    ],
)
def test_what_memory_binds_or_has_no_tiles_pays_for_no_empty_ones(parts, quantized):
    one = priced(**parts)
    assert is_quantized(one) is quantized
    assert (without_quantization(one, TEN_SMS) < one.time_us) is quantized


@pytest.mark.parametrize(
    ("parts", "useful", "time_us"),
    [
        ({"useful": 200}, 1.0, 96.0),  # 2.5 waves in place of three
        ({}, 1.0, 86.0),  # and half of each tile
        ({}, 0.5, 81.0),  # and half of that
        ({"share": 0.5, "compute_us": 48.0}, 1.0, 72.0),
        ({"compute_us": 16.0, "useful": 200}, 1.0, 100.0),  # never more than it takes
        ({"memory_us": 12.0}, 1.0, 100.0 - join(24.0, 12.0) + join(10.0, 12.0)),
    ],
)
def test_time_without_quantization(parts, useful, time_us):
    assert without_quantization(priced(**parts), TEN_SMS, useful) == pytest.approx(time_us)


SMALL = {"N": 2, "C": 8, "K": 16, "H": 10, "W": 12}
X, W, Y = 2 * 8 * 10 * 12, 8 * 16 * 9, 2 * 16 * 10 * 12


@pytest.mark.parametrize(
    ("sizes", "which", "elements"),
    [
        ({}, "fprop", X + W + Y),
        ({}, "dgrad", X + W + Y),
        ({"residual_inputs": 1}, "fprop", X + W + 2 * Y),
        ({"residual_inputs": 1}, "wgrad", X + W + Y),
        ({"U": 2, "V": 2, "R": 1, "S": 1}, "fprop", X / 4 + W / 9 + Y / 4),  # what the stride skips is not read
        ({"U": 2, "V": 2, "R": 1, "S": 1}, "dgrad", X + W / 9 + Y / 4),  # but all of it is written
        ({"U": 2, "V": 2}, "fprop", X + W + Y / 4),
    ],
)
def test_bytes_of_a_kernel(sizes, which, elements):
    problem = problem_of(conv(**SMALL | sizes))
    assert moved_bytes(problem, which, 8, 16) == 2 * elements


def test_padded_channels_are_moved_too():
    assert moved_bytes(problem_of(conv(**SMALL)), "fprop", 16, 16) == 2 * (2 * X + 2 * W + Y)


def test_flops_are_two_for_each_tap_channel_and_output():
    assert problem_of(conv(**SMALL)).flops == 2 * Y * 8 * 9
    assert problem_of(conv(**SMALL, groups=4)).flops == 2 * Y * 2 * 9


@pytest.mark.parametrize(("which", "factor"), [("fprop", 1.0), ("dgrad", 1.0), ("wgrad", 3.0)])
def test_a_depthwise_wgrad_reduces_over_everything_for_few_outputs(which, factor):
    assert depthwise_factor(which) == factor


@pytest.mark.parametrize("layer", [conv(), conv(N=2048, R=1, S=1), conv(layout="NCHW"), conv(C=62), conv(groups=64)])
@pytest.mark.parametrize("factor", [0.5, 1.0, 3.0])
def test_a_factor_is_on_all_of_the_time(layer, factor):
    """Of times, of what they consist of, and of what they would be without quantization."""
    board = board_of(A100)
    situation = Situation(Dtype.fp16, False, True, True, True)
    priced = cheapest(problem_of(layer), "wgrad", board, situation)
    scaled = calibrated(priced, factor)

    def parts(one):
        copied = one.copies.transposes_us + one.copies.padding_us
        ideal = without_quantization(one, board)
        return [one.time_us, one.overhead_us, ideal, one.choice.compute_us, one.choice.memory_us, copied,
                without_waves(one, board)]  # fmt: skip

    assert parts(scaled) == pytest.approx([factor * part for part in parts(priced)])
