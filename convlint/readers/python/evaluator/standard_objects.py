"""Functions that look at objects: isinstance, getattr, type."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from convlint.readers.python.evaluator.instance_tests import is_instance
from convlint.readers.python.evaluator.library import Call
from convlint.readers.python.evaluator.values import (
    NONE,
    Class,
    Const,
    Function,
    Instance,
    Items,
    Module,
    Name,
    Partial,
    Table,
    Unknown,
    Value,
    unknown,
)

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

Known = Callable[["Machine", Call], "Value | None"]


def _isinstance(machine: Machine, call: Call) -> Value | None:
    if len(call.args) != 2:
        return None
    found = is_instance(machine, call.args[0], call.args[1])
    return Const(found) if found is not None else None


def _issubclass(_: Machine, call: Call) -> Value | None:
    if len(call.args) != 2 or not isinstance(call.args[0], Class):
        return None
    order = call.args[0].order or []
    wanted = call.args[1].items if isinstance(call.args[1], Items) else [call.args[1]]
    for of in wanted:
        if any(
            base is of or (isinstance(base, Name) and isinstance(of, Name) and base.name == of.name) for base in order
        ):
            return Const(True)
    return Const(False) if all(isinstance(base, Class) for base in order) else None


def _name(value: Value) -> str | None:
    return value.value if isinstance(value, Const) and isinstance(value.value, str) else None


def has(machine: Machine, value: Value, name: str) -> bool | None:
    """Whether `value.name` is there; None where nobody knows."""
    if isinstance(value, Instance):
        if name in value.attributes:
            return True
        if isinstance(value.cls, Class):
            found, certain = machine.classes.find(value.cls, name)
            if found is not None:
                return True
            names = any(isinstance(base, Name) for base in value.cls.order or ())
            return False if certain and value.complete and not names else None
        return True if machine.library.attribute(machine, value, name) is not None else None
    if isinstance(value, Class):
        found, certain = machine.classes.find(value, name)
        if found is not None:
            return True
        whole = certain and all(isinstance(base, Class) for base in value.order or [value])
        return False if whole and not name.startswith("__") else None
    if isinstance(value, Module):
        return True if not isinstance(machine.modules.member(value.path, name), Unknown) else None
    return None


def _hasattr(machine: Machine, call: Call) -> Value | None:
    name = _name(call.args[1]) if len(call.args) == 2 else None
    found = has(machine, call.args[0], name) if name is not None else None
    if found is None and name is not None and len(call.args) == 2 and isinstance(call.args[0], Instance):
        given = machine.library.attribute(machine, call.args[0], name)
        return Const(True) if given is not None else None
    return Const(found) if found is not None else None


def _getattr(machine: Machine, call: Call) -> Value | None:
    name = _name(call.args[1]) if len(call.args) >= 2 else None
    if name is None:
        return None
    if len(call.args) > 2:
        there = has(machine, call.args[0], name)
        if there is False:
            return call.args[2]
        if there is None:
            given = machine.attribute(call.args[0], name)
            bound = isinstance(given, (Partial, Name)) and isinstance(call.args[0], Instance)
            return given if not bound else unknown("call")
    return machine.attribute(call.args[0], name)


def _setattr(machine: Machine, call: Call) -> Value | None:
    if len(call.args) != 3:
        return None
    name, receiver = _name(call.args[1]), call.args[0]
    if name is not None:
        machine.set_attribute(receiver, name, call.args[2])
    elif isinstance(receiver, Instance):
        machine.touch(receiver)
        receiver.complete = False
        machine.lost(call.args[2])
    return NONE


def _delattr(machine: Machine, call: Call) -> Value | None:
    name = _name(call.args[1]) if len(call.args) == 2 else None
    if name is not None:
        machine.delete_attribute(call.args[0], name)
    return NONE


def _type(_: Machine, call: Call) -> Value | None:
    if len(call.args) != 1:
        return None
    match call.args[0]:
        case Instance() as value:
            return value.cls
        case Const() as value:
            return Name(f"builtins.{type(value.value).__name__}")
        case Items() as value:
            return Name(f"builtins.{value.kind}")
        case Table():
            return Name("builtins.dict")
    return None


def _callable(_: Machine, call: Call) -> Value | None:
    if len(call.args) != 1:
        return None
    value = call.args[0]
    if isinstance(value, (Function, Class, Partial)):
        return Const(True)
    return Const(False) if isinstance(value, (Const, Items, Table, Module)) else None


def _marked(kind: str) -> Known:
    def run(_: Machine, call: Call) -> Value | None:
        value = call.args[0] if call.args else None
        if isinstance(value, Function):
            value.kind = kind
        return value

    return run


def _vars(machine: Machine, call: Call) -> Value | None:
    return machine.attribute(call.args[0], "__dict__") if call.args else None


def _nothing(_: Machine, __: Call) -> Value | None:
    return NONE


OBJECTS: dict[str, Known] = {
    "builtins.isinstance": _isinstance, "builtins.issubclass": _issubclass, "builtins.hasattr": _hasattr,
    "builtins.getattr": _getattr, "builtins.setattr": _setattr, "builtins.delattr": _delattr, "builtins.type": _type,
    "builtins.callable": _callable, "builtins.staticmethod": _marked("static"), "builtins.vars": _vars,
    "builtins.classmethod": _marked("class"), "builtins.property": _marked("property"), "builtins.print": _nothing,
    "warnings.warn": _nothing, "typing.cast": lambda _, call: call.args[1] if len(call.args) == 2 else None,
    "copy.copy": lambda machine, call: _copied(call.args[0], machine, deep=False) if call.args else None,
    "copy.deepcopy": lambda machine, call: _copied(call.args[0], machine, deep=True) if call.args else None,
}  # fmt: skip


def _copied(value: Value, machine: Machine, *, deep: bool) -> Value:
    return machine.copied(value, deep=deep)
