"""What to do first on a target: the gravest and dearest advice, and as one piece what belongs together."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from convlint.files.languages.saying import say
from convlint.report import SEVERITIES
from convlint.reporters.page.findings import Item
from convlint.reporters.words import change, duration, price


class Advice(Struct, frozen=True, kw_only=True):
    """One thing to do: a fix, of however many findings, or several that pay together. Texts are plain."""

    items: tuple[Item, ...]  # the dearest first
    saves: str  # time, or what else it brings; empty where that is unknown
    layers: tuple[int, ...]  # of all of them

    @property
    def fixes(self) -> tuple[tuple[Item, str], ...]:
        """The changes, the dearest first: one finding that asks for each, and what it saves in all of its layers.

        Of one finding among several changes, what it does to the time alone stands behind that.
        """
        asking: dict[str, list[Item]] = {}
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


def _effect(items: Sequence[Item], *, alone: bool) -> str:
    saved = _saved(items)
    parts = [duration(saved)] if saved > 0 else []
    fix = items[0].finding.fix
    if alone and len(items) == 1 and fix is not None and fix.alone:
        parts += filter(None, [change(fix)])
    return ", ".join(parts)


def first_steps(found: Sequence[Item], gpu: str, layers: set[int]) -> tuple[Advice, ...]:
    """Of the whole network and of `layers`, those of one mode."""
    own = [
        item
        for item in found
        if item.fix and item.finding.gpu in (gpu, None) and (not item.layers or not layers.isdisjoint(item.layers))
    ]
    worth = [item for item in own if item.severity != "info" or (item.finding.advised and item.lost_us > 0)]
    return tuple(sorted(map(_advice, _together(worth)), key=lambda advice: advice.rank))


def _together(items: Sequence[Item]) -> list[list[Item]]:
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
    found: dict[int, list[Item]] = {}
    for at, item in enumerate(items):
        found.setdefault(root(at), []).append(item)
    return list(found.values())


def _advice(group: Sequence[Item]) -> Advice:
    items = tuple(sorted(group, key=lambda item: (-item.lost_us, item.number)))
    layers = tuple(sorted({layer for item in items for layer in item.layers}))
    saved = _saved(items)
    if len(items) == 1:
        lost = items[0].lost
        return Advice(items=items, saves=say("saves {time}", time=lost) if saved > 0 else lost, layers=layers)
    of_one = len({item.finding.location.path for item in items}) == 1  # percentages of two networks have no sum
    percents = [percent for item in items if (percent := item.finding.lost_percent) is not None]
    percent = sum(percents) if of_one and len(percents) == len(items) else None
    return Advice(items=items, saves=say("saves {time}", time=price(saved, percent)), layers=layers)


def _saved(items: Sequence[Item]) -> float:
    return sum(item.lost_us for item in items)
