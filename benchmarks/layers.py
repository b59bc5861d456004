"""Holds the cost model against newer timings of single layers: `python benchmarks/layers.py [CSV ...] [--half HALF]`.

Prints, for each kind of layer and each GPU, how predicted times rank and match measured ones; for `alignment_pairs.csv`
and `gemm_padding_pairs.csv` also the price of narrow vectors, and where rows differ in the layout or the bias alone,
what that changes. `--half fit` is for tuning, `--half held` for judging. Pure Python, no GPU.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from statistics import fmean

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from layer_timings import DEFAULT_CSVS, HALVES, Timed, gpus_of, half_of, read_csv
from metrics import Predicted, clock_factors, figures, geometric_factor, spearman
from msgspec.structs import replace
from timings import add_gpu_map, gpu_map, print_gpus

from convlint.estimate import estimate_pass
from convlint.gpus.gpu import Gpu
from convlint.model.errors import ConvlintError
from convlint.model.runtime import Runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What the model reaches on some rows, on a clock of their own for each GPU."""

    n: int
    rho: float | None  # of efficiency
    bias: float  # geometric mean of predicted over measured
    median_error: float  # per cent
    factor_clocked: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a changed layout or bias does to the time: new over old, geometric means."""

    n: int
    measured: float
    predicted: float
    factor: float  # of predicted against measured change
    same_sign: float  # share
    rho: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What narrow vectors cost: time over that of the aligned layer, geometric means."""

    n: int
    measured: float
    predicted: float
    rho: float | None


def predict(rows: Iterable[Timed], gpus: dict[str, Gpu]) -> list[tuple[Timed, Predicted]]:
    """The rows with the model's times; those that it gives none for are left out."""
    found = []
    for timed in rows:
        estimates = [
            estimate_pass(timed.row.layer, which, gpus[timed.row.gpu], timed.runtime)
            for which in timed.passes or (timed.row.which,)
        ]
        times = [estimate.time_us for estimate in estimates if estimate is not None]
        if len(times) == len(estimates):
            found.append((timed, Predicted(timed.row, sum(times))))
    return found


def line(rows: Sequence[Predicted]) -> Line:
    """All figures of some rows."""
    f = figures(rows, clock_factors(rows))
    return Line(
        n=f.n, rho=f.rho_efficiency, bias=exp(fmean(each.error for each in rows)), median_error=f.median_error,
        factor_clocked=f.factor_clocked,
    )  # fmt: skip


def sections(rows: Sequence[Predicted], *, each_gpu: bool) -> list[tuple[str, list[Predicted]]]:
    """By kind (on each GPU, where asked for), by GPU where there are several, and all."""
    kinds: dict[str, list[Predicted]] = defaultdict(list)
    gpus: dict[str, list[Predicted]] = defaultdict(list)
    for each in rows:
        kind = each.row.source.partition(":")[2]
        kinds[kind].append(each)
        gpus[each.row.gpu].append(each)
        if each_gpu:
            kinds[f"{kind}, {each.row.gpu}"].append(each)
    return [*sorted(kinds.items()), *(sorted(gpus.items()) if len(gpus) > 1 else ()), ("all", list(rows))]


def changes(rows: Iterable[Predicted]) -> dict[str, Change]:
    """What NHWC in place of NCHW, and a bias in place of none, do to rows that differ in nothing else."""
    pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    rows = list(rows)
    for title, field, old, new in (
        ("NHWC over NCHW", "layout", "NCHW", "NHWC"),
        ("bias over none", "bias", False, True),
    ):
        twins = {
            (each.row.gpu, each.row.which, replace(each.row.layer, **{field: new})): each
            for each in rows
            if getattr(each.row.layer, field) == old
        }
        for each in rows:
            twin = twins.get((each.row.gpu, each.row.which, each.row.layer))
            if twin is not None:
                change = (log(each.row.measured_us / twin.row.measured_us), log(each.time_us / twin.time_us))
                kind = each.row.source.partition(":")[2].partition(",")[0]
                for key in (f"{kind}, {each.row.gpu}", "all"):
                    pairs[f"{title}: {key}"].append(change)
    return {
        key: Change(
            n=len(found), measured=exp(fmean(m for m, _ in found)), predicted=exp(fmean(p for _, p in found)),
            factor=geometric_factor(p - m for m, p in found),
            same_sign=fmean((m > 0) == (p > 0) for m, p in found),
            rho=spearman([m for m, _ in found], [p for _, p in found]),
        )
        for key, found in sorted(pairs.items())
    }  # fmt: skip


