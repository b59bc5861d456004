"""The list of layers in a spec as a graph: which entry reads which, defaults, repeated runs, and roles of layers."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from convlint.files.located_yaml import Value, fault
from convlint.model.errors import InputFault, shown, suggestion
from convlint.model.layer import AXES, ConvLayer, output_size, same_padding, with_output
from convlint.model.location import Span
from convlint.model.network import Edge, Operation, OperationKind
from convlint.model.report import InputError
from convlint.readers.bounded_json import MOST_LAYERS, MOST_MESSAGES, MOST_READS
from convlint.readers.operations import MOST_PRODUCERS
from convlint.readers.spec.fields import (
    CANONICAL,
    COMPOSITES,
    MAX_SIZE,
    PADS,
    Fields,
    axes,
    integer,
    read_fields,
    tensor_sizes,
    word,
)


class Shape(Struct, frozen=True, kw_only=True):
    """The shape that an operation hands on; None is unknown. `producers` are the convolutions that it comes from."""

    source: str
    producers: tuple[int, ...] = ()
    from_input: bool = False  # a network input reaches it through no convolution
    N: int | None = None
    C: int | None = None
    D: int | None = 1
    H: int | None = None
    W: int | None = None
    dims: int | None = None


_DIMS = re.compile(r"([a-z]+)([123])d([a-z]*)")
_UNCHANGED = "identity"
AGAIN = "again"  # another run of a convolution; `Repeats` reads it, because it needs the layers
# Normalised op -> shape carrier, the name of what it does to a shape.
CARRIERS: Mapping[str, str] = {
    **dict.fromkeys(
        ("relu", "relu6", "leakyrelu", "prelu", "gelu", "silu", "swish", "hardswish", "mish", "elu", "sigmoid", "tanh",
         "softmax", "activation", "dropout", "identity", "norm", "layernorm", "groupnorm", "instancenorm", "quantize",
         "dequantize"),
        _UNCHANGED,
    ),
    **dict.fromkeys(("batchnorm", "bn", "batchnormalization", "syncbatchnorm"), "batchnorm"),
    **dict.fromkeys(("add", "sum", "sub", "mul", "multiply", "maximum", "scale"), "elementwise"),
    **dict.fromkeys(("concat", "cat", "concatenate"), "concat"),
    **dict.fromkeys(("pool", "maxpool", "avgpool", "averagepool", "maxpooling", "averagepooling"), "pool"),
    **dict.fromkeys(
        ("globalpool", "globalavgpool", "globalaveragepool", "globalaveragepooling", "globalmaxpool",
         "globalmaxpooling", "adaptivepool", "adaptiveavgpool", "adaptivemaxpool"),
        "resize_to",
    ),
    **dict.fromkeys(("upsample", "upsampling", "resize", "interpolate"), "upsample"),
    "downsample": "downsample",
    **dict.fromkeys(("pixelshuffle", "depthtospace"), "pixel_shuffle"),
    **dict.fromkeys(("pixelunshuffle", "spacetodepth"), "pixel_unshuffle"),
    **dict.fromkeys(("pad", "zeropad", "zeropadding", "reflectionpad"), "pad"),
    "input": "input",
    AGAIN: AGAIN,
    **dict.fromkeys(("reshape", "linear", "dense", "view", "slice", "split", "chunk"), "declared"),
}  # fmt: skip


def carrier_of(op: str, value: Value) -> str:
    """The shape carrier of an op that is no convolution. Raises InputFault with a suggestion."""
    name = normalised(op)[0]
    kind = CARRIERS.get(name)
    if kind is None:
        options = [*CARRIERS, "conv", "conv_transpose"]
        raise fault(f"op: unknown operation {shown(op)!r}{suggestion(name, options)}", value.span)
    return kind


def normalised(op: str) -> tuple[str, int | None]:
    """An op without case, separators and dimensions: ("convtranspose", 2) for `nn.Conv_Transpose-2d`."""
    name = op.lower().replace("_", "").replace("-", "").removeprefix("nn.")
    match = _DIMS.fullmatch(name) if "d" in name else None
    return (match[1] + match[3], int(match[2])) if match else (name, None)


def carried(
    kind: str, name: str, inputs: Sequence[Shape], fields: Fields, mapping: Mapping[str, Value], dims: int
) -> Shape:
    """The shape after an operation. Raises InputFault where the inputs do not fit together, or a size exceeds 2^31."""
    try:
        shape = _carried(kind, name, inputs, fields, mapping, dims)
    except InputFault as error:
        if error.line is not None:  # located already, at the value that is wrong
            raise
        line, column, *_ = fields.spans["layer"]
        raise InputFault(f"{name}: {error.message}", line=line, column=column) from error
    for axis in ("N", "C", "D", "H", "W"):  # each factor is bounded, but their product is not
        size = getattr(shape, axis)
        if size is not None and size > MAX_SIZE:
            raise fault(f"{name}: {axis} would be {shown(str(size))}, larger than 2^31", fields.spans["layer"])
    return shape


def _carried(
    kind: str, name: str, inputs: Sequence[Shape], fields: Fields, mapping: Mapping[str, Value], dims: int
) -> Shape:
    values = fields.values
    if kind in ("input", "declared"):
        known = inputs[0] if inputs else Shape(source=name)
        return Shape(
            source=name, producers=_producers(inputs), from_input=known.from_input or not inputs,
            N=values.get("N") or known.N, C=values.get("C"), D=values.get("D") if dims == 3 else 1,
            H=1 if dims == 1 else values.get("H"), W=values.get("W"), dims=dims,
        )  # fmt: skip
    if not inputs:
        raise InputFault("reads no layer; give input:")
    from_input = any(shape.from_input for shape in inputs)
    base = replace(inputs[0], source=name, producers=_producers(inputs), from_input=from_input, dims=dims)
    if kind == "concat":
        channels = [shape.C for shape in inputs]
        total = sum(c for c in channels if c is not None)
        return replace(_aligned(base, inputs, broadcast=False), C=None if None in channels else total)
    if kind == "elementwise":
        return _aligned(base, inputs, broadcast=True)
    if kind == "pool":
        return _pooled(base, values)
    if kind == "resize_to":
        return _resized(base, mapping.get("size"), dims)
    if kind == "upsample":
        return _upsampled(base, mapping, dims)
    if kind == "downsample":
        return _each_axis(base, "scale", mapping, dims, lambda size, factor: max(1, size // factor))
    if kind in ("pixel_shuffle", "pixel_unshuffle"):
        factor = factor_of(kind, mapping)
        squared = factor * factor
        if kind == "pixel_shuffle":
            return replace(base, C=_div("C", base.C, squared), H=_mul(base.H, factor), W=_mul(base.W, factor))
        return replace(base, C=_mul(base.C, squared), H=_div("H", base.H, factor), W=_div("W", base.W, factor))
    if kind == "pad":
        return replace(base, **{axis: _padded(getattr(base, axis), values, "Pad" + axis) for axis in "DHW"})
    return base


def factor_of(kind: str, mapping: Mapping[str, Value]) -> int:
    """The factor of a pixel shuffle along H and W; 1 for other operations. Raises InputFault."""
    if kind not in ("pixel_shuffle", "pixel_unshuffle"):
        return 1
    return integer("scale", mapping["scale"]) if "scale" in mapping else 2


def _producers(inputs: Sequence[Shape]) -> tuple[int, ...]:
    if len(inputs) == 1:  # the usual case, which needs no set
        return inputs[0].producers
    return tuple(sorted({index for shape in inputs for index in shape.producers}))


def latest(shape: Shape) -> tuple[Shape, tuple[int, ...]]:
    """The shape with its MOST_PRODUCERS latest producers, and the producers that are dropped."""
    dropped = shape.producers[:-MOST_PRODUCERS]
    return (replace(shape, producers=shape.producers[-MOST_PRODUCERS:]), dropped) if dropped else (shape, ())


def _mul(size: int | None, factor: int) -> int | None:
    return None if size is None else size * factor


def _div(axis: str, size: int | None, factor: int) -> int | None:
    if size is not None and size % factor:
        raise InputFault(f"{axis} = {size} cannot be divided by {factor}")
    return None if size is None else size // factor


def _padded(size: int | None, values: Mapping[str, Any], pad: str) -> int | None:
    extra: int = values.get(pad, 0) + values.get(pad + "_end", 0)
    return None if size is None else size + extra


def _aligned(base: Shape, inputs: Sequence[Shape], *, broadcast: bool) -> Shape:
    """The base with the sizes on which all inputs agree: D, H, W, and C where `broadcast`, which also lets a 1 pass."""
    sizes: dict[str, int | None] = {}
    for axis in ("D", "H", "W", "C") if broadcast else ("D", "H", "W"):
        known = {size: shape.source for shape in inputs if (size := getattr(shape, axis)) is not None}
        unsure = len(known) and any(getattr(shape, axis) is None for shape in inputs)
        wide = [size for size in known if size != 1 or not broadcast]
        if len(wide) > 1:
            differing = " and ".join(f"{known[size]} has {size}" for size in wide[:2])
            raise InputFault(f"its inputs differ in {axis}: {differing}")
        if wide:
            sizes[axis] = wide[0]
        elif unsure:  # a 1 beside an unknown size: the result may have either
            sizes[axis] = None
    sizes["N"] = next((shape.N for shape in inputs if shape.N is not None), None)
    return replace(base, **sizes)


def _resized(base: Shape, size: Value | None, dims: int) -> Shape:
    D, H, W = (1, 1, 1) if size is None else tensor_sizes("size", size, dims)
    return replace(base, D=D, H=H, W=W)


def _upsampled(base: Shape, mapping: Mapping[str, Value], dims: int) -> Shape:
    if "size" in mapping:
        return _resized(base, mapping["size"], dims)
    if "scale" not in mapping:
        raise InputFault("needs scale or size")
    return _each_axis(base, "scale", mapping, dims, lambda size, factor: size * factor)


def _each_axis(
    base: Shape, key: str, mapping: Mapping[str, Value], dims: int, change: Callable[[int, int], int]
) -> Shape:
    if key not in mapping:
        raise InputFault(f"needs {key}")
    factors = axes(key, mapping[key], dims, minimum=1, neutral=1)
    sizes = {
        axis: None if (size := getattr(base, axis)) is None else change(size, factor)
        for axis, factor in zip("DHW", factors, strict=True)
    }
    return replace(base, **sizes)


def _pooled(base: Shape, values: Mapping[str, Any]) -> Shape:
    """The shape after a pool, whose stride is its window unless given, as in every framework."""
    if not any(taps in values for taps in "TRS"):
        raise InputFault("a pool needs kernel_size; op: global_pool has none")
    sizes = {}
    for fields in AXES:
        size, taps, dilation = getattr(base, fields.size), values.get(fields.taps, 1), values.get(fields.dilation, 1)
        stride = values.get(fields.stride, taps)
        pad = values.get(fields.pad, 0) + values.get(fields.pad_end, 0)
        if values.get("same"):
            pad = sum(same_padding(size, stride=stride, dilation=dilation, taps=taps) or (0, 0))
        if size is not None:
            size = output_size(size, stride=stride, pad=pad, dilation=dilation, taps=taps)
            if size < 1:
                raise InputFault(f"the window of {taps} is larger than {fields.size} = {getattr(base, fields.size)}")
        sizes[fields.size] = size
    return replace(base, **sizes)


CONVS: Mapping[str, tuple[str, bool]] = {  # normalised name -> (op, depthwise)
    **dict.fromkeys(("conv", "convolution"), ("conv", False)),
    **dict.fromkeys(
        ("convtranspose", "convtransposed", "transposedconv", "transposeconv", "deconv", "deconvolution", "convt"),
        ("conv_transpose", False),
    ),
    **dict.fromkeys(("depthwise", "depthwiseconv", "dwconv"), ("conv", True)),
}
_DEPTH_KEYS = ("D", "T", "Z", "StrideD", "PadD", "DilD", "depth")
_LAYER_FIELDS = (
    "N", "C", "D", "H", "W", "K", "T", "R", "S", "StrideD", "U", "V", "DilD", "DilH", "DilW",
    "PadD", "PadH", "PadW", "PadD_end", "PadH_end", "PadW_end", "OutPadD", "OutPadH", "OutPadW",
    "groups", "dtype", "layout", "bias", "calls", "residual_inputs", "first", "head",
)  # fmt: skip


def conv_op(op: str) -> tuple[str, bool] | None:
    """(op of the model, depthwise) for a convolution in any framework's spelling; None for other operations."""
    return CONVS.get(normalised(op)[0])


