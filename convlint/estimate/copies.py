"""Copies around the kernel: transposes of NCHW tensors for Tensor Cores, and padding of misaligned channels."""

from __future__ import annotations

from msgspec import Struct

from convlint.estimate import constants as const
from convlint.estimate.board import Board
from convlint.estimate.problem import Problem
from convlint.model.layer import Pass


class Copies(Struct, frozen=True, gc=False):
    """Time of the copies, by cause, and their size. A transpose into padded channels is one copy, and a transpose."""

    transposes_us: float
    padding_us: float
    bytes: int = 0  # of workspace


NONE = Copies(0.0, 0.0)


def copies(problem: Problem, which: Pass, c: int, k: int, *, pads: bool, board: Board) -> Copies:
    """Each tensor in the wrong layout or with misaligned channels is read as it is and written as the kernel wants it.

    `c` and `k` are padded channels per group; `pads`: copies are what makes them so (a TensorRT engine has its
    tensors padded already). Without misalignment only the activations are transposed, in dgrad the weights too
    (CG 4.1); where C or K is misaligned, the weights are copied as well (CG 4.4.3). From cc 8.0 on, fprop writes y as
    it is wanted, in NCHW and with any K; and 1x1 filters on fp32 tensors in NCHW, a batched product as it stands, have
    nothing transposed.
    """
    raw_c, raw_k = problem.C // problem.groups, problem.K // problem.groups
    nchw = problem.nchw
    if not nchw and ((c == raw_c and k == raw_k) or not pads):
        return NONE
    pixels_in, pixels_out, taps = problem.pixels_in, problem.pixels_out, problem.taps
    bytes_ = problem.groups * problem.element_bytes
    kept_in_l2 = board.l2_bytes * const.COPY_IN_L2 if board.modern else 0
    transposes = padding = 0.0
    workspace = 0
    writes = board.modern and which == "fprop"
    product = writes and nchw and problem.element_bytes == 4 and taps == 1 and not (problem.strided or problem.padded)
    for raw, wide, transposed, kept in (
        (pixels_in * raw_c, pixels_in * c, nchw, product),
        (pixels_out * raw_k, pixels_out * k, nchw, writes),
        (taps * raw_c * raw_k, taps * c * k, nchw and which == "dgrad", False),
    ):
        if kept or (raw == wide and not transposed):
            continue
        # A copy that L2 holds is read from there by the kernel that it was made for, and overwritten by the next one.
        written = wide if wide * bytes_ > kept_in_l2 else 0
        time = (raw + written) * bytes_ * board.copy_us_per_byte + const.COPY_KERNEL_US
        if transposed or pads:
            workspace += wide * bytes_
        if transposed:
            transposes += time
        elif pads:
            padding += time
    return Copies(transposes, padding, workspace)


def input_copy(size: int, board: Board) -> Copies:
    """A tensor of `size` bytes, written once more in the layout that the kernel reads: the framework's own copy."""
    kept_in_l2 = board.l2_bytes * const.COPY_IN_L2 if board.modern else 0
    moved = size + (size if size > kept_in_l2 else 0)
    return Copies(moved * board.copy_us_per_byte + const.COPY_KERNEL_US, 0.0, size)
