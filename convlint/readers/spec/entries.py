"""The entries of a spec that is written: their names, the keys of each layer, and the shapes between them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from convlint.files.located_yaml import Value
from convlint.model.errors import InputFault
from convlint.model.layer import ConvLayer
from convlint.model.network import Work, unique_name
from convlint.readers.bounded_json import MOST_READS
from convlint.readers.spec.fields import read_fields
from convlint.readers.spec.graph import MAX_INPUTS, MAX_OPERATIONS, work_of
from convlint.readers.spec.shapes import Shape, carried, carrier_of, dims_of, latest, normalised

LONGEST_NAME = 480  # characters; a spec allows 500, which leaves room for a number
_HALF = re.compile("[\ud800-\udfff]")  # lone surrogates, which no encoding can write


class SpecNames:
    """Gives each entry of a spec a name of its own."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def give(self, name: str, otherwise: str) -> str:
        """The name, or `otherwise` where it is empty, with a number if it is taken."""
        stem = _HALF.sub("\ufffd", name[:LONGEST_NAME]) if name.strip() else otherwise
        return unique_name(stem, self._taken)


_SHARED = ("N", "dtype", "layout")
_ROLES = ("first", "head")
_USUAL = ConvLayer(name="")


def entry_of(layer: ConvLayer, name: str) -> dict[str, Any]:
    """The entry of a layer, with all its sizes; `first` and `head` are always stated."""
    dims = layer.dims
    axes = slice(3 - dims, None)
    entry: dict[str, Any] = {"name": name, **_unusual(layer, "op", "dims")}
    sizes = {"N": layer.N, "C": layer.C, "D": layer.D if dims == 3 else None, "H": layer.H, "W": layer.W, "K": layer.K}
    entry |= {letter: size for letter, size in sizes.items() if size is not None}
    if None not in (layer.T, layer.R, layer.S):
        entry["kernel_size"] = compact([layer.T, layer.R, layer.S][axes])
    for key, values, neutral in (
        ("stride", [layer.StrideD, layer.U, layer.V], 1),
        ("dilation", [layer.DilD, layer.DilH, layer.DilW], 1),
        ("output_padding", [layer.OutPadD, layer.OutPadH, layer.OutPadW], 0),
    ):
        if any(value != neutral for value in values[axes]):
            entry[key] = compact(values[axes])
    padding = _padding(layer)
    if padding not in (None, 0):
        entry["padding"] = padding
    entry |= _unusual(layer, "groups")
    if layer.dtype is not None:
        entry["dtype"] = layer.dtype.value
    entry |= _unusual(layer, "layout")
    declared = {"Z": layer.declared_Z, "P": layer.declared_P, "Q": layer.declared_Q}
    entry |= {letter: size for letter, size in declared.items() if size is not None}
    entry |= _unusual(layer, "bias")
    entry["first"], entry["head"] = layer.first, layer.head
    return entry | _unusual(layer, "calls", "unfolded", "frozen", "residual_inputs")


def _unusual(layer: ConvLayer, *names: str) -> dict[str, Any]:
    """The fields of these names that are not as in a layer that states nothing."""
    return {name: value for name in names if (value := getattr(layer, name)) != getattr(_USUAL, name)}


def compact(values: Sequence[Any]) -> Any:
    """The values, as one number where all axes have the same."""
    return values[0] if len(set(values)) == 1 else list(values)


def _padding(layer: ConvLayer) -> Any:
    """Padding as one number, one for each axis, or two for each axis (begin, end); None where unknown."""
    begin = [layer.PadD, layer.PadH, layer.PadW][3 - layer.dims :]
    end = [layer.PadD_end, layer.PadH_end, layer.PadW_end][3 - layer.dims :]
    if None in begin or None in end:
        return None
    if begin == end:
        return compact(begin)
    return [side for sides in zip(begin, end, strict=True) for side in sides]


