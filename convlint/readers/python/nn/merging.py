"""From all convolutions that were seen to the layers of the report: each place and set of values once."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from convlint.model.layer import ConvLayer, with_output
from convlint.model.location import Span
from convlint.model.source import SourceLayer, StatedLiteral
from convlint.readers.python.evaluator.values import Const, Value
from convlint.readers.python.nn.following import SILENT, Opinion, Seen, joined
from convlint.readers.python.nn.layers import Convolution, argument, channels_of, named_padding, numbers_of, per_axis
from convlint.readers.python.nn.tensors import TensorPath, integer, unknown_sizes

# What the task asks for
_HEAD = re.compile(
    r"(?:^|_)(?:class(?:es)?|nclass(?:es)?|nclasses|anchors?|nc|outputs?|keypoints?|joints?|labels?|landmarks?|boxes|"
    r"coords?|categories|num_cls|ncls|attrs?|attributes|bins|vocab(?:ulary)?)(?:$|_|\d)|num_?class|n_?class",
    re.IGNORECASE,
)
# What may be the width of any block, but that of the last layer all the same
_LAST = re.compile(r"(?:^|_)(?:out_?(?:channels?|chans?|ch|dim|nc|planes)|output_nc|c_?out)(?:$|_)", re.IGNORECASE)
_INPUT = re.compile(
    r"(?:^|_)(?:in_?(?:channels?|chans?|ch|nc|dim)|input_(?:nc|channels?|dim|depth)|num_input_channels|n_channels|"
    r"img_?(?:channels?|ch)|image_channels?|num_in_ch|nb_channels?|channels_img)(?:$|_)",
    re.IGNORECASE,
)


_MOST_TEXT = 200  # characters of an argument
_AXES = "DHW"
_LETTERS = {  # of each argument that has a value for each axis; those of one- and two-dimensional layers are the last
    "kernel_size": ("T", "R", "S"), "stride": ("StrideD", "U", "V"), "padding": ("PadD", "PadH", "PadW"),
    "dilation": ("DilD", "DilH", "DilW"), "output_padding": ("OutPadD", "OutPadH", "OutPadW"),
}  # fmt: skip
_MAY_BE_NONE = frozenset(("kernel_size", "padding"))  # in a record; of the others, `unknown` says so
_PER_LAYER = {"in_channels": "C", "out_channels": "K", "groups": "groups", **dict.fromkeys(
    ("bias", "bias_attr", "use_bias", "with_bias"), "bias")}  # fmt: skip
_SPANS = {**{name: (letter,) for name, letter in _PER_LAYER.items()}, **_LETTERS}


class ReadFields:
    """The fields of a layer that are known, the literals behind each, and the names of those that are not."""

    def __init__(self, layer: Convolution, reads: list[TensorPath], *, resized: bool = False) -> None:
        self._layer, self._dims = layer, layer.signature.dims
        self.fields: dict[str, Any] = {}
        self.stated: dict[str, tuple[StatedLiteral, ...]] = {}
        self.unknown: list[str] = []
        self._channels(reads)
        for name, letters in _LETTERS.items():
            own_forward = resized and name == "padding"  # which pads as it likes
            values = unknown_sizes(self._dims) if own_forward else per_axis(argument(layer, name), self._dims)
            if name == "padding" and named_padding(layer) and not own_forward:
                self._named_padding(named_padding(layer))
                continue
            for letter, value in zip(letters[3 - self._dims :], values, strict=True):
                if (integer(value) or 0) >= 0 and integer(value) is not None:
                    self._put(letter, value)
                elif name in _MAY_BE_NONE:
                    self.fields[letter] = None
                else:
                    self.unknown.append(letter)
                if name == "padding":
                    self.fields[f"{letter}_end"] = self.fields[letter]
        if self._dims == 1:
            self.fields.update(H=1, R=1)
        value = argument(layer, layer.signature.bias)
        if isinstance(value, Const):
            self._put("bias", value)
            self.fields["bias"] = value.value is not False if layer.signature.bias == "bias_attr" else bool(value.value)
        else:
            self.fields["bias"] = None
        self._sizes(reads)

    def _channels(self, reads: list[TensorPath]) -> None:
        C = argument(self._layer, "in_channels")
        if "in_channels" not in self._layer.signature.parameters and reads:  # a lazy one learns it from its first input
            C = channels_of(self._layer, reads[0])
        groups = argument(self._layer, "groups")
        if (integer(groups) or 0) < 1:  # whether a width fits depends on the groups: without them it says nothing
            self.unknown.append("groups")
            return
        self._put("groups", groups)
        for letter, value in (("C", C), ("K", argument(self._layer, "out_channels"))):
            if (integer(value) or 0) > 0:
                self._put(letter, value)

    def _put(self, letter: str, value: Value) -> None:
        if isinstance(value, Const):
            self.fields[letter] = value.value
            if value.stated:
                self.stated[letter] = tuple(sorted(value.stated, key=_place))

    def _named_padding(self, mode: str) -> None:
        """`same` adds up to what the filter takes, the odd element at the end; `valid` is none.

        With strides, `same` depends on the size of what is read, and a transposed one takes away instead.
        """
        steps = numbers_of(self._layer, "stride")
        plain = mode == "same" and self._layer.signature.op == "conv" and all(step == 1 for step in steps)
        sizes = zip(numbers_of(self._layer, "kernel_size"), numbers_of(self._layer, "dilation"), strict=True)
        for letter, (taps, dilation) in zip(_LETTERS["padding"][3 - self._dims :], sizes, strict=True):
            extent = dilation * (taps - 1) if plain and taps and dilation else 0 if mode == "valid" else None
            self.fields[letter] = None if extent is None else extent // 2
            self.fields[f"{letter}_end"] = None if extent is None else extent - extent // 2

    def _sizes(self, reads: list[TensorPath]) -> None:
        """Of runs that agree, the batch and the extents of what it reads."""
        known = [read.shape for read in reads if read.shape is not None and len(read.shape) == self._dims + 2]
        shapes = {tuple(map(integer, shape)) for shape in known}
        if len(shapes) == 1:
            shape = shapes.pop()
            self.fields["N"] = shape[0]
            if shape[1] is None or self.fields.get("C") in (None, shape[1]):
                self.fields.update(zip(_AXES[3 - self._dims :], shape[2:], strict=True))


class WrittenArguments:
    """What the call of a construction says: where its arguments stand, and the texts of those for C and K."""

    def __init__(self, layer: Convolution) -> None:
        file, node = layer.place
        values = _written(layer, node)
        self.spans: dict[str, Span] = {"layer": file.span(node)}
        self.spans |= {letter: file.span(value) for name, value in values.items() for letter in _SPANS.get(name, ())}
        self.texts = {
            letter: ast.unparse(values[name])[:_MOST_TEXT]
            for name, letter in (("in_channels", "C"), ("out_channels", "K")) if name in values
        }  # fmt: skip


def layer_of(layer: Convolution, read: ReadFields, name: str, spans: dict[str, Span], **facts: Any) -> ConvLayer:
    """The layer of a report."""
    signature = layer.signature
    found = ConvLayer(
        name=name, path=layer.place.file.path, op=signature.op, dims=signature.dims, spans=spans,
        **{**({"D": None} if signature.dims == 3 else {}), **read.fields, **facts},
    )  # fmt: skip
    # An output size needs every number that goes into it, and those that have a default in the record are numbers.
    loose = any(name != "groups" for name in read.unknown)
    return found if loose or read.fields.keys().isdisjoint(_AXES) else with_output(found)


def _written(layer: Convolution, node: ast.Call) -> dict[str, ast.expr]:
    """The arguments of the call, by the parameters that they are for; a class of the source may order its own."""
    found: dict[str, ast.expr] = {}
    places = () if layer.made_by or not layer.signature.positional else node.args
    for name, value in zip(layer.signature.parameters, places, strict=False):
        if isinstance(value, ast.Starred):
            break
        found[name] = value
    parameter = layer.signature.parameter
    found.update((parameter(each.arg), each.value) for each in node.keywords if each.arg is not None)
    return found


def _place(stated: StatedLiteral) -> tuple[str, int, int]:
    return stated.at.path, stated.at.line or 0, stated.at.column or 0


_COMPARED = (
    "N", "C", "D", "H", "W", "K", "T", "R", "S", "StrideD", "U", "V", "PadD", "PadH", "PadW", "PadD_end", "PadH_end",
    "PadW_end", "DilD", "DilH", "DilW", "groups", "OutPadD", "OutPadH", "OutPadW", "bias",
)  # fmt: skip
_compared = attrgetter(*_COMPARED)
_STACKED = (6, 9, 12, 15)  # channels of two to five images as one


def merged(seen: Iterable[Seen], name: str) -> list[SourceLayer]:
    """The layers that one place constructs; `name` is that of the place."""
    whole = list(seen)
    opinion = joined(each.norm_follows for each in whole)
    says: dict[tuple[int, str], WrittenArguments] = {}
    layers = []
    for each in whole:
        key = id(each.layer.signature), each.layer.made_by
        if key not in says:
            says[key] = WrittenArguments(each.layer)
        layers.append(_layer(each, name, opinion, says[key]))
    return _merged(layers)


def merged_again(layers: Iterable[SourceLayer]) -> list[SourceLayer]:
    """The layers of all places, where several processes have each read a part of the roots."""
    places: dict[tuple[str, int, int], list[SourceLayer]] = {}
    for each in layers:
        at = each.layer.locate()
        places.setdefault((at.path, at.line or 0, at.column or 0), []).append(each)
    found: list[SourceLayer] = []
    for _, several in sorted(places.items()):
        opinion = joined(SILENT if each.silent else each.layer.norm_follows for each in several)
        follows, silent = (None, True) if opinion is SILENT else (opinion, False)
        found += _merged(
            [replace(each, layer=replace(each.layer, norm_follows=follows), silent=silent) for each in several]
        )
    return found


def _merged(layers: Iterable[SourceLayer]) -> list[SourceLayer]:
    """The layers of one place, each set of values once."""
    same: dict[Any, list[SourceLayer]] = {}
    for layer in layers:
        key = _compared(layer.layer), layer.unknown, layer.made_by, tuple(layer.stated.items())
        same.setdefault(key, []).append(layer)
    found = _without_less([group[0] if len(group) == 1 else _one(group) for group in same.values()])
    return sorted(found, key=_order) if len(found) > 1 else found


def _order(layer: SourceLayer) -> tuple[Any, ...]:
    """Stated ones first, then by values, whichever root and whichever process saw it; what is not known last."""
    values = [(value is None, value or 0) for value in _compared(layer.layer)]
    return layer.certainty != "stated", values, layer.condition, layer.made_by


def _layer(seen: Seen, name: str, opinion: Opinion, written: WrittenArguments) -> SourceLayer:
    read = ReadFields(seen.layer, seen.reads, resized=seen.resized)
    C = read.fields.get("C")
    names_C, names_K = ([each.name for each in read.stated.get(letter, ())] for letter in "CK")
    first = seen.reads_input is not False and (
        (C is not None and C <= 4) or (seen.reads_input and (C in _STACKED or any(map(_INPUT.search, names_C))))
    )
    last = seen.head and opinion is not True  # what is normalised is read on
    # Where the forward pass was not followed, which shows what is last, a name may say so
    named = any(map(_HEAD.search, names_K)) or (seen.head is None and any(map(_LAST.search, names_K)))
    layer = layer_of(
        seen.layer, read, name, written.spans, norm_follows=None if opinion is SILENT else opinion, first=bool(first),
        head=bool(last or named),
    )  # fmt: skip
    return SourceLayer(
        layer=layer, framework=seen.layer.signature.framework, stated=read.stated, certainty=seen.certainty,
        written=written.texts,
        condition=seen.condition, root=seen.root, pointwise_map=_points(seen, read), replaced=seen.replaced,
        calls=seen.calls, made_by=seen.layer.made_by, unknown=tuple(sorted(read.unknown)), context=seen.context,
        silent=opinion is SILENT,
    )  # fmt: skip


def _points(seen: Seen, read: ReadFields) -> bool | None:
    if any((read.fields.get(letter) or 1) > 1 for letter in "TRS"):
        return False
    return _points_of(seen.points)


def _points_of(points: Iterable[bool | None]) -> bool | None:
    """Whether all maps are 1x1: False where any is none, None where nobody knows."""
    known = set(points)
    return False if False in known else True if known == {True} else None


def _one(group: list[SourceLayer]) -> SourceLayer:
    """Equal layers of several roots: as certain as the best of them, placed as the largest network says."""
    found = min(group, key=lambda each: (each.certainty != "stated", bool(each.condition)))
    placed = max(group, key=lambda each: each.context)
    return replace(
        found,
        layer=replace(found.layer, first=placed.layer.first, head=placed.layer.head),
        calls=placed.calls,
        replaced=all(each.replaced for each in group),
        context=placed.context,
        pointwise_map=_points_of(each.pointwise_map for each in group),
    )


def _without_less(layers: list[SourceLayer]) -> list[SourceLayer]:
    """Those that say something that no other, as certain, says with more."""
    kinds: dict[frozenset[str], list[SourceLayer]] = {}
    for layer in layers:
        kinds.setdefault(_gaps(layer), []).append(layer)
    if len(kinds) == 1:
        return layers
    less: set[int] = set()
    for missing, several in kinds.items():
        known = [field for field in _COMPARED if field not in missing]
        stated: dict[tuple[Any, ...], bool] = {}  # by what those say that know more: whether one of these is as certain
        for other in (each for gaps, others in kinds.items() if gaps < missing for each in others):
            values = tuple([getattr(other.layer, field) for field in known])
            stated[values] = stated.get(values, False) or other.certainty == "stated"
        for one in several if stated else ():
            certain = stated.get(tuple([getattr(one.layer, field) for field in known]))
            if certain or (certain is not None and not (one.certainty == "stated" and _knows(one))):
                less.add(id(one))
    return [each for each in layers if id(each) not in less]


def _gaps(layer: SourceLayer) -> frozenset[str]:
    """What it does not know."""
    values = zip(_COMPARED, _compared(layer.layer), strict=True)
    return frozenset((*layer.unknown, *(field for field, value in values if value is None)))


def _knows(layer: SourceLayer) -> bool:
    """Whether it knows anything that a rule of widths could read."""
    return layer.layer.C is not None or layer.layer.K is not None
