"""Where a statement that is to hold for the whole run of a program can be put in."""

from __future__ import annotations

import ast

from convlint.model.location import Location
from convlint.readers.python.programs.unit import Function, Unit
from convlint.readers.python.source_file import is_guard
from convlint.readers.python.walking import every

_STARTERS = (b"spawn", b"Process(", b"launch")


def insertion(unit: Unit, beginning: ast.stmt) -> tuple[Location | None, str]:
    """The statement to put it in front of, and what `torch` is called there; '' where nothing binds it.

    In front of what main() begins with, or the guard; behind the imports, where the program starts others of its
    kind, which do not inherit what it sets, but import the file.
    """
    body = unit.file.tree.body
    torch = _torch(body)
    apart = any(each in unit.file.content for each in _STARTERS)
    if is_guard(beginning) and not apart:
        function = _main(beginning, unit)
        first = _first(function.body) if function is not None else beginning.body[0]
        shadowed = function is not None and _binds(function, torch)
        if first is not None and not shadowed and first.lineno != (function or beginning).lineno:
            return _front(first, unit), torch
    after = _behind_imports(body)
    return (_front(after, unit), torch) if after is not None else (None, torch)


def _front(node: ast.stmt, unit: Unit) -> Location:
    """Where a statement begins, with its decorators."""
    at = unit.file.locate(node)
    first = min((each.lineno for each in getattr(node, "decorator_list", [])), default=node.lineno)
    return Location(path=at.path, line=first, column=at.column, end_line=at.end_line, end_column=at.end_column)


def _main(guard: ast.If, unit: Unit) -> Function | None:
    """The function of this file that the guard calls, where that and its arguments are all that stands there."""
    *before, last = guard.body
    if not all(isinstance(node, ast.Assign | ast.AnnAssign | ast.Import | ast.ImportFrom) for node in before):
        return None
    call = last.value if isinstance(last, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return None
    return unit.functions.get(call.func.id)


def _first(body: list[ast.stmt]) -> ast.stmt | None:
    """The first statement that is no docstring and no declaration of names."""
    for node in body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not docstring and not isinstance(node, ast.Global | ast.Nonlocal | ast.Import | ast.ImportFrom):
            return node
    return None


def _behind_imports(body: list[ast.stmt]) -> ast.stmt | None:
    """The statement behind the last import of the module's head, decorators included."""
    last = next(
        (index for index in range(len(body) - 1, -1, -1) if isinstance(body[index], ast.Import | ast.ImportFrom)), None
    )
    if last is None or last + 1 >= len(body):
        return None
    first = next((index for index, node in enumerate(body) if _trains_on(node)), len(body))
    if last > first:  # an import in the middle of the program: the last one in front of it
        before = [index for index in range(first) if isinstance(body[index], ast.Import | ast.ImportFrom)]
        if not before:
            return None
        last = before[-1]
    node = body[last + 1]
    return node if node.lineno != body[last].lineno else None


def _trains_on(node: ast.stmt) -> bool:
    return isinstance(node, ast.For | ast.While | ast.FunctionDef | ast.ClassDef)


def _torch(body: list[ast.stmt]) -> str:
    """What the module's imports call torch."""
    for node in body:
        if isinstance(node, ast.Import):
            for each in node.names:
                if each.name == "torch" or (each.name.startswith("torch.") and each.asname is None):
                    return each.asname or "torch"
    return ""


def _binds(function: Function, name: str) -> bool:
    """Whether a function has something else of that name."""
    if not name:
        return False
    for node in every(function):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, ast.arg) and node.arg == name:
            return True
        if isinstance(node, ast.Import | ast.ImportFrom) and any(
            (each.asname or each.name.split(".")[0]) == name for each in node.names
        ):
            return True
    return False
