"""Which findings count, the exit code that follows, and when a check that read everything is still incomplete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from convlint.engine.findings import NetworkResult
from convlint.facts.network import shortened
from convlint.facts.predicted import lacking_for_time, missing_sizes
from convlint.files.languages import plural
from convlint.model.errors import UsageError
from convlint.model.report import SEVERITIES, FailOn, Finding, InputError, LayerReport, Report, Severity
from convlint.model.source import SourceReport
from convlint.rulebook.book import Rulebook

if TYPE_CHECKING:
    from convlint.config.keys import PathPattern


class Exemption(Struct, frozen=True, kw_only=True):
    """Rules that the config silences in the files or layers that match a pattern."""

    codes: frozenset[str]
    reason: str
    files: PathPattern | None = None
    layers: str | None = None

    def covers(self, finding: Finding) -> bool:
        """Whether it silences `finding`, which is of one layer or of the network, in an input that `files` match."""
        if finding.rule.code not in self.codes:
            return False
        if self.layers is None:
            return True
        from convlint.files.globs import name_expression

        return finding.layer is not None and bool(name_expression(self.layers).match(finding.layer))


class Policy(Struct, frozen=True, kw_only=True):
    """Rules by code, name or prefix of a code ("CL1"); "ALL" is every rule."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    base: frozenset[str] | None = None  # codes that the config selects; None: the default ones
    severities: Mapping[str, Severity] = field(default_factory=dict)
    exemptions: tuple[Exemption, ...] = ()
    fail_on: FailOn = "warning"
    min_loss: float = 0.0  # percent of the network's time
    strict: bool = False  # what could not be checked is a failure


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
        raise UsageError(f"unknown rule {key[:60]!r}{rulebook.suggestion(key)}")
    return codes


def selected(policy: Policy, rulebook: Rulebook) -> set[str]:
    """Codes of the rules that count. Raises UsageError for an unknown one."""
    codes: Iterable[str]
    if policy.select:
        codes = _union(policy.select, rulebook)
    elif policy.base is not None:
        codes = policy.base
    else:
        codes = (rule.info.code for rule in rulebook.rules if not rule.opt_in)
    return (set(codes) | _union(policy.extend_select, rulebook)) - _union(policy.ignore, rulebook)


def _union(keys: Iterable[str], rulebook: Rulebook) -> set[str]:
    return {code for key in keys for code in matching(key, rulebook)}


def severity_overrides(policy: Policy, rulebook: Rulebook) -> dict[str, Severity]:
    """Code -> the severity that the user wants. Raises UsageError for an unknown rule."""
    return {code: severity for key, severity in policy.severities.items() for code in matching(key, rulebook)}


class Selection(Struct, frozen=True, kw_only=True):
    """A policy, the codes of the rules that count by it, and the severities that the user wants, by code."""

    policy: Policy
    codes: frozenset[str]
    severities: Mapping[str, Severity]

    def of(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """The findings of these rules, at the severities that the user wants: an error too may become info."""
        return tuple(
            replace(finding, severity=self.severities[finding.rule.code])
            if finding.rule.code in self.severities
            else finding
            for finding in findings
            if finding.rule.code in self.codes
        )


def counts(finding: Finding, policy: Policy) -> bool:
    """Whether this finding alone fails the run; one that loses too little of the network's time, or step, does not."""
    if policy.fail_on == "never" or SEVERITIES.index(finding.severity) > SEVERITIES.index(policy.fail_on):
        return False
    lost = finding.lost_percent if finding.lost_percent is not None else finding.lost_step_percent
    return finding.severity == "error" or lost is None or lost >= policy.min_loss


def verdict(report: Report, *, failing: bool) -> int:
    """0 clean, 1 findings (`failing`: one of them counts), 3 incomplete, 4 a defect of convlint; the worse wins."""
    return incomplete(report.errors) or (1 if failing else 0)


def incomplete(errors: Iterable[InputError]) -> int:
    """4 for a defect of convlint, 3 where anything could not be read or resolved, 2 for wrong entries alone, 0."""
    return max((4 if error.internal else 2 if error.asked_wrong else 3 for error in errors), default=0)


_MOST_NAMED = 5  # layers, or rules


def incompleteness(result: NetworkResult, *, strict: bool) -> Iterator[InputError]:
    """Why a network was not checked completely; nothing where it was.

    Without `strict` that is so where no layer has the sizes that a time needs and no error among the findings explains
    it. Weights alone have none, and Python that is only read is no network.
    """
    if result.source is not None:
        if strict:
            yield from _unknown(result.source)
            yield from _unchecked(result)
        return
    unpriced = [entry for entry in result.layers if lacking_for_time(entry.layer)]
    if strict and unpriced:
        missing = ", ".join(dict.fromkeys(name for entry in unpriced for name in lacking_for_time(entry.layer)))
        names = shortened([entry.layer.name for entry in unpriced], _MOST_NAMED)
        yield _error(
            result,
            f"{len(unpriced)} of {plural(len(result.layers), 'layer')} not priced for want of {missing}: {names}",
            unpriced,
        )
    elif result.layers and all(missing_sizes(entry.layer) for entry in result.layers):
        first = result.layers[0].layer
        if not result.weights_only and not _is_explained(result):
            yield _error(
                result,
                f"nothing could be priced: no layer has the sizes that a time needs; {first.name} "
                f"lacks {', '.join(lacking_for_time(first))}",
                list(result.layers),
            )
    if strict:
        yield from _unchecked(result)


def _unknown(source: SourceReport) -> Iterator[InputError]:
    if unknown := source.constructions - source.known:
        path, here = _most_frequent(place.at.path for place in source.unread)
        share = f", {here} of them here" if here < unknown else ""
        yield InputError(
            path=path, message=f"unknown widths of {unknown} of {plural(source.constructions, 'convolution')}{share}"
        )


def _most_frequent(paths: Iterable[str]) -> tuple[str, int]:
    """The path that occurs most often, of several the first by name, and how often."""
    return Counter(sorted(paths)).most_common(1)[0]


def _unchecked(result: NetworkResult) -> Iterator[InputError]:
    if result.skipped:
        needs = ", ".join(dict.fromkeys(name for skip in result.skipped for name in skip.needs))
        codes = list(dict.fromkeys(skip.code for skip in result.skipped))
        path = result.path if result.source is None else _most_frequent(skip.path for skip in result.skipped)[0]
        message = f"{plural(len(codes), 'rule')} not checked for want of {needs}: {shortened(codes, _MOST_NAMED)}"
        yield InputError(path=path, message=message)


def _is_explained(result: NetworkResult) -> bool:
    """Whether an error among the findings, silenced or not, says what is wrong with layers; one on a GPU does not."""
    silenced = (entry.finding for entry in result.suppressed)
    findings = (finding for finding in (*result.findings, *silenced) if finding.layer is not None or finding.layers)
    return any(finding.severity == "error" for finding in findings)


def _error(result: NetworkResult, message: str, layers: list[LayerReport] | None = None) -> InputError:
    """At the first of the `layers`, where they have a place in the file."""
    at = layers[0].layer.locate() if layers else None
    if at is None or at.path != result.path:
        return InputError(path=result.path, message=message)
    return InputError(path=result.path, message=message, line=at.line, column=at.column)
