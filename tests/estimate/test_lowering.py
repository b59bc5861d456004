"""How a pass becomes batched GEMMs: what they tile, and how many steps their reduction takes."""

from __future__ import annotations

import pytest
from convolutions import A100, RUNTIME, conv, fprop

from convlint.estimate import constants as const
from convlint.estimate import estimate_pass
from convlint.estimate.lowering import implicit_gemm, padded_channels
from convlint.estimate.problem import problem_of
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


@pytest.mark.parametrize(
    ("sizes", "few", "channels"),
    [
        ({"C": 3, "K": 64}, True, (4, 64)), ({"C": 4, "K": 64}, True, (4, 64)), ({"C": 5, "K": 65}, True, (8, 72)),
        ({"C": 3, "K": 64}, False, (8, 64)), ({"C": 62, "K": 60, "groups": 2}, True, (32, 32)),
        ({"C": 8, "K": 8, "groups": 2}, True, (4, 8)),
    ],
)  # fmt: skip
def test_channels_are_padded_for_each_group(sizes, few, channels):
    assert padded_channels(problem_of(conv(**sizes)), 8, few) == channels


LAYER = {"N": 2, "C": 40, "K": 72, "H": 12, "W": 12}


def lowered(which, *, tensor=True, few_channels=0, c=40, k=72, family=const.VOLTA, **sizes):
    problem = problem_of(conv(**LAYER | {"C": c, "K": k} | sizes))
    return implicit_gemm(problem, which, family, c, k, tensor=tensor, few_channels=few_channels)


@pytest.mark.parametrize(
    ("which", "options", "expected"),
    [
        # (batch, M, N, steps) of each lowering; a step of Volta's holds 32 channels of one tap, one of CUDA cores 8
        ("fprop", {}, [(1, 288, 72, 9 * 2)]),
        ("fprop", {"tensor": False, "family": const.SIMT}, [(1, 288, 72, 45)]),
        ("fprop", {"c": 8, "few_channels": 8}, [(1, 288, 72, 3), (1, 288, 72, 9)]),  # one row, or tap by tap
        ("fprop", {"c": 8, "few_channels": 7}, [(1, 288, 72, 9)]),
        ("fprop", {"c": 24, "few_channels": 32}, [(1, 288, 72, 9)]),  # 24 divides no step
        ("dgrad", {}, [(1, 288, 40, 9 * 3)]),
        ("dgrad", {"tensor": False, "family": const.SIMT}, [(1, 288, 40, 81)]),
        ("dgrad", {"U": 2, "V": 2}, [(4, 72, 40, 4 * 3)]),  # four phases of up to 2x2 taps
        ("dgrad", {"U": 2, "V": 2, "R": 1, "S": 1}, [(1, 72, 40, 3)]),  # three phases own no tap
        ("dgrad", {"U": 2, "V": 2, "R": 1, "S": 1, "tensor": False, "family": const.SIMT}, [(2, 72, 40, 9)]),
        ("wgrad", {}, [(9, 40, 72, 9)]),
        ("wgrad", {"c": 8, "few_channels": 8}, [(9, 8, 72, 9), (1, 72, 72, 9)]),
        ("wgrad", {"tensor": False, "family": const.SIMT}, [(9, 40, 72, 36), (1, 360, 72, 36)]),
        ("wgrad", {"R": 1, "S": 1}, [(1, 40, 72, 9)]),
    ],
)
def test_implicit_gemms(which, options, expected):
    found = lowered(which, **options)
    assert [(one.batch, one.M, one.N, one.steps) for one in found] == expected


@pytest.mark.parametrize(
    ("options", "kernels", "zeroed", "serial"),
    [
        ({"U": 2, "V": 2}, 0, 0, 0),
        ({"U": 2, "V": 2, "R": 1, "S": 1}, 1, 2 * 2 * 12 * 12 * 40, 0),
        ({"U": 2, "V": 2, "R": 1, "S": 1, "tensor": False, "family": const.SIMT}, 1, 0, 2 * 2 * 12 * 12 * 40),
    ],
)
def test_what_no_tap_writes_is_zeroed_before(options, kernels, zeroed, serial):
    (found,) = lowered("dgrad", **options)
    assert (found.extra_kernels, found.zeroed_bytes, found.serial_bytes) == (kernels, zeroed, serial)
