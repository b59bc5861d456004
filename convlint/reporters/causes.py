"""Findings by their cause: one entry for all layers and targets with the same fix."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from convlint.files.languages import duration, say
from convlint.files.safe import clean, clean_path
from convlint.model.grouping import grouped
from convlint.model.report import SEVERITIES, Finding, Report, RuleInfo, Severity
from convlint.reporters.words import NOTHING_US, asks_for_nothing, edit, place_of, totals, two_digits

_NAME = "\x00"  # stands for a layer in what several findings share
_SEVERAL = re.compile(f"{_NAME}(?:(?:, | and |，|、|和){_NAME})+")
_FIRST = 5  # causes with what to do and what it gives
_LEAST_BESIDE = 0.01  # of the time: what warns from there on where it is advised
_ROUNDED = 1.02  # a sum that is larger by less is the same to a reader
_PLACES = 2  # that are named of one cause


class Cause(Struct, frozen=True, kw_only=True):
    """Findings of one rule with one fix, the gravest and dearest first.

    `most_us` has, by target, the most that less work for the GPU can save before the host sets the pace.
    """

    findings: tuple[Finding, ...]
    most_us: Mapping[str | None, float] = {}

    @property
    def first(self) -> Finding:
        """The finding that speaks for all."""
        return self.findings[0]

    @property
    def rule(self) -> RuleInfo:
        """The rule of all findings."""
        return self.first.rule

    @property
    def severity(self) -> Severity:
        """The severity of the gravest finding."""
        return self.first.severity

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers of all findings, in order of appearance."""
        by_finding = (finding.layers or filter(None, (finding.layer,)) for finding in self.findings)
        return tuple(dict.fromkeys(name for names in by_finding for name in names))

    def saved_us(self, gpu: str | None) -> float | None:
        """What the change saves on a target, of the convolutions or of the step; None where there is no price."""
        saved = self._uncapped_us(gpu)
        if saved is None or any(finding.lost_us is None for finding in self._on(gpu)):
            return saved  # by the step, the host included
        return min(saved, self.most_us.get(gpu, saved))

    def _on(self, gpu: str | None) -> list[Finding]:
        return [finding for finding in self.findings if finding.gpu in (gpu, None)]

    def _uncapped_us(self, gpu: str | None) -> float | None:
        known = [finding.price_us for finding in self._on(gpu) if finding.price_us is not None]
        return sum(known) if known else None

    def share(self, gpu: str | None) -> float | None:
        """The time saved on a target, in percent of the step where that is known, else of the convolutions."""
        shares = [
            finding.lost_percent if finding.lost_step_percent is None else finding.lost_step_percent
            for finding in self._on(gpu)
        ]
        known = [share for share in shares if share is not None]
        saved, uncapped = self.saved_us(gpu), self._uncapped_us(gpu)
        return sum(known) * (saved / uncapped if saved is not None and uncapped else 1.0) if known else None

    @property
    def pays(self) -> bool:
        """Whether the change saves time on some target."""
        gpus = {finding.gpu for finding in self.findings}
        return any((self.saved_us(gpu) or 0.0) >= NOTHING_US for gpu in gpus)

    @property
    def beside_us(self) -> float:
        """The time that fixes save which are not advised, but for those that set a batch."""
        fixes = (finding.fix for finding in self.findings if finding.fix is not None and "N" not in finding.fix.set)
        return sum(max(0.0, -(fix.time_change_us or 0.0)) for fix in fixes if not fix.advised)

    @property
    def alike(self) -> bool:
        """Whether all findings have the same message, but for names of layers."""
        return len({_shared(finding.message, finding) for finding in self.findings}) == 1

    @property
    def what(self) -> str:
        """What is wrong: the message that all have but for names of layers, else the rule's title."""
        return clean(self.first.message if self.alike else self.rule.title)

    @property
    def change(self) -> str:
        """What to change: the fix, in which no layer is named where several have another; else what is wrong."""
        fix = self.first.fix
        if fix is None:
            return self.what
        if len({finding.fix.describe for finding in self.findings if finding.fix is not None}) > 1:
            text = _SEVERAL.sub(say("the neighbouring layers"), _shared(fix.describe, self.first))
            fix = replace(fix, describe=text.replace(_NAME, say("the neighbouring layer")))
        return edit(fix)

    @property
    def others(self) -> tuple[Finding, ...]:
        """The dearest finding of each other layer and place."""
        by_place: dict[tuple[str | None, str, int | None], Finding] = {}
        for finding in self.findings:
            by_place.setdefault((finding.layer, finding.location.path, finding.location.line), finding)
        return tuple(by_place.values())[1:]

    @property
    def where(self) -> str:
        """The places, the first ones by name."""
        places = list(dict.fromkeys(place_of(finding.location) for finding in self.findings))
        file = f"{clean_path(self.first.location.path)}:"
        names = [text.removeprefix(file[:-1]) if n and text.startswith(file) else text for n, text in enumerate(places)]
        text = say(", ").join(names[:_PLACES])
        more = len(places) - _PLACES
        return say("{names} and {count} more", names=text, count=more) if more > 0 else text


