"""What norms take in PyTorch beyond the bytes that they move: its own kernels, and cuDNN's."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from convlint.estimate.board import Board
from convlint.model.network import Work
from convlint.model.runtime import Version

# PyTorch runs batch norms of bf16 by kernels of its own, not by cuDNN's (_select_batch_norm_backend in
# ATen/native/Normalization.cpp). Clocks of one SM for an element forward in training, forward in inference and
# backward, in NCHW and in NHWC, which one position for each image is, too. In NCHW they are those of ResNet-50 as a
# whole, for norms of unknown sizes, and before cc 7.0, where they are right (GTX 1080 Ti; Volta and Turing show the
# blocks). Fit: traces of ResNet-50's training on H100, PyTorch 2.11; elsewhere assumed.
_OWN_BATCH_NORM: Final[Mapping[bool, tuple[float, float, float]]] = {False: (2.2, 0.83, 3.3), True: (1.34, 0.47, 1.28)}
# In NCHW a block of 512 threads sums up a channel, and on the way back does all else (batch_norm_stats_cuda_template in
# Normalization.cuh), so that few channels leave SMs idle: clocks of a block at least, for an element of its channel,
# and for each block that its SM runs at once; forward and backward. Fit: the twelve sizes of the same traces, and
# channels of volumes on H200; it meets them to 15 and 7 %.
_OWN_SUMS: Final = ((3000, 1.35, 0.28), (2000, 2.9, 0.9))
_THREADS_OF_SUM: Final = 512
# Forward another kernel gives each channel of each image to a block of its own: clocks of an SM for it, at least and
# for an element.
_OWN_TRANSFORM: Final = (155, 0.62)
# cuDNN's kernels for NCHW in training give each channel to one block (bn_fw_tr_1C11_kernel_NCHW and
# bn_bw_1C11_kernel_new), so that 16 channels take as long as 64: clocks of it for an element, forward and backward,
# where a channel has more elements than a block holds; by bytes of an element. Fit: traces of ResNets, MobileNetV3 and
# HRNet with TF32 on H100, cuDNN 9.19; in 16 bits training on RTX 3090, PyTorch 1.12 (MobileNets stood at 0.86 of the
# measured time without it). Some generations are no faster in 16 bits. Fit: ResNet-50 with autocast on three A100 and
# two H100, PyTorch 1.13 (0.76 to 0.89 of the measured steps without it). Timed since on H200, cuDNN 9.19: fp16 takes
# 1.0 to 1.28 of fp32 forward and 0.71 to 0.97 backward.
_CUDNN_BATCH_NORM: Final[Mapping[int, tuple[float, float]]] = {4: (1.2, 3.1), 2: (0.72, 1.86)}
_NO_FASTER_IN_16_BITS: Final = ("8.0", "9.0")
# On those, how many times as long such a block takes for each that its SM runs beside it, forward and backward. Fit:
# single norms of 64 to 512 channels on H200, cuDNN 9.19; of ResNet-50 with autocast on A100 and H100 it brings the
# published steps from 0.85 to 0.97 of theirs to 0.92 to 1.03.
_CUDNN_BESIDE: Final = (0.65, 0.15)
_HELD_CHANNEL: Final = (12_544, 50_176)  # are held, are not
# A norm of stored statistics goes back through PyTorch's own kernels (cudnn_batch_norm in derivatives.yaml), whatever
# its dtype: clocks of one SM for an element where only what it reads learns, and where its weights do; in NCHW and in
# NHWC, there with the copy of the gradient, which comes out in NCHW. Fit: ResNet-50's steps on H200, PyTorch 2.11
# (single norms without that copy: 1.75 and 2.3); in NCHW its sums run in the kernel of `_OWN_BATCH_NORM`, so have its.
_STORED_BACKWARD: Final[Mapping[bool, tuple[float, float]]] = {False: (0.8, 3.3), True: (2.7, 3.2)}
# Of stored statistics forward, in either layout, clocks of one SM for an element. Fit: RegNet and DenseNet with TF32 on
# H100; in 16 bits single norms on H200, which took 0.53 to 0.83.
_CUDNN_INFERENCE: Final[Mapping[int, float]] = {4: 1.0, 2: 0.66}
# An instance norm is a batch norm of one image with as many channels as all images have together (instance_norm in
# ATen/native/Normalization.cpp): clocks of one block for an element of a channel that it holds, forward and backward.
# Fit: a U-Net of 64 images under fp16 autocast on H200, PyTorch 2.11. Channels that are not held, as of volumes, take
# what a batch norm's take.
_HELD_INSTANCE: Final = (1.2, 1.4)
# Group norms read each element by an index of its own: clocks of one SM for an element, forward without its statistics,
# and backward. Fit: ResNet-50 with GroupNorm in NCHW under autocast on H100 and H200, PyTorch 2.11 (0.67 to 0.77 of the
# measured steps by bytes alone); in 16 bits inference on RTX 3090, PyTorch 2.4. Backward in 16 bits: assumed.
_GROUP_NORM: Final[Mapping[int, tuple[float, float]]] = {4: (1.6, 3.7), 2: (0.85, 1.9)}
# The statistics of a group of an image are those of one block of 512 threads (RowwiseMomentsCUDAKernel in
# group_norm_kernel.cu): clocks of it for an element that comes from memory, and from L2, which has a tensor of up to so
# large a share of it; and how many blocks an SM runs at once. Fit: bf16 on A100 and H100 (pull requests 183946 and
# 182907; 13 images of 18 channels of 512x512 and 127x127, of 6 groups as is assumed).
_MOMENTS: Final = (1.45, 0.8)
_MOMENTS_IN_L2: Final = 0.2
_MOMENTS_AT_ONCE: Final = 4
# Clocks of one SM for a row of a layer norm beside its bytes, from cc 9.0 on: forward, and backward for what it reads.
# RTX 3090 and 4090 show no such rows. Fit: ConvNeXt-T, ViT-S and Swin-T (rows of 96 to 1536 channels) on H200.
_LAYER_NORM_ROW: Final = (375.0, 120.0)
# The gradients of its weights are summed up by a block for 32 channels, which goes through all rows; from 2.8 on more
# than so many rows have a block for 32 of them (LaunchGammaBetaBackwardCUDAKernel in layer_norm_kernel.cu, pull request
# 150773). Clocks for a row: of the one SM on which such a block runs, bytes included, and of all beside the bytes.
# Fit: ViT-S, and ConvNeXt-T, on H200.
_SUMMED_AT_ONCE: Final = 65_536
_IN_PARALLEL: Final = Version("2.8")
_SUMMED_ROW: Final = 7.4
_PARALLEL_ROW: Final = 117.0


class Norm(Struct, frozen=True):
    """A norm in PyTorch: its elements, their bytes, their layout, whether its weights learn, and cuDNN runs it.

    `positions`: elements of a channel of an image, 0 if unknown.
    """

    elements: float
    positions: int
    size: int
    in_nhwc: bool
    learns: bool
    by_cudnn: bool


def _unheld(elements: float) -> float:
    """The share of a channel of so many elements, of 4 bytes, that its block does not hold."""
    fast, slow = _HELD_CHANNEL
    return min(1.0, max(0.0, (elements - fast) / (slow - fast)))


def _clocks(size: int, board: Board) -> tuple[float, float] | None:
    """Clocks of cuDNN's batch norms in NCHW for an element of a channel, forward and backward."""
    return _CUDNN_BATCH_NORM.get(4 if size == 2 and board.generation in _NO_FASTER_IN_16_BITS else size)


