"""What the roofline is drawn from: the work and speed of each pass, and the ceilings of each GPU."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

from convlint.errors import UsageError
from convlint.files.safe import clean
from convlint.gpus.gpu import Gpu, load_gpu
from convlint.model.layer import Dtype
from convlint.report import Report
from convlint.reporters.page.layers import names_of, passes_run

MOST_POINTS = 6_000  # of one target; of more, those that take longest

_Point = tuple[int, str, float, float, float, str]  # layer, pass, FLOP/B, TFLOPS, us, bound


def chart(report: Report) -> dict[str, Any]:
    """The numbers for the script, each target with its points and ceilings."""
    return {
        "names": names_of(report),
        "targets": [_target(report, gpu) for gpu in report.targets],
    }


def _target(report: Report, label: str) -> dict[str, Any]:
    gpu = known_gpu(label)
    points = list(_points(report, label))
    shown = heapq.nlargest(MOST_POINTS, points, key=lambda point: point[4])
    used = dict.fromkeys((one.compute_dtype, one.tensor_cores) for entry in report.layers
                         for _, one in passes_run(entry, label))  # fmt: skip
    return {
        "label": clean(label),
        "name": clean(label) if gpu is None else gpu.name,
        "bandwidth": None if gpu is None else round(gpu.dram_bytes_per_s / 1e9, 1),
        "ceilings": [] if gpu is None else [[text, round(peak / 1e12, 3)] for text, peak in _ceilings(gpu, list(used))],
        "points": [list(point) for point in shown],
        "left": len(points) - len(shown),
    }  # fmt: skip


def known_gpu(label: str) -> Gpu | None:
    """The GPU of a target; None of one that is not known here, as in a report that was made elsewhere."""
    try:
        return load_gpu(label)
    except UsageError:
        return None


def _points(report: Report, gpu: str) -> Iterator[_Point]:
    for number, entry in enumerate(report.layers):
        for which, one in passes_run(entry, gpu):
            if one.time_us > 0 and one.flops > 0 and one.bytes > 0:
                time_us = round(one.time_us * entry.layer.calls, 3)
                yield number, which, round(one.arithmetic_intensity, 3), round(one.tflops, 4), time_us, one.bound_by


def _ceilings(gpu: Gpu, used: list[tuple[Dtype, bool]]) -> Iterator[tuple[str, float]]:
    """What the units that some pass runs on do at most, by the GPU's data sheet."""
    units = dict.fromkeys((_multiplied(gpu, dtype, tensor=tensor), tensor) for dtype, tensor in used)
    for dtype, tensor in units:
        peak = gpu.peak(dtype, tensor=tensor)
        if peak is not None:
            yield f"{dtype.value} {'Tensor Cores' if tensor else 'CUDA cores'}", peak


def _multiplied(gpu: Gpu, dtype: Dtype, *, tensor: bool) -> Dtype:
    """The type that is multiplied: kernels for CUDA cores beside Tensor Cores of a dtype convert to fp32 first."""
    narrow = dtype in (Dtype.fp16, Dtype.bf16, Dtype.tf32)
    return Dtype.fp32 if narrow and not tensor and gpu.peak(dtype, tensor=True) is not None else dtype
