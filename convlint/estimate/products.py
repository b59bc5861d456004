"""The times of matrix products and of fused attention.

A product takes the time of a 1x1 convolution of the same sizes, on CUDA cores that of cuBLAS; fused attention that of
its tiles.
"""

from __future__ import annotations

from math import ceil, inf
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from convlint.estimate import constants as const
from convlint.estimate.board import ArithmeticUnit, Board, compute_dtype
from convlint.estimate.passes import pass_time_us, running_passes, time_us
from convlint.gpus.gpu import Gpu
from convlint.model.layer import ConvLayer, Dtype, Mode, Pass, with_output
from convlint.model.runtime import Runtime, framework_of

# Of what the largest tile sustains: batched products of activations. Assumed.
_BATCHED_SHARE: Final = 0.7
# cuBLAS's products in fp32: of the peak, in ConvNeXt-T with 64 images on H100; the tile is that of its large kernels.
_SIMT_SHARE: Final = 0.62
_LARGE_TILE: Final = 128
_SPLITS: Final = (2, 4, 8, 16, 32)  # of a product's sum, each of so many elements or more. Assumed
_LEAST_DEPTH: Final = 32
# Rows of a tile of split products, before and from Volta on. Fit: DeepBench's products (`deepbench_products.csv`).
_SPLIT_ROWS: Final = (64, 32)
# cuBLAS's products in fp16 on Volta over cuDNN's 1x1 convolutions: 1.18 to 1.23 in DeepBench, at 86 TFLOP/s of those.
_FASTER_ON_VOLTA: Final = 1.2
_SUM_BYTES: Final = 4


class _Attention(Struct, frozen=True):
    """A pass of fused attention: of the peak it reaches 1 / (a + b / width) x keys / (keys + `ramp`).

    Queries and keys are rounded up to tiles; `products` counts the matrix products for each pair of them.
    """

    products: int
    a: float
    b: float
    ramp: float


_TILE: Final = 64
_WIDEST: Final = 128  # that was fitted
# Fit, forward and backward: cuDNN's on H100 over 512 to 16,384 positions, widths 64 and 128 (arXiv 2407.08608,
# figures 5 and 6); ViT-S on H200, of 197 positions, comes out within a tenth forward. Elsewhere FlashAttention-2 on
# A100, 50 to 73 % of the peak (arXiv 2307.08691), the ramps taken from H100.
_HOPPER: Final = (_Attention(2, 0.88, 97.0, 116.0), _Attention(5, 1.55, 47.0, 260.0))
_ELSEWHERE: Final = (_Attention(2, 1.1, 35.0, 116.0), _Attention(5, 1.36, 29.0, 260.0))
# In fp32 Tensor Cores multiply each operand in two parts of TF32 (OpMultiplyAddFastF32 in DefaultGemmType,
# gemm_kernel_utils.h of PyTorch's memory-efficient attention), whatever is allowed elsewhere.
_PARTS_OF_FP32: Final = 3


