"""Findings and advice on the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from convlint.files.safe import clean
from convlint.model.estimates import PassEstimate
from convlint.model.grouping import grouped
from convlint.model.layer import Pass
from convlint.model.report import SEVERITIES, Finding, Report
from convlint.reporters import words
from convlint.reporters.causes import Cause, ranked, saving
from convlint.reporters.page.tiles import Drawing, drawing, pass_shown, shows_tiles, shows_waves

_Key = tuple[str, str, str]  # model, path, name


# What the template asks of a finding; texts are plain, and it escapes them.
ASKED: Mapping[str, Callable[..., str]] = {
    "advice": words.advice, "alternatives": words.alternatives, "behind": words.behind, "clean": clean,
    "layer_of": words.layer_of, "lost": words.lost, "origin": words.origin, "page_of": words.page_of,
    "place_of": words.place_of,
}  # fmt: skip


class FindingItem(Struct, frozen=True, kw_only=True):
    """A finding as the page shows it."""

    number: int
    finding: Finding
    code: str
    name: str
    gpu: str
    layers: tuple[int, ...]
    named: bool  # the message names the layers
    url: str  # of the document that the rule is from
    repeats: bool  # a finding of the same rule and GPU stands above, with the same reasons
    tiles: Drawing | None = None  # of one of the layers, where the finding is about tiles or waves
    tiles_of: str = ""

    @property
    def severity(self) -> str:
        """The severity of the finding."""
        return self.finding.severity

    @property
    def advises(self) -> bool:
        """Whether it is an error or a warning that has a fix."""
        return self.finding.fix is not None and self.severity != "info"


def items(report: Report) -> list[FindingItem]:
    """All findings in the order of the page: errors first, and of one severity those that cost most."""
    layers = enumerate(entry.layer for entry in report.layers)
    numbers = grouped(((layer.model, layer.path, layer.name), number) for number, layer in layers)  # in the report
    ordered = sorted(report.findings, key=lambda item: (SEVERITIES.index(item.severity), -(item.lost_us or 0.0)))
    seen: set[tuple[str, str | None]] = set()  # of each GPU by itself, since the page shows one at a time
    result = []
    for number, finding in enumerate(ordered):
        code = finding.rule.code
        repeats = (code, finding.gpu) in seen or (code, None) in seen
        result.append(_item(number, finding, numbers, report, repeats=repeats))
        seen.add((code, finding.gpu))
    return result


def by_layer(all_items: list[FindingItem]) -> dict[int, tuple[int, ...]]:
    """The numbers of the findings of each layer."""
    of = grouped((layer, item.number) for item in all_items for layer in item.layers)
    return {layer: tuple(numbers) for layer, numbers in of.items()}


def _drawn(report: Report, finding: Finding, layers: tuple[int, ...]) -> tuple[str, Drawing | None]:
    """(name, drawing) of the layer that loses most to what the finding is about; none where layers share a name."""
    names = {report.layers[number].layer.name for number in layers}
    if not shows_tiles(finding.rule) or len(names) < len(layers):
        return "", None
    gpu = finding.gpu or next(iter(report.targets), "")
    candidates: list[tuple[float, int, PassEstimate, Pass]] = []
    for number in layers:
        entry = report.layers[number]
        estimate = entry.estimates.get(gpu)
        which = pass_shown(finding, estimate) if estimate is not None else None
        if estimate is not None and which is not None:
            of_pass = estimate.passes[which]
            lost_us = of_pass.lost_to_tiles_us if finding.rule.loss == "tile" else of_pass.lost_to_waves_us
            candidates.append((lost_us * entry.layer.calls, number, of_pass, which))
    if not candidates:
        return "", None
    _, number, of_pass, which = max(candidates, key=lambda candidate: candidate[0])
    return clean(report.layers[number].layer.name), drawing(of_pass, which, waves=shows_waves(finding.rule))


def _item(
    number: int, finding: Finding, numbers: Mapping[_Key, list[int]], report: Report, *, repeats: bool
) -> FindingItem:
    rule, at = finding.rule, finding.location
    names = finding.layers or ((finding.layer,) if finding.layer is not None else ())
    # in network order; of several layers of one name, all
    layers = tuple(sorted(row for name in dict.fromkeys(names) for row in numbers.get((at.model, at.path, name), ())))
    tiles_of, tiles = _drawn(report, finding, layers)
    return FindingItem(
        number=number,
        finding=finding,
        code=clean(rule.code),
        name=clean(rule.name),
        gpu=clean(finding.gpu) if finding.gpu is not None else "",
        layers=layers,
        named=words.named_in(finding),
        url=words.DOCUMENT_URLS.get(rule.source.document, ""),
        repeats=repeats,
        tiles=tiles,
        tiles_of=tiles_of,
    )


_ERRORS = 5  # among what to do first; the findings have all


class FirstStep(Struct, frozen=True, kw_only=True):
    """One change to make first, for all layers and targets that it fixes. Texts are plain."""

    number: int  # of the finding that speaks for all
    severity: str
    change: str
    saves: tuple[tuple[str, str], ...]  # GPU, what it saves there; without a GPU where there is one target
    rule: str
    layers: tuple[int, ...]


def first_steps(report: Report, all_items: Sequence[FindingItem]) -> tuple[FirstStep, ...]:
    """The errors, and what saves most."""
    numbers = {id(item.finding): item for item in all_items}
    of = ranked(report)
    return tuple(
        _first_step(cause, [numbers[id(finding)] for finding in cause.findings], report.targets)
        for cause in (*of.errors[:_ERRORS], *of.first)
    )


def _first_step(cause: Cause, items: Sequence[FindingItem], targets: Sequence[str]) -> FirstStep:
    gpus: Sequence[str | None] = targets or (None,)
    saves = [(gpu, saving(cause, gpu, with_share=len(gpus) == 1)) for gpu in gpus]
    return FirstStep(
        number=items[0].number,
        severity=cause.severity,
        change=cause.change,
        saves=tuple((clean(gpu) if gpu and len(gpus) > 1 else "", text) for gpu, text in saves if text),
        rule=f"{clean(cause.rule.code)} {clean(cause.rule.name)}",
        layers=tuple(sorted({layer for item in items for layer in item.layers})),
    )
