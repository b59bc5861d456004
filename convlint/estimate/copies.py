"""Copies around the kernel: transposes of NCHW tensors for Tensor Cores, and padding of misaligned channels."""

from __future__ import annotations

from msgspec import Struct

from convlint.estimate import constants as const
from convlint.estimate.problem import Problem
from convlint.model.layer import Pass


class Copies(Struct, frozen=True, gc=False):
    """Time of the copies, by cause. A transpose into padded channels is one copy, counted as a transpose."""

    transposes_us: float
    padding_us: float


NONE = Copies(0.0, 0.0)


def copies(problem: Problem, which: Pass, c: int, k: int, *, pads: bool, us_per_byte: float) -> Copies:
    """Each tensor in the wrong layout or with misaligned channels is read as it is and written as the kernel wants it.

    `c` and `k` are padded channels per group; `pads`: copies are what makes them so (a TensorRT engine has its
    tensors padded already). Without misalignment only the activations are transposed, in dgrad the weights too
    (CG 4.1); where C or K is misaligned, the weights are copied as well (CG 4.4.3).
    """
    raw_c, raw_k = problem.C // problem.groups, problem.K // problem.groups
    if not problem.nchw and ((c == raw_c and k == raw_k) or not pads):
        return NONE
    pixels_in, pixels_out, taps, nchw = problem.pixels_in, problem.pixels_out, problem.taps, problem.nchw
    bytes_ = problem.groups * problem.element_bytes
    transposes = padding = 0.0
    for raw, wide, transposed in (
        (pixels_in * raw_c, pixels_in * c, nchw),
        (pixels_out * raw_k, pixels_out * k, nchw),
        (taps * raw_c * raw_k, taps * c * k, nchw and which == "dgrad"),
    ):
        if raw == wide and not transposed:
            continue
        time = (raw + wide) * bytes_ * us_per_byte + const.COPY_KERNEL_US
        if transposed:
            transposes += time
        elif pads:
            padding += time
    return Copies(transposes, padding)
