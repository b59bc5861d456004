"""The flaws of one layer priced together: which fixes make it fastest, and what each of them earns.

Two flaws can hide each other: mending one alone buys nothing, mending both a third of the layer. So the fixes are
players of a cooperative game, whose value is the time that the best of them save, and the gain is dealt out by
Shapley's shares: never negative, and together exactly the time saved.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from convlint.engine.hits import Flaw
from convlint.engine.players import Changes, Key, Player, TimeAfter, fastest, key_of, merged
from convlint.engine.shapley import Stake, shares
from convlint.files.languages.saying import say

MOST_ROUNDS = 4  # in which fixes are applied and the layer is checked again
MOST_PLAYERS = 8  # those that save most alone; of the 256 subsets of eight most set one field twice


class Outcome(Struct, frozen=True, kw_only=True):
    """The layer that the fastest subset of fixes makes, and what each fix earns."""

    changes: Changes
    after_us: float
    stakes: tuple[Stake, ...]  # of the players that began the game, in their order
    unlocked: tuple[tuple[Player, Stake], ...]  # of that subset, those that came to light on the way


class Check(NamedTuple):
    """What a layer shows once it is changed: the flaws whose fixes may play, and every rule that still finds one."""

    flaws: Sequence[Flaw]
    standing: frozenset[tuple[str, str]]  # rule and side


def settle(
    players: Sequence[Player],
    now_us: float,
    time_after: TimeAfter,
    again: Callable[[Changes], Check],
    cuts: Callable[[Changes, Changes], bool] = lambda _, __: False,
) -> Outcome:
    """The outcome of the game that begins with `players`; `again` checks the layer once changes are applied.

    What fixes bring to light joins, for four rounds at most. A fix that leaves its own flaw standing is none, and
    neither is one that `cuts`: beside the changes of the other fixes, all of them do no more than to take work away.
    """
    found = list(players)  # all that ever joined, in that order
    joined = _distinct(players)
    seen: dict[Key, Check] = {}
    known = {_identity(player) for player in joined}
    rounds = 0
    while True:
        joined = _most_saving(joined, now_us, time_after)
        best, after_us = fastest(joined, now_us, time_after)
        new: list[Player] = []
        if rounds < MOST_ROUNDS:
            for applied in _applications(best, _newest_first(found, joined)):
                flaws = _checked(applied, seen, again).flaws
                more = [_found_after(flaw, applied) for flaw in flaws]
                new += [player for player in more if _identity(player) not in known]
        rounds += 1
        useless = set() if new else _useless(best, _checked(best, seen, again).standing if best else (), cuts)
        if not new and not useless:
            break
        known.update(map(_identity, new))
        found += new
        joined = _distinct([*(player for player in joined if _identity(player) not in useless), *new])

    def time_of(members: int) -> float | None:
        changes = merged([player for i, player in enumerate(best) if members >> i & 1])
        return None if changes is None else time_after(changes)

    earned = shares([player.code for player in best], now_us, time_of)
    stakes = {id(player): stake for player, stake in zip(best, earned, strict=True)}
    codes = {player.code for player in best}
    return Outcome(
        changes=merged(best) or {},
        after_us=after_us,
        stakes=tuple(stakes.get(id(player)) or Stake(_change(player, now_us, time_after)) for player in players),
        unlocked=tuple(
            (player._replace(after=tuple(code for code in player.after if code in codes)), stakes[id(player)])
            for player in best
            if all(player is not one for one in players)
        ),
    )


def _useless(
    best: tuple[Player, ...], standing: Collection[tuple[str, str]], cuts: Callable[[Changes, Changes], bool]
) -> set[tuple[str, Key]]:
    """Those of the best whose flaws stand all the same, and those that only take work away."""
    whole = merged(best) or {}
    without = {id(player): merged([one for one in best if one is not player]) or {} for player in best}
    return {_identity(player) for player in best if player.flaw.key in standing or cuts(without[id(player)], whole)}


def _checked(applied: tuple[Player, ...], seen: dict[Key, Check], again: Callable[[Changes], Check]) -> Check:
    """What the layer shows once `applied` is; it is checked once for each set of changes."""
    changes = merged(applied) or {}
    key = key_of(changes)
    if key not in seen:
        seen[key] = again(changes)
    return seen[key]


def _identity(player: Player) -> tuple[str, Key]:
    return player.code, key_of(player.changes)


def _distinct(players: Sequence[Player]) -> list[Player]:
    """One of those that change the same: a safe one, then the first by code."""
    found: dict[Key, Player] = {}
    for player in sorted(players, key=lambda player: (player.unsafe, player.code)):
        found.setdefault(key_of(player.changes), player)
    return sorted(found.values(), key=lambda player: (player.code, key_of(player.changes)))


def _change(player: Player, now_us: float, time_after: TimeAfter) -> float | None:
    time = time_after(player.changes)
    return None if time is None else time - now_us


def _most_saving(players: list[Player], now_us: float, time_after: TimeAfter) -> list[Player]:
    if len(players) <= MOST_PLAYERS:
        return players
    players = sorted(players, key=lambda player: _change(player, now_us, time_after) or 0.0)[:MOST_PLAYERS]
    return sorted(players, key=lambda player: (player.code, key_of(player.changes)))


def _newest_first(found: Sequence[Player], joined: Sequence[Player]) -> list[Player]:
    ids = set(map(id, joined))
    return [player for player in reversed(found) if id(player) in ids]


def _applications(best: tuple[Player, ...], players: Sequence[Player]) -> list[tuple[Player, ...]]:
    """Which fixes are applied before the layer is checked again: the best, with them as many as go together, the rest.

    `players` are in the order in which they are taken.
    """
    # What is wide enough for every tile hides what is not wide enough for a vector.
    players = [player for player in players if player.flaw.rule.loss == "fix"]
    others = [player for player in players if all(player is not one for one in best)]
    tried = [best]
    if others:
        tried.append(_together(best, others))
        if len(tried[1]) < len(best) + len(others):  # some stand in the place of one of the best
            tried.append(_together((), players))
    return [applied for number, applied in enumerate(tried) if applied and applied not in tried[:number]]


def _together(first: tuple[Player, ...], players: Sequence[Player]) -> tuple[Player, ...]:
    for player in players:
        if merged((*first, player)) is not None:
            first = (*first, player)
    return first


def _found_after(flaw: Flaw, applied: tuple[Player, ...]) -> Player:
    """The player that a flaw of the changed layer makes.

    Where it changes again what a fix had set, or is the same rule's, it is that fix taken further: the flaw that
    stands in the layer as it is remains that one.
    """
    changes = dict(flaw.set)
    again = [p for p in applied if p.flaw.key == flaw.key or merged((p, Player(flaw, flaw.set))) is None]
    for player in again:
        changes = {**player.changes, **changes}
    if not again:
        return Player(flaw, changes, tuple(dict.fromkeys(player.code for player in applied)))
    return Player(_taken_further(again[0].flaw, flaw, changes), changes, again[0].after)


def _taken_further(flaw: Flaw, then: Flaw, changes: Changes) -> Flaw:
    fix, more = flaw.case.fix, then.case.fix
    assert fix is not None
    assert more is not None
    safety: Literal["safe", "unsafe"] = "safe" if fix.safety == more.safety == "safe" else "unsafe"
    spec = replace(fix, safety=safety, other=())
    describe = say("{fix}; then {then}", fix=flaw.describe, then=then.describe)
    if changes.keys() <= {"C", "K"}:
        sizes = ", ".join(f"{name}={value}" for name, value in sorted(changes.items()))
        says_so = all(f"{name}={value}" in then.describe for name, value in then.set.items())
        own = say("use {sizes}", sizes=sizes)
        describe = own if says_so else say("use {sizes} ({then})", sizes=sizes, then=then.describe)
    width = max(flaw.width, then.width)
    return replace(flaw, case=replace(flaw.case, fix=spec), describe=describe, other={}, width=width)
