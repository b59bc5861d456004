"""Findings and advice on the page."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from convlint.files.languages import duration, say
from convlint.files.safe import clean
from convlint.model.estimates import PassEstimate
from convlint.model.layer import Pass
from convlint.model.report import SEVERITIES, Finding, Report
from convlint.reporters.page.tiles import Drawing, drawing, pass_shown, shows_tiles, shows_waves
from convlint.reporters.words import (
    DOCUMENT_URLS,
    advice,
    alternatives,
    behind,
    change,
    edit,
    gravest_first,
    layer_of,
    lost,
    named_in,
    origin,
    page_of,
    place_of,
    price,
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
        finding=finding,
        tiles=tiles,
        tiles_of=tiles_of,
    )


class AdviceItem(Struct, frozen=True, kw_only=True):
    """One thing to do: a fix, of however many findings, or several that pay together. Texts are plain."""

    items: tuple[FindingItem, ...]  # the dearest first
    saves: str  # time, or what else it brings; empty where that is unknown
    layers: tuple[int, ...]  # of all of them

    @property
    def fixes(self) -> tuple[tuple[FindingItem, str], ...]:
        """The changes, the dearest first: one finding that asks for each, and what it saves in all of its layers.

        Of one finding among several changes, what it does to the time alone stands behind that.
        """
        asking: dict[str, list[FindingItem]] = {}
        for item in self.items:
            asking.setdefault(item.edit, []).append(item)
        ordered = sorted(asking.values(), key=lambda items: -_saved(items))
        return tuple((items[0], _effect(items, alone=len(ordered) > 1)) for items in ordered)

    @property
    def rules(self) -> str:
        """`CL102 channel-alignment`; of several rules their codes."""
        names = list(dict.fromkeys((item.code, item.name) for item in self.items))
        return " ".join(names[0]) if len(names) == 1 else ", ".join(code for code, _ in names)

    @property
    def rank(self) -> tuple[int, float]:
        """Errors, then warnings, then infos; of equals what saves most."""
        return min(SEVERITIES.index(item.finding.severity) for item in self.items), -_saved(self.items)


def _effect(items: Sequence[FindingItem], *, alone: bool) -> str:
    saved = _saved(items)
    parts = [duration(saved)] if saved > 0 else []
    fix = items[0].finding.fix
    if alone and len(items) == 1 and fix is not None and fix.alone:
        parts += filter(None, [change(fix)])
    return ", ".join(parts)


def first_steps(found: Sequence[FindingItem], gpu: str, layers: set[int]) -> tuple[AdviceItem, ...]:
    """Of the whole network and of `layers`, those of one mode."""
    own = [
        item
        for item in found
        if item.fix and item.finding.gpu in (gpu, None) and (not item.layers or not layers.isdisjoint(item.layers))
    ]
    worth = [item for item in own if item.severity != "info" or (item.finding.advised and item.lost_us > 0)]
    return tuple(sorted(map(_advice, _together(worth)), key=lambda advice: advice.rank))


def _together(items: Sequence[FindingItem]) -> list[list[FindingItem]]:
    """The items in groups: with each are those that ask for the same, and those of its layers that it pays with."""
    group = list(range(len(items)))

    def root(at: int) -> int:
        while group[at] != at:
            group[at] = group[group[at]]
            at = group[at]
        return at

    places: dict[tuple[str, int | None], list[int]] = {}  # by rule and layer; None: of the whole network
    of_rule: dict[str, list[int]] = {}
    same: dict[tuple[str, str, str], int] = {}
    for at, item in enumerate(items):
        code = item.finding.rule.code
        of_rule.setdefault(code, []).append(at)
        for layer in item.layers or (None,):
            places.setdefault((code, layer), []).append(at)
        group[at] = root(same.setdefault((code, item.severity, item.edit), at))
    for at, item in enumerate(items):
        for code in item.finding.pays_with:
            near = [each for layer in (*item.layers, None) for each in places.get((code, layer), ())]
            for other in near if item.layers else of_rule.get(code, ()):
                group[root(other)] = root(at)
    found: dict[int, list[FindingItem]] = {}
    for at, item in enumerate(items):
        found.setdefault(root(at), []).append(item)
    return list(found.values())


def _advice(group: Sequence[FindingItem]) -> AdviceItem:
    items = tuple(sorted(group, key=lambda item: (-item.lost_us, item.number)))
    layers = tuple(sorted({layer for item in items for layer in item.layers}))
    saved = _saved(items)
    if len(items) == 1:
        lost = items[0].lost
        return AdviceItem(items=items, saves=say("saves {time}", time=lost) if saved > 0 else lost, layers=layers)
    of_one = len({item.finding.location.path for item in items}) == 1  # percentages of two networks have no sum
    percents = [percent for item in items if (percent := item.finding.lost_percent) is not None]
    percent = sum(percents) if of_one and len(percents) == len(items) else None
    return AdviceItem(items=items, saves=say("saves {time}", time=price(saved, percent)), layers=layers)


def _saved(items: Sequence[FindingItem]) -> float:
    return sum(item.lost_us for item in items)
