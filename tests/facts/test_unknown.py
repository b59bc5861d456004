"""What nobody gave: whatever is done with it raises, and what belongs to it is unknown too."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import pytest

from convlint.facts.unknown import UNKNOWN, UnknownValue

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
