"""A network written as a spec: which entry reads which, and the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from convlint.errors import InputFault
from convlint.files.located_yaml import flow
from convlint.files.safe import clean, clean_path
from convlint.model.channels import channels_of
from convlint.model.layer import ConvLayer
from convlint.model.network import Edge, Network, Operation
from convlint.model.runtime import Runtime, Version
from convlint.readers.spec.fields import MAX_SIZE, UNKNOWN
from convlint.readers.spec.items import (
    CannotWire,
    SpecItem,
    SpecItems,
    SpecNames,
    compact,
    entry_of,
    keeps_channels,
    shared_by,
    uses,
)
from convlint.readers.spec.layer import written_by
from convlint.readers.spec.shapes import AGAIN, Shape

READ_ON = "read by other operations"
_HANDED_OUT = "outputs"
_MOST_PASSED = 32  # tensors that something opaque is made of, before it is written itself
_AXES = ("W", "HW", "DHW")


def wired(network: Network, entries: Sequence[dict[str, Any]], names: SpecNames, batch: int | None) -> list[SpecItem]:
    """The items, in order; `entries` are the convolutions, `batch` the N that all share. Raises CannotWire."""
    first = dict.fromkeys(each.layer for each in network.operations if each.layer is not None)
    if list(first) != list(range(len(network.layers))):
        raise CannotWire("the operations do not run the layers in their order")
    return _Wiring(network, entries, SpecItems(names, batch)).written()


class _Wiring:
    """One pass over the operations; `at` is what stands in the spec for the tensor of each, or it was made of."""

    def __init__(self, network: Network, entries: Sequence[dict[str, Any]], items: SpecItems) -> None:
        self.layers, self.operations, self.entries, self.items = network.layers, network.operations, entries, items
        self.channels = channels_of(network)
        self.edges = {edge.consumer: edge for edge in network.edges}
        self.runs = Counter(each.layer for each in network.operations if each.layer is not None)
        self.norms = {
            index: each.name for each in network.operations if each.kind == "batchnorm" for index in each.inputs
        }
        self.at: list[list[Shape]] = []
        self.convs: dict[int, dict[str, Any]] = {}  # the item of each layer
        self.names: dict[int, list[str]] = {}  # of the items that run each layer
        self.outputs: dict[str, None] = {}  # what leaves the network, or is lost to what a spec cannot say

    def written(self) -> list[SpecItem]:
        """All items, closed by readers of what the network hands out, or reads on in ways that are left out."""
        items = self.items
        for number, use in enumerate(uses(self.operations, self.channels)):
            stands = [] if use == "left out" else self._passed(self.operations[number])
            if use == "written":
                stands = [self._written(number, self.operations[number])]
            self.at.append(stands)
        # read by more than a norm, which is not written: by what is left out, or by none but the network's user
        unread = [names[0] for index, names in self.names.items()
                  if self.layers[index].norm_follows is False and items.read.isdisjoint(names)]  # fmt: skip
        # what nothing reads is an output, unless nothing is wired to it
        alone = {item["name"] for item in self.convs.values() if "input" not in item}
        read = items.read | alone | set(unread)
        items.sink(_HANDED_OUT, [name for name in self.outputs if name in read])
        items.sink(READ_ON, [name for name in unread if name not in items.read])
        for index, names in self.names.items():
            if self.layers[index].norm_follows is None and not items.read.isdisjoint(names):
                raise CannotWire("what reads some of the layers is not known")
        return items.written

    def _passed(self, operation: Operation) -> list[Shape]:
        """What stands for a tensor that is not written: what it is made of."""
        given = list({shape.source: shape for index in operation.inputs for shape in self.at[index]}.values())
        return given if len(given) <= _MOST_PASSED else [self._sized(operation, "reshape", given)]

    def _written(self, number: int, operation: Operation) -> Shape:
        """What stands for a tensor that convolutions read, or whose channels they write."""
        if operation.layer is not None:
            shape = self._conv(number, operation, operation.layer)
        else:
            shape = self._carrier(number, operation)
        if operation.output and operation.kind not in ("input", "reshape"):
            self.outputs[shape.source] = None
        return shape

    def _carrier(self, number: int, operation: Operation) -> Shape:
        """The same for an operation that is no convolution."""
        axes, kind, dims = self.channels.axes, operation.kind, _dims_of(operation)
        given = [shape for index in operation.inputs for shape in self.at[index]]
        if kind == "input":
            return self._sized(operation, "input", ())
        if not keeps_channels(operation, axes[number], [axes[index] for index in operation.inputs]):
            return self._sized(operation, "reshape", given)
        shape, name = given[0], operation.name
        try:
            joined = given if kind == "concat" else list({each.source: each for each in given}.values())
            if kind in ("add", "concat") and len(joined) > 1:
                shape = self.items.put(name, kind, joined)
            elif kind in ("pixel_shuffle", "pixel_unshuffle"):
                shape = self.items.put(name, kind, given, {"scale": operation.factor})
            if operation.groups > 1:
                shape = self.items.put(name, "groupnorm", [shape], {"groups": operation.groups})
        except InputFault:  # sizes that do not go together, which the network's reader let pass
            return self._sized(operation, "reshape", given)
        sizes = {axis: _size(getattr(operation, axis)) for axis in _AXES[dims - 1]}
        return self._resized(name, shape, sizes, dims) if kind == "resize" else shape

    def _sized(self, operation: Operation, op: str, given: Sequence[Shape]) -> Shape:
        """An item that states what it hands on."""
        dims = _dims_of(operation)
        if op == "reshape" and not given:
            given = [self.items.nothing(dims)]
        sizes = {axis: _size(getattr(operation, axis)) for axis in ("C", *_AXES[dims - 1])}
        return self._stated(operation.name, op, sizes, dims, given, operation.where)

    def _stated(
        self, name: str, op: str, sizes: Mapping[str, int | None], dims: int, given: Sequence[Shape], where: str = ""
    ) -> Shape:
        known = {axis: size for axis, size in sizes.items() if size is not None}
        distinct = list({each.source: each for each in given}.values())
        fields = _dims(dims, distinct[0].dims if distinct else None) | known
        return self.items.put(name, op, distinct, fields, where)

    def _resized(self, name: str, shape: Shape, sizes: Mapping[str, int | None], dims: int) -> Shape:
        """The shape with these sizes; itself where it has them."""
        if dims == shape.dims and all(getattr(shape, axis) == size for axis, size in sizes.items()):
            return shape
        fields = _dims(dims, shape.dims)
        if all(size == 1 for size in sizes.values()):
            return self.items.put(name, "global_pool", [shape], fields)
        written = [UNKNOWN if size is None else size for size in sizes.values()]
        return self.items.put(name, "resize", [shape], {**fields, "size": compact(written)})

    def _conv(self, number: int, operation: Operation, index: int) -> Shape:
        """What a layer hands on that runs, for the first time or again, behind the norm that alone reads it."""
        layer, runs = self.layers[index], self.names.setdefault(index, [])
        given = self.at[operation.inputs[0]][0] if operation.inputs else None
        source = None if given is None else self._fitting(layer, given, self.edges.get(index), again=bool(runs))
        if runs:
            if source is None:
                source = self.items.nothing(layer.dims)
            name = self.items.put(layer.name, AGAIN, [source], {"weights": runs[0]}).source
        else:
            name = self._first(layer, index, source, operation.weights)
        runs.append(name)
        if source is not None and self._seems_copied(layer, self.edges.get(index), source):
            self.convs[index]["copied"] = False
        shape = replace(written_by(layer, index), source=name)
        if layer.norm_follows:
            shape = self.items.put(self.norms.get(number) or f"{name} norm", "batchnorm", [shape])
        return shape

    def _first(self, layer: ConvLayer, index: int, source: Shape | None, weights: int | None) -> str:
        entry = dict(self.entries[index])
        if weights is not None and weights in self.convs and _alike(layer, self.layers[weights]):
            entry["weights"] = self.convs[weights]["name"]
        if source is None and None in (layer.C, layer.H, layer.W) and self.items.written:
            source = self.items.nothing(layer.dims)  # else the item before would be taken for its input
        if source is not None:
            entry |= _dims(layer.dims, source.dims)
        calls = entry.pop("calls", 1)
        if calls != self.runs[index]:
            entry["calls"] = calls
        self.convs[index] = self.items.conv(index, entry, source)
        name: str = entry["name"]
        return name

    def _seems_copied(self, layer: ConvLayer, edge: Edge | None, source: Shape) -> bool:
        """Whether layouts differ along a wire on which nothing is copied."""
        layouts = {self.layers[producer].layout for producer in source.producers} - {"auto", layer.layout}
        return layer.layout != "auto" and bool(layouts) and (edge is None or edge.copied is False)

    def _fitting(self, layer: ConvLayer, given: Shape, edge: Edge | None, *, again: bool) -> Shape:
        """What arrives, as the layer's reader saw it: neither what it did not know, nor another fault, or none."""
        told = {
            axis: getattr(layer, axis) if again or edge is None else getattr(edge, axis)
            for axis in ("C", *_AXES[layer.dims - 1])
        }
        wrong = [axis for axis, size in told.items() if not _fits(getattr(layer, axis), size, getattr(given, axis))]
        if not wrong and (again or layer.N is not None or given.N is None):
            return given
        sizes = {axis: None if getattr(layer, axis) is None else size for axis, size in told.items()}
        C = sizes.pop("C")
        if "C" not in wrong and (again or layer.N is not None or given.N is None):
            return self._resized(f"{layer.name} input", given, sizes, layer.dims)
        self.outputs[given.source] = None
        nothing = self.items.nothing(layer.dims)
        return self._stated(f"{layer.name} input", "reshape", {"C": C, **sizes}, layer.dims, [nothing])


