"""Operators on plain values, none of which may grow beyond its bound."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from typing import Any

from convlint.readers.python.evaluator.limits import LONGEST, MOST_BITS
from convlint.readers.python.evaluator.values import Plain

_PLAIN = (int, float, str, bytes, bool, type(None))
_LONG_WIDTH = re.compile(r"\d{4}|\*")

_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitOr: operator.or_, ast.BitAnd: operator.and_, ast.BitXor: operator.xor,
}  # fmt: skip
_COMPARISONS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip


class NoResult(Exception):
    """The operation raises, or its result is not one of ours."""


def binary(kind: type[ast.AST], left: Any, right: Any) -> Plain:
    """`left + right` and its like. Raises NoResult."""
    operation = _OPERATORS.get(kind)
    if operation is None or not _small(kind, left, right):
        raise NoResult
    return computed(operation, left, right)


def comparison(kind: type[ast.AST], left: Plain, right: Plain) -> bool:
    """`left < right` and its like. Raises NoResult."""
    operation = _COMPARISONS.get(kind)
    if operation is None:
        raise NoResult
    return bool(computed(operation, left, right))


def unary(kind: type[ast.AST], value: Any) -> Plain:
    """`-value` and its like. Raises NoResult."""
    if kind is ast.USub:
        return computed(operator.neg, value)
    if kind is ast.UAdd:
        return computed(operator.pos, value)
    if kind is ast.Invert and isinstance(value, int):
        return ~int(value)
    raise NoResult


def computed(operation: Callable[..., Any], *args: Any) -> Plain:
    """What the operation gives, where that is plain and small. Raises NoResult."""
    try:
        found = operation(*args)
    except (ArithmeticError, TypeError, ValueError, AttributeError, LookupError, MemoryError):
        raise NoResult from None
    return checked(found)


def checked(value: Any) -> Plain:
    """The value, if it is plain and small. Raises NoResult."""
    if type(value) not in _PLAIN:
        raise NoResult
    if isinstance(value, (str, bytes)) and len(value) > LONGEST:
        raise NoResult
    if type(value) is int and value.bit_length() > MOST_BITS:
        raise NoResult
    return value  # type: ignore[no-any-return]


def is_small_format(text: str) -> bool:
    """Whether a format asks for no width that a file could do harm with, or takes its width from an argument."""
    return not _LONG_WIDTH.search(text) and not re.search(r"\{[^{}]*\{", text)


def _small(kind: type[ast.AST], left: Any, right: Any) -> bool:
    """Whether the result can be computed without harm."""
    if kind is ast.Mod and isinstance(left, (str, bytes)):
        return is_small_format(left if isinstance(left, str) else left.decode("latin-1"))
    if kind is ast.Mult and (isinstance(left, (str, bytes)) or isinstance(right, (str, bytes))):
        text, times = (left, right) if isinstance(left, (str, bytes)) else (right, left)
        return isinstance(times, int) and len(text) * max(times, 0) <= LONGEST
    if not isinstance(left, int) or not isinstance(right, int):
        return True
    if kind is ast.Pow:
        return abs(right) <= MOST_BITS and left.bit_length() * abs(right) <= MOST_BITS
    if kind is ast.LShift:
        return right <= MOST_BITS
    return True


def order(kind: type[ast.AST], left: list[Plain], right: list[Plain]) -> bool:
    """`(1, 2) < (1, 3)`. Raises NoResult."""
    operation = _COMPARISONS.get(kind)
    if operation is None:
        raise NoResult
    return bool(computed(operation, left, right))
