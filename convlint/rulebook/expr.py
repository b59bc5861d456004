"""Compiled expressions of rules, and the functions that they may call; `grammar` makes them from text.

Values that are not known are `UNKNOWN`: using one raises UnknownValue, so a rule is skipped rather than passed.
"""

from __future__ import annotations

import marshal
import math
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from convlint.facts.quantity import UNKNOWN as UNKNOWN
from convlint.facts.quantity import Type
from convlint.facts.quantity import UnknownValue as UnknownValue
from convlint.model.errors import ConvlintError
from convlint.model.layer import equal_without

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


def function(code: CodeType, names: Mapping[str, Any]) -> Callable[[Any], Any]:
    """The function of the facts that `code` is; it sees nothing but its facts and `names`."""
    return FunctionType(code, names)  # type: ignore[arg-type]


class ExprError(ConvlintError):
    """A defect in an expression; `offset` counts characters from its start."""

    def __init__(self, message: str, offset: int = 0) -> None:
        self.message, self.offset = message, offset
        super().__init__(message)


@equal_without("in_full", "_value")
class Expr(Struct, frozen=True, kw_only=True):
    """A compiled expression: its text, the vocabulary's names that it reads, and the type of its value."""

    text: str
    names: frozenset[str]
    type: Type
    code: bytes  # of its function, as marshal has it: of most expressions nobody asks the value
    in_full: str = ""  # the text without what stands for something longer
    _value: Any = None  # the function that `code` is

    @property
    def value(self) -> Callable[[Mapping[str, Any]], Any]:
        """The function of the facts whose value it has; what its arithmetic raises is raised as it is."""
        if self._value is None:
            force_setattr(self, "_value", function(marshal.loads(self.code), GLOBALS))
        known: Callable[[Mapping[str, Any]], Any] = self._value
        return known

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """The value under `values`. Raises UnknownValue, or ExprError where the arithmetic has no result."""
        try:
            value = self.value(values)
            return bounded(value) if self.type == "number" else value
        except ZeroDivisionError as error:
            raise ExprError(f"divides by zero: {self.text}") from error
        except NotWhole as error:
            raise ExprError(f"takes the gcd of a fraction: {self.text}") from error
        except (OverflowError, ValueError) as error:  # ValueError: a whole number of nan
            raise ExprError(f"the numbers grow too large: {self.text}") from error

    def holds(self, values: dict[str, Any]) -> bool:
        """Whether it is known to be true under `values`. Raises ExprError."""
        try:
            return bool(self.value(values) if self.type == "truth" else self.evaluate(values))
        except UnknownValue:
            return False
        except (ArithmeticError, ValueError):
            return bool(self.evaluate(values))  # which says what is wrong
