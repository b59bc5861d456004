"""Each hit with its price: what its fix earns in B, what it changes alone, and what capacity its layers waste."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from convlint.engine.hits import UNPRICED, Hit, Price
from convlint.engine.pricing import Pricer
from convlint.engine.shapley import Stake
from convlint.estimate.basis import Basis

MOST_PRICED = 1000  # findings of one rule whose fixes are priced although they are not B's


def weighed(
    hits: Sequence[Hit], stakes: Mapping[int, Stake], bases: Mapping[int, Basis], pricer: Pricer
) -> list[Hit]:  # fmt: skip
    """The hits with their prices; `stakes` and `bases` are by the id of a hit."""
    beside = Counter(hit.rule.info.code for hit in hits if id(hit) not in stakes)
    return [
        hit._replace(
            price=_price(hit, stakes.get(id(hit)), pricer, few=beside[hit.rule.info.code] <= MOST_PRICED)._replace(
                basis=bases.get(id(hit))
            )
        )
        if hit.indices and hit.rule.loss != "none"
        else hit
        for hit in hits
    ]


def _price(hit: Hit, stake: Stake | None, pricer: Pricer, *, few: bool) -> Price:
    spec, capacity_us = hit.flaw.case.fix, _capacity(hit, pricer)
    if spec is None or not spec.priced or not spec.set or hit.sets_batch:  # the batch is weighed over all layers
        return UNPRICED._replace(capacity_us=capacity_us)
    is_advised = stake is not None and stake.advised
    if not is_advised and any(pricer.estimates[index] is None for index in hit.indices):
        return UNPRICED
    if stake is None:
        changes = zip(hit.indices, hit.sets, strict=True)
        parts = [pricer.change_us(index, own) if few else None for index, own in changes]
        known = [part for part in parts if part is not None]
        change_us = sum(known) if len(known) == len(parts) else None
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
