"""Spellings of a new value that match the old one: float16 becomes float32, channels_last becomes channels_first."""

from __future__ import annotations

from collections.abc import Mapping

from convlint.model.layer import Dtype
from convlint.readers.spec.fields import DTYPE_PREFIXES, DTYPES, LAYOUTS
from convlint.readers.spec.reader import BOOLEANS, CHOICES

# Spellings by family of frameworks. A dtype that a family has no word for keeps convlint's own.
_LONG = {
    "fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp8": "float8_e4m3fn",
}  # fmt: skip
_C = {**_LONG, "fp64": "double", "fp32": "float", "fp16": "half"}
_MATLAB = {**_C, "fp32": "single"}
_SHORT = {"fp64": "f64", "fp32": "f32", "fp16": "f16", "fp8": "f8", "int8": "i8"}
_MIXED = {**_LONG, "fp16": "mixed_float16", "bf16": "mixed_bfloat16"}
_FAMILY: Mapping[str, Mapping[str, str]] = {
    **{word: _LONG for word in DTYPES if "float" in word or "qint" in word or word == "uint8"},
    **dict.fromkeys(("double", "float", "half"), _C),
    "single": _MATLAB,
    **dict.fromkeys(("f64", "f32", "f16", "f8", "i8", "s8"), _SHORT),
    **dict.fromkeys(("mixed_float16", "mixed_bfloat16"), _MIXED),
}

_TO_LAST = {
    "nchw": "nhwc", "ncdhw": "ndhwc", "ncw": "nwc", "ncl": "nlc", "channels_first": "channels_last",
    "contiguous": "channels_last", "torch.contiguous_format": "torch.channels_last",
}  # fmt: skip
_TO_FIRST = {
    "nhwc": "nchw", "ndhwc": "ncdhw", "nwc": "ncw", "nlc": "ncl", "channels_last": "channels_first",
    "channels_last_3d": "contiguous", "torch.channels_last": "torch.contiguous_format",
    "torch.channels_last_3d": "torch.contiguous_format",
}  # fmt: skip

_OPPOSITES = {
    "true": "false", "yes": "no", "on": "off", "1": "0", "false": "true", "no": "yes", "off": "on", "0": "1",
}  # fmt: skip
_TRUE = ("true", "yes", "on", "1")


def dtype_word(value: str, old: str) -> str:
    """The dtype `value` as whoever wrote `old` would write it."""
    bare = old.strip()
    prefix = next((bare[: len(prefix)] for prefix in DTYPE_PREFIXES if bare.lower().startswith(prefix)), "")
    word = bare[len(prefix) :].lower()
    if DTYPES.get(word, word) == value:
        return old
    family = _FAMILY.get(word, _LONG if prefix else {})
    if prefix and value not in family and value != Dtype.int8:
        return value  # no framework has a name for it
    new = prefix + family.get(value, value)
    return new.upper() if bare.isupper() else new


def layout_word(value: str, old: str, *, key: str, dims: int | None) -> str:
    """The layout `value` as whoever wrote `old` at `key` would write it."""
    bare = old.strip()
    word = bare.lower()
    if LAYOUTS[word] == value:
        return old
    if "auto" in (word, value):
        return value
    if value == "NHWC":
        new = _TO_LAST[word] + ("_3d" if dims == 3 and "contiguous" in word else "")
    else:
        new = "contiguous" if key == "memory_format" and word == "channels_last" else _TO_FIRST[word]
    return new.upper() if bare.isupper() else new


def boolean_word(value: bool, old: str) -> str:
    """True or false as whoever wrote `old` would write it: yes and no, On and Off, 1 and 0."""
    word = old.strip().lower()
    if (word in _TRUE) is value:
        return old
    new = _OPPOSITES[word]
    return new.upper() if old.isupper() else new.capitalize() if old[:1].isupper() else new


def setting_word(name: str, value: int | str | bool, old: str | None) -> str:
    """A setting of the runtime, in the words of `old` where there is one."""
    if name in BOOLEANS:
        return boolean_word(bool(value), "true" if old is None else old)
    text = str(value)
    if old is None or name not in CHOICES:
        return text
    if CHOICES[name].get(old.lower().strip()) == text:
        return old
    return text.lower() if old.islower() else text
