"""Robust regression: exact where data are, unmoved by outliers, drawn to zero where little is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convlint.measuring.regression import robust_step, scale_of, solved

COLUMNS = [[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [1.0, 3.0], [1.0, 5.0], [1.0, 8.0], [1.0, 9.0]]
WIDE = [100.0, 100.0]


def line(a: float, b: float) -> list[float]:
    return [a * row[0] + b * row[1] for row in COLUMNS]


@given(st.floats(-3, 3), st.floats(-3, 3))
def test_a_line_without_noise_is_found(a: float, b: float) -> None:
    assert robust_step(COLUMNS, line(a, b), [0.0, 0.0], WIDE) == pytest.approx([a, b], abs=1e-6)


def test_an_outlier_has_no_say() -> None:
    rests = line(0.5, -0.25)
    rests[2] += 40
    assert robust_step(COLUMNS, rests, [0.0, 0.0], WIDE) == pytest.approx([0.5, -0.25], abs=1e-3)


def test_scattered_rows_are_drawn_to_what_is_expected() -> None:
    rests = [1.0, -0.4, 0.9, 0.1]
    free, drawn = (robust_step([[1.0]] * 4, rests, [0.0], [expected])[0] for expected in (100.0, 0.1))
    assert 0 < drawn < free / 2


def test_what_no_row_follows_goes_back_to_zero() -> None:
    assert robust_step([[0.0]] * 4, [0.5, 0.2, 0.1, 0.4], [0.3], [0.5]) == pytest.approx([-0.3])


def test_nothing_to_find() -> None:
    assert robust_step([[], []], [1.0, 2.0], [], []) == []


def test_a_system_that_needs_its_rows_swapped() -> None:
    assert solved([[1e-30, 1.0], [1.0, 1.0]], [2.0, 3.0]) == pytest.approx([1.0, 2.0])


def test_the_scale_of_normal_errors_is_their_deviation() -> None:
    assert scale_of([-0.6745, 0.1, 0.6745, -2.0, 0.6745]) == pytest.approx(1.0, rel=1e-4)
    assert scale_of([0.0, 0.0, 5.0]) > 0
