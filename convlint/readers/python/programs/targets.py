"""What a call in a program runs: a function, a method, a class; and the functions that it is given to run them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from msgspec import Struct

from convlint.readers.python.programs.constants import Literal
from convlint.readers.python.programs.unit import Function, Unit
from convlint.readers.python.walking import every

# Functions that run what they are given, now and in this process.
_AT_ONCE = {"fire.Fire", "absl.app.run", "typer.run", "tyro.cli", "asyncio.run", "tf.compat.v1.app.run"}


class Made(Struct, frozen=True):
    """The class of an object, and the file that it stands in."""

    unit: Unit
    cls: ast.ClassDef


class Scope(Struct):
    """Where an expression stands: its file, its function, its class, and what is known of the names there."""

    unit: Unit
    owner: str
    names: Mapping[str, Literal]
    types: dict[str, Made]
    local: frozenset[str]
    cls: ast.ClassDef | None = None  # of the object that a method runs for
    home: Unit | None = None  # the file of `cls`


class Target(Struct):
    """A function of the repository, or the class that an object is made of, with its __init__ as the function."""

    unit: Unit
    function: Function
    bound: bool = False  # the first parameter is the object
    cls: ast.ClassDef | None = None
    home: Unit | None = None
    made: Made | None = None


def target(func: ast.expr, scope: Scope) -> Target | None:
    """What a call of `func` runs; None where it is not the repository's, or unknown."""
    method = _method(func, scope)
    if method is not None:
        return method
    local = scope.local
    named = scope.unit.named(func, local)
    if named.unit is None or named.node is None:
        return None
    if isinstance(named.node, ast.ClassDef):
        return _made(Made(named.unit, named.node))
    return Target(unit=named.unit, function=named.node)


def functions_given(call: ast.Call, scope: Scope) -> Iterator[Target]:
    """Functions among the arguments of a call."""
    for value in (*call.args, *(keyword.value for keyword in call.keywords)):
        if isinstance(value, ast.Call) and scope.unit.full_name(value.func) == "functools.partial" and value.args:
            value = value.args[0]
        if isinstance(value, ast.Name | ast.Attribute):
            found = target(value, scope)
            if found is not None and found.made is None:
                yield found


def runs_at_once(call: ast.Call, unit: Unit) -> bool:
    """Whether the functions that it is given are run by it, here and now."""
    return unit.full_name(call.func) in _AT_ONCE


def owned(function: Function) -> Iterator[ast.AST]:
    """The nodes of a function, those of functions inside it left out."""
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))


def _made(made: Made) -> Target:
    found = made.unit.method(made.cls, "__init__")
    unit, function = found if found is not None else (made.unit, _NOTHING)
    return Target(unit=unit, function=function, bound=True, cls=made.cls, home=made.unit, made=made)


def _method(func: ast.expr, scope: Scope) -> Target | None:
    if not isinstance(func, ast.Attribute):
        return None
    value = func.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super":
        if scope.cls is None or scope.home is None:
            return None
        found = scope.home.inherited(scope.cls, func.attr)
        return _bound(found, Made(scope.home, scope.cls))
    made = _object(value, scope)
    return _bound(made.unit.method(made.cls, func.attr), made) if made is not None else None


def _object(value: ast.expr, scope: Scope) -> Made | None:
    """The class of the object that an expression gives."""
    if isinstance(value, ast.Name):
        if value.id in ("self", "cls") and scope.cls is not None and scope.home is not None:
            return Made(scope.home, scope.cls)
        return scope.types.get(value.id)
    if isinstance(value, ast.Call):
        found = target(value.func, scope)
        return found.made if found is not None else None
    if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) and value.value.id == "self":
        return _attribute(value.attr, scope)
    return None


def _attribute(name: str, scope: Scope) -> Made | None:
    """The class of `self.name`, where the class has one assignment to it and that makes an object."""
    if scope.cls is None or scope.home is None:
        return None
    values = [
        node.value
        for node in every(scope.cls)
        if isinstance(node, ast.Assign)
        and any(isinstance(one, ast.Attribute) and one.attr == name for one in node.targets)
    ]
    if len(values) != 1 or not isinstance(values[0], ast.Call):
        return None
    named = scope.home.named(values[0].func)
    return Made(named.unit, named.node) if named.unit and isinstance(named.node, ast.ClassDef) else None


def _bound(found: tuple[Unit, Function] | None, made: Made) -> Target | None:
    if found is None:
        return None
    static = any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in found[1].decorator_list)
    return Target(unit=found[0], function=found[1], bound=not static, cls=made.cls, home=made.unit)


_NOTHING = ast.FunctionDef(
    name="__init__",
    args=ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[]),
    body=[],
    decorator_list=[],
    lineno=0,
)
