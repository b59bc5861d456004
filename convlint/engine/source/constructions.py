"""Rules on constructions and on their channel counts: which of them are broken at which place, on one target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from convlint.engine.evaluate import Evaluator
from convlint.engine.hits import Flaw
from convlint.engine.source.draft import Draft, Member
from convlint.engine.source.places import of_layer, of_width
from convlint.facts.source import SourceFacts, of_construction
from convlint.facts.source import of_width as facts_of_width
from convlint.facts.source_layers import MAP, PROVISO, SIDES, Side, Width, map_of, proviso
from convlint.facts.target import TargetFacts
from convlint.model.location import Location
from convlint.model.source import SourceLayer, Stated
from convlint.rulebook.rule import Rule

_Broken = tuple[Flaw, SourceLayer]
_OPPOSITE: dict[Side, Side] = {"C": "K", "K": "C"}


def constructions(
    rules: Sequence[Rule], records: Sequence[SourceLayer], context: Mapping[str, TargetFacts]
) -> list[Draft]:
    """One draft for each place where every layer that it constructs breaks the rule."""
    evaluator = Evaluator(rules)
    sites: dict[Location, list[SourceLayer]] = {}
    for record in records:
        sites.setdefault(record.layer.locate(), []).append(record)
    drafts = []
    for several in sites.values():
        broken: dict[str, list[_Broken]] = {}
        for record in several:
            for flaw in _flaws(evaluator, of_construction(context[record.framework], record)):
                broken.setdefault(flaw.rule.info.code, []).append((flaw, record))
        drafts += [_at_site(found) for found in broken.values() if len(found) == len(several)]
    return drafts


def _at_site(found: Sequence[_Broken]) -> Draft:
    flaw, record = min(found, key=lambda each: _doubt(each[1]))
    records = [each for _, each in found]
    members = {Member(each.layer.name, each.layer.path) for each in records}
    literals = [each for which in records for several in which.stated.values() for each in several]
    said = _with(flaw, proviso(record, literals), records)
    return Draft(flaw=said, at=of_layer(flaw.places, record), members=tuple(sorted(members)))


def _with(flaw: Flaw, provisos: str, records: Iterable[SourceLayer]) -> Flaw:
    """The flaw with what is known of all these only."""
    at = map_of(records)
    message, describe = (text.replace(PROVISO, provisos).replace(MAP, at) for text in (flaw.message, flaw.describe))
    return replace(flaw, message=message, describe=describe)


def widths(rules: Sequence[Rule], records: Sequence[SourceLayer], context: Mapping[str, TargetFacts]) -> list[Draft]:
    """One draft for each literal to blame: it names the layers that get a number by it which breaks the rule."""
    evaluator = Evaluator(rules)
    numbers = _numbers(records)
    broken: dict[tuple[str, Location], list[tuple[Flaw, Width]]] = {}
    for width in numbers:
        for flaw in _flaws(evaluator, facts_of_width(context[width.record.framework], width)):
            broken.setdefault((flaw.rule.info.code, of_width(width)), []).append((flaw, width))
    return [_at_literal(at, found) for (_, at), found in broken.items()]


def _at_literal(at: Location, found: Sequence[tuple[Flaw, Width]]) -> Draft:
    """Says what is surest, and nothing that holds under another condition only.

    The worst number speaks for all. What is advised is for the literal itself, where that is a width and the worst no
    part of it: no other WIDTH makes `2 * WIDTH + 1` even.
    """
    surest = min(_doubt(width.record) for _, width in found)
    said = [(flaw, width) for flaw, width in found if _doubt(width.record) == surest]
    flaw, worst = min(said, key=lambda each: _worst(each[1]))
    for other, width in said:
        if _is_literal(width, at) and (width.value or 0) % (worst.value or 1):
            flaw = replace(flaw, describe=other.describe)
    literals = [each for _, width in said for each in width.literals]
    flaw = _with(flaw, proviso(worst.record, literals), [width.record for _, width in said])
    return Draft(flaw=flaw, at=at, members=tuple(dict.fromkeys(_member(each) for _, each in sorted(said, key=_place))))


def _numbers(records: Iterable[SourceLayer]) -> list[Width]:
    """Every channel count that is known; what layers write and read, by one literal or in one file, are inner ones.

    A depthwise convolution hands on what it gets, so it tells neither what reads a number nor what writes it.
    """
    every = [Width(record=record, side=side) for record in records for side in SIDES]
    found = [(width, width.brought) for width in every if width.value is not None]
    sides: dict[Location, set[Side]] = {}
    numbers: set[tuple[str, Side, int | None]] = set()
    for width, brought in found:
        if _is_depthwise(width.record):
            continue
        numbers.add((width.record.layer.path, width.side, width.value))
        for literal in brought:
            sides.setdefault(literal.at, set()).add(width.side)

    def is_inner(width: Width, brought: Iterable[Stated]) -> bool:
        layer = width.record.layer
        return (
            any(len(sides.get(each.at, ())) > 1 for each in brought)
            or (layer.path, _OPPOSITE[width.side], width.value) in numbers
            or (width.side == "K" and layer.norm_follows is True)  # nobody normalises an answer
        )

    return [replace(width, inner=True) if is_inner(width, brought) else width for width, brought in found]


def _is_depthwise(record: SourceLayer) -> bool:
    layer = record.layer
    return layer.groups is not None and layer.groups > 1 and layer.groups == layer.C == layer.K


def _flaws(evaluator: Evaluator, facts: SourceFacts) -> tuple[Flaw, ...]:
    """What is not known is no flaw; how much is not, the coverage says."""
    return evaluator.evaluate(facts, connected=False).flaws


def _member(width: Width) -> Member:
    layer = width.record.layer
    return Member(layer.name, layer.path, width.side, width.value or 0, map_of([width.record]))


def _doubt(record: SourceLayer) -> tuple[bool, str]:
    return record.certainty != "stated", record.condition


def _worst(width: Width) -> tuple[int, int]:
    value = width.value or 0
    return value & -value, value


def _is_literal(width: Width, at: Location) -> bool:
    return any(each.at == at and each.value == width.value for each in width.literals)


def _place(entry: tuple[Flaw, Width]) -> tuple[str, int, int, str, str]:
    layer, at = entry[1].record.layer, entry[1].record.layer.locate()
    return at.path, at.line or 0, at.column or 0, layer.name, entry[1].side
