"""Estimates as CSV: one row per layer, GPU and pass, with column names that stay."""

from __future__ import annotations

import csv
import io

from convlint.estimate import LayerEstimate, PassEstimate
from convlint.estimate.sweep import unknown_time
from convlint.files.safe import clean, clean_path, number
from convlint.gpus.gpu import load_gpu
from convlint.model.gemm import gemm
from convlint.model.layer import PASSES, Pass
from convlint.model.report import LayerReport, Report

# GEMM dimensions are those of one group; times in us of one call, layer_time_us of all calls and passes.
COLUMNS = (
    "path", "line", "layer", "gpu", "pass", "calls", "gemm_M", "gemm_N", "gemm_K", "gemm_batch", "flops", "bytes",
    "arithmetic_intensity", "compute_dtype", "algorithm", "tile_M", "tile_N", "split_k", "tiles", "waves",
    "tile_efficiency", "wave_efficiency", "time_us", "tflops", "bound_by", "layer_time_us", "grade", "unknown",
)  # fmt: skip


def render(report: Report) -> str:
    """The header and one row per layer, GPU and pass that runs; what is unknown is empty, its reason last."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for entry in report.layers:
        layer = entry.layer
        identity = [clean_path(layer.path), layer.locate().line, clean(layer.name)]
        for label, estimate in entry.estimates.items():
            for which in passes_run(entry):
                rows.writerow([*identity, clean(label), which, layer.calls, *_cells(entry, which, estimate, label)])
    return text.getvalue()


def passes_run(entry: LayerReport) -> tuple[Pass, ...]:
    """The passes of one layer: those estimated; where nothing is, fprop, in training wgrad, and dgrad unless first."""
    for estimate in entry.estimates.values():
        if estimate is not None:
            return tuple(which for which in PASSES if which in estimate.passes)
    return (
        ("fprop",) if entry.mode == "inference" else tuple(p for p in PASSES if p != "dgrad" or not entry.layer.first)
    )


def why_no_time(entry: LayerReport, label: str) -> str:
    """Why the layer has no time on this target: what its framework lacks, else what is unknown."""
    return entry.lacking.get(label) or unknown_time(entry.layer, load_gpu(label))


def _cells(entry: LayerReport, which: Pass, estimate: LayerEstimate | None, label: str) -> list[object]:
    layer, times = entry.layer, entry.times.get(label)
    if estimate is None:
        product = gemm(layer, which)
        sizes = [product.M, product.N, product.K, product.batch] if product is not None else [""] * 4
        return [*sizes, *[""] * (len(COLUMNS) - 11), why_no_time(entry, label)]
    one: PassEstimate = estimate.passes[which]
    return [
        one.gemm.M, one.gemm.N, one.gemm.K, one.gemm.batch, one.flops, one.bytes, number(one.arithmetic_intensity),
        one.compute_dtype, one.algorithm, *one.tile, one.split_k, one.tiles, number(one.waves),
        number(one.tile_efficiency, 4), number(one.wave_efficiency, 4), number(one.time_us), number(one.tflops),
        one.bound_by, number(estimate.time_us), "" if times is None else times.grade, "",
    ]  # fmt: skip