def dims_of(mapping: Mapping[str, Value], op: str) -> int | None:
    """1, 2 or 3 dimensions: as `dims` states, as the op's name has it, or as the sizes imply; None: not stated."""
    if "dims" in mapping:
        dims = integer("dims", mapping["dims"])
        if dims > 3:
            raise fault(f"dims: must be 1, 2 or 3, not {dims}", mapping["dims"].span)
        return dims
    named = normalised(op)[1]
    if named is not None:
        return named
    if any(key in mapping for key in _DEPTH_KEYS):
        return 3
    for key, value in mapping.items():
        name = CANONICAL.get(key)
        if name in COMPOSITES and isinstance(value.data, list):
            if len(value.data) == 3:
                return 3
            if len(value.data) == 1 and name == "kernel_size":
                return 1
    return None


def conv_layer(
    name: str,
    path: str,
    conv: tuple[str, bool],
    dims: int,
    fields: Fields,
    defaults: Fields | None,
    incoming: Shape | None,
    *,
    batch: int | None = None,
    complete: bool = True,
) -> ConvLayer:
    """The layer, from its fields, the defaults and what arrives at it. Raises InputFault.

    `complete`: K and the filter are required, because nothing can supply them later.
    """
    values, spans = dict(fields.values), dict(fields.spans)
    if defaults is not None:
        _fill(values, spans, defaults)
    if incoming is not None:
        for letter in ("NCW", "NCHW", "NCDHW")[dims - 1]:
            arriving = getattr(incoming, letter)
            if letter not in values and arriving is not None:
                values[letter] = arriving
    if batch is not None:
        values["N"] = batch
    op, depthwise = conv
    if values.pop("transposed", False):
        op = "conv_transpose"
    if dims == 1:
        if values.setdefault("H", 1) != 1:  # an entry that means the length would be read as a height
            raise fault(f"{name}: a 1-D convolution has no H; its length is W", spans.get("H", spans["layer"]))
        values.setdefault("R", 1)
    elif dims == 3:
        values.setdefault("D", None)  # unknown, where a 2-D layer has 1
    if depthwise and "groups" not in values:
        if values.get("C") is None:
            raise fault(f"{name}: a depthwise convolution needs C (in_channels)", spans["layer"])
        values["groups"] = values["C"]
        values.setdefault("K", values["C"])
    if complete:
        _demand(name, values, spans["layer"])
    if values.pop("same", False):
        same_sides(values, op, dims)
    chosen = {key: values[key] for key in _LAYER_FIELDS if key in values}
    layer = with_output(
        ConvLayer(
            name=name, path=path, op="conv_transpose" if op == "conv_transpose" else "conv", dims=dims, spans=spans,
            declared_P=values.get("P"), declared_Q=values.get("Q"), declared_Z=values.get("Z"), **chosen,
        )
    )  # fmt: skip
    for letter in "ZPQ":
        size = getattr(layer, letter)
        if size is not None and size > MAX_SIZE:
            raise fault(f"{name}: the output's {letter} would be {size}, larger than 2^31", spans["layer"])
    return layer


