"""Entries that silence rules, as they are read."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest

from convlint.config.ignores import file_ignores, layer_ignores
from convlint.config.toml_source import Spot, TomlSource
from convlint.errors import UsageError

AT = Spot(TomlSource("c.toml", "ignores = []\n"), ("ignores",))
ENTRY: dict[str, Any] = {"layers": "stem", "rules": ["CL103"], "reason": " RGB "}


def test_rules_are_silenced_in_files() -> None:
    (one,) = file_ignores({"a/**": ["CL1", "CL2"]}, AT, "/project")
    assert (one.pattern.text, [word.text for word in one.rules]) == ("a/**", ["CL1", "CL2"])


def test_rules_are_silenced_in_layers_until_a_day() -> None:
    forever, until = layer_ignores([ENTRY, {**ENTRY, "expires": date(2026, 12, 31)}], AT, "")
    assert (forever.layers, forever.reason, forever.expires) == ("stem", "RGB", None)
    assert until.expires == date(2026, 12, 31)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "must be tables, each under [[…ignores]], not a number"),
        ([{**ENTRY, "until": 3}], "unknown key 'until'"),
        ([{"layers": "stem", "rules": []}], "reason is missing"),
        ([{**ENTRY, "expires": "2026-12-31"}], "must be a date without quotes"),
        ([{**ENTRY, "expires": datetime(2026, 12, 31)}], "must be a date without quotes"),
    ],
)
def test_wrong_entries_are_refused(value: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        layer_ignores(value, AT, "")
    assert message in str(caught.value)
