"""A new statement in front of another one, in Python source: parsed again before it is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from convlint.errors import InputFault
from convlint.fixes.edits import Edit, applied
from convlint.fixes.python.rewriting import applied_to_bytes, text_in_bytes
from convlint.fixes.python.source import PythonSource, parsed

_COMPOUND = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If, ast.For, ast.AsyncFor, ast.While, ast.With,
    ast.AsyncWith, ast.Try, ast.TryStar, ast.Match,
)  # fmt: skip


def inserted(source: PythonSource, before: tuple[int, int], statement: str) -> tuple[Edit, ...]:
    """The edit in bytes that puts `statement` in front of the one at line and column, both from 1.

    It gets a line of its own with the same indentation; where something stands in front on the line, the same line.
    Raises InputFault where there is no statement, and where the edited module would not be the same otherwise.
    """
    found = next((node for node in _statements(source.tree) if _place(source, node) == before), None)
    if found is None:
        raise InputFault("no statement begins there")
    at = _start(source, found)
    line = source.line_around(at)[0]
    indent = source.text[line:at]
    if not indent.strip(" \t\f"):
        new = f"{statement}{source.line_break(at)}{indent}"
    elif isinstance(found, _COMPOUND):
        raise InputFault("something else stands on its line")
    else:
        new = f"{statement}; "
    edit = Edit(at, at, new)
    text = applied(source.text, [edit])
    if not _same(source, found, parsed(text), statement):
        raise InputFault("the edited module would mean something else")
    in_bytes = source.in_bytes([edit])
    if applied_to_bytes(source.raw, in_bytes) != text_in_bytes(source, text):
        raise InputFault(f"its {source.encoding} cannot be edited in places")
    return in_bytes


def _place(source: PythonSource, node: ast.stmt) -> tuple[int, int]:
    at = source.offset(node)
    return node.lineno, at - source.line_around(at)[0] + 1


def _start(source: PythonSource, node: ast.stmt) -> int:
    """Where a statement begins, decorators included."""
    decorators = getattr(node, "decorator_list", [])
    return source.text.rindex("@", 0, source.extent(decorators[0])[0]) if decorators else source.offset(node)


def _statements(tree: ast.AST) -> Iterator[ast.stmt]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.stmt))


def _same(source: PythonSource, before: ast.stmt, new: ast.Module, statement: str) -> bool:
    """Whether the new tree is the old one but for the statement in front of `before`."""
    bodies = zip(_bodies(source.tree), _bodies(new), strict=False)
    for old, edited in bodies:
        if before in old:
            place = old.index(before)
            if len(edited) != len(old) + 1 or ast.unparse(edited[place]) != statement:
                return False
            del edited[place]
            return ast.dump(source.tree) == ast.dump(new)
    return False


def _bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """All lists of statements, in the same order for trees that differ in the last of them alone."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                yield body
