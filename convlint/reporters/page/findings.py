"""Findings and advice on the page."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from convlint.files.safe import clean
from convlint.model.estimates import PassEstimate
from convlint.model.layer import Pass
from convlint.model.report import Finding, Report
from convlint.reporters.causes import Cause, ranked, saving
from convlint.reporters.page.tiles import Drawing, drawing, pass_shown, shows_tiles, shows_waves
from convlint.reporters.words import (
    DOCUMENT_URLS,
    advice,
    alternatives,
    behind,
    edit,
    gravest_first,
    layer_of,
    lost,
    named_in,
    origin,
    page_of,
    place_of,
)

_Key = tuple[str, str, str]  # model, path, name


class Numbers:
    """The numbers of layers: their places in the report."""

    def __init__(self, report: Report) -> None:
        self._at: dict[_Key, list[int]] = {}
        for number, entry in enumerate(report.layers):
            layer = entry.layer
            self._at.setdefault((layer.model, layer.path, layer.name), []).append(number)

    def of(self, finding: Finding) -> tuple[int, ...]:
        """Those of a finding, in network order; of several layers of one name, all."""
        names = finding.layers or ((finding.layer,) if finding.layer is not None else ())
        where = finding.location.model, finding.location.path
        return tuple(sorted(number for name in dict.fromkeys(names) for number in self._at.get((*where, name), ())))


class FindingItem(Struct, frozen=True, kw_only=True):
    """A finding as the page shows it; texts are plain, and the template escapes them."""

    number: int
    severity: str
    code: str
    name: str
    message: str
    gpu: str
    layers: tuple[int, ...]
    about: str  # the layer, where the message does not name it
    place: str
    library: str
    lost: str
    lost_us: float
    fix: str
    alternatives: str
    edit: str  # the fix without what it does to the time
    no_edit: str
    why: str
    source: str
    url: str
    page: str  # of the rule, in the documentation; empty for a rule of the user's own
    repeats: bool  # a finding of the same rule and GPU stands above, with the same reasons
    advises: bool  # a fix, of more than an info
    finding: Finding
    tiles: Drawing | None = None  # of one of the layers, where the finding is about tiles or waves
    tiles_of: str = ""


def items(report: Report) -> list[FindingItem]:
    """All findings in the order of the page: errors first, and of one severity those that cost most."""
    numbers = Numbers(report)
    ordered = sorted(gravest_first(report.findings), key=_order)
    said: set[tuple[str, str | None]] = set()  # of each GPU by itself, since the page shows one at a time
    found = []
    for number, finding in enumerate(ordered):
        code = finding.rule.code
        repeats = (code, finding.gpu) in said or (code, None) in said
        found.append(_item(number, finding, numbers, report, repeats=repeats))
        said.add((code, finding.gpu))
    return found


def by_layer(found: list[FindingItem]) -> dict[int, tuple[int, ...]]:
    """The numbers of the findings of each layer."""
    of: dict[int, list[int]] = {}
    for item in found:
        for layer in item.layers:
            of.setdefault(layer, []).append(item.number)
    return {layer: tuple(numbers) for layer, numbers in of.items()}


def _order(finding: Finding) -> tuple[int, float]:
    return ("error", "warning", "info").index(finding.severity), -(finding.lost_us or 0.0)


def _drawn(report: Report, finding: Finding, layers: tuple[int, ...]) -> tuple[str, Drawing | None]:
    """The tiles or waves of the layer that loses most to what the finding is about; of two of one name, of none."""
    names = {report.layers[number].layer.name for number in layers}
    if not shows_tiles(finding.rule) or len(names) < len(layers):
        return "", None
    gpu = finding.gpu or next(iter(report.targets), "")
    best: tuple[float, int, PassEstimate, Pass] | None = None
    for number in layers:
        entry = report.layers[number]
        estimate = entry.estimates.get(gpu)
        which = pass_shown(finding, estimate) if estimate is not None else None
        if estimate is None or which is None:
            continue
        one = estimate.passes[which]
        lost = (one.lost_to_tiles_us if finding.rule.loss == "tile" else one.lost_to_waves_us) * entry.layer.calls
        if best is None or lost > best[0]:
            best = lost, number, one, which
    return (
        ("", None)
        if best is None
        else (clean(report.layers[best[1]].layer.name), drawing(best[2], best[3], waves=shows_waves(finding.rule)))
    )


def _item(number: int, finding: Finding, numbers: Numbers, report: Report, *, repeats: bool) -> FindingItem:
    rule = finding.rule
    layers = numbers.of(finding)
    tiles_of, tiles = _drawn(report, finding, layers)
    return FindingItem(
        number=number,
        severity=finding.severity,
        code=clean(rule.code),
        name=clean(rule.name),
        message=clean(finding.message),
        gpu=clean(finding.gpu) if finding.gpu is not None else "",
        layers=layers,
        about="" if named_in(finding) else layer_of(finding),
        place=place_of(finding.location),
        library=behind(finding),
        lost=lost(finding),
        lost_us=finding.lost_us or 0.0,
        fix=advice(finding.fix) if finding.fix is not None else "",
        edit=edit(finding.fix) if finding.fix is not None else "",
        alternatives=alternatives(finding),
        no_edit=clean(finding.fix.no_edit) if finding.fix is not None else "",
        why=clean(rule.rationale),
        source=origin(rule),
        url=DOCUMENT_URLS.get(rule.source.document, ""),
        page=page_of(rule),
        repeats=repeats,
        advises=finding.fix is not None and finding.severity != "info",
        finding=finding,
        tiles=tiles,
        tiles_of=tiles_of,
    )


_ERRORS = 5  # among what to do first; the findings have all


class FirstStep(Struct, frozen=True, kw_only=True):
    """One thing to do first, as `check` has it: for all layers and targets that it mends. Texts are plain."""

    number: int  # of the finding that speaks for all
    severity: str
    change: str
    saves: tuple[tuple[str, str], ...]  # GPU, what it saves there; without a GPU where there is one target
    rule: str
    layers: tuple[int, ...]


def first_steps(report: Report, found: Sequence[FindingItem]) -> tuple[FirstStep, ...]:
    """The errors, and what saves most."""
    numbers = {id(item.finding): item for item in found}
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