def batch_norm_us(norm: Norm, channel: float, board: Board, *, forward: bool) -> float:
    """The least time of a batch norm that takes the statistics of the batch; `channel`: elements, 0 if unknown."""
    if not norm.by_cudnn:
        return _own_us(norm, channel, board, forward=forward)
    clocks = _clocks(norm.size, board)
    if norm.in_nhwc or clocks is None or not channel:
        return 0.0
    each = clocks[not forward]
    if board.generation in _NO_FASTER_IN_16_BITS:
        rounds, at_once = _rounds(norm, channel, board)
        each *= rounds * (1 + _CUDNN_BESIDE[not forward] * (at_once - 1))
    return each * _unheld(channel) * channel * board.sms / board.clocks_per_us


def stored_norm_us(norm: Norm, board: Board, *, forward: bool) -> float:
    """The least time of a batch norm of stored statistics."""
    if not forward:
        clocks = _STORED_BACKWARD[norm.in_nhwc][norm.learns]
    elif norm.by_cudnn:
        clocks = _CUDNN_INFERENCE.get(norm.size, 0.0)
    elif _is_in_blocks(norm, board):
        return _transform_us(norm, board)
    else:
        clocks = _OWN_BATCH_NORM[_is_in_nhwc(norm)][1]
    return clocks * norm.elements / board.clocks_per_us


