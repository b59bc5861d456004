"""What a loop goes through, of each kind of value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from convlint.readers.python.evaluator.limits import ROUNDS
from convlint.readers.python.evaluator.values import Class, Const, Function, Instance, Items, Table, Value

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine


def iterate(machine: Machine, value: Value) -> list[Value] | None:
    """The items that a loop goes through; None where they are not known."""
    match value:
        case Items():
            return list(value.items) if value.complete else None
        case Table():
            return [Const(key) for key in value.items] if value.complete else None
        case Const() if isinstance(value.value, str):
            return [Const(each, value.stated) for each in value.value] if len(value.value) <= ROUNDS else None
        case Instance():
            found = machine.classes.fields_of(value)
            return found if found is not None else _iterated(machine, value)
        case Class():
            return machine.classes.members(value)
    return None


def _iterated(machine: Machine, value: Instance) -> list[Value] | None:
    method = machine.classes.method_of(value, "__iter__")
    if isinstance(method, Function):
        found = machine.call(method, [], {}, machine.no_call(method.node), method.file)
        return list(found.items) if isinstance(found, Items) and found.complete else None
    return machine.parts(value)
