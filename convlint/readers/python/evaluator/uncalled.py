"""Functions and classes that nobody is seen to call: called with parameters that nobody knows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from convlint.readers.python.evaluator import calls
from convlint.readers.python.evaluator.class_order import bound
from convlint.readers.python.evaluator.scope import Scope
from convlint.readers.python.evaluator.values import Class, Function, Instance, Value, unknown
from convlint.readers.python.source_file import is_guard

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

_NO_ARGUMENTS = ast.arguments([], [], None, [], [], None, [])


def called(machine: Machine, root: Function | Class, defaults: bool, frames: list[Scope]) -> Value:
    """A function or class that nobody is seen to call; `frames` gets the variables of what was entered for it."""
    if isinstance(root, Function):
        return _with_unknown(machine, root, defaults, frames)
    classes = machine.classes
    instance = Instance(root)
    init, certain = classes.find(root, "__init__")
    node = machine.no_call(root.node)
    if classes.is_enum(root):
        return unknown("call")
    if isinstance(init, Function):
        _with_unknown(machine, bound(init, instance), defaults, frames)
    elif root.fields is not None:
        return classes.create(root, [], {}, node, root.file, defaults)
    else:
        classes.initialize(instance, None, [], {}, node, root.file, defaults, certain=certain)
    return instance


def handed_out(machine: Machine, frames: list[Scope], defaults: bool) -> Iterator[Value]:
    """What functions give that these define for others to call, as a constructor of subnets is."""
    for frame in frames:
        for value in list(frame.variables.values()):
            if isinstance(value, Function) and value.scope is frame and value.node not in machine.active:
                found = _with_unknown(machine, value, defaults, [])
                machine.lost(found)
                yield found


def _with_unknown(machine: Machine, function: Function, defaults: bool, frames: list[Scope]) -> Value:
    code = machine.code(function)
    scope = Scope(machine, function.file, function.scope, function)
    frames.append(scope)
    calls.bind_unknown(scope.variables, code, function, defaults)
    return calls.enter(machine, scope, code, code.height)


def defined(machine: Machine, path: str) -> list[Function | Class]:
    """The functions and classes that a file defines at its top, by the order of their lines, and what a script does."""
    scope = machine.modules.scope(path)
    if scope is None:
        return []
    found = {id(value.node): value for value in scope.variables.values()
             if isinstance(value, (Function, Class)) and value.file.path == path}  # fmt: skip
    for node in scope.file.tree.body:
        if is_guard(node) and not _is_bare_call(node.body):
            found[id(node)] = Function(_as_function(node), scope.file, scope, "__main__")
    return sorted(found.values(), key=lambda each: each.node.lineno)


def _is_bare_call(body: list[ast.stmt]) -> bool:
    """Whether it is `main()` alone: what that constructs is known from the function itself."""
    only = body[0] if len(body) == 1 else None
    call = only.value if isinstance(only, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.args and not call.keywords


def _as_function(guard: ast.If) -> ast.FunctionDef:
    """What stands below the guard of a script, which no import runs."""
    return ast.FunctionDef("__main__", _NO_ARGUMENTS, guard.body, [], lineno=guard.lineno, col_offset=guard.col_offset,
                           end_lineno=guard.end_lineno, end_col_offset=guard.end_col_offset)  # fmt: skip
