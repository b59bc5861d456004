"""The fix of each finding, with its effect on time and work; other batches among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from convlint.engine.hits import NOT_WRITTEN, Hit, Price, with_fix
from convlint.engine.levers import Validity, takes_away
from convlint.engine.timing import SAME, Changes, Pricer
from convlint.model.estimates import LayerEstimate
from convlint.model.layer import Allowance, ConvLayer, flops
from convlint.model.report import Alternative, Fix
from convlint.model.text import Text, joined

_ADVICE_GAIN = 0.005  # of the network's time per image: what another batch must gain to be advised
# Each batch that is tried costs an estimate of every kind of layer: few are, and they are compared on a sample.
_BATCHES_TRIED = 6  # on each side
_MOST_KINDS = 400  # kinds of layers on which the best of them is tried then; of more, on a sample as well
_COMPARED = 12  # every n-th kind, from the longest to the shortest, on which batches are compared
_SAMPLE = 100  # the same, of a network with more than _MOST_KINDS


class BatchPlan(Struct, frozen=True):
    """The batches to advise, one larger and one smaller at most, the preferred one first; an image takes `now_us`."""

    batches: tuple[int, ...]
    now_us: float


class Batches:
    """The network's time per image as a function of N.

    `time_us(index, N)` predicts one layer; `fits(now, N)` says whether there is memory for layers of `now` at N. Where
    the GPU `waits` for its host, only more than one image is advised: tiles and waves are not what an image waits for.
    `pace` is what the host needs to start a step, and what the GPU needs for all that is no convolution, in us.
    `step_at(N)` is the whole step where all operations are known; else convolutions and pace stand for it.
    Without `details`, batches are tried where an error asks for one alone.
    """

    def __init__(
        self,
        layers: Sequence[ConvLayer],
        estimates: Sequence[LayerEstimate | None],
        time_us: Callable[[int, int], float | None],
        fits: Callable[[int, int], bool] | None = None,
        *,
        waits: bool = False,
        pace: tuple[float, float] = (0.0, 0.0),
        step_at: Callable[[int], float | None] = lambda _: None,
        details: bool = True,
    ) -> None:
        self.layers, self.estimates, self.time_us, self.fits, self.waits = layers, estimates, time_us, fits, waits
        self.pace, self.step_at = pace, cache(step_at)
        self.details = details
        self._network_us: dict[tuple[int, int], float] = {}
        self._samples: dict[tuple[int, int], Sequence[tuple[int, float]]] = {}

    @cached_property
    def _by_batch(self) -> Mapping[int, Mapping[int, int]]:
        """By batch: of each kind, which has the same estimates, the index of its first layer and how many it has."""
        first: dict[tuple[int, ...], int] = {}
        count: dict[int, dict[int, int]] = {}
        for index, (layer, estimate) in enumerate(zip(self.layers, self.estimates, strict=True)):
            if layer.N is not None:
                key = (index,) if estimate is None else (layer.calls, *map(id, estimate.passes.values()))
                kind = first.setdefault(key, index)
                same = count.setdefault(layer.N, {})
                same[kind] = same.get(kind, 0) + 1
        return count

    def settled(self, hits: Iterable[Hit]) -> list[Hit]:
        """The hits, those on N with the plan for their batch; these are infos, unless they are errors."""
        hits = list(hits)
        present = [self._now(hit) for hit in hits]
        all_votes: dict[int, Counter[int]] = {}
        heeded = {now for hit, now in zip(hits, present, strict=True) if self.details or hit.severity == "error"}
        for hit, now in zip(hits, present, strict=True):
            if now is not None:
                votes = all_votes.setdefault(now, Counter())
                votes.update(int(changes["N"]) for changes in (hit.sets[0], hit.other) if "N" in changes)
        plans = {
            now: self.plan(now, [N for N, _ in sorted(votes.items(), key=lambda item: (-item[1], item[0]))])
            if now in heeded
            else BatchPlan((), 0.0)
            for now, votes in all_votes.items()
        }
        return [hit if at is None else self._with(hit, at, plans[at]) for hit, at in zip(hits, present, strict=True)]

    def _now(self, hit: Hit) -> int | None:
        """The present batch of a hit that asks for another one; None for other hits."""
        return self.layers[hit.indices[0]].N if hit.indices and hit.sets_batch else None

    def _with(self, hit: Hit, now: int, plan: BatchPlan) -> Hit:
        best = plan.batches
        own = {changes.get("N") for changes in (hit.sets[0], hit.other)}
        if hit.rule.loss != "wave":  # what fills its tiles may be another batch, but a multiple fills them too
            best = tuple(takewhile(lambda N: any(wanted and N % int(wanted) == 0 for wanted in own), best))
        change_us = self.us_per_image(now, best[0]) - plan.now_us if best else None
        return replace(
            hit,
            severity="error" if hit.severity == "error" else "info",
            sets=({"N": best[0]} if best else {},),
            other={"N": best[1]} if len(best) > 1 else {},
            price=Price(capacity_us=hit.price.capacity_us, change_us=change_us),
        )

    def said_once(self, hits: Iterable[Hit]) -> list[Hit]:
        """The hits, with one for each batch beside errors: one that names another batch if any does, on most layers."""
        hits = list(hits)
        loudest: dict[int, Hit] = {}
        for hit in hits:
            now = self._now(hit)
            if now is not None:
                first = loudest.setdefault(now, hit)
                if (bool(hit.sets[0]), len(hit.indices)) > (bool(first.sets[0]), len(first.indices)):
                    loudest[now] = hit
        return [
            hit for hit in hits if hit.severity == "error" or (now := self._now(hit)) is None or hit is loudest[now]
        ]

    def plan(self, now: int, wanted: Sequence[int]) -> BatchPlan:
        """The best of the batches `wanted`, most wanted first, and of round ones nearby, by time per image.

        A network has one batch: what matters is the time per image of all layers that share it.
        """
        if self.waits and now > 1:
            return BatchPlan((), self.us_per_image(now, now))
        # More is another way to work; but one image is none, and a few would be asked for a multiple of 8 next.
        asked = wanted if now > 1 else [near for N in wanted for near in (N, -(-N // 8) * 8)]
        most = 2 * now if now > 1 else max([8, *asked])
        below = [N for N in wanted if now / 2 <= N < now]
        above = [N for N in asked if now < N <= most]
        if wanted and len(self._by_batch.get(now, ())) <= _MOST_KINDS:
            above += [N for step in (8, 16, 32, 64) if now < (N := now // step * step + step) <= most]
            above += range(now + 1, most + 1) if now < 8 else ()
        present = self.us_per_image(now, now)
        best = []
        for side in (below, above):
            tried = sorted(list(dict.fromkeys(side))[:_BATCHES_TRIED], reverse=True)
            tried = [N for N in tried if self.fits is None or self.fits(now, N)]
            N = min(tried, key=lambda N: self._compared_us(now, N), default=now) if len(tried) > 1 else (*tried, now)[0]
            if now == N or self._compared_us(now, N) > self._compared_us(now, now) * (1 + _ADVICE_GAIN):
                continue
            if self.us_per_image(now, N) < present * (1 - _ADVICE_GAIN):
                best.append(N)
        if self.step_at(now) is not None:  # norms and products may take what convolutions save
            best = [N for N in best if self.step_us(now, N) / N < self.step_us(now, now) / now * (1 - _ADVICE_GAIN)]
        best.sort(key=lambda N: (now > N, abs(N - now)))  # a lower one takes work away
        return BatchPlan(tuple(best), present)

    def us_per_image(self, now: int, N: int) -> float:
        """Time per image, in us, of all layers whose batch is `now`, at batch `N`; unknown times count as 0."""
        key = now, N
        if key not in self._network_us:
            kinds = self._sample(now, _SAMPLE if len(self._by_batch[now]) > _MOST_KINDS else _MOST_KINDS)
            self._network_us[key] = sum(weight * (self.time_us(index, N) or 0.0) for index, weight in kinds)
        return self._network_us[key] / N

    def step_us(self, now: int, N: int) -> float:
        """Time of one step at batch `N`, in us; at least what the host needs to start it."""
        whole_us = self.step_at(N)
        if whole_us is not None:
            return whole_us
        host_us, beside_us = self.pace
        return max(self.us_per_image(now, N) * N + beside_us * N / now, host_us)

    def _compared_us(self, now: int, N: int) -> float:
        """About the time per image, from a small sample, to compare batches."""
        return sum(weight * (self.time_us(index, N) or 0.0) for index, weight in self._sample(now, _COMPARED)) / N

    def _sample(self, now: int, size: int) -> Sequence[tuple[int, float]]:
        """At most `size` kinds on which other batches are tried, and how many layers each stands for.

        Long layers gain less from another batch than short ones, so that a sample has both; each of its layers stands
        for the time of those that were left out beside it.
        """
        key = now, size
        if key not in self._samples:
            kinds = list(self._by_batch[now].items())
            if len(kinds) > size:
                kinds.sort(key=lambda kind: -kind[1] * self._present_us(kind[0]))
                step = len(kinds) / size
                groups = [kinds[int(n * step) : int((n + 1) * step)] for n in range(size)]
                self._samples[key] = [self._standing_for(group) for group in groups]
            else:
                self._samples[key] = kinds
        return self._samples[key]

    def _standing_for(self, kinds: Sequence[tuple[int, int]]) -> tuple[int, float]:
        """The kind in the middle, weighted so that it takes as long as all of `kinds` do now."""
        index, times = kinds[len(kinds) // 2]
        present = self._present_us(index)
        total_us = sum(count * self._present_us(kind) for kind, count in kinds)
        return index, total_us / present if present else times

    def _present_us(self, index: int) -> float:
        estimate = self.estimates[index]
        return estimate.time_us if estimate else 0.0


_ABOUT = 0.01  # of a share: differences below are none
_SIZES = frozenset(("C", "K", "groups"))
MOST_PRICED = 1000  # layers of one finding whose fix has its effect worked out beside its price


def fix_of(
    hit: Hit, pricer: Pricer, batches: Batches, network_us: float, allow: Collection[Allowance] = ()
) -> Fix | None:
    """The fix of a hit whose severity and batch are decided; `network_us` is what the network takes."""
    spec = hit.flaw.case.fix
    if spec is None or hit.flaw.refused:
        return None
    first = hit.sets[0] if hit.sets else {}
    offered: list[tuple[Changes, str]] = []
    if hit.sets_batch and not first and hit.severity != "error":  # no batch near takes less for an image
        return None
    if hit.sets_batch:
        sides = [int(changes["N"]) for changes in (first, hit.other) if "N" in changes]
        offered = [({"N": N}, _per_image(hit, N, batches)) for N in sides]
        shared, by_layer, change_us = first, (first,) * len(hit.indices), hit.price.change_us
        if (
            sides and hit.rule.loss in ("tile", "wave") and sides[0] < (batches.layers[hit.indices[0]].N or 0)
        ):  # less work is no fix
            shared, by_layer, change_us = {}, (), None
    else:
        shared, by_layer = (first if all(changes == first for changes in hit.sets) else {}), hit.sets
        change_us = hit.price.change_us
        if hit.follows:
            shared = first
        if (spec.other or is_alternative(hit)) and not hit.of_network and len(hit.indices) <= MOST_PRICED:
            ways = [(changes, sets) for changes, sets in zip((shared, hit.other), _ways(hit), strict=True) if any(sets)]
            if not shared:  # of layers that set different sizes, what the first value of each comes to
                ways = ways[:1] if is_alternative(hit) and any(hit.sets) else []
            if ways:
                known = [_effect(zip(hit.indices, sets, strict=True), pricer) for _, sets in ways]
                offered = [(changes, _in_words(effect)) for (changes, _), effect in zip(ways, known, strict=True)]
                if known[0] is not None and is_alternative(hit):  # layers that joined may share what changes
                    change_us = known[0].time_after - known[0].time_before
        if hit.changes_us:
            both = zip((shared, hit.other), hit.changes_us, strict=True)
            offered = [(changes, _time_in_words(us, network_us)) for changes, us in both]
    if is_alternative(hit):  # less work is an alternative, and no fix
        by_layer = next((tuple(way) for way in _ways(hit) if any(way) and _may_be_fix(hit, way, pricer)), ())
        if by_layer != hit.sets:
            change_us = _change_us(hit, by_layer, pricer) if by_layer else None
            shared = by_layer[0] if by_layer and all(changes == by_layer[0] for changes in by_layer) else {}
    describe = _with_effects(hit.flaw.describe or ("" if shared else _per_layer(hit.sets)), offered)
    is_allowed = hit.sets_batch and bool(first) and "batch" in allow
    if hit.follows:
        describe = Text("{fix}; {follows}", fix=describe, follows=hit.follows)
    return Fix(
        describe=describe,
        safety=spec.safety,
        changes=spec.changes,
        set=dict(shared),
        by_layer=by_layer if hit.indices else (),
        time_change_us=change_us,
        states_effect=bool(offered),
        alone=_is_alone(hit.price),
        advised=hit.price.advised or is_allowed,
        applicable=_is_applicable(hit) or is_allowed,
    )


def _may_be_fix(hit: Hit, way: Sequence[Changes], pricer: Pricer) -> bool:
    """Whether an alternative may be a fix: it takes no work away, and adds channels or takes no longer."""
    if any(takes_away(own, pricer.layers[index]) for index, own in zip(hit.indices, way, strict=True)):
        return False
    return any(own.keys() & {"C", "K"} for own in way) or (_change_us(hit, way, pricer) or 0.0) <= 0


def _change_us(hit: Hit, way: Sequence[Changes], pricer: Pricer) -> float | None:
    effect = _effect(zip(hit.indices, way, strict=True), pricer)
    return None if effect is None else effect.time_after - effect.time_before


def _is_applicable(hit: Hit) -> bool:
    """Whether `--fix --unsafe-fixes` means to write it: what is advised, and what mends a flaw without a price."""
    fields = {name for changes in hit.sets for name in changes}
    if not fields or fields & NOT_WRITTEN or hit.sets_batch:
        return False
    return hit.price.advised or hit.price.lost_us is None


def alternatives_of(hit: Hit, pricer: Pricer, batches: Batches) -> tuple[Alternative, ...]:
    """The alternatives to a hit's fix: other sizes with their effect, or batches with the change per image."""
    if hit.flaw.refused:
        return ()
    if hit.sets_batch:
        sides = [changes for changes in (*hit.sets[:1], hit.other) if "N" in changes]
        return tuple(_batch(hit, int(changes["N"]), batches) for changes in sides)
    if hit.changes_us:
        describe = Text("use {sizes}", sizes=_sizes(hit.other))
        change_us = hit.changes_us[-1]
        return (Alternative(describe=describe, set=dict(hit.other), time_change_us=change_us, work_change=0.0),)
    if not is_alternative(hit) or len(hit.indices) > MOST_PRICED:
        return ()
    alternatives = []
    for sets in _ways(hit):
        effect = _effect(zip(hit.indices, sets, strict=True), pricer) if any(sets) else None
        if effect is None or not effect.is_worth_naming:  # of layers that joined, what each gains may not add up
            continue
        first = sets[0]
        shared = first if hit.follows or all(changes == first for changes in sets) else {}
        alternatives.append(
            Alternative(
                describe=Text("use {sizes}", sizes=_sizes(shared)) if shared else hit.flaw.describe or _per_layer(sets),
                set=dict(shared),
                time_change_us=effect.time_after - effect.time_before,
                work_change=effect.work_after / effect.work_before - 1,
            )
        )
    return tuple(alternatives)


