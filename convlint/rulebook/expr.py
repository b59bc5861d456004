"""The rules' closed expression language: a typed subset of Python's syntax, compiled once.

Arithmetic (no powers), comparisons, and/or/not, `in`, conditional expressions, the names of a vocabulary and a few
functions; everything else, and every mix of types, is refused when the rule is loaded. Values that are not known
are `UNKNOWN`: using one raises UnknownValue, so a rule is skipped rather than passed.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping
from types import CodeType
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from convlint.errors import ConvlintError, suggestion
from convlint.facts.quantity import UNKNOWN as UNKNOWN
from convlint.facts.quantity import Type
from convlint.facts.quantity import UnknownValue as UnknownValue
from convlint.model.layer import equal_without
from convlint.model.runtime import Version
from convlint.rulebook import compiled
from convlint.rulebook.compiled import FUNCTIONS, GLOBALS, bounded, expression_code, function

MAX_LENGTH = 500
MAX_DEPTH = 20
MAX_NUMBER = 10**12


class ExprError(ConvlintError):
    """A defect in an expression; `offset` counts characters from its start."""

    def __init__(self, message: str, offset: int = 0) -> None:
        self.message, self.offset = message, offset
        super().__init__(message)


# YAML spells truth in lower case, and rules are YAML
_TRUTHS = ("true", "false")
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


@equal_without("in_full", "_value")
class Expr(Struct, frozen=True, kw_only=True):
    """A compiled expression: its text, the vocabulary's names that it reads, and the type of its value."""

    text: str
    names: frozenset[str]
    type: Type
    code: CodeType
    in_full: str = ""  # the text without what stands for something longer
    _value: Any = None  # the function that `code` is

    def __post_init__(self) -> None:
        force_setattr(self, "_value", function(self.code, GLOBALS))

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """The value under `values`. Raises UnknownValue, or ExprError where the arithmetic has no result."""
        try:
            value = self._value(values)
            return bounded(value) if self.type == "number" else value
        except ZeroDivisionError as error:
            raise ExprError(f"divides by zero: {self.text}") from error
        except compiled.NotWhole as error:
            raise ExprError(f"takes the gcd of a fraction: {self.text}") from error
        except (OverflowError, ValueError) as error:  # ValueError: a whole number of nan
            raise ExprError(f"the numbers grow too large: {self.text}") from error

    def holds(self, values: dict[str, Any]) -> bool:
        """Whether it is known to be true under `values`. Raises ExprError."""
        try:
            return bool(self.evaluate(values))
        except UnknownValue:
            return False


