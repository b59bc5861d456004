"""Shapes carried from one operation of a spec to the next, and what each operation does to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from convlint.errors import InputFault, shown, suggestion
from convlint.model import output_size, same_padding
from convlint.located_yaml import Value, fault
from convlint.readers.spec_fields import Fields, axes, integer


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What one operation hands on; None is unknown. `producers` are the convolutions that it comes from."""

    source: str
    producers: tuple[int, ...] = ()
    from_input: bool = False  # a network input reaches it through no convolution
    N: int | None = None
    C: int | None = None
    D: int | None = 1
    H: int | None = None
    W: int | None = None


_UNCHANGED = "identity"
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
        ("globalpool", "globalavgpool", "globalaveragepool", "globalaveragepooling", "globalmaxpool", "globalmaxpooling",
         "adaptivepool", "adaptiveavgpool", "adaptivemaxpool"),
        "resize_to",
    ),
    **dict.fromkeys(("upsample", "upsampling", "resize", "interpolate", "downsample"), "upsample"),
    **dict.fromkeys(("pixelshuffle", "depthtospace"), "pixel_shuffle"),
    **dict.fromkeys(("pixelunshuffle", "spacetodepth"), "pixel_unshuffle"),
    **dict.fromkeys(("pad", "zeropad", "zeropadding", "reflectionpad"), "pad"),
    **dict.fromkeys(("input", "reshape", "linear", "dense", "view", "slice", "split", "chunk"), "declared"),
}  # fmt: skip


def carrier_of(op: str, span: Value) -> tuple[str, int | None]:
    """The kind of a shape carrier and the dimensions its name states. Raises InputFault with a suggestion."""
    name, dims = normalised(op)
    kind = CARRIERS.get(name)
    if kind is None:
        raise fault(
            f"op: unknown operation {shown(op)!r}{suggestion(name, [*CARRIERS, 'conv', 'conv_transpose'])}", span.span
        )
    return kind, dims


def normalised(op: str) -> tuple[str, int | None]:
    """`Conv_Transpose-2d` -> ("convtranspose", 2)."""
    name = op.lower().replace("_", "").replace("-", "").removeprefix("nn.")
    if len(name) > 2 and name[-1] == "d" and name[-2] in "123":
        return name[:-2], int(name[-2])
    return name, None


def carried(kind: str, name: str, inputs: Sequence[Shape], fields: Fields, mapping: Mapping[str, Value]) -> Shape:
    """The shape after one carrier. Raises InputFault where the inputs do not fit together."""
    span = fields.spans["layer"]
    producers = tuple(dict.fromkeys(index for shape in inputs for index in shape.producers))
    from_input = any(shape.from_input for shape in inputs) or (kind == "declared" and not inputs)
    base = replace(inputs[0], source=name, producers=producers, from_input=from_input) if inputs else None
    values = fields.values
    if kind == "declared":
        known = base or Shape(source=name, from_input=True)
        sizes = {letter: values.get(letter) for letter in "NCHW"}
        return replace(known, D=values.get("D", 1), **(sizes if sizes["N"] else {**sizes, "N": known.N}))
    if base is None:
        raise InputFault(f"{name}: reads no layer; give input:", line=span[0], column=span[1])
    if kind == "concat":
        channels = [shape.C for shape in inputs]
        known_channels = [c for c in channels if c is not None]
        total = sum(known_channels) if len(known_channels) == len(channels) else None
        return replace(_aligned(base, inputs, name, span, broadcast=False), C=total)
    if kind == "elementwise":
        return _aligned(base, inputs, name, span, broadcast=True, channels=True)
    if kind == "resize_to":
        size = axes("kernel_size", mapping["size"], 2, minimum=1) if "size" in mapping else (1, 1, 1)
        return replace(base, D=1, H=size[1], W=size[2])
    if kind == "upsample":
        return _upsampled(base, mapping, span)
    if kind in ("pixel_shuffle", "pixel_unshuffle"):
        factor = integer("scale", mapping["scale"]) if "scale" in mapping else 2
        if kind == "pixel_shuffle":
            return replace(base, C=_div(base.C, factor * factor), H=_mul(base.H, factor), W=_mul(base.W, factor))
        return replace(base, C=_mul(base.C, factor * factor), H=_div(base.H, factor), W=_div(base.W, factor))
    if kind == "pad":
        return replace(
            base,
            H=None if base.H is None else base.H + values.get("PadH", 0) + values.get("PadH_end", 0),
            W=None if base.W is None else base.W + values.get("PadW", 0) + values.get("PadW_end", 0),
        )
    if kind == "pool":
        return _pooled(base, fields)
    return base


def _mul(size: int | None, factor: int) -> int | None:
    return None if size is None else size * factor


def _div(size: int | None, factor: int) -> int | None:
    return None if size is None else size // factor


def _aligned(
    base: Shape,
    inputs: Sequence[Shape],
    name: str,
    span: tuple[int, int, int, int],
    *,
    broadcast: bool,
    channels: bool = False,
) -> Shape:
    """All inputs' H and W (and C) agree; elementwise operations may broadcast a size of 1."""
    result = base
    for other in inputs[1:]:
        for axis in ("D", "H", "W", *(("C",) if channels else ())):
            ours, theirs = getattr(result, axis), getattr(other, axis)
            if ours is None or theirs is None or ours == theirs:
                result = result if ours is not None else replace(result, **{axis: theirs})
            elif broadcast and 1 in (ours, theirs):
                result = replace(result, **{axis: max(ours, theirs)})
            else:
                raise InputFault(
                    f"{name}: its inputs differ in {axis}: {base.source} has {ours}, {other.source} has {theirs}",
                    line=span[0],
                    column=span[1],
                )
    return result


def _upsampled(base: Shape, mapping: Mapping[str, Value], span: tuple[int, int, int, int]) -> Shape:
    if "size" in mapping:
        size = axes("kernel_size", mapping["size"], 2, minimum=1)
        return replace(base, H=size[1], W=size[2])
    if "scale" not in mapping:
        raise InputFault("needs scale or size", line=span[0], column=span[1])
    scale = axes("kernel_size", mapping["scale"], 2, minimum=1)
    return replace(base, H=_mul(base.H, scale[1]), W=_mul(base.W, scale[2]))


def _pooled(base: Shape, fields: Fields) -> Shape:
    """Pooling's stride is its window unless given, as every framework has it."""
    values = fields.values
    sizes = {}
    for axis, taps_name, stride_name, pad in (
        ("D", "T", "StrideD", "PadD"),
        ("H", "R", "U", "PadH"),
        ("W", "S", "V", "PadW"),
    ):
        size, taps = getattr(base, axis), values.get(taps_name, 1)
        stride = values.get(stride_name, taps)
        begin, end = values.get(pad, 0), values.get(pad + "_end", 0)
        if values.get("same"):
            begin, end = same_padding(size, stride=stride, dilation=1, taps=taps) or (0, 0)
        if size is not None:
            size = output_size(size, stride=stride, pad=begin + end, dilation=1, taps=taps)
            if size < 1:
                span = fields.spans["layer"]
                raise InputFault(f"the window of {taps} is larger than {axis}", line=span[0], column=span[1])
        sizes[axis] = size
    return replace(base, **sizes)
