"""The list of layers in a spec as a graph: which entry reads which, defaults, repeated runs, and roles of layers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from math import isqrt, prod
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from convlint.files.located_yaml import Value, fault
from convlint.model.errors import InputFault, shown, suggestion
from convlint.model.layer import ConvLayer
from convlint.model.location import Span
from convlint.model.network import BATCH_NORMS, IN_32_BITS, SPLITS, Edge, Operation, OperationKind, Work, WorkKind
from convlint.model.report import InputError
from convlint.readers.bounded_json import MOST_LAYERS, MOST_MESSAGES, MOST_PRODUCERS, MOST_READS
from convlint.readers.spec.fields import CANONICAL, NEUTRAL, PADS, SIZES, Fields, read_fields, word
from convlint.readers.spec.shapes import (
    AGAIN,
    PRODUCTS,
    Shape,
    carried,
    carrier_of,
    conv_layer,
    conv_op,
    dims_of,
    factor_of,
    latest,
    normalised,
    written_by,
)

_T = TypeVar("_T")


class TooManyErrors(Exception):
    """The spec has more errors than are reported."""


class SpecErrors:
    """The errors of the spec at `path`; reading goes on after each."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.noted: list[InputError] = []

    def fail(self, error: InputFault) -> None:
        """Notes an error. Raises TooManyErrors."""
        if len(self.noted) >= MOST_MESSAGES:
            self.noted.append(InputError(path=self.path, message=f"more than {MOST_MESSAGES} errors; not read further"))
            raise TooManyErrors
        self.noted.append(InputError(path=self.path, message=error.message, line=error.line, column=error.column))

    def attempt(self, what: Callable[[], _T], otherwise: _T) -> _T:
        """The result of `what()`; if that raises InputFault, the error is noted and the result is `otherwise`."""
        try:
            return what()
        except InputFault as error:
            self.fail(error)
            return otherwise


_KINDS: Mapping[str, OperationKind] = {  # by the result of `carrier_of`
    "conv": "conv", "input": "input", "identity": "identity", "batchnorm": "batchnorm", "elementwise": "add",
    "concat": "concat", "pool": "resize", "resize_to": "resize", "upsample": "resize", "downsample": "resize",
    "pad": "resize", "crop": "resize", "pixel_shuffle": "pixel_shuffle", "pixel_unshuffle": "pixel_unshuffle",
    "channel_pool": "channel_pool", "channel_shuffle": "channel_shuffle", "split": "split", "declared": "reshape",
}  # fmt: skip
_GROUP_NORM = "groupnorm"
_VIEWS = ("reshape", "view")
_PARTS = ("slice", "crop", *SPLITS)
ACTIVATIONS = frozenset(
    ("activation", "relu", "relu6", "leakyrelu", "prelu", "gelu", "silu", "swish", "hardswish", "mish", "elu",
     "sigmoid", "tanh")
)  # fmt: skip
# What an entry does, by its op; by its carrier where the op is not here. Views and what keeps everything do nothing.
_WORK: Mapping[str, WorkKind] = {
    **dict.fromkeys(ACTIVATIONS, "activation"),
    "norm": "batch norm", "batchnorm": "batch norm", "frozenbatchnorm": "frozen norm", "layernorm": "layer norm",
    "groupnorm": "group norm", "instancenorm": "group norm", "softmax": "softmax", "attention": "attention",
    "linear": "linear", "dense": "linear", "matmul": "product", "copy": "copy", "channelpool": "reduce",
    "glu": "activation",
    "mul": "multiply", "multiply": "multiply", "scale": "multiply", "maxpool": "max pool", "maxpooling": "max pool",
}  # fmt: skip
_WORK_OF_CARRIERS: Mapping[str, WorkKind] = {
    "batchnorm": "batch norm", "elementwise": "add", "concat": "concat", "pool": "pool", "resize_to": "reduce",
    "upsample": "resize", "downsample": "copy", "pad": "copy", "pixel_shuffle": "copy", "pixel_unshuffle": "copy",
    "channel_shuffle": "copy",
}  # fmt: skip
# Whoever states one of these states all operations of the network; others are written for the sizes that they hand on.
OF_STEPS = frozenset(
    ("norm", "frozenbatchnorm", "layernorm", _GROUP_NORM, "activation", "attention", *ACTIVATIONS)
) - {"sigmoid", "tanh"}  # fmt: skip
# Kinds of work that fit behind a layer of any width; `_OF_TASKS` are exceptions, whose width a task decides.
_OF_ANY_WIDTH: frozenset[WorkKind] = frozenset((*BATCH_NORMS, "layer norm", "activation", "max pool", "pool"))
_OF_TASKS = frozenset(("sigmoid", "tanh"))


