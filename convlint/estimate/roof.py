"""The most that a unit does: what its data sheet promises, and what the fastest kernel known to the model sustains."""

from __future__ import annotations

from msgspec import Struct

from convlint.model.layer import Dtype


class Roof(Struct, frozen=True, kw_only=True, gc=False):
    """The limits of one kind of arithmetic on one GPU; rates in FLOP/s (int8: OP/s) and bytes/s.

    What is reached is that of the largest tile, without latency, rounds and what tiles or waves leave empty, and of a
    kernel that streams. A pass is above it where it needs less than is counted: fewer multiplications by Winograd and
    FFT, fewer bytes by a stride that skips a part of the input.
    """

    dtype: Dtype  # that is multiplied
    tensor_cores: bool
    fp16_sums: bool  # at a rate of its own: TensorRT on GeForce
    peak: float
    reached: float
    bandwidth: float
    reached_bandwidth: float
