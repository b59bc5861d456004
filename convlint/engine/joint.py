"""All advice on a network taken together: which of it is followed, what each piece saves, what the whole promises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations

from msgspec import Struct, field
from msgspec.structs import replace

from convlint.engine.hits import COUNT, LAYERS, NOT_WRITTEN, Flaw, Hit, with_fix
from convlint.engine.levers import KINDS, TF32, Advice, Coupling, Key, Kind, Lever, Levers, kind_of
from convlint.engine.optimum import LEAST_GAIN, Choices, Optimum, Search, SettingChoice, is_grouped
from convlint.engine.timing import NOTHING, SAME, Changes, NetworkSetting, Stake, compiled_step, shares
from convlint.estimate.host import Hosted, hosted
from convlint.estimate.memory import output_bytes
from convlint.facts.network import shortened
from convlint.model.estimates import Basis, LayerEstimate, StepEstimate
from convlint.model.layer import OF_STEPS, ConvLayer, Loss
from convlint.model.report import LayerTimes, Scalar
from convlint.model.runtime import framework_of
from convlint.model.text import Text, filled, joined


class Deal(Struct, frozen=True):
    """The stakes of B's members, and what all layers take before and after; in us."""

    settings: Mapping[Kind, Stake]
    levers: Mapping[Key, Stake]
    time_us: float
    after_us: float


class _Dealing:
    """The stakes of the members of `best`; `codes` are the rules that report its settings."""

    def __init__(self, best: Optimum, search: Search, advice: Advice, codes: Mapping[Kind, str]) -> None:
        self.best, self.search, self.advice, self.codes = best, search, advice, codes
        self.kinds = list(best.choices)
        self.subsets = [
            {kind: best.choices[kind] for kind in some}
            for size in range(len(self.kinds) + 1)
            for some in combinations(self.kinds, size)
        ]

    def deal(self) -> Deal:
        best, search, kinds = self.best, self.search, self.kinds
        now_us, after_us = search.total_us({}, {}), search.total_us(best.choices, best.levers)
        count = len(kinds) + bool(best.levers)

        def time_of(members: int) -> float:
            way = {kind: best.choices[kind] for i, kind in enumerate(kinds) if members >> i & 1}
            # Sizes that are asked for once others are mended may do more without them: no part is worth more than all.
            return max(after_us, search.total_us(way, best.levers if members >> len(kinds) & 1 else {}))

        all_shares = shares(count, now_us, time_of)
        of_sizes = tuple(sorted({lever.code for lever in best.levers.values()}))
        settings = {}
        for (share, others), kind in zip(all_shares, kinds, strict=False):
            codes = {self.codes[kinds[i]] for i in others if i < len(kinds)}
            codes.update(of_sizes if len(kinds) in others else ())
            change_us = search.total_us({kind: best.choices[kind]}, {}) - now_us
            settings[kind] = Stake(change_us, True, share, tuple(sorted(codes - {self.codes[kind]})))
        levers = self._divided(all_shares[-1][0]) if best.levers else {}
        return Deal(settings, levers, now_us, after_us)

    def _divided(self, block_us: float) -> dict[Key, Stake]:
        """Divides the share of all sizes among them, by the time that leaving each one out would cost.

        Exact shares of so many players would take 2**n timings.
        """
        best, saving_us = self.best, self.search.saving_us
        losses = {
            key: max(0.0, saving_us(best.setting, lever, self._near(lever))) for key, lever in best.levers.items()
        }
        total_us = sum(losses.values())
        now, stakes = self.search.timing.now, {}
        for key, lever in best.levers.items():
            share = block_us * losses[key] / total_us if total_us > 0 else block_us / len(losses)
            alone_us = saving_us(now, lever, {})
            pays_with: tuple[str, ...] = ()
            if max(0.0, alone_us) < share / 2:
                pays_with = self._company(lever, share)
            stakes[key] = Stake(-alone_us, True, share, pays_with)
        return stakes

    def _near(self, lever: Lever) -> Levers:
        """The other sizes of B that change layers of this one."""
        near = self.search.beside(self.best, lever.key)
        return {key: other for key, other in near.items() if key != lever.key}

    def _company(self, lever: Lever, share: float) -> tuple[str, ...]:
        """The codes of the fewest other changes with which a lever earns its share; of all nearby, if no fewer do."""
        near = self._near(lever)
        for way, setting, others in self._companies(near):
            if self.search.saving_us(setting, lever, others) >= share * (1 - SAME):
                return self._named(way, others)
        return self._named(self.best.choices, near)

    def _companies(self, near: Levers) -> Iterator[tuple[Choices, NetworkSetting, Levers]]:
        for way, setting in self._ways:
            if way:
                yield way, setting, {}
        for way, setting in self._ways if near else ():
            for key, other in near.items():
                yield way, setting, {key: other}
            yield way, setting, near

    @cached_property
    def _ways(self) -> list[tuple[Choices, NetworkSetting]]:
        """The subsets of the choices, each with the network so set: looking that up takes as long as it has layers."""
        return [(way, self.search.setting(way)) for way in self.subsets]

    def _named(self, way: Choices, others: Levers) -> tuple[str, ...]:
        codes = {self.codes[kind] for kind in way} | {other.code for other in others.values()}
        return tuple(sorted(codes))


