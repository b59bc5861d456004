"""Whether a layer can take the value that a rule's fix computed for it."""

from __future__ import annotations

from typing import Any

from convlint.model.layer import Dtype
from convlint.report import Scalar
from convlint.rulebook.expr import UNKNOWN, ExprError

_WORDS = {"dtype": tuple(dtype.value for dtype in Dtype), "layout": ("NCHW", "NHWC", "auto")}
_MAX_SIZE = 2**31


def new_value(name: str, value: Any) -> Scalar | None:
    """`value` for the field `name`, or None where no layer can have it, such as a negative size.

    0 stands for "there is none". Raises ExprError where the rule itself is wrong, UnknownValue for UNKNOWN.
    """
    if value is UNKNOWN:
        bool(value)
    if name in _WORDS and value not in _WORDS[name]:
        raise ExprError(f"sets {name} to {value!r}, which is not one of {', '.join(_WORDS[name])}")
    if "." in name or isinstance(value, bool | str):
        result: Scalar = value
        return result
    if not 0 <= value <= _MAX_SIZE:
        return None
    if value != int(value):
        raise ExprError(f"sets {name} to {value}, which is no whole number")
    return int(value)
