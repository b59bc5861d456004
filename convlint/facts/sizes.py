"""Sizes as a message prints them, and whether a layer's own agree with each other and with what arrives."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from convlint.facts.quantity import Table, text, truth
from convlint.facts.unknown import UNKNOWN

if TYPE_CHECKING:
    from convlint.facts.layer import LayerFacts


def _shown(value: Any) -> str:
    return "?" if value is UNKNOWN else str(value)


def _by(*names: str) -> Callable[[LayerFacts], str]:
    """`3x3`, of three names the last two where there is no depth."""
    return lambda facts: "x".join(_shown(facts[name]) for name in names[0 if facts["dims"] == 3 else 1 :])


def _axes(facts: LayerFacts) -> tuple[str, ...]:
    """The sizes of its map that a layer of these dimensions has."""
    return ("D", "H", "W")[3 - facts["dims"] :]


def _paddings(facts: LayerFacts) -> str:
    axes = ("D", "H", "W") if facts["dims"] == 3 else ("H", "W")
    return ", ".join(f"Pad{axis}={_shown(facts[f'Pad{axis}'])}" for axis in axes)


def _input_shape(facts: LayerFacts) -> str:
    return ", ".join(f"{name}={_shown(facts[name])}" for name in ("C", *_axes(facts)))


def _arriving_shape(facts: LayerFacts) -> str:
    return ", ".join(f"{name}={_shown(getattr(facts['arriving'], name))}" for name in ("C", *_axes(facts)))


def _groups_divide(facts: LayerFacts) -> Any:
    groups = facts["groups"]
    return groups == 1 or (facts["C"] % groups == 0 and facts["K"] % groups == 0)


def _matches_arriving(facts: LayerFacts) -> Any:
    names = ("C", *reversed(_axes(facts)))
    return not facts["connected"] or all(facts[name] == getattr(facts["arriving"], name) for name in names)


PRINTED: Table = {
    "filter_size": text("the filter, such as 3x3, or 3x3x3 in 3-D", _by("T", "R", "S")),
    "stride_size": text("the stride, such as 2x2, or 1x2x2 in 3-D", _by("StrideD", "U", "V")),
    "dilation_size": text("the dilation, such as 2x2, or 1x2x2 in 3-D", _by("DilD", "DilH", "DilW")),
    "input_size": text("the map it reads, such as 56x56, or 8x56x56 in 3-D", _by("D", "H", "W")),
    "padding_sizes": text("the padding, such as PadH=1, PadW=1", _paddings),
    "input_shape": text("what it takes, such as C=64, H=56, W=56", _input_shape),
    "arriving_shape": text("what arrives, such as C=64, H=56, W=56", _arriving_shape),
    "groups_divide": truth("groups divides C and K", _groups_divide, ("C", "K")),
    "matches_arriving": truth(
        "C and the sizes are those that arrive; nothing arrives, so be it", _matches_arriving, ("C", "D", "H", "W")
    ),
}
