"""Writes a network as a spec, such that reading it back gives the same layers, edges and findings.

First the entries: names, the keys of each layer, and the shapes between them; then what connects the layers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec.structs import replace

from convlint.files.located_yaml import Value, flow
from convlint.files.safe import clean, clean_path
from convlint.model.channels import Channels, channels_of, reshaping
from convlint.model.errors import InputFault
from convlint.model.grouping import grouped
from convlint.model.layer import ConvLayer
from convlint.model.network import SPLITS, Edge, Network, Operation, Work, WorkKind, gradients, unique_name
from convlint.model.runtime import Runtime, Version
from convlint.readers.bounded_json import MOST_READS
from convlint.readers.spec.fields import MAX_SIZE, UNKNOWN, read_fields
from convlint.readers.spec.graph import ACTIVATIONS, MAX_INPUTS, MAX_OPERATIONS, OF_STEPS
from convlint.readers.spec.shapes import AGAIN, Shape, carried, carrier_of, dims_of, latest, normalised, written_by

if TYPE_CHECKING:
    from convlint.model.channels import Axis

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


Use = Literal["left out", "passed through", "written"]
_ONE_INPUT = ("identity", "batchnorm", "resize")


def keeps_channels(operation: Operation, own: Axis | None, before: Sequence[Axis | None]) -> bool:
    """Whether the channels of an operation follow from those of its inputs as its kind implies; otherwise it is opaque.

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
        same_length = own is not None and len(own) == sum(map(len, known))
        return same_length and own == tuple([part for axis in known for part in axis])
    if kind in ("pixel_shuffle", "pixel_unshuffle") and len(known) == 1 and operation.factor > 0:
        by = reshaping(operation)
        return own == tuple([(number, scale * by) for number, scale in known[0]])
    return False


