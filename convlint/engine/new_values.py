"""Whether a layer can take the value that a rule's fix computed for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from convlint.engine.changes import with_fix
from convlint.model.layer import ConvLayer, Dtype
from convlint.report import Scalar
from convlint.rulebook.expr import UNKNOWN, ExprError

_WORDS = {"dtype": tuple(dtype.value for dtype in Dtype), "layout": ("NCHW", "NHWC", "auto")}
_MAX_SIZE = 2**31


def is_size(name: str, value: Any) -> bool:
    """Whether `new_value` has nothing to object to, nor to change: so it is with nearly every value of a fix."""
    return type(value) is int and 0 <= value <= _MAX_SIZE and name not in _WORDS


def new_value(name: str, value: Any) -> Scalar | None:
    """`value` for the field `name`, or None where it is larger than any layer's may be.

    0 stands for "there is none". Raises ExprError where the rule itself is wrong, UnknownValue for UNKNOWN.
    """
    if value is UNKNOWN:
        bool(value)
    if name in _WORDS and value not in _WORDS[name]:
        raise ExprError(f"sets {name} to {value!r}, which is not one of {', '.join(_WORDS[name])}")
    if "." in name or isinstance(value, bool | str):
        result: Scalar = value
        return result
    if value < 0:
        raise ExprError(f"sets {name} to {value}, which no layer can have")
    if value > _MAX_SIZE:
        return None
    if value != int(value):
        raise ExprError(f"sets {name} to {value}, which is no whole number")
    return int(value)


_SHAPING = frozenset(("groups", "C", "K"))
_HARMLESS = frozenset(("dtype", "layout", "N"))
_CHANNELS = _HARMLESS | {"C", "K"}  # one group divides any of them, and they leave the output's size alone


def impossible(changes: Mapping[str, Scalar], layer: ConvLayer) -> str | None:
    """Why no layer can be what `changes` make of one that can; None where nothing speaks against it."""
    if changes.keys() <= _HARMLESS or (layer.groups == 1 and changes.keys() <= _CHANNELS):
        return None
    after = with_fix(layer, changes)
    set_to = ", ".join(f"{name}={value}" for name, value in changes.items())
    if _SHAPING & changes.keys() and _divides(layer) and not _divides(after):
        return f"sets {set_to}, but groups={after.groups} must divide C={after.C} and K={after.K}"
    if _has_output(layer) and not _has_output(after):
        return f"sets {set_to}, which leaves no output"
    return None


def _has_output(layer: ConvLayer) -> bool:
    return all(size is None or size > 0 for size in (layer.Z, layer.P, layer.Q))


def _divides(layer: ConvLayer) -> bool:
    return all(size is None or (layer.groups > 0 and size % layer.groups == 0) for size in (layer.C, layer.K))
