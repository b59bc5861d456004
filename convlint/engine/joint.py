"""What flaws of shared channels cost: one finding for each group, priced over all layers that change with it.

Each layer's game has said what widening would be worth there. What a group earns in a layer is Shapley's share of that
layer's game; what it costs where nobody asked for it is taken from that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from convlint.engine.coupling import Coupling
from convlint.engine.hits import Hit
from convlint.engine.play import Played
from convlint.engine.players import Changes
from convlint.engine.pricing import Priced, Pricer
from convlint.engine.shapley import SAME, Stake, shares
from convlint.engine.widening import Widening, Widths, joined_changes
from convlint.files.languages.saying import say


def settled_jointly(played: Played, coupling: Coupling, pricer: Pricer) -> Played:
    """The same with one hit for each rule and group, whose stake is that of all the layers that change with it."""
    sided: dict[int, list[Hit]] = {}
    for hit in played.hits:
        fix = hit.flaw.case.fix
        if hit.flaw.group is not None and (id(hit) in played.stakes or (fix is not None and not fix.priced)):
            sided.setdefault(hit.flaw.group, []).append(hit)
    return _Joint(played, coupling, pricer, sided).result() if sided else played


class _Side(NamedTuple):
    """What groups change in a layer's C, or in its K, and the part that each of them has in that."""

    changes: Changes
    parts: Mapping[int, float]


