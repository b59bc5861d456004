"""Whether something helps shapes that had no part in it: layers of one shape are off in the same way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean, median, stdev
from typing import Final

from convlint.model.layer import ConvLayer

FOLDS: Final = 5
Shape = tuple[object, ...]


def shape_of(layer: ConvLayer) -> Shape:
    """What layers share that are off in the same way: all sizes but the batch."""
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
    """By how much shapes come nearer on average, less one standard error of that; distances of rows go in.

    Nothing is gained where a few far rows come nearer at the price of most others.
    """
    if median(after) > median(before):
        return 0.0
    gains: dict[Shape, list[float]] = defaultdict(list)
    for shape, old, new in zip(shapes, before, after, strict=True):
        gains[shape].append(old - new)
    means = [fmean(own) for own in gains.values()]
    return fmean(means) - stdev(means) / len(means) ** 0.5 if len(means) > 1 else 0.0
