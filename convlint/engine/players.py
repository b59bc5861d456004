"""Fixes that may be applied together: what a set of them changes, and which set leaves a layer the least time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from convlint.engine.hits import Flaw
from convlint.engine.shapley import SAME
from convlint.report import Scalar

Changes = Mapping[str, Scalar]
Key = tuple[tuple[str, Scalar], ...]
TimeAfter = Callable[[Changes], float | None]  # us; None: no such layer, or its time is not predictable


class Player(NamedTuple):
    """A fix that may be applied; `after` are the codes whose mending brought its flaw to light."""

    flaw: Flaw
    changes: Changes
    after: tuple[str, ...] = ()

    @property
    def code(self) -> str:
        """The rule's."""
        return self.flaw.rule.info.code

    @property
    def unsafe(self) -> bool:
        """Whether its fix changes the network."""
        return self.flaw.case.fix is None or self.flaw.case.fix.safety != "safe"


def merged(players: Sequence[Player]) -> Changes | None:
    """All their changes; None where two set one field to different values."""
    changes: Changes | None = {}
    for player in players:
        changes = None if changes is None else _with(changes, player.changes)
    return changes


def key_of(changes: Changes) -> Key:
    """The same for equal changes."""
    return tuple(sorted(changes.items())) if len(changes) > 1 else tuple(changes.items())


def subsets(players: Sequence[Player]) -> Iterator[tuple[tuple[Player, ...], Changes]]:
    """Those that set no field twice, with all that they change: smaller ones first, and in order within one size."""
    level: list[tuple[tuple[Player, ...], Changes, int]] = [((), {}, 0)]
    while level:
        wider = []
        for subset, changes, start in level:
            for number in range(start, len(players)):
                player = players[number]
                more = _with(changes, player.changes)
                if more is not None:  # else no wider one exists either
                    yield (*subset, player), more
                    wider.append(((*subset, player), more, number + 1))
        level = wider


def _with(changes: Changes, more: Changes) -> Changes | None:
    if any(changes.get(name, value) != value for name, value in more.items()):
        return None
    return {**changes, **more}


def fastest(players: Sequence[Player], now_us: float, time_after: TimeAfter) -> tuple[tuple[Player, ...], float]:
    """The subset that leaves the least time; of equals the smallest, then that with more safe fixes, then by code."""
    best: tuple[Player, ...] = ()
    least, rank = now_us, (0, 0)
    for subset, changes in subsets(players):
        time = time_after(changes)
        if time is None or time > least * (1 + SAME):
            continue
        mine = len(subset), sum(player.unsafe for player in subset)
        if time < least * (1 - SAME) or mine < rank:
            best, least, rank = subset, min(time, least), mine
    return best, least
