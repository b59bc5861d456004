"""Calls that are not written as such: of decorators, of methods that Python calls by itself."""

from __future__ import annotations

import ast


def no_call(at: ast.AST) -> ast.Call:
    """A call that is not written as one, at the place of `at`."""
    if isinstance(at, ast.Call):
        return at
    name = ast.Name(id="", ctx=ast.Load())
    call = ast.Call(func=name, args=[], keywords=[])
    for node in (name, call):
        node.lineno, node.col_offset = getattr(at, "lineno", 1), getattr(at, "col_offset", 0)
        node.end_lineno, node.end_col_offset = getattr(at, "end_lineno", 1), getattr(at, "end_col_offset", 0)
    return call