class SpecOperations:
    """The entries of a spec as operations, in their order."""

    def __init__(self) -> None:
        self.noted: list[Operation] = []
        # All sizes of what a step runs are known; None where neither an entry nor the spec tells of a step.
        self.whole: bool | None = None
        self._number_of: dict[str, int] = {}
        self._flat: dict[str, Shape] = {}  # what a view of no stated sizes is made of, which a product reads whole

    def note(
        self, carrier: str, op: str, shape: Shape, inputs: Sequence[Shape], values: Mapping[str, Any], factor: int = 1,
        weights: int | None = None,
    ) -> None:  # fmt: skip
        """Adds an entry that hands on `shape`; `values` are its fields, `op` is the text of its op."""
        kind, groups, where, word = _KINDS[carrier], 1, "", normalised(op)[0]
        if kind == "add" and len(inputs) == 1:  # with a number, or a learned one for each channel
            kind = "identity"
        if carrier == "identity" and word == _GROUP_NORM:  # without groups its channels may not change
            kind, groups = ("identity", values["groups"]) if "groups" in values else ("reshape", 1)
        C = shape.C
        if word in PRODUCTS and len(inputs) == 1:
            kind = "linear"
        elif word in _VIEWS and len(inputs) == 1 and values.keys().isdisjoint("CDHW"):
            kind, C = "view", elements_of(replace(inputs[0], N=1)) or None
        if kind in ("reshape", "view", "linear"):
            where = f"{op} {shape.source}"
        sources = [self._flat.get(source.source, source) for source in inputs] if word in PRODUCTS else inputs
        work = None if kind in ("conv", "input") else work_of(word, carrier, shape, sources, values)
        if kind == "view":
            self._flat[shape.source] = self._flat.get(inputs[0].source, inputs[0])
        if word in OF_STEPS:
            self.whole = self.whole is not False
        numbers = tuple([self._number_of[source.source] for source in inputs])
        frozen = values.get("frozen")
        if frozen is None:  # a norm learns if what it reads does
            frozen = bool(numbers) and word not in PRODUCTS and all(self.noted[number].frozen for number in numbers)
        if work is not None and (not work.writes or 0 in work.reads):
            self.whole = False
        self._add(
            shape.source,
            Operation(
                kind=kind, name=shape.source, inputs=numbers, frozen=frozen,
                layer=shape.producers[0] if kind == "conv" else None, weights=weights, C=C,
                D=shape.D, H=shape.H, W=shape.W, dims=shape.dims or 2, factor=factor, groups=groups, where=where,
                work=work, part=_part_of(word, shape, inputs),
            ),
        )  # fmt: skip

    def unread(self, name: str) -> None:
        """Adds an entry that could not be read, so that the entries which name it can still be read."""
        self._add(name, Operation(kind="reshape", name=name, where=f"what {name} is"))

    def _add(self, name: str, operation: Operation) -> None:
        self._number_of.setdefault(name, len(self.noted))
        self.noted.append(operation)

    def finished(self, read: Collection[str]) -> tuple[Operation, ...]:
        """All operations. Those that no entry reads leave the network.

        Except a convolution that reads no entry, with the norm, the activation and the pool that follow it: it stands
        alone, and its network is not known.
        """
        alone: set[int] = set()
        for number, operation in enumerate(self.noted):
            if operation.kind == "conv":
                stands = not operation.inputs
            else:
                stands = bool(operation.inputs) and alone.issuperset(operation.inputs) and _fits_any_width(operation)
            if stands:
                alone.add(number)
        return tuple(
            replace(operation, output=True) if operation.name not in read and number not in alone else operation
            for number, operation in enumerate(self.noted)
        )


