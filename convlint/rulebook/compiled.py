"""Expressions of rules as code that runs, and the functions that they may call."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import CodeType, FunctionType
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