def uses(operations: Sequence[Operation], channels: Channels) -> list[Use]:
    """How each operation is written to the spec.

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
        keeps = is_conv or keeps_channels(operation, axes[number], [axes[index] for index in inputs])
        touches = any(matters[index] for index in inputs)
        idle = keeps and operation.groups == 1 and operation.kind in (*_ONE_INPUT, "concat")
        needed[number] |= is_conv or (operation.output and matters[number]) or (touches and not idle)
        written[number] |= matters[number] or touches
        for index in inputs if needed[number] else ():
            needed[index] = True
            written[index] |= keeps and written[number]
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
    declared = {"Z": layer.declared_Z, "P": layer.declared_P, "Q": layer.declared_Q}
    entry |= {letter: size for letter, size in declared.items() if size is not None}
    if layer.bias is not None:
        entry["bias"] = layer.bias
    entry["first"], entry["head"] = layer.first, layer.head
    if layer.calls != 1:
        entry["calls"] = layer.calls
    if layer.unfolded:
        entry["unfolded"] = True
    if layer.frozen:
        entry["frozen"] = True
    if layer.residual_inputs:
        entry["residual_inputs"] = layer.residual_inputs
    return entry


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
        """Adds an item that is no convolution; returns its shape. Raises InputFault where the inputs do not fit."""
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


READ_ON = "read by other operations"
_HANDED_OUT = "outputs"
_MOST_PASSED = 32  # tensors that may stand for one that is not written; with more, it is written after all
_AXES = ("W", "HW", "DHW")


def wired(
    network: Network, entries: Sequence[dict[str, Any]], names: SpecNames, batch: int | None
) -> tuple[list[SpecItem], bool]:
    """The items of the spec, in order, and whether they are all operations of a step.

    `entries` are convolutions, `batch` is their default N. Raises CannotWire.
    """
    first = dict.fromkeys(operation.layer for operation in network.operations if operation.layer is not None)
    if list(first) != list(range(len(network.layers))):
        raise CannotWire("the operations do not run the layers in their order")
    wiring = _Wiring(network, entries, SpecItems(names, batch))
    return wiring.written(), wiring.states_step


class _Wiring:
    """One pass over the operations; `at` has the shapes in the spec that stand for the tensor of each."""

    def __init__(self, network: Network, entries: Sequence[dict[str, Any]], items: SpecItems) -> None:
        self.layers, self.operations, self.entries, self.items = network.layers, network.operations, entries, items
        self.channels = channels_of(network)
        self.edges = {edge.consumer: edge for edge in network.edges}
        operations = network.operations
        self.runs = Counter(operation.layer for operation in operations if operation.layer is not None)
        self.views = self._views()
        self.states_step = network.whole and self._tells_a_step()  # the spec has all operations of a step
        self.opaque = self._opaque() if self.states_step else ()
        norms = [number for number, operation in enumerate(operations) if operation.kind == "batchnorm"]
        self.norms = {index: norm for norm in norms for index in operations[norm].inputs}
        self.learning = self._learning()
        self.at: list[list[Shape]] = []
        self.convs: dict[int, dict[str, Any]] = {}  # the item of each layer
        self.names: dict[int, list[str]] = {}  # the names of the items that run each layer
        self.outputs: dict[str, None] = {}  # names of what leaves the network, or is read in a way a spec cannot state

    def written(self) -> list[SpecItem]:
        """All items; the last ones read what leaves the network, and what only left-out operations read."""
        items = self.items
        for number, use in enumerate(uses(self.operations, self.channels)):
            if self.states_step:
                use = "passed through" if number in self.views else _use_in_a_step(self.operations[number], use)
            stands = [] if use == "left out" else self._passed(self.operations[number])
            if use == "passed through" and number in self.opaque:
                stands = [self._sized(self.operations[number], "reshape", stands)]
            if use == "written":
                stands = [self._written(number, self.operations[number])]
            self.at.append(stands)
        # Layers that no norm alone reads, although no item reads them: their readers are left out, or outside.
        unread = [names[0] for index, names in self.names.items()
                  if self.layers[index].norm_follows is False and items.read.isdisjoint(names)]  # fmt: skip
        # The reader of specs takes what no entry reads for an output, except a convolution without an input.
        alone = {item["name"] for item in self.convs.values() if "input" not in item}
        read = items.read | alone | set(unread)
        items.sink(_HANDED_OUT, [name for name in self.outputs if name in read])
        items.sink(READ_ON, [name for name in unread if name not in items.read])
        for index, names in self.names.items():
            if self.layers[index].norm_follows is None and not items.read.isdisjoint(names):
                raise CannotWire("what reads some of the layers is not known")
        return items.written

    def _tells_a_step(self) -> bool:
        """Whether a spec can state all operations of a step: it has maps, and vectors behind them, and nothing else."""
        axes, N = self.channels.axes, self.layers[0].N or 0
        last = list[int | None]()  # the channels of tensors that have them last, else None
        sizes = list[int]()  # elements of an image, as the spec will have them
        for number, operation in enumerate(self.operations):
            work, first = operation.work, next(iter(operation.inputs), None)
            own = (operation.C or 0) * (operation.D or 1) * (operation.H or 0) * (operation.W or 0)
            last.append(None)
            sizes.append(own)
            if first is not None and operation.layer is None:
                source = self.operations[first]
                turned = (source.H, source.W, source.C) == (operation.C, operation.H, operation.W)
                if number in self.views:
                    last[number], sizes[number] = source.C if turned else last[first], sizes[first]
                elif operation.kind in ("identity", "batchnorm") and (work is None or len(work.reads) == 1):
                    last[number], sizes[number] = last[first], sizes[first]
            if work is None or (work.kind == "copy" and (operation.kind != "reshape" or operation.copies_all)):
                continue  # no op of a spec writes others, such as zeros behind the channels
            if work.kind in _OF_CHANNELS and operation.kind == "reshape" and first is not None:
                width, reads_all = last[first], N * sizes[first] == sum(work.reads)
                if work.kind == "linear" and reads_all and work.product == (1, N, work.product[2], sizes[first]):
                    sizes[number] = work.product[2]
                    continue
                if not (reads_all and width):
                    return False
                last[number], sizes[number] = width, sizes[first]
                if work.kind == "linear":
                    last[number], sizes[number] = work.product[2], sizes[first] // width * work.product[2]
                    if work.product[3] != width:
                        return False
                elif work.weights not in (width, 2 * width):
                    return False
                continue
            if self._makes_a_vector(operation, work):
                sizes[number] = work.writes // N
                continue
            before = [axes[index] for index in operation.inputs]
            if work.kind not in _WRITTEN or not keeps_channels(operation, axes[number], before):
                return False
        return True

    def _learning(self) -> dict[int | None, dict[str, bool]]:
        """What is stated of norms that do not learn as what they read, which the reader of specs assumes."""
        stated: dict[int | None, dict[str, bool]] = {}
        arrives, frozen = gradients(self.operations), list[bool]()
        for number, operation in enumerate(self.operations):
            if operation.layer is not None:
                frozen.append(self.layers[operation.layer].frozen)
            elif operation.work is not None and operation.work.kind == "linear":
                frozen.append(operation.frozen)
            else:
                frozen.append(bool(operation.inputs) and all(frozen[index] for index in operation.inputs))
                if frozen[-1] and arrives[number] and operation.learns:
                    frozen[-1], stated[number] = False, {"frozen": False}
                elif not frozen[-1] and operation.frozen and operation.work is not None and operation.work.weights:
                    frozen[-1], stated[number] = True, {"frozen": True}
        return stated

    def _views(self) -> set[int]:
        """The views that only linear layers and layer norms read; in a spec, these read the map itself."""
        views: set[int] = set()
        readers = grouped(
            (index, number) for number, operation in enumerate(self.operations) for index in operation.inputs
        )
        for number in reversed(range(len(self.operations))):
            own = [self.operations[index].work for index in readers.get(number, ()) if index not in views]
            is_view = self.operations[number].kind == "reshape" and self.operations[number].work is None
            if is_view and number in readers and all(work is not None and work.kind in _OF_CHANNELS for work in own):
                views.add(number)
        return views

    def _opaque(self) -> Collection[int]:
        """The copies and parts among opaque operations, as of channel shuffles, that no product or layer norm reads."""
        opaque, feeding = set[int](), set[int]()  # feeding products and norms, which read the map itself
        for number in reversed(range(len(self.operations))):
            operation = self.operations[number]
            work, moved = operation.work, operation.part
            if operation.copies_all:
                work, moved = None, work
            if number in feeding if work is None else work.kind in _OF_CHANNELS:
                feeding.update(operation.inputs)
            elif moved is not None and self._elements(operation) == moved.writes:
                axes = [self.channels.axes[index] or () for index in (number, *operation.inputs)]
                if not any(self.channels.groups[group].layers for axis in axes for group, _ in axis):
                    opaque.add(number)
        return opaque

    def _elements(self, operation: Operation) -> int:
        """The elements of a tensor of all images; 0 where a size is unknown."""
        sizes = operation.C, operation.D, operation.H, operation.W
        return (self.layers[0].N or 0) * prod(size or 0 for size in sizes)

    def _makes_a_vector(self, operation: Operation, work: Work) -> bool:
        """Whether it is a linear layer or a mean over all positions, with one vector for each image."""
        N = self.layers[0].N
        if work.kind == "linear":
            return work.product[:2] == (1, N)
        source = self.operations[operation.inputs[0]] if len(operation.inputs) == 1 else None
        C = None if source is None else source.C
        return work.kind == "reduce" and None not in (N, C) and work.writes == (N or 0) * (C or 0)

    def _passed(self, operation: Operation) -> list[Shape]:
        """The shapes that stand for a tensor without an item: those that stand for its inputs."""
        shapes = _distinct([shape for index in operation.inputs for shape in self.at[index]])
        return shapes if len(shapes) <= _MOST_PASSED else [self._sized(operation, "reshape", shapes)]

    def _written(self, number: int, operation: Operation) -> Shape:
        """Writes the item of an operation; returns the shape that stands for its tensor."""
        if operation.layer is not None:
            shape = self._conv(number, operation, operation.layer)
        else:
            shape = self._carrier(number, operation)
        if operation.output and operation.kind not in ("input", "reshape"):
            self.outputs[shape.source] = None
        return shape

    def _carrier(self, number: int, operation: Operation) -> Shape:
        """Writes the item of an operation that is no convolution, if it needs one."""
        axes, kind, dims = self.channels.axes, operation.kind, _dims_of(operation)
        inputs = [shape for index in operation.inputs for shape in self.at[index]]
        work = operation.work if self.states_step else None
        if work is not None and work.kind == "layer norm" and kind == "reshape":
            return self.items.put(operation.name, _word_of(work), inputs, self.learning.get(number, _NO_FIELDS))
        if work is not None and work.kind == "linear":
            axes_of_space = _AXES[(inputs[0].dims or 2) - 1 if inputs else 1]
            sizes: dict[str, int | None] = {"C": work.product[2], **dict.fromkeys(axes_of_space, 1)}
            if inputs and work.product[1] != self.layers[0].N:  # of each position
                sizes |= {axis: getattr(inputs[0], axis) for axis in axes_of_space}
            has_bias = work.weights > work.product[2] * work.product[3]
            stated = {} if has_bias else {"bias": False}
            if operation.frozen:
                stated["frozen"] = True
            return self._stated(operation.name, "linear", sizes, len(axes_of_space), inputs, stated=stated)
        if work is not None and work.kind == "reduce" and kind == "reshape" and inputs:
            return self.items.put(operation.name, "global_pool", inputs)
        if kind == "input":
            return self._sized(operation, "input", ())
        if not keeps_channels(operation, axes[number], [axes[index] for index in operation.inputs]):
            return self._sized(operation, "reshape", inputs)
        shape, name = inputs[0], operation.name
        try:
            if work is not None and kind in ("identity", "batchnorm") and operation.groups == 1:
                layer = self.operations[operation.inputs[0]].layer
                if kind == "batchnorm" and layer is not None and self.layers[layer].norm_follows:
                    return shape  # it stands behind its convolution already
                word, fields = _word_of(work), dict(self.learning.get(number, _NO_FIELDS))
                if (kind, work.kind) == ("batchnorm", "group norm"):
                    word = "instancenorm"
                    if work.op == "group_norm" and operation.C is not None:  # torch.onnx's, over a row for each group
                        word, fields = "groupnorm", {"groups": operation.C, **fields}
                return self.items.put(name, word, inputs, fields)
            joined = inputs if kind == "concat" else _distinct(inputs)
            if kind in ("add", "concat") and len(joined) > 1:
                multiplies = work is not None and work.kind == "multiply"
                shape = self.items.put(name, "mul" if multiplies else kind, joined)
            elif kind in ("pixel_shuffle", "pixel_unshuffle"):
                shape = self.items.put(name, kind, inputs, {"scale": operation.factor})
            if operation.groups > 1:
                fields = {"groups": operation.groups, **self.learning.get(number, _NO_FIELDS)}
                shape = self.items.put(name, "groupnorm", [shape], fields)
        except InputFault:  # the network's own reader accepts sizes that do not fit together; a spec does not
            return self._sized(operation, "reshape", inputs)
        sizes = {axis: _size(getattr(operation, axis)) for axis in _AXES[dims - 1]}
        pads = kind == "resize" and operation.work is not None and operation.work.kind == "copy"
        if pads and (more := _added(shape, sizes)):
            return self.items.put(name, "pad", [shape], {**_dims(dims, shape.dims), "padding": more})
        op = _POOLS.get(work.kind, "") if work is not None else "crop" if self.states_step else ""
        return self._resized(name, shape, sizes, dims, op) if kind == "resize" else shape

    def _sized(self, operation: Operation, op: str, inputs: Sequence[Shape]) -> Shape:
        """Writes an item that states the sizes that it hands on."""
        dims = _dims_of(operation)
        if op == "reshape" and not inputs:
            inputs = [self.items.nothing(dims)]
        elif op == "reshape" and operation.part is not None:
            op = "split" if operation.part.op in SPLITS else "slice"
        elif op == "reshape" and self.states_step and operation.copies_all and len(inputs) == 1:
            inputs = [self.items.put(f"{operation.name}_copy", "copy", inputs)]
        sizes = {axis: _size(getattr(operation, axis)) for axis in ("C", *_AXES[dims - 1])}
        return self._stated(operation.name, op, sizes, dims, inputs, operation.where)

    def _stated(
        self, name: str, op: str, sizes: Mapping[str, int | None], dims: int, inputs: Sequence[Shape], where: str = "",
        stated: Mapping[str, Any] = _NO_FIELDS,
    ) -> Shape:  # fmt: skip
        known = {axis: size for axis, size in sizes.items() if size is not None}
        distinct = _distinct(inputs)
        fields = _dims(dims, distinct[0].dims if distinct else None) | known | dict(stated)
        return self.items.put(name, op, distinct, fields, where)

    def _resized(
        self, name: str, shape: Shape, sizes: Mapping[str, int | None], dims: int, op: str = ""
    ) -> Shape:  # fmt: skip
        """Writes an item that resizes `shape`, unless it has these sizes and `op` is no pool; returns the new shape."""
        if (
            op in ("", "crop")
            and dims == shape.dims
            and all(getattr(shape, axis) == size for axis, size in sizes.items())
        ):
            return shape
        fields = _dims(dims, shape.dims)
        if not op and all(size == 1 for size in sizes.values()):
            return self.items.put(name, "global_pool", [shape], fields)
        written = [UNKNOWN if size is None else size for size in sizes.values()]
        return self.items.put(name, op or "resize", [shape], {**fields, "size": compact(written)})

    def _conv(self, number: int, operation: Operation, index: int) -> Shape:
        """Writes a run of a layer, and the norm if that alone reads it; returns the shape behind both."""
        layer, runs = self.layers[index], self.names.setdefault(index, [])
        incoming = self.at[operation.inputs[0]][0] if operation.inputs else None
        source = None if incoming is None else self._fitting(layer, incoming, self.edges.get(index), again=bool(runs))
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
            at = self.norms.get(number)
            norm = None if at is None else self.operations[at]
            of_instances = norm is not None and norm.work is not None and norm.work.kind == "group norm"
            word = "instancenorm" if of_instances else "batchnorm"
            title = norm.name if norm is not None else f"{name} norm"
            shape = self.items.put(title, word, [shape], self.learning.get(at, _NO_FIELDS))
        return shape

    def _first(self, layer: ConvLayer, index: int, source: Shape | None, weights: int | None) -> str:
        """Writes the item of a layer's first run; returns its name."""
        entry = dict(self.entries[index])
        if weights is not None and weights in self.convs:
            other = self.layers[weights]
            if (layer.C, layer.K, layer.groups) == (other.C, other.K, other.groups):
                entry["weights"] = self.convs[weights]["name"]
        if source is None and None in (layer.C, layer.H, layer.W) and self.items.written:
            source = self.items.nothing(layer.dims)  # without an input it would read the item before it
        if source is not None:
            entry |= _dims(layer.dims, source.dims)
        calls = entry.pop("calls", 1)
        if calls != self.runs[index]:
            entry["calls"] = calls
        self.convs[index] = self.items.conv(index, entry, source)
        name: str = entry["name"]
        return name

    def _seems_copied(self, layer: ConvLayer, edge: Edge | None, source: Shape) -> bool:
        """Whether layouts differ along an edge on which nothing is copied; then the spec has to state that."""
        layouts = {self.layers[producer].layout for producer in source.producers} - {"auto", layer.layout}
        return layer.layout != "auto" and bool(layouts) and (edge is None or edge.copied is False)

    def _fitting(self, layer: ConvLayer, shape: Shape, edge: Edge | None, *, again: bool) -> Shape:
        """The shape that the layer reads, changed where needed so that the spec's reader sees what the network's saw.

        It must neither learn a size that was unknown, nor find a mismatch where there was none, nor miss one.
        """
        arriving = {
            axis: getattr(layer, axis) if again or edge is None else getattr(edge, axis)
            for axis in ("C", *_AXES[layer.dims - 1])
        }
        wrong = [axis for axis, size in arriving.items() if not _fits(getattr(layer, axis), size, getattr(shape, axis))]
        same_batch = again or layer.N is not None or shape.N is None
        if not wrong and same_batch:
            return shape
        sizes = {axis: None if getattr(layer, axis) is None else size for axis, size in arriving.items()}
        C = sizes.pop("C")
        if "C" not in wrong and same_batch:
            return self._resized(f"{layer.name} input", shape, sizes, layer.dims)
        self.outputs[shape.source] = None
        nothing = self.items.nothing(layer.dims)
        return self._stated(f"{layer.name} input", "reshape", {"C": C, **sizes}, layer.dims, [nothing])


