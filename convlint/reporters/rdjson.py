"""Reviewdog's diagnostic format, which it turns into review comments on most forges."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from convlint.files.safe import clean, clean_path
from convlint.model.location import Location
from convlint.report import Report, Severity
from convlint.reporters import Reporter, Style
from convlint.reporters.words import DOCUMENT_URLS, advice, lost

_SEVERITIES: Mapping[Severity, str] = {"error": "ERROR", "warning": "WARNING", "info": "INFO"}


def render(report: Report, style: Style) -> str:
    """The findings and what could not be read, as one DiagnosticResult."""
    several = len(report.targets) > 1
    diagnostics: list[dict[str, Any]] = []
    for error in report.errors:
        at = Location(path=error.path, line=error.line, column=error.column)
        message = clean(error.message)
        diagnostics.append({"message": message, "location": _location(at, report), "severity": "ERROR"})
    for finding in report.findings:
        layer = f"{clean(finding.layer)}: " if finding.layer is not None else ""
        gpu = f" on {clean(finding.gpu)}" if several and finding.gpu is not None else ""
        lines = [f"{layer}{clean(finding.message)}{gpu}"]
        if price := lost(finding):
            lines.append(f"Lost: {price}")
        if finding.fix is not None:
            lines.append(f"Fix: {advice(finding.fix)}")
        code = {"value": f"{clean(finding.rule.code)} {clean(finding.rule.name)}"}
        if url := DOCUMENT_URLS.get(finding.rule.source.document):
            code["url"] = url
        diagnostics.append(
            {
                "message": "\n".join(lines),
                "location": _location(finding.location, report),
                "severity": _SEVERITIES[finding.severity],
                "code": code,
            }
        )
    document = {"source": {"name": "convlint"}, "diagnostics": diagnostics}
    return json.dumps(document, ensure_ascii=not style.unicode) + "\n"


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


REPORTER = Reporter(render=render)