def compile_expr(text: str, vocabulary: Mapping[str, Type]) -> Expr:
    """Checks and compiles `text`. Raises ExprError where it is not in the language."""
    if len(text) > MAX_LENGTH:
        raise ExprError(f"longer than {MAX_LENGTH} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what Python finds odd, such as `1if C else 2`, is refused, not printed
            tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        offset = (error.offset or 1) - 1 if isinstance(error, SyntaxError) else 0
        raise ExprError(f"not an expression: {text!r}", offset) from error
    checker = _Checker(vocabulary)
    kind = checker.type_of(tree.body, 0)
    if checker.given:
        tree = ast.fix_missing_locations(compiled.GivenInFull(checker.given).visit(tree))
    in_full = ast.unparse(tree) if checker.given else text
    return Expr(
        text=text, names=frozenset(checker.names), type=kind, code=expression_code(tree.body), in_full=in_full
    )  # fmt: skip


def _dotted(node: ast.expr) -> str:
    """`gpu.name` as it is written. Raises ExprError for an attribute of anything but a name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        raise ExprError(f"{type(node).__name__} is not part of the language here", node.col_offset)
    return ".".join((node.id, *reversed(parts)))


class _Checker:
    def __init__(self, vocabulary: Mapping[str, Type]) -> None:
        self.vocabulary = vocabulary
        self.names: set[str] = set()
        self.given: dict[ast.Call, tuple[Type, set[str]]] = {}  # the calls of given(): type and names of what is asked

    def type_of(self, node: ast.expr, depth: int) -> Type:
        if depth > MAX_DEPTH:
            raise ExprError(f"nested deeper than {MAX_DEPTH} levels", node.col_offset)
        deeper = depth + 1
        if isinstance(node, ast.Constant):
            return self._constant(node)
        if isinstance(node, ast.Name | ast.Attribute):
            return self._name(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
            self._expect("number", node.left, deeper)
            self._expect("number", node.right, deeper)
            return "number"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self._expect("number", node.operand, deeper)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self._expect("truth", node.operand, deeper)
        if isinstance(node, ast.BoolOp):
            for value in node.values:
                self._expect("truth", value, deeper)
            return "truth"
        if isinstance(node, ast.IfExp):
            self._expect("truth", node.test, deeper)
            kind = self.type_of(node.body, deeper)
            return self._expect(kind, node.orelse, deeper)
        if isinstance(node, ast.Compare):
            return self._compare(node, deeper)
        if isinstance(node, ast.Call):
            return self._call(node, deeper)
        raise ExprError(f"{type(node).__name__} is not part of the language", node.col_offset)

    def _expect(self, wanted: Type, node: ast.expr, depth: int) -> Type:
        kind = self.type_of(node, depth)
        if kind != wanted:
            raise ExprError(f"{ast.unparse(node)} is a {kind}, a {wanted} belongs here", node.col_offset)
        return kind

    def _constant(self, node: ast.Constant) -> Type:
        value = node.value
        if isinstance(value, bool):
            return "truth"
        if isinstance(value, int | float):
            if not abs(value) <= MAX_NUMBER:
                raise ExprError(f"numbers go up to {MAX_NUMBER}", node.col_offset)
            return "number"
        if isinstance(value, str):
            return "text"
        raise ExprError(f"{value!r} is not part of the language", node.col_offset)

    def _name(self, node: ast.Name | ast.Attribute) -> Type:
        name = _dotted(node)
        if name in _TRUTHS:
            return "truth"
        kind = self._look_up(node)
        self.names.add(name)
        return kind

    def _look_up(self, node: ast.Name | ast.Attribute) -> Type:
        name = _dotted(node)
        if name not in self.vocabulary:
            raise ExprError(f"unknown name {name!r}{suggestion(name, self.vocabulary)}", node.col_offset)
        return self.vocabulary[name]

    def _compare(self, node: ast.Compare, depth: int) -> Type:
        kind = self.type_of(node.left, depth)
        for op, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(op, ast.In | ast.NotIn):
                if len(node.ops) > 1:
                    raise ExprError("`in` cannot stand in a chain of comparisons", right.col_offset)
                if not isinstance(right, ast.Tuple | ast.List) or not right.elts:
                    raise ExprError("what follows `in` must be a list of constants", right.col_offset)
                for item in right.elts:
                    if not isinstance(item, ast.Constant):
                        raise ExprError("what follows `in` must be a list of constants", item.col_offset)
                    self._expect(kind, item, depth)
            elif isinstance(op, (ast.Eq, ast.NotEq, *_ORDER)):
                kind = self._pair(kind, op, right, depth)
            else:
                raise ExprError(f"{type(op).__name__} is not part of the language", right.col_offset)
        return "truth"

    def _pair(self, kind: Type, op: ast.cmpop, right: ast.expr, depth: int) -> Type:
        """Checks one comparison of a chain with what is on its left; the type of its right side."""
        other = self.type_of(right, depth)
        if not (kind == other or (kind, other) == ("version", "text")):
            raise ExprError(f"compares a {kind} with a {other}", right.col_offset)
        if kind == "version" and other == "text":
            self._version(right)
        if isinstance(op, _ORDER) and kind not in ("number", "version"):
            raise ExprError(f"a {kind} has no order", right.col_offset)
        return other

    @staticmethod
    def _version(node: ast.expr) -> None:
        try:
            Version(str(node.value) if isinstance(node, ast.Constant) else "")
        except ValueError:
            raise ExprError("a version is compared with text such as '8.9'", node.col_offset) from None

    def _call(self, node: ast.Call, depth: int) -> Type:
        name = _dotted(node.func)
        if name not in FUNCTIONS:
            raise ExprError(f"unknown function {name!r}{suggestion(name, FUNCTIONS)}", node.col_offset)
        _, count, kind = FUNCTIONS[name]
        if node.keywords or (len(node.args) < 2 if count is None else len(node.args) != count):
            raise ExprError(f"{name} takes {'two or more' if count is None else count} arguments", node.col_offset)
        for argument in node.args:
            if name == "given":
                self._given(node, argument, depth)
            elif name == "known":
                if not isinstance(argument, ast.Name | ast.Attribute):
                    raise ExprError("known() takes a name", argument.col_offset)
                self._look_up(argument)  # asked about, not needed
            else:
                self._expect("number", argument, depth)
        return kind

    def _given(self, node: ast.Call, argument: ast.expr, depth: int) -> None:
        inner = _Checker(self.vocabulary)
        kind = inner.type_of(argument, depth)
        if not inner.names:
            raise ExprError("given() asks about a name", argument.col_offset)
        self.given.update({**inner.given, node: (kind, inner.names)})
        self.names |= inner.names
