"""The entries of a spec that is being written: names, the keys of each layer, and the shapes between entries."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec.structs import replace

from convlint.files.located_yaml import Value
from convlint.model.channels import Channels, reshaping
from convlint.model.errors import InputFault
from convlint.model.layer import ConvLayer
from convlint.model.network import Operation
from convlint.readers.bounded_json import MOST_READS
from convlint.readers.spec.fields import read_fields
from convlint.readers.spec.graph import MAX_INPUTS, MAX_OPERATIONS
from convlint.readers.spec.shapes import Shape, carried, carrier_of, dims_of, latest

if TYPE_CHECKING:
    from convlint.model.channels import Axis

LONGEST_NAME = 480  # characters; a spec allows 500, which leaves room for a number
_HALF = re.compile("[\ud800-\udfff]")  # lone surrogates, which no encoding can write


class SpecNames:
    """Gives each entry of a spec a name of its own."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        # The last number behind each name: counting up from 1 each time would take quadratic time.
        self._counts: dict[str, int] = {}

    def give(self, name: str, otherwise: str) -> str:
        """The name, or `otherwise` where it is empty, with a number if it is taken."""
        stem = _HALF.sub("\ufffd", name[:LONGEST_NAME]) if name.strip() else otherwise
        result, count = stem, self._counts.get(stem, 1)
        while result in self._taken:
            count += 1
            result = f"{stem}#{count}"
        self._counts[stem] = count
        self._taken.add(result)
        return result


Use = Literal["left out", "passed through", "written"]
_ONE_INPUT = ("identity", "batchnorm", "resize")


def keeps_channels(operation: Operation, own: Axis | None, before: Sequence[Axis | None]) -> bool:
    """Whether an operation hands on the channels of its inputs as its kind has it; otherwise it is opaque.

    `own` is the axis of its tensor, `before` are those of its inputs.
    """
    kind = operation.kind
    known = [axis for axis in before if axis is not None]
    if kind in _ONE_INPUT:
        return len(before) == 1 and own == before[0]
    if not before or len(known) < len(before):
        return False
    if kind == "add":
        return own in known
    if kind == "concat":
        # The lengths are compared first, because joining the parts of many long axes takes memory.
        whole = own is not None and len(own) == sum(map(len, known))
        return whole and own == tuple([part for axis in known for part in axis])
    if kind in ("pixel_shuffle", "pixel_unshuffle") and len(known) == 1 and operation.factor > 0:
        by = reshaping(operation)
        return own == tuple([(number, scale * by) for number, scale in known[0]])
    return False


def uses(operations: Sequence[Operation], channels: Channels) -> list[Use]:
    """What becomes of each operation when the spec is written.

    "left out": no rule can see it. "written": its channels are those of a layer. "passed through": it lies among opaque
    operations, so that an entry which reads it names what it was made of instead.
    """
    axes, of_layers = channels.axes, [bool(group.layers) for group in channels.groups]
    matters = [any(of_layers[group] for group, _ in axis or ()) for axis in axes]
    needed = [False] * len(operations)
    written = [operation.kind in ("input", "conv") for operation in operations]
    for number in reversed(range(len(operations))):  # backwards: what reads an operation decides on it
        operation = operations[number]
        is_conv = operation.kind == "conv"
        inputs = operation.inputs[:1] if is_conv else operation.inputs
        kept = is_conv or keeps_channels(operation, axes[number], [axes[index] for index in inputs])
        touches = any(matters[index] for index in inputs)
        idle = kept and operation.groups == 1 and operation.kind in (*_ONE_INPUT, "concat")
        needed[number] |= is_conv or (operation.output and matters[number]) or (touches and not idle)
        written[number] |= matters[number] or touches
        for index in inputs if needed[number] else ():
            needed[index] = True
            written[index] |= kept and written[number]
    return [
        "left out" if not is_needed else "written" if is_written else "passed through"
        for is_needed, is_written in zip(needed, written, strict=True)
    ]


_SHARED = ("N", "dtype", "layout")
_ROLES = ("first", "head")


