"""Methods of dicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from convlint.readers.python.evaluator.comprehensions import put
from convlint.readers.python.evaluator.library import Call
from convlint.readers.python.evaluator.values import NONE, Const, Items, Table, Unknown, Value, unknown

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

_CHANGING = frozenset({"clear", "pop", "popitem", "setdefault", "update", "move_to_end", "__setitem__"})


def call(machine: Machine, receiver: Table, name: str, call: Call) -> Value | None:
    """What `receiver.name(...)` gives; None: nothing known."""
    if name in _CHANGING:
        machine.touch(receiver)
        found = _changed(machine, receiver, name, call)
        if found is None:
            receiver.complete = False
            receiver.items = {}
        return found or unknown("call")
    if name in ("get", "__getitem__") and call.args:
        return _got(receiver, call, remove=False)
    if name == "copy":
        return Table(dict(receiver.items), complete=receiver.complete, why=receiver.why)
    if name in ("keys", "values", "items"):
        return Items("list", _listed(receiver, name), complete=receiver.complete, why=receiver.why)
    if name == "__contains__" and call.args and isinstance(call.args[0], Const):
        return Const(True) if call.args[0].value in receiver.items else Const(False) if receiver.complete else None
    return None


def _listed(receiver: Table, name: str) -> list[Value]:
    if name == "keys":
        return [Const(key) for key in receiver.items]
    if name == "values":
        return list(receiver.items.values())
    return [Items("tuple", [Const(key), value]) for key, value in receiver.items.items()]


def _got(receiver: Table, call: Call, *, remove: bool) -> Value:
    key = call.args[0]
    default = call.args[1] if len(call.args) > 1 else call.keywords.get("default", unknown("call") if remove else NONE)
    if not isinstance(key, Const):
        if receiver.complete and not receiver.items:
            return default
        if remove:
            receiver.items, receiver.complete = {}, False
        return unknown(key.why if isinstance(key, Unknown) else "call")
    found = receiver.items.pop(key.value, None) if remove else receiver.items.get(key.value)
    if found is not None:
        return found
    return default if receiver.complete else unknown(receiver.why)


def _changed(machine: Machine, receiver: Table, name: str, call: Call) -> Value | None:
    args = call.args
    if name == "pop" and args:
        return _got(receiver, call, remove=True)
    if name == "setdefault" and args and not isinstance(args[0], Const):
        receiver.complete = False  # another key may be there; those that are, stay what they are
        return unknown("call")
    if name == "setdefault" and args and isinstance(args[0], Const):
        default = args[1] if len(args) > 1 else NONE
        found = receiver.items.get(args[0].value)
        if found is None:
            found = default if receiver.complete else unknown(receiver.why)
            receiver.items[args[0].value] = found
        return found
    if name == "update":
        return _updated(machine, receiver, call)
    if name == "__setitem__" and len(args) == 2:
        put(receiver, args[0], args[1])
        return NONE
    if name == "clear":
        receiver.items, receiver.complete = {}, True
        return NONE
    if name == "popitem" and receiver.complete and receiver.items and not args and not call.keywords:
        key, value = receiver.items.popitem()
        return Items("tuple", [Const(key), value])
    return None


def _updated(machine: Machine, receiver: Table, call: Call) -> Value | None:
    for value in call.args:
        more = machine.items.as_table(value)
        if more is None or not more.complete:
            receiver.items, receiver.complete = {}, False
            receiver.why = value.why if isinstance(value, Unknown) else more.why if more is not None else "call"
        if more is not None:
            receiver.items.update(more.items)
    receiver.items.update(call.keywords)
    if not call.exact:
        receiver.complete, receiver.why = False, "caller"
    return NONE
