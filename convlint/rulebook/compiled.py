"""Checked expressions as functions of the facts: each alone, and all that decide a rule together as one.

Only trees that the language's checker has passed get here, and only nodes of the kinds listed here leave: a name
becomes a look-up in the facts, whatever it is called, so that no text of a rule reaches a name of Python's own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any

_FACTS = "facts"
_UNKNOWN, _BOUNDED = "UNKNOWN", "bounded"  # names that the functions' globals define beside the language's functions
_KINDS = (
    ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.IfExp, ast.Compare, ast.Call, ast.Tuple, ast.List,
    ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context,
)  # fmt: skip


def function(code: CodeType, names: Mapping[str, Any]) -> Callable[[Any], Any]:
    """The function of the facts that `code` is; it sees nothing but its facts and `names`."""
    return FunctionType(code, names)  # type: ignore[arg-type]


def expression_code(tree: ast.expr) -> CodeType:
    """The code of the function whose value is the expression's."""
    return _code([ast.Return(_Translated(frozenset()).visit(tree))])


def decision_code(when: ast.expr | None, let: Sequence[tuple[str, ast.expr, bool]], check: ast.expr) -> CodeType:
    """The code of the function of one rule: None where `when` does not hold, else the value of `check`.

    `let`: name, expression, whether its value is a number. What it names is put into the facts, for the messages;
    what cannot be worked out raises as the arithmetic does.
    """
    body: list[ast.stmt] = []
    local: set[str] = set()
    if when is not None:
        refused = ast.UnaryOp(ast.Not(), _Translated(frozenset()).visit(when))
        body.append(ast.If(refused, [ast.Return(ast.Constant(None))], []))
    for name, tree, number in let:
        value = _Translated(frozenset(local)).visit(tree)
        if number:
            value = ast.Call(ast.Name(_BOUNDED, ast.Load()), [value], [])
        body.append(ast.Assign([ast.Name(_local(name), ast.Store()), _fact(name, ast.Store())], value))
        local.add(name)
    body.append(ast.Return(_Translated(frozenset(local)).visit(check)))
    return _code(body)


def _code(body: list[ast.stmt]) -> CodeType:
    arguments = ast.arguments(posonlyargs=[], args=[ast.arg(_FACTS)], kwonlyargs=[], kw_defaults=[], defaults=[])
    definition = ast.FunctionDef("rule", arguments, body, [])
    module = ast.fix_missing_locations(ast.Module([definition], []))
    return next(code for code in compile(module, "<rule>", "exec").co_consts if isinstance(code, CodeType))


def _local(name: str) -> str:
    return f"let_{name}"


def _fact(name: str, context: ast.expr_context) -> ast.Subscript:
    return ast.Subscript(ast.Name(_FACTS, ast.Load()), ast.Constant(name), context)


class _Translated(ast.NodeTransformer):
    """A checked tree with its names looked up in the facts; those in `local` were worked out before."""

    def __init__(self, local: frozenset[str]) -> None:
        self.local = local

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, _KINDS):
            raise TypeError(f"{type(node).__name__} was not checked")
        return super().generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in ("true", "false"):  # YAML's spelling
            return ast.Constant(node.id == "true")
        return ast.Name(_local(node.id), ast.Load()) if node.id in self.local else _fact(node.id, ast.Load())

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return ast.Attribute(self.visit(node.value), node.attr, ast.Load())

    def visit_Call(self, node: ast.Call) -> ast.expr:
        arguments = [self.visit(argument) for argument in node.args]
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise TypeError("this call was not checked")
        if node.func.id == "known":
            return ast.Compare(arguments[0], [ast.IsNot()], [ast.Name(_UNKNOWN, ast.Load())])
        return ast.Call(node.func, arguments, [])
