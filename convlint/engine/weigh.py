"""Each hit with its price, and the severity that its weight in the layer and in the network leaves it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from convlint.engine.changes import with_fix
from convlint.engine.hits import UNPRICED, Hit, Price
from convlint.engine.pricing import Priced, Pricer
from convlint.engine.severity import Weight, decided
from convlint.engine.shapley import Stake
from convlint.model.gemm import flops

MOST_PRICED = 1000  # findings of one rule whose fixes are priced although they enter no game


def weighed(
    hits: Sequence[Hit], stakes: Mapping[int, Stake], priced: Sequence[Priced | None], pricer: Pricer
) -> list[Hit]:
    """The hits as they count, looked at together with their layer and their rule; `stakes` by the id of a hit."""
    of_rule: dict[str, float] = {}
    beside: Counter[str] = Counter()
    for hit in hits:
        code, stake = hit.rule.info.code, stakes.get(id(hit))
        if stake is None:
            beside[code] += 1
        else:
            of_rule[code] = of_rule.get(code, 0.0) + stake.lost_us
    return [
        _weighed(hit, stakes.get(id(hit)), priced, pricer, of_rule, few=beside[hit.rule.info.code] <= MOST_PRICED)
        if hit.indices and hit.rule.loss != "none"
        else hit
        for hit in hits
    ]


def _weighed(
    hit: Hit, stake: Stake | None, priced: Sequence[Priced | None], pricer: Pricer, of_rule: Mapping[str, float],
    *, few: bool,
) -> Hit:  # fmt: skip
    spec = hit.flaw.case.fix
    if spec is None or not spec.priced or not spec.set:  # what it costs cannot be known
        return hit._replace(price=UNPRICED._replace(capacity_us=_capacity(hit, pricer)))
    times = [layer.times for index in hit.indices if (layer := priced[index]) is not None]
    if len(times) < len(hit.indices):
        return hit if hit.sets_batch else hit._replace(severity=decided(hit.severity, None))
    price = _price(hit, stake, pricer, few=few)
    if not hit.sets_batch:
        now_us, network_us = sum(layer.time_us for layer in times), pricer.facts.time_us
        lost_us, capacity_us, change_us = price.lost_us or 0.0, price.capacity_us or 0.0, price.change_us
        weight = Weight(
            share=lost_us / now_us,
            layer=(now_us - sum(layer.after_us for layer in times)) / now_us,
            rule=of_rule.get(hit.rule.info.code, 0.0) / network_us,
            capacity=0.0 if change_us is None else capacity_us / now_us,
            capacity_network=capacity_us / network_us,
            time_added=(change_us or 0.0) / now_us,
            **(_growth(hit, pricer) if capacity_us and change_us is not None else {}),
        )
        hit = hit._replace(severity=decided(hit.severity, weight))
    return hit._replace(price=price)


def _price(hit: Hit, stake: Stake | None, pricer: Pricer, *, few: bool) -> Price:
    capacity_us = _capacity(hit, pricer)
    if hit.sets_batch:  # is weighed over all layers
        return Price(capacity_us=capacity_us)
    if stake is None:
        (index,), (changes,) = hit.indices, hit.sets  # what several layers share has a stake
        change_us = pricer.change_us(index, changes) if few else None
        alone_us = None if change_us is None else max(0.0, -change_us)
        return Price(lost_us=0.0, alone_us=alone_us, capacity_us=capacity_us, change_us=change_us)
    return Price(
        lost_us=stake.lost_us,
        alone_us=stake.alone_us,
        capacity_us=capacity_us,
        change_us=stake.change_us,
        advised=stake.advised,
        pays_with=stake.pays_with,
    )


def _capacity(hit: Hit, pricer: Pricer) -> float | None:
    """What its layers pay for what they do not fill; of layers that share channels, those where the rule fired."""
    found = [pricer.capacity_us(index, hit.rule) for index in hit.fired or hit.indices]
    known = [capacity for capacity in found if capacity is not None]
    return sum(known) if known and len(known) == len(found) else None


def _growth(hit: Hit, pricer: Pricer) -> dict[str, float]:
    """By how much its fix adds to the work, and widens the channels at most; as fractions."""
    layers = [(pricer.layers[index], changes) for index, changes in zip(hit.indices, hit.sets, strict=True)]
    before = sum(flops(layer) or 0 for layer, _ in layers) or 1
    after = sum(flops(with_fix(layer, changes)) or 0 for layer, changes in layers) or 1
    channels = [
        (getattr(layer, name), changes[name]) for layer, changes in layers for name in ("C", "K") if name in changes
    ]
    widened = max((float(new) / old - 1 for old, new in channels if old), default=0.0)
    return {"work_added": after / before - 1, "widened": widened}
