"""One convolution of a spec: its fields, the defaults and what arrives at it, made into a ConvLayer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from convlint.errors import InputFault
from convlint.model import ConvLayer, Span, same_padding, with_output
from convlint.located_yaml import Value, fault
from convlint.readers.spec_fields import Fields, integer
from convlint.readers.spec_shapes import Shape, normalised

_CONVS: Mapping[str, tuple[str, bool]] = {  # normalised name -> (op, depthwise)
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
    return _CONVS.get(normalised(op)[0])


def dims_of(mapping: Mapping[str, Value], op: str) -> int:
    """1, 2 or 3 dimensions: as stated, as the operation's name says, or as the sizes given imply."""
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
    kernel = mapping.get("kernel_size") or mapping.get("kernel") or mapping.get("kernel_shape")
    if kernel is not None and isinstance(kernel.data, list) and len(kernel.data) in (1, 3):
        return len(kernel.data)
    return 2


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
        for letter in ("N", "C", "D", "H", "W"):
            arriving = getattr(incoming, letter)
            if letter not in values and arriving is not None:
                values[letter] = arriving
    if batch is not None:
        values["N"] = batch
    op, depthwise = conv
    if values.pop("transposed", False):
        op = "conv_transpose"
    if dims == 1:
        values.setdefault("H", 1)
        values.setdefault("R", 1)
    if depthwise and "groups" not in values and "C" in values:
        values["groups"] = values["C"]
        values.setdefault("K", values["C"])
    if complete:
        _demand(name, values, spans["layer"])
    if values.pop("same", False):
        _same(values, op, dims)
    chosen = {key: values[key] for key in _LAYER_FIELDS if key in values}
    layer = ConvLayer(
        name=name, path=path, op="conv_transpose" if op == "conv_transpose" else "conv", dims=dims, spans=spans,
        declared_P=values.get("P"), declared_Q=values.get("Q"), declared_Z=values.get("Z"), **chosen,
    )  # fmt: skip
    return with_output(layer)


def _fill(values: dict[str, Any], spans: dict[str, Span], defaults: Fields) -> None:
    padded = any(key in values for key in ("same", "PadD", "PadH", "PadW"))
    for key, value in defaults.values.items():
        if key not in values and not (padded and (key == "same" or key.startswith("Pad"))):
            values[key] = value
            spans.setdefault(key, defaults.spans[key])


def _demand(name: str, values: Mapping[str, Any], span: Span) -> None:
    missing = [letter for letter in ("K", "R", "S") if letter not in values]
    if missing:
        wanted = {"K": "K (out_channels)", "R": "R and S (kernel_size)", "S": "R and S (kernel_size)"}
        what = " and ".join(dict.fromkeys(wanted[letter] for letter in missing))
        raise InputFault(f"{name}: a convolution needs {what}", line=span[0], column=span[1])


def _same(values: dict[str, Any], op: str, dims: int) -> None:
    """Turns padding "same" into sides; unknown where the stride makes it depend on an unknown size."""
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
            begin, end = sides if sides is not None else (None, None)  # type: ignore[assignment]
        values[pad], values[pad + "_end"] = begin, end
