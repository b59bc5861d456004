"""Passes that no tiled kernel takes."""

from __future__ import annotations

import pytest
from convolutions import A100, RUNTIME, conv

from convlint.estimate import constants as const
from convlint.estimate import estimate_pass
from convlint.estimate.board import board_of
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import PASSES, Dtype
from convlint.model.runtime import Runtime

VOLUME = {"dims": 3, "D": 16, "T": 3, "H": 64, "W": 64, "N": 4, "PadD": 1, "layout": "NCHW"}


def is_direct(sizes, which="fprop", gpu=A100, runtime=RUNTIME):
    return estimate_pass(conv(**sizes), which, gpu, runtime).algorithm == "direct"


ODD = {"groups": 4, "C": 96, "K": 96, "dtype": Dtype.fp16}  # 24 channels a group, as RegNetY has
STRIDED = {"groups": 4, "C": 32, "K": 64, "U": 2, "V": 2, "dtype": Dtype.fp32}


@pytest.mark.parametrize(
    ("sizes", "which", "direct"),
    [
        (STRIDED, "dgrad", True),
        (STRIDED, "fprop", False),
        ({**STRIDED, "U": 1, "V": 1}, "dgrad", False),
        ({**STRIDED, "C": 132, "K": 132}, "dgrad", False),  # 33 channels a group
        ({**STRIDED, "dtype": Dtype.fp16}, "dgrad", False),
        ({**VOLUME, "C": 3, "dtype": Dtype.fp32}, "fprop", True),
        ({**VOLUME, "C": 3, "K": 3, "dtype": Dtype.fp32}, "wgrad", False),
        ({**VOLUME, "C": 4, "dtype": Dtype.fp32}, "fprop", False),
        ({**VOLUME, "C": 3, "dtype": Dtype.fp16}, "fprop", False),
        ({**VOLUME, "C": 3, "T": 1, "R": 1, "S": 1, "dtype": Dtype.fp32}, "fprop", False),
        ({**VOLUME, "C": 3, "layout": "NHWC", "dtype": Dtype.fp32}, "fprop", False),
        (ODD, "fprop", True),
        ({**ODD, "C": 128, "K": 128}, "fprop", False),
        ({**ODD, "C": 192, "K": 192}, "fprop", True),  # 48
        ({**ODD, "C": 224, "K": 224}, "fprop", False),  # 56: wider than what was timed
        ({**ODD, "layout": "NCHW"}, "fprop", False),
        ({**ODD, "layout": "auto"}, "fprop", False),  # the framework's choice
    ],
)
def test_which_passes(sizes, which, direct):
    assert is_direct(sizes, which) is direct


@pytest.mark.parametrize(
    ("gpu", "runtime", "direct"),
    [
        ("a100", RUNTIME, True), ("rtx-4090", RUNTIME, True), ("a100", Runtime(framework="pytorch"), True),
        ("v100", RUNTIME, False), ("h100", RUNTIME, False),  # nothing was timed before cc 8.0, and libraries moved on
        ("a100", Runtime(framework="tensorrt"), False), ("a100", Runtime(framework="tensorflow"), False),
    ],
)  # fmt: skip
def test_where_odd_groups_are_slow(gpu, runtime, direct):
    assert is_direct(ODD, gpu=load_gpu(gpu), runtime=runtime) is direct


def test_gradients_of_odd_groups_are_slowest():
    fprop, dgrad, wgrad = (estimate_pass(conv(**ODD), which, A100, RUNTIME).time_us for which in PASSES)
    assert min(dgrad, wgrad) > 3 * fprop


@pytest.mark.parametrize("gpu", ["a100", "t4", "k80"])
def test_flops_per_clock_and_sm(gpu):
    board = board_of(load_gpu(gpu))
    found = estimate_pass(conv(**STRIDED, N=64), "dgrad", board.gpu, RUNTIME)
    rate = found.flops / (found.time_us - found.overhead_us) * 1e6 / (board.sms * board.clock_hz)
    assert rate == pytest.approx(const.GROUPED_DIRECT, rel=0.02)


@pytest.mark.parametrize("gpu", ["k80", "v100", "p100"])
def test_volumes_on_gpus_that_were_not_timed_are_plain_gemms(gpu):
    assert not is_direct({**VOLUME, "C": 3, "dtype": Dtype.fp32}, gpu=load_gpu(gpu))


@pytest.mark.parametrize(
    ("gpu", "measured_us"), [("a100", 5370), ("h100-pcie", 1790), ("rtx-a6000", 8100), ("t4", 71300), ("a10", 11500)]
)
def test_a_volume_of_three_channels_takes_what_it_was_measured_to(gpu, measured_us):
    """KernelBench, N 16, 64x64x64, 64 filters of 3x3x3, fp32 tensors in NCDHW."""
    sizes = {
        "dims": 3, "N": 16, "C": 3, "D": 64, "H": 64, "W": 64, "K": 64, "T": 3, "pad": (0, 0),
    }  # fmt: skip
    found = estimate_pass(conv(**sizes, dtype=Dtype.fp32, layout="NCHW"), "fprop", load_gpu(gpu), RUNTIME)
    assert measured_us / 1.4 < found.time_us < measured_us * 1.4


@pytest.mark.parametrize(("benchmark", "direct"), [(False, True), (True, False), (None, False)])
def test_alexnets_first_layer_is_slow_where_heuristics_pick(benchmark, direct):
    """KernelBench: 14.8 ms on RTX A6000, 2.97 ms on H100 PCIe at N = 256; smaller filters were timed to be faster."""
    runtime = Runtime(framework="pytorch", cudnn_benchmark=benchmark)
    sizes = {"N": 256, "C": 3, "K": 96, "H": 224, "W": 224, "R": 11, "S": 11, "U": 4, "V": 4, "pad": (2, 2)}
    layer = {**sizes, "layout": "NCHW", "dtype": Dtype.fp32}
    assert is_direct(layer, runtime=runtime) is direct
    assert not is_direct({**layer, "R": 7, "S": 7}, runtime=runtime)
    if direct:
        for gpu, measured_us in (("rtx-a6000", 14800), ("h100-pcie", 2965)):
            found = estimate_pass(conv(**layer), "fprop", load_gpu(gpu), runtime)
            assert measured_us / 1.6 < found.time_us < measured_us * 1.6
