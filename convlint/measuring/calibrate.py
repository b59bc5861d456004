"""A calibration fitted to measured times, judged on layers that it has not seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, isfinite, log, sqrt
from statistics import fmean, median, stdev
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from convlint import __version__
from convlint.config.calibration import calibration_text
from convlint.estimate.passes import pass_time_us, timed_as
from convlint.gpus.devices import Device, gpu_of
from convlint.gpus.gpu import LEAST_OF_GROUP, Calibration, CalibrationOrigin, Constant, Factors, Gpu, Group
from convlint.measuring.rows import TimingRow
from convlint.measuring.workload import layer_of, runtime_of
from convlint.model.errors import ConvlintError
from convlint.model.grouping import grouped
from convlint.model.layer import ConvLayer, Pass, layer_identity
from convlint.model.runtime import Runtime, Version

_MOST_ITERATIONS: Final = 50  # weights may swing between two rows without end
_TO_DEVIATION: Final = 1.4826  # of a normal distribution over its median distance from the middle
_HUBER: Final = 1.345  # deviations beyond which a row counts by its sign; 95 % efficient on normal errors
_LEAST_SCALE: Final = 1e-9
_CONVERGED: Final = 1e-10


def scale_of(residuals: Sequence[float]) -> float:
    """The standard deviation of residuals, estimated from their median distance from zero: outliers do not move it."""
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
        rests = [rest - sum(map(float.__mul__, row, step)) for rest, row in zip(residuals, columns, strict=True)]
        scale = scale_of(rests)
        weights = [min(1.0, _HUBER * scale / abs(rest)) if rest else 1.0 for rest in rests]
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
        solution = solved(matrix, vector)
        settled = max(abs(a - b) for a, b in zip(solution, step, strict=True)) < _CONVERGED
        step = solution
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
    solution = [0.0] * size
    for i in reversed(range(size)):
        rest = rows[i][size] - sum(rows[i][j] * solution[j] for j in range(i + 1, size))
        solution[i] = rest / rows[i][i]
    return solution


FOLDS: Final = 5
Shape = tuple[object, ...]


def shape_of(layer: ConvLayer) -> Shape:
    """What layers have in common that are mispredicted alike: all sizes but the batch."""
    return (
        layer.op, layer.C, layer.D, layer.H, layer.W, layer.K, layer.T, layer.R, layer.S, layer.StrideD, layer.U,
        layer.V, layer.DilD, layer.DilH, layer.DilW, layer.groups,
    )  # fmt: skip


def folds(shapes: Sequence[Shape]) -> list[tuple[list[int], list[int]]]:
    """The rows in up to five parts, all of one shape in the same, each with the rows that are not in it."""
    order = {shape: number for number, shape in enumerate(sorted(set(shapes), key=repr))}
    parts = [{i for i, shape in enumerate(shapes) if order[shape] % FOLDS == part} for part in range(FOLDS)]
    return [(sorted(part), [i for i in range(len(shapes)) if i not in part]) for part in parts if part]


def gain(before: Sequence[float], after: Sequence[float], shapes: Sequence[Shape]) -> float:
    """The mean by which the errors of shapes fall, less its standard error; `before` and `after` are errors of rows.

    0 where the median rises: a few far rows must not gain at the price of most others.
    """
    if median(after) > median(before):
        return 0.0
    gains = grouped((shape, old - new) for shape, old, new in zip(shapes, before, after, strict=True))
    means = [fmean(own) for own in gains.values()]
    return fmean(means) - stdev(means) / len(means) ** 0.5 if len(means) > 1 else 0.0


LEAST_ROWS: Final = 12  # of different passes,
LEAST_SHAPES: Final = 5  # and of different shapes
LEAST_DETERMINING: Final = 4  # rows that follow a constant
# How far constants are expected to lie from the model's, as a standard deviation: clocks and bandwidth in logarithms,
# the launch in its unit, factors of groups in logarithms.
_EXPECTED: Final = (0.5, 0.5, 0.5, 2.0)
_EXPECTED_OF_GROUPS: Final = 0.3
_LAUNCH_UNIT_US: Final = 10.0
# A row follows a clock or the bandwidth if its time changes by at least this share of the change, and the launch if one
# unit more changes its time by this share.
_FOLLOWS: Final = (0.5, 0.5, 0.5, 0.1)
_STEPS: Final = (0.02, 0.02, 0.02, 0.05)  # of finite differences
_FARTHEST: Final = (log(16.0), log(16.0), log(16.0), 50.0)  # within what a file may hold
_LAUNCH: Final = 3
_ALL: Final = (0, 1, 2, _LAUNCH)
_LEAST_GAIN: Final = 1e-3  # in logarithms: what brings shapes no nearer than that is not worth a number
_MOST_ROUNDS: Final = 12
_SETTLED: Final = 1e-7

Vector = tuple[float, ...]  # clocks of Tensor Cores and CUDA cores, bandwidth (logarithms), launch (in its unit)
_NOTHING: Final[Vector] = (0.0, 0.0, 0.0, 0.0)


class TimedPass(NamedTuple):
    """One pass of a layer as it was timed: the median of its repetitions, in us."""

    layer: ConvLayer
    which: Pass
    runtime: Runtime
    us: float


class _Rows(NamedTuple):
    """What was timed, on which GPU, with logarithms of the times."""

    timed: list[TimedPass]
    shapes: list[Shape]
    logs: list[float]
    gpu: Gpu


class _Settled(NamedTuple):
    """Constants, and of each row the slopes of its time's logarithm in them and the residual."""

    at: Vector
    slopes: list[list[float]]
    left: list[float]
    followers: dict[int, list[int]]  # of each constant that enough rows follow: these