def _batch(hit: Hit, N: int, batches: Batches) -> Alternative:
    now = batches.layers[hit.indices[0]].N or N
    change_us = batches.us_per_image(now, N) - batches.us_per_image(now, now)
    return Alternative(
        describe=Text("use {sizes}", sizes=f"N={N}"), set={"N": N}, time_change_us=change_us, work_change=0.0
    )


def _with_effects(describe: str, ways: Sequence[tuple[Changes, str]]) -> str:
    """The words of a fix with what each alternative sets and changes. No size is said twice."""
    if not ways:
        return describe
    (first, effect), *others = ways
    offered = [_sizes(changes) + words for changes, words in others]
    if describe and all(_sizes({name: value}) in describe for name, value in first.items()):
        return joined(Text(" or "), [describe + effect, *offered])
    effects = joined(Text(" or "), [_sizes(first) + effect, *offered])
    return Text("{fix}: {effects}", fix=describe, effects=effects) if describe else Text("use {sizes}", sizes=effects)


def _per_layer(sets: Sequence[Changes]) -> str:
    """The words for sizes that differ between layers, where the rule has none: it speaks of other sizes."""
    sizes = dict.fromkeys(_sizes(changes) for changes in sets if changes)
    return Text("use {sizes}", sizes=", ".join(sizes)) if sizes else ""


