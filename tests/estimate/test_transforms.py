"""Winograd and FFT: where they stand beside implicit GEMM."""

from __future__ import annotations

import pytest
from convolutions import conv
from msgspec.structs import replace

from convlint.estimate import constants as const
from convlint.estimate import estimate_layer, estimate_pass
from convlint.estimate.problem import problem_of
from convlint.estimate.transforms import transforms
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


BIG_CACHE, NO_CACHE = 10**12, 0


def lowered(which="fprop", l2_bytes=BIG_CACHE, **sizes):
    layer = conv(**{"N": 32, "C": 128, "K": 96, "dtype": Dtype.fp32, "H": 28, "W": 28} | sizes)
    return transforms(problem_of(layer), which, const.SIMT, l2_bytes, searched=True)


def kinds(which="fprop", **sizes):
    return {lowering.table for lowering in lowered(which, **sizes)}


@pytest.mark.parametrize(
    ("sizes", "which", "expected"),
    [
        ({"R": 3, "S": 3}, "fprop", {"winograd", "fused winograd"}),
        ({"R": 3, "S": 3}, "dgrad", {"winograd", "fused winograd"}),
        ({"R": 3, "S": 3}, "wgrad", {"winograd"}),
        ({"R": 3, "S": 3, "N": 12}, "fprop", {"winograd", "fused winograd"}),
        ({"R": 3, "S": 3, "N": 11}, "fprop", {"fused winograd"}),  # small batches keep to the fused kernel
        ({"R": 3, "S": 3, "N": 1}, "wgrad", {"winograd"}),
        ({"R": 5, "S": 5, "N": 1}, "fprop", {"winograd", "fft"}),
        ({"R": 3, "S": 5}, "fprop", set()),
        ({"R": 5, "S": 3}, "fprop", {"fft"}),
        ({"R": 4, "S": 4}, "fprop", set()),
        ({"R": 9, "S": 9}, "fprop", {"fft"}),
        ({"R": 10, "S": 10}, "fprop", set()),
        ({"R": 7, "S": 31, "W": 64}, "fprop", {"fft"}),
        ({"R": 7, "S": 32, "W": 64}, "fprop", set()),
        ({"R": 3, "S": 3, "U": 2}, "fprop", set()),
        ({"R": 3, "S": 3, "V": 2}, "fprop", set()),
        ({"R": 3, "S": 3, "groups": 2}, "fprop", set()),
        ({"R": 1, "S": 1}, "fprop", set()),
    ],
)
def test_where_a_transform_applies(sizes, which, expected):
    assert kinds(which, **sizes) == expected


@pytest.mark.parametrize(
    ("which", "gemm"),
    [("fprop", (32 * 49, 96, 16)), ("dgrad", (32 * 49, 128, 12)), ("wgrad", (128, 96, 32 * 49 // 8))],
)
def test_winograd_is_a_product_for_each_of_36_points(which, gemm):
    """28x28 outputs make 7x7 tiles of 4x4; a step takes 8 channels."""
    (found,) = (one for one in lowered(which) if one.table == "winograd")
    assert (found.batch, found.M, found.N, found.steps) == (36, *gemm)
    assert found.extra_kernels == 3


def test_what_l2_cannot_hold_is_written_and_read():
    small, large = (
        next(one for one in lowered(l2_bytes=size) if one.table == "winograd").serial_bytes
        for size in (BIG_CACHE, NO_CACHE)
    )
    tensors = 4 * (32 * 128 * 28 * 28 + 32 * 96 * 28 * 28)
    tiles = 32 * 49
    assert small == tensors
    assert large == tensors + 144 * (1.5 * tiles * 128 + 3 * 128 * 96 + 1.5 * tiles * 96)


@pytest.mark.parametrize(("benchmark", "algorithm"), [(True, "fft"), (None, "fft"), (False, "implicit-gemm")])
def test_fft_is_found_by_a_search(benchmark, algorithm):
    """Without a word on it, the best is taken to be found."""
    layer = conv(N=64, C=256, K=256, H=28, W=28, R=9, S=9, layout="NCHW", dtype=Dtype.fp32)
    runtime = Runtime(tf32=False, framework="pytorch", cudnn_benchmark=benchmark)
    assert estimate_pass(layer, "fprop", load_gpu("v100"), runtime).algorithm == algorithm


def test_a_smaller_batch_takes_no_longer_where_there_is_no_fused_kernel():
    """Kepler: below twelve images the kernel with a workspace is not given up for implicit GEMM."""
    k80 = load_gpu("k80")
    times = [
        estimate_layer(conv(N=N, C=320, K=320, H=64, W=64, dtype=Dtype.fp32, layout="NCHW"), k80, Runtime(), "training")
        for N in (4, 8, 12, 16)
    ]
    assert all(times)
    each = [estimate.time_us for estimate in times if estimate is not None]
    assert each == sorted(each)