def fit(timed: Sequence[TimedPass], gpu: Gpu) -> Calibration:
    """The calibration of `gpu` by what was timed on it: the same for the same rows, in any order.

    Raises ConvlintError where too few of the passes, or of too few shapes, have a time, measured and predicted.
    """
    rows = _rows(timed, replace(gpu, calibration=None))
    before = _settled(rows, ())
    settled = _chosen(rows, before)
    groups, after = _groups(rows, settled.left)
    constants: dict[str, Any] = {
        Factors.__struct_fields__[j]: Constant(
            _value(j, settled.at[j]), len(own), _spread(settled.left[index] for index in own)
        )
        for j, own in settled.followers.items()
    }
    return Calibration(
        gpu=gpu.id, rows=len(rows.timed), error_before=_error(before.left), error_after=_error(after),
        groups=groups, **constants,
    )  # fmt: skip


def _rows(timed: Iterable[TimedPass], gpu: Gpu) -> _Rows:
    """Those with a time, measured and predicted, in an order of their own. Raises ConvlintError for too few."""
    usable = [
        row for row in timed
        if isfinite(row.us) and row.us > 0 and pass_time_us(row.layer, row.which, gpu, row.runtime) is not None
    ]  # fmt: skip
    # Sums of floats depend on their order: sorted, the same rows give the same calibration.
    usable.sort(key=lambda row: (row.us, row.which, repr(layer_identity(row.layer))))
    shapes = [shape_of(row.layer) for row in usable]
    passes, distinct = len({(layer_identity(row.layer), row.which) for row in usable}), len(set(shapes))
    if passes < LEAST_ROWS or distinct < LEAST_SHAPES:
        raise ConvlintError(
            f"too little is timed to calibrate {gpu.id}: {passes} different passes of {distinct} shapes that can be "
            f"predicted; it takes {LEAST_ROWS} of {LEAST_SHAPES}"
        )
    return _Rows(usable, shapes, [log(row.us) for row in usable], gpu)


def _value(constant: int, value: float) -> float:
    return value * _LAUNCH_UNIT_US if constant == _LAUNCH else exp(value)


