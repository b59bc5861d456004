"""One convolution of a spec: its fields, the defaults and what arrives at it, made into a ConvLayer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from convlint.errors import InputFault
from convlint.files.located_yaml import Value, fault
from convlint.model.layer import ConvLayer, same_padding, with_output
from convlint.model.location import Span
from convlint.readers.spec.fields import CANONICAL, COMPOSITES, MAX_SIZE, PADS, Fields, integer
from convlint.readers.spec.shapes import Shape, normalised

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
    """(op of the model, depthwise) of a convolution's name in any framework's spelling; None for other operations."""
    return CONVS.get(normalised(op)[0])


def dims_of(mapping: Mapping[str, Value], op: str) -> int | None:
    """1, 2 or 3 dimensions: as stated, as the operation's name says, or as the sizes given imply; None: not said."""
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
    """The layer. `complete` demands K and the filter, which nothing can supply later. Raises InputFault."""
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
        if values.setdefault("H", 1) != 1:
            raise fault(f"{name}: a 1-D convolution has no H; its length is W", spans.get("H", spans["layer"]))
        values.setdefault("R", 1)
    elif dims == 3:
        values.setdefault("D", None)
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
    """What a convolution hands on."""
    D, H, W = (None if size is not None and size < 1 else size for size in (layer.Z, layer.P, layer.Q))
    return Shape(source=layer.name, producers=(index,), N=layer.N, C=layer.K, D=D, H=H, W=W, dims=layer.dims)


def _fill(values: dict[str, Any], spans: dict[str, Span], defaults: Fields) -> None:
    padded = "same" in values or any(pad in values for pad in PADS)
    for key, value in defaults.values.items():
        if key not in values and not (padded and key == "same") and not ("same" in values and key.startswith("Pad")):
            values[key] = value
            spans.setdefault(key, defaults.spans[key])


def _demand(name: str, values: Mapping[str, Any], span: Span) -> None:
    missing = [letter for letter in ("K", "R", "S") if letter not in values]
    if missing:
        wanted = {"K": "K (out_channels)", "R": "R and S (kernel_size)", "S": "R and S (kernel_size)"}
        what = " and ".join(dict.fromkeys(wanted[letter] for letter in missing))
        raise InputFault(f"{name}: a convolution needs {what}", line=span[0], column=span[1])


def same_sides(values: dict[str, Any], op: str, dims: int) -> None:
    """Turns padding "same" into sides by letter; unknown where the stride makes it depend on an unknown size."""
    for size, taps, stride, dilation, pad, out in (
        ("D", "T", "StrideD", "DilD", "PadD", "OutPadD"),
        ("H", "R", "U", "DilH", "PadH", "OutPadH"),
        ("W", "S", "V", "DilW", "PadW", "OutPadW"),
    ):
        extent = values.get(dilation, 1) * (values.get(taps, 1) - 1) + 1
        step = values.get(stride, 1)
        if op == "conv_transpose":  # output = size x stride
            total = max(extent - step, 0)
            begin, end = total // 2, total - total // 2
            if step > extent:
                values.setdefault(out, step - extent)
        else:
            default = None if size != "D" or dims == 3 else 1
            sides = same_padding(
                values.get(size, default), stride=step, dilation=values.get(dilation, 1), taps=values.get(taps, 1)
            )
            begin, end = sides if sides is not None else (None, None)
        values[pad], values[pad + "_end"] = begin, end