def written_by(layer: ConvLayer, index: int) -> Shape:
    """The shape that a convolution hands on; unknown where the layer's own is impossible, which a rule reports."""
    D, H, W = (None if size is not None and size < 1 else size for size in (layer.Z, layer.P, layer.Q))
    return Shape(source=layer.name, producers=(index,), N=layer.N, C=layer.K, D=D, H=H, W=W, dims=layer.dims)


def _fill(values: dict[str, Any], spans: dict[str, Span], defaults: Fields) -> None:
    """Adds the defaults that the layer does not set; padding counts as one setting, whatever its spelling."""
    padded = "same" in values or any(pad in values for pad in PADS)
    for key, value in defaults.values.items():
        if key not in values and not (padded and key == "same") and not ("same" in values and key.startswith("Pad")):
            values[key] = value
            spans.setdefault(key, defaults.spans[key])


def _demand(name: str, values: Mapping[str, Any], span: Span) -> None:
    """Raises InputFault where K or the filter is missing."""
    missing = [letter for letter in ("K", "R", "S") if letter not in values]
    if missing:
        wanted = {"K": "K (out_channels)", "R": "R and S (kernel_size)", "S": "R and S (kernel_size)"}
        what = " and ".join(dict.fromkeys(wanted[letter] for letter in missing))
        raise InputFault(f"{name}: a convolution needs {what}", line=span[0], column=span[1])


