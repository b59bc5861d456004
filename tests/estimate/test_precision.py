"""What a dtype is multiplied as, and on which units of which GPU."""

from __future__ import annotations

import pytest
from convolutions import RUNTIME, conv, fprop
from msgspec.structs import replace

from convlint.estimate import compute_dtype, estimate_layer
from convlint.estimate.precision import cuda_core_peak, tensor_peak
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import Dtype
from convlint.model.runtime import Runtime


@pytest.mark.parametrize(
    ("dtype", "gpu", "tf32", "expected"),
    [
        ("fp32", "a100", True, "tf32"), ("fp32", "a100", False, "fp32"), ("fp32", "t4", True, "fp32"),
        ("tf32", "a100", False, "tf32"), ("tf32", "t4", True, "fp32"), ("tf32", "v100", True, "fp32"),
        ("fp16", "v100", True, "fp16"), ("fp16", "k80", True, "fp32"), ("fp16", "p4", True, "fp32"),
        ("fp16", "p100", True, "fp16"), ("bf16", "a100", True, "bf16"), ("int8", "t4", True, "int8"),
    ],
)  # fmt: skip
def test_compute_dtype(dtype, gpu, tf32, expected):
    assert compute_dtype(Dtype(dtype), load_gpu(gpu), Runtime(tf32=tf32)) == expected


@pytest.mark.parametrize(
    ("dtype", "gpu", "tensor_cores"),
    [
        ("bf16", "v100", None), ("bf16", "t4", None), ("bf16", "a100", True), ("fp8", "a100", None),
        ("fp8", "l4", True),
        ("fp8", "h100", True), ("int8", "k80", None), ("int8", "p100", None), ("int8", "p4", False),
        ("int8", "v100", False), ("int8", "t4", True), ("fp16", "gtx-1660-ti", False), ("fp32", "k80", False),
        ("fp64", "a100", False), ("tf32", "t4", False), ("tf32", "orin", True), ("bf16", "orin", True),
    ],
)  # fmt: skip
def test_what_runs_where(dtype, gpu, tensor_cores):
    estimate = fprop(conv(dtype=Dtype(dtype), C=128, K=128), load_gpu(gpu))
    assert (None if estimate is None else estimate.tensor_cores) == tensor_cores
    layer = estimate_layer(conv(dtype=Dtype(dtype), C=128, K=128), load_gpu(gpu), RUNTIME, "inference")
    assert (layer is None) == (tensor_cores is None)


def test_geforce_accumulates_at_half_rate_except_in_tensorrt():
    layer = conv(C=512, K=512, H=28, W=28)
    ratio = (
        fprop(layer, load_gpu("rtx-3090")).time_us
        / fprop(layer, load_gpu("rtx-3090"), Runtime(framework="tensorrt")).time_us
    )
    assert 1.5 < ratio < 2.1
    board = load_gpu("a100")
    assert fprop(layer, board).time_us / fprop(layer, board, Runtime(framework="tensorrt")).time_us < 1.05


@pytest.mark.parametrize(
    ("gpu", "dtype", "of_fp16"),
    [("a100", "tf32", 0.5), ("a100", "bf16", 1.0), ("a100", "int8", 2.0), ("h100", "fp8", 2.0), ("t4", "int8", 2.0)],
)
def test_rates_of_tensor_cores(gpu, dtype, of_fp16):
    fp16, other = (tensor_peak(load_gpu(gpu), Dtype(name), fp16_accumulate=False) for name in ("fp16", dtype))
    assert other == pytest.approx(of_fp16 * fp16, rel=0.01)


@pytest.mark.parametrize(("dtype", "of_fp16"), [("tf32", 0.5), ("bf16", 1.0), ("int8", 2.0)])
def test_a_rate_that_no_source_gives_follows_from_fp16(dtype, of_fp16):
    known = load_gpu("a100")
    gpu = replace(known, peak_flops={"fp16_tensor_fp32acc": 100e12})
    assert tensor_peak(gpu, Dtype(dtype), fp16_accumulate=False) == of_fp16 * 100e12
    assert tensor_peak(replace(known, peak_flops={}), Dtype(dtype), fp16_accumulate=False) is None


def test_fp64_stays_on_cuda_cores():
    a100 = load_gpu("a100")
    assert "fp64" in a100.tensor_dtypes
    assert tensor_peak(a100, Dtype.fp64, fp16_accumulate=False) is None
    assert cuda_core_peak(a100, Dtype.fp64) == a100.peak_flops["fp64"]


@pytest.mark.parametrize(
    ("gpu", "dtype", "of_fp32"),
    [
        ("v100", "fp16", 1.0), ("p100", "fp16", 1.0), ("k80", "fp32", 1.0), ("a100", "bf16", None),
        ("a100", "fp8", None), ("p100", "int8", None), ("p4", "int8", 4.0), ("k80", "int8", None),
        ("v100", "int8", 4.0),
    ],
)  # fmt: skip
def test_rates_of_cuda_cores(gpu, dtype, of_fp32):
    found = cuda_core_peak(load_gpu(gpu), Dtype(dtype))
    fp32 = load_gpu(gpu).peak_flops["fp32"]
    assert found is None if of_fp32 is None else found == pytest.approx(of_fp32 * fp32, rel=0.02)
