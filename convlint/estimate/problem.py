"""A layer reduced to what its time depends on: a plain tuple, the same for equal layers whatever their names."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from convlint.model.layer import ConvLayer, Dtype, Layout, Pass


class Problem(Struct, frozen=True, gc=False):
    """A convolution without names. A transposed one is turned around: it is the dgrad of this problem."""

    N: int
    C: int
    D: int
    H: int
    W: int
    K: int
    Z: int
    P: int
    Q: int
    T: int
    R: int
    S: int
    StrideD: int
    U: int
    V: int
    groups: int
    padded: bool
    layout: Layout
    residual_inputs: int
    dtype: Dtype
    # What follows from those and is asked for at every pass and way to run it.
    taps: int  # filter points
    pixels_in: int
    pixels_out: int
    flops: int  # of any pass: 2 x useful multiply-accumulates
    element_bytes: int
    nchw: bool  # the tensors are known to be NCHW
    strided: bool  # any stride is greater than 1
    dilated: bool  # a depthwise layer; others take as long as without
    copies_input: bool  # of the layer, which fprop and wgrad read: it arrives in another layout


def problem_of(layer: ConvLayer) -> Problem | None:
    """The problem of a layer; None where a size or the dtype is unknown, or a size is not positive."""
    N, C, D, H, W, K = layer.N, layer.C, layer.D, layer.H, layer.W, layer.K
    Z, P, Q, T, R, S, dtype = layer.Z, layer.P, layer.Q, layer.T, layer.R, layer.S, layer.dtype
    if N is None or C is None or D is None or H is None or W is None or K is None or dtype is None:
        return None
    if Z is None or P is None or Q is None or T is None or R is None or S is None:
        return None
    groups = layer.groups
    if min(N, C, D, H, W, K, Z, P, Q, T, R, S, layer.StrideD, layer.U, layer.V, groups) < 1 or C % groups or K % groups:
        return None
    padded = bool(layer.PadH or layer.PadW or layer.PadD or layer.PadH_end or layer.PadW_end or layer.PadD_end)
    if layer.op == "conv_transpose":
        C, D, H, W, K, Z, P, Q = K, Z, P, Q, C, D, H, W
    StrideD, U, V, taps, pixels_out = layer.StrideD, layer.U, layer.V, T * R * S, N * Z * P * Q
    return Problem(
        N, C, D, H, W, K, Z, P, Q, T, R, S, StrideD, U, V, groups, padded, layer.layout, layer.residual_inputs, dtype,
        taps, N * D * H * W, pixels_out, 2 * pixels_out * K * (C // groups) * taps, dtype.bytes,
        layer.layout == "NCHW", StrideD > 1 or U > 1 or V > 1, groups == C > 1 and (layer.DilH > 1 or layer.DilW > 1),
        layer.copies_input,
    )  # fmt: skip


def is_depthwise(problem: Problem) -> bool:
    """One input channel per group, in one or two dimensions: 3-D layers have other kernels."""
    return problem.groups > 1 and problem.groups == problem.C and problem.T == 1 and problem.D == 1


def with_batch(problem: Problem, N: int) -> Problem:
    """The same at another batch."""
    before = problem.N
    return replace(
        problem, N=N, pixels_in=problem.pixels_in // before * N, pixels_out=problem.pixels_out // before * N,
        flops=problem.flops // before * N,
    )  # fmt: skip


TURNED: dict[Pass, Pass] = {"fprop": "dgrad", "dgrad": "fprop", "wgrad": "wgrad"}
