"""Sorting, and the smallest and the largest, of values that are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from convlint.readers.python.evaluator.library import Call
from convlint.readers.python.evaluator.values import Const, Items, Value

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine


class Open(Exception):
    """The order is not known."""


def ordered(machine: Machine, items: list[Value], call: Call) -> list[Value] | None:
    """The items sorted, by `key` and `reverse` of the call; None where their order is not known."""
    reverse = call.keywords.get("reverse", Const(False))
    if not isinstance(reverse, Const) or not call.exact:
        return None
    try:
        keys = [_plain(key) for key in keys_of(machine, items, call)]
        places = sorted(range(len(items)), key=lambda at: keys[at], reverse=bool(reverse.value))
    except (Open, TypeError):
        return None
    return [items[at] for at in places]


def extreme(machine: Machine, items: list[Value], call: Call, *, largest: bool) -> Value | None:
    """The largest or smallest; None where that is not known."""
    try:
        keys = [_plain(key) for key in keys_of(machine, items, call)]
        at = (max if largest else min)(range(len(items)), key=lambda place: keys[place])
    except (Open, TypeError, ValueError):
        return None
    return items[at]


def keys_of(machine: Machine, items: list[Value], call: Call) -> list[Value]:
    """What the items are ordered by."""
    key = call.keywords.get("key")
    if key is None or (isinstance(key, Const) and key.value is None):
        return items
    return [machine.call(key, [item], {}, call.node, call.file) for item in items]


def _plain(value: Value) -> Any:
    if isinstance(value, Const):
        return value.value
    if isinstance(value, Items) and value.complete and value.kind in ("tuple", "list"):
        return [_plain(item) for item in value.items]
    raise Open
