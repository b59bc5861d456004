"""What a hit's fix sets and says: one value where all its layers share it, and what each alternative changes."""

from __future__ import annotations

from collections.abc import Iterable

from convlint.engine.batches import Batches
from convlint.engine.changes import with_fix
from convlint.engine.hits import Hit, Price
from convlint.engine.players import Changes
from convlint.engine.pricing import Pricer
from convlint.files.languages.saying import say
from convlint.model.gemm import flops
from convlint.report import Fix

_ABOUT = 0.01  # of a share: differences below are none
MOST_PRICED = 1000  # layers of one finding whose fix has its effect worked out beside its price


def fix_of(hit: Hit, pricer: Pricer, batches: Batches) -> Fix | None:
    """The fix of a hit whose severity and batch are decided."""
    spec = hit.flaw.case.fix
    if spec is None:
        return None
    first = hit.sets[0] if hit.sets else {}
    if hit.sets_batch:
        sides = [int(changes["N"]) for changes in (first, hit.other) if "N" in changes]
        effects = [_per_image(hit, N, batches) for N in sides]
        shared, by_layer = first, (first,) * len(hit.indices)
    else:
        shared, by_layer = (first if all(changes == first for changes in hit.sets) else {}), hit.sets
        effects = []
        if hit.follows:
            shared = first
        if spec.other and shared and len(hit.indices) <= MOST_PRICED:
            ways = ((shared, by_layer), (hit.other, hit.others or (hit.other,) * len(hit.indices)))
            effects = [_effect(said, zip(hit.indices, sets, strict=True), pricer) for said, sets in ways if said]
    describe = hit.flaw.describe
    if effects:
        describe = say("{fix}: {effects}", fix=describe, effects=say(" or ").join(effects))
    if hit.follows:
        describe = say("{fix}; {follows}", fix=describe, follows=hit.follows)
    return Fix(
        describe=describe,
        safety=spec.safety,
        changes=spec.changes,
        set=dict(shared),
        by_layer=by_layer if hit.indices else (),
        time_change_us=hit.price.change_us,
        states_effect=bool(effects),
        alone=_is_alone(hit.price),
        advised=hit.price.advised or hit.sets_batch,
    )


def is_refuted(hit: Hit, fix: Fix | None) -> bool:
    """Whether it is advice alone, keeps the network's results, and following it is predicted to cost time."""
    if hit.rule.loss == "none" or fix is None or fix.safety != "safe" or hit.severity != "info":
        return False
    return not hit.price.advised and fix.time_change_us is not None and fix.time_change_us > 0


def _is_alone(price: Price) -> bool:
    """Whether the fix alone makes another difference than its share beside the other advice."""
    if not price.advised or price.change_us is None or price.lost_us is None:
        return False
    return abs(price.change_us + price.lost_us) > _ABOUT * price.lost_us


def _per_image(hit: Hit, N: int, batches: Batches) -> str:
    """As N=64 (time per image -29 %, per step +42 %): a larger batch that images gain from takes longer."""
    now = batches.layers[hit.indices[0]].N or N
    ratio = batches.us_per_image(now, N) / batches.us_per_image(now, now)
    image, step = 100 * (ratio - 1), 100 * (ratio * N / now - 1)
    return say("N={N} (time per image {image:+.0f} %, per step {step:+.0f} %)", N=N, image=image, step=step)


def _effect(said: Changes, by_layer: Iterable[tuple[int, Changes]], pricer: Pricer) -> str:
    """As K=64 (time -3 %, work +33 %): a size that shapes better need not shorten the operation (CG 1)."""
    text = ", ".join(f"{name.removeprefix('runtime.')}={value}" for name, value in said.items())
    time_before = time_after = 0.0
    work_before = work_after = 0
    for index, changes in by_layer:
        layer, before, after = pricer.running[index], pricer.estimates[index], pricer.time_after(index, changes)
        if before is None or after is None:
            return text
        time_before += before.time_us
        time_after += after
        work_before += layer.calls * (flops(layer) or 0)
        work_after += layer.calls * (flops(with_fix(layer, changes)) or 0)
    if not work_before or not time_before:
        return text
    time, work = 100 * (time_after / time_before - 1), 100 * (work_after / work_before - 1)
    if round(work):
        return say("{sizes} (time {time:+.0f} %, work {work:+.0f} %)", sizes=text, time=time, work=work)
    return say("{sizes} (time {time:+.0f} %)", sizes=text, time=time)
