"""The findings of the page: the gravest first, each with its price, its fix and the layers that it is about."""

from __future__ import annotations

from msgspec import Struct

from convlint.estimate import PassEstimate
from convlint.files.safe import clean
from convlint.model.layer import Pass
from convlint.report import Finding, Report
from convlint.reporters.addresses import page_of
from convlint.reporters.page.numbering import Numbers
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
    place_of,
)


class Item(Struct, frozen=True, kw_only=True):
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
    finding: Finding
    tiles: Drawing | None = None  # of one of the layers, where the finding is about tiles or waves
    tiles_of: str = ""


def items(report: Report) -> list[Item]:
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


def by_layer(found: list[Item]) -> dict[int, tuple[int, ...]]:
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


def _item(number: int, finding: Finding, numbers: Numbers, report: Report, *, repeats: bool) -> Item:
    rule = finding.rule
    layers = numbers.of(finding)
    tiles_of, tiles = _drawn(report, finding, layers)
    return Item(
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
        finding=finding,
        tiles=tiles,
        tiles_of=tiles_of,
    )
