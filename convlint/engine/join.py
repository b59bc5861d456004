"""Which findings of many layers are said once, and what that one finding is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from convlint.engine.hits import COUNT, LAYERS, Hit, Price
from convlint.engine.severity import joins
from convlint.estimate.basis import Basis
from convlint.facts.network import shortened
from convlint.report import Identity, Scalar

# Layers that say the same are joined from here on even where not all of the network's share it.
_MANY = 4


def joined(hits: Sequence[Hit], applicable: Mapping[str, int]) -> list[Hit]:
    """Hits in order; those that the rule's `join` puts together become one. `applicable`: layers, by code."""
    later = Counter(hit.rule.info.code for hit in hits if hit.came_to_light)
    groups: dict[tuple[str, ...], list[Hit]] = {}
    keys: list[tuple[str, ...] | None] = []
    for hit in hits:
        join = hit.rule.join
        key: tuple[str, ...] | None = None
        is_advice_for_many = bool(hit.follows) and hit.price.advised
        if join is not None and hit.flaw.join and _may_join(hit, join.share) and not is_advice_for_many:
            # What one finding says must be true of all its layers: same words, same fix, good or not.
            fix = () if join.share == "all" and not hit.came_to_light else (hit.flaw.describe,)
            advised = "advised" if hit.price.advised else ""
            key = hit.rule.info.code, hit.severity, advised, hit.flaw.join_message, *fix, *_batch(hit)
            groups.setdefault(key, []).append(hit)
        keys.append(key)
    together = {key for key, group in groups.items() if _is_joined(group, later[key[0]], applicable.get(key[0]))}
    result = []
    for hit, key in zip(hits, keys, strict=True):
        if key is None or key not in together:
            result.append(hit)
        elif hit is groups[key][0]:
            result.append(_join(groups[key]))
    return result


def _may_join(hit: Hit, share: Literal["all", "any", "info"]) -> bool:
    is_advised = hit.price.advised if hit.rule.loss != "none" else hit.severity != "info"
    return joins(share, is_advised=is_advised)


def _is_joined(group: Sequence[Hit], later: int, applicable: int | None) -> bool:
    """Whether it is said once: where all layers have to share it, that is all to which it applies, or many."""
    join = group[0].rule.join
    if join is None or len({index for hit in group for index in hit.fired or hit.indices}) < 2:
        return False  # one layer, perhaps with a finding on each of its sides
    if join.share != "all" or len(group) > _MANY:
        return True
    return len(group) == (later if all(hit.came_to_light for hit in group) else applicable)


def _batch(hit: Hit) -> tuple[str, ...]:
    """The batch that it asks for, which is said of all that join."""
    return (str(hit.sets[0].get("N")),) if hit.sets_batch else ()


def _join(group: list[Hit]) -> Hit:
    first = group[0]
    merged: dict[int, dict[str, Scalar]] = {}  # channels that layers share name them more than once
    own: dict[int, tuple[str, Identity]] = {}
    for hit in group:
        for index, name, changes, identity in zip(hit.indices, hit.names, hit.sets, hit.identities, strict=True):
            if hit.fired and index not in hit.fired:
                continue  # changes with others, and is no layer of which the rule speaks
            merged.setdefault(index, {}).update(changes)
            own.setdefault(index, (name, identity))
    names = tuple(name for name, _ in own.values())
    text = first.flaw.join_message.replace(COUNT, str(len(names))).replace(LAYERS, shortened(list(names), 4))
    return Hit(
        flaw=first.flaw,
        indices=tuple(merged),
        names=names,
        location=first.location,
        message=text,
        sets=tuple(merged.values()),
        other=first.other if all(hit.other == first.other for hit in group) else {},
        severity=first.severity,
        identities=tuple(identity for _, identity in own.values()),
        price=_sum([hit.price for hit in group], one_change=first.sets_batch),
    )


def _sum(prices: list[Price], *, one_change: bool) -> Price:
    """What they cost together; None where one has no price. Another batch is one change for all."""
    return Price(
        lost_us=_total([price.lost_us for price in prices]),
        alone_us=_total([price.alone_us for price in prices]),
        capacity_us=_total([price.capacity_us for price in prices]),
        change_us=prices[0].change_us if one_change else _total([price.change_us for price in prices]),
        advised=any(price.advised for price in prices),
        pays_with=tuple(sorted({code for price in prices for code in price.pays_with})),
        basis=_basis(prices),
    )


def _basis(prices: Sequence[Price]) -> Basis | None:
    """That of most of what they lose."""
    lost: dict[Basis, float] = {}
    for price in prices:
        if price.basis is not None:
            lost[price.basis] = lost.get(price.basis, 0.0) + (price.lost_us or 0.0)
    return max(lost, key=lambda basis: lost[basis], default=None)


def _total(parts: list[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None
