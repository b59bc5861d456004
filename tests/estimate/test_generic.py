"""Passes that no tiled kernel takes."""

from __future__ import annotations

import pytest
from convolutions import A100, RUNTIME, conv

from convlint.estimate import constants as const
from convlint.estimate import estimate_pass
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import PASSES, Dtype
from convlint.model.runtime import Runtime

VOLUME = {"dims": 3, "D": 16, "T": 3, "H": 64, "W": 64, "N": 4, "PadD": 1}


def is_direct(sizes, which="fprop", gpu=A100, runtime=RUNTIME):
    return estimate_pass(conv(**sizes), which, gpu, runtime).algorithm == "direct"


@pytest.mark.parametrize(
    ("sizes", "direct"),
    [
        ({"groups": 4, "C": 32, "K": 64, "dtype": Dtype.fp32}, True),
        ({"groups": 4, "C": 128, "K": 128, "dtype": Dtype.fp32}, True),
        ({"groups": 4, "C": 132, "K": 132, "dtype": Dtype.fp32}, False),  # 33 channels are worth a GEMM
        ({**VOLUME, "C": 3, "dtype": Dtype.fp32}, True),
        ({**VOLUME, "C": 6, "dtype": Dtype.fp32}, True),
        ({**VOLUME, "C": 8, "dtype": Dtype.fp32}, False),
        ({**VOLUME, "C": 3, "dtype": Dtype.fp16}, False),
        ({"groups": 4, "C": 96, "K": 96, "dtype": Dtype.fp16}, True),  # 24 is no power of two
        ({"groups": 4, "C": 128, "K": 128, "dtype": Dtype.fp16}, False),
    ],
)
def test_which_passes(sizes, direct):
    assert is_direct(sizes) is direct


def test_odd_groups_are_slow_in_nhwc_alone():
    odd = {"groups": 8, "C": 192, "K": 192, "dtype": Dtype.fp16}
    assert not is_direct({**odd, "layout": "NCHW"})
    assert not is_direct(odd, gpu=load_gpu("v100"))  # nothing was timed before cc 8.0
    assert not is_direct(odd, runtime=Runtime(framework="tensorrt"))
    for which in ("dgrad", "wgrad"):
        fprop, gradient = (estimate_pass(conv(**odd), one, A100, RUNTIME) for one in ("fprop", which))
        assert gradient.time_us > 3 * fprop.time_us


@pytest.mark.parametrize("which", PASSES)
def test_flops_per_clock_and_sm(which):
    layer = conv(groups=4, C=64, K=64, N=64, dtype=Dtype.fp32)
    found = estimate_pass(layer, which, A100, RUNTIME)
    rate = found.flops / (found.time_us - found.overhead_us) * 1e6 / (A100.sms * A100.boost_clock_hz)
    assert rate == pytest.approx(const.GROUPED_DIRECT, rel=0.02)


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