def _sizes(changes: Changes) -> str:
    return ", ".join(f"{name.removeprefix('runtime.')}={value}" for name, value in changes.items())


def is_alternative(hit: Hit) -> bool:
    """Whether the sizes that it sets are not advised but make another network, whose time and work must be stated."""
    return hit.rule.loss == "tile" and not hit.price.advised and not hit.sets_batch


def with_valid_fixes(hits: Sequence[Hit], pricer: Pricer, validity: Validity) -> Iterator[tuple[Hit, bool]]:
    """Yields each hit with the values that are worth naming, and whether to report it.

    No rule in force objects to these. What is advised pays, alone or with others. Of the rest, what mends a flaw must
    not take longer than the flaw; an alternative is faster, or does more work in a unit of time. A rule about capacity
    has nothing to say where none is left, unless it is an error.
    """
    many = Counter(hit.rule.info.code for hit in hits)
    for hit in hits:
        if _is_slower(hit, pricer):
            yield replace(hit, flaw=replace(hit.flaw, refused=True), other={}, others=()), True
            continue
        if not hit.flaw.refused and (not any(any(way) for way in _ways(hit)) or not _names_values(hit)):
            yield hit, True
            continue
        few = many[hit.rule.info.code] <= MOST_PRICED
        first, second = (_is_worth_naming(hit, way, pricer, validity, few=few) for way in _ways(hit))
        if first:
            yield (hit if second else replace(hit, other={}, others=())), True
        elif second:
            yield _turned(hit, pricer), True
        elif is_alternative(hit) and hit.severity != "error":
            yield hit, False
        else:
            yield replace(hit, flaw=replace(hit.flaw, refused=True), other={}, others=()), True


