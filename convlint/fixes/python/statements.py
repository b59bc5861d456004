"""What constructor calls must state once layers change, and which of these statements depend on each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct

from convlint.fixes.plan import group_of
from convlint.model.channels import Channels, channels_of
from convlint.model.layer import ConvLayer
from convlint.model.location import Span
from convlint.model.network import Network
from convlint.model.report import Scalar

Asked = tuple[int, str]  # a layer by its index, and one of its fields
OF_A_NORM = "channels"
_AXES = ("D", "H", "W")
_FIELDS: Mapping[str, tuple[str, ...]] = {  # parameter -> the fields that it states, one for each of D, H, W
    "in_channels": ("C",), "out_channels": ("K",), "groups": ("groups",), "bias": ("bias",),
    "kernel_size": ("T", "R", "S"), "stride": ("StrideD", "U", "V"), "padding": ("PadD", "PadH", "PadW"),
    "dilation": ("DilD", "DilH", "DilW"),
}  # fmt: skip
_PARAMETER = {field: name for name, fields in _FIELDS.items() for field in fields}
_PARAMETER |= {f"Pad{axis}_end": "padding" for axis in _AXES}


class ConstructorCall(NamedTuple):
    """A place in the user's code that constructs something."""

    path: str
    span: Span


class Statement(Struct, frozen=True, kw_only=True):
    """What one constructor call must state for `parameter`: one number for each axis, or a single one.

    It is for a layer or an operation, by index. `asked` are the changes that depend on it: they are made together, or
    none of them is.
    """

    site: ConstructorCall | None
    parameter: str
    old: tuple[int | bool, ...]
    new: tuple[int | bool, ...]
    asked: frozenset[Asked]
    layer: int | None = None
    operation: int | None = None


class Built(NamedTuple):
    """All layers, and all operations with sizes of their own, that one place constructs."""

    layers: list[int]
    operations: list[int]


class Constructed:
    """A network, and what each place in the code constructs of it."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.built: dict[ConstructorCall, Built] = {}
        for index, layer in enumerate(network.layers):
            if (site := site_of(layer)) is not None:
                self.built.setdefault(site, Built([], [])).layers.append(index)
        for number, operation in enumerate(network.operations):
            if operation.sized and operation.span is not None:
                site = ConstructorCall(operation.path, operation.span)
                self.built.setdefault(site, Built([], [])).operations.append(number)

    @cached_property
    def channels(self) -> Channels:
        """Its groups of channels; worked out where widths change."""
        return channels_of(self.network)


class Statements:
    """Of a network once its layers are as `sets` says, by index: widths are complete, with all layers that follow.

    `found` is what has to be stated, `tied` what can be had together only, and `refused` what cannot be had.
    """

    def __init__(self, constructed: Constructed, sets: Mapping[int, Mapping[str, Scalar]]) -> None:
        self.constructed, self.network, self.sets = constructed, constructed.network, sets
        self.refused: dict[Asked, str] = {}
        self.tied: list[frozenset[Asked]] = []
        self.found = [each for index in sorted(sets) for each in self._of_layer(index)]
        if any(field in ("C", "K", "groups") for fields in sets.values() for field in fields):
            self._of_widths(constructed.channels)

    def _of_layer(self, index: int) -> Iterator[Statement]:
        layer, fields = self.network.layers[index], self.sets[index]
        by_parameter: dict[str, set[Asked]] = {}
        for field in fields:
            if field not in _PARAMETER:
                self.refused[index, field] = f"{field} is nothing that the code states where it constructs the layer"
            else:
                by_parameter.setdefault(_PARAMETER[field], set()).add((index, field))
        for parameter, asked in by_parameter.items():
            names = _FIELDS[parameter]
            names = names[3 - layer.dims :] if len(names) == 3 else names
            old = [getattr(layer, name) for name in names]
            new = [fields.get(name, before) for name, before in zip(names, old, strict=True)]
            ends = [f"{name}_end" for name in names] if parameter == "padding" else []
            # PyTorch pads both sides alike, and only whole numbers and booleans are written as literals.
            uneven = any(fields.get(end, value) != value for end, value in zip(ends, new, strict=False))
            if uneven or None in old or any(type(value) not in (int, bool) for value in new):
                self.refused.update(dict.fromkeys(asked, f"{parameter} does not state such sizes"))
                continue
            yield Statement(
                site=site_of(layer), parameter=parameter, old=tuple(old), new=tuple(new),
                asked=frozenset(asked), layer=index,
            )  # fmt: skip

    def _of_widths(self, channels: Channels) -> None:
        """Ties what changes with the same channels, adds what norms have to state, and refuses what is incomplete."""
        network, widths, asked_of = self.network, {}, dict[int, set[Asked]]()
        for index, fields in self.sets.items():
            for field in fields.keys() & {"C", "K"}:
                of = group_of(channels, network.layers[index], index, field, int(fields[field]))
                if of is not None:
                    widths[of[0]] = of[1]
        follow = channels.changes(network.layers, widths)
        for index, fields in self.sets.items():
            for field in fields.keys() & {"C", "K", "groups"}:
                if follow.get(index, {}).get(field) != fields[field]:
                    self.refused[index, field] = "it is not known which other layers have to change with it"
                for number in _groups_of(channels, network.layers[index], index, field):
                    asked_of.setdefault(number, set()).add((index, field))
        for number, width in widths.items():
            group, asked = channels.groups[number], asked_of.get(number, set())
            reason = group.fixed[0] if group.fixed else ""
            if width % group.multiple_of:
                reason = f"their number has to be a multiple of {group.multiple_of}"
            elif any(not follow[index].items() <= self.sets.get(index, {}).items() for index in group.layers):
                reason = reason or "other layers would have to change with them"
            if reason:
                self.refused.update(dict.fromkeys(asked, f"{group.width} channels stay: {reason}"))
        self.tied += map(frozenset, asked_of.values())
        wider = channels.widened(network, widths).operations
        for number, (before, after) in enumerate(zip(network.operations, wider, strict=True)):
            if not before.sized or before.C == after.C or before.C is None or after.C is None:
                continue
            asked = set().union(
                *(asked_of.get(each, set()) for each, _ in channels.axes[number] or () if each in widths)
            )
            site = None if before.span is None else ConstructorCall(before.path, before.span)
            together = site is not None and bool(
                self.constructed.built[site].layers
            )  # by one call: its out_channels are both's
            self.found.append(
                Statement(
                    site=site, parameter="out_channels" if together else OF_A_NORM, old=(before.C,), new=(after.C,),
                    asked=frozenset(asked), operation=number,
                )
            )  # fmt: skip


def site_of(layer: ConvLayer) -> ConstructorCall | None:
    """Where the user's code constructs a layer."""
    span = layer.spans.get("layer")
    return None if span is None else ConstructorCall(layer.path, span)


def _groups_of(channels: Channels, layer: ConvLayer, index: int, field: str) -> list[int]:
    """The groups that a field of a layer depends on."""
    follows = layer.depthwise and index not in channels.written
    if field == "K" and not follows:
        return [channels.written[index]] if index in channels.written else []
    return [number for number, _ in channels.read.get(index, ())]
