"""Which formats go where."""

from __future__ import annotations

import pytest

from convlint.cli.streams.outputs import Destination, files_of, parse_outputs
from convlint.model.errors import UsageError

TEXT, JSON = Destination(format="text"), Destination(format="json", file="a=b.json")


@pytest.mark.parametrize(
    ("values", "places"),
    [
        ((), (TEXT,)),
        (("json=a=b.json",), (JSON,)),
        (("text", "json=a=b.json"), (TEXT, JSON)),
        (("text=",), (TEXT,)),
    ],
)
def test_outputs(values: tuple[str, ...], places: tuple[Destination, ...]) -> None:
    assert parse_outputs(values, ("text", "json")) == places
    assert [use.path for use in files_of(places)] == [place.file for place in places if place.file]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (("jsn",), "unknown format 'jsn'; did you mean 'json'?; known are text, json, svg"),
        (("svg",), "--output svg needs a file: --output svg=FILE.svg"),
        (("text", "json"), "two formats write to standard output; give one of them a file: json=FILE"),
    ],
)
def test_outputs_that_are_refused(values: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_outputs(values, ("text", "json", "svg"), files_only=("svg",))
    assert str(caught.value) == message
