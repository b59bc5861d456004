"""The implicit GEMMs of a convolution (CG 4.2, Table 2), its FLOPs and the elements of its tensors."""

from __future__ import annotations

from operator import attrgetter

from msgspec import Struct

from convlint.model.layer import ConvLayer, Pass


class Gemm(Struct, frozen=True, kw_only=True):
    """A batched matrix multiply `batch x (M x N x K)`; never to be mixed with the convolution's N and K."""

    M: int
    N: int
    K: int
    batch: int = 1


_sizes = attrgetter(*"NCDHWKZPQTRS")


def gemm(layer: ConvLayer, which: Pass) -> Gemm | None:
    """The implicit GEMM of one pass (CG 4.2, Table 2), per group; None where a size is unknown.

    A transposed convolution is the dgrad of the convolution that maps its output to its input, so that its wgrad
    reduces over its input positions, N·H·W.
    """
    sizes = _sizes(layer)
    if None in sizes:
        return None
    N, C, D, H, W, K, Z, P, Q, T, R, S = sizes
    groups = layer.groups
    taps = T * R * S
    c, k = C // groups, K // groups  # of one group
    if which == "fprop":
        return Gemm(M=N * Z * P * Q, N=k, K=c * taps, batch=groups)
    if which == "dgrad":
        return Gemm(M=N * D * H * W, N=c, K=k * taps, batch=groups)
    if layer.op == "conv_transpose":
        return Gemm(M=k * taps, N=c, K=N * D * H * W, batch=groups)
    return Gemm(M=c * taps, N=k, K=N * Z * P * Q, batch=groups)


def flops(layer: ConvLayer) -> int | None:
    """Useful FLOPs of one pass, 2 x multiply-accumulates: the same for fprop, dgrad and wgrad; None if unknown."""
    fprop = gemm(layer, "fprop")
    if fprop is None:
        return None
    if layer.op == "conv_transpose":  # multiplies each input position with each tap; fprop would count outputs
        dgrad = gemm(layer, "dgrad")
        assert dgrad is not None
        return 2 * dgrad.batch * dgrad.M * dgrad.N * dgrad.K
    return 2 * fprop.batch * fprop.M * fprop.N * fprop.K


def tensor_elements(layer: ConvLayer) -> tuple[int, int, int] | None:
    """Elements of the input, the weights and the output (x, w, y); None if a size is unknown."""
    sizes = _sizes(layer)
    if None in sizes:
        return None
    N, C, D, H, W, K, Z, P, Q, T, R, S = sizes
    return N * C * D * H * W, K * (C // layer.groups) * T * R * S, N * K * Z * P * Q
