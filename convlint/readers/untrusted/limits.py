"""How much of one input is read: limits that several readers share, far above any real network."""

from __future__ import annotations

from collections.abc import Sequence

from convlint.errors import InputFault
from convlint.model.layer import ConvLayer

MOST_LAYERS = 10_000  # convolutions of one input
MOST_SIZE = 2**31 - 1  # elements along one axis, strides, channels, groups
MOST_AXES = 16  # of one tensor
MOST_TEXT = 500  # characters of a name
MOST_READS = 100_000  # tensors that all operations of one input read together
MOST_MESSAGES = 100  # errors reported for one input


_SIZES = ("N", "C", "D", "H", "W", "K", "Z", "P", "Q", "T", "R", "S", "StrideD", "U", "V", "PadD", "PadH", "PadW",
          "PadD_end", "PadH_end", "PadW_end", "DilD", "DilH", "DilW", "groups")  # fmt: skip


def refuse_layers(count: int) -> None:
    """Raises InputFault for more convolutions than are checked."""
    if count > MOST_LAYERS:
        raise InputFault(f"has more than {MOST_LAYERS:,} convolutions, the limit for one input")


def refuse_sizes(layers: Sequence[ConvLayer]) -> None:
    """Raises InputFault for a layer with a size that no tensor can have, whatever its format lets pass."""
    for layer in layers:
        for name in _SIZES:
            size = getattr(layer, name)
            if size is not None and size > MOST_SIZE + 1:
                raise InputFault(f"layer {layer.name!r}: {name} is {size:,}, more than 2^31")


def capped(messages: Sequence[str]) -> list[str]:
    """The first messages of many, and how many there are besides."""
    more = len(messages) - MOST_MESSAGES
    left = "1 more error is not shown" if more == 1 else f"{more:,} more errors are not shown"
    return list(messages) if more <= 0 else [*messages[:MOST_MESSAGES], left]
