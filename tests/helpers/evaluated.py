"""Evaluates Python text with a library that only records constructed layers."""

import ast
from typing import Any

from convlint.readers.python.evaluator.library import Library, LibraryCall
from convlint.readers.python.evaluator.machine import Machine, RootRun
from convlint.readers.python.evaluator.values import (
    Class,
    Const,
    Instance,
    Items,
    Module,
    Name,
    Table,
    Unknown,
    Value,
)
from convlint.readers.python.project import Project


class RecordingLibrary(Library):
    """Every class of torch.nn gives an object; convolutions are recorded with their arguments."""

    def __init__(self) -> None:
        self.escaped: list[Value] = []
        self.set: list[tuple[str, Value]] = []
        self.outside: list[tuple[str, object, object]] = []

    def call(self, machine: Machine, name: str, call: LibraryCall) -> Value | None:
        if not name.startswith("torch.nn.") or not name.split(".")[-1][0].isupper():
            return None
        found = Instance(machine.heap, Name(name), (name, tuple(map(plain, call.args))))
        if "Conv" in name:
            machine.record((name.split(".")[-1], *map(plain, call.args)))
        found.first.items = {str(at): value for at, value in enumerate(call.args)}
        return found

    def method(self, machine: Machine, receiver: Value, name: str, call: LibraryCall) -> Value | None:
        return Const("method " + name) if name == "known" else None

    def initialize(self, machine: Machine, instance: Instance, base: str, call: LibraryCall) -> bool:
        return base.startswith("torch.nn.")

    def set_attribute(self, machine: Machine, instance: Instance, name: str, value: Value) -> None:
        self.set.append((name, value))

    def set_outside(self, machine: Machine, name: str, key: Value, value: Value, node: ast.AST, file: object) -> None:
        self.outside.append((name, plain(key), plain(value)))

    def escapes(self, machine: Machine, value: Value, why: str = "call") -> None:
        self.escaped.append(value)

    def items(self, machine: Machine, receiver: Instance) -> list[Value] | None:
        if isinstance(receiver.cls, Name) and receiver.cls.name == "torch.nn.Sequential":
            return list(receiver.attributes.values())
        return None

    def subclass_of(self, cls: Class) -> str | None:
        return next((base.name for base in cls.order or () if isinstance(base, Name)), None)


def machine_of(text: str | dict[str, str]) -> Machine:
    """A machine over these files, `m.py` where there is one text."""
    files = {"m.py": text} if isinstance(text, str) else text
    contents = {path: content.encode() for path, content in files.items()}
    return Machine(Project("nowhere", list(files), contents), RecordingLibrary())


def variable(text: str | dict[str, str], name: str = "x", path: str = "m.py") -> Value:
    """What a variable of the module holds."""
    machine = machine_of(text)
    scope = machine.run_module(path)
    assert scope is not None
    return machine.modules.lookup(scope, name)


def roots_of(text: str | dict[str, str], *, defaults: bool = False) -> dict[str, RootRun]:
    """All functions and classes of `m.py` run, by name."""
    machine = machine_of(text)
    return {root.name: machine.run_root(root, defaults) for root in machine.roots("m.py")}


def recorded(text: str | dict[str, str], root: str, *, defaults: bool = False) -> list[Any]:
    """What was recorded in a root."""
    return [each.thing for each in roots_of(text, defaults=defaults)[root].recorded]


def plain(value: Value) -> Any:
    """The value as Python has it; `?why` for what is unknown."""
    match value:
        case Const():
            return value.value
        case Unknown():
            return f"?{value.why}"
        case Items():
            held = [plain(item) for item in value.items]
            if not value.complete:
                held.append("...")
            return tuple(held) if value.kind == "tuple" else held
        case Table():
            return {key: plain(item) for key, item in value.items.items()} | ({} if value.complete else {"...": 0})
        case Name():
            return value.name
        case Module():
            return f"module {value.path}"
        case Instance():
            return f"an {value.cls.name}"
    return f"a {type(value).__name__}"


def stated(value: Value) -> list[tuple[int | float | str | bool | None, str, int | None]]:
    """The literals that a value was computed from: value, name, line."""
    assert isinstance(value, Const)
    return sorted(((each.value, each.name, each.at.line) for each in value.stated), key=repr)


def attributes(value: Value) -> dict[str, Any]:
    """Those of an object; `maybe` where nobody knows whether it has it."""
    assert isinstance(value, Instance)
    cell = value.cell
    return {name: f"maybe {plain(held)}" if name in cell.may else plain(held) for name, held in cell.items.items()}
