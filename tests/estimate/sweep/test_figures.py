"""The settings of the guide's figures."""

from __future__ import annotations

import re

import pytest

from convlint.estimate.sweep.figures import FIGURES


def test_the_guides_charts_are_all_there():
    assert set(FIGURES) == {2, *range(4, 14), 15}


@pytest.mark.parametrize("number", FIGURES)
def test_the_sections_are_the_guides(number):
    assert re.fullmatch(r"[45]\.\d(\.\d)? [A-Z].+", FIGURES[number].section)
