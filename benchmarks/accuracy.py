"""Holds the cost model against measured times: `python benchmarks/accuracy.py CSV [--gpu-map NAME=ID ...]`.

Prints, per (gpu, precision, pass) and overall, how well predicted times rank and match measured ones, the same for
three baselines, and how well the effect of a changed batch size is predicted. Any CSV with the columns of
`data/conv_timings.csv` will do. Pure Python, no GPU.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from math import exp
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from metrics import Predicted, clock_factors, figures, gains
from timings import DEFAULT_CSV, Row, add_gpu_map, gpu_map, known_gpus, print_gpus, read_rows, runtime_of, with_harness

from convlint.estimate import estimate_pass
from convlint.gpus.gpu import Gpu
from convlint.model.errors import ConvlintError
from convlint.model.layer import Dtype, tensor_elements

Model = Callable[[Row, Gpu], float | None]


def convlint_us(row: Row, gpu: Gpu) -> float | None:
    """The model under test."""
    estimate = estimate_pass(row.layer, row.which, gpu, runtime_of(row))
    return None if estimate is None else with_harness(row, gpu, estimate.time_us)


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
        print(f"{'':32}{'n':>5} {'rho t':>6} {'rho e':>6} {'med %':>6} {'factor':>7}   one clock factor: med %  factor")
        for title, found in _sections(predicted):
            f = figures(found, clocks)
            print(
                f"{title:32}{f.n:5d} {_text(f.rho_time):>6} {_text(f.rho_efficiency):>6} {f.median_error:6.1f} "
                f"{f.factor:7.3f} {f.median_error_clocked:24.1f} {f.factor_clocked:7.3f}"
            )
        if any(clocks.values()):
            print("clock factors:", ", ".join(f"{gpu} {exp(value):.2f}" for gpu, value in sorted(clocks.items())))
        print(
            f"{'gain of a changed N':32}{'n':>5} {'rho':>6} {'factor':>7} {'agree %':>8} {'decided':>10} {'agree %':>8}"
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
    add_gpu_map(parser)
    parser.add_argument("--model", choices=[*MODELS, "all"], default="all")
    options = parser.parse_args(arguments)
    given = gpu_map(options)
    try:
        rows = read_rows(options.csv)
    except (ConvlintError, OSError) as error:
        print(f"accuracy.py: {error}", file=sys.stderr)
        return 2
    gpus = known_gpus((row.gpu for row in rows), given, "accuracy.py")
    rows = [row for row in rows if row.gpu in gpus]
    if not rows:
        print(f"accuracy.py: {options.csv} holds no rows to predict", file=sys.stderr)
        return 2
    print_gpus(gpus)
    print_tables(rows, gpus, list(MODELS) if options.model == "all" else [options.model])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