# What a spec has an op for, beside linear layers: others would be missing in its step.
_WRITTEN: frozenset[WorkKind] = frozenset(
    ("batch norm", "frozen norm", "layer norm", "group norm", "activation", "add", "multiply", "concat", "max pool",
     "pool", "resize", "reduce", "softmax")
)  # fmt: skip
_OF_CHANNELS: frozenset[WorkKind] = frozenset(("linear", "layer norm"))
_POOLS: Mapping[WorkKind, str] = {"max pool": "maxpool", "pool": "avgpool"}
_WORDS: Mapping[WorkKind, str] = {
    "batch norm": "norm", "frozen norm": "frozen_batchnorm", "layer norm": "layernorm", "group norm": "groupnorm",
    "softmax": "softmax", "add": "add", "copy": "copy",
}  # fmt: skip


def _added(shape: Shape, sizes: Mapping[str, int | None]) -> list[int]:
    """The elements that a padding adds before and behind each axis; empty where an axis shrinks, or is unknown.

    Which side it is on changes no size.
    """
    more = []
    for axis, size in sizes.items():
        before = getattr(shape, axis)
        if before is None or size is None or size < before:
            return []
        more.append(size - before)
    return [side for extra in more for side in (extra // 2, extra - extra // 2)] if any(more) else []


def _use_in_a_step(operation: Operation, use: Use) -> Use:
    """How an operation is written where all of a step is: views and copies are passed through."""
    if operation.work is not None and operation.work.kind != "copy":
        return "written"
    return "passed through" if use == "left out" else use


def _word_of(work: Work) -> str:
    """The op in a spec for work that keeps all sizes."""
    own = normalised(work.op)[0]
    if work.kind == "multiply":  # by a learned factor of each channel, or by one number
        return "scale" if work.in_32_bits else "mul"
    return own if work.kind == "activation" and own in ACTIVATIONS else _WORDS.get(work.kind, "activation")


def _fits(own: int | None, expected: int | None, arriving: int | None) -> bool:
    """Whether a size that arrives in the spec agrees with the layer's `own` as the network's, `expected`, does."""
    if own is None or expected not in (None, own):
        return arriving == (None if own is None else expected)
    return arriving in (None, own)


def _distinct(shapes: Sequence[Shape]) -> list[Shape]:
    return list({shape.source: shape for shape in shapes}.values())


def _dims_of(operation: Operation) -> int:
    return min(max(operation.dims, 1), 3)  # a spec knows no others


def _size(size: int | None) -> int | None:
    """The size, or None where a spec cannot hold it."""
    return size if size is not None and 1 <= size <= MAX_SIZE else None


def _dims(dims: int, arriving: int | None) -> dict[str, int]:
    """The key `dims`, where it has to be stated because it is not that of the input, or not 2."""
    return {} if dims == (arriving or 2) else {"dims": dims}


_NORMALISED = "read by batch normalisation alone"
_LONGEST_COMMENT = 100


def spec_text(network: Network) -> str:
    """The network as the YAML text of a spec."""
    names, layer_names = _names(network.layers)
    entries = [entry_of(layer, name) for layer, name in zip(network.layers, layer_names, strict=True)]
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
    states_step = False
    try:
        if network.operations:
            items, states_step = wired(network, entries, names, defaults.get("N"))
    except CannotWire as reason:
        remarks.append(f"# What connects the layers is left out: {reason}.")
        names, _ = _names(network.layers)
    if not items:
        items = _alone(network, entries, names)
    copying = sum(layer.copies_input for layer in network.layers)
    if copying:
        what = f"{copying} layers copy" if copying > 1 else "one layer copies"
        remarks.append(f"# Left out, with its time and its CL402: {what} what arrives into the layout that it runs in.")
    ops = {item.mapping.get("op") for item in items}
    # Group norms are written for the channels that they tie, and would say that all of a step is there.
    if not states_step and (network.whole or "groupnorm" in ops):
        lines.append("whole_step: false  # operations that a spec cannot state are left out")
    elif states_step and not any(normalised(op)[0] in OF_STEPS for op in ops if op is not None):
        lines.append("whole_step: true")
    lines.append("layers:")
    lines += [f"  - {flow(item.mapping)}{_comment(item, network)}" for item in items]
    return "\n".join([*remarks, *lines, ""])


def _names(layers: Sequence[ConvLayer]) -> tuple[SpecNames, list[str]]:
    """The names of a spec, which has those of the layers, and the name of each layer."""
    names = SpecNames()
    return names, [names.give(layer.name, f"layer{number}") for number, layer in enumerate(layers, start=1)]


def _alone(network: Network, entries: Sequence[dict[str, Any]], names: SpecNames) -> list[SpecItem]:
    """The layers without edges. Sinks read those of which it is known whether a norm follows, to state that."""
    items = SpecItems(names, None)
    for index, (layer, entry) in enumerate(zip(network.layers, entries, strict=True)):
        stated = None not in (layer.C, layer.H, layer.W)  # otherwise it would read the layer before it
        items.conv(index, entry, None if stated else items.nothing(layer.dims))
    for op, title, follows in (("batchnorm", _NORMALISED, True), ("identity", READ_ON, False)):
        read = [entry["name"] for layer, entry in zip(network.layers, entries, strict=True)
                if layer.norm_follows is follows]  # fmt: skip
        items.sink(title, read, op)
    return items.written


def _comment(item: SpecItem, network: Network) -> str:
    """A comment with the layer's place in the user's code, or with the operation that a reshape stands for."""
    if item.layer is None:
        return f"  # {clean(item.where)[:_LONGEST_COMMENT]}" if item.where.isprintable() and item.where else ""
    place = network.layers[item.layer].locate()
    if place.line is None or place.path == network.path or not place.path.isprintable():
        return ""
    return f"  # {clean_path(place.path)}:{place.line}"


def _runtime(runtime: Runtime) -> Mapping[str, Any]:
    """The settings that differ from the default."""
    usual = Runtime()
    changed = {
        name: value
        for name in runtime.__struct_fields__
        if name != "spans" and (value := getattr(runtime, name)) is not None and value != getattr(usual, name)
    }
    return {name: str(value) if isinstance(value, Version) else value for name, value in changed.items()}
