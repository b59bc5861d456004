"""A sweep as an SVG or PNG figure, through matplotlib (the extra `convlint[plot]`)."""

from __future__ import annotations

import io
import textwrap
from typing import TYPE_CHECKING, Any

from convlint.estimate.sweep import Metric, Series, Sweep, ticks
from convlint.model.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which people with any colour vision tell apart; black and yellow left out.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
_MARKERS = "osD^vP"
_GREY = "#5a5a5a"
_MOST_TICKS = 16
_LARGE = 100_000  # from here on, powers of 2 are written as such
_FEW = 40  # points up to which each is marked
_CEILING = 1.04  # of the highest label
_DIRECT = 0.055  # least distance of two labels beside the axes, as a share of their height


_End = tuple[float, Series, dict[str, Any]]  # where a line ends, the line, how it is drawn


def render_image(sweep: Sweep, metric: Metric, form: str) -> bytes:
    """The figure as "svg" or "png". Raises UsageError where matplotlib is missing."""
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError(f"--output {form} needs matplotlib: pip install matplotlib") from error
    look: Any = {
        "font.family": "DejaVu Sans", "font.size": 10, "axes.edgecolor": _GREY, "axes.labelcolor": "#222222",
        "xtick.color": _GREY, "ytick.color": _GREY, "svg.hashsalt": "convlint", "svg.fonttype": "path",
    }  # fmt: skip
    with matplotlib.rc_context(look):
        notes = [line for note in sweep.notes for line in textwrap.wrap(note, 136)]
        height = 4.6 + 0.16 * len(notes)
        figure = Figure(figsize=(8, height), layout=None)
        (FigureCanvasSVG if form == "svg" else FigureCanvasAgg)(figure)
        bottom = (0.62 + 0.16 * len(notes)) / height
        axes = figure.add_axes((0.085, bottom, 0.70, 1 - 0.72 / height - bottom))
        _draw(axes, sweep, metric)
        figure.text(
            0.02, 1 - 0.28 / height, sweep.title, fontsize=13, fontweight="bold", color="#111111", parse_math=False
        )
        figure.text(0.02, 1 - 0.50 / height, sweep.setting, fontsize=9, color=_GREY, parse_math=False)
        for row, line in enumerate(reversed(notes)):
            figure.text(0.02, (0.08 + 0.16 * row) / height, line, fontsize=7.5, color=_GREY)
        content = io.BytesIO()
        # No date and no version: the same sweep gives the same file.
        metadata = {"Date": None, "Creator": "convlint"} if form == "svg" else {"Software": "convlint"}
        figure.savefig(content, format=form, dpi=160, metadata=metadata)
    return content.getvalue()


def _draw(axes: Axes, sweep: Sweep, metric: Metric) -> None:
    from matplotlib.ticker import NullLocator

    values = [value for series in sweep.series for point in series.points if (value := point.value(metric)) is not None]
    scale, unit = _unit(metric, max(values, default=0.0))
    ends: list[_End] = []
    for index, series in enumerate(sweep.series):
        color = _color(sweep, index)
        style = _style(series, color, index)
        ys = [float("nan") if (value := point.value(metric)) is None else value * scale for point in series.points]
        axes.plot([point.x for point in series.points], ys, zorder=4 if series.marks else 3, clip_on=False, **style)
        known = [y for y in ys if y == y]
        if known:
            ends.append((known[-1], series, style))
    if sweep.log_x:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0f}")
    xs = ticks(sorted({point.x for series in sweep.series for point in series.points}), _MOST_TICKS)
    powers = sweep.log_x and xs[-1] >= _LARGE and all(x & (x - 1) == 0 for x in xs)
    axes.set_xticks(xs, labels=[f"$2^{{{x.bit_length() - 1}}}$" if powers else str(x) for x in xs])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(0, max(values, default=1.0) * scale * 1.06 or 1.0)
    axes.set_xlabel(sweep.x_label)
    axes.set_ylabel(unit)
    axes.grid(axis="y", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    _label_ends(axes, ends)


def _style(series: Series, color: str, index: int) -> dict[str, Any]:
    """How one line is drawn: open marks without a line, a line with its points, or where these are many, a line."""
    if series.marks:
        return {
            "color": color, "linestyle": "none", "marker": _MARKERS[index % len(_MARKERS)], "markerfacecolor": "none",
            "markersize": 6 + 2.2 * (index % 4), "markeredgewidth": 1.3,
        }  # fmt: skip
    if len(series.points) <= _FEW:
        return {"color": color, "linewidth": 1.8, "marker": "o", "markersize": 4}
    return {"color": color, "linewidth": 1.2}


def _label_ends(axes: Axes, ends: list[_End]) -> None:
    """Each line's name at its right end, in its colour; names are moved apart where lines end together."""
    low, high = axes.get_ylim()
    order = sorted(ends, key=lambda end: end[0])
    x = 1.055 if any(series.marks for _, series, _ in order) else 1.02
    places = _apart([(y - low) / (high - low) for y, _, _ in order])
    for share, (_, series, style) in zip(places, order, strict=True):
        if series.marks:
            axes.plot([1.03], [share], transform=axes.transAxes, clip_on=False, **style)
        axes.text(x, share, series.label, transform=axes.transAxes, color=style["color"], va="center", fontsize=9)


def _apart(shares: list[float]) -> list[float]:
    """The places, in rising order, moved so that neighbours are `_DIRECT` apart; groups stay centred on their own."""
    groups: list[list[float]] = []
    for share in shares:
        groups.append([share])
        while len(groups) > 1 and _start(groups[-1]) < _start(groups[-2]) + len(groups[-2]) * _DIRECT:
            groups[-2:] = [groups[-2] + groups[-1]]
    return [_start(group) + index * _DIRECT for group in groups for index in range(len(group))]


def _start(group: list[float]) -> float:
    """Where the lowest name of a group stands."""
    start = sum(group) / len(group) - (len(group) - 1) / 2 * _DIRECT
    return min(start, _CEILING - (len(group) - 1) * _DIRECT)


def _color(sweep: Sweep, index: int) -> str:
    """One colour a line; marks share the colour of the line of the same pass and GPU, so that they can be compared."""
    series = sweep.series[index]
    lines = [i for i, other in enumerate(sweep.series) if not other.marks]
    same = [i for i in lines if sweep.series[i].which == series.which and sweep.series[i].gpu == series.gpu]
    if series.marks and same and len(lines) > 1:
        index = same[0]
    if len(lines) < len(sweep.series) and len(lines) > 1:
        return _COLORS[lines.index(index) % len(_COLORS)]
    return _COLORS[index % len(_COLORS)]


def _unit(metric: Metric, highest: float) -> tuple[float, str]:
    """The factor from the metric's own unit to the axis's, and the axis's label."""
    if metric == "time":
        return (1e-3, "Predicted time per pass (ms)") if highest >= 1000 else (1.0, "Predicted time per pass (µs)")
    if metric == "tflops":
        return 1.0, "Predicted performance (TFLOPS)"
    return 100.0, "Predicted share of peak (%)"
