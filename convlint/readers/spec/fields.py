"""The keys of a layer in a spec, their aliases and values; how a spec is told from other YAML and JSON files."""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, Literal

import yaml
from msgspec import Struct

from convlint.files.bounded_file import open_regular
from convlint.files.located_yaml import MAX_BYTES, MAX_DEPTH, Loader, Value, fault, text_of
from convlint.files.patterns import pattern
from convlint.model.errors import InputFault, shown, suggestion
from convlint.model.layer import Dtype
from convlint.model.location import Span

MAX_SIZE = 2**31  # along one axis; more is a typing mistake

TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
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
    """A whole number from `minimum` to 2^31, in plain digits. Raises InputFault that says what would be right."""
    text = value.data
    if isinstance(text, str) and value.plain and text.isdigit() and text.isascii() and (text[0] != "0" or text == "0"):
        if len(text) > 10 or (number := int(text)) > MAX_SIZE:
            raise fault(f"{name}: {shown(text)} is larger than 2^31", value.span)
        if number < minimum:
            raise fault(f"{name}: must be at least {minimum}, not {number}", value.span)
        return number
    raise fault(f"{name}: {_not_integer(value, minimum)}", value.span)


def _not_integer(value: Value, minimum: int) -> str:
    """Why the value is no whole number; names what YAML 1.1 parsers would make of it."""
    text = value.data
    expected = f"must be a whole number of at least {minimum}"
    if not isinstance(text, str) or value.is_null:
        return f"{expected}, not {value.kind}"
    if not value.plain:
        return f"{expected}, not quoted text" + (f"; write {shown(text)} without quotes" if text.isdigit() else "")
    if text.lower() in TRUTHS:
        return f"{expected}; YAML reads {text} as a boolean"
    if re.fullmatch(r"0[0-7_]+", text):
        plain = text.lstrip("0_") or "0"
        return f"{expected}; YAML 1.1 reads {shown(text)} as octal; write {shown(plain)} without the leading zero"
    if re.fullmatch(r"[0-9]+(:[0-9]+)+", text):
        return f"{expected}; YAML 1.1 reads {shown(text)} in base 60"
    if re.fullmatch(r"-[0-9]+(\.[0-9]*)?", text):
        return f"{expected}, not {shown(text)}"
    if re.fullmatch(r"[+-]?[0-9][0-9_]*", text):
        return f"{expected}, not {shown(text)}; write it in plain digits"
    if re.fullmatch(r"[+-]?[0-9.]+([eE][+-]?[0-9]{1,3})?", text) and text.count(".") <= 1:
        return f"{expected}, not {shown(text)}; write it in plain digits"
    return f"{expected}, not {shown(text)!r}"


def boolean(name: str, value: Value) -> bool:
    """True or false. Raises InputFault."""
    text = value.data
    if isinstance(text, str) and value.plain and text.lower() in TRUTHS:
        return TRUTHS[text.lower()]
    raise fault(
        f"{name}: must be true or false, not {shown(text) if isinstance(text, str) else value.kind}", value.span
    )


def word(name: str, value: Value) -> str:
    """Text that is not empty. Raises InputFault, also for an unquoted word that YAML 1.1 reads as a boolean."""
    text = value.data
    if value.plain and isinstance(text, str) and text.lower() in TRUTHS:
        raise fault(f'{name}: YAML reads {text} as a boolean; write "{text}"', value.span)
    return text_in(name, value)


def text_in(name: str, value: Value) -> str:
    """Text that is not empty, of a key whose values are never mistaken for booleans. Raises InputFault."""
    text = value.data
    if not isinstance(text, str) or value.is_null:
        raise fault(f"{name}: must be text, not {value.kind}", value.span)
    if not text.strip() or len(text) > 500:
        raise fault(f"{name}: must be 1 to 500 characters long", value.span)
    return text


def choice(name: str, value: Value, options: Mapping[str, str]) -> str:
    """One of `options` (lower case spelling -> meaning). Raises InputFault with a suggestion."""
    text = text_in(name, value)
    meaning = options.get(text.lower().strip())
    if meaning is None:
        known = sorted(set(options.values()))
        near = suggestion(text, known) or suggestion(text.lower(), options)
        raise fault(f"{name}: {shown(text)!r} is not one of {', '.join(known)}{near}", value.span)
    return meaning


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
        near = suggestion(short, names) or suggestion(short, DTYPES)
        raise fault(f"dtype: {shown(text)!r} is not one of {', '.join(names)}{near}", value.span) from None


