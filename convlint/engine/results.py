"""What the check of one network found, and one report on all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from convlint import __version__
from convlint.estimate import grade
from convlint.model.layer import Mode
from convlint.report import Finding, InputError, LayerReport, Report, Skipped, Total
from convlint.rulebook.book import Rulebook

Losses = Mapping[str, tuple[tuple[int, float], ...]]  # fingerprint -> (index of a layer, what it loses in us)


class NetworkResult(Struct, frozen=True, kw_only=True):
    """What the check of one network found; times in us on its first target, None where one layer's is unknown."""

    path: str
    labels: tuple[str, ...]
    mode: Mode
    layers: tuple[LayerReport, ...]
    findings: tuple[Finding, ...]
    skipped: tuple[Skipped, ...]
    time_us: float | None
    attainable_us: float | None
    losses: Losses  # of what was found: findings may be taken away or change their severity
    source_lines: tuple[str, ...] | None
    code_lines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of the user's modules, by path

    def lost_us(self, label: str) -> float:
        """What the errors and warnings left on one target lose.

        Of each layer it is the largest, since mending one flaw may mend another.
        """
        worst: dict[int, float] = {}
        for finding in self.findings:
            if finding.gpu == label and finding.severity != "info":
                for index, loss in self.losses.get(finding.fingerprint, ()):
                    worst[index] = max(loss, worst.get(index, 0.0))
        return sum(worst.values())


def assemble(results: Sequence[NetworkResult], errors: Iterable[InputError], rulebook: Rulebook, files: int) -> Report:
    """One report on all inputs; the result does not depend on the order in which they were checked."""
    times = [result.time_us for result in results]
    known = bool(times) and all(times)
    time_us = sum(time for time in times if time)
    attainable_us = sum(result.attainable_us for result in results if result.attainable_us)
    findings = [finding for result in results for finding in result.findings]
    targets = tuple(dict.fromkeys(label for result in results for label in result.labels))
    return Report(
        version=__version__,
        targets=targets,
        mode=results[0].mode if results else "training",
        files=files,
        layers=tuple(layer for result in results for layer in result.layers),
        findings=tuple(sorted(findings, key=_rank)),
        skipped=tuple(skip for result in results for skip in result.skipped),
        errors=tuple(errors),
        rules=tuple(rule.info for rule in rulebook.rules),
        sources={
            **{path: lines for result in results for path, lines in result.code_lines.items()},
            **{result.path: result.source_lines for result in results if result.source_lines},
        },
        grade=grade(attainable_us / time_us) if known else None,
        time_us=time_us if known else None,
        lost_us=sum(result.lost_us(result.labels[0]) for result in results) if known else None,
        totals=tuple(_total(results, label) for label in targets),
    )


def _total(results: Sequence[NetworkResult], label: str) -> Total:
    """The sums over the inputs that are checked on this target."""
    own = [result for result in results if label in result.labels]
    estimates = [entry.estimates[label] for result in own for entry in result.layers]
    known = [estimate for estimate in estimates if estimate is not None]
    time_us = sum(estimate.time_us for estimate in known)
    if len(known) < len(estimates) or not time_us:
        return Total(gpu=label)
    return Total(
        gpu=label,
        grade=grade(sum(estimate.attainable_us for estimate in known) / time_us),
        time_us=time_us,
        lost_us=sum(result.lost_us(label) for result in own),
    )


def _rank(finding: Finding) -> tuple[int, float, int, str, int, int]:
    """Errors without a price first, then by loss, then the rest by severity and place."""
    severity = ("error", "warning", "info").index(finding.severity)
    priced = finding.lost_us is not None
    group = 0 if severity == 0 and not priced else 1 if priced else 2
    return (
        group,
        -(finding.lost_us or 0.0),
        severity,
        finding.location.path,
        finding.location.line or 0,
        finding.location.column or 0,
    )
