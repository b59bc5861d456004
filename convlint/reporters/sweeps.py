"""A sweep as a table and as a plot of text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain, groupby, pairwise

from convlint.estimate.sweep import Metric, Point, Series, Sweep, ticks
from convlint.files.safe import ascii_only, clean, number
from convlint.model.layer import ConvLayer
from convlint.reporters import Style
from convlint.reporters.estimates import clock, csv_text, figures
from convlint.reporters.ink import Paint, finished, painter, shorten, wrap

X_LABELS: Mapping[str, str] = {
    "N": "N, batch size",
    "C": "C, input channels",
    "H": "H, input height",
    "W": "W, input width",
    "D": "D, input depth",
    "K": "K, output channels",
    "R": "R, filter height",
    "S": "S, filter width",
    "T": "T, filter depth",
    "stride": "U = V, stride",
    "dilation": "DilH = DilW, dilation",
    "groups": "groups",
}


def kind(layer: ConvLayer) -> str:
    """`conv fp16 NHWC`: operation, dtype and layout, as far as given."""
    words = ["transposed conv" if layer.op == "conv_transpose" else "conv"]
    if layer.dtype is not None:
        words.append(layer.dtype.value)
    if layer.layout != "auto":
        words.append(layer.layout)
    return " ".join(words)


def fixed(layer: ConvLayer, parameter: str) -> str:
    """`C=4096 H=16 W=16 K=256 R=3 S=3 pad=1`: what the sweep leaves as it is."""
    letters = ("N", "C", *("D", "H", "W")[-layer.dims :], "K", *("T", "R", "S")[-layer.dims :])
    sizes = {letter: getattr(layer, letter) for letter in letters if letter != parameter}
    words = [f"{letter}={'?' if size is None else size}" for letter, size in sizes.items()]
    begins = (layer.PadD, layer.PadH, layer.PadW)[-layer.dims :]
    ends = (layer.PadD_end, layer.PadH_end, layer.PadW_end)[-layer.dims :]
    settings: tuple[tuple[str, tuple[int | None, ...], int], ...] = (
        ("stride", (layer.StrideD, layer.U, layer.V)[-layer.dims :], 1),
        ("pad", begins if begins == ends else tuple(chain(*zip(begins, ends, strict=True))), 0),
        ("dilation", (layer.DilD, layer.DilH, layer.DilW)[-layer.dims :], 1),
        ("groups", (layer.groups,), 1),
    )
    for name, values, neutral in settings:
        if name != parameter and values.count(neutral) < len(values):
            alike = values.count(values[0]) == len(values)
            words.append(f"{name}={','.join(map(str, values[:1] if alike else values))}")
    return " ".join(words)


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


_HEIGHT = 20  # rows of a chart
_WIDE = 120
_LABELS: dict[Metric, str] = {"time": "time", "tflops": "TFLOPS", "efficiency": "% of peak"}
_CELL = 24  # time, TFLOPS and share of peak

# Times in us; efficiency is the share (0 to 1) of the GPU's dense peak.
COLUMNS = (
    "parameter", "value", "line", "gpu", "pass", "time_us", "tflops", "efficiency", "tile_M", "tile_N", "split_k",
    "tiles", "waves", "tile_efficiency", "wave_efficiency", "arithmetic_intensity", "bound_by", "unknown",
)  # fmt: skip


def render_table(sweep: Sweep, style: Style) -> str:
    """One row per value, three columns per line: time, TFLOPS and percent of peak; lines in bands that fit."""
    paint = painter(style.color)
    first = max(len(sweep.parameter), *(len(str(point.x)) for series in sweep.series for point in series.points))
    count = max(1, (style.table_width - first) // (_CELL + 2))
    lines = [paint("strong", sweep.title), *wrap(sweep.setting, style.width), ""]
    for start in range(0, len(sweep.series), count):
        band = sweep.series[start : start + count]
        heads = "".join(f"  {shorten(series.label, _CELL, '...'):>{_CELL}}" for series in band)
        titles = f"  {'time':>8} {'TFLOPS':>6} {'of peak':>8}" * len(band)
        lines += [" " * first + heads, paint("faint", f"{sweep.parameter:>{first}}{titles}")]
        for row in zip(*(series.points for series in band), strict=True):
            lines.append(f"{row[0].x:>{first}}" + "".join(f"  {_cell(point)}" for point in row))
        lines.append("")
    lines += [paint("faint", line) for note in sweep.notes for line in wrap(note, min(style.width, _WIDE))]
    return finished(lines, unicode=style.unicode)


def _cell(point: Point) -> str:
    if point.estimate is None:
        return f"{'-':>8} {'-':>6} {'-':>8}"
    share = point.value("efficiency")
    percent = "-" if share is None else f"{100 * share:.1f} %"
    return f"{clock(point.estimate.time_us):>8} {figures(point.estimate.tflops):>6} {percent:>8}"


def render_plot(sweep: Sweep, metric: Metric, style: Style) -> str:
    """The chart with its title, axes named, legend and notes; dots where colours and Unicode are to be had."""
    paint, dots = painter(style.color), style.color and style.unicode
    width = min(max(style.width, 40), _WIDE)
    scale, unit = 1.0, _LABELS[metric]
    if metric == "efficiency":
        scale = 100.0
    elif metric == "time":
        values = [value for item in sweep.series for point in item.points if (value := point.value(metric)) is not None]
        scale, unit = (1e-3, "time per pass, ms") if max(values, default=0.0) >= 1000 else (1.0, "time per pass, us")
    chart = plot(
        [_line(series, metric, scale) for series in sweep.series],
        (width, _HEIGHT),
        paint=paint,
        dots=dots,
        log_x=sweep.log_x,
    )
    names = [
        f"{paint(_INKS[i % len(_INKS)], '━━' if dots else _MARKS[i % len(_MARKS)] * 2)} {series.label}"
        for i, series in enumerate(sweep.series)
    ]
    lines = [paint("strong", sweep.title), *wrap(sweep.setting, width), "", unit, *chart]
    lines += [" " * max(0, (width - len(sweep.x_label)) // 2) + sweep.x_label + (" (log scale)" if sweep.log_x else "")]
    lines += ["", *_rows(names, [len(series.label) + 3 for series in sweep.series], width)]
    if len(sweep.series) > 1:
        lines.append(paint("faint", "where lines meet, the one named last is seen"))
    lines += [paint("faint", line) for note in sweep.notes for line in wrap(note, width)]
    text = "\n".join(lines)
    return text if style.unicode else ascii_only(text)


def _line(series: Series, metric: Metric, scale: float) -> Line:
    known = [(float(point.x), value * scale) for point in series.points if (value := point.value(metric)) is not None]
    return series.label, sorted(known)


def _rows(names: list[str], sizes: list[int], width: int) -> list[str]:
    """The names side by side, as many as fit into each row."""
    rows: list[str] = []
    used = width
    for name, size in zip(names, sizes, strict=True):
        if rows and used + 3 + size <= width:
            rows[-1] += f"   {name}"
            used += 3 + size
        else:
            rows.append(name)
            used = size
    return rows


def render_csv(sweep: Sweep) -> str:
    """One row per line of the figure and value; what is unknown is empty, with its reason in the last column."""
    rows: list[list[object]] = []
    for series in sweep.series:
        for point in series.points:
            estimate = point.estimate
            cells: list[object] = [""] * (len(COLUMNS) - 6)
            if estimate is not None:
                cells = [
                    number(estimate.time_us), number(estimate.tflops), number(point.value("efficiency"), 4),
                    *estimate.tile, estimate.split_k, estimate.tiles, number(estimate.waves),
                    number(estimate.tile_efficiency, 4), number(estimate.wave_efficiency, 4),
                    number(estimate.arithmetic_intensity), estimate.bound_by,
                ]  # fmt: skip
            rows.append([sweep.parameter, point.x, series.label, series.gpu, series.which, *cells, clean(point.reason)])
    return csv_text(COLUMNS, rows)
