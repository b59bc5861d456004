"""Methods of lists, tuples, sets and iterators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from convlint.readers.python.evaluator.comparing import equal
from convlint.readers.python.evaluator.library import Call
from convlint.readers.python.evaluator.limits import LONGEST
from convlint.readers.python.evaluator.ordering import ordered
from convlint.readers.python.evaluator.values import NONE, Const, Items, Unknown, Value, unknown

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

_CHANGING = frozenset({
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popleft", "remove", "reverse",
    "sort", "update",
})  # fmt: skip


def call(machine: Machine, receiver: Items, name: str, call: Call) -> Value | None:
    """What `receiver.name(...)` gives; None: nothing known."""
    args = call.args
    if name in _CHANGING:
        machine.touch(receiver)
        found = _changed(machine, receiver, name, call)
        if found is None:
            receiver.complete = False
        return found or unknown("call")
    if name == "copy":
        return Items(receiver.kind, list(receiver.items), complete=receiver.complete, why=receiver.why)
    if name in ("index", "count") and len(args) == 1 and receiver.complete:
        same = [equal(item, args[0]) for item in receiver.items]
        if None in same:
            return None
        if name == "count":
            return Const(same.count(True))
        return Const(same.index(True)) if True in same else None
    if name == "__len__" and receiver.complete:
        return Const(len(receiver.items))
    if name == "union" and receiver.kind == "set":
        more = [machine.iterate(arg) for arg in args]
        found_items = [item for items in more if items is not None for item in items]
        found_set = machine.items.as_set([*receiver.items, *found_items])
        found_set.complete = found_set.complete and receiver.complete and None not in more
        return found_set
    if name == "__next__" or name == "__iter__":
        return receiver if name == "__iter__" else taken(machine, receiver)
    return None


def taken(machine: Machine, receiver: Items) -> Value:
    """The next item of an iterator."""
    if not receiver.complete or not receiver.items:
        return unknown(receiver.why if not receiver.complete else "call")
    if receiver.kind != "iterator":
        return unknown("call")
    machine.touch(receiver)
    return receiver.items.pop(0)


def _changed(machine: Machine, receiver: Items, name: str, call: Call) -> Value | None:
    args = call.args
    if name in ("append", "add", "appendleft") and len(args) == 1:
        return _added(machine, receiver, name, args[0])
    if name in ("extend", "update") and len(args) == 1:
        machine.items.extend(receiver, args[0])
        if receiver.kind == "set":
            found = machine.items.as_set(receiver.items)
            receiver.items, receiver.complete = found.items, receiver.complete and found.complete
        return NONE
    if not receiver.complete:
        return None
    if name == "insert" and len(args) == 2 and isinstance(args[0], Const) and isinstance(args[0].value, int):
        receiver.items.insert(args[0].value, args[1])
        return NONE
    if name in ("pop", "popleft"):
        return _popped(receiver, args if name == "pop" else [Const(0)])
    if name == "clear":
        receiver.items = []
        return NONE
    if name == "reverse":
        receiver.items.reverse()
        return NONE
    if name in ("remove", "discard") and len(args) == 1:
        same = [equal(item, args[0]) for item in receiver.items]
        if None in same:
            return None
        if True in same:
            del receiver.items[same.index(True)]
        return NONE
    if name == "sort":
        found_order = ordered(machine, receiver.items, call)
        if found_order is not None:
            receiver.items = found_order
            return NONE
    return None


def _added(machine: Machine, receiver: Items, name: str, value: Value) -> Value | None:
    if len(receiver.items) >= LONGEST:
        machine.lost(value)
        return None
    if name == "appendleft":
        receiver.items.insert(0, value)
    elif name == "append" or receiver.kind != "set":
        receiver.items.append(value)
    else:
        found = machine.items.as_set([*receiver.items, value])
        receiver.items, receiver.complete = found.items, receiver.complete and found.complete
    return NONE


def _popped(receiver: Items, args: list[Value]) -> Value | None:
    at = args[0] if args else Const(-1)
    if isinstance(at, Unknown) or not isinstance(at, Const) or not isinstance(at.value, int):
        return None
    if not -len(receiver.items) <= at.value < len(receiver.items):
        return unknown("call")
    return receiver.items.pop(at.value)