class Ranked(Struct, frozen=True):
    """All causes in the order in which to act on them."""

    errors: Sequence[Cause]
    first: Sequence[Cause]  # the warnings that save most
    others: Sequence[Cause]  # all further warnings
    infos: Sequence[Cause]
    beside: Sequence[Cause]  # of the infos, those whose change saves much all the same


def ranked(report: Report) -> Ranked:
    """The causes by severity; of warnings those that save most come first."""
    total_us: dict[str, float] = {}
    for total in totals(report):
        time_us = total.step_us or total.time_us
        total_us[total.gpu] = total_us.get(total.gpu, 0.0) + (time_us or 0.0)

    def largest_part(cause: Cause) -> float:
        """The largest share of a target's total time that the cause saves."""
        return max((saved / us for gpu, us in total_us.items() if us and (saved := cause.saved_us(gpu))), default=0.0)

    ordered = sorted(causes(report), key=lambda cause: -largest_part(cause))

    def saves_much(cause: Cause) -> bool:
        """Whether an info of a rule without a price saves a good part of the time of the only target."""
        free = cause.rule.loss == "none"
        return free and len(total_us) == 1 and cause.beside_us >= _LEAST_BESIDE * sum(total_us.values()) > 0

    errors, warnings, infos = ([cause for cause in ordered if cause.severity == severity] for severity in SEVERITIES)
    first = [cause for cause in warnings if cause.pays][:_FIRST]
    others = [cause for cause in warnings if cause not in first]
    return Ranked(errors, first, others, infos, [cause for cause in infos if saves_much(cause)])


def overlap(report: Report, leading: Sequence[Cause]) -> bool:
    """Whether the causes, added up, save more of a target's step than all advice together."""
    for total in totals(report):
        now, after = total.step_us, total.step_after_us
        added = sum(cause.saved_us(total.gpu) or 0.0 for cause in leading)
        if now is not None and after is not None and added > (now - after) * _ROUNDED:
            return True
    return False


def saving(cause: Cause, gpu: str | None, *, with_share: bool) -> str:
    """`9.39 ms, 19 %`; empty where the target has no such finding, or no price."""
    saved, share = cause.saved_us(gpu), cause.share(gpu)
    if saved is None:
        return ""
    return duration(saved) + (f", {two_digits(share)} %" if with_share and share is not None else "")


def causes(report: Report) -> list[Cause]:
    """All causes, the gravest first, without findings that ask for nothing."""
    modes = {network.path: network.mode for network in report.networks}
    groups = grouped(
        ((modes.get(finding.location.path, ""), *_key(finding, report)), finding)
        for finding in report.findings
        if not asks_for_nothing(finding)
    )
    for group in groups.values():
        group.sort(key=lambda finding: (SEVERITIES.index(finding.severity), -(finding.lost_us or 0.0)))
    most_us = _most_us(report)
    result = [Cause(findings=tuple(group), most_us=most_us) for group in groups.values()]
    return sorted(result, key=lambda cause: SEVERITIES.index(cause.severity))


def _most_us(report: Report) -> dict[str | None, float]:
    """By target with only one network, the time that its step can lose before it waits for its host."""
    most_us: dict[str | None, float] = {}
    for total in totals(report):
        if len(total.networks) == 1 and len(report.networks) <= len(report.targets):
            step_us, host_us = total.step_us, total.host_us
            if step_us is not None and host_us is not None:
                most_us[total.gpu] = max(0.0, step_us - host_us)
    return most_us


def _key(finding: Finding, report: Report) -> tuple[str, ...]:
    """What findings of one cause share: the rule and what to change, whichever layer is named in it."""
    at = finding.location
    own = finding.rule.code, _shared(finding.message if finding.fix is None else finding.fix.describe, finding)
    if report.source is None or at.path not in report.source.files:
        return own
    return (*own, at.path, str(at.line), str(at.column))  # each place is an edit of its own


def _shared(text: str, finding: Finding) -> str:
    """The text without the names of its layers, but for those that are numbers, as sizes are."""
    names = sorted({*finding.layers, finding.layer or ""} - {""}, key=len, reverse=True)
    for name in names:
        if name in text and not name.isdigit():
            text = re.sub(rf"(?<![\w.=]){re.escape(name)}(?![\w.]*\w)", _NAME, text)
    return text
