"""Quantities that cannot be worked out, and the names along each axis."""

from __future__ import annotations

from typing import Any

import pytest
from layer_facts import facts

from convlint.engine.quantity import AXES, or_unknown
from convlint.rulebook.unknown import UNKNOWN


def test_a_quantity_is_unknown_where_anything_that_it_uses_is() -> None:
    doubled = or_unknown(lambda found: 2 * found["C"])
    assert doubled(facts("C: 3")) == 6
    assert doubled(facts("K: 3")) is UNKNOWN


def test_a_defect_is_no_unknown() -> None:
    with pytest.raises(ZeroDivisionError):
        or_unknown(lambda found: found["C"] // 0)(facts("C: 3"))


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
