"""Reviewdog's diagnostic format, which it turns into review comments on most forges."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from convlint.files.safe import clean, clean_path, is_exact
from convlint.model.location import Location
from convlint.model.report import Finding, Report, Severity
from convlint.reporters import Reporter, Style
from convlint.reporters.words import DOCUMENT_URLS, finding_text, page_of

_SEVERITIES: Mapping[Severity, str] = {"error": "ERROR", "warning": "WARNING", "info": "INFO"}
_LONGEST_SUGGESTION = 4096  # characters that a suggestion replaces


def render(report: Report, style: Style) -> str:
    """The findings and what could not be read, as one DiagnosticResult."""
    several_targets = len(report.targets) > 1
    diagnostics: list[dict[str, Any]] = []
    for error in report.errors:
        at = Location(path=error.path, line=error.line, column=error.column)
        message = clean(error.message)
        diagnostics.append({"message": message, "location": _location(at, report), "severity": "ERROR"})
    for finding in report.findings:
        code = {"value": f"{clean(finding.rule.code)} {clean(finding.rule.name)}"}
        if url := page_of(finding.rule) or DOCUMENT_URLS.get(finding.rule.source.document):
            code["url"] = url
        diagnostic: dict[str, Any] = {
            "message": finding_text(finding, several_targets),
            "location": _location(finding.location, report),
            "severity": _SEVERITIES[finding.severity],
            "code": code,
        }
        if (suggestion := _suggestion(finding, report)) is not None:
            diagnostic["suggestions"] = [suggestion]
        diagnostics.append(diagnostic)
    document = {"source": {"name": "convlint"}, "diagnostics": diagnostics}
    return json.dumps(document, ensure_ascii=not style.unicode, allow_nan=False) + "\n"


def _suggestion(finding: Finding, report: Report) -> dict[str, Any] | None:
    """The lines of a finding as its fix has them; None where the fix changes other lines, or its text cannot be shown.

    Several suggestions of a diagnostic are alternatives, so that one has to be the whole fix. It is of whole lines:
    of columns, reviewdog takes no notice on some forges, and would put a single number in the place of a line.
    """
    at, edits = finding.location, () if finding.fix is None else finding.fix.edits
    if not edits or at.line is None:
        return None
    lines, end = report.sources.get(at.path, ()), at.end_line or at.line
    first, last = min(edit.line for edit in edits), max(edit.end_line for edit in edits)
    if any(edit.path != at.path for edit in edits) or not at.line <= first <= last <= min(end, len(lines)):
        return None
    if sum(map(len, lines[first - 1 : last])) > _LONGEST_SUGGESTION:  # a file may be one line, of many findings
        return None
    parts, done = [], (first, 1)
    for edit in sorted(edits, key=lambda edit: (edit.line, edit.column)):
        parts += [_between(lines, done, (edit.line, edit.column)), edit.text.replace("\r\n", "\n")]
        done = edit.end_line, edit.end_column
    text = "".join(parts) + lines[last - 1][done[1] - 1 :]
    if not is_exact(text):
        return None
    return {"range": {"start": {"line": first}, "end": {"line": last}}, "text": text}


def _between(lines: tuple[str, ...], start: tuple[int, int], end: tuple[int, int]) -> str:
    """The text from one line and column to another."""
    if start[0] == end[0]:
        return lines[start[0] - 1][start[1] - 1 : end[1] - 1]
    inner = lines[start[0] : end[0] - 1]
    return "\n".join([lines[start[0] - 1][start[1] - 1 :], *inner, lines[end[0] - 1][: end[1] - 1]])


def _location(at: Location, report: Report) -> dict[str, Any]:
    location: dict[str, Any] = {"path": clean_path(at.path)}
    if at.line is None:
        return location
    lines = report.sources.get(at.path, ())
    location["range"] = {"start": _position(at.line, at.column, lines)}
    if at.end_line is not None and at.end_column is not None and at.column is not None:
        location["range"]["end"] = _position(at.end_line, at.end_column, lines)
    return location


def _position(line: int, column: int | None, lines: tuple[str, ...]) -> dict[str, int]:
    """Reviewdog counts columns in bytes of UTF-8; where the line is not known they are left as they are."""
    position = {"line": line}
    if column is not None:
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        if not text.isascii():
            before = text[: column - 1]
            column = len(before.encode("utf-8", "replace")) + 1 + max(column - 1 - len(before), 0)
        position["column"] = column
    return position


REPORTER = Reporter(render=render, edits=True)
