"""Predicted beside measured times: layer by layer and pass by pass, and how far they are apart in all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from statistics import fmean, median

from msgspec import Struct

from convlint.estimate import LayerEstimate
from convlint.measuring.rows import Row
from convlint.measuring.trial import Part, chosen
from convlint.measuring.workload import Workload
from convlint.model.layer import Pass


class Compared(Struct, frozen=True, kw_only=True):
    """One pass of one layer: times of one call in us, None where they are not known; `reason` says why not measured."""

    layer: str
    which: Pass
    predicted_us: float | None
    measured_us: float | None
    spread: float = 0.0
    runs: int = 0
    reason: str = ""

    @property
    def ratio(self) -> float | None:
        """Predicted over measured."""
        if self.predicted_us is None or self.measured_us is None:
            return None
        return self.predicted_us / self.measured_us


class Agreement(Struct, frozen=True, kw_only=True):
    """How predictions agree with `count` measured passes.

    `bias` is the geometric mean of predicted over measured, `error` the median of how far they are apart, relative to
    what was measured; `error_unbiased` the same once all predictions are divided by the bias.
    """

    count: int
    bias: float
    error: float
    error_unbiased: float


def compared(
    names: Sequence[str], some: Sequence[Part], estimates: Sequence[LayerEstimate | None],
    rows: Mapping[Workload, Row], failed: Mapping[Workload, str],
) -> list[Compared]:  # fmt: skip
    """One for each part."""
    found = []
    for part in some:
        estimate = estimates[part.layer]
        of_pass = None if estimate is None else estimate.passes.get(part.which)
        row = chosen(part, rows)
        timing = None if row is None else row.timing
        found.append(
            Compared(
                layer=names[part.layer], which=part.which,
                predicted_us=None if of_pass is None else of_pass.time_us,
                measured_us=None if timing is None else timing.us,
                spread=0.0 if timing is None else timing.spread,
                runs=0 if timing is None else timing.runs,
                reason=next((failed[option] for option in part.options if option in failed), ""),
            )
        )  # fmt: skip
    return found


def agreement(some: Sequence[Compared]) -> Agreement | None:
    """Over all passes that have both times; None where none has."""
    ratios = [ratio for each in some if (ratio := each.ratio) is not None and ratio > 0]
    if not ratios:
        return None
    bias = exp(fmean(map(log, ratios)))
    return Agreement(
        count=len(ratios),
        bias=bias,
        error=median(abs(ratio - 1) for ratio in ratios),
        error_unbiased=median(abs(ratio / bias - 1) for ratio in ratios),
    )
