"""One value of a spec, from text to what it means: sizes, booleans, words, dtypes and layouts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from convlint.errors import shown, suggestion
from convlint.files.located_yaml import Value, fault
from convlint.model.layer import Dtype

MAX_SIZE = 2**31

_BOOLS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
DTYPE_PREFIXES = ("torch.", "tf.", "np.", "jnp.")
DTYPES = {
    "float64": "fp64", "double": "fp64", "f64": "fp64",
    "float32": "fp32", "float": "fp32", "f32": "fp32", "single": "fp32",
    "tensorfloat32": "tf32", "tensorfloat-32": "tf32",
    "float16": "fp16", "half": "fp16", "f16": "fp16",
    "bfloat16": "bf16",
    "float8": "fp8", "float8_e4m3fn": "fp8", "float8_e5m2": "fp8", "e4m3": "fp8", "e5m2": "fp8", "f8": "fp8",
    "qint8": "int8", "quint8": "int8", "uint8": "int8", "i8": "int8", "s8": "int8",
    "mixed_float16": "fp16", "mixed_bfloat16": "bf16",
}  # fmt: skip
LAYOUTS = {
    "nchw": "NCHW", "channels_first": "NCHW", "ncdhw": "NCHW", "ncw": "NCHW", "ncl": "NCHW",
    "contiguous": "NCHW", "torch.contiguous_format": "NCHW",
    "nhwc": "NHWC", "channels_last": "NHWC", "ndhwc": "NHWC", "nwc": "NHWC", "nlc": "NHWC",
    "channels_last_3d": "NHWC", "torch.channels_last": "NHWC", "torch.channels_last_3d": "NHWC",
    "auto": "auto",
}  # fmt: skip


def integer(name: str, value: Value, *, minimum: int = 1) -> int:
    """A whole number from `minimum` to 2^31. Raises InputFault that says what would be right."""
    text = value.data
    if isinstance(text, str) and value.plain and text.isdigit() and text.isascii() and (text[0] != "0" or text == "0"):
        if len(text) > 10 or (number := int(text)) > MAX_SIZE:
            raise fault(f"{name}: {shown(text)} is larger than 2^31", value.span)
        if number < minimum:
            raise fault(f"{name}: must be at least {minimum}, not {number}", value.span)
        return number
    raise fault(f"{name}: {_not_integer(value, minimum)}", value.span)


def _not_integer(value: Value, minimum: int) -> str:
    text = value.data
    wanted = f"must be a whole number of at least {minimum}"
    if not isinstance(text, str) or value.is_null:
        return f"{wanted}, not {value.kind}"
    if not value.plain:
        return f"{wanted}, not quoted text" + (f"; write {shown(text)} without quotes" if text.isdigit() else "")
    if text.lower() in _BOOLS:
        return f"{wanted}; YAML reads {text} as a boolean"
    if re.fullmatch(r"0[0-7_]+", text):
        plain = text.lstrip("0_") or "0"
        return f"{wanted}; YAML 1.1 reads {shown(text)} as octal; write {shown(plain)} without the leading zero"
    if re.fullmatch(r"[0-9]+(:[0-9]+)+", text):
        return f"{wanted}; YAML 1.1 reads {shown(text)} in base 60"
    if re.fullmatch(r"-[0-9]+(\.[0-9]*)?", text):
        return f"{wanted}, not {shown(text)}"
    if re.fullmatch(r"[+-]?[0-9][0-9_]*", text):
        return f"{wanted}, not {shown(text)}; write it in plain digits"
    if re.fullmatch(r"[+-]?[0-9.]+([eE][+-]?[0-9]{1,3})?", text) and text.count(".") <= 1:
        return f"{wanted}, not {shown(text)}; write it in plain digits"
    return f"{wanted}, not {shown(text)!r}"


def boolean(name: str, value: Value) -> bool:
    """True or false. Raises InputFault."""
    text = value.data
    if isinstance(text, str) and value.plain and text.lower() in _BOOLS:
        return _BOOLS[text.lower()]
    raise fault(
        f"{name}: must be true or false, not {shown(text) if isinstance(text, str) else value.kind}", value.span
    )


def word(name: str, value: Value) -> str:
    """Text that is not empty. Raises InputFault, also where YAML 1.1 would read a boolean."""
    text = value.data
    if not isinstance(text, str) or value.is_null:
        raise fault(f"{name}: must be text, not {value.kind}", value.span)
    if value.plain and text.lower() in _BOOLS:
        raise fault(f'{name}: YAML reads {text} as a boolean; write "{text}"', value.span)
    if not text.strip() or len(text) > 500:
        raise fault(f"{name}: must be 1 to 500 characters long", value.span)
    return text


def choice(name: str, value: Value, options: Mapping[str, str]) -> str:
    """One of `options` (lower case spelling -> meaning). Raises InputFault with a suggestion."""
    text = word(name, value)
    found = options.get(text.lower().strip())
    if found is None:
        known = sorted(set(options.values()))
        raise fault(
            f"{name}: {shown(text)!r} is not one of {', '.join(known)}{suggestion(text.lower(), options)}", value.span
        )
    return found


def dtype_of(value: Value) -> Dtype:
    """A dtype in our spelling or a framework's. Raises InputFault with a suggestion."""
    text = word("dtype", value).strip()
    short = text.lower()
    for prefix in DTYPE_PREFIXES:
        short = short.removeprefix(prefix)
    try:
        return Dtype(DTYPES.get(short, short))
    except ValueError:
        names = [dtype.value for dtype in Dtype]
        raise fault(
            f"dtype: {shown(text)!r} is not one of {', '.join(names)}{suggestion(short, [*names, *DTYPES])}",
            value.span,
        ) from None


def layout_of(value: Value) -> str:
    """NCHW, NHWC or auto, in our spelling or a framework's. Raises InputFault with a suggestion."""
    return choice("layout", value, LAYOUTS)
