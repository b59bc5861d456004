"""The arithmetic of one axis of a convolution: sizes, strides, padding. Plain numbers in, plain numbers out."""

from __future__ import annotations


def output_size(size: int, *, stride: int, pad: int, dilation: int, taps: int) -> int:
    """Output size of a convolution along one axis; `pad` is both sides added up. May be < 1: invalid (CG 5.1)."""
    return (size + pad - dilation * (taps - 1) - 1) // stride + 1


def transposed_output_size(size: int, *, stride: int, pad: int, dilation: int, taps: int, output_padding: int) -> int:
    """Output size of a transposed convolution along one axis; `pad` is both sides added up."""
    return (size - 1) * stride - pad + dilation * (taps - 1) + output_padding + 1


def same_padding(size: int | None, *, stride: int, dilation: int, taps: int) -> tuple[int, int] | None:
    """Begin and end padding of "same": output = ceil(size / stride), the odd element at the end.

    None where the size is unknown and the stride makes the padding depend on it.
    """
    extent = dilation * (taps - 1)
    if stride == 1:
        total = extent
    elif size is None:
        return None
    else:
        total = max((-(-size // stride) - 1) * stride + extent + 1 - size, 0)
    return total // 2, total - total // 2
