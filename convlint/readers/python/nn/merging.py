"""From all convolutions that were seen to the layers of the report: each place and set of values once."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from convlint.model.source import SourceLayer
from convlint.readers.python.nn.following import SILENT, Opinion, joined
from convlint.readers.python.nn.gathering import Seen
from convlint.readers.python.nn.roles import head_by_name, input_by_name
from convlint.readers.python.nn.source_layers import Read, Written, layer_of

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
    says: dict[tuple[int, str], Written] = {}
    layers = []
    for each in whole:
        key = id(each.layer.signature), each.layer.made_by
        if key not in says:
            says[key] = Written(each.layer)
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


def _layer(seen: Seen, name: str, opinion: Opinion, written: Written) -> SourceLayer:
    read = Read(seen.layer, seen.reads, resized=seen.resized)
    C, K = read.fields.get("C"), read.fields.get("K")
    first = bool(seen.reads_input is not False and (
        (C is not None and C <= 4)
        or (seen.reads_input and (C in _STACKED or input_by_name(read.stated.get("C", ()))))
    ))  # fmt: skip
    last = bool(seen.head) and opinion is not True  # what is normalised is read on
    named = K is not None and head_by_name(read.stated.get("K", ()), followed=seen.head is not None)
    head = last or named
    layer = layer_of(
        seen.layer, read, name, written.spans, norm_follows=None if opinion is SILENT else opinion, first=first,
        head=head,
    )  # fmt: skip
    return SourceLayer(
        layer=layer, framework=seen.layer.signature.framework, stated=read.stated, certainty=seen.certainty,
        written=written.texts,
        condition=seen.condition, root=seen.root, pointwise_map=_points(seen, read), replaced=seen.replaced,
        calls=seen.calls, made_by=seen.layer.made_by, unknown=tuple(sorted(read.unknown)), context=seen.context,
        silent=opinion is SILENT,
    )  # fmt: skip


def _points(seen: Seen, read: Read) -> bool | None:
    if any((read.fields.get(letter) or 1) > 1 for letter in "TRS") or False in seen.points:
        return False
    return True if seen.points and all(seen.points) else None


def _one(group: list[SourceLayer]) -> SourceLayer:
    """Equal layers of several roots: as certain as the best of them, placed as the largest network says."""
    found = min(group, key=lambda each: (each.certainty != "stated", bool(each.condition)))
    placed = max(group, key=lambda each: each.context)
    points = {layer.pointwise_map for layer in group}
    return replace(
        found,
        layer=replace(found.layer, first=placed.layer.first, head=placed.layer.head),
        calls=placed.calls,
        replaced=all(each.replaced for each in group),
        context=placed.context,
        pointwise_map=False if False in points else None if None in points else True,
    )


def _without_less(layers: list[SourceLayer]) -> list[SourceLayer]:
    """Those that say something that no other, as certain, says with more."""
    gaps = [_gaps(layer) for layer in layers]
    if len(set(gaps)) == 1:
        return layers
    kinds = set(gaps)
    return [
        one for one, missing in zip(layers, gaps, strict=True)
        if not any(less < missing for less in kinds)
        or not any(less < missing and _says_less(one, other, missing)
                   for other, less in zip(layers, gaps, strict=True))
    ]  # fmt: skip


def _gaps(layer: SourceLayer) -> frozenset[str]:
    """What it does not know."""
    values = zip(_COMPARED, _compared(layer.layer), strict=True)
    return frozenset((*layer.unknown, *(field for field, value in values if value is None)))


def _says_less(one: SourceLayer, other: SourceLayer, missing: frozenset[str]) -> bool:
    if one.certainty == "stated" and other.certainty != "stated" and _knows(one):
        return False
    return all(getattr(one.layer, field) == getattr(other.layer, field) for field in _COMPARED if field not in missing)


def _knows(layer: SourceLayer) -> bool:
    """Whether it knows anything that a rule of widths could read."""
    return layer.layer.C is not None or layer.layer.K is not None