def layout_of(value: Value) -> str:
    """NCHW, NHWC or auto, in our spelling or a framework's. Raises InputFault with a suggestion."""
    return choice("layout", value, LAYOUTS)


UNKNOWN = "unknown"  # may be written for the size of a tensor
# The value along an axis that the layer does not have.
NEUTRAL: Mapping[str, int] = {"kernel_size": 1, "stride": 1, "dilation": 1, "output_padding": 0, "padding": 0}


def axes(name: str, value: Value, dims: int, *, minimum: int, neutral: int | None = None) -> tuple[int, int, int]:
    """Reads one number for all axes or one for each: (depth, height, width), absent axes with the neutral value."""
    neutral = NEUTRAL[name] if neutral is None else neutral
    if isinstance(value.data, list):
        if len(value.data) not in (1, dims):
            count = "one number" if dims == 1 else f"one number or {dims}"
            raise fault(f"{name}: must be {count}, not {len(value.data)}", value.span)
        numbers = [integer(name, item, minimum=minimum) for item in value.data]
        if len(numbers) == 1:
            numbers *= dims
    else:
        numbers = [integer(name, value, minimum=minimum)] * dims
    padded = [neutral] * (3 - dims) + numbers
    return padded[0], padded[1], padded[2]


def tensor_sizes(value: Value, dims: int) -> tuple[int | None, int | None, int | None]:
    """Reads `size`, the sizes of a tensor, like `axes`; each may be `unknown`, which is None."""
    items = value.data if isinstance(value.data, list) else [value] * dims
    hidden = [item.data == UNKNOWN for item in items]
    # A 1 stands in for each unknown size, so that `axes` checks the others and their number.
    stated = [Value("1", item.span, plain=True) if item.data == UNKNOWN else item for item in items]
    known = axes("size", Value(stated, value.span), dims, minimum=1, neutral=1)
    unknown = [False] * (3 - dims) + (hidden * dims if len(hidden) == 1 else hidden)
    depth, height, width = (None if unknown[axis] else known[axis] for axis in range(3))
    return depth, height, width


def paddings(value: Value, dims: int) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]] | str:
    """Reads padding: (begin, end) for depth, height and width, or "same". Four numbers are top, bottom, left, right."""
    if isinstance(value.data, str) and not re.match(r"[-+.]?[0-9]", value.data):
        mode = choice("padding", value, {"same": "same", "valid": "valid"})
        return "same" if mode == "same" else ((0, 0), (0, 0), (0, 0))
    if isinstance(value.data, dict):
        return _named_sides(value)
    items = value.data if isinstance(value.data, list) else None
    if items is not None and any(isinstance(item.data, list) for item in items):
        if len(items) != dims or any(not isinstance(item.data, list) or len(item.data) != 2 for item in items):
            raise fault(f"padding: must be {dims} pairs of (begin, end)", value.span)
        pairs = [(_side(begin), _side(end)) for begin, end in (item.data for item in items)]
    elif items is not None and len(items) == 2 * dims:
        sides = [_side(item) for item in items]
        pairs = list(zip(sides[::2], sides[1::2], strict=True))
    elif items is not None and len(items) not in (1, dims):
        raise fault(f"padding: must be one number, {dims}, or {2 * dims} sides, not {len(items)}", value.span)
    else:
        pairs = [(pad, pad) for pad in axes("padding", value, dims, minimum=0)[3 - dims :]]
    full = [(0, 0)] * (3 - dims) + pairs
    return full[0], full[1], full[2]


def _side(value: Value) -> int:
    return integer("padding", value, minimum=0)


def _named_sides(value: Value) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    names = ("front", "back", "top", "bottom", "left", "right")
    for key, item in value.data.items():
        if key not in names:
            raise fault(f"padding: unknown side {shown(key)!r}{suggestion(key, names)}", item.key_span)
    sides = [integer(name, value.data[name], minimum=0) if name in value.data else 0 for name in names]
    return (sides[0], sides[1]), (sides[2], sides[3]), (sides[4], sides[5])