def same_sides(values: dict[str, Any], op: str, dims: int) -> None:
    """Replaces padding "same" by its sides; they are None where the stride makes them depend on an unknown size."""
    for axis in AXES:
        taps, dilation, step = values.get(axis.taps, 1), values.get(axis.dilation, 1), values.get(axis.stride, 1)
        extent = dilation * (taps - 1) + 1
        if op == "conv_transpose":  # output = size x stride
            total = max(extent - step, 0)
            begin, end = total // 2, total - total // 2
            if step > extent:  # the taps leave gaps, and output padding fills the last one
                values.setdefault(axis.output_padding, step - extent)
        else:
            default = None if axis.size != "D" or dims == 3 else 1
            sides = same_padding(values.get(axis.size, default), stride=step, dilation=dilation, taps=taps)
            begin, end = sides if sides is not None else (None, None)
        values[axis.pad], values[axis.pad_end] = begin, end


_T = TypeVar("_T")


class TooManyErrors(Exception):
    """The spec has more errors than are reported."""


class SpecErrors:
    """The errors of the spec at `path`; reading goes on after each."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.found: list[InputError] = []

    def fail(self, error: InputFault) -> None:
        """Notes an error. Raises TooManyErrors."""
        if len(self.found) >= MOST_MESSAGES:
            self.found.append(InputError(path=self.path, message=f"more than {MOST_MESSAGES} errors; not read further"))
            raise TooManyErrors
        self.found.append(InputError(path=self.path, message=error.message, line=error.line, column=error.column))

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
    "pad": "resize", "pixel_shuffle": "pixel_shuffle", "pixel_unshuffle": "pixel_unshuffle", "declared": "reshape",
}  # fmt: skip
_GROUP_NORM = "groupnorm"


class SpecOperations:
    """The entries of a spec as operations, in their order."""

    def __init__(self) -> None:
        self.noted: list[Operation] = []
        self._number_of: dict[str, int] = {}

    def note(
        self, carrier: str, op: str, shape: Shape, inputs: Sequence[Shape], values: Mapping[str, Any], factor: int = 1,
        weights: int | None = None,
    ) -> None:  # fmt: skip
        """Adds an entry that hands on `shape`; `values` are its fields, `op` is the text of its op."""
        kind, groups, where = _KINDS[carrier], 1, ""
        if carrier == "identity" and normalised(op)[0] == _GROUP_NORM:  # without groups its channels may not change
            kind, groups = ("identity", values["groups"]) if "groups" in values else ("reshape", 1)
        if kind == "reshape":
            where = f"{op} {shape.source}"
        self._add(
            shape.source,
            Operation(
                kind=kind, name=shape.source, inputs=tuple([self._number_of[source.source] for source in inputs]),
                layer=shape.producers[0] if kind == "conv" else None, weights=weights, C=shape.C,
                D=shape.D, H=shape.H, W=shape.W, dims=shape.dims or 2, factor=factor, groups=groups, where=where,
            ),
        )  # fmt: skip

    def unread(self, name: str) -> None:
        """Adds an entry that could not be read, so that those which name it can be."""
        self._add(name, Operation(kind="reshape", name=name, where=f"what {name} is"))

    def _add(self, name: str, operation: Operation) -> None:
        self._number_of.setdefault(name, len(self.noted))
        self.noted.append(operation)

    def finished(self, read: Collection[str]) -> tuple[Operation, ...]:
        """All operations. What no entry reads leaves the network, except a convolution that reads no entry either."""
        return tuple(
            replace(operation, output=True)
            if operation.name not in read and (operation.inputs or operation.kind != "conv")
            else operation
            for operation in self.noted
        )


class _First(NamedTuple):
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
        """The first layer with the weights of the one that `of` names, which `index` shares. Raises InputFault."""
        known = self._named(of, before=index)
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
        known = self._named(of, before=len(layers))
        if len(inputs) > 1:
            raise fault(f"{name}: a convolution reads one tensor; join its inputs with op: concat or add", span)
        layer = layers[known.layer]
        for incoming in inputs:
            for axis in ("CW", "CHW", "CDHW")[layer.dims - 1]:
                own, arriving = getattr(layer, axis), getattr(incoming, axis)
                if None not in (own, arriving) and own != arriving:
                    raise fault(f"{name}: {axis}={arriving} arrives, but {layer.name} reads {axis}={own}", span)
            if known.edge is not None:
                edge = edges[known.edge]
                others = [index for index in incoming.producers if index not in (known.layer, *edge.producers)]
                edges[known.edge] = replace(edge, producers=(*edge.producers, *others)[:MOST_PRODUCERS])
        self.names[known.layer].append(name)
        return replace(known.shape, source=name)

    def _named(self, of: Value, before: int) -> _First:
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


class _Operation(NamedTuple):
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
            given = {_stated_name(item) for item in value.data}
            for number, item in enumerate(value.data, start=1):
                name = _stated_name(item) or f"layer{number}"
                while _stated_name(item) is None and name in given:  # somebody may call the third layer "layer7"
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
        errors = len(self.errors.found)
        op = self.errors.attempt(lambda: _operation(mapping), _Operation("conv", "", None))
        stated = self.errors.attempt(lambda: dims_of(mapping, op.text), None)
        inputs = self._inputs(mapping, op, stated)
        arriving = inputs[0].dims if inputs else None
        dims = stated or arriving or self.defaults.dims or 2
        fields = read_fields(mapping, dims, self.errors.fail, where="a layer")
        fields.spans["layer"] = item.span
        for source in inputs:
            self.readers.setdefault(source.source, []).append(op.carrier)
        if len(self.errors.found) > errors:
            return Shape(source=name)
        if op.conv is not None:
            shape = self._conv(name, op.conv, dims, fields, inputs)
            of, index = mapping.get("weights"), shape.producers[0]
            share = partial(self.repeats.share, name, index=index, layers=self.layers)
            weights = None if of is None else self.errors.attempt(lambda: share(of), None)
            self.wiring.note("conv", op.text, shape, inputs, fields.values, weights=weights)
            return shape
        if op.carrier == AGAIN:
            shape = self.repeats.run(
                name, mapping.get("weights"), inputs, fields.spans["layer"], self.layers, self.edges
            )
            self.feeding.update(producer for incoming in inputs for producer in incoming.producers)
            self.wiring.note("conv", op.text, shape, inputs, fields.values)
            return shape
        if "N" not in fields.values and op.carrier in ("input", "declared"):  # others take N from what they read
            fields.values["N"] = self.defaults.of(dims).values.get("N")
        shape, dropped = latest(carried(op.carrier, name, inputs, fields, mapping, dims))
        self.feeding.update(dropped)
        self.wiring.note(op.carrier, op.text, shape, inputs, fields.values, factor_of(op.carrier, mapping))
        return shape

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
            found = [self.errors.attempt(lambda item=item: self._named(item), None) for item in items]  # type: ignore[misc]
            return [shape for shape in found if shape is not None]
        previous = self.previous
        if previous is None or op.carrier == "input":
            return []
        if op.conv is None:
            return [previous]
        given = {CANONICAL.get(key) for key in (*mapping, *self.defaults.values)}
        one_dimensional = (dims or previous.dims or self.defaults.dims) == 1
        return [] if given.issuperset("CW" if one_dimensional else "CHW") else [previous]

    def _named(self, item: Value) -> Shape:
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
