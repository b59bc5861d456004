"""What the roofline is drawn from: the work and speed of each pass, and the ceilings of each GPU."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

from convlint.errors import UsageError
from convlint.estimate.results import Roof
from convlint.files.languages.saying import say
from convlint.files.safe import clean
from convlint.gpus.gpu import Gpu, load_gpu
from convlint.report import Report
from convlint.reporters.page.layers import names_of, passes_run

MOST_POINTS = 6_000  # of one target; of more, those that take longest

_Point = tuple[int, str, float, float, float, str, str]  # layer, pass, FLOP/B, TFLOPS, us, bound, algorithm


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
    roofs = list(dict.fromkeys(one.roof for entry in report.layers for _, one in passes_run(entry, label)))
    return {
        "label": clean(label),
        "name": clean(label) if gpu is None else gpu.name,
        "bandwidth": round(roofs[0].bandwidth / 1e9, 1) if roofs else None,
        "reached": round(roofs[0].reached_bandwidth / 1e9, 1) if roofs else None,
        "ceilings": [[_unit(roof), round(roof.peak / 1e12, 3), round(roof.reached / 1e12, 3)] for roof in roofs],
        "points": [list(point) for point in shown],
        "left": len(points) - len(shown),
    }


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
                yield (number, which, round(one.arithmetic_intensity, 3), round(one.tflops, 4), time_us, one.bound_by,
                       one.algorithm)  # fmt: skip


def _unit(roof: Roof) -> str:
    """`fp16 Tensor Cores`, with what is summed in where that has a rate of its own."""
    units = say("Tensor Cores") if roof.tensor_cores else say("CUDA cores")
    return f"{roof.dtype.value} {units}{say(', fp16 sums') if roof.fp16_sums else ''}"
