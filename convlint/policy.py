"""What of a report counts: selected rules, changed severities, what was silenced, and the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from convlint.errors import UsageError
from convlint.report import SEVERITIES, Finding, Report, Severity
from convlint.rulebook import Rulebook

FailOn = Literal["error", "warning", "info", "never"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Rules by code, name or prefix of a code ("CL1"); "ALL" is every rule."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    severities: Mapping[str, Severity] = field(default_factory=dict)
    fail_on: FailOn = "warning"
    min_loss: float = 0.0  # percent of the network's time


def matching(key: str, rulebook: Rulebook) -> set[str]:
    """Codes of the rules that `key` names. Raises UsageError with a suggestion."""
    key = key.strip()
    if key.upper() == "ALL":
        return {rule.info.code for rule in rulebook.rules}
    rule = rulebook.find(key)
    if rule is not None:
        return {rule.info.code}
    prefix = key.upper()
    codes = {rule.info.code for rule in rulebook.rules if len(prefix) >= 2 and rule.info.code.startswith(prefix)}
    if not codes:
        raise UsageError(f"unknown rule {key!r}{rulebook.suggestion(key)}")
    return codes


def selected(policy: Policy, rulebook: Rulebook) -> set[str]:
    """Codes of the rules that count. Raises UsageError for an unknown one."""
    default = {rule.info.code for rule in rulebook.rules if not rule.opt_in}
    codes = _union(policy.select, rulebook) if policy.select else default
    return (codes | _union(policy.extend_select, rulebook)) - _union(policy.ignore, rulebook)


def _union(keys: Iterable[str], rulebook: Rulebook) -> set[str]:
    return {code for key in keys for code in matching(key, rulebook)}


def severity_overrides(policy: Policy, rulebook: Rulebook) -> dict[str, Severity]:
    """Code -> the severity that the user wants. Raises UsageError for an unknown rule."""
    return {code: severity for key, severity in policy.severities.items() for code in matching(key, rulebook)}


def apply(report: Report, policy: Policy, rulebook: Rulebook) -> Report:
    """The report with only the selected rules' findings, at the severities that the user wants."""
    codes = selected(policy, rulebook)
    severities = severity_overrides(policy, rulebook)
    findings = tuple(
        replace(finding, severity=severities[finding.rule.code]) if finding.rule.code in severities else finding
        for finding in report.findings
        if finding.rule.code in codes
    )
    return replace(
        report, findings=findings, skipped=tuple(skip for skip in report.skipped if skip.code in codes)
    )


def counts(finding: Finding, policy: Policy) -> bool:
    """Whether this finding alone fails the run; one that loses too little of the network's time does not."""
    if policy.fail_on == "never" or SEVERITIES.index(finding.severity) > SEVERITIES.index(policy.fail_on):
        return False
    if finding.severity == "error" or finding.lost_percent is None:
        return True
    return finding.lost_percent >= policy.min_loss


def exit_code(report: Report, policy: Policy) -> int:
    """0 clean, 1 findings, 3 incomplete, 4 a defect of convlint; the worse wins."""
    if any(error.internal for error in report.errors):
        return 4
    if report.errors:
        return 3
    return 1 if any(counts(finding, policy) for finding in report.findings) else 0

