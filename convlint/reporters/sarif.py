"""SARIF 2.1.0 as GitHub code scanning accepts it: every rule described, relative URIs, positions from 1."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from convlint.files.languages import plural
from convlint.files.repository import from_checkout
from convlint.files.safe import clean, clean_path, number
from convlint.model.report import Finding, Fix, InputError, Report, RuleInfo, Severity, Suppressed
from convlint.reporters import Reporter, Style
from convlint.reporters.summary import unread_cells, unread_files
from convlint.reporters.words import DOCUMENT_URLS, HOME, advice, finding_text, gravest_first, origin, page_of

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
MOST_RESULTS = 25_000  # GitHub refuses a run with more
_LONGEST_DESCRIPTION = 1024  # GitHub cuts short and full descriptions there
_LONGEST_NAME = 255
_BASE = "%SRCROOT%"
_LEVELS: Mapping[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
_PROBLEMS: Mapping[Severity, str] = {"error": "error", "warning": "warning", "info": "recommendation"}
_KINDS = {"comment": "inSource", "config": "external", "baseline": "external"}


def render(report: Report, style: Style) -> str:
    """The report as one SARIF run; beyond 25,000 results the least severe are left out, and a note says so."""
    rules = _rules(report)
    index = {rule.code: position for position, rule in enumerate(rules)}
    several_targets = len(report.targets) > 1
    entries: list[tuple[Finding, Suppressed | None]] = [(finding, None) for finding in gravest_first(report.findings)]
    entries += [(entry.finding, entry) for entry in report.suppressed]
    kept, left_out = entries[:MOST_RESULTS], len(entries) - MOST_RESULTS
    notifications = [_notification(error, "error") for error in report.errors]
    notifications += [_notification(error, "warning") for error in _unread(report)]
    if left_out > 0:
        text = f"{plural(left_out, 'result')} left out: code scanning takes {MOST_RESULTS} at most"
        notifications.append({"level": "warning", "message": {"text": text}})
    run = {
        "tool": {
            "driver": {
                "name": "convlint",
                "version": report.version,
                "informationUri": HOME,
                "rules": [_rule(rule) for rule in rules],
            }
        },
        "invocations": [{"executionSuccessful": report.complete, "toolExecutionNotifications": notifications}],
        "originalUriBaseIds": {
            _BASE: {"description": {"text": "The root of the checkout, or the folder that convlint was run in"}}
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, entry, index[finding.rule.code], several_targets) for finding, entry in kept],
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, ensure_ascii=not style.unicode, allow_nan=False) + "\n"


def _rules(report: Report) -> list[RuleInfo]:
    """Every rule that was loaded, and any other that a finding names; one per code."""
    rules = {rule.code: rule for rule in report.rules}
    for finding in (*report.findings, *(entry.finding for entry in report.suppressed)):
        rules.setdefault(finding.rule.code, finding.rule)
    return list(rules.values())


def _rule(rule: RuleInfo) -> dict[str, Any]:
    title = clean(rule.title).strip() or clean(rule.name).strip() or clean(rule.code)
    why = clean(rule.rationale).strip() or title
    result: dict[str, Any] = {
        "id": clean(rule.code),
        "name": clean(rule.name)[:_LONGEST_NAME],
        "shortDescription": {"text": title[:_LONGEST_DESCRIPTION]},
        "fullDescription": {"text": why[:_LONGEST_DESCRIPTION]},
        "help": {"text": f"{why}\n\nSource: {origin(rule)}", "markdown": f"{_prose(why)}\n\nSource: {_linked(rule)}"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {
            "tags": ["performance", "convolution", "gpu"],
            "precision": "high",
            "problem.severity": _PROBLEMS[rule.severity],
        },
    }
    if address := page_of(rule) or DOCUMENT_URLS.get(rule.source.document):
        result["helpUri"] = address
    return result


def _linked(rule: RuleInfo) -> str:
    url = DOCUMENT_URLS.get(rule.source.document)
    return f"[{_prose(origin(rule))}]({url})" if url else _prose(origin(rule))


def _prose(text: str) -> str:
    """Markdown that can emphasise, but neither link, mention nor hold HTML: rules may be other people's."""
    return re.sub(r"[\[\]<>&@!]", lambda match: f"&#{ord(match.group())};", text)


