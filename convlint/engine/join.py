"""Which findings of many layers are said once, and what that one finding is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from convlint.engine.hits import COUNT, LAYERS, Hit, Loss
from convlint.engine.severity import joins, stated
from convlint.facts.network import shortened

# Layers that say the same are joined from here on even where not all of the network's share it.
_MANY = 4


def joined(hits: Sequence[Hit], applicable: Mapping[str, int]) -> list[Hit]:
    """Hits in order; those that the rule's `join` puts together become one. `applicable`: layers, by code."""
    groups: dict[tuple[str, ...], list[Hit]] = {}
    keys: list[tuple[str, ...] | None] = []
    for hit in hits:
        join = hit.rule.join
        key: tuple[str, ...] | None = None
        if join is not None and hit.flaw.join and joins(join.share, hit.severity):
            # What one finding says must be true of all its layers: same severity, same words, same fix.
            fix = () if join.share == "all" else (hit.flaw.describe,)
            key = hit.rule.info.code, stated(hit.flaw.case), hit.flaw.join_message, *fix
            groups.setdefault(key, []).append(hit)
        keys.append(key)
    result = []
    for hit, key in zip(hits, keys, strict=True):
        if key is None:
            result.append(hit)
            continue
        group, join = groups[key], hit.rule.join
        assert join is not None
        shared = len(group) == applicable.get(key[0]) or len(group) > _MANY
        if len(group) == 1 or (join.share == "all" and not shared):
            result.append(hit)
        elif hit is group[0]:
            result.append(_join(group))
    return result


def _join(group: list[Hit]) -> Hit:
    first = group[0]
    names = tuple(name for hit in group for name in hit.names)
    text = first.flaw.join_message.replace(COUNT, str(len(group))).replace(LAYERS, shortened(list(names), 4))
    sets = [hit.sets[0] for hit in group]
    batches: tuple[int, ...] = ()
    if any(sets) and all(set(changes) <= {"N"} for changes in sets):  # a network has one batch size
        wanted = Counter(changes["N"] for hit in group for changes in (hit.sets[0], hit.other) if "N" in changes)
        batches = tuple(int(N) for N, _ in sorted(wanted.items(), key=lambda item: (-item[1], item[0])))
        wants = sorted(changes["N"] for changes in sets if changes)
        sets = [{"N": wants[len(wants) // 2]}] * len(sets)  # serves most; the widest want may be absurd
    return Hit(
        flaw=first.flaw,
        indices=tuple(index for hit in group for index in hit.indices),
        names=names,
        location=first.location,
        message=text,
        sets=tuple(sets),
        other={},
        severity=first.severity,
        loss=_sum([hit.loss for hit in group]) if tuple(sets) == tuple(hit.sets[0] for hit in group) else None,
        batches=batches,
    )


def _sum(losses: list[Loss | None]) -> Loss | None:
    """What they lose together; None where one is not priced yet."""
    by_layer: list[tuple[int, float]] = []
    changes: list[float | None] = []
    for loss in losses:
        if loss is None or loss.by_layer is None:
            return None
        by_layer += loss.by_layer
        changes += loss.changes or ()
    return Loss(tuple(by_layer), tuple(changes) if len(changes) == len(losses) else None)