class _Joint:
    def __init__(self, played: Played, coupling: Coupling, pricer: Pricer, sided: dict[int, list[Hit]]) -> None:
        self.played, self.coupling, self.pricer, self.sided = played, coupling, pricer, sided
        self.own: dict[int, list[Hit]] = {}  # by layer: advised hits that are no group's,
        self.taken: dict[int, list[Hit]] = {}  # and those that are
        grouped = {id(hit) for hits in sided.values() for hit in hits}
        for hit in played.hits:
            stake = played.stakes.get(id(hit))
            if stake is not None and stake.advised:
                kind = self.taken if id(hit) in grouped else self.own
                kind.setdefault(hit.indices[0], []).append(hit)
        self.widening = Widening(coupling, pricer, sided, self.own, played.stakes)
        self.widths: Widths = self.widening.chosen()
        self._deal()

    def _deal(self) -> None:
        """Deals out what is saved; a group for which nobody else can pay is not widened after all."""
        self.stakes, self.priced = dict(self.played.stakes), list(self.played.priced)
        self.earned: dict[int, dict[int, float]] = {number: {} for number in self.widths}  # us, by group and layer
        self.beside: dict[int, set[str]] = {number: set() for number in self.widths}  # codes that it pays with
        asked = [number for number, lever in self.widening.levers.items() if lever.hits]
        for index in sorted({index for number in asked for index in self.widening.layers(number)}):
            self._share_out(index)
        debts = {number: self._settled_debt(number) for number in self.earned}
        owing = [number for number, debt in debts.items() if debt > SAME * self.pricer.facts.time_us]
        if owing:
            self.widths = {number: width for number, width in self.widths.items() if number not in owing}
            self._deal()

    def result(self) -> Played:
        """The hits, their stakes and the layers' prices."""
        merged: dict[int, Hit | None] = {}  # by the id of a hit: what stands in its place
        for number, hits in self.sided.items():
            for code in dict.fromkeys(hit.rule.info.code for hit in hits):
                same = [hit for hit in hits if hit.rule.info.code == code]
                merged.update((id(hit), None) for hit in same)
                merged[id(same[0])] = self._merged(number, same)
        hits = [new for hit in self.played.hits if (new := merged.get(id(hit), hit)) is not None]
        return Played(hits, self.stakes, self.priced)

    def _share_out(self, index: int) -> None:
        """Deals out what all that is advised in a layer saves there."""
        taken = [(hit.flaw.group, self.stakes[id(hit)]) for hit in self.taken.get(index, ())]
        if self.widening.is_as_its_game(index, self.widths) and all(number in self.widths for number, _ in taken):
            for number, stake in taken:  # as its game has dealt it out
                if number is not None:
                    self._earn(number, index, stake, stake.lost_us)
            return
        priced, estimate = self.priced[index], self.pricer.estimates[index]
        final = self.widening.after(index, self.widths)
        after_us = self.widening.time_us(index, final)
        if priced is None or estimate is None or after_us is None:
            return
        own, sides = self.widening.kept(index, self.widths), self._sides(index)
        for hit in self.own.get(index, ()):
            if all(hit is not one for one in own):  # pays no longer, beside the widths that there will be
                self.stakes[id(hit)] = Stake(self.stakes[id(hit)].change_us)
        changes = [hit.sets[0] for hit in own] + [side.changes for side in sides]
        codes = [hit.rule.info.code for hit in own] + [self._speaks(next(iter(side.parts))) for side in sides]

        def time_of(members: int) -> float | None:
            taken = (each for number, each in enumerate(changes) if members >> number & 1)
            return self.widening.time_us(index, joined_changes(taken))

        found = shares(codes, estimate.time_us, time_of)
        self.stakes.update((id(hit), stake) for hit, stake in zip(own, found[: len(own)], strict=True))
        # a group that is widened for other layers' sake may cost time in this one
        cost_us = after_us - (estimate.time_us - sum(stake.lost_us for stake in found))
        for side, stake in zip(sides, found[len(own) :], strict=True):
            for number, part in side.parts.items():
                self._earn(number, index, stake, part * (stake.lost_us - cost_us / len(sides)))
        self.priced[index] = Priced(times=self.pricer.times(index, final, after_us), outcome=priced.outcome)

    def _earn(self, number: int, index: int, stake: Stake, share_us: float) -> None:
        self.earned[number][index] = self.earned[number].get(index, 0.0) + share_us
        self.beside[number].update(stake.pays_with)

    def _sides(self, index: int) -> list[_Side]:
        channels, layer, widths = self.coupling.channels, self.coupling.layers[index], self.widths
        written = channels.written.get(index)
        sides = []
        if written is not None and written in widths:
            sides.append(_Side({"K": widths[written]}, {written: 1.0}))
        added = {
            number: abs(float((widths[number] - channels.groups[number].width) * scale))
            for number, scale in channels.read.get(index, ())
            if number in widths
        }
        if added:
            changes = channels.changes_of(index, layer, {number: widths[number] for number in added})
            whole = sum(added.values())
            of_C = changes if layer.depthwise else {"C": changes["C"]}
            sides.append(_Side(of_C, {number: part / whole for number, part in added.items()}))
        return sides

    def _settled_debt(self, number: int) -> float:
        """Where a group costs more than its shares are, what it was taken with pays for it; what is left to pay."""
        earned = self.earned[number]
        debt = -sum(earned.values())
        for index in earned:
            for give in self._givers(number, index) if debt > 0 else ():
                given = give(debt)
                earned[index] += given
                debt -= given
        return debt

    def _givers(self, number: int, index: int) -> Iterator[Callable[[float], float]]:
        """Who else earns something in a layer: each gives at most what is asked for, and what it has, in us."""

        def by_hit(hit: Hit, wanted: float) -> float:
            stake = self.stakes[id(hit)]
            given = min(wanted, stake.lost_us)
            self.stakes[id(hit)] = stake._replace(lost_us=stake.lost_us - given)
            return given

        def by_group(other: dict[int, float], wanted: float) -> float:
            given = max(0.0, min(wanted, sum(other.values())))
            other[index] -= given
            return given

        for hit in self.widening.kept(index, self.widths):
            yield partial(by_hit, hit)
        for other, earned in self.earned.items():
            if other != number and index in earned:
                yield partial(by_group, earned)

    def _speaks(self, number: int) -> str:
        """The rule that speaks for a group: the one whose findings its layers' games would pay most for."""
        lost: dict[str, float] = {}
        for hit in self.widening.levers[number].hits:
            code = hit.rule.info.code
            lost[code] = lost.get(code, 0.0) + self.played.stakes[id(hit)].lost_us
        return max(lost, key=lambda code: (lost[code], code))

    def _merged(self, number: int, same: list[Hit]) -> Hit:
        """One hit for those of one rule on one group; it stands where the number is written, if that was found."""
        coupling, group = self.coupling, self.coupling.group(number)
        advised = number in self.widths and self._speaks(number) == same[0].rule.info.code
        asking = [
            hit for hit in same if advised and coupling.width(number, hit.flaw.width) == self.widths[number]
        ] or same
        lead = next((hit for hit in asking if hit.flaw.side == "K"), asking[0])
        index, side = lead.indices[0], lead.flaw.side
        width = self.widths[number] if advised else coupling.width(number, lead.flaw.width)
        less = int(lead.other[side]) if lead.other.keys() == {side} and lead.sets[0][side] == width else 0
        less -= less % group.multiple_of
        own, fix = {hit.indices[0]: hit.identities[0] for hit in same}, lead.flaw.case.fix
        indices = (index, *(each for each in group.layers if each != index))
        earned = self.earned[number] if advised else {}
        hit = lead._replace(
            flaw=replace(lead.flaw, describe=self._described(lead, width)),
            indices=indices,
            names=tuple(coupling.layers[each].name for each in indices),
            sets=coupling.sets(indices, {**self.widths, number: width} if advised else {number: width}, number),
            other={side: less} if less else {},
            others=coupling.sets(indices, {number: less}, number) if less else (),
            identities=tuple(own.get(each, lead.identities[0]) for each in indices),
            follows=coupling.follows(number, index, side, widens=fix is None or fix.safety != "safe"),
            fired=tuple(own),
            by_layer_us=tuple(earned.get(each, 0.0) for each in indices) if advised else (),
        )
        if advised:
            self.stakes[id(hit)] = self._stake(number)
        elif any(id(each) in self.stakes for each in same):
            self.stakes[id(hit)] = Stake(self.widening.change_us(number, width))
        return hit

    def _described(self, lead: Hit, width: int) -> str:
        side = lead.flaw.side
        if lead.sets[0][side] == width:
            return lead.flaw.describe
        assert lead.flaw.group is not None
        group = self.coupling.group(lead.flaw.group)
        is_whole = self.coupling.group_of(lead.indices[0], side) == lead.flaw.group
        if is_whole:
            return say("use {side}={width}", side=side, width=width)
        return say("use {width} channels in place of {before}", width=width, before=group.width)

    def _stake(self, number: int) -> Stake:
        lost_us = sum(self.earned[number].values())
        change_us = self.widening.change_us(number, self.widths[number])
        alone_us = max(0.0, -(change_us or 0.0))
        pays_with = tuple(sorted(self.beside[number])) if alone_us < lost_us / 2 else ()
        return Stake(change_us, True, max(0.0, lost_us), pays_with)
