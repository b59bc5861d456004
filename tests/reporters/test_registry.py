"""The registry of output formats: each line keeps its promises, and choices, help and completion come from it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import convlint

from convlint import reporters
from convlint.cli.options import listed
from convlint.reporters import REPORTERS, Reporter, reporter


@pytest.mark.parametrize("name", REPORTERS)
def test_each_format_has_a_reporter(name: str) -> None:
    assert isinstance(reporter(name), Reporter)
    assert reporter(name).annotations == (name == "github")


def test_each_reporter_is_registered_once() -> None:
    folder = Path(reporters.__file__).parent
    offered = {path.stem for path in folder.glob("*.py") if re.search(r"^def render\(", path.read_text(), re.MULTILINE)}
    assert sorted(offered) == sorted(REPORTERS.values())


def test_help_and_errors_name_all_formats() -> None:
    shown = " ".join(convlint("check", "--help").out.split())
    assert f"{listed(REPORTERS)}; repeatable." in shown
    assert f"known are {', '.join(REPORTERS)}" in convlint("check", "--output", "xml").err


@pytest.mark.parametrize(("names", "text"), [(["a"], "a"), (["a", "b"], "a or b"), (["a", "b", "c"], "a, b or c")])
def test_names_are_listed(names: list[str], text: str) -> None:
    assert listed(names) == text
