"""The letter of a layer."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from convlint.estimate import grade


@pytest.mark.parametrize(
    ("ratio", "letter"), [(1, "A"), (0.9, "A"), (0.89, "B"), (0.75, "B"), (0.6, "C"), (0.4, "D"), (0.39, "F")]
)
def test_grades(ratio, letter):
    assert grade(ratio) == letter


@given(st.floats(0.001, 1), st.floats(0.001, 1))
def test_grades_follow_the_ratio(one, two):
    assume(one <= two)
    assert grade(two) <= grade(one)


@pytest.mark.parametrize(("ratio", "letter"), [(0.8999, "B"), (0.7499, "C"), (0.5999, "D"), (0.3999, "F"), (0.4, "D")])
def test_just_below_a_grade_is_the_next(ratio, letter):
    assert grade(ratio) == letter
