"""Only checked trees become code, and nothing of Python's is in its reach."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from cases import for_each

from convlint.facts.quantity import UNKNOWN, UnknownValue
from convlint.rulebook.book import load_rulebook
from convlint.rulebook.expr import (
    FUNCTIONS,
    GLOBALS,
    NotWhole,
    bounded,
    ceil,
    ceil_to,
    decision_code,
    expression_code,
    floor_to,
    function,
    gcd,
    known,
)


@pytest.mark.parametrize(
    ("function", "arguments", "result"),
    [
        (ceil_to, (63, 8), 64), (ceil_to, (64, 8), 64), (ceil_to, (65, 8), 72), (ceil_to, (0, 8), 0),
        (floor_to, (63, 8), 56), (floor_to, (64, 8), 64), (floor_to, (7, 8), 0),
        (ceil, (2.0,), 2), (ceil, (2.001,), 3), (ceil, (-2.001,), -2), (ceil, (-0.5,), 0),
        (gcd, (62, 64), 2), (gcd, (0, 62), 62), (gcd, (-12, 8), 4), (gcd, (6.0, 4), 2),
        (known, (0,), True), (known, ("",), True), (known, (None,), True), (known, (UNKNOWN,), False),
        (bounded, (2**512 - 1,), 2**512 - 1), (bounded, (-(2**512) + 1,), -(2**512) + 1), (bounded, (1e300,), 1e300),
    ],
)  # fmt: skip
def test_values(function: Callable[..., Any], arguments: tuple[Any, ...], result: Any) -> None:
    found = function(*arguments)
    assert (found, type(found)) == (result, type(result))


@pytest.mark.parametrize(
    ("function", "arguments", "error"),
    [
        (bounded, (2**512,), OverflowError), (bounded, (-(2**512),), OverflowError),
        (gcd, (1.5, 3), NotWhole), (gcd, (3, 0.1), NotWhole), (gcd, (UNKNOWN, 3), UnknownValue),
        (ceil, (UNKNOWN,), UnknownValue), (ceil_to, (3, 0), ZeroDivisionError),
    ],
)  # fmt: skip
def test_what_has_no_value(function: Callable[..., Any], arguments: tuple[Any, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        function(*arguments)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_is_there_for_compiled_rules(name: str) -> None:
    assert callable(GLOBALS[name])


def facts(**values: object) -> dict[str, Any]:
    return {"C": 62, "K": 64, "gpu": SimpleNamespace(sms=108), "dtype": "fp16", "on": True, **values}


@for_each("rule", load_rulebook().rules)
def test_no_rule_reaches_a_name_beyond_the_languages_own(rule: Any) -> None:
    """Names of Python's own, and those of the facts, are never looked up but in the facts."""
    nodes = [node for expr in _expressions(rule) for node in ast.walk(ast.parse(expr.text.strip(), mode="eval"))]
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    code = rule.decision.code
    assert set(code.co_names) - attributes <= {*FUNCTIONS, "UNKNOWN", "bounded"}
    assert code.co_varnames[0] == "facts"
    assert all(name.startswith("let_") for name in code.co_varnames[1:])


def _expressions(rule: Any) -> list[Any]:
    when, let, check = rule.decision.when, rule.decision.let, rule.decision.check
    return [check, *(expr for _, expr in let), *([when] if when else [])]


@pytest.mark.parametrize("text", ["(lambda: 1)()", "[x for x in ()]", "f'{C}'", "{'a': 1}", "C[0]", "(C := 1)"])
def test_a_tree_that_was_not_checked_is_not_compiled(text: str) -> None:
    with pytest.raises(TypeError, match="was not checked"):
        expression_code(ast.parse(text, mode="eval").body)


def test_no_builtin_is_in_reach() -> None:
    """Not even by a fact's name: it is looked up among the facts, and nowhere else."""
    assert GLOBALS["__builtins__"] == {}
    assert not {"open", "eval", "getattr", "__import__"} & set(GLOBALS) & set(dir(builtins))
    value = function(expression_code(ast.parse("open", mode="eval").body), GLOBALS)
    with pytest.raises(KeyError):
        value({})
    assert value({"open": 3}) == 3


def tree(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@pytest.mark.parametrize(
    ("when", "let", "check", "result"),
    [
        (None, [], "C == 3", True),
        ("C == 4", [], "C == 3", None),  # the rule does not apply
        ("C == 3", [], "C == 4", False),
        (None, [("a", "C + 1"), ("b", "a * 2")], "b == 8", True),  # later names read earlier ones
        (None, [("C", "C + 1")], "C == 4", True),
        (None, [], "true and not false", True),  # YAML's spelling
        (None, [], "known(C) and not known(D)", True),
    ],
)
def test_a_rule_is_one_function_of_its_facts(when: str | None, let: list[Any], check: str, result: Any) -> None:
    steps = [(name, tree(text), True) for name, text in let]
    code = decision_code(None if when is None else tree(when), steps, tree(check))
    facts = {"C": 3, "D": UNKNOWN}
    assert function(code, GLOBALS)(facts) is result
    assert {name for name, _ in let} <= facts.keys()  # for the messages


def test_numbers_that_let_names_are_bounded() -> None:
    code = decision_code(None, [("a", tree("C * C"), True)], tree("a > 1"))
    with pytest.raises(OverflowError):
        function(code, GLOBALS)({"C": 2**256})
    assert function(code, GLOBALS)({"C": 2**255}) is True
