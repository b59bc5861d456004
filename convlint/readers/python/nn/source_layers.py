"""From a convolution that was constructed to a layer of a report: its letters, what they come from, its place."""

from __future__ import annotations

import ast
from typing import Any

from convlint.model.layer import ConvLayer, with_output
from convlint.model.location import Span
from convlint.model.source import Stated
from convlint.readers.python.evaluator.values import Const, Items, Value
from convlint.readers.python.nn.convolutions import argument, channels_of, per_axis
from convlint.readers.python.nn.flow import Flow, integer, unknown_sizes
from convlint.readers.python.nn.recording import Convolution

_MOST_TEXT = 200  # characters of an argument
_AXES = "DHW"
_TAPS = "TRS"
_STRIDES = ("StrideD", "U", "V")
_SIZES = frozenset(_AXES)
_SPANS = {
    "in_channels": ("C",), "out_channels": ("K",), "kernel_size": ("R", "S", "T"), "stride": ("U", "V", "StrideD"),
    "groups": ("groups",), "padding": ("PadH", "PadW", "PadD"), "dilation": ("DilH", "DilW", "DilD"),
    "bias": ("bias",), "bias_attr": ("bias",), "use_bias": ("bias",), "with_bias": ("bias",),
}  # fmt: skip


class Read:
    """The fields of a layer that are known, the literals behind each, and the names of those that are not."""

    def __init__(self, layer: Convolution, reads: list[Flow], *, resized: bool = False) -> None:
        self._layer, self._dims, self._resized = layer, layer.signature.dims, resized
        self.fields: dict[str, Any] = {}
        self.stated: dict[str, tuple[Stated, ...]] = {}
        self.unknown: list[str] = []
        self._channels(reads)
        self._geometry()
        self._bias()
        self._sizes(reads)

    def _channels(self, reads: list[Flow]) -> None:
        C = argument(self._layer, "in_channels")
        if "in_channels" not in self._layer.signature.parameters and reads:  # a lazy one learns it from its first input
            C = channels_of(self._layer, reads[0])
        groups = argument(self._layer, "groups")
        known = integer(groups)
        if known is None or known < 1:
            self.unknown.append("groups")
        else:
            self._put("groups", groups)
        for letter, value in (("C", C), ("K", argument(self._layer, "out_channels"))):
            number = integer(value)
            # Whether a width fits depends on the groups, so that without them it says nothing.
            if number is not None and number > 0 and known is not None:
                self._put(letter, value)

    def _put(self, letter: str, value: Value) -> None:
        if isinstance(value, Const):
            self.fields[letter] = value.value
            if value.stated:
                self.stated[letter] = tuple(sorted(value.stated, key=_place))

    def _geometry(self) -> None:
        first = 3 - self._dims
        for name, letters, absent in (
            ("kernel_size", _TAPS, None),
            ("stride", _STRIDES, "U"),
            ("padding", tuple(f"Pad{axis}" for axis in _AXES), None),
            ("dilation", tuple(f"Dil{axis}" for axis in _AXES), "Dil"),
            ("output_padding", tuple(f"OutPad{axis}" for axis in _AXES), "OutPad"),
        ):
            values = self._per_axis(name)
            for axis, value in enumerate(values):
                letter = letters[first + axis]
                number = integer(value)
                if number is not None and number >= 0:
                    self._put(letter, value)
                elif absent is None:
                    self.fields[letter] = None
                else:
                    self.unknown.append(letter)
                if name == "padding":
                    self.fields[letter + "_end"] = self._end(letter, axis)
        if self._dims == 1:
            self.fields.update(H=1, R=1)

    def _per_axis(self, name: str) -> tuple[Value, ...]:
        value = argument(self._layer, name)
        if name == "padding" and self._resized:  # its own forward pads as it likes
            return unknown_sizes(self._dims)
        if name == "padding" and isinstance(value, Const) and isinstance(value.value, str):
            return self._named_padding(value.value.lower())
        return per_axis(value, self._dims)

    def _named_padding(self, mode: str) -> tuple[Value, ...]:
        """`same` adds up to what the filter takes, the odd element at the end; `valid` is none.

        With strides, `same` depends on the size of what is read, and a transposed one takes away instead.
        """
        found: list[Value] = []
        taps = per_axis(argument(self._layer, "kernel_size"), self._dims)
        spread = per_axis(argument(self._layer, "dilation"), self._dims)
        steps = per_axis(argument(self._layer, "stride"), self._dims)
        plain = self._layer.signature.op == "conv" and all(integer(step) == 1 for step in steps)
        for tap, dilation in zip(taps, spread, strict=True):
            extent = (integer(tap) or 0) - 1, integer(dilation) or 0
            if mode == "valid":
                found.append(Const(0))
            elif mode == "same" and plain and extent[0] >= 0 and extent[1]:
                found.append(Const(extent[0] * extent[1] // 2))
            else:
                found.append(Items("tuple", []))
        return tuple(found)

    def _end(self, letter: str, axis: int) -> int | None:
        begin: int | None = self.fields.get(letter)
        padding = argument(self._layer, "padding")
        if begin is not None and isinstance(padding, Const) and str(padding.value).lower() == "same":
            tap = integer(per_axis(argument(self._layer, "kernel_size"), self._dims)[axis])
            dilation = integer(per_axis(argument(self._layer, "dilation"), self._dims)[axis])
            if tap is not None and dilation is not None:
                return dilation * (tap - 1) - begin
        return begin

    def _bias(self) -> None:
        signature = self._layer.signature
        value = argument(self._layer, signature.bias)
        if not isinstance(value, Const):
            self.fields["bias"] = None
            return
        self.fields["bias"] = value.value is not False if signature.bias == "bias_attr" else bool(value.value)
        if value.stated:
            self.stated["bias"] = tuple(sorted(value.stated, key=_place))

    def _sizes(self, reads: list[Flow]) -> None:
        """Of runs that agree, the batch and the extents of what it reads."""
        shapes = {
            tuple(integer(size) for size in read.shape)
            for read in reads
            if read.shape is not None and len(read.shape) == self._dims + 2
        }
        if len(shapes) != 1 or len(reads) == 0:
            return
        shape = shapes.pop()
        self.fields["N"] = shape[0]
        if shape[1] is None or self.fields.get("C") in (None, shape[1]):
            self.fields.update(zip(_AXES[3 - self._dims :], shape[2:], strict=True))


class Written:
    """What the call of a construction says: where its arguments stand, and the texts of those for C and K."""

    def __init__(self, layer: Convolution) -> None:
        values = written(layer, layer.place.node)
        self.spans = _spans(layer, values)
        self.texts = _texts(values)


def layer_of(layer: Convolution, read: Read, name: str, spans: dict[str, Span], **facts: Any) -> ConvLayer:
    """The layer of a report."""
    signature, place = layer.signature, layer.place
    dims = {1: {}, 2: {}, 3: {"D": None}}[signature.dims]
    found = ConvLayer(
        name=name, path=place.file.path, op=signature.op, dims=signature.dims, spans=spans,
        **{**dims, **read.fields, **facts},
    )  # fmt: skip
    # An output size needs every number that goes into it, and those that have a default in the record are numbers.
    if not _SIZES.isdisjoint(read.fields) and not ({"U", "V", "StrideD"} & set(read.unknown) or _loose(read)):
        return with_output(found)
    return found


def _loose(read: Read) -> bool:
    return any(name.startswith(("Dil", "OutPad")) for name in read.unknown)


def _spans(layer: Convolution, values: dict[str, ast.expr]) -> dict[str, Span]:
    """Where the construction stands, and each of its arguments that is written there."""
    file, node = layer.place
    found: dict[str, Span] = {"layer": file.span(node)}
    for name, value in values.items():
        for letter in _SPANS.get(name, ()):
            found[letter] = file.span(value)
    return found


def _texts(values: dict[str, ast.expr]) -> dict[str, str]:
    """The arguments for C and K, as they are written in the call."""
    found = {letter: values.get(name) for letter, name in (("C", "in_channels"), ("K", "out_channels"))}
    return {letter: ast.unparse(value)[:_MOST_TEXT] for letter, value in found.items() if value is not None}


def written(layer: Convolution, node: ast.Call) -> dict[str, ast.expr]:
    """The arguments of the call, by the parameters that they are for; a class of the source may order its own."""
    found: dict[str, ast.expr] = {}
    for name, value in zip(layer.signature.parameters, () if layer.made_by else node.args, strict=False):
        if isinstance(value, ast.Starred):
            break
        found[name] = value
    parameter = layer.signature.parameter
    found.update((parameter(each.arg), each.value) for each in node.keywords if each.arg is not None)
    return found


def _place(stated: Stated) -> tuple[str, int, int]:
    return stated.at.path, stated.at.line or 0, stated.at.column or 0