NewHit = Callable[[Flaw, int], Hit]  # of a flaw that stands only once others are mended
_FOR_SURE = 0.9  # of a step that waits for its host: what is known of hosts is no better
_NAMED = 4


class Settled(Struct, frozen=True):
    """The hits, and by the number of a hit what its fix earns and what that rests on."""

    hits: list[Hit]
    stakes: Mapping[int, Stake]
    bases: Mapping[int, Basis]
    deal: Deal


class Joint:
    """The hits of a network whose B is `best`; `playing` are the numbers of those whose flaws may play."""

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
            if kind is not None and hit.number in playing:
                self.of_kind[kind].append(hit)
            elif hit.flaw.group is not None and (hit.number in playing or (fix is not None and not fix.priced)):
                self.of_group.setdefault(hit.flaw.group, []).append(hit)
            elif hit.indices and hit.number in playing:
                self.of_layer[hit.indices[0], hit.key] = hit
        self.widths = {lever.group: lever.width for lever in best.levers.values() if lever.group is not None}
        self.owners = {kind: self._owner(choice) for kind, choice in best.choices.items()}
        self.deal = _Dealing(best, search, advice, self.owners).deal()
        self.stakes: dict[int, Stake] = {}
        self.bases: dict[int, Basis] = {}
        self.in_place_of: dict[int, list[Hit]] = {}  # by the number of a hit: what stands there instead
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
                advised.add(self._form(key, lever).number)
            elif not any(hit.rule.info.code == lever.code for hit in self.of_group.get(lever.group, ())):
                self.new.append(self._new_group(key, lever))
        for hit in self.of_layer.values():
            if hit.number not in advised and hit.number not in self.in_place_of:
                self.stakes[hit.number] = Stake(self._change_us({hit.indices[0]: hit.sets[0]}))
        all_hits = [substitute for hit in self.hits for substitute in self.in_place_of.get(hit.number, [hit])]
        return Settled(all_hits + self.new, self.stakes, self.bases, self.deal)

    def _replace(self, hits: Sequence[Hit], by: Hit | None) -> None:
        """Replaces several hits by one, in the place of the first, or by none."""
        self.in_place_of.update((hit.number, []) for hit in hits)
        if by is not None:
            self.in_place_of[hits[0].number] = [by]

    # Settings of the network.

    def _owner(self, choice: SettingChoice) -> str:
        """The code of the rule that reports a setting: of those that ask for it now, the one in most layers.

        A dtype that is reached in two steps is reported by the rule on the first one. A rule that asks for another
        memory format comes last.
        """
        value, hits = choice.value, self.of_kind[choice.kind]
        here = [hit for hit in hits if not value or hit.flaw.set.items() <= value.items()]
        codes = Counter(hit.rule.info.code for hit in here or (hits if choice.kind != "layout" else ()))
        codes = codes or Counter(flaw.rule.info.code for _, flaw in choice.asking)
        return (codes or Counter(hit.rule.info.code for hit in hits)).most_common(1)[0][0]

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

    def _setting(self, choice: SettingChoice, hits: Sequence[Hit]) -> Hit:
        """The one hit of a setting that belongs to B, on all layers that it changes."""
        sets: dict[int, dict[str, Scalar]] = {}
        if choice.layers:
            for index in sorted(choice.layers):
                sets[index] = {choice.kind: str(choice.layers[index]), **choice.runtime}
            hits = [hit for hit in hits if hit.indices[0] in sets] or hits
        else:
            sets = {hit.indices[0]: dict(choice.runtime) for hit in hits}
        describe = self._described(choice, hits)
        rigid = self.search.timing.network.rigid_view
        if rigid and "NHWC" in choice.layers.values():
            describe = Text("{fix}; .view() in {place} refuses that, .reshape() does not", fix=describe, place=rigid)
        hit = self._of_network(hits, sets, describe)
        stake = self.deal.settings[choice.kind]
        lesser = self.search.lesser(choice)
        if lesser is not None:
            other_us = self.search.total_us({choice.kind: lesser}, {}) - self.deal.time_us
            hit = replace(hit, other=lesser.runtime, changes_us=(stake.change_us or 0.0, other_us))
        hit = replace(hit, flaw=replace(hit.flaw, set=next(iter(sets.values()))))
        self.stakes[hit.number] = stake
        self.bases[hit.number] = self.best.bases[choice.kind]
        return hit

    def _described(self, choice: SettingChoice, hits: Sequence[Hit]) -> str:
        """The text of the fix that leads to the setting; of both fixes where it takes two steps."""
        first = hits[0].flaw
        value = choice.value
        asks = self._are_grouped([hit.indices[0] for hit in hits])
        if {*choice.layers.values()} == {"NCHW"} and asks and not self._are_grouped(choice.layers):
            return Text("NCHW in all layers: copies between layouts would cost more than NHWC saves in the others")
        staying = self._staying(choice)
        if staying:
            layers = shortened([self.layers[index].name for index in staying], _NAMED)
            return Text("{fix}, but NCHW stays in {layers}", fix=first.describe, layers=layers)
        if value.keys() == {TF32} and TF32 in first.other:  # the lesser way of the two that the rule names
            in_pytorch = framework_of(self.search.timing.network.runtime) in (None, "pytorch")
            return Text("TF32 (in PyTorch: torch.backends.cudnn.allow_tf32 = True)") if in_pytorch else Text("TF32")
        if first.set.items() <= value.items() or not value:
            # Images, volumes and sequences have formats of their own.
            descriptions = tuple(dict.fromkeys(hit.flaw.describe for hit in hits)) if choice.kind == "layout" else ()
            return joined(Text("; "), descriptions) if len(descriptions) > 1 else first.describe
        then = next((flaw for _, flaw in reversed(choice.asking) if flaw.set.items() <= value.items()), None)
        if then is None or then.describe == first.describe:
            return first.describe
        return Text("{fix}; then {then}", fix=first.describe, then=then.describe)

    def _staying(self, choice: SettingChoice) -> Sequence[int]:
        """The grouped layers that are faster in NCHW, copies included, where others change to NHWC."""
        if "NHWC" not in choice.layers.values() or choice.kind != "layout":
            return ()
        after = enumerate(self.best.setting.layers)
        return [index for index, layer in after if is_grouped(layer) and layer.layout == "NCHW"]

    def _are_grouped(self, indices: Collection[int]) -> bool:
        return all(is_grouped(self.layers[index]) for index in indices)

    def _unadvised(self, kind: Kind, hits: Sequence[Hit]) -> Hit:
        """The one hit of a rule on a setting that is not B's, or that another rule reports."""
        hit = self._of_network(hits, {hit.indices[0]: dict(hit.sets[0]) for hit in hits}, hits[0].flaw.describe)
        choice = self.best.alone.get(kind)
        same = choice is not None and all(
            choice.layers.get(hit.indices[0]) == hit.sets[0].get(kind) for hit in hits if choice.layers
        )
        change_us = None
        if choice is not None and same:
            change_us = self.search.total_us({kind: choice}, {}) - self.deal.time_us
        self.stakes[hit.number] = Stake(change_us)
        return hit

    def _of_network(self, hits: Sequence[Hit], sets: Mapping[int, dict[str, Scalar]], describe: str) -> Hit:
        """Joins the hits of a rule into one on the network; `sets` has the changes of all layers that it changes."""
        first = hits[0]
        own = {hit.indices[0]: hit for hit in hits}
        order = sorted({*own, *sets})
        message = first.message
        if len(own) > 1 and first.flaw.join_message:
            # What is said of groups alone is not said of the layers that change with them.
            said = own if self._are_grouped(own) else order
            names = [self.layers[index].name for index in said]
            blanks = {COUNT: str(len(names)), LAYERS: shortened(names, _NAMED)}
            message = filled(first.flaw.join_message, blanks)
        return replace(
            first,
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
        """Joins the hits of one rule on one group; the result stands where the number is written, if a hit does."""
        key: Key = ("group", number)
        lever = self.best.levers.get(key)
        advised = lever is not None and lever.code == same[0].rule.info.code
        lead = next((hit for hit in same if hit.flaw.side == "K"), same[0])
        width = lever.width if lever is not None and advised else self.coupling.width(number, lead.flaw.width)
        hit = self._with_group(number, lead, width, {hit.indices[0]: hit for hit in same}, advised=advised)
        if lever is not None and advised:
            self._advise(hit, key)
        elif any(hit.number in self.playing for hit in same):
            layers = self.coupling.group(number).layers
            sets = self.coupling.sets(layers, {number: width}, number)
            self.stakes[hit.number] = Stake(self._change_us(dict(zip(layers, sets, strict=True))))
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
        indices = (index, *(other for other in group.layers if other != index))
        widths = self.widths if advised else {}
        sets = coupling.sets(indices, {**widths, number: width}, number)
        return replace(
            lead,
            flaw=replace(lead.flaw, describe=self._of_width(lead, sets[0].get("K", width) if side == "K" else width)),
            indices=indices,
            names=tuple(self.layers[index].name for index in indices),
            sets=sets,
            other={side: less} if less else {},
            others=coupling.sets(indices, {number: less}, number) if less else (),
            identities=tuple((own.get(index) or lead).identities[0] for index in indices),
            follows=coupling.follows(number, index, side, widens=fix is None or fix.safety != "safe"),
            fired=tuple(own),
        )

    def _of_width(self, lead: Hit, width: int) -> str:
        side = lead.flaw.side
        if lead.sets[0].get(side) == width:
            return lead.flaw.describe
        assert lead.flaw.group is not None
        group = self.coupling.group(lead.flaw.group)
        if side == "K" or self.coupling.group_of(lead.indices[0], side) == lead.flaw.group:
            return Text("use {side}={width}", side=side, width=width)
        return Text("use {width} channels in place of {before}", width=width, before=group.width)

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
                hit = replace(hit, flaw=flaw, sets=(lever.changes,), other={})
                self.in_place_of[before.number] = [hit]
        self._advise(hit, key)
        return hit

    def _before(self, key: Key) -> list[str]:
        """The codes of the rules that report the settings with which a size is first asked for."""
        way = list(self.best.choices.items())
        for count in range(1, len(way) + 1):
            if key in self.search.of(self.search.setting(dict(way[:count]))).levers:
                return [self.owners[kind] for kind, _ in way[:count]]
        return [self.owners[kind] for kind, _ in way]

    def _advise(self, hit: Hit, key: Key) -> None:
        self.stakes[hit.number] = self.deal.levers[key]
        self.bases[hit.number] = self.best.bases[key]

    def _change_us(self, changes: Mapping[int, Changes]) -> float | None:
        """The change in time by these changes alone, in us; None where that is not predictable."""
        timing, total_us = self.search.timing, 0.0
        for index, own in changes.items():
            before, after = timing.time_us(timing.now, index), timing.time_us(timing.now, index, own)
            if before is None or after is None:
                return None
            total_us += after - before
        return total_us


def _once(flaw: Flaw, codes: Sequence[str]) -> Flaw:
    """The flaw; its messages name the rules to be mended before it shows."""
    if not codes:
        return flaw
    if len(codes) == 1:
        once = Text("once {code} is mended, ", code=codes[0])
    else:
        once = Text("once {codes} are mended, ", codes=joined(Text(" and "), codes))
    return replace(flaw, message=once + flaw.message, join_message=once + flaw.join_message)


def _further(hit: Hit, lever: Lever) -> str:
    """The text of a fix where the lever changes more than its rule asks for now."""
    if lever.changes.keys() <= {"C", "K"}:
        sizes = ", ".join(f"{name}={value}" for name, value in sorted(lever.changes.items()))
        return Text("use {sizes}", sizes=sizes)
    last = lever.asking[-1][1]
    if last.describe == hit.flaw.describe:
        return hit.flaw.describe
    return Text("{fix}; then {then}", fix=hit.flaw.describe, then=last.describe)


class FoundSteps(Struct, frozen=True):
    """B of a network on one target, how it was found, and the whole steps that it leads to."""

    optimum: Optimum
    search: Search
    advice: Advice
    # by settings, sizes and whether it is compiled
    steps: dict[tuple[object, ...], StepEstimate | None] = field(default_factory=dict)

    def step_us(self, choices: Choices, levers: Levers, *, compiled: bool = False, hosted: bool = True) -> float | None:
        """The whole step with this advice; `compiled`: torch.compile too. Not `hosted`: nothing waits for the host."""
        step = self._step(choices, levers, compiled=compiled)
        return None if step is None else step.time_us if hosted else step.gpu_us

    def shortened(
        self, choices: Choices, levers: Levers, before_us: float | None, wanted: Callable[[Loss], bool]
    ) -> Iterator[tuple[Loss, float]]:
        """Yields what shortens the step beside this advice, `compile` and `host`, each with the step then.

        Only what is `wanted` counts; the first may leave nothing to the second. `before_us` is the step without them.
        """
        compiled = False
        for loss in reversed(OF_STEPS):
            if before_us is None or not wanted(loss):
                continue
            step_us = self.step_us(choices, levers, compiled=compiled or loss == "compile", hosted=loss != "host")
            if step_us is not None and step_us < before_us * (1 - LEAST_GAIN):
                yield loss, step_us
                compiled, before_us = True, step_us

    def shortest_us(self, choices: Choices, levers: Levers, wanted: Callable[[Loss], bool]) -> float | None:
        """The shortest step with this advice, and with those of `shortened` that are wanted."""
        step_us = self.step_us(choices, levers)
        return min((us for _, us in self.shortened(choices, levers, step_us, wanted)), default=step_us)

    def leaves_waiting(self, wanted: Callable[[Loss], bool]) -> bool:
        """Whether the GPU waits for the host in the step with all of B, and what mends that is not `wanted`."""
        best, compiled = self.optimum, wanted("compile")
        step = None if wanted("host") else self._step(best.choices, best.levers, compiled=compiled)
        return step is not None and step.idle_us > LEAST_GAIN * step.time_us

    def dtypes_lengthen(self, wanted: Callable[[Loss], bool]) -> bool:
        """Whether B's dtype makes the step longer than it is, or surely longer than it would be without.

        Autocast has more operations than a busy host can start.
        """
        best = self.optimum
        if "dtype" not in best.choices:
            return False
        others: Choices = {kind: choice for kind, choice in best.choices.items() if kind != "dtype"}
        us, without_us, plain_us = (
            self.shortest_us(choices, levers, wanted)
            for choices, levers in ((best.choices, best.levers), (others, best.levers), ({}, {}))
        )
        now_us = self.step_us({}, {})
        if us is None or without_us is None or plain_us is None or now_us is None:
            return False
        return us > now_us or min(without_us, plain_us) < us * _FOR_SURE

    def beside_us(self) -> dict[Kind, float]:
        """What each setting of B saves of the step beside the convolutions, in the order of kinds; {} where unknown."""
        saved: dict[Kind, float] = {}
        before = self._step({}, {})
        choices: dict[Kind, SettingChoice] = {}
        for kind, choice in self.optimum.choices.items():
            choices[kind] = choice
            after = self._step(choices, {})
            if before is not None and after is not None:
                saved[kind] = before.beside_us - after.beside_us
            before = after
        return saved

    def wider_us(self) -> dict[int, float]:
        """What B's widths add to the step beside the convolutions, by the layers that write more: norms, activations.

        It is shared out by the elements that each writes more; {} where nothing is added, or the step is unknown.
        """
        best = self.optimum
        if not best.levers:
            return {}
        before, after = self._step(best.choices, {}), self._step(best.choices, best.levers)
        if before is None or after is None or after.beside_us <= before.beside_us:
            return {}
        layers, more = self.search.timing.network.layers, dict[int, float]()
        for index, changes in self.advice.changes(best.levers).items():
            was, now = output_bytes(layers[index]), output_bytes(with_fix(layers[index], changes))
            if now > was:
                more[index] = (now - was) * layers[index].calls
        total = sum(more.values())
        return {index: (after.beside_us - before.beside_us) * part / total for index, part in more.items()}

    def _step(self, choices: Choices, levers: Levers, *, compiled: bool = False) -> StepEstimate | None:
        """The step with some of B, whose members have one value each."""
        if not self.search.timing.network.tells_step:
            return None
        key = (tuple(choices), tuple(levers), compiled)
        if key not in self.steps:
            self.steps[key] = self._estimated(choices, levers, compiled=compiled)
        return self.steps[key]

    def _estimated(self, choices: Choices, levers: Levers, *, compiled: bool) -> StepEstimate | None:
        timing, setting = self.search.timing, self.search.setting(choices)
        from convlint.estimate.step import Steps, step_of  # of whole networks alone

        after = self.advice.changes(levers)
        layers = [timing.layer(setting, index, after.get(index, NOTHING)) for index in range(len(setting.layers))]
        # Widened too, as products and what follows them do not grow with the layers alone.
        network = self.advice.coupling.widened(replace(timing.network, runtime=setting.runtime), levers.values())
        if compiled:
            return compiled_step(network, layers, timing.gpu, timing.mode)
        us = timing.gpu_us(setting, after)
        return step_of(Steps(network, layers, us, setting.runtime, timing.mode), timing.gpu)


class Promise(FoundSteps, frozen=True, kw_only=True):
    """The steps with the hits and what they earn in B."""

    settled: Settled
    estimates: Sequence[LayerEstimate | None]  # as things are, on the network's host
    later: list[Hit]  # of rules on the step that warn only once B is done

    def times(self, on_host: Hosted) -> list[LayerTimes | None]:
        """The times of each layer now, after all advice, after its fixes, and ideally; with its waits for the host."""
        best, timing = self.optimum, self.search.timing
        after = self.advice.changes(best.levers)
        written = {key: lever for key, lever in best.levers.items() if NOT_WRITTEN.isdisjoint(lever.changes)}
        fixed = after if len(written) == len(best.levers) else self.advice.changes(written)
        fixed_setting = self.search.setting(_written(best.choices))
        if on_host.host_us is not None:
            return self._on_host(on_host, self._hosted(best.setting, after), self._hosted(fixed_setting, fixed))
        now = timing.times(timing.now)
        times: list[LayerTimes | None] = []
        for index, time_us in enumerate(now):
            then_us = timing.time_us(best.setting, index, after.get(index, NOTHING))
            ideal_us = self._ideal_us(index, after.get(index, NOTHING))
            fixed_us = timing.time_us(fixed_setting, index, fixed.get(index, NOTHING))
            if time_us is None or then_us is None or ideal_us is None:
                times.append(None)
            else:
                times.append(LayerTimes(time_us=time_us, after_us=then_us, ideal_us=ideal_us, after_fix_us=fixed_us))
        return times

    def _ideal_us(self, index: int, changes: Changes) -> float | None:
        best, timing = self.optimum, self.search.timing
        estimate = self.estimates[index]
        same = best.setting.number == timing.now.number and best.setting.running[index] == timing.now.running[index]
        if estimate is not None and same and not changes:
            return estimate.unquantized_us
        return timing.ideal_us(best.setting, index, changes)

    def _on_host(
        self, on_host: Hosted, after: Sequence[LayerEstimate | None], fixed: Sequence[LayerEstimate | None]
    ) -> list[LayerTimes | None]:
        """The same where the host is known: the GPU may wait for it now, after the advice, or both."""
        return [
            None if now is None or then is None or written is None else LayerTimes(
                time_us=now.time_us, after_us=then.time_us, ideal_us=min(then.unquantized_us, then.time_us),
                after_fix_us=written.time_us,
            )
            for now, then, written in zip(on_host.estimates, after, fixed, strict=True)
        ]  # fmt: skip

    def _hosted(self, setting: NetworkSetting, changes: Mapping[int, Changes]) -> tuple[LayerEstimate | None, ...]:
        timing, numbers = self.search.timing, range(len(setting.running))
        estimates = [timing.estimate(setting, index, changes.get(index, NOTHING)) for index in numbers]
        layers = [timing.layer(setting, index, changes.get(index, NOTHING)) for index in numbers]
        return hosted(layers, estimates, timing.host_in(setting)).estimates


def _written(choices: Choices) -> Choices:
    """The settings that a fix can write: no file of the network states the versions that are installed."""
    written: dict[Kind, SettingChoice] = {}
    for kind, choice in choices.items():
        runtime = {name: value for name, value in choice.runtime.items() if name not in NOT_WRITTEN}
        if runtime or choice.layers or not choice.runtime:
            written[kind] = choice if len(runtime) == len(choice.runtime) else replace(choice, runtime=runtime)
    return written
