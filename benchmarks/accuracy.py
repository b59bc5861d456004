"""Holds the cost model against measured times: `python benchmarks/accuracy.py CSV [--gpu-map NAME=ID ...]`.

Prints, per (gpu, precision, pass) and overall, how well predicted times rank and match measured ones, the same for
three baselines, and how well the effect of a changed batch size is predicted. Any CSV with the columns of
`data/conv_timings.csv` will do. Pure Python, no GPU.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import exp, log
from pathlib import Path
from statistics import fmean, median

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from convlint.errors import ConvlintError
from convlint.estimate import estimate_pass
from convlint.gpu import Gpu, gpu_names, load_gpu
from convlint.model import ConvLayer, Dtype, Pass, Runtime, flops, tensor_elements, with_output

DEFAULT_CSV = Path(__file__).resolve().parent / "data" / "conv_timings.csv"
# NeuSight times its layers from Python: each of its rows carries this much that is no convolution.
HARNESS_US = {"neusight": 178.0}
# DeepBench pads channels itself; NC/32HW32 holds vectors of 32.
PADDED_BY_BENCHMARK = {("deepbench", "fp16"): 8, ("deepbench", "int8"): 32}
NOISE = 1.085  # pairs whose measured gain lies within this factor of the threshold decide nothing
THRESHOLD = 1.10


@dataclass(frozen=True, slots=True)
class Row:
    """One measured pass."""

    gpu: str
    precision: str
    which: Pass
    source: str
    layer: ConvLayer
    measured_us: float
    flops: int


@dataclass(frozen=True, slots=True)
class Predicted:
    """A row with one model's time for it; `efficiency` overrides FLOPs over time where the model ranks directly."""

    row: Row
    time_us: float

    @property
    def error(self) -> float:
        """Logarithm of predicted over measured time."""
        return log(self.time_us / self.row.measured_us)


def resolve_gpu(name: str, given: dict[str, str]) -> Gpu:
    """The GPU that a CSV means: an id or alias, also with its maker, memory size or form factor left out or added."""
    if name in given:
        return load_gpu(given[name])
    words = [word for word in name.replace("_", "-").replace(" ", "-").split("-") if word]
    plain = [word for word in words if word.casefold() not in {"nvidia", "tesla", "geforce", "quadro"}]
    memoryless = [word for word in plain if not (word[:-2].isdigit() and word.casefold().endswith("gb"))]
    for candidate in (words, plain, memoryless, memoryless[:2], memoryless[:1]):
        try:
            return load_gpu("-".join(candidate))
        except ConvlintError:
            continue
    squeezed = "".join(plain).casefold()
    for gpu_id in gpu_names():
        if gpu_id.replace("-", "").startswith(squeezed) or squeezed.startswith(gpu_id.replace("-", "")):
            return load_gpu(gpu_id)
    raise ConvlintError(f"unknown GPU {name!r}: name it with --gpu-map '{name}=ID'")


def read_rows(path: Path) -> list[Row]:
    """The rows of a CSV; raises ConvlintError where one cannot be read."""
    rows = []
    with path.open(newline="", encoding="utf-8") as file:
        for number, record in enumerate(csv.DictReader(file), start=2):
            try:
                rows.append(_row(record))
            except (KeyError, ValueError) as error:
                raise ConvlintError(f"{path}:{number}: {error!r}") from error
    return rows


def _row(record: dict[str, str]) -> Row:
    precision, source = record["precision"], record["source"]
    multiple = PADDED_BY_BENCHMARK.get((source.partition(":")[0], precision), 1)
    raw = _layer(record, 1)
    count = flops(raw)
    if count is None:
        raise ValueError("sizes are missing")
    which = record["pass"]
    if which not in ("fprop", "dgrad", "wgrad"):
        raise ValueError(f"pass {which!r}")
    return Row(record["gpu"], precision, which, source, _layer(record, multiple), float(record["ms"]) * 1e3, count)  # type: ignore[arg-type]


