"""Copies around the kernel: transposes of NCHW tensors, and channels copied into aligned ones."""

from __future__ import annotations

import pytest
from convolutions import A100, RUNTIME, conv, fprop
from msgspec.structs import replace

from convlint.estimate import estimate_pass
from convlint.estimate.copies import copies
from convlint.estimate.problem import problem_of
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import PASSES, Dtype
from convlint.model.runtime import Runtime
from convlint.model.version import Version


@pytest.mark.parametrize("which", PASSES)
def test_fact_11_nchw_costs_transposes(which):
    ratios = []
    for taps in (1, 3):
        nchw, nhwc = (
            estimate_pass(conv(R=taps, S=taps, layout=layout), which, A100, RUNTIME) for layout in ("NCHW", "NHWC")
        )
        assert nchw.transposes_us > 0 == nhwc.transposes_us
        ratios.append(nchw.time_us / nhwc.time_us)
    assert ratios[0] > ratios[1] > 1


def test_auto_layout_is_the_best():
    for gpu in (A100, load_gpu("k80")):
        for dtype in (Dtype.fp16, Dtype.fp32):
            best = min(fprop(conv(layout=layout, dtype=dtype), gpu).time_us for layout in ("NCHW", "NHWC"))
            assert fprop(conv(layout="auto", dtype=dtype), gpu).time_us == best


def test_misaligned_channels_are_padded_or_refused_by_version():
    odd, even = conv(C=62, K=128), conv(C=64, K=128)
    padded, aligned = fprop(odd), fprop(even)
    assert padded.tensor_cores
    assert padded.padding_us > 0 == aligned.padding_us
    assert padded.time_us == pytest.approx(aligned.time_us + padded.padding_us)
    old = Runtime(cudnn=Version("7.6.2"))
    refused = fprop(odd, load_gpu("v100"), old)
    assert not refused.tensor_cores
    assert refused.time_us > 2 * fprop(odd, load_gpu("v100")).time_us
    assert fprop(even, load_gpu("v100"), old).tensor_cores
    assert fprop(replace(odd, layout="NCHW"), load_gpu("v100"), old).tensor_cores
    assert fprop(odd, A100, Runtime(framework="tensorrt")).padding_us == 0


SMALL = {"N": 2, "C": 6, "K": 16, "H": 10, "W": 12}
PIXELS = 2 * 10 * 12


@pytest.mark.parametrize(
    ("layout", "which", "c", "pads", "transposes", "padding"),
    [
        # (elements read and written, kernels) of each cause
        ("NHWC", "fprop", 6, True, (0, 0), (0, 0)),
        ("NHWC", "fprop", 8, True, (0, 0), (PIXELS * 14 + 9 * 16 * 14, 2)),
        ("NHWC", "fprop", 8, False, (0, 0), (0, 0)),  # an engine has its tensors padded already
        ("NCHW", "fprop", 6, True, (PIXELS * 12 + PIXELS * 32, 2), (0, 0)),
        ("NCHW", "wgrad", 6, True, (PIXELS * 12 + PIXELS * 32, 2), (0, 0)),
        ("NCHW", "dgrad", 6, True, (PIXELS * 12 + PIXELS * 32 + 9 * 16 * 12, 3), (0, 0)),
        ("NCHW", "fprop", 8, True, (PIXELS * 14 + PIXELS * 32, 2), (9 * 16 * 14, 1)),
        ("NCHW", "fprop", 8, False, (PIXELS * 14 + PIXELS * 32, 2), (0, 0)),
    ],
)
def test_what_is_copied(layout, which, c, pads, transposes, padding):
    problem = problem_of(conv(**SMALL, layout=layout))
    found = copies(problem, which, c, 16, pads=pads, us_per_byte=0.5)
    expected = [2 * elements * 0.5 + 5.0 * kernels for elements, kernels in (transposes, padding)]
    assert [found.transposes_us, found.padding_us] == pytest.approx(expected)


@pytest.mark.parametrize(("cudnn", "tensor_cores"), [("7.6.2", False), ("7.6.3", True), (None, True)])
def test_the_release_that_pads(cudnn, tensor_cores):
    runtime = Runtime(cudnn=None if cudnn is None else Version(cudnn))
    assert fprop(conv(C=62, K=128), load_gpu("v100"), runtime).tensor_cores is tensor_cores