def _predicted(rows: _Rows, at: Vector) -> list[float]:
    """Logarithms of the times with these constants."""
    constants: dict[str, Any] = {
        name: Constant(_value(j, at[j]), 0, 0.0) for j, name in enumerate(Factors.__struct_fields__)
    }
    tried = Calibration(gpu=rows.gpu.id, rows=0, error_before=0.0, error_after=0.0, **constants)
    there = replace(rows.gpu, calibration=tried)
    times = (pass_time_us(row.layer, row.which, there, row.runtime) for row in rows.timed)
    return [log(time) for time in times if time is not None]


def _settled(rows: _Rows, constants: Sequence[int]) -> _Settled:
    """The fit of those of the `constants` that enough rows follow; all others are zero.

    Which these are is decided where nothing is calibrated yet: decided anew in every round, it might never settle.
    """
    at, followers = _NOTHING, dict[int, list[int]]()
    for number in range(_MOST_ROUNDS):
        here = _predicted(rows, at)
        free = constants if not number else tuple(followers)
        settled = _Settled(at, _slopes(rows, at, here, free), [m - p for m, p in zip(rows.logs, here, strict=True)], {})
        if not number:
            followers = _followers(settled.slopes, constants, [row.layer.depthwise for row in rows.timed])
        settled = settled._replace(followers=followers)
        step = _step(settled, range(len(here)))
        moved = tuple(max(-_FARTHEST[j], min(_FARTHEST[j], at[j] + step.get(j, 0.0))) for j in _ALL)
        if max(abs(a - b) for a, b in zip(at, moved, strict=True)) < _SETTLED:
            break
        at = moved
    return settled


def _slopes(rows: _Rows, at: Vector, here: Sequence[float], constants: Iterable[int]) -> list[list[float]]:
    """The derivatives of the logarithm of every row's time by each of the `constants`, 0 for others."""
    slopes = [[0.0] * len(_ALL) for _ in here]
    for j in constants:
        there = _predicted(rows, tuple(at[i] + _STEPS[j] * (i == j) for i in _ALL))
        for own, after, before in zip(slopes, there, here, strict=True):
            own[j] = (after - before) / _STEPS[j]
    return slopes


def _followers(
    slopes: Sequence[Sequence[float]], constants: Iterable[int], depthwise: Sequence[bool]
) -> dict[int, list[int]]:
    """The rows that follow each constant.

    None where all of them are depthwise layers: those have a factor of their own, and no clock of all other kernels
    shall follow from them.
    """
    followers = {j: [index for index, own in enumerate(slopes) if abs(own[j]) >= _FOLLOWS[j]] for j in constants}
    return {
        j: own for j, own in followers.items()
        if len(own) >= LEAST_DETERMINING and not all(depthwise[index] for index in own)
    }  # fmt: skip


def _step(settled: _Settled, indices: Iterable[int]) -> dict[int, float]:
    """How far the rows at `indices` move each constant that is determined."""
    free, row_indices = list(settled.followers), list(indices)
    columns = [[settled.slopes[index][j] for j in free] for index in row_indices]
    rests, expected = [settled.left[index] for index in row_indices], [_EXPECTED[j] for j in free]
    return dict(zip(free, robust_step(columns, rests, [settled.at[j] for j in free], expected), strict=True))


def _chosen(rows: _Rows, before: _Settled) -> _Settled:
    """The fit of the constants that lower the errors of held-out shapes: added one after the other, or all at once."""
    far = [abs(rest) for rest in before.left]
    best, most = before, _LEAST_GAIN
    while True:
        free = tuple(best.followers)
        tries = [(*free, j) for j in _ALL if j not in free] + ([] if free else [_ALL])
        candidates = [_settled(rows, constants) for constants in tries]
        gains = [gain(far, _held_out(there, rows.shapes), rows.shapes) for there in candidates]
        if max(gains, default=0.0) <= most:
            return best
        most = max(gains)
        best = candidates[gains.index(most)]


