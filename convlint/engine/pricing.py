"""What changes of single layers come to as things are, beside B: in time, and in capacity that is not used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from convlint.engine.timing import Timing
from convlint.estimate import LayerEstimate
from convlint.model.layer import ConvLayer
from convlint.report import Scalar
from convlint.rulebook.rule import Rule


class Pricer:
    """Prices for one network on one target, whose `estimates` those of its layers are."""

    def __init__(self, timing: Timing, estimates: Sequence[LayerEstimate | None]) -> None:
        self.timing, self.estimates = timing, estimates

    @property
    def layers(self) -> Sequence[ConvLayer]:
        """As they are."""
        return self.timing.network.layers

    @property
    def running(self) -> Sequence[ConvLayer]:
        """As they run."""
        return self.timing.now.running

    def now_us(self, index: int) -> float | None:
        """What the GPU needs for a layer."""
        return self.timing.time_us(self.timing.now, index)

    def time_after(self, index: int, changes: Mapping[str, Scalar]) -> float | None:
        """The same after `changes` of its sizes; None where it is not predictable."""
        own = {name: value for name, value in changes.items() if "." not in name}
        return self.timing.time_us(self.timing.now, index, own)

    def at_batch(self, index: int, N: int) -> float | None:
        """The same at another batch."""
        return self.time_after(index, {"N": N})

    def change_us(self, index: int, changes: Mapping[str, Scalar]) -> float | None:
        """Time after `changes` minus time now."""
        before = self.now_us(index)
        after = self.time_after(index, changes) if before is not None and changes else None
        return None if before is None or after is None else after - before

    def capacity_us(self, index: int, rule: Rule) -> float | None:
        """What the layer pays for tiles or waves that it does not fill, over the passes that the rule names."""
        estimate = self.estimates[index]
        if estimate is None or rule.loss not in ("tile", "wave"):
            return None
        field = "lost_to_tiles_us" if rule.loss == "tile" else "lost_to_waves_us"
        passes = estimate.passes.items()
        lost: float = sum(getattr(entry, field) for which, entry in passes if which in rule.loss_passes)
        return lost * self.layers[index].calls
