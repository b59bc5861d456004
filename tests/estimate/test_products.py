"""Products, and fused attention against what was published and measured."""

import csv
from collections.abc import Iterable
from math import exp, log
from pathlib import Path
from statistics import fmean, median

import pytest
from msgspec.structs import replace

from convlint.estimate.board import Board, clock_under_load
from convlint.estimate.passes import of_products
from convlint.estimate.products import Products
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import Dtype
from convlint.model.runtime import Runtime

TOKENS, HIDDEN = 16_384, 2048  # of the published figures
DATA = Path(__file__).resolve().parents[2] / "benchmarks" / "data"


def products(gpu: str) -> Products:
    board = Board(load_gpu(gpu))
    return Products(board.gpu, board, of_products(Runtime(framework="pytorch")), board.us_per_byte)


@pytest.mark.parametrize(
    ("width", "length", "forward", "back"),
    [(64, 512, 335, 266), (64, 2048, 395, 395), (64, 16_384, 413, 433), (128, 512, 497, 305), (128, 16_384, 595, 516)],
)
def test_attention_on_hopper_is_cudnns(width: int, length: int, forward: float, back: float) -> None:
    """TFLOP/s on H100 (arXiv 2407.08608, figures 5 and 6)."""
    heads = TOKENS // length * (HIDDEN // width)
    for tflops, way in (forward, True), (back, False):
        flops = (4 if way else 10) * heads * length**2 * width
        us = products("h100-sxm").attention_us(heads, length, length, width, Dtype.fp16, forward=way)
        assert flops / us * 1e-6 == pytest.approx(tflops, rel=0.15)


def test_attention_holds_slow_tensor_cores_up_less() -> None:
    """H20 multiplies at a quarter of H100's rate, and takes exponentials as fast."""
    slow = products("h20")
    us = slow.attention_us(32, 4096, 4096, 64, Dtype.fp16, forward=True)
    peak = slow.gpu.peak(Dtype.fp16, tensor=True)
    assert peak is not None
    assert 0.7 < 4e6 * 32 * 4096**2 * 64 / us / peak < 0.9


def test_attention_over_few_positions_fills_its_tiles_badly() -> None:
    """ViT-S with 128 images on H200: 46 us forward, 136 back."""
    hopper = products("h200-sxm")
    us = [hopper.attention_us(128 * 6, 197, 197, 64, Dtype.bf16, forward=way) for way in (True, False)]
    assert us[0] == pytest.approx(46, rel=0.1)
    assert us[1] == pytest.approx(136, rel=0.15)
    assert us[0] == hopper.attention_us(128 * 6, 256, 256, 64, Dtype.bf16, forward=True)


def test_batched_products_take_their_share_of_the_tile() -> None:
    ampere = products("a100")
    half, single = (ampere.batched_us(1e12, dtype) for dtype in (Dtype.fp16, Dtype.fp32))
    assert 1e12 / half * 1e-6 < 312
    assert 5 < single / half < 20


def test_what_multiplies_nothing_takes_no_time() -> None:
    assert products("gtx-1080-ti").batched_us(1e12, Dtype.fp8) == 0.0
    assert products("gtx-1080-ti").attention_us(8, 64, 64, 64, Dtype.fp8, forward=True) == 0.0


@pytest.mark.parametrize(("keys", "width"), [(0, 64), (197, 0)])
def test_attention_over_nothing_takes_no_time(keys: int, width: int) -> None:
    assert products("h100-sxm").attention_us(8, 197, keys, width, Dtype.fp16, forward=True) == 0.0


@pytest.mark.parametrize("gpu", ["t4", "l4", "jetson-orin-nx-16gb"])
def test_attention_runs_at_the_clock_under_load(gpu: str) -> None:
    held = products(gpu)
    us = held.attention_us(96, 8192, 8192, 64, Dtype.fp16, forward=True)
    flops = 4 * 96 * 8192**2 * 64
    peak = load_gpu(gpu).peak(Dtype.fp16, tensor=True)
    assert peak is not None
    assert flops / us * 1e6 / (peak * clock_under_load(held.gpu, tensor=True)) == pytest.approx(0.6, rel=0.05)


def test_a_row_of_a_product_on_cuda_cores_reads_its_weights_once() -> None:
    hopper = products("h100-sxm")
    row = hopper.linear_us(1, 4096, 4096, Dtype.fp32, "inference")
    many = hopper.linear_us(4096, 4096, 4096, Dtype.fp32, "inference")
    assert row is not None
    assert many is not None
    assert row == pytest.approx(4096 * 4096 * 4 * hopper.us_per_byte, rel=0.3)
    assert many > 2 * 4096**3 / (67e6)


