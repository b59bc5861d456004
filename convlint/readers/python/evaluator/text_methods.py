"""Methods of texts and numbers that are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from convlint.readers.python.evaluator import arithmetic
from convlint.readers.python.evaluator.library import Call
from convlint.readers.python.evaluator.limits import LONGEST
from convlint.readers.python.evaluator.stated import stated_by
from convlint.readers.python.evaluator.values import Const, Items, Value, unknown

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

_PLAIN = frozenset({
    "capitalize", "casefold", "count", "endswith", "find", "index", "isalnum", "isalpha", "isdecimal", "isdigit",
    "isidentifier", "islower", "isnumeric", "isspace", "istitle", "isupper", "lower", "lstrip", "partition",
    "removeprefix", "removesuffix", "rfind", "rindex", "rpartition", "rsplit", "rstrip", "split", "splitlines",
    "startswith", "strip", "swapcase", "title", "upper",
})  # fmt: skip
_PADDED = frozenset({"center", "ljust", "rjust", "zfill"})
_NUMBERS = frozenset({"bit_length", "is_integer", "bit_count", "conjugate"})


def call(machine: Machine, receiver: Const, name: str, call: Call) -> Value | None:
    """What `receiver.name(...)` gives; None: nothing known."""
    if not call.exact:
        return None
    if name == "join":
        return _join(machine, receiver, call.args)
    args = [_raw(value) for value in call.args]
    keywords = {key: _raw(value) for key, value in call.keywords.items()}
    text = receiver.value
    if _OPEN in args or _OPEN in keywords.values():
        return None
    if isinstance(text, str):
        allowed = (
            name in _PLAIN
            or (name in _PADDED and all(not isinstance(arg, int) or arg <= LONGEST for arg in args))
            or (name == "format" and arithmetic.is_small_format(text))
            or (name == "replace" and _replaces_little(text, args))
        )
    else:
        allowed = isinstance(text, (int, float)) and name in _NUMBERS
    if not allowed:
        return None
    try:
        found: Any = getattr(text, name)(*args, **keywords)
    except (TypeError, ValueError, LookupError, AttributeError, OverflowError, MemoryError):
        return None
    stated = stated_by(receiver, *call.args)
    if isinstance(found, (list, tuple)):
        kind = "list" if isinstance(found, list) else "tuple"
        return Items(kind, [Const(each, stated) for each in found[:LONGEST]], complete=len(found) <= LONGEST)
    try:
        return Const(arithmetic.checked(found), stated)
    except arithmetic.NoResult:
        return unknown("limit")


_OPEN = object()


def _raw(value: Value) -> Any:
    if isinstance(value, Const):
        return value.value
    if isinstance(value, Items) and value.complete and value.kind == "tuple":
        held = [_raw(item) for item in value.items]
        return _OPEN if any(item is _OPEN for item in held) else tuple(held)
    return _OPEN


def _replaces_little(text: str, args: list[Any]) -> bool:
    new = args[1] if len(args) > 1 else ""
    return isinstance(new, str) and (len(text) + 1) * (len(new) + 1) <= LONGEST


def _join(machine: Machine, receiver: Const, args: list[Value]) -> Value | None:
    items = machine.iterate(args[0]) if len(args) == 1 else None
    texts = [item.value for item in items or () if isinstance(item, Const) and isinstance(item.value, str)]
    if items is None or len(texts) != len(items) or not isinstance(receiver.value, str):
        return None
    if sum(map(len, texts)) + len(receiver.value) * len(texts) > LONGEST:
        return unknown("limit")
    return Const(receiver.value.join(texts), stated_by(receiver, *items))
