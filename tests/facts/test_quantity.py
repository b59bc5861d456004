"""Quantities that cannot be worked out, and the names along each axis."""

import math
import operator
from collections.abc import Callable
from typing import Any

import pytest
from layer_facts import facts

from convlint.facts.quantity import AXES, UNKNOWN, UnknownValue, View, number

TWO_SIDED = [
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.truediv, operator.mod, operator.lt,
    operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
]  # fmt: skip


@pytest.mark.parametrize("act", TWO_SIDED, ids=lambda act: act.__name__)
def test_nothing_is_computed_or_compared_with_it(act: Callable[[Any, Any], Any]) -> None:
    for pair in ((UNKNOWN, 3), (3, UNKNOWN), (UNKNOWN, UNKNOWN)):
        with pytest.raises(UnknownValue):
            act(*pair)


@pytest.mark.parametrize(
    "act", [bool, abs, operator.neg, float, operator.index, list, lambda value: 3 in value, lambda value: value in (3,)]
)
def test_nothing_is_made_of_it(act: Callable[[Any], Any]) -> None:
    with pytest.raises(UnknownValue):
        act(UNKNOWN)


def test_it_is_no_key() -> None:
    with pytest.raises(TypeError):
        hash(UNKNOWN)


def test_what_belongs_to_it_is_unknown_too() -> None:
    assert UNKNOWN.C is UNKNOWN
    assert UNKNOWN.gpu.sms is UNKNOWN
    assert not hasattr(UNKNOWN, "__len__")  # Python's own questions are answered
    assert repr(UNKNOWN) == "UNKNOWN"


def test_minimum_and_ceiling_of_it_are_not_known() -> None:
    for act in (lambda: min(3, UNKNOWN), lambda: max(UNKNOWN, 3), lambda: math.gcd(3, UNKNOWN)):
        with pytest.raises(UnknownValue):
            act()


def view(of: Callable[[Any], Any]) -> View:
    return View({"x": number("", of)}, facts("C: 3"))


def test_a_quantity_is_unknown_where_anything_that_it_uses_is() -> None:
    assert view(lambda found: 2 * found["C"]).x == 6
    assert view(lambda found: 2 * found["K"]).x is UNKNOWN


def test_a_defect_is_no_unknown() -> None:
    with pytest.raises(ZeroDivisionError):
        view(lambda found: found["C"] // 0).x  # noqa: B018 - looking it up is what fails
    with pytest.raises(KeyError):
        view(lambda found: {}["C"]).x  # noqa: B018


def test_a_view_has_its_table_and_nothing_else_and_works_each_out_once() -> None:
    calls: list[object] = []
    seen = view(lambda found: calls.append(found) or 7)
    assert (seen.x, seen.x, len(calls)) == (7, 7, 1)
    with pytest.raises(AttributeError):
        seen.y  # noqa: B018


DEEP = (
    "D: 11, H: 12, W: 13, T: 2, R: 3, S: 4, stride: [5, 6, 7], dilation: [1, 2, 3], padding: [4, 5, 6]"
)  # fmt: skip
VALUES = {"D": (11, 4, 2, 5, 1, 4, 4), "H": (12, 3, 3, 6, 2, 5, 5), "W": (13, 3, 4, 7, 3, 6, 6)}


@pytest.mark.parametrize("size", VALUES)
def test_the_names_along_each_axis(size: str) -> None:
    axis = next(axis for axis in AXES if axis.size == size)
    assert axis.values(facts(DEEP)) == VALUES[size]


def test_uneven_padding_has_two_sides() -> None:
    values: tuple[Any, ...] = next(axis for axis in AXES if axis.size == "H").values(
        facts("H: 12, W: 13, R: 3, S: 4, padding: [1, 2, 3, 4]")
    )
    assert values[-2:] == (1, 2)
