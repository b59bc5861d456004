"""The fields of a layer in a spec: their names, the frameworks' aliases, and how each is read.

Used for spec files, for the flags of `convlint layer` and for the examples inside rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from convlint.errors import InputFault, shown, suggestion
from convlint.files.located_yaml import Value, fault
from convlint.model.location import Span
from convlint.readers.spec.axes import NEUTRAL, axes, paddings
from convlint.readers.spec.values import boolean, dtype_of, integer, layout_of, word

# canonical name -> what else it may be called
ALIASES: Mapping[str, tuple[str, ...]] = {
    "N": ("batch", "batch_size"),
    "C": ("in_channels", "input_channels"),
    "D": ("depth",),
    "H": ("height",),
    "W": ("width", "length"),
    "K": ("out_channels", "output_channels", "filters"),
    "kernel_size": ("kernel", "kernel_shape"),
    "stride": ("strides",),
    "padding": ("pad",),
    "dilation": ("dilations", "dilation_rate"),
    "groups": ("group",),
    "dtype": ("data_type", "precision"),
    "layout": ("data_format", "memory_format"),
    "bias": ("use_bias",),
    "op": ("type",),
    "input": ("from",),
    "calls": ("repeat",),
}
SIZES = ("N", "C", "D", "H", "W", "K", "Z", "P", "Q", "T", "R", "S", "StrideD", "U", "V", "DilD", "DilH", "DilW")
PADS = ("PadD", "PadH", "PadW")
BOOLEANS = ("bias", "first", "head", "copied", "transposed")
LAYER_KEYS = (
    *SIZES, *PADS, "kernel_size", "stride", "padding", "dilation", "output_padding", "groups", "dtype", "layout",
    "bias", "op", "name", "input", "inputs", "weights", "transposed", "dims", "calls", "first", "head", "copied",
    "residual_inputs", "scale", "size",
)  # fmt: skip
CANONICAL: Mapping[str, str] = {
    **{key: key for key in LAYER_KEYS},
    **{alias: name for name, aliases in ALIASES.items() for alias in aliases},
}
# composite key -> the letters that it sets, from the outermost axis inwards
COMPOSITES: Mapping[str, tuple[str, str, str]] = {
    "kernel_size": ("T", "R", "S"),
    "stride": ("StrideD", "U", "V"),
    "dilation": ("DilD", "DilH", "DilW"),
    "output_padding": ("OutPadD", "OutPadH", "OutPadW"),
}


class Fields:
    """The values of one layer by canonical name, each with its span. Composite keys are taken apart."""

    __slots__ = ("spans", "values")

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.spans: dict[str, Span] = {}

    def put(self, name: str, value: Any, span: Span, key: str) -> None:
        """Sets one value. Raises InputFault where another key already said something else."""
        if name in self.values and self.values[name] != value:
            first = self.spans[name]
            other = f"line {first[0]}, column {first[1]} says {name} = {self.values[name]}"
            raise fault(f"{key} says {name} = {value}, but {other}", span)
        if name not in self.values:
            self.values[name] = value
            self.spans[name] = span


def read_fields(mapping: Mapping[str, Value], dims: int, report: Callable[[InputFault], None], *, where: str) -> Fields:
    """All fields of one layer's mapping; every defect goes to `report`, and reading goes on."""
    fields = Fields()
    for key, value in mapping.items():
        try:
            _read_field(fields, key, value, dims, where)
        except InputFault as error:
            report(error)
    pad = next((letter for letter in PADS if letter in fields.values), None)
    if "same" in fields.values and pad is not None:
        line, column, *_ = fields.spans["same"]
        report(fault(f"{pad} is given, but line {line}, column {column} says padding: same", fields.spans[pad]))
    return fields


def _read_field(fields: Fields, key: str, value: Value, dims: int, where: str) -> None:
    name = CANONICAL.get(key)
    span = value.span
    if name is None:
        raise fault(f"unknown key {shown(key)!r} in {where}{suggestion(key, CANONICAL)}", value.key_span or span)
    if name in SIZES or name in ("groups", "calls"):
        fields.put(name, integer(key, value), span, key)
    elif name in COMPOSITES:
        numbers = axes(name, value, dims, minimum=NEUTRAL[name])
        for letter, number in zip(COMPOSITES[name], numbers, strict=True):
            fields.put(letter, number, span, key)
    elif name == "padding":
        pads = paddings(value, dims)
        if isinstance(pads, str):
            fields.put("same", True, span, key)
        else:
            for letter, (begin, end) in zip(PADS, pads, strict=True):
                fields.put(letter, begin, span, key)
                fields.put(letter + "_end", end, span, key)
    elif name in PADS:
        number = integer(key, value, minimum=0)
        fields.put(name, number, span, key)
        fields.put(name + "_end", number, span, key)
    elif name == "dtype":
        fields.put(name, dtype_of(value), span, key)
    elif name == "layout":
        fields.put(name, layout_of(value), span, key)
    elif name in BOOLEANS:
        fields.put(name, boolean(key, value), span, key)
    elif name == "residual_inputs":
        fields.put(name, integer(key, value, minimum=0), span, key)
    elif name == "name":
        fields.put(name, word(key, value), span, key)
    else:  # op, dims, inputs, weights, scale, size: read by who needs them
        fields.spans[name] = span