def _result(finding: Finding, entry: Suppressed | None, rule_index: int, several_targets: bool) -> dict[str, Any]:
    place: dict[str, Any] = {"physicalLocation": _physical(finding)}
    if finding.layer is not None:
        place["logicalLocations"] = [{"name": clean(finding.layer), "kind": "member"}]
    result: dict[str, Any] = {
        "ruleId": clean(finding.rule.code),
        "ruleIndex": rule_index,
        "level": _LEVELS[finding.severity],
        "message": {"text": finding_text(finding, several_targets).replace("](", "] (")},  # else it would be a link
        "locations": [place],
        "partialFingerprints": {"convlint/v1": clean(finding.fingerprint)},
        "properties": {
            "gpu": None if finding.gpu is None else clean(finding.gpu),
            "advised": finding.advised,
            "lostUs": number(finding.lost_us),
            "lostAloneUs": number(finding.lost_alone_us),
            "lostCapacityUs": number(finding.lost_capacity_us),
            "lostPercent": number(finding.lost_percent),
            "paysWith": [clean(code) for code in finding.pays_with],
        },
    }
    if entry is None and finding.fix is not None and finding.fix.edits:
        result["fixes"] = [_fix(finding.fix)]
    if entry is not None:
        result["suppressions"] = [{"kind": _KINDS[entry.by], "justification": clean(entry.reason)}]
    return result


def _fix(fix: Fix) -> dict[str, Any]:
    """The edits, file by file."""
    changes: dict[str, list[dict[str, Any]]] = {}
    for edit in fix.edits:
        region = {
            "startLine": edit.line,
            "startColumn": edit.column,
            "endLine": edit.end_line,
            "endColumn": edit.end_column,
        }
        replacement: dict[str, Any] = {"deletedRegion": region}
        if edit.text:
            replacement["insertedContent"] = {"text": edit.text}
        changes.setdefault(edit.path, []).append(replacement)
    return {
        "description": {"text": advice(fix)},
        "artifactChanges": [
            {"artifactLocation": _artifact(path), "replacements": replacements}
            for path, replacements in changes.items()
        ],
        "properties": {"safety": fix.edits_safety},
    }


def _physical(finding: Finding) -> dict[str, Any]:
    at = finding.location
    region: dict[str, int] = {"startLine": max(at.line or 1, 1)}
    if at.line is not None and at.column is not None:
        region["startColumn"] = max(at.column, 1)
        start = (region["startLine"], region["startColumn"])
        if at.end_line is not None and at.end_column is not None and (at.end_line, at.end_column) >= start:
            region["endLine"], region["endColumn"] = at.end_line, at.end_column
    return {"artifactLocation": _artifact(at.path), "region": region}


def _artifact(path: str) -> dict[str, str]:
    """A relative path under the base, percent-encoded with forward slashes; an absolute one as a file URI."""
    path = clean_path(from_checkout(path, "GITHUB_WORKSPACE")).replace("\\", "/")
    if path.startswith("/"):
        return {"uri": "file://" + quote(path)}
    if path[1:3] == ":/":
        return {"uri": "file:///" + quote(path)}
    return {"uri": quote(path) or ".", "uriBaseId": _BASE}


def _unread(report: Report) -> list[InputError]:
    """What could not be read of a folder's code, which is no error."""
    files, cells = sorted(unread_files(report).items()), unread_cells(report)
    return [
        *(InputError(path=path, message=file.why, line=file.line, column=file.column) for path, file in files),
        *(InputError(path=cell.at.path, message=cell.message, line=cell.at.line) for cell in cells),
    ]


def _notification(error: InputError, level: str) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": _artifact(error.path)}
    if error.line is not None:
        physical["region"] = {"startLine": max(error.line, 1)}
        if error.column is not None:
            physical["region"]["startColumn"] = max(error.column, 1)
    message = clean(error.message) or "could not be read"
    return {"level": level, "message": {"text": message}, "locations": [{"physicalLocation": physical}]}


REPORTER = Reporter(render=render, edits=True)
