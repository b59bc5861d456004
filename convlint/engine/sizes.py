"""Sizes as a message prints them, and whether a layer's own agree with each other and with what arrives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from convlint.engine.quantity import Quantity, or_unknown
from convlint.rulebook.unknown import UNKNOWN

if TYPE_CHECKING:
    from convlint.engine.facts import LayerFacts


def _shown(value: Any) -> str:
    return "?" if value is UNKNOWN else str(value)


def _by(*names: str) -> Quantity:
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


SIZES: Mapping[str, Quantity] = {
    "filter_size": _by("T", "R", "S"),
    "stride_size": _by("StrideD", "U", "V"),
    "dilation_size": _by("DilD", "DilH", "DilW"),
    "input_size": _by("D", "H", "W"),
    "padding_sizes": _paddings,
    "input_shape": _input_shape,
    "arriving_shape": _arriving_shape,
    "groups_divide": or_unknown(_groups_divide),
    "matches_arriving": or_unknown(_matches_arriving),
}
