"""Groups of channels that are one number: all that has to change with the width of one convolution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from convlint.model.layer import ConvLayer
from convlint.model.network import Network


class Reason(str):
    """Why channels cannot change, in English; of what it is made is kept, for other languages."""

    template: str
    name: str
    groups: int

    def __new__(cls, template: str, name: str = "", groups: int = 0) -> Reason:
        """The template with its `{name}` and `{groups}`."""
        made = super().__new__(cls, template.format(name=name, groups=groups))
        made.template, made.name, made.groups = template, name, groups
        return made


THE_INPUT = Reason("it is the network's input")

Part = tuple[int, Fraction]  # a group, and how many channels each of its channels makes here
Axis = tuple[Part, ...]


class Reader(NamedTuple):
    """A layer that reads a group: each channel of the group is `times` of its C."""

    layer: int
    times: Fraction


class ChannelGroup(Struct, frozen=True, kw_only=True):
    """Channels that are one number wherever they go.

    `writers` are the layers whose K they are, `readers` those in whose C they are; `depthwise` those of the readers
    whose K and groups follow their C. `inputs` are the operations that bring them into the network. A new width has
    to be a multiple of `multiple_of`. `fixed` says why it cannot change at all; empty where it can.
    """

    width: int
    writers: tuple[int, ...] = ()
    readers: tuple[Reader, ...] = ()
    depthwise: tuple[int, ...] = ()
    inputs: tuple[int, ...] = ()
    multiple_of: int = 1
    fixed: tuple[Reason, ...] = ()

    @property
    def layers(self) -> tuple[int, ...]:
        """All layers that change with it, in order."""
        return tuple(sorted({*self.writers, *(reader.layer for reader in self.readers)}))

    @property
    def only_input(self) -> bool:
        """Whether nothing but being the network's input keeps it as it is: zeros may be added there."""
        return self.fixed == (THE_INPUT,)


class Channels(Struct, frozen=True, kw_only=True):
    """The groups of a network, and what the channels of each operation's tensor consist of (None: unknown)."""

    groups: tuple[ChannelGroup, ...]
    axes: tuple[Axis | None, ...]
    written: Mapping[int, int]  # layer -> the group that is its K, where it is one
    read: Mapping[int, Axis]  # layer -> what its C consists of
    parts: Mapping[int, Mapping[int, Fraction | int]]  # the same: how many channels each group's channel is in its C

    def changes(self, layers: Sequence[ConvLayer], widths: Mapping[int, int]) -> dict[int, dict[str, int]]:
        """What each layer gets once the groups that `widths` names have these widths: its new C, K and groups."""
        changed = {index for number in widths for index in self.groups[number].layers}
        return {index: self.changes_of(index, layers[index], widths) for index in sorted(changed)}

    def changes_of(self, index: int, layer: ConvLayer, widths: Mapping[int, int]) -> dict[str, int]:
        """What one layer gets."""
        result = {}
        if self.written.get(index) in widths:
            result["K"] = widths[self.written[index]]
        parts = self.parts.get(index, {})
        fewer, more = (widths, parts) if len(widths) < len(parts) else (parts, widths)
        changed = [number for number in fewer if number in more]
        if changed and layer.C is not None:
            added = sum((widths[number] - self.groups[number].width) * parts[number] for number in changed)
            result["C"] = C = layer.C + int(added)
            if layer.depthwise and layer.C and layer.K:
                result |= {"K": layer.K // layer.C * C, "groups": C}
        return result

    def widened(self, network: Network, widths: Mapping[int, int]) -> Network:
        """The network with these groups as wide as `widths` says. Its own groups are those of the new one."""
        changes = self.changes(network.layers, widths)
        layers = tuple(
            replace(layer, **changes[index]) if index in changes else layer
            for index, layer in enumerate(network.layers)
        )
        edges = tuple(
            replace(edge, C=layers[edge.consumer].C)
            if edge.C is not None and edge.C == network.layers[edge.consumer].C
            else edge
            for edge in network.edges
        )
        operations = tuple(
            operation if axis is None else replace(operation, C=_width(axis, self.groups, widths))
            for operation, axis in zip(network.operations, self.axes, strict=True)
        )
        return replace(network, layers=layers, edges=edges, operations=operations)


def _width(axis: Axis, groups: Sequence[ChannelGroup], widths: Mapping[int, int]) -> int:
    return int(sum(widths.get(number, groups[number].width) * scale for number, scale in axis))
