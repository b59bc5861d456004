"""Axes name swept values alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convlint.cli.commands.text_plot import plot
from convlint.estimate.sweep.ticks import ticks
from convlint.reporters.ink import painter


@pytest.mark.parametrize(
    ("values", "most", "expected"),
    [
        (range(50, 59), 16, tuple(range(50, 59))),
        (range(1, 257), 16, tuple(range(16, 257, 16))),
        (range(1, 257), 10, tuple(range(32, 257, 32))),
        (range(56, 601, 8), 10, tuple(range(64, 601, 64))),
        (range(1, 24, 2), 4, (1, 9, 17, 23)),
        ((64, 96, 112, 256, 300), 3, (64, 112, 300)),
        ((7,), 2, (7,)),
    ],
)
def test_all_or_rounder_ones_or_every_nth(values: range, most: int, expected: tuple[int, ...]) -> None:
    assert ticks(values, most) == expected


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=60, unique=True).map(sorted), st.integers(2, 20))
def test_ticks_are_swept_values_in_order(values: list[int], most: int) -> None:
    found = ticks(values, most)
    assert set(found) <= set(values)
    assert list(found) == sorted(set(found))
    assert 1 <= len(found) <= most


@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=60, unique=True).map(sorted), st.booleans())
def test_the_terminals_axis_names_swept_values_apart_from_each_other(values: list[int], log_x: bool) -> None:
    lines = [("a", [(float(x), 1.0) for x in values])]
    axis = plot(lines, (60, 10), paint=painter(False), dots=False, log_x=log_x)[-1]
    assert len(axis) <= 60
    assert set(map(int, axis.split())) <= set(values)
    assert axis.split()
