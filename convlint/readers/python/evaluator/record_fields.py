"""Objects of dataclasses and named tuples: their fields from the arguments, or from the defaults."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from convlint.readers.python.evaluator.values import Class, Instance, Name, Partial, Value, unknown
from convlint.readers.python.source_file import SourceFile

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine


def fill(
    machine: Machine, instance: Instance, cls: Class, args: list[Value], keywords: dict[str, Value], node: ast.Call,
    exact: bool,
) -> None:  # fmt: skip
    """The __init__ of a dataclass or named tuple."""
    for at, name in enumerate(cls.fields or ()):
        if at < len(args):
            value: Value = args[at]
        elif name in keywords:
            value = keywords[name]
        elif not exact:
            value = unknown("caller")
        else:
            default, _ = machine.classes.find(cls, name)
            value = _default(machine, default, node, cls.file)
        instance.attributes[name] = value
    after = machine.classes.method_of(instance, "__post_init__")
    if after is not None:
        machine.call(after, [], {}, node, cls.file)


def _default(machine: Machine, default: Value | None, node: ast.Call, file: SourceFile) -> Value:
    if (
        isinstance(default, Partial)
        and isinstance(default.function, Name)
        and default.function.name == "convlint.field"
    ):
        if "default" in default.keywords:
            return default.keywords["default"]
        make = default.keywords.get("default_factory")
        return machine.call(make, [], {}, node, file) if make is not None else unknown("call")
    return default if default is not None else unknown("call")
