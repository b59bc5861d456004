"""How well predicted times match measured ones: ranks, errors, and the effect of a changed batch size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import exp, log
from statistics import fmean, median

from timings import Row

NOISE = 1.085  # pairs whose measured gain lies within this factor of the threshold decide nothing
THRESHOLD = 1.10


@dataclass(frozen=True, slots=True)
class Predicted:
    """A row with one model's time for it; `efficiency` overrides FLOPs over time where the model ranks directly."""

    row: Row
    time_us: float

    @property
    def error(self) -> float:
        """Logarithm of predicted over measured time."""
        return log(self.time_us / self.row.measured_us)


def ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1, ties averaged."""
    order = sorted(range(len(values)), key=values.__getitem__)
    result = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for place in order[start : end + 1]:
            result[place] = (start + end) / 2 + 1
        start = end + 1
    return result


def spearman(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Rank correlation; None for fewer than three values or where one side is all equal."""
    if len(a) < 3:
        return None
    # Eleven digits: FLOPs over time of a constant rate must tie, whatever the last bit says.
    x, y = (ranks([float(f"{value:.10e}") for value in side]) for side in (a, b))
    mean = (len(x) + 1) / 2
    covariance = sum((p - mean) * (q - mean) for p, q in zip(x, y, strict=True))
    spread = (sum((p - mean) ** 2 for p in x) * sum((q - mean) ** 2 for q in y)) ** 0.5
    return covariance / spread if spread else None


def geometric_factor(errors: Iterable[float]) -> float:
    """Exp of the mean absolute logarithm: 1.15 means 15 % off on average."""
    return exp(fmean(abs(error) for error in errors))


@dataclass(frozen=True, slots=True)
class Figures:
    """What one model reaches on some rows."""

    n: int
    rho_time: float | None
    rho_efficiency: float | None
    median_error: float
    median_error_clocked: float
    factor: float
    factor_clocked: float


def clock_factors(rows: Sequence[Predicted]) -> dict[str, float]:
    """Per GPU, the one logarithm that best centres its errors: its median."""
    errors: dict[str, list[float]] = defaultdict(list)
    for predicted in rows:
        errors[predicted.row.gpu].append(predicted.error)
    return {gpu: median(values) for gpu, values in errors.items()}


def figures(rows: Sequence[Predicted], clocks: dict[str, float]) -> Figures:
    """All figures of some rows; `clocks` from all rows of the CSV."""
    measured = [predicted.row.measured_us for predicted in rows]
    times = [predicted.time_us for predicted in rows]
    work = [predicted.row.flops for predicted in rows]
    clocked = [predicted.error - clocks[predicted.row.gpu] for predicted in rows]
    return Figures(
        n=len(rows),
        rho_time=spearman(measured, times),
        rho_efficiency=spearman(
            [f / t for f, t in zip(work, measured, strict=True)], [f / t for f, t in zip(work, times, strict=True)]
        ),
        median_error=100 * median(abs(exp(predicted.error) - 1) for predicted in rows),
        median_error_clocked=100 * median(abs(exp(error) - 1) for error in clocked),
        factor=geometric_factor(predicted.error for predicted in rows),
        factor_clocked=geometric_factor(clocked),
    )


@dataclass(frozen=True, slots=True)
class Gains:
    """How well the effect of a changed N on time per image is predicted, over all pairs of rows that differ in N."""

    n: int
    rho: float | None
    factor: float
    agreement: float
    decided: int
    agreement_decided: float | None


def gain_pairs(rows: Sequence[Predicted]) -> list[tuple[float, float]]:
    """(measured, predicted) logarithms of the speed-up per image from the smaller to the larger N."""
    groups: dict[tuple[object, ...], list[Predicted]] = defaultdict(list)
    for predicted in rows:
        row, layer = predicted.row, predicted.row.layer
        origin = row.source.partition(":")[0]
        key = (row.gpu, row.precision, row.which, origin, layer.C, layer.H, layer.W, layer.K, layer.R, layer.S,
               layer.PadH, layer.PadW, layer.U, layer.V, layer.layout, layer.groups, layer.residual_inputs)  # fmt: skip
        groups[key].append(predicted)
    pairs = []
    for group in groups.values():
        for one, other in combinations(sorted(group, key=lambda predicted: predicted.row.layer.N or 0), 2):
            small, large = one.row.layer.N or 1, other.row.layer.N or 1
            if small == large:
                continue
            scale = log(large / small)
            pairs.append(
                (
                    log(one.row.measured_us / other.row.measured_us) + scale,
                    log(one.time_us / other.time_us) + scale,
                )
            )
    return pairs


def gains(rows: Sequence[Predicted]) -> Gains | None:
    """The gain test; None where no two rows differ in N alone."""
    pairs = gain_pairs(rows)
    if not pairs:
        return None
    limit, noise = log(THRESHOLD), log(NOISE)
    agree = [(measured > limit) == (predicted > limit) for measured, predicted in pairs]
    decided = [same for same, (measured, _) in zip(agree, pairs, strict=True) if abs(measured - limit) > noise]
    return Gains(
        n=len(pairs),
        rho=spearman([measured for measured, _ in pairs], [predicted for _, predicted in pairs]),
        factor=geometric_factor(predicted - measured for measured, predicted in pairs),
        agreement=100 * fmean(agree),
        decided=len(decided),
        agreement_decided=100 * fmean(decided) if decided else None,
    )
