"""rdjson: columns in bytes, and what is suggested."""

import json
from typing import Any

import pytest
from msgspec.structs import replace
from parsed import rdjson
from reports import ALIGNMENT, finding, full_report, rendered

from convlint.model.location import Location, TextEdit
from convlint.model.report import Fix


def test_rdjson_columns_are_bytes_of_utf8() -> None:
    line = "名: {C: 62}"
    place = Location(path="p", line=1, column=8, end_line=1, end_column=10)
    report = full_report(findings=(finding(ALIGNMENT, "m", place),), sources={"p": (line,)})
    diagnostic = json.loads(rendered("rdjson", report))["diagnostics"][-1]
    assert diagnostic["location"]["range"] == {"start": {"line": 1, "column": 10}, "end": {"line": 1, "column": 12}}
    assert line.encode()[9:11] == b"62"
    elsewhere = json.loads(rendered("rdjson", replace(report, sources={})))["diagnostics"][-1]
    assert elsewhere["location"]["range"]["start"] == {"line": 1, "column": 8}
    assert json.loads(rendered("rdjson", full_report()))["diagnostics"][1]["severity"] == "WARNING"


LINES = ("a: 1", "名🙂: {C: 62, K: 60}", "b: 2", "##[error]", "x" * 5000)
Place = tuple[int, int, int, int]


def suggestion(*edits: tuple[Place, str], line: int = 2, end_line: int | None = None, path: str = "p") -> Any:
    """Of a finding on one line of LINES, or on several."""
    made = tuple(
        TextEdit(path=path, line=at[0], column=at[1], end_line=at[2], end_column=at[3], text=text) for at, text in edits
    )
    fix = Fix(describe="do", safety="safe", set={}, edits=made, edits_safety="safe")
    place = Location(path="p", line=line, column=1, end_line=end_line, end_column=2)
    report = full_report(findings=(finding(ALIGNMENT, "m", place, fix=fix),), sources={"p": LINES}, errors=())
    text = rendered("rdjson", report)
    assert rdjson(text) == (1, 0)
    (found,) = json.loads(text)["diagnostics"][0].get("suggestions", [None])
    return found


@pytest.mark.parametrize(
    ("edits", "text"),
    [
        ([((2, 9, 2, 11), "64")], "名🙂: {C: 64, K: 60}"),
        ([((2, 16, 2, 18), "64"), ((2, 9, 2, 11), "64")], "名🙂: {C: 64, K: 64}"),
        ([((2, 19, 2, 19), " # ü")], "名🙂: {C: 62, K: 60} # ü"),
        ([((2, 19, 2, 19), "\r\n  N: 8")], "名🙂: {C: 62, K: 60}\n  N: 8"),
        ([((2, 6, 2, 13), "")], "名🙂: {K: 60}"),
    ],
)
def test_rdjson_suggests_whole_lines(edits: list[tuple[Place, str]], text: str) -> None:
    assert suggestion(*edits) == {"range": {"start": {"line": 2}, "end": {"line": 2}}, "text": text}


def test_rdjson_suggests_over_several_lines_of_the_finding() -> None:
    edits = [((1, 4, 1, 5), "9"), ((3, 1, 3, 2), "c")]
    text = "a: 9\n名🙂: {C: 62, K: 60}\nc: 2"
    assert suggestion(*edits, line=1, end_line=3) == {"range": {"start": {"line": 1}, "end": {"line": 3}}, "text": text}
    joined = [((1, 5, 3, 1), ", ")]
    assert suggestion(*joined, line=1, end_line=3)["text"] == "a: 1, b: 2"
    last = suggestion(((3, 4, 3, 5), "8"), line=1, end_line=3)
    assert last == {"range": {"start": {"line": 3}, "end": {"line": 3}}, "text": "b: 8"}


def test_rdjson_suggests_nothing_that_is_not_the_whole_fix_or_cannot_be_shown() -> None:
    assert suggestion() is None
    assert suggestion(((2, 9, 2, 11), "64"), ((3, 4, 3, 5), "3")) is None
    assert suggestion(((1, 4, 1, 5), "9")) is None
    assert suggestion(((2, 9, 2, 11), "64"), path="q") is None
    assert suggestion(((4, 1, 4, 1), "64"), line=4) is None
    assert suggestion(((5, 1, 5, 2), "y"), line=5) is None
    assert suggestion(((6, 1, 6, 1), "y"), line=6) is None
