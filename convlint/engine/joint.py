"""One hit for each setting of the network and each group of channels, with what it earns in B.

What a rule finds of a setting in many layers is one flaw of the network, and what it finds of channels that several
layers share is one number's. Flaws that stand only once others are mended are hits too, where B mends them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from convlint.engine.coupling import Coupling
from convlint.engine.dealing import Deal, dealt
from convlint.engine.hits import COUNT, LAYERS, Flaw, Hit
from convlint.engine.levers import KINDS, Advice, Key, Kind, Lever, kind_of
from convlint.engine.optimum import Choice, Optimum, Search
from convlint.engine.shapley import Stake
from convlint.engine.timing import Changes
from convlint.estimate.basis import Basis
from convlint.facts.network import shortened
from convlint.files.languages.saying import say
from convlint.model.layer import ConvLayer
from convlint.report import Scalar

NewHit = Callable[[Flaw, int], Hit]  # of a flaw that stands only once others are mended
_NAMED = 4


class Settled(NamedTuple):
    """The hits, and by the id of a hit what its fix earns and what that rests on."""

    hits: list[Hit]
    stakes: Mapping[int, Stake]
    bases: Mapping[int, Basis]
    deal: Deal


def settled(
    hits: Sequence[Hit], best: Optimum, search: Search, advice: Advice, coupling: Coupling, playing: set[int],
    new_hit: NewHit,
) -> Settled:  # fmt: skip
    """The hits of a network whose B is `best`; `playing` are the ids of those whose flaws may play."""
    return _Joint(hits, best, search, advice, coupling, playing, new_hit).result()


class _Joint:
    def __init__(
        self, hits: Sequence[Hit], best: Optimum, search: Search, advice: Advice, coupling: Coupling,
        playing: set[int], new_hit: NewHit,
    ) -> None:  # fmt: skip
        self.hits, self.best, self.search, self.advice = hits, best, search, advice
        self.coupling, self.playing, self.new_hit = coupling, playing, new_hit
        self.layers: Sequence[ConvLayer] = search.timing.network.layers
        self.of_kind: dict[Kind, list[Hit]] = {kind: [] for kind in KINDS}
        self.of_group: dict[int, list[Hit]] = {}
        self.of_layer: dict[tuple[int, tuple[str, str]], Hit] = {}
        for hit in hits:
            kind = kind_of(hit.flaw.set) if hit.indices else None
            fix = hit.flaw.case.fix
            if kind is not None and id(hit) in playing:
                self.of_kind[kind].append(hit)
            elif hit.flaw.group is not None and (id(hit) in playing or (fix is not None and not fix.priced)):
                self.of_group.setdefault(hit.flaw.group, []).append(hit)
            elif hit.indices and id(hit) in playing:
                self.of_layer[hit.indices[0], hit.key] = hit
        self.widths = {lever.group: lever.width for lever in best.levers.values() if lever.group is not None}
        self.owners = {kind: self._owner(choice) for kind, choice in best.choices.items()}
        self.deal = dealt(best, search, advice, self.owners)
        self.stakes: dict[int, Stake] = {}
        self.bases: dict[int, Basis] = {}
        self.in_place_of: dict[int, list[Hit]] = {}  # by the id of a hit: what stands there instead
        self.new: list[Hit] = []

    def result(self) -> Settled:
        """The hits in their order, those that came to light at the end."""
        for kind in KINDS:
            self._settings(kind)
        for number, hits in self.of_group.items():
            for code in dict.fromkeys(hit.rule.info.code for hit in hits):
                same = [hit for hit in hits if hit.rule.info.code == code]
                self._replace(same, self._group(number, same))
        advised: set[int] = set()
        for key, lever in self.best.levers.items():
            if lever.group is None:
                advised.add(id(self._form(key, lever)))
            elif not any(hit.rule.info.code == lever.code for hit in self.of_group.get(lever.group, ())):
                self.new.append(self._new_group(key, lever))
        for hit in self.of_layer.values():
            if id(hit) not in advised and id(hit) not in self.in_place_of:
                self.stakes[id(hit)] = Stake(self._change_us({hit.indices[0]: hit.sets[0]}))
        found = [each for hit in self.hits for each in self.in_place_of.get(id(hit), [hit])]
        return Settled(found + self.new, self.stakes, self.bases, self.deal)

    def _replace(self, hits: Sequence[Hit], by: Hit | None) -> None:
        """One hit, or none, where the first of several stands."""
        self.in_place_of.update((id(hit), []) for hit in hits)
        if by is not None:
            self.in_place_of[id(hits[0])] = [by]

    # Settings of the network.

    def _owner(self, choice: Choice) -> str:
        """The rule that speaks for a setting: of those that find it as things are, the one in most layers."""
        asked = choice.value
        here = [hit for hit in self.of_kind[choice.kind] if not asked or hit.flaw.set.items() <= asked.items()]
        hits = here or self.of_kind[choice.kind]
        codes = Counter(hit.rule.info.code for hit in hits) or Counter(flaw.rule.info.code for _, flaw in choice.asking)
        return codes.most_common(1)[0][0]

    def _settings(self, kind: Kind) -> None:
        choice = self.best.choices.get(kind)
        by_rule: dict[str, list[Hit]] = {}
        for hit in self.of_kind[kind]:
            by_rule.setdefault(hit.rule.info.code, []).append(hit)
        for code, hits in by_rule.items():
            if choice is not None and code == self.owners[kind]:
                self._replace(hits, self._setting(choice, hits))
            else:
                self._replace(hits, self._unadvised(kind, hits))
        if choice is not None and self.owners[kind] not in by_rule:
            own = [(i, flaw) for i, flaw in choice.asking if flaw.rule.info.code == self.owners[kind]]
            once = [self.owners[other] for other in KINDS if other in self.best.choices and other != kind]
            hits = [self.new_hit(_once(flaw, once), index) for index, flaw in own]
            self.new.append(self._setting(choice, hits))

    def _setting(self, choice: Choice, hits: Sequence[Hit]) -> Hit:
        """The one hit of a setting that belongs to B, on all layers that it changes."""
        sets: dict[int, dict[str, Scalar]] = {}
        if choice.layers:
            for index in sorted(choice.layers):
                sets[index] = {choice.kind: str(choice.layers[index]), **choice.runtime}
        else:
            sets = {hit.indices[0]: dict(choice.runtime) for hit in hits}
        hit = self._of_network(hits, sets, self._described(choice, hits))
        stake = self.deal.settings[choice.kind]
        lesser = self.search.lesser(choice)
        if lesser is not None:
            other_us = self.search.total_us({choice.kind: lesser}, {}) - self.deal.time_us
            hit = hit._replace(other=lesser.runtime, changes_us=(stake.change_us or 0.0, other_us))
        hit = hit._replace(flaw=replace(hit.flaw, set=next(iter(sets.values()))))
        self.stakes[id(hit)] = stake
        self.bases[id(hit)] = self.search.basis_of(self.best, choice.kind)
        return hit

    def _described(self, choice: Choice, hits: Sequence[Hit]) -> str:
        """The words of the fix that leads to the setting; of one that leads on from another, both."""
        first = hits[0].flaw
        wanted = choice.value
        if first.set.items() <= wanted.items() or not wanted:
            return first.describe
        then = next((flaw for _, flaw in reversed(choice.asking) if flaw.set.items() <= wanted.items()), None)
        if then is None or then.describe == first.describe:
            return first.describe
        return say("{fix}; then {then}", fix=first.describe, then=then.describe)

    def _unadvised(self, kind: Kind, hits: Sequence[Hit]) -> Hit:
        """The one hit of a rule on a setting that is not B's, or for which another rule speaks."""
        hit = self._of_network(hits, {each.indices[0]: dict(each.sets[0]) for each in hits}, hits[0].flaw.describe)
        choice = self.best.alone.get(kind)
        same = choice is not None and all(
            choice.layers.get(each.indices[0]) == each.sets[0].get(kind) for each in hits if choice.layers
        )
        change_us = None
        if choice is not None and same:
            change_us = self.search.total_us({kind: choice}, {}) - self.deal.time_us
        self.stakes[id(hit)] = Stake(change_us)
        return hit

    def _of_network(self, hits: Sequence[Hit], sets: Mapping[int, dict[str, Scalar]], describe: str) -> Hit:
        """One hit for those of a rule; `sets` are the layers that change with it."""
        first = hits[0]
        own = {hit.indices[0]: hit for hit in hits}
        order = sorted({*own, *sets})
        message = first.message
        if len(own) > 1 and first.flaw.join_message:
            names = [self.layers[index].name for index in order]
            message = first.flaw.join_message.replace(COUNT, str(len(names))).replace(LAYERS, shortened(names, _NAMED))
        return first._replace(
            indices=tuple(order),
            names=tuple(self.layers[index].name for index in order),
            message=message,
            sets=tuple(sets.get(index, {}) for index in order),
            other={},
            identities=tuple((own.get(index) or first).identities[0] for index in order),
            flaw=replace(first.flaw, describe=describe, other={}, join=False),
            fired=tuple(own),
            of_network=True,
        )

    # Widths of groups.

    def _group(self, number: int, same: Sequence[Hit]) -> Hit:
        """One hit for those of one rule on one group; it stands where the number is written, if that was found."""
        key: Key = ("group", number)
        lever = self.best.levers.get(key)
        advised = lever is not None and lever.code == same[0].rule.info.code
        lead = next((hit for hit in same if hit.flaw.side == "K"), same[0])
        width = lever.width if lever is not None and advised else self.coupling.width(number, lead.flaw.width)
        hit = self._with_group(number, lead, width, {each.indices[0]: each for each in same}, advised=advised)
        if lever is not None and advised:
            self._advise(hit, key)
        elif any(id(each) in self.playing for each in same):
            layers = self.coupling.group(number).layers
            sets = self.coupling.sets(layers, {number: width}, number)
            self.stakes[id(hit)] = Stake(self._change_us(dict(zip(layers, sets, strict=True))))
        return hit

    def _new_group(self, key: Key, lever: Lever) -> Hit:
        """The hit of a group whose flaw stands only in B's settings."""
        assert lever.group is not None
        own = [(i, flaw) for i, flaw in lever.asking if flaw.rule.info.code == lever.code]
        once = self._before(key)
        hits = {i: self.new_hit(_once(flaw, once), i) for i, flaw in own}
        lead = next((hit for hit in hits.values() if hit.flaw.side == "K"), next(iter(hits.values())))
        hit = self._with_group(lever.group, lead, lever.width, hits, advised=True)
        self._advise(hit, key)
        return hit

    def _with_group(self, number: int, lead: Hit, width: int, own: Mapping[int, Hit], *, advised: bool) -> Hit:
        coupling, group = self.coupling, self.coupling.group(number)
        index, side, fix = lead.indices[0], lead.flaw.side, lead.flaw.case.fix
        less = int(lead.other[side]) if lead.other.keys() == {side} and lead.sets[0].get(side) == width else 0
        less -= less % group.multiple_of
        indices = (index, *(each for each in group.layers if each != index))
        widths = self.widths if advised else {}
        return lead._replace(
            flaw=replace(lead.flaw, describe=self._of_width(lead, width)),
            indices=indices,
            names=tuple(self.layers[each].name for each in indices),
            sets=coupling.sets(indices, {**widths, number: width}, number),
            other={side: less} if less else {},
            others=coupling.sets(indices, {number: less}, number) if less else (),
            identities=tuple((own.get(each) or lead).identities[0] for each in indices),
            follows=coupling.follows(number, index, side, widens=fix is None or fix.safety != "safe"),
            fired=tuple(own),
        )

    def _of_width(self, lead: Hit, width: int) -> str:
        side = lead.flaw.side
        if lead.sets[0].get(side) == width:
            return lead.flaw.describe
        assert lead.flaw.group is not None
        group = self.coupling.group(lead.flaw.group)
        if self.coupling.group_of(lead.indices[0], side) == lead.flaw.group:
            return say("use {side}={width}", side=side, width=width)
        return say("use {width} channels in place of {before}", width=width, before=group.width)

    # Forms of single layers.

    def _form(self, key: Key, lever: Lever) -> Hit:
        """The hit behind a change of one layer that belongs to B."""
        before = next((hit for i, flaw in lever.asking if (hit := self.of_layer.get((i, flaw.key))) is not None), None)
        if before is None:
            once = self._before(key)
            index, flaw = lever.asking[0]
            hit = self.new_hit(_once(replace(flaw, set=lever.changes), once), index)
            self.new.append(hit)
        else:
            hit = before
            if lever.changes != hit.sets[0]:
                flaw = replace(hit.flaw, set=lever.changes, other={}, describe=_further(hit, lever))
                hit = hit._replace(flaw=flaw, sets=(lever.changes,), other={})
                self.in_place_of[id(before)] = [hit]
        self._advise(hit, key)
        return hit

    def _before(self, key: Key) -> list[str]:
        """The rules that speak for the settings with which a size is first asked for."""
        way = list(self.best.choices.items())
        for count in range(1, len(way) + 1):
            if key in self.search.of(self.search.setting(dict(way[:count]))).levers:
                return [self.owners[kind] for kind, _ in way[:count]]
        return [self.owners[kind] for kind, _ in way]

    def _advise(self, hit: Hit, key: Key) -> None:
        self.stakes[id(hit)] = self.deal.levers[key]
        self.bases[id(hit)] = self.search.basis_of(self.best, key)

    def _change_us(self, changes: Mapping[int, Changes]) -> float | None:
        """What changes of these layers alone come to, in us; None where that is not predictable."""
        timing, whole = self.search.timing, 0.0
        for index, own in changes.items():
            before, after = timing.time_us(timing.now, index), timing.time_us(timing.now, index, own)
            if before is None or after is None:
                return None
            whole += after - before
        return whole


def _once(flaw: Flaw, codes: Sequence[str]) -> Flaw:
    """The flaw, with what has to be mended before it shows."""
    if not codes:
        return flaw
    if len(codes) == 1:
        once = say("once {code} is mended, ", code=codes[0])
    else:
        once = say("once {codes} are mended, ", codes=say(" and ").join(codes))
    return replace(flaw, message=once + flaw.message, join_message=once + flaw.join_message)


def _further(hit: Hit, lever: Lever) -> str:
    """What a form comes to that was taken further than its rule asks as things are."""
    if lever.changes.keys() <= {"C", "K"}:
        sizes = ", ".join(f"{name}={value}" for name, value in sorted(lever.changes.items()))
        return say("use {sizes}", sizes=sizes)
    last = lever.asking[-1][1]
    if last.describe == hit.flaw.describe:
        return hit.flaw.describe
    return say("{fix}; then {then}", fix=hit.flaw.describe, then=last.describe)
