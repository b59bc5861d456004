"""Single ways to run a pass: the bytes they move, and what untiled kernels lose."""

from __future__ import annotations

from convolutions import A100, RUNTIME, conv, fprop

from convlint.estimate import estimate_layer, estimate_pass
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
