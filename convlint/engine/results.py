"""What the check of one network found, and one report on all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from msgspec import Struct, field

from convlint import __version__
from convlint.gpus.calibration import CalibrationUse, merged
from convlint.model.layer import MODES, Mode
from convlint.model.source import SourceReport
from convlint.report import (
    SEVERITIES,
    Finding,
    InputError,
    LayerReport,
    LayerTimes,
    NetworkReport,
    Report,
    Skipped,
    Suppressed,
    Total,
)
from convlint.rulebook.book import Rulebook


class NetworkResult(Struct, frozen=True, kw_only=True):
    """What the check of one network found."""

    path: str
    labels: tuple[str, ...]
    mode: Mode
    layers: tuple[LayerReport, ...]
    findings: tuple[Finding, ...]
    skipped: tuple[Skipped, ...]
    suppressed: tuple[Suppressed, ...] = ()
    until: date | None = None  # the last day on which no comment that silences something has expired
    networks: tuple[NetworkReport, ...] = ()  # this one, on each target
    calibrations: tuple[CalibrationUse, ...] = ()
    fixable: int = 0  # findings that --fix would mend, and
    fixable_unsafe: int = 0  # how many more with --unsafe-fixes
    weights_only: bool = False  # as `Network` has it
    source_lines: tuple[str, ...] | None = None
    code_lines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of the user's modules, by path
    source: SourceReport | None = None  # of Python that was read and not run; nothing of it has a time, or a target

    @property
    def silenced(self) -> frozenset[tuple[str, str | None]]:
        """The rules, by code, that the user silenced, each with the layer."""
        return frozenset((entry.finding.rule.code, entry.finding.layer) for entry in self.suppressed)


def assemble(results: Sequence[NetworkResult], errors: Iterable[InputError], rulebook: Rulebook, files: int) -> Report:
    """One report on all inputs; the result does not depend on the order in which they were checked."""
    timed = [result for result in results if result.source is None]
    mode: Mode = next((result.mode for result in timed or results), "training")
    findings = [finding for result in results for finding in result.findings]
    targets = tuple(dict.fromkeys(label for result in results for label in result.labels))
    return Report(
        version=__version__,
        targets=targets,
        mode=mode,
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
        networks=tuple(network for result in results for network in result.networks),
        calibrations=merged(use for result in results for use in result.calibrations),
        fixable=sum(result.fixable for result in results),
        fixable_unsafe=sum(result.fixable_unsafe for result in results),
        source=_source([result.source for result in results if result.source is not None]),
        total=_total(mode, [(result, result.labels[0]) for result in timed if result.mode == mode and result.labels]),
        totals=tuple(
            total
            for label in targets
            for each in MODES
            if (total := _total(each, [(r, label) for r in timed if label in r.labels and r.mode == each])) is not None
        ),
    )


def _source(parts: Sequence[SourceReport]) -> SourceReport | None:
    """What was read of all Python."""
    if not parts:
        return None
    return SourceReport(
        files=tuple(path for part in parts for path in part.files),
        layers=tuple(layer for part in parts for layer in part.layers),
        given=sum(part.given for part in parts),
        constructions=sum(part.constructions for part in parts),
        known=sum(part.known for part in parts),
        programs=sum(part.programs for part in parts),
        unread=tuple(place for part in parts for place in part.unread),
        unread_files={path: why for part in parts for path, why in part.unread_files.items()},
        unread_cells=tuple(cell for part in parts for cell in part.unread_cells),
    )


def _total(mode: Mode, results: Sequence[tuple[NetworkResult, str]]) -> Total | None:
    """The sums over these inputs, each on the target beside it; None where there is none."""
    if not results:
        return None
    whole = sum_of([entry.times.get(label) for result, label in results for entry in result.layers])
    return Total(gpu=results[0][1], mode=mode, times=whole)


def sum_of(times: Sequence[LayerTimes | None]) -> LayerTimes | None:
    """The times of several layers together; None where one is not known, or there is none."""
    known = [each for each in times if each is not None]
    if not known or len(known) < len(times):
        return None
    fixed = [each.after_fix_us for each in known if each.after_fix_us is not None]
    return LayerTimes(
        time_us=sum(each.time_us for each in known),
        after_us=sum(each.after_us for each in known),
        ideal_us=sum(each.ideal_us for each in known),
        after_fix_us=sum(fixed) if len(fixed) == len(known) else None,
    )


def _rank(finding: Finding) -> tuple[int, float, str, int, int]:
    """The gravest first; of equals what loses most, then by place."""
    at = finding.location
    return SEVERITIES.index(finding.severity), -(finding.lost_us or 0.0), at.path, at.line or 0, at.column or 0
