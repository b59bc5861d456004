"""Sizes that torch.export writes as expressions over symbols, such as `Add(Mul(Integer(2), Symbol('s0')), Integer(1))`.

Only these few forms are computed, from the syntax tree; nothing is ever evaluated as code.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from math import prod

LONGEST = 2000  # characters
LARGEST = 2**62


def evaluate(text: str, symbols: Mapping[str, int]) -> int | None:
    """The value of an expression, or None where a symbol is not known or a form is not."""
    if len(text) > LONGEST:
        return None
    try:
        result = _value(ast.parse(text, mode="eval").body, symbols)
    except (SyntaxError, ValueError, RecursionError, MemoryError, ZeroDivisionError, IndexError):
        return None
    return result if result is not None and abs(result) < LARGEST else None


def _value(node: ast.expr, symbols: Mapping[str, int]) -> int | None:
    if isinstance(node, ast.Name):
        return symbols.get(node.id)
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _apply("Mul", [-1, _value(node.operand, symbols)])
    if isinstance(node, ast.BinOp):
        return _apply(type(node.op).__name__, [_value(node.left, symbols), _value(node.right, symbols)])
    if not isinstance(node, ast.Call):
        return None
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    if name == "Symbol":
        first = node.args[0]
        return symbols.get(str(first.value)) if isinstance(first, ast.Constant) else None
    if name == "Integer":
        return _value(node.args[0], symbols)
    return _apply(name, [_value(argument, symbols) for argument in node.args])


def _apply(name: str, given: list[int | None]) -> int | None:
    values = [value for value in given if value is not None]
    if len(values) != len(given) or not values:
        return None
    result: int | None = None
    if name == "Add":
        result = sum(values)
    elif name in {"Mul", "Mult"}:
        result = prod(values)
    elif name == "Sub":
        result = values[0] - values[1]
    elif name == "Max":
        result = max(values)
    elif name == "Min":
        result = min(values)
    elif name in {"FloorDiv", "CleanDiv", "PythonFloorDiv"}:
        result = values[0] // values[1]
    elif name in {"Mod", "PythonMod"}:
        result = values[0] % values[1]
    return result if result is not None and abs(result) < LARGEST else None
