"""rdjson: columns in bytes."""

from __future__ import annotations

import json

from msgspec.structs import replace
from reports import ALIGNMENT, finding, full_report, rendered

from convlint.model.location import Location


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
