"""Robust linear regression of a few unknowns, in plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final

_MOST_ITERATIONS: Final = 50
_TO_DEVIATION: Final = 1.4826  # of a normal distribution over its median distance from the middle
_HUBER: Final = 1.345  # deviations beyond which a row counts by its sign; 95 % efficient on normal errors
_LEAST_SCALE: Final = 1e-9
_CONVERGED: Final = 1e-10


def scale_of(residuals: Sequence[float]) -> float:
    """The standard deviation of residuals, by their median distance from zero."""
    return max(_LEAST_SCALE, _TO_DEVIATION * median(map(abs, residuals)))


def robust_step(
    columns: Sequence[Sequence[float]], residuals: Sequence[float], at: Sequence[float], expected: Sequence[float]
) -> list[float]:
    """The change of each unknown that makes the residuals small, by Huber's loss.

    One row of `columns` per residual, one entry per unknown. `at` plus the change is drawn to zero, as if zero had been
    measured with a standard deviation of `expected`.
    """
    unknowns = range(len(at))
    step = [0.0 for _ in unknowns]
    if not at:
        return step
    for _ in range(_MOST_ITERATIONS):
        left = [rest - sum(map(float.__mul__, row, step)) for rest, row in zip(residuals, columns, strict=True)]
        scale = scale_of(left)
        weights = [min(1.0, _HUBER * scale / abs(rest)) if rest else 1.0 for rest in left]
        matrix = [[0.0 for _ in unknowns] for _ in unknowns]
        vector = [0.0 for _ in unknowns]
        for weight, rest, row in zip(weights, residuals, columns, strict=True):
            for i in unknowns:
                weighted = weight * row[i]
                vector[i] += weighted * rest
                for j in unknowns:
                    matrix[i][j] += weighted * row[j]
        for i in unknowns:
            own = (scale / expected[i]) ** 2
            matrix[i][i] += own
            vector[i] -= own * at[i]
        found = solved(matrix, vector)
        settled = max(abs(a - b) for a, b in zip(found, step, strict=True)) < _CONVERGED
        step = found
        if settled:
            break
    return step


def solved(matrix: Sequence[Sequence[float]], vector: Sequence[float]) -> list[float]:
    """The solution of a symmetric positive definite system, by elimination."""
    size = len(vector)
    rows = [[*row, value] for row, value in zip(matrix, vector, strict=True)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for k in range(i + 1, size):
            share = rows[k][i] / rows[i][i]
            rows[k] = [a - share * b for a, b in zip(rows[k], rows[i], strict=True)]
    found = [0.0] * size
    for i in reversed(range(size)):
        rest = rows[i][size] - sum(rows[i][j] * found[j] for j in range(i + 1, size))
        found[i] = rest / rows[i][i]
    return found