def _is_slower(hit: Hit, pricer: Pricer) -> bool:
    """Whether a fix is not advised and takes longer than the flaw, which is reported all the same.

    Safe fixes count only at the K of a head, which the task fixes. A width that keeps torch.compile from laying out the
    network makes the other layers slower.
    """
    spec, change_us = hit.flaw.case.fix, hit.price.change_us
    if hit.price.advised or hit.rule.loss != "fix" or hit.severity == "error" or change_us is None or spec is None:
        return False
    sets = dict(zip(hit.indices, hit.sets, strict=True))
    if pricer.timing.against_layouts(pricer.timing.now, sets) is not None:
        return True
    of_head = any(pricer.layers[index].head and "K" in own for index, own in sets.items())
    return change_us > 0 and (spec.safety != "safe" or of_head)


def _names_values(hit: Hit) -> bool:
    """Whether its fix changes sizes of the network, and is neither a setting nor the correction of an error."""
    spec = hit.flaw.case.fix
    if spec is None or hit.sets_batch or hit.rule.loss == "none" or spec.safety == "safe":
        return False
    return any(_SIZES.issuperset(changes) for changes in hit.sets if changes)


def _ways(hit: Hit) -> tuple[Sequence[Changes], Sequence[Changes]]:
    """The changes of its fix and of its second good value, for each of its layers; empty where there are none."""
    return hit.sets, hit.others or (hit.other,) * len(hit.indices)


