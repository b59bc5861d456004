"""The answer of an audit for people: what it covered, what is lost, and rankings as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from convlint.files.safe import ascii_only, clean
from convlint.linting.audit.audit import Summary
from convlint.linting.audit.ranking import Lost
from convlint.reporters import Style
from convlint.reporters.ink import GRADE_INKS, Paint, painter, shorten, wrap
from convlint.reporters.snippet import columns
from convlint.reporters.words import place, plural

_NARROW, _WIDE = 60, 120
_CUT = "…"
Row = Sequence[str]
Amount = Callable[[float], str]


def render(summary: Summary, style: Style) -> str:
    """The whole answer; the same words with and without colour."""
    width = min(max(style.width, _NARROW), _WIDE)
    paint = painter(style.color)
    parts = [_head(summary, paint, width)]
    if not style.quiet and summary.ranking.lost > 0:
        parts += _tables(summary, paint, width)
    parts.append([line for note in _notes(summary) for line in wrap(note, width)])
    parts.append(_errors(summary, paint, width))
    parts.append(_wrapped(_covered(summary), width))
    text = "\n\n".join("\n".join(line.rstrip() for line in part) for part in parts if part) + "\n"
    return text if style.unicode else ascii_only(text)


def _head(summary: Summary, paint: Paint, width: int) -> list[str]:
    ranking = summary.ranking
    if not ranking.counted:
        return []
    share = ranking.lost / ranking.hours if ranking.hours else 0.0
    if ranking.weighed:
        said = (
            f"{_hours(ranking.lost)} of {_hours(ranking.hours)} GPU hours ({_percent(share)}) are lost to what advice "
            "mends"
        )
        if not ranking.shared:
            said += ", if convolutions take all of them; the column convolution_share says how much they take"
    else:
        said = (
            f"{_percent(share)} of convolution time is lost to what advice mends, in the mean of "
            f"{plural(ranking.counted, 'model')}; --weights FILE ranks by GPU hours"
        )
    first, *rest = wrap(said, width)
    return [paint("strong", first), *rest]


def _tables(summary: Summary, paint: Paint, width: int) -> list[list[str]]:
    ranking = summary.ranking
    lost, amount = ("hours lost", _hours) if ranking.weighed else ("lost", partial(_mean, ranking.counted))
    worst = [
        (
            each.grade or "-", *((_hours(each.lost),) if ranking.weighed else ()), _percent(each.share),
            clean(each.model), clean(each.gpu), f"{each.code} {each.name}" if each.code else "",
        )
        for each in ranking.worst
    ]  # fmt: skip
    titles = (
        ("", lost, "share", "model", "GPU", "most by") if ranking.weighed else ("", lost, "model", "GPU", "most by")
    )
    changes = [
        (
            amount(each.lost), amount(each.alone), _percent(each.of_all), str(each.models), each.safety,
            f"{each.code} {clean(each.describe) or each.name}",
        )
        for each in ranking.changes
    ]  # fmt: skip
    heads = (lost, "alone", "of all", "models", "", "change")
    return [
        _table("Models that lose most", titles, worst, "l" + "r" * (len(titles) - 4) + "mll", -3, paint, width),
        _table("Changes that help most", heads, changes, "rrrrll", -1, paint, width),
        _groups("By rule", lost, amount, ranking.rules, paint, width),
        _groups("By architecture", lost, amount, ranking.architectures, paint, width, hours=ranking.weighed),
        _groups("By GPU", lost, amount, ranking.gpus, paint, width, hours=ranking.weighed),
    ]


def _groups(
    title: str, lost: str, amount: Amount, groups: Sequence[Lost], paint: Paint, width: int, *, hours: bool = False
) -> list[str]:
    titles = (lost, "of all", "models", *(("hours",) if hours else ()), "")
    rows = [
        (
            amount(each.lost), _percent(each.of_all), str(each.models), *((_hours(each.hours),) if hours else ()),
            clean(each.what),
        )
        for each in groups
    ]  # fmt: skip
    return _table(title, titles, rows, "r" * (len(titles) - 1) + "m", -1, paint, width)


def _table(
    title: str, titles: Row, rows: Sequence[Row], sides: str, elastic: int, paint: Paint, width: int
) -> list[str]:
    """A title and rows; what does not fit is cut out of the column `elastic`, "m": out of its middle."""
    sizes = [max(map(columns, column)) for column in zip(titles, *rows, strict=True)]
    fixed = sum(sizes) - sizes[elastic] + 2 * (len(sizes) - 1)
    sizes[elastic] = min(sizes[elastic], max(12, width - fixed))

    def line(cells: Row) -> str:
        placed = []
        for cell, size, side in zip(cells, sizes, sides, strict=True):
            cut = _without_middle(cell, size) if side == "m" else shorten(cell, size, _CUT)
            space = " " * (size - columns(cut))
            placed.append(space + cut if side == "r" else cut + space)
        return "  ".join(placed).rstrip()

    lines = [paint("strong", title), paint("faint", line(titles))]
    for cells in rows:
        text = line(cells)
        if cells[0] in GRADE_INKS:
            text = paint(GRADE_INKS[cells[0]], text[0]) + text[1:]
        lines.append(text)
    return lines


def _without_middle(cell: str, size: int) -> str:
    """The cell, without its middle where it is too long: the ends of paths and names tell most."""
    if len(cell) <= size or columns(cell) > len(cell):
        return shorten(cell, size, _CUT)
    end = (size - 1) // 2
    return cell[: size - 1 - end] + _CUT + cell[len(cell) - end :]


def _errors(summary: Summary, paint: Paint, width: int) -> list[str]:
    """The first things that could not be read; all of them are in the table of errors."""
    tally = summary.tally
    lines = []
    for error in tally.first_errors:
        at = place(error.path, error.line, error.column)
        first, *rest = wrap(f"error: {at}: {error.message}", width)
        lines += [first.replace("error:", paint("error", "error:"), 1), *(f"  {line}" for line in rest)]
    if tally.unread > len(tally.first_errors):
        lines.append(f"and {tally.unread - len(tally.first_errors):,} more, in the table of errors")
    return lines


def _notes(summary: Summary) -> list[str]:
    ranking, unused = summary.ranking, summary.unused
    notes = []
    if ranking.models > ranking.counted:
        what = "models" if len(summary.tally.gpus) == 1 else "pairs of a model and a GPU"
        lacks = "no hours, or no time that could be predicted" if ranking.weighed else "no time that could be predicted"
        notes.append(f"{ranking.models - ranking.counted:,} of {ranking.models:,} {what} have {lacks}.")
    if summary.tally.stored:
        notes.append(
            f"{summary.tally.stored:,} of {plural(summary.tally.models, 'model')} are judged by the dtype of their "
            "stored weights; --dtype, or a list's key dtype, says what they run in."
        )
    if unused is not None and unused.rows:
        more = ", …" if unused.rows > len(unused.names) else ""
        notes.append(
            f"{plural(unused.rows, 'row')} of weights ({_hours(unused.hours)} h) match no model: "
            f"{', '.join(map(clean, unused.names))}{more}"
        )
    return notes


def _covered(summary: Summary) -> str:
    tally = summary.tally
    gpus = ", ".join(map(clean, tally.gpus.values()))
    parts = [
        f"{plural(tally.layers, 'layer')} in {plural(tally.models, 'model')}{f' on {gpus}' if gpus else ''}: "
        f"{plural(tally.errors, 'error')}, {plural(tally.warnings, 'warning')}, {plural(tally.infos, 'info')}"
    ]
    if tally.failed:
        parts.append(f"{plural(tally.failed, 'model')} could not be read")
    if summary.known:
        parts.append(f"{summary.known} known from before")
    return "; ".join(parts)


def _wrapped(text: str, width: int) -> list[str]:
    return list(wrap(text, width))


def _hours(value: float) -> str:
    """Three figures that matter: 1,234, 12.3, 0.0123."""
    if value == 0:
        return "0"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 0.001 else "<0.001"


def _mean(models: int, value: float) -> str:
    """Of the convolution time of that many models, each of which counts the same."""
    return _percent(value / models)


def _percent(share: float | None) -> str:
    if share is None:
        return "-"
    return f"{100 * share:.0f} %" if share >= 0.0995 or share == 0 else f"{100 * share:.1f} %"
