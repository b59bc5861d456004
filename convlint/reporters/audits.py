"""An audit as text and JSON: what loses most, by model, change, rule, architecture and GPU."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from convlint import __version__
from convlint.audit.audit import Summary
from convlint.audit.ranking import RankedChange, Some, Tally
from convlint.files.languages import plural
from convlint.files.safe import clean, number, plain
from convlint.reporters import Style, ink
from convlint.reporters.words import BASES, place

CUT = ink.UNICODE.more
_MOST_NAME = 40  # columns of a name in a note, which holds several


def headline(summary: Summary) -> str:
    """The share of time that advice would save, and of how much; empty where no time is known."""
    ranking = summary.ranking
    if not ranking.counted:
        return ""
    share = percent(ranking.lost / ranking.hours if ranking.hours else 0.0)
    if not ranking.weighed:
        mean = f"in the mean of {pairs(ranking.counted, summary)}"
        return f"{share} of convolution time is lost to what advice mends, {mean}; --weights FILE ranks by GPU hours"
    text = f"{hours(ranking.lost)} of {hours(ranking.hours)} GPU hours ({share}) are lost to what advice mends"
    if not ranking.assumed:
        return text
    them = "all of them" if ranking.assumed == ranking.hours else f"all of the {hours(ranking.assumed)} without a share"
    return f"{text}, if convolutions take {them}; the column convolution_share says how much they take"


def pairs(count: int, summary: Summary) -> str:
    """The number of models, or of pairs of a model and a GPU where models are audited for several GPUs."""
    what = "model" if summary.ranking.pairs == summary.tally.models else "pair"
    return plural(count, what) + (" of a model and a GPU" if what == "pair" else "")


def notes(summary: Summary) -> Iterator[str]:
    """Notes on the numbers: what they leave out, and what they rest on."""
    ranking, unused = summary.ranking, summary.unused
    if ranking.stored.pairs:
        yield (
            f"{pairs(ranking.stored.pairs, summary)}{_hours_of(ranking.stored, summary)} stored in fp32 may run in "
            "another dtype, so that advice on it is not counted; --dtype, or the key dtype of a list, says in which: "
            f"{_named(ranking.stored)}"
        )
    if ranking.untimed.pairs:
        what = pairs(ranking.untimed.pairs, summary)
        have = "has" if ranking.untimed.pairs == 1 else "have"
        yield f"{what}{_hours_of(ranking.untimed, summary)} {have} no predicted time: {_named(ranking.untimed)}"
    if ranking.weighed and ranking.idle.pairs:
        have = "has" if ranking.idle.pairs == 1 else "have"
        yield f"{pairs(ranking.idle.pairs, summary)} {have} no hours: {_named(ranking.idle)}"
    if unused is not None and unused.rows:
        match = "matches" if unused.rows == 1 else "match"
        more = f", {CUT}" if unused.rows > len(unused.names) else ""
        names = ", ".join(ink.without_middle(clean(name), _MOST_NAME, CUT) for name in unused.names)
        yield f"{plural(unused.rows, 'row')} of weights ({hours(unused.hours)} h) {match} no model: {names}{more}"
    if ranking.lost:
        rest = [
            f"{percent(lost / ranking.lost)} {BASES[basis]}"
            for basis, lost in ranking.by_basis.items()
            if basis in BASES
        ]
        if rest:
            yield f"times of what is lost: {', '.join(rest)}"


def errors(tally: Tally) -> Iterator[str]:
    """The first models that cannot run as they are, then the first things that could not be read."""
    for finding in tally.first_errors:
        at = f"{finding.model} on {finding.gpu}" if finding.gpu else finding.model
        yield f"error: {clean(at)}: {finding.code} {clean(finding.message)}"
    if tally.errors > len(tally.first_errors):
        yield f"and {tally.errors - len(tally.first_errors):,} more of severity error, in the table of findings"
    for error in tally.first_unread:
        name = "" if error.model in (None, error.path) else f"{clean(error.model or '')}: "
        yield f"error: {name}{place(error.path, error.line, error.column)}: {error.message}"
    if tally.unread > len(tally.first_unread):
        yield f"and {tally.unread - len(tally.first_unread):,} more, in the table of errors"


def covered(summary: Summary) -> str:
    """The last line: what was covered, and what was not."""
    tally = summary.tally
    gpus = ", ".join(map(clean, tally.gpus.values()))
    parts = [
        f"{plural(tally.layers, 'layer')} in {plural(tally.models, 'model')}{f' on {gpus}' if gpus else ''}: "
        f"{plural(tally.errors, 'error')}, {plural(tally.warnings, 'warning')}, {plural(tally.infos, 'info')}"
    ]
    if tally.failed:
        parts.append(f"{plural(tally.failed, 'input')} could not be read")
    if summary.known:
        parts.append(f"{summary.known} known from before")
    return "; ".join(parts)


def _named(some: Some) -> str:
    names = ", ".join(ink.without_middle(clean(name), _MOST_NAME, CUT) for name in some.names)
    return names + (f", {CUT}" if some.pairs > len(some.names) else "")


def _hours_of(some: Some, summary: Summary) -> str:
    return f" ({hours(some.hours)} h)" if summary.ranking.weighed else ""


def hours(value: float) -> str:
    """Three significant digits: 1,234, 12.3, 0.0123, also below 0."""
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    if 0 < size < 0.001:
        return "<0.001" if value > 0 else ">-0.001"
    return f"{value:.3g}"


def percent(share: float | None) -> str:
    """`23 %`, `0.4 %`, `<0.1 %`; `-` where it is unknown."""
    if share is None:
        return "-"
    size = abs(100 * share)
    if 0 < size < 0.05:
        return "<0.1 %" if share > 0 else ">-0.1 %"
    return f"{100 * share:.0f} %" if size >= 9.95 or not size else f"{100 * share:.1f} %"


Columns = list[tuple[str, str, Callable[[Any], str]]]  # of a table: title, side as `row` has it, cell of an entry


def render_text(summary: Summary, style: Style) -> str:
    """The whole answer; the same words with and without colour."""
    width = style.table_width
    paint = ink.painter(style.color)
    first, *rest = ink.wrap(headline(summary), width)
    parts = [[paint("strong", first), *rest] if first else []]
    if not style.quiet and summary.ranking.lost > 0:
        parts += _tables(summary, paint, width)
    parts.append([line for note in notes(summary) for line in ink.wrap(note, width)])
    parts.append([line for error in errors(summary.tally) for line in ink.error_lines(error, width, paint)])
    parts.append(ink.wrap(covered(summary), width))
    return ink.finished((line for part in parts if part for line in (*part, "")), unicode=style.unicode)


def _tables(summary: Summary, paint: ink.Paint, width: int) -> list[list[str]]:
    ranking, weighed = summary.ranking, summary.ranking.weighed
    lost, amount = "hours lost", hours
    if not weighed:  # each model counts the same
        lost, amount = "lost", lambda value: percent(value / ranking.counted)
    worst: Columns = [
        ("", "l", lambda entry: entry.grade or "-"),
        *([(lost, "r", lambda entry: hours(entry.lost))] if weighed else []),
        ("share" if weighed else lost, "r", lambda entry: percent(entry.share)),
        ("model", "m", lambda entry: clean(entry.model)),
        ("GPU", "l", lambda entry: clean(entry.gpu)),
        ("most by", "l", lambda entry: f"{entry.code} {entry.name}" if entry.code else ""),
    ]
    changes: Columns = [
        (lost, "r", lambda entry: amount(entry.lost)),
        ("alone", "r", lambda entry: amount(entry.alone)),
        ("of all", "r", lambda entry: percent(entry.of_all)),
        ("models", "r", lambda entry: str(entry.models)),
        ("", "l", lambda entry: entry.safety),
        ("change", "l", _change),
    ]
    share: Columns = [("share", "r", lambda entry: percent(entry.share))]
    of_hours: Columns = [("hours", "r", lambda entry: hours(entry.hours))]

    def group(own: Columns, more: Columns) -> Columns:
        """The columns of a table of groups of findings; those of models add a share (`own`) and hours (`more`)."""
        return [*changes[:1], *own, *changes[2:4], *more, ("", "m", lambda entry: clean(entry.what))]

    of_rules, of_models = group([], []), group(share, of_hours if weighed else [])
    change_lines = _table("Changes that help most", changes, ranking.changes, -1, paint, width)
    if ranking.more_changes:
        change_lines.append(f"and {ranking.more_changes:,} more")
    return [
        _table("Models that lose most", worst, ranking.worst, -3, paint, width),
        change_lines,
        _table("By rule", of_rules, ranking.rules, -1, paint, width),
        _table("By architecture", of_models, ranking.architectures, -1, paint, width),
        _table("By GPU", of_models, ranking.gpus, -1, paint, width),
    ]


def _change(change: RankedChange) -> str:
    """`CL401 with CL106: NHWC` where it earns its share only beside another rule's fix."""
    others = f" with {', '.join(map(clean, change.pays_with))}:" if change.pays_with else ""
    return f"{change.code}{others} {clean(change.describe) or change.name}"


