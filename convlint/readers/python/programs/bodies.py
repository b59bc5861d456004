"""What stands in the body of a module or a function: calls, constants, names of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from convlint.readers.python.programs.constants import Literal, literal
from convlint.readers.python.programs.targets import owned
from convlint.readers.python.programs.unit import Function, Unit


def calls_in(node: ast.AST) -> Iterator[ast.Call]:
    """Calls in a statement that are made with it: not those in a function or a lambda, and inner ones first."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from calls_in(child)
    if isinstance(node, ast.Call):
        yield node


def constants(unit: Unit) -> dict[str, Literal]:
    """Names of a module that are bound once, to a literal."""
    found = {}
    for name, values in unit.assigned.items():
        value = literal(values[0]) if len(values) == 1 else None
        if value is not None and f"global {name}".encode() not in unit.file.content:
            found[name] = value[0]
    return found


def local_names(function: Function) -> Iterator[str]:
    """What a function binds itself."""
    for node in owned(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
    spec = function.args
    for each in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg):
        if each is not None:
            yield each.arg


def exits(call: ast.Call, unit: Unit) -> bool:
    """Whether a call ends the program."""
    return unit.full_name(call.func) in ("sys.exit", "os._exit") or (
        isinstance(call.func, ast.Name) and call.func.id in ("exit", "quit")
    )