def prices(rows: Iterable[Timed], gpus: dict[str, Gpu]) -> dict[str, Price]:
    """The price of narrow vectors by kind and alignment, and what the model says cuDNN takes for such channels."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for timed in rows:
        row, gpu = timed.row, gpus[timed.row.gpu]
        runtime = Runtime(tf32=timed.runtime.tf32)
        for alignment, layer, us in timed.narrow:
            aligned = estimate_pass(row.layer, row.which, gpu, runtime)
            narrow = estimate_pass(layer, row.which, gpu, runtime)
            if aligned is not None and narrow is not None:
                key = f"{row.source.partition(':')[2]}, alignment {alignment}"
                found[key].append((log(us / row.measured_us), log(narrow.time_us / aligned.time_us)))
    return {
        key: Price(
            n=len(pairs), measured=exp(fmean(m for m, _ in pairs)), predicted=exp(fmean(p for _, p in pairs)),
            rho=spearman([m for m, _ in pairs], [p for _, p in pairs]),
        )
        for key, pairs in sorted(found.items())
    }  # fmt: skip


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def print_tables(rows: Sequence[Timed], gpus: dict[str, Gpu], *, each_gpu: bool) -> None:
    """The tables of one CSV."""
    predicted = predict(rows, gpus)
    left_out = len(rows) - len(predicted)
    print(f"{len(predicted)} rows" + (f", {left_out} not predicted" if left_out else ""))
    if not predicted:
        return
    print(f"{'':36}{'n':>5} {'rho e':>6} {'bias':>6} {'med %':>6} {'one clock per GPU: factor':>26}")
    for title, found in sections([each for _, each in predicted], each_gpu=each_gpu):
        f = line(found)
        print(f"{title:36}{f.n:5d} {_text(f.rho):>6} {f.bias:6.2f} {f.median_error:6.1f} {f.factor_clocked:26.3f}")
    changed = changes(each for _, each in predicted)
    if changed:
        print(f"{'':36}{'n':>5} {'measured':>9} {'predicted':>10} {'factor':>7} {'sign':>5} {'rho':>6}")
    for title, change in changed.items():
        print(
            f"{title:36}{change.n:5d} {change.measured:9.2f} {change.predicted:10.2f} {change.factor:7.3f} "
            f"{change.same_sign:5.2f} {_text(change.rho):>6}"
        )
    narrow = prices(rows, gpus)
    if narrow:
        print(f"{'time over that of vectors of 8':36}{'n':>5} {'measured':>9} {'predicted':>10} {'rho':>6}")
    for title, price in narrow.items():
        print(f"{title:36}{price.n:5d} {price.measured:9.2f} {price.predicted:10.2f} {_text(price.rho):>6}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script; 0, or 2 for a file or GPU that cannot be used."""
    parser = argparse.ArgumentParser(description="Measures the cost model against newer timings of single layers.")
    parser.add_argument("csv", nargs="*", type=Path, default=list(DEFAULT_CSVS))
    add_gpu_map(parser)
    parser.add_argument("--half", choices=HALVES, help="one half of the shapes; the two have no shape in common")
    parser.add_argument("--least-us", type=float, default=0.0, metavar="US", help="leaves out rows measured below that")
    parser.add_argument("--verbose", action="store_true", help="each kind on each GPU too")
    options = parser.parse_args(arguments)
    given = gpu_map(options)
    for number, path in enumerate(options.csv):
        try:
            rows = read_csv(path)
            gpus = gpus_of(rows, given, "layers.py")
            rows = [
                timed for timed in rows
                if timed.row.gpu in gpus and timed.row.measured_us >= options.least_us
                and options.half in (None, half_of(timed.row.layer))
            ]  # fmt: skip
            if not rows:
                raise ConvlintError(f"{path} holds no rows to predict")
        except (ConvlintError, OSError) as error:
            print(f"layers.py: {error}", file=sys.stderr)
            return 2
        print(("\n" if number else "") + f"{path.name}" + (f", half {options.half}" if options.half else ""))
        print_gpus(gpus)
        print_tables(rows, gpus, each_gpu=options.verbose)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