def entry_of(layer: ConvLayer, name: str) -> dict[str, Any]:
    """The entry of a layer, with all its sizes; `first` and `head` are always stated."""
    dims = layer.dims
    axes = slice(3 - dims, None)
    entry: dict[str, Any] = {"name": name}
    if layer.op != "conv":
        entry["op"] = layer.op
    if dims != 2:
        entry["dims"] = dims
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
    if layer.groups != 1:
        entry["groups"] = layer.groups
    if layer.dtype is not None:
        entry["dtype"] = layer.dtype.value
    entry["layout"] = layer.layout
    entry |= {key: size for key, size in zip("ZPQ", _declared(layer), strict=True) if size is not None}
    if layer.bias is not None:
        entry["bias"] = layer.bias
    entry["first"], entry["head"] = layer.first, layer.head
    if layer.calls != 1:
        entry["calls"] = layer.calls
    if layer.unfolded:
        entry["unfolded"] = True
    if layer.residual_inputs:
        entry["residual_inputs"] = layer.residual_inputs
    return entry


def _declared(layer: ConvLayer) -> tuple[int | None, int | None, int | None]:
    return layer.declared_Z, layer.declared_P, layer.declared_Q


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
        if len(values) == 1 and None not in values and len(entries) > 1:
            shared[key] = values.pop()
            for entry in entries:
                del entry[key]
    for key in _ROLES:  # stated, if only as a default, so that the reader does not derive them from the wiring
        if any(not entry[key] for entry in entries):
            shared[key] = False
            for entry in entries:
                if not entry[key]:
                    del entry[key]
    if shared.get("layout") == "auto":
        del shared["layout"]
    for entry in entries:
        if entry.get("layout") == "auto" and "layout" not in shared:
            del entry["layout"]
    return shared


_NOWHERE = (1, 1, 1, 1)  # the span of a value that stands in no file


def shape_after(item: Mapping[str, Any], inputs: Sequence[Shape], batch: int | None) -> Shape:
    """The shape that an item other than a convolution hands on; `batch` is the default N. Raises InputFault.

    It is computed by the reader of specs, so that reading the spec back gives the same shapes.
    """
    mapping = {key: _value(value) for key, value in item.items() if key not in ("name", "input", "inputs")}
    op = item["op"]
    carrier = carrier_of(op, mapping["op"])
    dims = dims_of(mapping, op) or (inputs[0].dims if inputs else None) or 2
    fields = read_fields(mapping, dims, _refuse, where="a layer")
    fields.spans["layer"] = _NOWHERE
    if carrier in ("input", "declared"):
        fields.values["N"] = batch
    return latest(carried(carrier, item["name"], inputs, fields, mapping, dims))[0]


def _value(value: Any) -> Value:
    if isinstance(value, list):
        return Value([_value(item) for item in value], _NOWHERE)
    return Value(str(value), _NOWHERE, plain=isinstance(value, int))


def _refuse(error: InputFault) -> None:
    raise error


_NO_FIELDS: Mapping[str, Any] = {}
_NOTHING = "input of unknown size"


class CannotWire(Exception):
    """A spec cannot express the wiring of this network; the message says why."""


class SpecItem(NamedTuple):
    """An entry of the spec; `layer` is the index of its convolution, `where` describes a reshape for people."""

    mapping: dict[str, Any]
    layer: int | None = None
    where: str = ""


class SpecItems:
    """The entries written so far; `read` are the names of those that another entry reads."""

    def __init__(self, names: SpecNames, batch: int | None) -> None:
        self.names, self.batch = names, batch
        self.written: list[SpecItem] = []
        self.read: set[str] = set()
        self._reads = 0
        self._nothing: dict[int, Shape] = {}  # by dimensions

    def put(
        self, name: str, op: str, inputs: Sequence[Shape], fields: Mapping[str, Any] = _NO_FIELDS, where: str = ""
    ) -> Shape:
        """Adds an item that is no convolution; the shape that it hands on. Raises InputFault where they do not fit."""
        item: dict[str, Any] = {"name": name or op, "op": op}
        shape = shape_after({**item, **fields}, inputs, self.batch)
        item["name"] = self.names.give(name, op)
        sources = [shape.source for shape in inputs]
        if len(sources) > 1:
            item["inputs"] = sources
        elif sources and not (self.written and self.written[-1].mapping["name"] == sources[0]):  # else it is implied
            item["input"] = sources[0]
        self._add(SpecItem({**item, **fields}, where=where), sources)
        return replace(shape, source=item["name"])

    def conv(self, layer: int, entry: Mapping[str, Any], source: Shape | None) -> dict[str, Any]:
        """Adds a convolution, which states its input even where that is the entry before; the mapping of its item."""
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
