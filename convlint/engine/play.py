"""The games of all layers of a network: who plays in each, and what comes to light once others are mended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from convlint.engine.hits import Flaw, Hit
from convlint.engine.players import Player
from convlint.engine.pricing import InForce, Priced, Pricer
from convlint.engine.shapley import SAME, Stake
from convlint.files.languages.saying import say
from convlint.report import LayerTimes

# Of a flaw, the layer where it came to light, and the hits of its rule there that give way to it: its own hit.
CameToLight = Callable[[Flaw, int, Sequence[Hit]], Hit]


class Played(NamedTuple):
    """The hits, with those that the fixes of others bring to light; their stakes, by a hit's id; each layer's game."""

    hits: list[Hit]
    stakes: dict[int, Stake]
    priced: list[Priced | None]


def played(
    hits: list[Hit],
    layers: int,
    pricer: Pricer,
    later: Callable[[int], InForce | None],
    came_to_light: CameToLight,
) -> Played:
    """Plays the game of each of the network's `layers`; `later` says what would be in force there."""
    by_layer: dict[int, list[Hit]] = {}
    for hit in hits:
        if hit.indices:
            by_layer.setdefault(hit.indices[0], []).append(hit)
    priced: list[Priced | None] = []
    stakes: dict[int, Stake] = {}
    after: dict[int, list[Hit]] = {}  # by the id of the last hit that plays in the layer
    gone: set[int] = set()
    for index in range(layers):
        every = by_layer.get(index, [])
        own = [hit for hit in every if pricer.plays(index, hit.flaw)]
        entry = pricer.priced(index, [hit.flaw for hit in own], later(index))
        priced.append(entry)
        if entry is None or entry.outcome is None:
            continue
        stakes.update((id(hit), stake) for hit, stake in zip(own, entry.outcome.stakes, strict=True))
        for player, stake in entry.outcome.unlocked:
            idle = [hit for hit in every if _gives_way(hit, player, stakes)]
            gone.update(map(id, idle))
            hit = came_to_light(_once(player), index, idle)
            stakes[id(hit)] = stake
            after.setdefault(id(own[-1]), []).append(hit)
    if after:
        hits = [each for hit in hits for each in ([] if id(hit) in gone else [hit]) + after.get(id(hit), [])]
    return Played(hits, stakes, priced)


def promised(priced: Sequence[Priced | None], hits: Sequence[Hit]) -> list[LayerTimes | None]:
    """The layers' times, with the advice taken that is among `hits`: some may be left unsaid."""
    saved = [0.0] * len(priced)
    for hit in hits:
        by_layer = hit.by_layer_us or (hit.price.lost_us or 0.0,) * len(hit.indices)
        for index, lost_us in zip(hit.indices, by_layer, strict=True):
            saved[index] += lost_us
    return [None if entry is None else _after(entry.times, less) for entry, less in zip(priced, saved, strict=True)]


def _after(times: LayerTimes, saved_us: float) -> LayerTimes:
    after_us = times.time_us - saved_us
    unsaid = after_us > times.after_us * (1 + SAME)  # else all of it is said, and sums of shares are rounded
    return replace(times, after_us=after_us) if unsaid else times


def _gives_way(hit: Hit, player: Player, stakes: dict[int, Stake]) -> bool:
    """Whether it is the same rule's, and pays nothing as the layer stands."""
    if hit.key != player.flaw.key or hit.sets_batch:
        return False
    return id(hit) not in stakes or not stakes[id(hit)].advised


def _once(player: Player) -> Flaw:
    """The flaw, with what has to be mended before it shows."""
    flaw = replace(player.flaw, set=player.changes)
    if not player.after:
        return flaw
    if len(player.after) == 1:
        once = say("once {code} is mended, ", code=player.after[0])
    else:
        once = say("once {codes} are mended, ", codes=say(" and ").join(player.after))
    return replace(flaw, message=once + flaw.message, join_message=once + flaw.join_message)
