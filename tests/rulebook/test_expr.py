"""The functions of the rules' language, and when an expression's code is made ready."""

import marshal
from collections.abc import Callable
from typing import Any

import pytest

from convlint.rulebook.expr import (
    FUNCTIONS,
    GLOBALS,
    UNKNOWN,
    NotWhole,
    UnknownValue,
    bounded,
    ceil,
    ceil_to,
    floor_to,
    gcd,
    known,
)
from convlint.rulebook.grammar import compile_expr


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


def test_code_is_made_ready_when_the_value_is_first_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    expr = compile_expr("C + 1", {"C": "number"})
    loaded: list[bytes] = []
    loads = marshal.loads
    monkeypatch.setattr(marshal, "loads", lambda data: loaded.append(data) or loads(data))
    assert loaded == []
    assert [expr.evaluate({"C": number}) for number in (1, 2)] == [2, 3]
    assert loaded == [expr.code]
