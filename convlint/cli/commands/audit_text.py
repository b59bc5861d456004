"""The answer of an audit for people: what it covered, what is lost, and rankings as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from convlint.audit.audit import Summary
from convlint.audit.ranking import Change, Lost
from convlint.cli.commands.audit_words import CUT, covered, errors, headline, hours, notes, percent, without_middle
from convlint.files.safe import ascii_only, clean
from convlint.reporters import Style
from convlint.reporters.ink import GRADE_INKS, Paint, columns, painter, shorten, wrap

_NARROW, _WIDE = 60, 120
Row = Sequence[str]
Amount = Callable[[float], str]


def render(summary: Summary, style: Style) -> str:
    """The whole answer; the same words with and without colour."""
    width = min(max(style.width, _NARROW), _WIDE)
    paint = painter(style.color)
    parts = [_head(summary, paint, width)]
    if not style.quiet and summary.ranking.lost > 0:
        parts += _tables(summary, paint, width)
    parts.append([line for note in notes(summary) for line in wrap(note, width)])
    parts.append(_errors(summary, paint, width))
    parts.append(list(wrap(covered(summary), width)))
    text = "\n\n".join("\n".join(line.rstrip() for line in part) for part in parts if part) + "\n"
    return text if style.unicode else ascii_only(text)


def _head(summary: Summary, paint: Paint, width: int) -> list[str]:
    first, *rest = wrap(headline(summary), width) or [""]
    return [paint("strong", first), *rest] if first else []


def _tables(summary: Summary, paint: Paint, width: int) -> list[list[str]]:
    ranking = summary.ranking
    lost, amount = ("hours lost", hours) if ranking.weighed else ("lost", partial(_mean, ranking.counted))
    worst = [
        (
            each.grade or "-", *((hours(each.lost),) if ranking.weighed else ()), percent(each.share),
            clean(each.model), clean(each.gpu), f"{each.code} {each.name}" if each.code else "",
        )
        for each in ranking.worst
    ]  # fmt: skip
    titles = (
        ("", lost, "share", "model", "GPU", "most by") if ranking.weighed else ("", lost, "model", "GPU", "most by")
    )
    changes = [
        (
            amount(each.lost), amount(each.alone), percent(each.of_all), str(each.models), each.safety, _change(each),
        )
        for each in ranking.changes
    ]  # fmt: skip
    heads = (lost, "alone", "of all", "models", "", "change")
    several = _table("Changes that help most", heads, changes, "rrrrll", -1, paint, width)
    if ranking.more_changes:
        several.append(f"and {ranking.more_changes:,} more")
    return [
        _table("Models that lose most", titles, worst, "l" + "r" * (len(titles) - 4) + "mll", -3, paint, width),
        several,
        _groups("By rule", lost, amount, ranking.rules, paint, width),
        _groups("By architecture", lost, amount, ranking.architectures, paint, width, weighed=ranking.weighed),
        _groups("By GPU", lost, amount, ranking.gpus, paint, width, weighed=ranking.weighed),
    ]


def _change(change: Change) -> str:
    """`CL401 with CL106: NHWC` where it earns its share only beside another rule's fix."""
    others = f" with {', '.join(map(clean, change.pays_with))}:" if change.pays_with else ""
    return f"{change.code}{others} {clean(change.describe) or change.name}"


def _groups(
    title: str, lost: str, amount: Amount, groups: Sequence[Lost], paint: Paint, width: int,
    *, weighed: bool | None = None,
) -> list[str]:  # fmt: skip
    """Groups of findings, or, where hours are `weighed` or not, of models, which have a share of their own."""
    of_models = weighed is not None
    titles = (lost, *(("share",) if of_models else ()), "of all", "models", *(("hours",) if weighed else ()), "")
    rows = [
        (
            amount(each.lost), *((percent(each.share),) if of_models else ()), percent(each.of_all), str(each.models),
            *((hours(each.hours),) if weighed else ()), clean(each.what),
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
            cut = without_middle(cell, size) if side == "m" else shorten(cell, size, CUT)
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


def _errors(summary: Summary, paint: Paint, width: int) -> list[str]:
    lines = []
    for error in errors(summary.tally):
        first, *rest = wrap(error, width)
        lines += [first.replace("error:", paint("error", "error:"), 1), *(f"  {line}" for line in rest)]
    return lines


def _mean(models: int, value: float) -> str:
    """Of the convolution time of that many models, each of which counts the same."""
    return percent(value / models)
