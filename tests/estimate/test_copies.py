"""Copies around the kernel: transposes of NCHW tensors, and channels copied into aligned ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
from convolutions import A100, RUNTIME, conv, fprop

from convlint.estimate import estimate_pass
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
