"""A sweep as a table, as a chart for the terminal, and as CSV."""

from __future__ import annotations

import csv
import io

from convlint.cli.commands.estimate_totals import clock, figures
from convlint.cli.commands.text_plot import Line, legend, plot
from convlint.estimate.sweep import Metric, Point, Series, Sweep
from convlint.files.safe import ascii_only, clean, number
from convlint.reporters import Style
from convlint.reporters.ink import painter, shorten, wrap

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
    first = max(len(sweep.parameter), *(len(str(point.x)) for one in sweep.series for point in one.points))
    count = max(1, (min(max(style.width, 60), _WIDE) - first) // (_CELL + 2))
    lines = [paint("strong", sweep.title), *wrap(sweep.setting, style.width), ""]
    for start in range(0, len(sweep.series), count):
        band = sweep.series[start : start + count]
        heads = "".join(f"  {shorten(one.label, _CELL, '...'):>{_CELL}}" for one in band)
        titles = f"  {'time':>8} {'TFLOPS':>6} {'of peak':>8}" * len(band)
        lines += [" " * first + heads, paint("faint", f"{sweep.parameter:>{first}}{titles}")]
        for row in zip(*(one.points for one in band), strict=True):
            lines.append(f"{row[0].x:>{first}}" + "".join(f"  {_cell(point)}" for point in row))
        lines.append("")
    lines += [paint("faint", line) for note in sweep.notes for line in wrap(note, min(style.width, _WIDE))]
    text = "\n".join(lines)
    return text if style.unicode else ascii_only(text)


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
        values = [value for one in sweep.series for point in one.points if (value := point.value(metric)) is not None]
        scale, unit = (1e-3, "time per pass, ms") if max(values, default=0.0) >= 1000 else (1.0, "time per pass, us")
    chart = plot(
        [_line(one, metric, scale) for one in sweep.series], (width, _HEIGHT), paint=paint, dots=dots, log_x=sweep.log_x
    )
    names = legend([one.label for one in sweep.series], paint=paint, dots=dots)
    lines = [paint("strong", sweep.title), *wrap(sweep.setting, width), "", unit, *chart]
    lines += [" " * max(0, (width - len(sweep.x_label)) // 2) + sweep.x_label + (" (log scale)" if sweep.log_x else "")]
    lines += ["", *_rows(names, [len(one.label) + 3 for one in sweep.series], width)]
    if len(sweep.series) > 1:
        lines.append(paint("faint", "where lines meet, the one named last is seen"))
    lines += [paint("faint", line) for note in sweep.notes for line in wrap(note, width)]
    text = "\n".join(lines)
    return text if style.unicode else ascii_only(text)


def _line(one: Series, metric: Metric, scale: float) -> Line:
    known = [(float(point.x), value * scale) for point in one.points if (value := point.value(metric)) is not None]
    return one.label, sorted(known)


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
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for one in sweep.series:
        for point in one.points:
            estimate = point.estimate
            cells: list[object] = [""] * (len(COLUMNS) - 6)
            if estimate is not None:
                cells = [
                    number(estimate.time_us), number(estimate.tflops), number(point.value("efficiency"), 4),
                    *estimate.tile, estimate.split_k, estimate.tiles, number(estimate.waves),
                    number(estimate.tile_efficiency, 4), number(estimate.wave_efficiency, 4),
                    number(estimate.arithmetic_intensity), estimate.bound_by,
                ]  # fmt: skip
            rows.writerow([sweep.parameter, point.x, one.label, one.gpu, one.which, *cells, clean(point.reason)])
    return text.getvalue()