def _table(title: str, table: Columns, entries: Sequence[Any], elastic: int, paint: ink.Paint, width: int) -> list[str]:
    """A title and rows; what does not fit is cut out of the column `elastic`, "m": out of its middle."""
    titles, sides = [name for name, _, _ in table], "".join(side for _, side, _ in table)
    rows = [[cell(entry) for _, _, cell in table] for entry in entries]
    sizes = ink.column_sizes([titles, *rows])
    fixed = sum(sizes) - sizes[elastic] + 2 * (len(sizes) - 1)
    sizes[elastic] = min(sizes[elastic], max(12, width - fixed))

    lines = [paint("strong", title), paint("faint", ink.row(titles, sizes, sides, CUT).rstrip())]
    for cells in rows:
        text = ink.row(cells, sizes, sides, CUT).rstrip()
        if cells[0] in ink.GRADE_INKS:
            text = paint(ink.GRADE_INKS[cells[0]], text[0]) + text[1:]
        lines.append(text)
    return lines


_DIGITS = 6


def render_json(summary: Summary, style: Style) -> str:
    """The answer as one object on one line. Without weights, each model counts one hour."""
    tally, ranking, unused = summary.tally, summary.ranking, summary.unused
    document = {
        "schema_version": 1,
        "convlint": __version__,
        "complete": not tally.unread,
        "targets": list(tally.gpus.values()),
        "models": tally.models,
        "failed": tally.failed,
        "known": summary.known,
        "layers": tally.layers,
        "findings": {"errors": tally.errors, "warnings": tally.warnings, "infos": tally.infos},
        "unread": tally.unread,
        "weighed": ranking.weighed,
        "hours": number(ranking.hours, _DIGITS),
        "lost_hours": number(ranking.lost, _DIGITS),
        "hours_taken_for_convolutions": number(ranking.assumed, _DIGITS),
        "lost_hours_by_basis": {basis: number(lost, _DIGITS) for basis, lost in ranking.by_basis.items()},
        "stored_dtype": _object(ranking.stored),
        "untimed": _object(ranking.untimed),
        "without_hours": _object(ranking.idle),
        "unused_weights": None
        if unused is None
        else {"rows": unused.rows, "hours": number(unused.hours, _DIGITS), "names": list(unused.names)},
        "worst_models": [_object(entry) for entry in ranking.worst],
        "changes": [_object(entry) for entry in ranking.changes],
        "more_changes": ranking.more_changes,
        "rules": [_object(entry) for entry in ranking.rules],
        "architectures": [_object(entry) for entry in ranking.architectures],
        "gpus": [_object(entry) for entry in ranking.gpus],
    }
    return json.dumps(document, ensure_ascii=not style.unicode, allow_nan=False) + "\n"


def _object(entry: Struct) -> dict[str, Any]:
    return {key: plain(value, _DIGITS) for key, value in asdict(entry).items()}
