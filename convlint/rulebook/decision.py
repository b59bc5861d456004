"""Whether a rule is broken: its `when`, `let` and `check` evaluated by one function."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import CodeType
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from convlint.model.equality import equal_without
from convlint.rulebook.compiled import decision_code, function
from convlint.rulebook.expr import Expr
from convlint.rulebook.functions import GLOBALS


@equal_without("_value")
class Decision(Struct, frozen=True, kw_only=True):
    """All expressions that decide whether a rule is broken, as one function."""

    when: Expr | None
    let: tuple[tuple[str, Expr], ...]
    check: Expr
    code: CodeType
    _value: Any = None  # the function that `code` is

    def __post_init__(self) -> None:
        force_setattr(self, "_value", function(self.code, GLOBALS))

    def evaluate(self, values: dict[str, Any]) -> Any:
        """None where `when` does not hold, else the value of `check`; what `let` names is put into `values`.

        Raises UnknownValue, or ExprError for the expression whose arithmetic has no result.
        """
        try:
            return self._value(values)
        except (ArithmeticError, ValueError):  # ArithmeticError: division by zero, overflow, the gcd of a fraction
            return self._one_by_one(values)

    def _one_by_one(self, values: dict[str, Any]) -> Any:
        """The same, expression by expression: the one that has no result says so."""
        if self.when is not None and not self.when.evaluate(values):
            return None
        for name, expr in self.let:
            values[name] = expr.evaluate(values)
        return self.check.evaluate(values)


def compile_decision(when: Expr | None, let: Sequence[tuple[str, Expr]], check: Expr) -> Decision:
    """One function of expressions that were checked and compiled each for itself."""
    trees = [(name, _tree(expr), expr.type == "number") for name, expr in let]
    code = decision_code(None if when is None else _tree(when), trees, _tree(check))
    return Decision(when=when, let=tuple(let), check=check, code=code)


def _tree(expr: Expr) -> ast.expr:
    return ast.parse((expr.in_full or expr.text).strip(), mode="eval").body