# canonical name -> what else it may be called
ALIASES: Mapping[str, tuple[str, ...]] = {
    "N": ("batch", "batch_size"),
    "C": ("in_channels", "input_channels"),
    "D": ("depth",),
    "H": ("height",),
    "W": ("width", "length"),
    "K": ("out_channels", "output_channels", "filters"),
    "kernel_size": ("kernel", "kernel_shape"),
    "stride": ("strides",),
    "padding": ("pad",),
    "dilation": ("dilations", "dilation_rate"),
    "groups": ("group",),
    "dtype": ("data_type", "precision"),
    "layout": ("data_format", "memory_format"),
    "bias": ("use_bias",),
    "op": ("type",),
    "input": ("from",),
    "calls": ("repeat",),
}
SIZES = ("N", "C", "D", "H", "W", "K", "Z", "P", "Q", "T", "R", "S", "StrideD", "U", "V", "DilD", "DilH", "DilW")
PADS = ("PadD", "PadH", "PadW")
BOOLEANS = ("bias", "first", "head", "copied", "transposed", "unfolded", "frozen")
LAYER_KEYS = (
    *SIZES, *PADS, "kernel_size", "stride", "padding", "dilation", "output_padding", "groups", "dtype", "layout",
    "bias", "op", "name", "input", "inputs", "weights", "transposed", "dims", "calls", "first", "head", "copied",
    "unfolded", "residual_inputs", "scale", "size", "frozen", "heads",
)  # fmt: skip
CANONICAL: Mapping[str, str] = {
    **{key: key for key in LAYER_KEYS},
    **{alias: name for name, aliases in ALIASES.items() for alias in aliases},
}
# composite key -> the letters that it sets, from the outermost axis inwards
COMPOSITES: Mapping[str, tuple[str, str, str]] = {
    "kernel_size": ("T", "R", "S"),
    "stride": ("StrideD", "U", "V"),
    "dilation": ("DilD", "DilH", "DilW"),
    "output_padding": ("OutPadD", "OutPadH", "OutPadW"),
}
# Keys with a single value -> how that is read, given the key as written.
_SINGLE: Mapping[str, Callable[[str, Value], Any]] = {
    **dict.fromkeys((*SIZES, "groups", "calls", "heads"), integer),
    **dict.fromkeys(BOOLEANS, boolean),
    "dtype": lambda _, value: dtype_of(value),
    "layout": lambda _, value: layout_of(value),
    "residual_inputs": partial(integer, minimum=0),
    "name": word,
}


class Fields:
    """The values of one layer by canonical name, with their spans; composite keys are split into letters."""

    __slots__ = ("spans", "values")

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.spans: dict[str, Span] = {}

    def put(self, name: str, value: Any, span: Span, key: str) -> None:
        """Sets one value. Raises InputFault where another key has set it to something else."""
        if name in self.values and self.values[name] != value:
            first = self.spans[name]
            other = f"line {first[0]}, column {first[1]} says {name} = {self.values[name]}"
            raise fault(f"{key} says {name} = {value}, but {other}", span)
        if name not in self.values:
            self.values[name] = value
            self.spans[name] = span


def read_fields(mapping: Mapping[str, Value], dims: int, report: Callable[[InputFault], None], *, where: str) -> Fields:
    """All fields of one layer's mapping; each error goes to `report`, and the other fields are still read."""
    fields = Fields()
    for key, value in mapping.items():
        try:
            _read_field(fields, key, value, dims, where)
        except InputFault as error:
            report(error)
    pad = next((letter for letter in PADS if letter in fields.values), None)
    if "same" in fields.values and pad is not None:
        line, column, *_ = fields.spans["same"]
        report(fault(f"{pad} is given, but line {line}, column {column} says padding: same", fields.spans[pad]))
    return fields


def _read_field(fields: Fields, key: str, value: Value, dims: int, where: str) -> None:
    name = CANONICAL.get(key)
    span = value.span
    if name is None:
        raise fault(f"unknown key {shown(key)!r} in {where}{suggestion(key, CANONICAL)}", value.key_span or span)
    if name in _SINGLE:
        fields.put(name, _SINGLE[name](key, value), span, key)
    elif name in COMPOSITES:
        numbers = axes(name, value, dims, minimum=NEUTRAL[name])
        for letter, number in zip(COMPOSITES[name], numbers, strict=True):
            fields.put(letter, number, span, key)
    elif name == "padding":
        pads = paddings(value, dims)
        if isinstance(pads, str):
            fields.put("same", True, span, key)
        else:
            for letter, (begin, end) in zip(PADS, pads, strict=True):
                fields.put(letter, begin, span, key)
                fields.put(letter + "_end", end, span, key)
    elif name in PADS:
        number = integer(key, value, minimum=0)
        fields.put(name, number, span, key)
        fields.put(name + "_end", number, span, key)
    else:  # op, dims, inputs, weights, scale and size mean something for some operations only, which read them
        fields.spans[name] = span


