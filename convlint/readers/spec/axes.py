"""What a spec gives for several axes at once: one number or one for each axis, and padding in all its forms."""

from __future__ import annotations

import re
from collections.abc import Mapping

from convlint.errors import shown, suggestion
from convlint.files.located_yaml import Value, fault
from convlint.readers.spec.values import choice, integer

# what an axis that the layer does not have gets
UNKNOWN = "unknown"  # of the size of a tensor
NEUTRAL: Mapping[str, int] = {"kernel_size": 1, "stride": 1, "dilation": 1, "output_padding": 0, "padding": 0}


def axes(name: str, value: Value, dims: int, *, minimum: int, neutral: int | None = None) -> tuple[int, int, int]:
    """A number for all axes or one for each, as (depth, height, width); absent axes are neutral."""
    neutral = NEUTRAL[name] if neutral is None else neutral
    if isinstance(value.data, list):
        if len(value.data) not in (1, dims):
            raise fault(f"{name}: must be one number or {dims}, not {len(value.data)}", value.span)
        numbers = [integer(name, item, minimum=minimum) for item in value.data]
        if len(numbers) == 1:
            numbers *= dims
    else:
        numbers = [integer(name, value, minimum=minimum)] * dims
    padded = [neutral] * (3 - dims) + numbers
    return padded[0], padded[1], padded[2]


def tensor_sizes(name: str, value: Value, dims: int) -> tuple[int | None, int | None, int | None]:
    """The same for sizes of a tensor, each of which may be `unknown`: None."""
    items = value.data if isinstance(value.data, list) else [value] * dims
    hidden = [item.data == UNKNOWN for item in items]
    stated = [Value("1", item.span, plain=True) if gone else item for item, gone in zip(items, hidden, strict=True)]
    known = axes(name, Value(stated, value.span), dims, minimum=1, neutral=1)
    gone = [False] * (3 - dims) + (hidden * dims if len(hidden) == 1 else hidden)
    depth, height, width = (None if gone[axis] else known[axis] for axis in range(3))
    return depth, height, width


def paddings(value: Value, dims: int) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]] | str:
    """(begin, end) for depth, height and width; or "same". Four sides are top, bottom, left, right."""
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
