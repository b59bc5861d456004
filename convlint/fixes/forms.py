"""New values of one key of a spec, in the form and spelling of the old one: number, list, padding by side, word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from convlint.fixes import yaml_nodes as nodes
from convlint.model.grouping import grouped
from convlint.model.layer import Dtype
from convlint.readers.spec.fields import CANONICAL, COMPOSITES, DTYPE_PREFIXES, DTYPES, LAYOUTS, NEUTRAL, PADS, SIZES
from convlint.readers.spec.reader import BOOLEANS as RUNTIME_BOOLEANS
from convlint.readers.spec.reader import CHOICES

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
_BLOCK = ("|", ">")
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
    if name in RUNTIME_BOOLEANS:
        return boolean_word(bool(value), "true" if old is None else old)
    text = str(value)
    if old is None or name not in CHOICES:
        return text
    if CHOICES[name].get(old.lower().strip()) == text:
        return old
    return text.lower() if old.islower() else text


SIDES = ("front", "back", "top", "bottom", "left", "right")
BOOLEANS = ("bias", "first", "head", "unfolded")
NUMBERS = (*SIZES, "groups", "calls", "residual_inputs")
_PAD_LETTERS = tuple((pad, pad + "_end") for pad in PADS)
_SAME = "same"


class Sides(Struct, frozen=True):
    """Padding by the name of each side."""

    named: tuple[tuple[str, str], ...]


class No(Struct, frozen=True):
    """The reason why something cannot be written."""

    reason: str


Data: TypeAlias = "str | tuple[Data, ...] | Sides"  # what a node says; numbers are text, as in the reader


def data_of(node: nodes.Node) -> Data:
    """The value of a node, for keys that the reader has read: others may hold aliases that unfold without end."""
    target = nodes.behind(node)
    if isinstance(target, nodes.Scalar):
        return target.text
    if isinstance(target, nodes.Sequence):
        return tuple(map(data_of, target.items))
    return Sides(tuple((name, nodes.behind(target.merged[name].value).text) for name in SIDES if name in target.merged))


def unwritable(text: str, node: nodes.Node, old: Data, new: Data) -> str | None:
    """Why a node that says `old` cannot say `new` where it stands; None if it can. It is no alias, and has none."""
    if old == new or isinstance(node, nodes.Mapping | nodes.Alias):
        return None
    if isinstance(node, nodes.Scalar):
        return "it is written as a block of text" if node.style in _BLOCK else None
    items = items_as(node, new)
    if items is not None:
        problems = (unwritable(text, item, data_of(item), data) for item, data in zip(node.items, items, strict=True))
        return next(filter(None, problems), None)
    if not node.flow or "#" in text[node.start : node.end]:
        return "its list has another length, and is not written on one line"
    return None


def items_as(node: nodes.Sequence, new: Data) -> tuple[Data, ...] | None:
    """What each item of a list becomes; None where the list gets another shape."""
    if not isinstance(new, tuple) or len(new) != len(node.items):
        return None
    lists = [isinstance(nodes.behind(item), nodes.Sequence) for item in node.items]
    return new if lists == [isinstance(data, tuple) for data in new] else None


def letters_of(name: str, dims: int | None) -> tuple[str, ...]:
    """What the key of this canonical name sets, of an operation of so many dimensions (None: of no convolution)."""
    axes = slice(3 - (dims or 3), None)
    if name in COMPOSITES:
        return tuple(COMPOSITES[name][axes])
    if name == "padding":
        return tuple(letter for pair in _PAD_LETTERS[axes] for letter in pair)
    return (name, name + "_end") if name in PADS else (name,)


_SETTING = grouped((letter, key) for key, name in CANONICAL.items() for letter in letters_of(name, 3))
KEYS_OF = {letter: tuple(keys) for letter, keys in _SETTING.items()}  # letter -> the keys that may set it
CHANGEABLE = frozenset(
    (*NUMBERS, *BOOLEANS, "dtype", "layout", *(letter for pair in _PAD_LETTERS for letter in pair))
).union(*COMPOSITES.values())


def restated(key: str, old: Data, changes: Mapping[str, Any], drawn: Sequence[str], dims: int | None) -> Data | No:
    """The value of `key` after `changes` (letter -> value), or why the key cannot express them.

    `drawn` are the letters that take their value from the key; for others, which state their own, any value will do.
    """
    name = CANONICAL[key]
    if name in COMPOSITES or name == "padding":
        if dims is None:
            return No(f"{key} of an operation that is no convolution is left alone")
        return _padding(old, changes, drawn, dims) if name == "padding" else _axes(name, old, changes, drawn, dims)
    if name in PADS:
        begin, end = (int(changes.get(letter, old)) for letter in (name, name + "_end"))
        return str(begin) if begin == end else No(f"{key} pads both sides alike")
    return stated(key, changes[name], str(old), dims)


def stated(key: str, value: Any, old: str | None, dims: int | None) -> str:
    """One value as text, in the words of `old` where there is one."""
    name = CANONICAL[key]
    if name in BOOLEANS:
        return boolean_word(bool(value), "true" if old is None else old)
    if name == "dtype":
        return str(value) if old is None else dtype_word(str(value), old)
    if name == "layout":
        return str(value) if old is None else layout_word(str(value), old, key=key, dims=dims)
    return str(int(value))


def together(name: str, values: Mapping[str, int], dims: int) -> Data:
    """The value of a new key for several axes: one number if they are all the same."""
    letters = letters_of(name, dims)
    if name == "padding":
        return _sides_or_axes([(values[begin], values[end]) for begin, end in _pairs(letters)], letters)
    numbers = [str(values[letter]) for letter in letters]
    return numbers[0] if len(set(numbers)) == 1 else tuple(numbers)


def neutral(letter: str) -> int:
    """The value of a letter of several axes where nothing states it."""
    name = next((name for name, letters in COMPOSITES.items() if letter in letters), "padding")
    return NEUTRAL[name]


def is_same(value: Data) -> bool:
    """Whether padding is left to the sizes."""
    return isinstance(value, str) and value.lower().strip() == _SAME


def _axes(name: str, old: Data, changes: Mapping[str, Any], drawn: Sequence[str], dims: int) -> Data:
    letters = letters_of(name, dims)
    before = _numbers(old, dims)
    after = [int(changes.get(letter, number)) for letter, number in zip(letters, before, strict=True)]
    if isinstance(old, tuple) and len(old) == dims:  # who writes a list keeps it, whatever is in it
        return tuple(map(str, after))
    # Axes that state their own value must not keep the others from being one number.
    counting = {number for letter, number in zip(letters, after, strict=True) if letter in drawn}
    if len(counting) == 1:
        number = str(counting.pop())
        return (number,) if isinstance(old, tuple) else number
    return tuple(map(str, after))


def _padding(old: Data, changes: Mapping[str, Any], drawn: Sequence[str], dims: int) -> Data | No:
    if is_same(old):
        return No("padding: same follows from the sizes")
    letters = letters_of("padding", dims)
    after = [
        (int(changes.get(first, begin)), int(changes.get(last, end)))
        for (first, last), (begin, end) in zip(_pairs(letters), _pads(old, dims), strict=True)
    ]
    if after == _pads(old, dims):
        return old
    if isinstance(old, Sides):
        stated = dict(old.named)
        sides = dict(zip(SIDES[6 - 2 * dims :], (str(side) for pair in after for side in pair), strict=True))
        by_side = {**stated, **{side: pad for side, pad in sides.items() if pad != stated.get(side, "0")}}
        return Sides(tuple((side, by_side[side]) for side in SIDES if side in by_side))
    if isinstance(old, tuple):
        if any(isinstance(item, tuple) for item in old):
            return tuple((str(begin), str(end)) for begin, end in after)
        if len(old) == 2 * dims:
            return tuple(str(side) for pair in after for side in pair)
        if len(old) == dims and all(begin == end for begin, end in after):
            return tuple(str(begin) for begin, _ in after)
    new = _sides_or_axes(after, letters, drawn)
    return (new,) if isinstance(old, tuple) and isinstance(new, str) else new


def _sides_or_axes(pads: Sequence[tuple[int, int]], letters: Sequence[str], drawn: Sequence[str] | None = None) -> Data:
    """One number, one for each axis, or all sides: whatever is enough for the letters that count."""
    sides = [side for pair in pads for side in pair]
    counting = {side for side, letter in zip(sides, letters, strict=True) if drawn is None or letter in drawn}
    if len(counting) == 1:
        return str(counting.pop())
    if all(begin == end for begin, end in pads):
        return tuple(str(begin) for begin, _ in pads)
    return tuple(map(str, sides))


def _pairs(letters: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip(letters[::2], letters[1::2], strict=True))


def _numbers(old: Data, dims: int) -> list[int]:
    texts = old if isinstance(old, tuple) else (old,)
    numbers = [int(str(text)) for text in texts]
    return numbers * dims if len(numbers) == 1 else numbers


def _pads(old: Data, dims: int) -> list[tuple[int, int]]:
    """(begin, end) of each axis, from the outermost inwards."""
    if isinstance(old, Sides):
        by_side = dict(old.named)
        sides = [int(by_side.get(side, 0)) for side in SIDES[6 - 2 * dims :]]
    elif isinstance(old, str) and not old[:1].isdigit():  # valid
        sides = [0] * (2 * dims)
    elif isinstance(old, tuple) and any(isinstance(item, tuple) for item in old):
        sides = [int(str(side)) for pair in old if isinstance(pair, tuple) for side in pair]
    elif isinstance(old, tuple) and len(old) == 2 * dims:
        sides = [int(str(side)) for side in old]
    else:
        sides = [side for side in _numbers(old, dims) for _ in range(2)]
    return list(zip(sides[::2], sides[1::2], strict=True))