def _is_worth_naming(hit: Hit, way: Sequence[Changes], pricer: Pricer, validity: Validity, *, few: bool) -> bool:
    if not any(way):
        return False
    is_own = way is hit.sets
    if is_own and hit.price.advised:
        return True  # with what else is advised
    flaw = hit.flaw
    for number, (index, changes) in enumerate(zip(hit.indices, way, strict=True)):
        # a C that is the sum of several numbers is mended with the others
        mends = number == 0 and not (flaw.side and changes.get(flaw.side) != way[0].get(flaw.side)) and not flaw.part
        if changes and validity.objections(index, changes, hit.rule, mends=mends, predicted=few):
            return False
    if not few:
        return True
    effect = _effect(zip(hit.indices, way, strict=True), pricer)
    if effect is None:
        return True
    if hit.rule.loss == "tile":
        return effect.is_worth_naming
    return effect.time_after <= effect.time_before * (1 + SAME)


def _turned(hit: Hit, pricer: Pricer) -> Hit:
    """The hit with the second good value in the place of the first."""
    way = tuple(_ways(hit)[1])
    change_us = _change_us(hit, way, pricer)
    alone_us = None if change_us is None else max(0.0, -change_us)
    return replace(
        hit,
        flaw=replace(hit.flaw, describe="", set=way[0], other={}),
        sets=way,
        other={},
        others=(),
        price=replace(hit.price, change_us=change_us, alone_us=alone_us),
    )


