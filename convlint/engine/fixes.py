"""What a hit's fix sets and says: one value where all its layers share it, and what each alternative changes."""

from __future__ import annotations

from collections.abc import Mapping

from convlint.engine.batches import sets_batch
from convlint.engine.changes import with_fix
from convlint.engine.hits import Hit
from convlint.engine.pricing import MOST_PRICED, Price, Pricer
from convlint.model.gemm import flops
from convlint.report import Fix, Scalar


def fix_of(hit: Hit, price: Price, pricer: Pricer) -> Fix | None:
    """The fix of a hit that was weighed and priced."""
    spec = hit.flaw.case.fix
    if spec is None:
        return None
    first = hit.sets[0] if hit.sets else {}
    if hit.flaw.set and set(hit.flaw.set) == {"N"} and not first:  # no batch was found to be worth it
        return Fix(describe=hit.flaw.describe, safety=spec.safety, set={})
    shared = first if all(changes == first for changes in hit.sets) else {}
    effects = []
    if spec.other or set(shared) == {"N"}:
        layers = pricer.batches.kinds(hit) if sets_batch(hit) else dict.fromkeys(hit.indices, 1)
        if len(layers) <= MOST_PRICED:
            effects = [_effect(layers, side, pricer) for side in (hit.other, shared) if side]
    return Fix(
        describe=f"{hit.flaw.describe}: {' or '.join(effects)}" if effects else hit.flaw.describe,
        safety=spec.safety,
        set=dict(shared),
        by_layer=hit.sets if hit.indices else (),
        time_change_us=price.time_change_us,
        states_effect=bool(effects),
    )


def is_refuted(hit: Hit, fix: Fix | None) -> bool:
    """Whether it is advice alone, keeps the network's results, and following it is predicted to cost time."""
    if hit.rule.loss == "none" or fix is None or fix.safety != "safe" or hit.severity != "info":
        return False
    return fix.time_change_us is not None and fix.time_change_us > 0


def _effect(layers: Mapping[int, int], changes: Mapping[str, Scalar], pricer: Pricer) -> str:
    """As N=54 (time -31 %, work -2 %): a size that shapes better need not shorten the operation (CG 1).

    `layers` are indices, and how many layers each of them stands for.
    """
    text = ", ".join(f"{name}={value}" for name, value in changes.items())
    time_before = time_after = 0.0
    work_before = work_after = 0
    for index, times in layers.items():
        layer, before, after = pricer.layers[index], pricer.estimates[index], pricer.time_after(index, changes)
        if before is None or after is None:
            return text
        time_before += times * before.time_us
        time_after += times * after
        work_before += times * layer.calls * (flops(layer) or 0)
        work_after += times * layer.calls * (flops(with_fix(layer, changes)) or 0)
    if not work_before or not time_before:
        return text
    time, work = 100 * (time_after / time_before - 1), 100 * (work_after / work_before - 1)
    return f"{text} (time {time:+.0f} %, work {work:+.0f} %)"