def _fits(own: int | None, told: int | None, arriving: int | None) -> bool:
    """Whether a size that arrives says the same of the layer's own as the network's reader does."""
    if own is None or told not in (None, own):
        return arriving == (None if own is None else told)
    return arriving in (None, own)


def _alike(layer: ConvLayer, other: ConvLayer) -> bool:
    return (layer.C, layer.K, layer.groups) == (other.C, other.K, other.groups)


def _dims_of(operation: Operation) -> int:
    return min(max(operation.dims, 1), 3)


def _size(size: int | None) -> int | None:
    """A size that a spec can hold."""
    return size if size is not None and 1 <= size <= MAX_SIZE else None


def _dims(dims: int, arriving: int | None) -> dict[str, int]:
    """The dimensions, where they have to be stated."""
    return {} if dims == (arriving or 2) else {"dims": dims}


_NORMALISED = "read by batch normalisation alone"
_LONGEST_COMMENT = 100


def spec_text(network: Network) -> str:
    """The spec, as YAML text."""
    names, given = _names(network.layers)
    entries = [entry_of(layer, name) for layer, name in zip(network.layers, given, strict=True)]
    defaults = shared_by(entries)
    lines = ["version: 1"]
    if network.targets:
        lines.append(f"target: {flow(list(network.targets))}")
    if network.mode is not None:
        lines.append(f"mode: {network.mode}")
    runtime = _runtime(network.runtime)
    if runtime:
        lines.append(f"runtime: {flow(runtime)}")
    if defaults:
        lines.append(f"defaults: {flow(defaults)}")
    if not entries:
        return "\n".join([*lines, "layers: []", ""])
    remarks = []
    items: list[SpecItem] = []
    try:
        if network.operations:
            items = wired(network, entries, names, defaults.get("N"))
    except CannotWire as reason:
        remarks.append(f"# What connects the layers is left out: {reason}.")
        names, _ = _names(network.layers)
    if not items:
        items = _alone(network, entries, names)
    copying = sum(layer.copies_input for layer in network.layers)
    if copying:
        what = f"{copying} layers copy" if copying > 1 else "one layer copies"
        remarks.append(f"# Left out, with its time and its CL402: {what} what arrives into the layout that it runs in.")
    lines.append("layers:")
    lines += [f"  - {flow(item.mapping)}{_comment(item, network)}" for item in items]
    return "\n".join([*remarks, *lines, ""])