class Products(Struct, frozen=True):
    """What multiplies on one GPU: `runtime` as products have it, `us_per_byte` of memory."""

    gpu: Gpu
    board: Board
    runtime: Runtime
    us_per_byte: float

    def linear_us(self, M: int, N: int, K: int, dtype: Dtype, mode: Mode, *, frozen: bool = False) -> float | None:
        """A product of M rows with weights as the 1x1 convolution of M images of one position, if that has a time.

        Its sum may be split, which few convolutions do forward and cuBLAS does (`sgemm_largek` and
        `splitKreduce_kernel` in a profile of ConvNeXt with one image). Nothing is padded: kernels with narrow vectors
        multiply what is misaligned.
        """
        compute = compute_dtype(dtype, self.gpu, self.runtime)
        tensor = self.board.units(compute, tensorrt=False)[0] is not None
        narrow = self._narrow(N | K, compute) if tensor else 1.0
        if narrow > 1:
            N, K = (ceil(size / const.VECTOR) * const.VECTOR for size in (N, K))
        layer = replace(_pointwise(M, N, K, dtype), frozen=frozen)
        time = time_us(layer, self.gpu, self.runtime, mode)
        if time is None:
            return None
        faster = _FASTER_ON_VOLTA if tensor and self.gpu.compute_capability == "7.0" else 1.0
        time /= faster
        products: tuple[tuple[Pass, int, int], ...] = ("fprop", N, K), ("dgrad", K, N)
        for which, columns, depth in products[: 2 if mode == "training" else 1]:
            pass_us = (pass_time_us(layer, which, self.gpu, self.runtime) or 0.0) / faster
            by_cublas_us = (self._split_us if tensor else self._by_cublas_us)(M, columns, depth, dtype)
            time -= max(0.0, pass_us - by_cublas_us)
        # Who waits for memory is no faster.
        least_us = len(running_passes(layer, mode)) * self._moving_us(M, N, K, dtype) if faster > 1 else 0.0
        return narrow * max(time, least_us)

    def _narrow(self, sizes: int, compute: Dtype) -> float:
        """How many times as long kernels take whose vectors have to divide the rows of tensors, N or K long.

        From cc 9.0 on the convolution is one of them. Before cc 8.0 nobody timed it. TensorRT, which alone multiplies
        bytes, pads.
        """
        if self.board.like_hopper or framework_of(self.runtime) == "tensorrt":
            return 1.0
        return const.NARROW_PRODUCT.get(max(2, (sizes & -sizes) * compute.bytes), 1.0)

    def _by_cublas_us(self, M: int, N: int, K: int, dtype: Dtype) -> float:
        """A product of M rows on CUDA cores by cuBLAS.

        One row reads the weights once; tiles that fill the SMs reach their share of the peak; the sums of fewer ones
        are split over more tiles, and summed up.
        """
        if M == 1:
            return N * K * dtype.bytes * self.us_per_byte + const.KERNEL_US
        tiles = self._tiles(M, N)
        if tiles >= self.gpu.sms:
            flops = 2 * tiles * _LARGE_TILE**2 * K
            compute_us = 1e6 * flops / (_SIMT_SHARE * self.gpu.peak_flops["fp32"])
            return max(compute_us, self._moving_us(M, N, K, dtype)) + const.KERNEL_US
        return self._split_us(M, N, K, dtype)

    def _split_us(self, M: int, N: int, K: int, dtype: Dtype) -> float:
        """A product whose sum is split over more tiles, and summed up; infinite where nothing is gained by that."""
        if self._tiles(M, N) >= self.gpu.sms:
            return inf
        tile = _SPLIT_ROWS[self.gpu.compute_capability >= "7.0"]
        rows, moving_us = ceil(M / tile) * tile, self._moving_us(M, N, K, dtype)
        times = [
            max(
                time_us(_pointwise(rows * parts, N, K // parts, dtype), self.gpu, self.runtime, "inference") or inf,
                moving_us,
            ) + 2 * parts * M * N * _SUM_BYTES * self.us_per_byte + const.KERNEL_US
            for parts in _SPLITS if K // parts >= _LEAST_DEPTH
        ]  # fmt: skip
        return min(times, default=inf)

    def _tiles(self, M: int, N: int) -> int:
        return ceil(M / _LARGE_TILE) * ceil(N / _LARGE_TILE)

    def _moving_us(self, M: int, N: int, K: int, dtype: Dtype) -> float:
        """Both factors and their product, through memory once."""
        return (M * K + K * N + M * N) * dtype.bytes * self.us_per_byte

    def batched_us(self, flops: float, dtype: Dtype) -> float:
        """So many FLOPs of batched products of activations; 0 where nothing multiplies this dtype."""
        unit = self._unit(dtype)
        return 0.0 if unit is None else flops / (unit.best_flops_per_us * _BATCHED_SHARE)

    def attention_us(self, heads: int, queries: int, keys: int, width: int, dtype: Dtype, *, forward: bool) -> float:
        """A pass of fused attention over the heads of all images; 0 where nothing multiplies this dtype."""
        in_parts = self.board.units(Dtype.tf32, tensorrt=False)[0] if dtype == Dtype.fp32 else None
        unit = in_parts or self._unit(dtype)
        fit = (_HOPPER if self.board.like_hopper and in_parts is None else _ELSEWHERE)[not forward]
        rows, columns = (_TILE * ceil(count / _TILE) for count in (queries, keys))
        flops = 2 * fit.products * heads * rows * columns * width
        if unit is None or not flops:
            return 0.0
        # Exponentials, which narrow heads have more of, hold slow Tensor Cores up less.
        b = fit.b / self.board.slower_than_hopper if unit.tensor and in_parts is None else fit.b
        share = columns / (columns + fit.ramp) / (fit.a + b / min(width, _WIDEST))
        return 1e6 * flops / (unit.peak * share) * (1 if in_parts is None else _PARTS_OF_FP32)

    def _unit(self, dtype: Dtype) -> ArithmeticUnit | None:
        """What multiplies this dtype."""
        tensor, simt = self.board.units(compute_dtype(dtype, self.gpu, self.runtime), tensorrt=False)
        return tensor or simt


def _pointwise(M: int, N: int, K: int, dtype: Dtype) -> ConvLayer:
    """A 1x1 convolution of M images of one position."""
    return with_output(ConvLayer(name="", N=M, C=K, K=N, H=1, W=1, R=1, S=1, dtype=dtype, layout="NHWC"))