def _layer(record: dict[str, str], multiple: int) -> ConvLayer:
    number = {key: int(record[key]) for key in ("N", "C", "H", "W", "K", "R", "S", "pad_h", "pad_w")}
    pad_h, pad_w = number["pad_h"], number["pad_w"]
    return with_output(
        ConvLayer(
            name="row", N=number["N"], C=-(-number["C"] // multiple) * multiple, H=number["H"], W=number["W"],
            K=-(-number["K"] // multiple) * multiple, R=number["R"], S=number["S"], U=int(record["stride_h"]),
            V=int(record["stride_w"]), PadH=pad_h, PadW=pad_w, PadH_end=pad_h, PadW_end=pad_w,
            dtype=Dtype(record["precision"]), layout="NCHW" if record["layout"] == "NCHW" else "NHWC",
            groups=int(record.get("groups") or 1), residual_inputs=int(record.get("residual_inputs") or 0),
        )
    )  # fmt: skip


def runtime_of(row: Row) -> Runtime:
    """The runtime of a row: TensorRT for its engines, cuDNN else; fp32 means fp32."""
    framework = "tensorrt" if row.source.startswith("trt") else None
    return Runtime(tf32=row.precision == "tf32", framework=framework)


Model = Callable[[Row, Gpu], float | None]


def convlint_us(row: Row, gpu: Gpu) -> float | None:
    """The model under test."""
    estimate = estimate_pass(row.layer, row.which, gpu, runtime_of(row))
    return None if estimate is None else estimate.time_us + HARNESS_US.get(row.source, 0.0)


def _peak(row: Row, gpu: Gpu) -> float:
    dtype = Dtype(row.precision)
    peak = gpu.peak(dtype, tensor=True) if dtype != Dtype.fp32 else None
    return peak or gpu.peak(dtype, tensor=False) or gpu.peak_flops["fp32"]


def flops_over_peak_us(row: Row, gpu: Gpu) -> float:
    """Baseline: arithmetic alone."""
    return row.flops / _peak(row, gpu) * 1e6


def roofline_us(row: Row, gpu: Gpu) -> float:
    """Baseline: the longer of arithmetic and memory traffic."""
    elements = tensor_elements(row.layer)
    assert elements is not None
    return max(flops_over_peak_us(row, gpu), sum(elements) * Dtype(row.precision).bytes / gpu.dram_bytes_per_s * 1e6)


def violations_us(row: Row, gpu: Gpu) -> float:
    """Baseline: the guide's checklist, counted; each violation is taken to cost as much as the arithmetic."""
    layer = row.layer
    N, C, K, P, Q = layer.N or 0, layer.C or 0, layer.K or 0, layer.P or 0, layer.Q or 0
    align = {"fp16": 8, "bf16": 8, "tf32": 4, "int8": 16}.get(row.precision, 1)
    broken = [C % align, K % align, C % 64, K % 64, N * P * Q % 64, C % 256, K % 256, N * P * Q % 256]
    broken += [C < 64, K < 64, 128 * gpu.sms > N * P * Q, layer.U > 1, row.layer.layout == "NCHW"]
    return flops_over_peak_us(row, gpu) * (1 + sum(map(bool, broken)))


MODELS: dict[str, Model] = {
    "convlint": convlint_us, "flops/peak": flops_over_peak_us, "roofline": roofline_us, "violations": violations_us,
}  # fmt: skip


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
        key = (row.gpu, row.precision, row.which, row.source.partition(":")[0], layer.C, layer.H, layer.W, layer.K, layer.R, layer.S,
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


def predict(rows: Sequence[Row], model: Model, gpus: dict[str, Gpu]) -> tuple[list[Predicted], int]:
    """The rows with a model's times, and how many it could not predict."""
    found = []
    for row in rows:
        time = model(row, gpus[row.gpu])
        if time is not None:
            found.append(Predicted(row, time))
    return found, len(rows) - len(found)


def _text(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _sections(rows: Sequence[Predicted]) -> list[tuple[str, list[Predicted]]]:
    by_pass: dict[tuple[str, str, str], list[Predicted]] = defaultdict(list)
    for predicted in rows:
        by_pass[predicted.row.gpu, predicted.row.precision, predicted.row.which].append(predicted)
    sections = [(" ".join(key), found) for key, found in sorted(by_pass.items())]
    for which in ("fprop", "dgrad", "wgrad"):
        found = [predicted for predicted in rows if predicted.row.which == which]
        if found:
            sections.append((f"all {which}", found))
    return [*sections, ("all", list(rows))]


def print_tables(rows: Sequence[Row], gpus: dict[str, Gpu], models: Sequence[str]) -> None:
    """The accuracy and gain tables of each model."""
    for name in models:
        predicted, missing = predict(rows, MODELS[name], gpus)
        print(f"\n{name}: {len(predicted)} rows" + (f", {missing} not predicted" if missing else ""))
        if not predicted:
            continue
        clocks = clock_factors(predicted)
        print(
            f"{'':32}{'n':>5} {'rho t':>6} {'rho e':>6} {'med %':>6} {'factor':>7}   with one clock factor: med %  factor"
        )
        for title, found in _sections(predicted):
            f = figures(found, clocks)
            print(
                f"{title:32}{f.n:5d} {_text(f.rho_time):>6} {_text(f.rho_efficiency):>6} {f.median_error:6.1f} "
                f"{f.factor:7.3f} {f.median_error_clocked:29.1f} {f.factor_clocked:7.3f}"
            )
        if any(clocks.values()):
            print("clock factors:", ", ".join(f"{gpu} {exp(value):.2f}" for gpu, value in sorted(clocks.items())))
        print(
            f"{'gain of a changed N':32}{'n':>5} {'rho':>6} {'factor':>7} {'agree %':>8} {'decided n':>10} {'agree %':>8}"
        )
        sections = _sections(predicted)
        for precision in sorted({p.row.precision for p in predicted}):
            sections.insert(-1, (f"all {precision}", [p for p in predicted if p.row.precision == precision]))
        for title, found in sections:
            g = gains(found)
            if g is not None:
                print(
                    f"{title:32}{g.n:5d} {_text(g.rho):>6} {g.factor:7.3f} {g.agreement:8.1f} {g.decided:10d} "
                    f"{_text(g.agreement_decided, 1):>8}"
                )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script; 0, or 2 for a file or GPU that cannot be used."""
    parser = argparse.ArgumentParser(description="Measures the cost model against published timings.")
    parser.add_argument("csv", nargs="?", type=Path, default=DEFAULT_CSV)
    parser.add_argument("--gpu-map", nargs="+", default=[], metavar="NAME=ID", help="which GPU a name in the CSV means")
    parser.add_argument("--model", choices=[*MODELS, "all"], default="all")
    options = parser.parse_args(arguments)
    try:
        rows = read_rows(options.csv)
        given = dict(entry.split("=", 1) for entry in options.gpu_map if "=" in entry)
        gpus = {name: resolve_gpu(name, given) for name in {row.gpu for row in rows}}
    except (ConvlintError, OSError) as error:
        print(f"accuracy.py: {error}", file=sys.stderr)
        return 2
    print("GPUs:", ", ".join(f"{name} = {gpu.id}" for name, gpu in sorted(gpus.items())))
    print_tables(rows, gpus, list(MODELS) if options.model == "all" else [options.model])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
