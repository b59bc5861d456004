"""Shapes carried from one operation of a spec to the next, and what each operation does to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from convlint.errors import InputFault, shown, suggestion
from convlint.files.located_yaml import Value, fault
from convlint.model.layer import output_size, same_padding
from convlint.readers.operations import MOST_PRODUCERS
from convlint.readers.spec.fields import MAX_SIZE, Fields, axes, integer, tensor_sizes


class Shape(Struct, frozen=True, kw_only=True):
    """What one operation hands on; None is unknown. `producers` are the convolutions that it comes from."""

    source: str
    producers: tuple[int, ...] = ()
    from_input: bool = False  # a network input reaches it through no convolution
    N: int | None = None
    C: int | None = None
    D: int | None = 1
    H: int | None = None
    W: int | None = None
    dims: int | None = None

    def resized(self, sizes: Mapping[str, int | None]) -> Shape:
        """The same with other sizes, by axis."""
        return replace(self, **sizes)


_DIMS = re.compile(r"([a-z]+)([123])d([a-z]*)")
_UNCHANGED = "identity"
AGAIN = "again"  # a convolution that runs once more, which its reader needs the layers for
# normalised name -> what it does to a shape
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
    """The kind of a shape carrier. Raises InputFault with a suggestion."""
    name = normalised(op)[0]
    kind = CARRIERS.get(name)
    if kind is None:
        options = [*CARRIERS, "conv", "conv_transpose"]
        raise fault(f"op: unknown operation {shown(op)!r}{suggestion(name, options)}", value.span)
    return kind


def normalised(op: str) -> tuple[str, int | None]:
    """`nn.Conv_Transpose-2d` and `Conv2DTranspose` -> ("convtranspose", 2)."""
    name = op.lower().replace("_", "").replace("-", "").removeprefix("nn.")
    match = _DIMS.fullmatch(name) if "d" in name else None
    return (match[1] + match[3], int(match[2])) if match else (name, None)


def carried(
    kind: str, name: str, inputs: Sequence[Shape], fields: Fields, mapping: Mapping[str, Value], dims: int
) -> Shape:
    """The shape after one carrier. Raises InputFault where the inputs do not fit together or a size exceeds 2^31."""
    try:
        shape = _carried(kind, name, inputs, fields, mapping, dims)
    except InputFault as error:
        if error.line is not None:
            raise
        line, column, *_ = fields.spans["layer"]
        raise InputFault(f"{name}: {error.message}", line=line, column=column) from error
    for axis in ("N", "C", "D", "H", "W"):
        size = getattr(shape, axis)
        if size is not None and size > MAX_SIZE:
            raise fault(f"{name}: {axis} would be {shown(str(size))}, larger than 2^31", fields.spans["layer"])
    return shape


def _carried(
    kind: str, name: str, inputs: Sequence[Shape], fields: Fields, mapping: Mapping[str, Value], dims: int
) -> Shape:
    values = fields.values
    if kind in ("input", "declared"):
        depth = values.get("D") if dims == 3 else 1
        sizes = {letter: values.get(letter) for letter in "CHW"}
        if dims == 1:
            sizes["H"] = 1
        known = inputs[0] if inputs else Shape(source=name)
        return Shape(
            source=name,
            producers=_producers(inputs),
            from_input=known.from_input or not inputs,
            N=values.get("N") or known.N,
            dims=dims,
        ).resized({"D": depth, **sizes})
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
        return base.resized({axis: _padded(getattr(base, axis), values, "Pad" + axis) for axis in "DHW"})
    return base


def factor_of(kind: str, mapping: Mapping[str, Value]) -> int:
    """By how much a pixel shuffle makes H and W longer; 1 for what is none. Raises InputFault."""
    if kind not in ("pixel_shuffle", "pixel_unshuffle"):
        return 1
    return integer("scale", mapping["scale"]) if "scale" in mapping else 2


def _producers(inputs: Sequence[Shape]) -> tuple[int, ...]:
    if len(inputs) == 1:
        return inputs[0].producers
    return tuple(sorted({index for shape in inputs for index in shape.producers}))


def latest(shape: Shape) -> tuple[Shape, tuple[int, ...]]:
    """The shape with its latest producers only, and those left out: a residual stream collects one per block."""
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
    """All inputs' D, H and W agree; elementwise operations need C to agree too, and may broadcast a size of 1."""
    sizes: dict[str, int | None] = {}
    for axis in ("D", "H", "W", "C") if broadcast else ("D", "H", "W"):
        known = {size: shape.source for shape in inputs if (size := getattr(shape, axis)) is not None}
        unsure = len(known) and any(getattr(shape, axis) is None for shape in inputs)
        wide = [size for size in known if size != 1 or not broadcast]
        if len(wide) > 1:
            said = " and ".join(f"{known[size]} has {size}" for size in wide[:2])
            raise InputFault(f"its inputs differ in {axis}: {said}")
        if wide:
            sizes[axis] = wide[0]
        elif unsure:  # an unknown size beside 1: either
            sizes[axis] = None
    sizes["N"] = next((shape.N for shape in inputs if shape.N is not None), None)
    return base.resized(sizes)


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
    return base.resized(sizes)


def _pooled(base: Shape, values: Mapping[str, Any]) -> Shape:
    """Pooling's stride is its window unless given, as every framework has it."""
    if not any(taps in values for taps in "TRS"):
        raise InputFault("a pool needs kernel_size; op: global_pool has none")
    sizes = {}
    for axis, taps_name, stride_name, dilation_name in (
        ("D", "T", "StrideD", "DilD"),
        ("H", "R", "U", "DilH"),
        ("W", "S", "V", "DilW"),
    ):
        size, taps, dilation = getattr(base, axis), values.get(taps_name, 1), values.get(dilation_name, 1)
        stride = values.get(stride_name, taps)
        pad = values.get("Pad" + axis, 0) + values.get(f"Pad{axis}_end", 0)
        if values.get("same"):
            pad = sum(same_padding(size, stride=stride, dilation=dilation, taps=taps) or (0, 0))
        if size is not None:
            size = output_size(size, stride=stride, pad=pad, dilation=dilation, taps=taps)
            if size < 1:
                raise InputFault(f"the window of {taps} is larger than {axis} = {getattr(base, axis)}")
        sizes[axis] = size
    return base.resized(sizes)
