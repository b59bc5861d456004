"""What a calibration buys on timings that it never saw: `python benchmarks/calibration.py [CSV ...]`.

Public rows stand in for a user's GPU. Those of one source on one GPU are split by shape; each half calibrates the
model, and the other one says what has become of its error. Pure Python, no GPU.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from statistics import fmean, median

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import layer_timings
from layer_timings import HALVES, gpus_of, half_of
from metrics import spearman
from msgspec.structs import replace
from timings import DEFAULT_CSV, HARNESS_US, REORDERED_IN_EVERY_CALL, Row, read_rows, runtime_of

from convlint.estimate.passes import pass_time_us
from convlint.gpus.gpu import Calibration, Factors, Gpu
from convlint.measuring.calibrate import TimedPass, fit
from convlint.model.errors import ConvlintError
from convlint.model.runtime import Runtime

CSVS = (DEFAULT_CSV, *layer_timings.DEFAULT_CSVS[:2])
LEAST_ROWS = 40  # of a GPU that counts


@dataclass(frozen=True, slots=True)
class Sample:
    """One row as a user would have timed it: without what its source is known to add."""

    row: Row
    timed: TimedPass
    half: str


@dataclass(frozen=True, slots=True)
class Errors:
    """How far predictions are off: median in per cent, geometric mean as a factor, ranks of efficiency."""

    median_percent: float
    factor: float
    rho: float | None


@dataclass(frozen=True, slots=True)
class Result:
    """One source's rows on one GPU, each predicted with and without what the other half of the shapes says."""

    title: str
    n: int
    before: Errors
    after: Errors
    calibrations: tuple[Calibration | None, ...]  # by each half; None where it is too small


def samples(paths: Iterable[Path]) -> tuple[dict[str, list[Sample]], dict[str, Gpu]]:
    """The rows of all files by source and GPU, and the GPU of each; raises ConvlintError where one cannot be read."""
    found: dict[str, list[Sample]] = {}
    gpus: dict[str, Gpu] = {}
    for path in paths:
        rows = _rows(path)
        known = gpus_of([layer_timings.Timed(row=row, runtime=runtime) for row, runtime in rows], {}, "calibration.py")
        for row, runtime in rows:
            source = row.source.partition(":")[0]
            us = row.measured_us - HARNESS_US.get(source, 0.0)
            # Nobody else's host has the floor under DeepBench's int8 rows, nor reorders weights in every call.
            if row.gpu not in known or us <= 0 or (source, row.precision) in REORDERED_IN_EVERY_CALL:
                continue
            title = f"{row.gpu}, {source}"
            gpus[title] = known[row.gpu]
            sample = Sample(row, TimedPass(row.layer, row.which, runtime, us), half_of(row.layer))
            found.setdefault(title, []).append(sample)
    return found, gpus


def _rows(path: Path) -> list[tuple[Row, Runtime]]:
    with path.open(newline="", encoding="utf-8") as file:
        older = "ms" in (csv.DictReader(file).fieldnames or ())
    if older:
        return [(row, runtime_of(row)) for row in read_rows(path)]
    return [(timed.row, timed.runtime) for timed in layer_timings.read_csv(path)]


def judged(title: str, rows: Sequence[Sample], gpu: Gpu) -> Result | None:
    """Each half by the other's calibration; None where neither has enough rows for one."""
    found: list[Calibration | None] = []
    logs: list[tuple[Sample, float, float]] = []
    for half in HALVES:
        own = [sample for sample in rows if sample.half == half]
        try:
            calibration = fit([sample.timed for sample in own], gpu)
        except ConvlintError:
            found.append(None)
            continue
        found.append(calibration)
        for sample in rows:
            if sample.half != half:
                before, after = (_time(sample, each) for each in (gpu, replace(gpu, calibration=calibration)))
                if before is not None and after is not None:
                    logs.append((sample, before, after))
    if not logs:
        return None
    before, after = (errors([(sample, times[index]) for sample, *times in logs]) for index in (0, 1))
    return Result(title, len(logs), before, after, tuple(found))


def _time(sample: Sample, gpu: Gpu) -> float | None:
    return pass_time_us(sample.timed.layer, sample.timed.which, gpu, sample.timed.runtime)


def errors(rows: Sequence[tuple[Sample, float]]) -> Errors:
    """Of predicted times."""
    logs = [log(time / sample.timed.us) for sample, time in rows]
    efficiency = [(sample.row.flops / time, sample.row.flops / sample.timed.us) for sample, time in rows]
    return Errors(
        100 * median(abs(exp(each) - 1) for each in logs),
        exp(fmean(map(abs, logs))),
        spearman([p for p, _ in efficiency], [m for _, m in efficiency]),
    )


def results(paths: Iterable[Path]) -> list[Result]:
    """Of every GPU and source with enough rows in at least one half."""
    found, gpus = samples(paths)
    judgements = (judged(title, rows, gpus[title]) for title, rows in sorted(found.items()))
    return [result for result in judgements if result is not None]


def constants(calibration: Calibration | None) -> str:
    """What one half determines."""
    if calibration is None:
        return "too few"
    known = [(name, getattr(calibration, name)) for name in Factors.__struct_fields__]
    words = [f"{name} {one.value:.3g}" for name, one in known if one is not None]
    factors = sum(group.factor is not None for group in calibration.groups)
    words += [f"{factors} of {len(calibration.groups)} groups"] if factors else []
    return ", ".join(words) or "nothing"


def _line(one: Errors) -> str:
    rho = "-" if one.rho is None else f"{one.rho:.3f}"
    return f"{one.median_percent:6.1f} {one.factor:7.3f} {rho:>6}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script; 0, or 2 for a file that cannot be used."""
    parser = argparse.ArgumentParser(description="Calibrates on half of the shapes of a GPU, and judges by the other.")
    parser.add_argument("csv", nargs="*", type=Path, default=list(CSVS))
    try:
        found = results(parser.parse_args(arguments).csv)
    except (ConvlintError, OSError) as error:
        print(f"calibration.py: {error}", file=sys.stderr)
        return 2
    head = f"{'med %':>6} {'factor':>7} {'rho e':>6}"
    print(f"{'':34}{'n':>5}   {'as it is':^21}   {'calibrated':^21}")
    print(f"{'':34}{'':>5}   {head}   {head}   what either half determines")
    for result in found:
        few = "" if result.n >= LEAST_ROWS else " (few)"
        said = "; ".join(map(constants, result.calibrations))
        print(f"{result.title + few:34}{result.n:5d}   {_line(result.before)}   {_line(result.after)}   {said}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
