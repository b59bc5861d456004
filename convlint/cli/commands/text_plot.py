"""A line chart in characters: braille dots with colours, and one letter per line where either is missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby, pairwise

from convlint.estimate.sweep import ticks
from convlint.reporters.ink import Paint

Line = tuple[str, Sequence[tuple[float, float]]]  # label, (x, y) in order of x

_INKS = ("label", "fair", "good", "poor", "frame", "strong", "faint", "fix")
_MARKS = "oxw+*#%&"
_MOST_TICKS = 16
_BRAILLE = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # the bit of each dot, by row and column


def plot(lines: Sequence[Line], size: tuple[int, int], *, paint: Paint, dots: bool, log_x: bool = False) -> list[str]:
    """The chart, in `size` (columns, rows) without its legend; y from 0. Empty where no line has a point.

    With `dots` a character holds 2 x 4 points and lines differ by colour; otherwise each line has its own letter.
    """
    every = [point for _, points in lines for point in points]
    if not every:
        return []
    top, step = _ticks(max(y for _, y in every))
    labels = {tick: f"{tick * step:g}" for tick in range(round(top / step) + 1)}
    margin = max(map(len, labels.values()))
    columns, rows = max(size[0] - margin - 2, 10), max(size[1] - 2, 4)
    wide, high = (2, 4) if dots else (1, 1)
    xs = sorted({int(x) for x, _ in every})
    low, high_x = xs[0], xs[-1]
    span = _scaled(high_x, log_x) - _scaled(low, log_x) or 1.0
    cells: dict[tuple[int, int], tuple[int, str]] = {}
    for index, (_, points) in enumerate(lines):
        ink = _INKS[index % len(_INKS)]
        places = [
            (
                (_scaled(x, log_x) - _scaled(low, log_x)) / span * (columns * wide - 1),
                (1 - y / top) * (rows * high - 1),
            )
            for x, y in points
        ]
        for column, row in _trace(places):
            cell = (row // high, column // wide)
            bits = (
                cells.get(cell, (0, ""))[0] | _BRAILLE[row % 4][column % 2]
                if dots
                else ord(_MARKS[index % len(_MARKS)])
            )
            cells[cell] = (bits, ink)
    base = 0x2800 if dots else 0
    at_row = {round((1 - tick * step / top) * (rows * high - 1)) // high: text for tick, text in labels.items()}
    drawn = []
    for row in range(rows):
        across = [cells.get((row, column)) for column in range(columns)]
        body = "".join(
            paint(ink, "".join(chr(base + cell[0]) for cell in run if cell)) if ink else " " * len(run)
            for ink, run in ((ink, list(run)) for ink, run in groupby(across, lambda cell: cell[1] if cell else ""))
        )
        axis = "┤" if dots and row in at_row else "│" if dots else "+" if row in at_row else "|"
        drawn.append(f"{at_row.get(row, ''):>{margin}} {paint('faint', axis)}{body}")
    line = "─" * columns if dots else "-" * columns
    drawn.append(" " * margin + " " + paint("faint", ("└" if dots else "+") + line))
    drawn.append(" " * (margin + 2) + _x_labels(xs, columns, log_x))
    return drawn


def legend(labels: Sequence[str], *, paint: Paint, dots: bool) -> list[str]:
    """What each line is: its colour, or its letter."""
    return [
        f"{paint(_INKS[i % len(_INKS)], '━━' if dots else _MARKS[i % len(_MARKS)] * 2)} {label}"
        for i, label in enumerate(labels)
    ]


def _trace(places: Sequence[tuple[float, float]]) -> list[tuple[int, int]]:
    """Every (column, row) that the line through the places touches."""
    touched = [(round(x), round(y)) for x, y in places[:1]]
    for (x0, y0), (x1, y1) in pairwise(places):
        count = max(1, math.ceil(max(abs(x1 - x0), abs(y1 - y0))))
        touched += [(round(x0 + (x1 - x0) * i / count), round(y0 + (y1 - y0) * i / count)) for i in range(count + 1)]
    return list(dict.fromkeys(touched))


def _ticks(highest: float) -> tuple[float, float]:
    """The top of an axis from 0 that holds `highest`, and the distance of its ticks: 1, 2 or 5 times a power of 10."""
    rough = max(highest, 1e-12) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return math.ceil(highest / step - 1e-9) * step or step, step


def _scaled(x: float, log_x: bool) -> float:
    return math.log2(x) if log_x else x


def _x_labels(xs: Sequence[int], columns: int, log_x: bool) -> str:
    """As many of the swept values as there is room for, each below its place on the axis."""
    low, high = _scaled(xs[0], log_x), _scaled(xs[-1], log_x)
    for most in range(_MOST_TICKS, 1, -1):
        text = ""
        for x in ticks(xs, most):
            label = str(x)
            middle = round((_scaled(x, log_x) - low) / (high - low or 1.0) * (columns - 1))
            start = min(max(middle - (len(label) - 1) // 2, 0), columns - len(label))
            if text and start < len(text) + 2:
                break
            text = text.ljust(start) + label
        else:
            return text
    return str(xs[0])
