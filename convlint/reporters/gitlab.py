"""GitLab's code quality report: a JSON list of violations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from convlint.files.repository import from_checkout
from convlint.files.safe import clean, clean_path
from convlint.model.report import Report, Severity
from convlint.reporters import Reporter, Style
from convlint.reporters.words import advice, behind, lost, what_is_wrong

_SEVERITIES: Mapping[Severity, str] = {"error": "critical", "warning": "major", "info": "minor"}
_NOT_READ = "blocker"  # nothing in the file was checked


def render(report: Report, style: Style) -> str:
    """The findings, and what could not be read as blockers.

    Fingerprints are unique and hold no line numbers: equal ones are told apart by their order.
    """
    seen: dict[str, int] = {}
    several_targets = len(report.targets) > 1
    issues: list[dict[str, Any]] = []
    for error in report.errors:
        description = clean(error.message)
        fingerprint = _unique(seen, "not-read", error.path, description)
        issues.append(_issue(description, "not-read", fingerprint, _NOT_READ, error.path, error.line))
    for finding in report.findings:
        library = f" - library: {line}" if (line := behind(finding)) else ""
        price = f" - lost: {cost}" if (cost := lost(finding)) else ""
        fix = f" - {advice(finding.fix)}" if finding.fix is not None else ""
        rule = f"{clean(finding.rule.code)} {clean(finding.rule.name)}"
        own = finding.fingerprint or f"{finding.rule.code}\0{finding.layer}"
        fingerprint = _unique(seen, own, finding.location.path, finding.gpu or "")
        description = f"{what_is_wrong(finding, several_targets)}{library}{price}{fix}"
        severity = _SEVERITIES[finding.severity]
        issues.append(_issue(description, rule, fingerprint, severity, finding.location.path, finding.location.line))
    lines = ",\n".join(json.dumps(issue, ensure_ascii=not style.unicode, allow_nan=False) for issue in issues)
    return f"[\n{lines}\n]\n"


def _issue(description: str, name: str, fingerprint: str, severity: str, path: str, line: int | None) -> dict[str, Any]:
    return {
        "description": description,
        "check_name": name,
        "fingerprint": fingerprint,
        "severity": severity,
        "location": {"path": clean_path(from_checkout(path, "CI_PROJECT_DIR")), "lines": {"begin": max(line or 1, 1)}},
    }


def _unique(seen: dict[str, int], *parts: str) -> str:
    """A hash of the parts, and of how often they came before."""
    key = "\0".join(parts)
    ordinal = seen.get(key, 0)
    seen[key] = ordinal + 1
    return sha256(f"{key}\0{ordinal}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


REPORTER = Reporter(render=render)
