"""How a pass becomes batched GEMMs: what they tile, and how many steps their reduction takes."""

from __future__ import annotations

import pytest
from convolutions import A100, RUNTIME, conv, fprop

from convlint.estimate import estimate_pass
from convlint.gpus.gpu import load_gpu


def test_fact_7_wgrad_tiles_c_whatever_the_filter():
    for taps in (1, 3, 5, 7):
        estimate = estimate_pass(conv(C=32, K=256, R=taps, S=taps), "wgrad", A100, RUNTIME)
        assert estimate.tile[0] >= 64
        assert estimate.tile_efficiency == pytest.approx(32 / estimate.tile[0])


@pytest.mark.parametrize("which", ["fprop", "wgrad"])
@pytest.mark.parametrize("gpu", ["a100", "h100"])
def test_first_layers_of_few_channels_take_several_taps_at_once(which, gpu):
    """Time follows the channels, without a jump behind C = 4; V100 and T4 take a step per tap (public timings)."""
    layers = {c: conv(C=c, H=224, W=224, K=64, R=7, S=7, U=2, V=2, first=True) for c in (4, 8, 16)}
    times = {c: estimate_pass(layer, which, load_gpu(gpu), RUNTIME).time_us for c, layer in layers.items()}
    assert times[4] < times[8] < 2 * times[4]
    assert times[8] < times[16] < 2 * times[8]
    assert fprop(layers[8], load_gpu("v100")).main_loop_steps == 49


def test_groups_split_the_gemm():
    whole, grouped = fprop(conv(C=512, K=512, H=28, W=28)), fprop(conv(C=512, K=512, H=28, W=28, groups=4))
    assert grouped.gemm.batch == 4
    assert grouped.flops * 4 == whole.flops
    assert whole.time_us / 4 < grouped.time_us < whole.time_us


def test_main_loop_steps_follow_the_reduction():
    assert fprop(conv(C=64, K=256, R=1, S=1)).main_loop_steps == 2
    assert fprop(conv(C=512, K=256)).main_loop_steps == 144
