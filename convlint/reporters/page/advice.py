"""What to do first on a target: the gravest and dearest advice, and as one piece what only pays together."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from convlint.report import SEVERITIES
from convlint.reporters.page.findings import Item
from convlint.reporters.words import price

_FIRST = 3  # pieces of advice at the top


class Advice(Struct, frozen=True, kw_only=True):
    """One thing to do: one finding's fix, or those of several that pay together. Texts are plain."""

    items: tuple[Item, ...]  # the dearest first
    saves: str  # time, or what else it brings; empty where that is unknown
    layers: tuple[int, ...]  # of all of them

    @property
    def rules(self) -> str:
        """`CL102 channel-alignment`; of several rules their codes."""
        if len(self.items) == 1:
            return f"{self.items[0].code} {self.items[0].name}"
        return ", ".join(dict.fromkeys(item.code for item in self.items))

    @property
    def rank(self) -> tuple[int, float]:
        """Errors, then warnings, then infos; of equals what saves most."""
        return min(SEVERITIES.index(item.finding.severity) for item in self.items), -_saved(self.items)


def first_steps(found: Sequence[Item], gpu: str, layers: set[int]) -> tuple[Advice, ...]:
    """Of the whole network and of `layers`, those of one mode: the most that a card has room for."""
    own = [
        item
        for item in found
        if item.fix and item.finding.gpu in (gpu, None) and (not item.layers or not layers.isdisjoint(item.layers))
    ]
    worth = [item for item in own if item.severity != "info" or (item.finding.advised and item.lost_us > 0)]
    return tuple(sorted(map(_advice, _together(worth)), key=lambda advice: advice.rank)[:_FIRST])


def _together(items: Sequence[Item]) -> list[list[Item]]:
    """The items in groups: in one with each are those of its layers with which alone it earns its price."""
    group_of = {item.number: [item] for item in items}
    for item in items:
        for other in items:
            if _pays_with(item, other) and group_of[other.number] is not group_of[item.number]:
                joined = group_of[item.number] + group_of[other.number]
                group_of.update({each.number: joined for each in joined})
    return list({id(group): group for group in group_of.values()}.values())


def _pays_with(item: Item, other: Item) -> bool:
    if other.finding.rule.code not in item.finding.pays_with:
        return False
    return not item.layers or not other.layers or not set(item.layers).isdisjoint(other.layers)


def _advice(group: Sequence[Item]) -> Advice:
    items = tuple(sorted(group, key=lambda item: (-item.lost_us, item.number)))
    layers = tuple(sorted({layer for item in items for layer in item.layers}))
    saved = _saved(items)
    if len(items) == 1:
        lost = items[0].lost
        return Advice(items=items, saves=f"saves {lost}" if saved > 0 else lost, layers=layers)
    of_one = len({item.finding.location.path for item in items}) == 1  # percentages of two networks have no sum
    percents = [percent for item in items if (percent := item.finding.lost_percent) is not None]
    percent = sum(percents) if of_one and len(percents) == len(items) else None
    return Advice(items=items, saves=f"saves {price(saved, percent)}", layers=layers)


def _saved(items: Sequence[Item]) -> float:
    return sum(item.lost_us for item in items)
