"""What a hit costs: the time lost to the flaw, and the change that its fix makes to the step's time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from convlint.engine.batches import Batches, sets_batch
from convlint.engine.changes import with_fix, with_settings
from convlint.engine.hits import Hit, Loss
from convlint.engine.severity import by_price
from convlint.estimate import LayerEstimate, time_us
from convlint.facts.target import TargetFacts
from convlint.model.layer import ConvLayer
from convlint.report import Scalar

MOST_PRICED = 1000  # layers of one finding whose fix is priced


class Price(Struct, frozen=True, kw_only=True):
    """Times in us per step. None: not predictable, or the rule has no price."""

    lost_us: float | None
    lost_percent: float | None  # of the network's time
    time_change_us: float | None  # what the fix makes of the step; negative: faster
    by_layer: tuple[tuple[int, float], ...]  # (index, what it loses): two flaws of one layer are not added up


class Pricer:
    """Prices the hits of one network on one target."""

    def __init__(
        self, layers: Sequence[ConvLayer], estimates: Sequence[LayerEstimate | None], facts: TargetFacts
    ) -> None:
        self.layers, self.estimates, self.facts = layers, estimates, facts
        self.time_us = facts.time_us if all(estimates) else None
        self._estimated: dict[tuple[int, tuple[tuple[str, Scalar], ...]], float | None] = {}
        self.batches = Batches(layers, estimates, lambda index, N: self.time_after(index, {"N": N}))
        self._alone: dict[int, Loss] = {}  # of a flaw in one layer, by its id; the hits keep it alive

    def weighed(self, hit: Hit) -> Hit:
        """The hit with what its layers lose, and the severity that follows."""
        loss = hit.loss or self._loss(hit)
        lost, percent = self._lost(loss)
        layer_time = sum(estimate.time_us for index in hit.indices if (estimate := self.estimates[index]))
        share = None if lost is None or layer_time <= 0 else lost / layer_time
        return hit._replace(loss=loss, severity=by_price(hit.severity, lost, percent, share))

    def price(self, hit: Hit) -> Price:
        """The price of a hit that was weighed."""
        loss = hit.loss or self._loss(hit)
        lost, percent = self._lost(loss)
        return Price(
            lost_us=lost,
            lost_percent=percent,
            time_change_us=self._time_change(hit, loss),
            by_layer=loss.by_layer or (),
        )

    def _lost(self, loss: Loss) -> tuple[float | None, float | None]:
        """What is lost in us and in percent of the network."""
        if loss.by_layer is None:
            return None, None
        lost = sum(us for _, us in loss.by_layer)
        return lost, 100 * lost / self.time_us if self.time_us else None

    def _loss(self, hit: Hit) -> Loss:
        """What each layer loses to the flaw, as the rule counts it; layers that share a flaw share its loss."""
        if len(hit.indices) != 1 or hit.sets[0] is not hit.flaw.set:
            return self._loss_of(hit)
        known = self._alone.get(id(hit.flaw))
        if known is None:
            known = self._alone[id(hit.flaw)] = self._loss_of(hit)
        (index,) = hit.indices
        return known if not known.by_layer else known._replace(by_layer=((index, known.by_layer[0][1]),))

    def _loss_of(self, hit: Hit) -> Loss:
        if hit.rule.loss == "fix":
            if hit.flaw.case.fix is not None and not hit.flaw.case.fix.priced:
                return Loss(None)
            changes = tuple(self._change(index, new) for index, new in zip(hit.indices, hit.sets, strict=True))
            if not changes or any(change is None for change in changes):
                return Loss(None)
            # A fix that the model prices as slower shows that nothing is lost to the flaw.
            losses = zip(hit.indices, changes, strict=True)
            return Loss(tuple((index, max(0.0, -(change or 0.0))) for index, change in losses), changes)
        return Loss(self._lost_to_quantization(hit) if hit.rule.loss in ("tile", "wave") else None)

    def _time_change(self, hit: Hit, loss: Loss) -> float | None:
        """The fix's change of the step's time in us; a new batch changes all layers that share the old one."""
        if sets_batch(hit):
            wanted = [(index, hit.sets[0], times) for index, times in self.batches.kinds(hit).items()]
        else:
            wanted = [(index, changes, 1) for index, changes in zip(hit.indices, hit.sets, strict=False)]
        spec = hit.flaw.case.fix
        if spec is None or not spec.priced or not wanted or len(wanted) > MOST_PRICED:
            return None
        known = None if sets_batch(hit) else loss.changes
        total = 0.0
        for number, (index, changes, times) in enumerate(wanted):
            change = self._change(index, changes) if known is None else known[number]
            if change is None:
                return None
            total += change * times
        return total

    def _change(self, index: int, changes: Mapping[str, Scalar]) -> float | None:
        """Time after `changes` minus time before, in us."""
        before = self.estimates[index]
        if before is None or not changes:
            return None
        after = self.time_after(index, changes)
        return None if after is None else after - before.time_us

    def time_after(self, index: int, changes: Mapping[str, Scalar]) -> float | None:
        """The layer's time after `changes`, in us."""
        key = index, tuple(changes.items())
        if len(self._estimated) > 16:  # only what one finding asks for twice; memory must not grow with the network
            self._estimated.clear()
        if key not in self._estimated:
            runtime = with_settings(self.facts.runtime, changes)
            layer = with_fix(self.layers[index], changes)
            self._estimated[key] = time_us(layer, self.facts.gpu, runtime, self.facts.mode)
        return self._estimated[key]

    def _lost_to_quantization(self, hit: Hit) -> tuple[tuple[int, float], ...] | None:
        """Over the passes that the rule names, by layer; a pass bound by memory loses nothing."""
        field = "lost_to_tiles_us" if hit.rule.loss == "tile" else "lost_to_waves_us"
        losses = []
        for index in hit.indices:
            estimate = self.estimates[index]
            if estimate is None:
                return None
            passes = estimate.passes.items()
            lost: float = sum(getattr(entry, field) for which, entry in passes if which in hit.rule.loss_passes)
            losses.append((index, lost * self.layers[index].calls))
        return tuple(losses)