def _fits_any_width(operation: Operation) -> bool:
    """Whether an operation writes as many channels as it reads, for any number of channels."""
    work = operation.work
    if work is None:
        return operation.kind == "identity"
    return work.kind in _OF_ANY_WIDTH and work.op not in _OF_TASKS


def work_of(op: str, carrier: str, shape: Shape, inputs: Sequence[Shape], values: Mapping[str, Any]) -> Work | None:
    """The work of an entry that hands on `shape`, with its fields; unknown sizes count as 0.

    A linear layer has a bias unless it says that it has none. Attention reads queries, keys and values, or one tensor
    that stands for all three.
    """
    kind = _WORK.get(op, _WORK_OF_CARRIERS.get(carrier))
    if kind is None or not inputs:
        return None
    reads, writes = [elements_of(source) for source in inputs], elements_of(shape)
    if kind == "resize" and writes < reads[0]:  # any pool may be stated so
        kind = "pool"
    weights = 0
    product: tuple[int, ...] = ()
    if kind == "linear":  # of all channels of a map, or, where it hands on a vector, of the whole map
        rows = inputs[0].N or 0 if shape.H == shape.W == 1 else reads[0] // (inputs[0].C or 1)
        K = reads[0] // rows if rows else 0
        bias = values.get("bias") is not False
        writes, weights = rows * (shape.C or 0), (K + bias) * (shape.C or 0)
        product = (1, rows, shape.C or 0, K)
    elif kind == "attention":
        heads, C = values.get("heads", 1), shape.C or 0
        if len(inputs) != 3:
            reads = [3 * writes]
        queries, keys = (elements_of(of) // ((of.N or 1) * (of.C or 1)) for of in (shape, inputs[len(inputs) == 3]))
        product = (heads * (shape.N or 0), queries, keys, C // heads)
    elif kind == "product":  # batch x M x K times batch x K x N, whatever the order of the axes
        batch = values.get("heads", 1) * (shape.N or 0)
        K = isqrt(prod(reads) // (batch * writes)) if len(reads) == 2 and batch and writes else 0
        fits = K and K * K * batch * writes == prod(reads)
        M, N = (count // (batch * K) for count in reads) if fits else (0, 0)
        product = (batch, M, N, K)
        writes = batch * M * N
    elif kind in (*BATCH_NORMS, "layer norm", "group norm"):
        weights = 2 * (shape.C or 0)
    return Work(
        kind=kind, op=op, reads=tuple(reads), writes=writes, weights=weights, product=product,
        # A learned scale of channels is a parameter in fp32.
        in_32_bits=(kind in IN_32_BITS and op != "instancenorm") or (op == "scale" and len(inputs) == 1),
    )  # fmt: skip


def _part_of(op: str, shape: Shape, inputs: Sequence[Shape]) -> Work | None:
    """What an entry that is a view of a part hands on, of sizes that are known."""
    if op not in _PARTS or len(inputs) != 1:
        return None
    whole, part = elements_of(inputs[0]), elements_of(shape)
    return Work(kind="copy", op=op, reads=(whole,), writes=part) if 0 < part < whole else None


def elements_of(shape: Shape) -> int:
    """The elements of a tensor of this shape; 0 where a size is unknown."""
    return (shape.N or 0) * (shape.C or 0) * (shape.D or 0) * (shape.H or 0) * (shape.W or 0)


class _First(Struct, frozen=True):
    """The first run of a convolution: the shape that it hands on, and the index of its edge, if it has one."""

    layer: int
    shape: Shape
    edge: int | None


class Repeats:
    """Convolutions that run again, or share weights. `names` are those of all runs of a layer, by its index."""

    def __init__(self) -> None:
        self.names: dict[int, list[str]] = {}
        self.weights: dict[int, int] = {}  # layer that shares its weights -> the first layer that has them
        self._first: dict[str, _First] = {}

    def first(self, name: str, index: int, shape: Shape, edge: int | None) -> None:
        """Adds a convolution; `edge` is the index of its edge, if it has one."""
        self.names[index] = [name]
        self._first.setdefault(name, _First(index, shape, edge))

    def share(self, name: str, of: Value, index: int, layers: Sequence[ConvLayer]) -> int:
        """Lets `index` share the weights of the layer named by `of`; returns the first with them. Raises InputFault."""
        known = self._first_run(of, before=index)
        layer, other = layers[index], layers[known.layer]
        for axis in ("K", "C", "groups"):
            own, its = getattr(layer, axis), getattr(other, axis)
            if None not in (own, its) and own != its:
                raise fault(f"{name}: {axis}={own}, but {other.name}, whose weights it has, has {axis}={its}", of.span)
        first = self.weights.setdefault(known.layer, known.layer)
        self.weights[index] = first
        return first

    def run(
        self, name: str, of: Value | None, inputs: Sequence[Shape], span: Span, layers: Sequence[ConvLayer],
        edges: list[Edge],
    ) -> Shape:  # fmt: skip
        """The shape that another run of a layer hands on; adds its producers to the layer's edge. Raises InputFault."""
        if of is None:
            raise fault(f"{name}: op: {AGAIN} needs weights: the name of a convolution before it", span)
        known = self._first_run(of, before=len(layers))
        if len(inputs) > 1:
            raise fault(f"{name}: a convolution reads one tensor; join its inputs with op: concat or add", span)
        layer = layers[known.layer]
        for incoming in inputs:
            for axis in ("CW", "CHW", "CDHW")[layer.dims - 1]:
                own, arriving = getattr(layer, axis), getattr(incoming, axis)
                if None not in (own, arriving) and own != arriving:
                    # other sizes, with the same weights, are a layer of its own
                    hint = "" if axis == "C" else f"; state the convolution again, with weights: {layer.name}"
                    message = f"{name}: {axis}={arriving} arrives, but {layer.name} reads {axis}={own}{hint}"
                    raise fault(message, span)
            if known.edge is not None:
                edge = edges[known.edge]
                others = [index for index in incoming.producers if index not in (known.layer, *edge.producers)]
                edges[known.edge] = replace(edge, producers=(*edge.producers, *others)[:MOST_PRODUCERS])
        self.names[known.layer].append(name)
        return replace(known.shape, source=name)

    def _first_run(self, of: Value, before: int) -> _First:
        name = word("weights", of)
        known = self._first.get(name)
        if known is None or known.layer >= before:
            raise fault(f"weights: no convolution before this one is named {shown(name)!r}", of.span)
        return known


def with_roles(
    layers: Iterable[ConvLayer],
    edges: Sequence[Edge],
    shapes: Mapping[str, Shape],
    readers: Mapping[str, Sequence[str]],
    feeding: Collection[int],
    runs: Mapping[int, Sequence[str]],
) -> tuple[ConvLayer, ...]:
    """The layers with their roles (first, head, norm_follows, calls) where the spec does not state them.

    `readers` are the kinds of the operations that read each name; `feeding` are layers that feed others without an
    edge that says so; `runs` are the names of each layer's runs.
    """
    feeds = {index for edge in edges for index in edge.producers}.union(feeding)
    fed = {edge.consumer: edge for edge in edges}
    inputs = {name for name, shape in shapes.items() if shape.from_input and not shape.producers}
    result = []
    for index, layer in enumerate(layers):
        edge = fed.get(index)
        first, head = layer.first, layer.head
        if "first" not in layer.spans:
            if edge is None:
                # Of a layer without an edge, two things tell that it reads the network's input: few channels, as
                # images have them, and that other layers are wired to it.
                first = index in feeds or (layer.C is not None and layer.C <= 4)
            else:
                first = not edge.producers and edge.source in inputs
        if "head" not in layer.spans:
            head = edge is not None and bool(edge.producers) and index not in feeds
        names = runs.get(index, (layer.name,))
        consumers = [list(readers.get(name, ())) for name in names]
        norm = all(kinds == ["batchnorm"] for kinds in consumers) if any(consumers) else None
        calls = layer.calls if "calls" in layer.spans else len(names)
        if (first, head, norm, calls) != (layer.first, layer.head, layer.norm_follows, layer.calls):
            layer = replace(layer, first=first, head=head, norm_follows=norm, calls=calls)
        result.append(layer)
    return tuple(result)


_OF_ONE_LAYER = ("name", "input", "inputs", "from", "weights", "op", "type", "copied")


class Defaults:
    """The defaults of a spec, read once for each number of dimensions; each error goes to `report` once."""

    def __init__(
        self, values: Mapping[str, Value], report: Callable[[InputFault], None], dims: int | None = None
    ) -> None:
        self.values, self.dims = values, dims
        self._report = report
        self._fields: dict[int, Fields] = {}
        self._reported: set[tuple[str, int | None, int | None]] = set()

    @staticmethod
    def read(value: Value | None, report: Callable[[InputFault], None]) -> Defaults:
        """The defaults of a spec; none where there are none."""
        if value is None or value.is_null:
            return Defaults({}, report)
        if not isinstance(value.data, dict):
            report(fault(f"defaults must be a mapping, not {value.kind}", value.span))
            return Defaults({}, report)
        allowed = {}
        for key, item in value.data.items():
            if key in _OF_ONE_LAYER:
                report(fault(f"{key} cannot be a default", item.key_span or item.span))
            else:
                allowed[key] = item
        dims = None
        try:
            dims = dims_of(allowed, "conv")
        except InputFault as error:
            report(error)
        return Defaults(allowed, report, dims)

    def of(self, dims: int) -> Fields:
        """The defaults for a layer of so many dimensions."""
        fields = self._fields.get(dims)
        if fields is None:
            fields = self._fields[dims] = read_fields(self.values, dims, self._report_once, where="defaults")
        return fields

    def check(self) -> None:
        """Reports the errors of defaults that no layer has used."""
        if not self._fields:
            self.of(self.dims or 2)

    def _report_once(self, error: InputFault) -> None:
        key = (error.message, error.line, error.column)
        if key not in self._reported:
            self._reported.add(key)
            self._report(error)


MAX_OPERATIONS = 30_000  # convolutions and other operations
MAX_INPUTS = 256  # of one operation
_MOST_SUGGESTED = 200  # names that are compared to suggest one; the comparison takes quadratic time


# The keys that only some operations take, by shape carrier or op; elsewhere they would be read and not heeded.
_TAKEN_BY: Mapping[str, tuple[Collection[str], str]] = {
    "size": (("pool", "resize_to", "upsample", "crop"), "pool, global_pool, upsample and crop"),
    "scale": (
        ("upsample", "downsample", "pixel_shuffle", "pixel_unshuffle"),
        "upsample, downsample, pixel_shuffle and pixel_unshuffle",
    ),
    "heads": (("attention", "matmul"), "attention and matmul"),
    "groups": (
        ("conv", _GROUP_NORM, "channelshuffle", "channelsplit"),
        "convolutions, groupnorm, channel_shuffle and channel_split",
    ),
}
_OF_WINDOWS = frozenset((*NEUTRAL, *PADS, *SIZES[SIZES.index("T") :]))
_WITHOUT_WINDOW = ("identity", "batchnorm", "elementwise", "concat", "channel_pool", "channel_shuffle", "split")


class _Operation(Struct, frozen=True):
    """The value of `op`: its text, its shape carrier, and for a convolution (op of the model, depthwise)."""

    text: str
    carrier: str
    conv: tuple[str, bool] | None


class SpecGraph:
    """One pass over the list of layers; `layers` and `edges` collect what could be read."""

    def __init__(self, errors: SpecErrors, defaults: Defaults, *, batch: int | None, complete: bool) -> None:
        self.errors, self.defaults, self.batch, self.complete = errors, defaults, batch, complete
        self.layers: list[ConvLayer] = []
        self.edges: list[Edge] = []
        self.repeats = Repeats()
        self.wiring = SpecOperations()
        self.shapes: dict[str, Shape] = {}  # what each operation hands on, by its name
        self.places: dict[str, Span] = {}  # where each name was given
        self.readers: dict[str, list[str]] = {}  # name -> shape carriers of the operations that read it
        self.feeding: set[int] = set()  # layers that feed others, but were dropped from the producers of an edge
        self.reads = 0
        self.previous: Shape | None = None  # which an operation without `input` reads

    def finished(self) -> tuple[ConvLayer, ...]:
        """The layers, with the roles that the whole graph shows, and the layer whose weights each shares."""
        layers = with_roles(self.layers, self.edges, self.shapes, self.readers, self.feeding, self.repeats.names)
        first = self.repeats.weights
        return tuple(
            [
                replace(layer, node=layers[first[index]].name) if index in first else layer
                for index, layer in enumerate(layers)
            ]
        )

    def read(self, value: Value | None, document: Value) -> None:
        """Reads the list of layers; `document` is located where there is none."""
        if value is None:
            self.errors.fail(fault("layers is missing: nothing to check", document.span))
        elif not isinstance(value.data, list):
            self.errors.fail(fault(f"layers must be a list, not {value.kind}", value.span))
        elif len(value.data) > MAX_OPERATIONS:
            self.errors.fail(fault(f"layers: more than {MAX_OPERATIONS:,}, the limit for a spec", value.span))
        elif sum(map(_is_conv, value.data)) > MOST_LAYERS:
            self.errors.fail(
                fault(f"layers: more than {MOST_LAYERS:,} convolutions, the limit for one input", value.span)
            )
        else:
            names = {_stated_name(item) for item in value.data}
            for number, item in enumerate(value.data, start=1):
                name = _stated_name(item) or f"layer{number}"
                while _stated_name(item) is None and name in names:  # somebody may call the third layer "layer7"
                    name += "_"
                self._item(item, number, name)

    def _item(self, item: Value, number: int, name: str) -> None:
        """Reads one entry; an entry that cannot be read hands on an unknown shape, so that no error follows from it."""
        shape = Shape(source=name)
        known = len(self.wiring.noted)
        if isinstance(item.data, dict):
            shape = self.errors.attempt(lambda: self._operation(item, name), shape)
        else:
            self.errors.fail(fault(f"layer {number} must be a mapping, not {item.kind}", item.span))
        if len(self.wiring.noted) == known:
            self.wiring.unread(name)
        if name in self.shapes:
            self.errors.fail(
                fault(f"name {shown(name)!r} was given on line {self.places[name][0]} already", _name_span(item))
            )
        else:
            self.shapes[name], self.places[name] = shape, _name_span(item)
        self.previous = shape

    def _operation(self, item: Value, name: str) -> Shape:
        """Reads one entry that is a mapping; the shape that it hands on. Raises InputFault."""
        mapping: Mapping[str, Value] = item.data
        errors = len(self.errors.noted)
        op = self.errors.attempt(lambda: _operation(mapping), _Operation("conv", "", None))
        stated = self.errors.attempt(lambda: dims_of(mapping, op.text), None)
        inputs = self._inputs(mapping, op, stated)
        arriving = inputs[0].dims if inputs else None
        dims = stated or arriving or self.defaults.dims or 2
        fields = read_fields(mapping, dims, self.errors.fail, where="a layer")
        fields.spans["layer"] = item.span
        for source in inputs:
            self.readers.setdefault(source.source, []).append(op.carrier)
        for key, (carriers, whose) in _TAKEN_BY.items():
            is_taken = op.carrier in carriers or normalised(op.text)[0] in carriers
            if key in mapping and not is_taken and not mapping[key].is_null:
                self.errors.fail(fault(f"{key}: of {whose} alone", mapping[key].span))
        if op.carrier in _WITHOUT_WINDOW:
            for key, value in mapping.items():
                if CANONICAL.get(key) in _OF_WINDOWS and _changes_sizes(CANONICAL[key], value):
                    self.errors.fail(fault(f"{key}: of convolutions, pools and padding alone", value.span))
        if len(self.errors.noted) > errors:
            return Shape(source=name)
        if op.conv is not None:
            shape = self._conv(name, op.conv, dims, fields, inputs)
            of, index = mapping.get("weights"), shape.producers[0]
            share = partial(self.repeats.share, name, index=index, layers=self.layers)
            weights = None if of is None else self.errors.attempt(lambda: share(of), None)
            self.wiring.note("conv", op.text, shape, inputs, {"frozen": self.layers[index].frozen}, weights=weights)
            return shape
        if op.carrier == AGAIN:
            shape = self.repeats.run(
                name, mapping.get("weights"), inputs, fields.spans["layer"], self.layers, self.edges
            )
            self._feeds(inputs)
            self.wiring.note("conv", op.text, shape, inputs, {"frozen": self.layers[shape.producers[0]].frozen})
            return shape
        if "N" not in fields.values and op.carrier in ("input", "declared"):  # others take N from what they read
            fields.values["N"] = self.defaults.of(dims).values.get("N")
        if self.batch is not None and "N" in fields.values:
            fields.values["N"] = self.batch
        if (frozen := self.defaults.of(dims).values.get("frozen")) is not None:
            fields.values.setdefault("frozen", frozen)
        if normalised(op.text)[0] in PRODUCTS:
            self._feeds(inputs)
            if "K" in fields.values:  # C is then what it reads
                fields.values["C"] = fields.values["K"]
        shape, dropped = latest(carried(op.carrier, name, inputs, fields, mapping, dims))
        if op.carrier not in ("declared", "split"):
            _divide(shape, fields)
        self.feeding.update(dropped)
        self.wiring.note(op.carrier, op.text, shape, inputs, fields.values, factor_of(op.carrier, mapping))
        return shape

    def _feeds(self, inputs: list[Shape]) -> None:
        """Notes that what writes these tensors is no head: something with weights reads them."""
        self.feeding.update(producer for incoming in inputs for producer in incoming.producers)

    def _conv(self, name: str, conv: tuple[str, bool], dims: int, fields: Fields, inputs: list[Shape]) -> Shape:
        if len(inputs) > 1:
            problem = "a convolution reads one tensor; join its inputs with op: concat or add"
            raise fault(f"{name}: {problem}", fields.spans["layer"])
        incoming = inputs[0] if inputs else None
        defaults = self.defaults.of(dims)
        layer = conv_layer(
            name, self.errors.path, conv, dims, fields, defaults, incoming, batch=self.batch, complete=self.complete
        )
        index = len(self.layers)
        self.layers.append(layer)
        if incoming is not None:
            self.edges.append(
                Edge(consumer=index, producers=incoming.producers, source=incoming.source, C=incoming.C, D=incoming.D,
                     H=incoming.H, W=incoming.W, copied=fields.values.get("copied"))
            )  # fmt: skip
        shape = written_by(layer, index)
        self.repeats.first(name, index, shape, edge=len(self.edges) - 1 if incoming is not None else None)
        return shape

    def _inputs(self, mapping: Mapping[str, Value], op: _Operation, dims: int | None) -> list[Shape]:
        """What an entry reads: the named entries, else the one before it, unless it states all its input sizes."""
        keys = [key for key in ("inputs", "input", "from") if key in mapping]
        if keys:
            value = mapping[keys[0]]
            for key in keys[1:]:
                self.errors.fail(fault(f"{key} says again what {keys[0]} says", mapping[key].span))
            items = value.data if isinstance(value.data, list) else [value]
            self.reads += len(items)
            if not items or len(items) > MAX_INPUTS or self.reads > MOST_READS:
                what = "names no layer" if not items else "names too many layers"
                self.errors.fail(fault(f"{keys[0]}: {what}", value.span))
                return []
            shapes = [self.errors.attempt(lambda item=item: self._shape_of(item), None) for item in items]  # type: ignore[misc]
            return [shape for shape in shapes if shape is not None]
        previous = self.previous
        if previous is None or op.carrier == "input":
            return []
        if op.conv is None:
            return [previous]
        given = {CANONICAL.get(key) for key in (*mapping, *self.defaults.values)}
        one_dimensional = (dims or previous.dims or self.defaults.dims) == 1
        return [] if given.issuperset("CW" if one_dimensional else "CHW") else [previous]

    def _shape_of(self, item: Value) -> Shape:
        name = word("input", item)
        shape = self.shapes.get(name)
        if shape is None:
            hint = suggestion(name, self.shapes) if len(self.shapes) <= _MOST_SUGGESTED else ""
            raise fault(f"input: no layer before this one is named {shown(name)!r}{hint}", item.span)
        return shape


def _operation(mapping: Mapping[str, Value]) -> _Operation:
    keys = [key for key in ("op", "type") if key in mapping]
    if not keys:
        return _Operation("conv", "conv", ("conv", False))
    if len(keys) > 1:
        raise fault(f"{keys[1]} says again what {keys[0]} says", mapping[keys[1]].span)
    text = word(keys[0], mapping[keys[0]])
    conv = conv_op(text)
    return _Operation(text, "conv" if conv else carrier_of(text, mapping[keys[0]]), conv)


def _changes_sizes(key: str, value: Value) -> bool:
    """Whether the value of a key is one that changes the sizes of what a window goes over."""
    neutral = {str(NEUTRAL.get(key, 0 if key in PADS else 1)), "same", "valid"}
    items = value.data if isinstance(value.data, list) else [value]
    return any(not isinstance(item.data, str) or item.data not in neutral for item in items)


def _divide(shape: Shape, fields: Fields) -> None:
    """Raises InputFault where the heads of an attention, or the groups of a norm, do not divide the channels."""
    for key in ("heads", "groups"):
        parts = fields.values.get(key)
        if parts is not None and shape.C is not None and shape.C % parts:
            raise fault(f"{key} = {parts} does not divide C = {shape.C}", fields.spans[key])


def _is_conv(item: Value) -> bool:
    """Whether an entry is a convolution by its op; one that is no mapping counts as one, as does one without op."""
    if not isinstance(item.data, dict):
        return True
    op = item.data.get("op") or item.data.get("type")
    return op is None or not isinstance(op.data, str) or conv_op(op.data) is not None


def _stated_name(item: Value) -> str | None:
    value = item.data.get("name") if isinstance(item.data, dict) else None
    return value.data if value is not None and isinstance(value.data, str) and value.data else None


def _name_span(item: Value) -> Span:
    return item.data["name"].span if _stated_name(item) is not None else item.span
