"""Whether a layer can take the value that a rule's fix computed for it."""

from __future__ import annotations

from typing import Any

from convlint.expr import UNKNOWN, ExprError
from convlint.model import Dtype
from convlint.report import Scalar

_WORDS = {"dtype": tuple(dtype.value for dtype in Dtype), "layout": ("NCHW", "NHWC", "auto")}
_MAX_SIZE = 2**31


def new_value(name: str, value: Any) -> Scalar:
    """`value` for the field `name`; 0 stands for "there is none". Raises ExprError, or UnknownValue for UNKNOWN."""
    if value is UNKNOWN:
        bool(value)
    if name in _WORDS and value not in _WORDS[name]:
        raise ExprError(f"sets {name} to {value!r}, which is not one of {', '.join(_WORDS[name])}")
    if "." in name or isinstance(value, bool | str):
        result: Scalar = value
        return result
    if not (0 <= value <= _MAX_SIZE and value == int(value)):
        raise ExprError(f"sets {name} to {value}, which is no whole number from 0 to 2^31")
    return int(value)
