"""What the rules' functions compute, and how `given(x)` is spelled in the language's own words."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from convlint.facts.quantity import UNKNOWN, Type

MAX_RESULT_BITS = 512  # of a whole number that an expression yields: rules feed results into each other


class NotWhole(ArithmeticError):
    """A whole number was needed and there is a fraction."""


def ceil_to(value: int, multiple: int) -> int:
    """The smallest multiple that is not below `value`."""
    return -(-value // multiple) * multiple


def floor_to(value: int, multiple: int) -> int:
    """The largest multiple that is not above `value`."""
    return value // multiple * multiple


def ceil(value: float) -> int:
    """The smallest whole number that is not below `value`."""
    return -int(-value // 1)


def gcd(a: float, b: float) -> int:
    """The greatest common divisor. Raises NotWhole, UnknownValue."""
    if a % 1 != 0 or b % 1 != 0:
        raise NotWhole
    return math.gcd(int(a), int(b))


def known(value: object) -> bool:
    """Whether somebody gave it."""
    return value is not UNKNOWN


def bounded(value: Any) -> Any:
    """The value of an expression. Raises OverflowError where it is too large to reckon with."""
    if type(value) is int and value.bit_length() > MAX_RESULT_BITS:
        raise OverflowError
    return value


# name -> (function, number of arguments; None: two or more, type of the result)
FUNCTIONS: Mapping[str, tuple[Callable[..., Any], int | None, Type]] = {
    "ceil_to": (ceil_to, 2, "number"),
    "floor_to": (floor_to, 2, "number"),
    "gcd": (gcd, 2, "number"),
    "min": (min, None, "number"),
    "max": (max, None, "number"),
    "abs": (abs, 1, "number"),
    "ceil": (ceil, 1, "number"),
    "known": (known, 1, "truth"),
    "given": (known, 1, "truth"),  # never called: it is written in full when it is compiled
}

# all that the code of a rule can see beside its facts
GLOBALS: dict[str, Any] = {
    "__builtins__": {},
    "UNKNOWN": UNKNOWN,
    "bounded": bounded,
    **{name: entry[0] for name, entry in FUNCTIONS.items()},
}


class GivenInFull(ast.NodeTransformer):
    """Writes `given(x)` as `known(a) and known(b) and x`, a and b being the names in x.

    A number must not be 0 and a text not be empty for it to hold; a version must only be known.
    """

    # what a value of each type is compared with; a truth stands for itself
    _NOTHING: Mapping[str, int | str] = {"number": 0, "text": ""}

    def __init__(self, calls: Mapping[ast.Call, tuple[str, Iterable[str]]]) -> None:
        self.calls = calls  # each given(...): the type of its argument, and the names in it

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """The call, or what it stands for."""
        found = self.calls.get(node)
        self.generic_visit(node)
        if found is None:
            return node
        kind, names = found
        (value,) = node.args
        terms: list[ast.expr] = [
            ast.Call(ast.Name("known", ast.Load()), [ast.parse(name, mode="eval").body], []) for name in sorted(names)
        ]
        if kind in self._NOTHING:
            value = ast.Compare(value, [ast.NotEq()], [ast.Constant(self._NOTHING[kind])])
        if kind != "version":
            terms.append(value)
        return terms[0] if len(terms) == 1 else ast.BoolOp(ast.And(), terms)