MOST_EVENTS = 200_000  # of YAML's parser; a spec has its version and its first layer long before
_HEAD = 1 << 16  # bytes at the beginning, by which most files are ruled out without being read further
_LAYERS_KEY = pattern(rb"""(?m)^[ \t]*+[{,]?[ \t]*+["']?layers["']?[ \t]*+:|["']layers["']\s*+:""")
_VERSION_KEY = pattern(rb"""version["']?[ \t]*:[ \t]*["']?1\b""")
_VERSION_1 = pattern(r"""^[ \t{]*["']?version["']?[ \t]*:[ \t]*["']?1["']?[ \t]*([,#}]|$)""", re.MULTILINE)
_LAYERS = pattern(r"""^["']?layers["']?[ \t]*:""", re.MULTILINE)
_ALIAS = "*"
_FILTER = ("C", "K", "R", "S", "kernel_size")
_TELLING = frozenset(key for key, name in CANONICAL.items() if name in _FILTER) | {"<<"}


class Look(Struct, frozen=True, kw_only=True):
    """The decision on a file: a spec; no spec, although it has a key `layers`; or foreign.

    `text` is the spec's. It is None where the file could not be read, which counts as a spec so that its reader reports
    the error.
    """

    verdict: Literal["spec", "no spec", "foreign"]
    text: str | None = None


def look(path: str, *, named: bool = False, whole: bool = True) -> Look:
    """Decides on the file at `path`. Unless it is `named` by the user, it needs a key `layers` in its first 64 KiB.

    Without `whole` it is read no further, and a file with that key counts as a spec.
    """
    head = b""
    try:
        with open_regular(path) as stream:
            head = b"" if named else stream.read(_HEAD)
            if head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):  # its reader reports that it is not UTF-8
                words = head.decode("utf-16", "ignore").encode()
                return Look(verdict="spec" if _LAYERS_KEY.search(words) and _VERSION_KEY.search(words) else "foreign")
            if not named and _LAYERS_KEY.search(head) is None:
                return Look(verdict="foreign")
            if not whole:
                return Look(verdict="spec")
            text = text_of(head + stream.read(MAX_BYTES + 1 - len(head)))
    except InputFault:  # an unreadable file is reported if it was named, begins like a spec, or lacks read permission
        is_closed = not head and os.path.isfile(path) and not os.access(path, os.R_OK)
        return Look(verdict="spec" if named or is_closed or _VERSION_KEY.search(head) else "foreign")
    return Look(verdict="spec", text=text) if is_spec_text(text) else Look(verdict="no spec")


def is_spec_text(text: str) -> bool:
    """Whether the text has `version: 1` and a layer that looks like a convolution.

    False where more values come before these, or they are nested deeper, than in any spec. In broken YAML both keys at
    the beginning of a line are enough, so that the reader reports the error.
    """
    if "layers" not in text or "version" not in text:
        return False
    version = layer = False
    try:
        for path, value in _values(text):
            version = version or (path == ("version",) and value == "1")
            layer = layer or _tells(path, value)
            if version and layer:
                return True
    except yaml.YAMLError:
        return (layer or _LAYERS.search(text) is not None) and _VERSION_1.search(text) is not None
    return False


def _tells(path: tuple[str, ...], value: str) -> bool:
    """Whether a value at this path shows a spec: a key of a convolution in a layer or in the defaults, or an alias."""
    where, *inside = path
    if where == "layers":
        return inside[1] in _TELLING if len(inside) == 2 else value == _ALIAS and len(inside) < 2
    return where == "defaults" and len(inside) == 1 and inside[0] in _TELLING


def _values(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each value of the first document with the keys that lead to it; list items and keys that are no text are ""."""
    keys: list[str | None] = []  # for each open collection: the key whose value comes next, None where a key does
    around: list[tuple[bool, bool]] = []  # for each open collection: whether it is a list, and whether it is a key
    for event in islice(yaml.parse(text, Loader=Loader), MOST_EVENTS):
        if isinstance(event, yaml.CollectionEndEvent):
            keys.pop()
            _, is_key = around.pop()
            if not keys:
                return
        elif isinstance(event, yaml.NodeEvent):
            value = _ALIAS if isinstance(event, yaml.AliasEvent) else str(getattr(event, "value", ""))
            opens = isinstance(event, yaml.CollectionStartEvent)
            is_key = bool(keys) and keys[-1] is None
            if is_key:
                keys[-1] = "" if opens else value
            elif keys:
                yield tuple(key or "" for key in keys), value
            if opens:
                listed = isinstance(event, yaml.SequenceStartEvent)
                around.append((listed, is_key))
                keys.append("" if listed else None)
                if len(keys) > MAX_DEPTH:
                    return
                continue
        else:
            continue
        if keys and not is_key and not around[-1][0]:
            keys[-1] = None