def is_refuted(hit: Hit, fix: Fix | None) -> bool:
    """Whether it is an info whose safe fix is not advised and is predicted to cost time."""
    if hit.rule.loss == "none" or fix is None or fix.safety != "safe" or hit.severity != "info":
        return False
    return not hit.price.advised and fix.time_change_us is not None and fix.time_change_us > 0


def _is_alone(price: Price) -> bool:
    """Whether the fix alone changes the time by more or less than its share of all advice."""
    if not price.advised or price.change_us is None or price.lost_us is None:
        return False
    return abs(price.change_us + price.lost_us) > _ABOUT * price.lost_us


def _per_image(hit: Hit, N: int, batches: Batches) -> str:
    """The effect of a batch, such as (time per image -29 %, per step +42 %): a larger batch has longer steps."""
    now = batches.layers[hit.indices[0]].N or N
    ratio = batches.step_us(now, N) / batches.step_us(now, now)
    image, step = 100 * (ratio * now / N - 1), 100 * (ratio - 1)
    return Text(" (time per image {image:+.0f} %, per step {step:+.0f} %)", image=image, step=step)


class _Effect(Struct, frozen=True):
    """Times in us, and FLOPs of one forward pass, of some layers before and after changes."""

    time_before: float
    time_after: float
    work_before: int
    work_after: int

    @property
    def is_worth_naming(self) -> bool:
        """Whether it is faster, or does more work in a unit of time."""
        time, work = self.time_after / self.time_before, self.work_after / self.work_before
        return time < 1 - SAME or work > time * (1 + SAME)


def _effect(by_layer: Iterable[tuple[int, Changes]], pricer: Pricer) -> _Effect | None:
    """The effect of changes on these layers; None where it cannot be predicted."""
    time_before = time_after = 0.0
    work_before = work_after = 0
    for index, changes in by_layer:
        layer, before, after = pricer.running[index], pricer.now_us(index), pricer.time_after(index, changes)
        if before is None or after is None:
            return None
        time_before += before
        time_after += after
        work_before += layer.calls * (flops(layer) or 0)
        work_after += layer.calls * (flops(with_fix(layer, changes)) or 0)
    if not work_before or not time_before:
        return None
    return _Effect(time_before, time_after, work_before, work_after)


def _in_words(effect: _Effect | None) -> str:
    """An effect, such as (time -3 %, work +33 %): a size that shapes better need not shorten the operation (CG 1)."""
    if effect is None:
        return ""
    time, work = 100 * (effect.time_after / effect.time_before - 1), 100 * (effect.work_after / effect.work_before - 1)
    if round(work):
        return Text(" (time {time:+.0f} %, work {work:+.0f} %)", time=time, work=work)
    return _time_in_words(effect.time_after - effect.time_before, effect.time_before)


def _time_in_words(change_us: float, now_us: float) -> str:
    return Text(" (time {time:+.0f} %)", time=100 * change_us / now_us)