@pytest.mark.parametrize(("gpu", "times"), [("h100-sxm", 6), ("a100", 6), ("v100", 8)])
def test_attention_in_fp32_multiplies_parts_in_tf32(gpu: str, times: float) -> None:
    """Three products in TF32, which runs at half of fp16's rate; V100 has CUDA cores alone for it."""
    on = products(gpu)
    half, single = (on.attention_us(96, 1024, 1024, 64, dtype, forward=True) for dtype in (Dtype.fp16, Dtype.fp32))
    assert single / half == pytest.approx(times, rel=0.35)


def ratios(gpu: str, dtype: Dtype, timings: Iterable[tuple[int, int, int, float]]) -> list[float]:
    """The logarithms of predicted over measured times of (rows, outputs, depth, us) on `gpu`."""
    on = products(gpu)
    result = []
    for rows, outputs, depth, us in timings:
        predicted = on.linear_us(rows, outputs, depth, dtype, "inference")
        assert predicted is not None
        result.append(log(predicted / us))
    return result


def factor(logarithms: Iterable[float]) -> float:
    """By how much predictions are off, as a factor."""
    return exp(fmean(ratio**2 for ratio in logarithms) ** 0.5)


@pytest.mark.parametrize(
    ("gpu", "dtype", "most", "deepest"),
    [
        ("v100", Dtype.fp16, 1.26, 1.9), ("v100", Dtype.fp32, 1.2, 1.25),
        ("t4", Dtype.fp16, 1.25, 1.3), ("t4", Dtype.fp32, 1.28, 1.45),
        ("p100", Dtype.fp32, 1.42, 1.9),
    ],
)  # fmt: skip
def test_products_are_cublass(gpu: str, dtype: Dtype, most: float, deepest: float) -> None:
    """DeepBench's 160 products of each, and those of them whose sum is 500,000 deep, which has to be split."""
    with (DATA / "deepbench_products.csv").open() as lines:
        rows = [row for row in csv.DictReader(lines) if (row["gpu"], row["dtype"]) == (gpu, dtype.value)]
    timings = [(int(row["rows"]), int(row["outputs"]), int(row["depth"]), float(row["us"])) for row in rows]
    assert len(timings) == 160
    of_each = ratios(gpu, dtype, timings)
    assert factor(of_each) < most
    assert 0.8 < exp(median(of_each)) < 1.15
    assert factor(ratio for ratio, sizes in zip(of_each, timings, strict=True) if sizes[2] > 100_000) < deepest


def test_products_of_misaligned_halves_are_not_padded() -> None:
    """Those of PyTorch on A100 whose rows end at every vector, at 8 or 4 bytes, and at 2."""
    with (DATA / "gemm_padding_pairs.csv").open() as lines:
        rows = [
            row for row in csv.DictReader(lines)
            if row["mat1_dtype"] == "torch.float16" and row["mat1_stride_1"] == "1"
            and "True" not in (row["prepadded_mat1"], row["prepadded_mat2"])
        ]  # fmt: skip
    by_vector: dict[int, list[tuple[int, int, int, float]]] = {}
    for row in rows:
        M, K, N = (int(row[size]) for size in "mkn")
        by_vector.setdefault(min(8, (N | K) & -(N | K)), []).append((M, N, K, 1000 * float(row["orig_ms"])))
    assert sorted(by_vector) == [1, 2, 4, 8]
    for timings in by_vector.values():
        assert factor(ratios("a100", Dtype.fp16, timings)) < 1.35


def test_a_head_over_a_whole_map_is_split() -> None:
    """`Flatten` and `Linear(200704, 10)`, 100 images: cuBLAS splits its sum, whatever multiplies."""
    for gpu, dtype in ("t4", Dtype.fp16), ("h100-sxm", Dtype.bf16), ("v100", Dtype.fp16), ("t4", Dtype.fp32):
        on = products(gpu)
        time = on.linear_us(100, 10, 200_704, dtype, "inference")
        assert time is not None
        assert time < 5 * (100 + 16) * 200_704 * dtype.bytes * on.us_per_byte


def test_tensorrt_pads_what_is_misaligned() -> None:
    """Its tensors of 16 bits have channels in eights; PyTorch's products read rows as they are."""
    torch, tensorrt = (replace(products("a100"), runtime=Runtime(framework=name)) for name in ("pytorch", "tensorrt"))
    times = [on.linear_us(4096, 1023, 1024, Dtype.fp16, "inference") for on in (torch, tensorrt)]
    aligned = tensorrt.linear_us(4096, 1024, 1024, Dtype.fp16, "inference")
    assert None not in (*times, aligned)
    assert times[0] / times[1] > 1.5
    assert times[1] / aligned < 1.2
