"""Single ways to run a pass: the bytes they move, and what untiled kernels lose."""

from __future__ import annotations

import pytest
from convolutions import A100, RUNTIME, conv, fprop

from convlint.estimate import estimate_layer, estimate_pass
from convlint.estimate.kernels import depthwise_factor, moved_bytes
from convlint.estimate.problem import problem_of
from convlint.model.layer import PASSES


def test_fact_2_arithmetic_intensity_counts_the_weights():
    assert round(fprop(conv(K=128)).arithmetic_intensity, 1) == 383.8


def test_depthwise_is_bound_by_memory_and_loses_nothing_to_tiles():
    for which in PASSES:
        estimate = estimate_pass(conv(C=96, K=96, groups=96), which, A100, RUNTIME)
        assert estimate.algorithm == "direct"
        assert not estimate.tensor_cores
        assert (estimate.bound_by, estimate.tile) == ("memory", (1, 1))
        assert estimate.lost_to_tiles_us == estimate.lost_to_waves_us == 0
    layer = conv(C=96, K=96, groups=96)
    assert estimate_layer(layer, A100, RUNTIME, "inference").grade == "A"
    slow = estimate_pass(layer, "wgrad", A100, RUNTIME)
    assert slow.attainable_us < 0.5 * slow.time_us
    assert estimate_layer(layer, A100, RUNTIME, "training").grade > "A"


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
