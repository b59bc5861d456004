"""New widths for groups of channels: what several fixes want of one group, and what it can be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import lcm

from convlint.model.channels import ChannelGroup, Channels
from convlint.model.layer import ConvLayer

MOST_WIDENING = 0.25  # beyond what the fixes want
_ROUNDEST = 16  # channels: no vector of a Tensor Core has more


def group_of(channels: Channels, layer: ConvLayer, index: int, field: str, value: int) -> tuple[int, int] | None:
    """(the group that the C or K of a layer is, how wide it is once that is `value`); None where it is not one group.

    `index` is the layer's. The K of a depthwise convolution follows its C.
    """
    if field == "K" and index in channels.written:
        return channels.written[index], value
    axis = channels.read.get(index, ())
    if len(axis) != 1:
        return None
    number, scale = axis[0]
    if field == "K":
        if not (layer.depthwise and layer.C and layer.K) or layer.K % layer.C:
            return None
        scale *= layer.K // layer.C
    width = value / scale
    return (number, int(width)) if width.denominator == 1 else None


def obstacle(group: ChannelGroup, wanted: Iterable[int]) -> str:
    """Why nothing can be made of what is wanted of a group; empty where something can."""
    if group.fixed and not (group.only_input and all(width >= group.width for width in wanted)):
        return group.fixed[0]
    return ""


def agreed(group: ChannelGroup, wanted: Mapping[int, object]) -> int | None:
    """The width that satisfies all that is `wanted`, the first of which counts most; None where there is none.

    Of several that are no narrower than now, it is the widest; where some take away and some add, the first.
    """
    first = next(iter(wanted))
    width = max(wanted) if min(wanted) >= group.width else first
    if width % group.multiple_of == 0:
        return width
    if width < group.width:
        return None
    return _aligned(group, width)


def _aligned(group: ChannelGroup, width: int) -> int | None:
    """The least width from `width` on that its groups divide, and that is as round as `width` is where that is near."""
    step = min(width & -width, _ROUNDEST)
    while step >= 1:
        common = lcm(step, group.multiple_of)
        found = -(-width // common) * common
        if found <= width * (1 + MOST_WIDENING):
            return found
        step //= 2
    return None
