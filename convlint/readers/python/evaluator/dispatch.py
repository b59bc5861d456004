"""What can be called, read and set on each kind of value."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from convlint.readers.python.evaluator import calls, methods, standard
from convlint.readers.python.evaluator.class_order import bound
from convlint.readers.python.evaluator.limits import DEEPEST
from convlint.readers.python.evaluator.values import (
    Class,
    Const,
    Function,
    Instance,
    Items,
    Module,
    Name,
    Partial,
    Table,
    Tensor,
    Unknown,
    Value,
    unknown,
)
from convlint.readers.python.source_file import SourceFile

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

LIBRARY_FRAMES = 14  # of Python, that a library's own functions may stand between two calls
# Functions of others that look at their arguments and change none of them
_HARMLESS = frozenset({"logging", "warnings", "logger", "os", "sys", "time", "re", "json", "numpy", "np", "random"})


class Dispatch:
    """Calls and attributes."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def call(
        self, value: Value, args: list[Value], keywords: dict[str, Value], node: ast.Call, file: SourceFile,
        exact: bool,
    ) -> Value:  # fmt: skip
        """What `value(...)` gives."""
        machine = self.machine
        match value:
            case Function():
                return self._in_source(value, args, keywords, node, file, exact)
            case Class():
                return self._in_source(value, args, keywords, node, file, exact)
            case Name():
                return self._named(value.name, args, keywords, node, file, exact)
            case Partial():
                merged = {**value.keywords, **keywords} if value.keywords else keywords
                return self.call(value.function, [*value.args, *args], merged, node, file, exact)
            case Instance():
                call = machine.library_call(node, file, args, keywords, exact)
                found = machine.library.call_instance(machine, value, call)
                if found is not None:
                    return found
                method = machine.classes.method_of(value, "__call__")
                if method is not None:
                    return self.call(method, args, keywords, node, file, exact)
        machine.give_away(args, keywords)
        self._may_change(args, keywords)
        return unknown(value.why) if isinstance(value, Unknown) else unknown("call")

    def _in_source(
        self, value: Function | Class, args: list[Value], keywords: dict[str, Value], node: ast.Call, file: SourceFile,
        exact: bool,
    ) -> Value:  # fmt: skip
        machine = self.machine
        machine.push(file, node)
        held = machine.height
        machine.height += LIBRARY_FRAMES
        try:
            if machine.height > DEEPEST:
                machine.journals.spoil()
                return unknown("limit")

            def run() -> Value:
                if isinstance(value, Class):
                    return machine.classes.create(value, args, keywords, node, file, exact)
                return calls.run(machine, value, args, keywords, exact)

            if isinstance(value, Function) and value.bound is not None and not isinstance(value.bound, Class):
                return run()
            return machine.memory.evaluate(value, args, keywords, exact, run)
        finally:
            machine.height = held
            machine.stack.pop()

    def _named(
        self, name: str, args: list[Value], keywords: dict[str, Value], node: ast.Call, file: SourceFile, exact: bool,
    ) -> Value:  # fmt: skip
        machine = self.machine
        call = machine.library_call(node, file, args, keywords, exact)
        if name.startswith("convlint.method."):
            return self.call_method(args[0], name.split(".")[-1], args[1:], keywords, node, file, exact)
        known = standard.FUNCTIONS.get(name)
        if known is not None:
            found = known(machine, call)
            if found is not None:
                return found
        given = machine.library.call(machine, name, call)
        if given is not None:
            return given
        if standard.is_config(name):
            return unknown("config")
        machine.give_away(args, keywords)
        if known is None and name.split(".")[0] not in _HARMLESS and not name.startswith("builtins."):
            self._may_change(args, keywords)
        return unknown(standard.why_of(args, keywords))

    def _may_change(self, args: list[Value], keywords: dict[str, Value]) -> None:
        """Lists and dicts that something unknown gets may come back changed."""
        for value in (*args, *keywords.values()):
            if (
                isinstance(value, (Items, Table))
                and value.complete
                and not (isinstance(value, Items) and value.kind == "tuple")
            ):
                self.machine.journals.touch(value)
                value.complete, value.why = False, "call"
                if isinstance(value, Table):
                    value.items = {}

    def call_method(
        self, receiver: Value, name: str, args: list[Value], keywords: dict[str, Value], node: ast.Call,
        file: SourceFile, exact: bool,
    ) -> Value:  # fmt: skip
        """What `receiver.name(...)` gives."""
        machine = self.machine
        match receiver:
            case Items() | Table() | Const():
                call = machine.library_call(node, file, args, keywords, exact)
                found = methods.call(machine, receiver, name, call)
                if found is None:
                    machine.give_away(args, keywords)
                return found or unknown(standard.why_of(args, keywords))
            case Tensor():
                return self._asked(receiver, name, args, keywords, node, file, exact)
            case Instance():
                held = self._of_instance(receiver, name)
                if held is not None:
                    return self.call(held, args, keywords, node, file, exact)
                return self._asked(receiver, name, args, keywords, node, file, exact)
        return self.call(self.attribute(receiver, name), args, keywords, node, file, exact)

    def _asked(
        self, receiver: Value, name: str, args: list[Value], keywords: dict[str, Value], node: ast.Call,
        file: SourceFile, exact: bool,
    ) -> Value:  # fmt: skip
        machine = self.machine
        call = machine.library_call(node, file, args, keywords, exact)
        found = machine.library.method(machine, receiver, name, call)
        if found is None and isinstance(receiver, Instance) and name == "_replace":
            return unknown("call")
        if found is None:
            machine.give_away(args, keywords)
            self._may_change(args, keywords)
        return found or unknown("call")

    def _of_instance(self, instance: Instance, name: str) -> Value | None:
        """An attribute that was set, or that the class in the source has."""
        found = instance.attributes.get(name)
        if found is not None:
            return found
        if isinstance(instance.cls, Class):
            held, certain = self.machine.classes.find(instance.cls, name)
            if held is not None:
                return self.machine.classes.bind(held, instance, instance.cls)
            if not certain:
                return unknown("call")
        return None

    def attribute(self, value: Value, name: str) -> Value:
        """What `value.name` is."""
        machine = self.machine
        match value:
            case Unknown():
                return value
            case Module():
                if name == "__dict__":
                    return value
                return machine.modules.member(value.path, name)
            case Name():
                return Name(f"{value.name}.{name}")
            case Instance():
                if name == "__class__":
                    return value.cls
                if name == "__dict__":
                    return Table.of(value.attributes, complete=False)
                found = self._of_instance(value, name)
                if found is None:
                    found = machine.library.attribute(machine, value, name)
                if found is not None:
                    return found
                if isinstance(value.cls, Class) and machine.library.subclass_of(value.cls) is None:
                    return unknown("call")
                return Partial(Name(f"convlint.method.{name}"), [value], {})
            case Class():
                return machine.classes.attribute(value, name)
            case Tensor():
                given = machine.library.attribute(machine, value, name)
                return given if given is not None else Partial(Name(f"convlint.method.{name}"), [value], {})
            case Function():
                return Const(value.name) if name in ("__name__", "__qualname__") else unknown("call")
            case Partial():
                if name == "func":
                    return value.function
                if name == "keywords":
                    return Table.of(value.keywords)
                return unknown("call")
            case Const() if name in ("real", "numerator") and isinstance(value.value, int):
                return value
        return Partial(Name(f"convlint.method.{name}"), [value], {})

    def set_attribute(self, receiver: Value, name: str, value: Value) -> None:
        """`receiver.name = value`."""
        machine = self.machine
        if isinstance(receiver, Instance):
            cls = receiver.cls
            if isinstance(cls, Class):
                setter, _ = machine.classes.find(cls, f"{name}.setter")
                if isinstance(setter, Function):
                    machine.call(bound(setter, receiver), [value], {}, machine.no_call(setter.node), setter.file)
                    return
            machine.journals.touch(receiver)
            receiver.attributes[name] = value
            machine.library.set_attribute(machine, receiver, name, value)
        elif isinstance(receiver, Class):
            machine.journals.touch(receiver)
            receiver.namespace[name] = value
        elif isinstance(receiver, Module):
            scope = machine.modules.scope(receiver.path)
            if scope is not None and machine.root:
                machine.journals.touch(scope)
                scope.variables[name] = value
        else:
            machine.lost(value)
