"""Values that a reader may take for known: literals, parameters of a call that gives them, names bound once."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from convlint.readers.python.programs.unit import Function
from convlint.readers.python.walking import every

Literal = bool | int | float | str | None
_NEVER = {"TYPE_CHECKING"}


def literal(node: ast.expr | None) -> tuple[Literal] | None:
    """The value of a literal, in a tuple as None is one too."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float | str | type(None)):
        return (node.value,)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value = node.operand.value
        return (-value,) if isinstance(value, int | float) else None
    return None


def known(node: ast.expr | None, names: Mapping[str, Literal]) -> tuple[Literal] | None:
    """The value of an expression over literals and `names`, in a tuple; None: nobody knows."""
    if isinstance(node, ast.Name):
        if node.id in _NEVER and node.id not in names:
            return (False,)
        return (names[node.id],) if node.id in names else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = known(node.operand, names)
        return (not inner[0],) if inner else None
    if isinstance(node, ast.BoolOp):
        return _joined(node, names)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _compared(node, names)
    if isinstance(node, ast.Attribute) and node.attr in _NEVER:
        return (False,)
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "bool"
        and len(node.args) == 1
    ):
        inner = known(node.args[0], names)
        return (bool(inner[0]),) if inner else None
    return literal(node)


def _joined(node: ast.BoolOp, names: Mapping[str, Literal]) -> tuple[Literal] | None:
    ends = isinstance(node.op, ast.Or)
    values = [known(each, names) for each in node.values]
    if any(value is not None and bool(value[0]) is ends for value in values):
        return (ends,)
    return None if None in values else (not ends,)


def _compared(node: ast.Compare, names: Mapping[str, Literal]) -> tuple[Literal] | None:
    left, right = known(node.left, names), known(node.comparators[0], names)
    if left is None or right is None:
        return None
    match node.ops[0]:
        case ast.Is() | ast.Eq():
            return (left[0] == right[0] and (left[0] is None) == (right[0] is None),)
        case ast.IsNot() | ast.NotEq():
            return (left[0] != right[0] or (left[0] is None) != (right[0] is None),)
    return None


def given(function: Function, call: ast.Call | None, names: Mapping[str, Literal], skip: int) -> dict[str, Literal]:
    """Parameters whose values a call shows, defaults with it; `skip` first ones are `self` and its like.

    Without a call nothing is known of any.
    """
    if call is None or any(isinstance(each, ast.Starred) for each in call.args):
        return {}
    spec = function.args
    positional = [each.arg for each in (*spec.posonlyargs, *spec.args)]
    found: dict[str, tuple[Literal] | None] = {}
    if all(each.arg is not None for each in call.keywords):
        for name, default in zip(positional[len(positional) - len(spec.defaults) :], spec.defaults, strict=True):
            found[name] = literal(default)
        for one, default_or_none in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
            found[one.arg] = literal(default_or_none) if default_or_none is not None else None
    for name, value in zip(positional[skip:], call.args, strict=False):
        found[name] = known(value, names)
    for keyword in call.keywords:
        if keyword.arg is not None:
            found[keyword.arg] = known(keyword.value, names)
    bound_again = {
        each.id for each in every(function) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    return {name: value[0] for name, value in found.items() if value is not None and name not in bound_again}