def _names(layers: Sequence[ConvLayer]) -> tuple[SpecNames, list[str]]:
    """A name for each layer, and all those that are given."""
    names = SpecNames()
    return names, [names.give(layer.name, f"layer{number}") for number, layer in enumerate(layers, start=1)]


def _alone(network: Network, entries: Sequence[dict[str, Any]], names: SpecNames) -> list[SpecItem]:
    """The layers without what connects them; each is told to be normalised, or not to be, by what reads it."""
    items = SpecItems(names, None)
    for index, (layer, entry) in enumerate(zip(network.layers, entries, strict=True)):
        stated = None not in (layer.C, layer.H, layer.W)  # else the layer before would be taken for its input
        items.conv(index, entry, None if stated else items.nothing(layer.dims))
    for op, title, wanted in (("batchnorm", _NORMALISED, True), ("identity", READ_ON, False)):
        read = [entry["name"] for layer, entry in zip(network.layers, entries, strict=True)
                if layer.norm_follows is wanted]  # fmt: skip
        items.sink(title, read, op)
    return items.written


def _comment(item: SpecItem, network: Network) -> str:
    """Where the layer stands in the user's code, or what a reshape was there."""
    if item.layer is not None:
        return _origin(network.layers[item.layer], network.path)
    return f"  # {clean(item.where)[:_LONGEST_COMMENT]}" if item.where.isprintable() and item.where else ""


def _runtime(runtime: Runtime) -> Mapping[str, Any]:
    settings: dict[str, Any] = {}
    usual = Runtime()
    for name in runtime.__struct_fields__:
        value = getattr(runtime, name)
        if name == "spans" or value is None or value == getattr(usual, name):
            continue
        settings[name] = str(value) if isinstance(value, Version) else value
    return settings


def _origin(layer: ConvLayer, path: str) -> str:
    """Where the layer stands in the user's code, as a comment."""
    place = layer.locate()
    if place.line is None or place.path == path or not place.path.isprintable():
        return ""
    return f"  # {clean_path(place.path)}:{place.line}"