def shared_by(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Moves what all entries have in common into defaults, which it returns."""
    shared: dict[str, Any] = {}
    for key in _SHARED:
        values = {entry.get(key) for entry in entries}
        # N of one layer, too, as the network's input takes it from there.
        if len(values) == 1 and None not in values and (len(entries) > 1 or key == "N"):
            shared[key] = values.pop()
            for entry in entries:
                del entry[key]
    for key in _ROLES:  # stated, if only as a default, so that the reader does not derive them from the wiring
        if any(not entry[key] for entry in entries):
            shared[key] = False
            for entry in entries:
                if not entry[key]:
                    del entry[key]
    return shared


_NOWHERE = (1, 1, 1, 1)  # the span of a value that stands in no file


def after(item: Mapping[str, Any], inputs: Sequence[Shape], batch: int | None) -> tuple[Shape, Work | None]:
    """What an item other than a convolution hands on, and its work; `batch` is the default N. Raises InputFault.

    Both are computed by the reader of specs, so that reading the spec back gives the same.
    """
    mapping = {key: _value(value) for key, value in item.items() if key not in ("name", "input", "inputs")}
    op = item["op"]
    carrier = carrier_of(op, mapping["op"])
    dims = dims_of(mapping, op) or (inputs[0].dims if inputs else None) or 2
    fields = read_fields(mapping, dims, _refuse, where="a layer")
    fields.spans["layer"] = _NOWHERE
    if carrier in ("input", "declared"):
        fields.values["N"] = batch
    shape = latest(carried(carrier, item["name"], inputs, fields, mapping, dims))[0]
    return shape, work_of(normalised(op)[0], carrier, shape, inputs, fields.values)


def _value(value: Any) -> Value:
    if isinstance(value, list):
        return Value([_value(item) for item in value], _NOWHERE)
    return Value(str(value), _NOWHERE, plain=isinstance(value, int))


def _refuse(error: InputFault) -> None:
    raise error


NO_FIELDS: Mapping[str, Any] = {}
_NOTHING = "input of unknown size"


class CannotWire(Exception):
    """A spec cannot express the wiring of this network; the message says why."""


class CannotWork(Exception):
    """A spec has no entry for the work of an operation."""


class SpecItem(NamedTuple):
    """An entry of the spec; `layer` is the index of its convolution, `where` describes a reshape for people."""

    mapping: dict[str, Any]
    layer: int | None = None
    where: str = ""


class SpecItems:
    """The entries written so far; `read` are the names of those that another entry reads, `work` is the last one's."""

    def __init__(self, names: SpecNames, batch: int | None) -> None:
        self.names, self.batch = names, batch
        self.written: list[SpecItem] = []
        self.read: set[str] = set()
        self.work: Work | None = None
        self._reads = 0
        self._nothing: dict[int, Shape] = {}  # by dimensions

    def put(
        self, name: str, op: str, inputs: Sequence[Shape], fields: Mapping[str, Any] = NO_FIELDS, where: str = ""
    ) -> Shape:
        """Adds an item that is no convolution; returns its shape. Raises InputFault where the inputs do not fit."""
        item: dict[str, Any] = {"name": name or op, "op": op}
        shape, self.work = after({**item, **fields}, inputs, self.batch)
        item["name"] = self.names.give(name, op)
        sources = [shape.source for shape in inputs]
        if len(sources) > 1:
            item["inputs"] = sources
        elif sources and not (self.written and self.written[-1].mapping["name"] == sources[0]):  # else it is implied
            item["input"] = sources[0]
        self._add(SpecItem({**item, **fields}, where=where), sources)
        return replace(shape, source=item["name"])

    def conv(self, layer: int, entry: Mapping[str, Any], source: Shape | None) -> dict[str, Any]:
        """Adds a convolution, which always states its input; returns the mapping of its item."""
        item = {"name": entry["name"], **({} if source is None else {"input": source.source}), **entry}
        self._add(SpecItem(item, layer), [] if source is None else [source.source])
        return item

    def nothing(self, dims: int) -> Shape:
        """An input of unknown shape, added once for each number of dimensions."""
        if dims not in self._nothing:
            self._nothing[dims] = self.put(_NOTHING, "input", (), {} if dims == 2 else {"dims": dims})
        return self._nothing[dims]

    def sink(self, title: str, sources: Sequence[str], op: str = "identity") -> None:
        """Adds items that read these tensors, so that none of them counts as an output of the network."""
        for start in range(0, len(sources), MAX_INPUTS):
            self.put(title, op, [Shape(source=name) for name in sources[start : start + MAX_INPUTS]])

    def _add(self, item: SpecItem, sources: Sequence[str]) -> None:
        self.written.append(item)
        self.read.update(sources)
        self._reads += len(sources)
        if len(sources) > MAX_INPUTS:
            raise CannotWire(f"an operation reads more than {MAX_INPUTS} tensors")
        if len(self.written) > MAX_OPERATIONS or self._reads > MOST_READS:
            raise CannotWire("there are more operations than a spec may have")