def _held_out(settled: _Settled, shapes: Sequence[Shape]) -> list[float]:
    """The error of each row with constants fitted to rows of other shapes; linearised."""
    distances = [0.0] * len(shapes)
    for part, others in folds(shapes):
        step = _step(settled, others)
        for index in part:
            own = settled.slopes[index]
            distances[index] = abs(settled.left[index] - sum(own[j] * change for j, change in step.items()))
    return distances


def _groups(rows: _Rows, rests: Sequence[float]) -> tuple[tuple[Group, ...], list[float]]:
    """The groups of timed passes by kind, dtype and pass, and the residual of every row with their factors."""
    keys = [timed_as(row.layer, row.which, rows.gpu, row.runtime) for row in rows.timed]
    members = grouped((key, index) for index, key in enumerate(keys) if key is not None)
    after, groups = list(rests), []
    for (kind, dtype, which), indices in sorted(members.items()):
        shift = _shift([rests[index] for index in indices], [rows.shapes[index] for index in indices])
        for index in indices:
            after[index] -= shift or 0.0
        groups.append(
            Group(
                kind=kind, dtype=dtype, which=which, rows=len(indices),
                spread=_spread(after[index] for index in indices), factor=None if shift is None else exp(shift),
            )
        )  # fmt: skip
    return tuple(groups), after


def _shift(rests: Sequence[float], shapes: Sequence[Shape]) -> float | None:
    """By how much a group is off as a whole; None where that lowers no error of held-out shapes."""
    if len(rests) < LEAST_OF_GROUP or len(set(shapes)) < 2:
        return None
    held_out = [0.0] * len(rests)
    for part, others in folds(shapes):
        centre = _centre([rests[index] for index in others], [shapes[index] for index in others])
        for index in part:
            held_out[index] = abs(rests[index] - centre)
    return _centre(rests, shapes) if gain([abs(rest) for rest in rests], held_out, shapes) > _LEAST_GAIN else None


def _centre(rests: Sequence[float], shapes: Sequence[Shape]) -> float:
    """The median, drawn to zero by its uncertainty."""
    centre = median(rests)
    error = scale_of([rest - centre for rest in rests]) / sqrt(len(set(shapes)))
    centre = max(-_FARTHEST[0], min(_FARTHEST[0], centre))
    return centre * _EXPECTED_OF_GROUPS**2 / (_EXPECTED_OF_GROUPS**2 + error**2)


def _spread(rests: Iterable[float]) -> float:
    """The median distance of rows from the prediction, as a share of it."""
    return exp(median(map(abs, rests))) - 1


def _error(rests: Iterable[float]) -> float:
    """The median distance of predicted from measured times, as a share of these."""
    return median(abs(exp(-rest) - 1) for rest in rests)


def calibration_file(rows: Iterable[TimingRow], device: Device, date: str) -> tuple[str, Calibration]:
    """(the text of the calibration file, the calibration) by the rows of this device and its libraries.

    `date` as 2026-01-31. Raises ConvlintError where the device is no GPU that convlint knows, or too little is timed.
    """
    gpu = gpu_of(device)
    if gpu is None:
        raise ConvlintError(f"{device.name} cannot be calibrated: convlint knows no such GPU")
    mine = {row.workload: row.timing for row in rows if row.is_of(device)}  # the last of each
    cudnn = Version(device.cudnn) if device.cudnn else None
    timed = [
        TimedPass(layer_of(work), work.which, replace(runtime_of(work), cudnn=cudnn), timing.us)
        for work, timing in mine.items()
    ]
    origin = CalibrationOrigin(
        device=device.name, compute_capability=gpu.compute_capability, convlint=Version(__version__),
        cudnn=cudnn, cuda=Version(device.cuda) if device.cuda else None,
        framework="pytorch", framework_version=Version(device.framework_version) if device.framework_version else None,
        date=date,
    )  # fmt: skip
    calibration = fit(timed, gpu)
    return calibration_text(origin, calibration), calibration
