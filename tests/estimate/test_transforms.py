"""Winograd and FFT: where they stand beside implicit GEMM."""

from __future__ import annotations

from dataclasses import replace

import pytest
from convolutions import conv

from convlint.estimate import estimate_layer, estimate_pass
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import PASSES, Dtype
from convlint.model.runtime import Runtime


@pytest.mark.parametrize("gpu", ["v100", "k80", "p100", "m40"])
def test_winograd_and_fft_are_nchw_kernels(gpu):
    """pytorch#44943: channels_last fp32 is slower where no Tensor Core works."""
    for taps in (3, 5, 7):
        layer = conv(dtype=Dtype.fp32, R=taps, S=taps, C=128, K=128)
        for which in PASSES:
            nchw, nhwc, auto = (
                estimate_pass(replace(layer, layout=layout), which, load_gpu(gpu), Runtime(tf32=False))
                for layout in ("NCHW", "NHWC", "auto")
            )
            assert nhwc.algorithm == "implicit-gemm"
            assert nchw.time_us == auto.time_us <= nhwc.time_us
        nchw, nhwc = (
            estimate_layer(replace(layer, layout=layout), load_gpu(gpu), Runtime(tf32=False), "training")
            for layout in ("NCHW", "NHWC")
        )
        assert nchw.time_us < nhwc.time_us
