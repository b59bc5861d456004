"""What one entry of a spec makes of the shapes that arrive at it: a convolution layer, or another shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import mul
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from convlint.files.located_yaml import Value, fault
from convlint.files.patterns import pattern
from convlint.model.errors import InputFault, shown, suggestion
from convlint.model.layer import AXES, ConvLayer, is_patches, output_size, same_padding, with_output
from convlint.model.location import Span
from convlint.readers.bounded_json import MOST_PRODUCERS
from convlint.readers.spec.fields import CANONICAL, COMPOSITES, MAX_SIZE, PADS, Fields, axes, integer, tensor_sizes


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


_DIMS = pattern(r"([a-z]+)([123])d([a-z]*)")
_UNCHANGED = "identity"
PRODUCTS = ("linear", "dense")
_PARTS = ("slice", "split", "chunk")
AGAIN = "again"  # another run of a convolution; `Repeats` reads it, because it needs the layers
# Normalised op -> shape carrier, the name of what it does to a shape.
CARRIERS: Mapping[str, str] = {
    **dict.fromkeys(
        ("relu", "relu6", "leakyrelu", "prelu", "gelu", "silu", "swish", "hardswish", "mish", "elu", "sigmoid", "tanh",
         "softmax", "activation", "dropout", "identity", "frozenbatchnorm", "layernorm", "groupnorm",
         "quantize", "dequantize", "attention", "copy"),
        _UNCHANGED,
    ),
    **dict.fromkeys(("norm", "batchnorm", "bn", "batchnormalization", "syncbatchnorm", "instancenorm"), "batchnorm"),
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
    "channelpool": "channel_pool",
    "channelshuffle": "channel_shuffle",
    **dict.fromkeys(("channelsplit", "glu"), "split"),
    **dict.fromkeys(("pixelshuffle", "depthtospace"), "pixel_shuffle"),
    **dict.fromkeys(("pixelunshuffle", "spacetodepth"), "pixel_unshuffle"),
    "crop": "crop",
    **dict.fromkeys(("pad", "zeropad", "zeropadding", "reflectionpad"), "pad"),
    "input": "input",
    AGAIN: AGAIN,
    **dict.fromkeys(("reshape", *PRODUCTS, "matmul", "view", *_PARTS), "declared"),
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
    for axis in ("C", "D", "H", "W") if kind not in ("input", "declared") else ():
        stated = fields.values.get(axis)
        if stated is not None:
            _confirm(axis, stated, name, [*inputs, shape], fields.spans)
    K = fields.values.get("K")
    if K is not None and shape.C not in (None, K) and kind not in ("input", "declared"):
        raise fault(f"K = {K}, but {shown(name)} hands on C = {shape.C}", fields.spans["K"])
    for axis in ("N", "C", "D", "H", "W"):  # each factor is bounded, but their product is not
        size = getattr(shape, axis)
        if size is not None and size > MAX_SIZE:
            raise fault(f"{name}: {axis} would be {shown(str(size))}, larger than 2^31", fields.spans["layer"])
    return shape


def _confirm(axis: str, stated: int, name: str, shapes: Sequence[Shape], spans: Mapping[str, Span]) -> None:
    """Raises InputFault where none of the shapes, the one that is handed on last, has a size that an entry states."""
    sizes = list(dict.fromkeys(getattr(shape, axis) for shape in shapes))
    if None not in sizes and stated not in sizes:
        others = f" and hands on {sizes[-1]}" if len(sizes) > 1 else ""
        raise fault(f"{axis} = {stated}, but {shown(name)} reads {sizes[0]}{others}", spans[axis])


def _carried(
    kind: str, name: str, inputs: Sequence[Shape], fields: Fields, mapping: Mapping[str, Value], dims: int
) -> Shape:
    values = fields.values
    if kind in ("input", "declared"):
        known = inputs[0] if inputs else Shape(source=name)
        word = normalised(str(mapping["op"].data))[0]
        if (word in PRODUCTS or word in _PARTS) and values.keys().isdisjoint("DHW"):  # of the channels alone
            values = {**values, "D": known.D, "H": known.H, "W": known.W}
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
    if kind == "pool" and "size" not in mapping:
        return _pooled(base, values)
    if kind == "crop":
        return _cropped(base, mapping.get("size"), dims)
    if kind in ("pool", "resize_to"):
        return _resized(base, mapping.get("size"), dims)
    if kind == "upsample":
        if "size" in mapping:
            if "scale" in mapping:
                raise fault("size says again what scale says", mapping["size"].span)
            return _resized(base, mapping["size"], dims)
        return _scaled(base, mapping, dims, mul, "scale or size")
    if kind == "downsample":
        return _scaled(base, mapping, dims, lambda size, factor: max(1, size // factor))
    if kind in ("pixel_shuffle", "pixel_unshuffle"):
        factor = factor_of(kind, mapping)
        squared = factor * factor
        if kind == "pixel_shuffle":
            return replace(base, C=_div("C", base.C, squared), H=_mul(base.H, factor), W=_mul(base.W, factor))
        return replace(base, C=_mul(base.C, squared), H=_div("H", base.H, factor), W=_div("W", base.W, factor))
    if kind == "channel_pool":
        return replace(base, C=1)
    if kind == "split":
        return replace(base, C=_div("C", base.C, factor_of(kind, mapping)))
    if kind == "pad":
        return replace(base, **{axis: _padded(getattr(base, axis), values, "Pad" + axis) for axis in "DHW"})
    return base


def factor_of(kind: str, mapping: Mapping[str, Value]) -> int:
    """The factor of a pixel shuffle along H and W, or how many equal parts of the channels there are; else 1.

    Raises InputFault.
    """
    if kind not in ("pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "split"):
        return 1
    key = "scale" if kind.startswith("pixel") else "groups"
    return integer(key, mapping[key]) if key in mapping else 2


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
    D, H, W = (1, 1, 1) if size is None else tensor_sizes(size, dims)
    return replace(base, D=D, H=H, W=W)


def _cropped(base: Shape, size: Value | None, dims: int) -> Shape:
    if size is None:
        raise InputFault("needs size")
    cropped = _resized(base, size, dims)
    for axis in "DHW":
        before, after = getattr(base, axis), getattr(cropped, axis)
        if None not in (before, after) and after > before:
            raise InputFault(f"a crop of {axis}={after} out of {before}")
    return cropped


def _scaled(
    base: Shape, mapping: Mapping[str, Value], dims: int, change: Callable[[int, int], int], needed: str = "scale"
) -> Shape:
    """The base with each axis of space changed by its `scale`. Raises InputFault where there is none."""
    if "scale" not in mapping:
        raise InputFault(f"needs {needed}")
    factors = axes("scale", mapping["scale"], dims, minimum=1, neutral=1)
    sizes = {
        axis: None if (size := getattr(base, axis)) is None else change(size, factor)
        for axis, factor in zip("DHW", factors, strict=True)
    }
    return replace(base, **sizes)


def _pooled(base: Shape, values: Mapping[str, Any]) -> Shape:
    """The shape after a pool, whose stride is its window unless given, as in every framework."""
    if not any(taps in values for taps in "TRS"):
        raise InputFault("a pool needs kernel_size, or the size that it hands on; op: global_pool has neither")
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
    "N", "C", "K", *(name for axis in AXES for name in axis if name != axis.output), "groups", "dtype", "layout",
    "bias", "calls", "residual_inputs", "first", "head", "unfolded", "frozen",
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
    op_dims = normalised(op)[1]
    if op_dims is not None:
        return op_dims
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
    if depthwise:
        groups = values.setdefault("groups", values.get("C"))
        if groups is None:
            raise fault(f"{name}: a depthwise convolution needs C (in_channels)", spans["layer"])
        if values.get("C") not in (None, groups):
            raise fault(f"groups = {groups}, but a depthwise convolution has C = {values['C']}", spans["groups"])
        values.setdefault("K", groups)
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
    _check_output_padding(layer)
    if layer.unfolded and is_patches(layer) is False:
        at = spans.get("unfolded", spans["layer"])
        raise fault(f"{name}: unfolded is of patches alone: stride = filter, no padding, whole patches, one group", at)
    return layer


def _check_output_padding(layer: ConvLayer) -> None:
    """Raises InputFault where output padding adds what no input would reach, or to a convolution that has none."""
    for axis in AXES:
        extra: int = getattr(layer, axis.output_padding)
        most = max(getattr(layer, axis.stride), getattr(layer, axis.dilation))
        at = layer.spans.get(axis.output_padding, layer.spans["layer"])
        if extra and layer.op != "conv_transpose":
            raise fault(f"{layer.name}: output_padding is of transposed convolutions: op: conv_transpose", at)
        if extra >= most:
            raise fault(
                f"{layer.name}: output_padding {extra} must be less than the stride or the dilation, {most}", at
            )


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
        labels = {"K": "K (out_channels)", "R": "R and S (kernel_size)", "S": "R and S (kernel_size)"}
        what = " and ".join(dict.fromkeys(labels[letter] for letter in missing))
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