def _is_in_nhwc(norm: Norm) -> bool:
    return norm.in_nhwc or norm.positions == 1


def _is_in_blocks(norm: Norm, board: Board) -> bool:
    """Whether the clocks of PyTorch's own norms are known by their blocks."""
    return norm.positions > 0 and not _is_in_nhwc(norm) and board.cc >= "7.0"


def _rounds(norm: Norm, channel: float, board: Board) -> tuple[float, int]:
    """(rounds in which an SM runs its blocks, each of which sums up a channel; how many of them run at once)."""
    most = max(1, board.gpu.max_warps_per_sm * 32 // _THREADS_OF_SUM)
    blocks = ceil(norm.elements / channel / board.sms)
    return max(1.0, blocks / most), min(blocks, most)


def _own_us(norm: Norm, channel: float, board: Board, *, forward: bool) -> float:
    """The time of PyTorch's own batch norm of the batch's statistics; `channel`: elements, 0 if unknown."""
    if not channel or not _is_in_blocks(norm, board):
        return _OWN_BATCH_NORM[_is_in_nhwc(norm)][0 if forward else 2] * norm.elements / board.clocks_per_us
    least, each, beside = _OWN_SUMS[not forward]
    rounds, at_once = _rounds(norm, channel, board)
    clocks = rounds * (least + (each + beside * at_once) * channel)
    return clocks * board.sms / board.clocks_per_us + (_transform_us(norm, board) if forward else 0.0)


def _transform_us(norm: Norm, board: Board) -> float:
    """The time of PyTorch's kernel that normalises in NCHW by statistics that are there."""
    least, each = _OWN_TRANSFORM
    return max(least, each * norm.positions) * norm.elements / norm.positions / board.clocks_per_us


def instance_norm_us(norm: Norm, board: Board, *, forward: bool) -> float:
    """The least time of an instance norm, each channel of each image in a block of its own."""
    if not norm.by_cudnn:
        return _own_us(replace(norm, in_nhwc=False), norm.positions, board, forward=forward)
    if (unheld := _clocks(norm.size, board)) is None:
        return 0.0
    held = _HELD_INSTANCE[not forward]
    share = _unheld(norm.positions * norm.size / 4)
    clocks = held + share * max(0.0, unheld[not forward] - held)
    return clocks * max(norm.elements, norm.positions * board.sms) / board.clocks_per_us


def group_norm_us(elements: float, groups: float, size: int, board: Board, *, forward: bool) -> float:
    """The least time of a group norm; `groups`: of all images, many if unknown, and `size`: bytes of an element.

    Before cc 8.0 memory alone is taken to count.
    """
    if not board.modern or size not in _GROUP_NORM:
        return 0.0
    clocks = _GROUP_NORM[size][not forward] * elements
    if forward:
        at_once = _MOMENTS_AT_ONCE * board.sms
        share = min(1.0, _MOMENTS_IN_L2 * board.l2_bytes / (elements * size)) if elements else 0.0
        each = share * _MOMENTS[1] + (1 - share) * _MOMENTS[0]
        clocks += each * board.sms * elements / min(groups or at_once, at_once)
    return clocks / board.clocks_per_us


def norm_rows(work: Work, images: float) -> float:
    """The rows of a layer norm, which has a weight and (but by mean squares) a bias for each of its channels."""
    return images * sum(work.reads) / work.weights * (1 if "rms" in work.op else 2)


def layer_norm_us(rows: float, board: Board, *, forward: bool) -> float:
    """What a layer norm takes for its rows beside the bytes that it moves."""
    return _LAYER_NORM_ROW[not forward] * rows / board.clocks_per_us


def layer_norm_sums_us(rows: float, bytes_us: float, version: Version | None, board: Board) -> float:
    """What the gradients of its weights take beside `bytes_us`, that of what they read; None: the latest PyTorch."""
    if rows > _SUMMED_AT_ONCE and (version is None or version >= _IN_PARALLEL):
        return _PARALLEL_ROW * rows / board.clocks_per_us
    return max(0.0, _SUMMED_ROW * rows * board.sms / board.clocks_per_us - bytes_us)
