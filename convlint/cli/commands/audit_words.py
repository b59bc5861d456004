"""The answer of an audit in words: its headline, what has to be known beside the numbers, and what it covered."""

from __future__ import annotations

from collections.abc import Iterator

from convlint.audit.audit import Summary
from convlint.audit.ranking import Some, Tally
from convlint.files.languages.saying import plural
from convlint.files.safe import clean
from convlint.reporters.ink import columns, shorten
from convlint.reporters.words import place

CUT = "…"
_MOST_NAME = 40  # columns of one in a note
_BASES = {"extrapolated": "extrapolated from other GPUs", "assumed": "assumed, without any timings"}


def headline(summary: Summary) -> str:
    """How much is lost, and of what; empty where no time is known."""
    ranking = summary.ranking
    if not ranking.counted:
        return ""
    share = percent(ranking.lost / ranking.hours if ranking.hours else 0.0)
    if not ranking.weighed:
        mean = f"in the mean of {pairs(ranking.counted, summary)}"
        return f"{share} of convolution time is lost to what advice mends, {mean}; --weights FILE ranks by GPU hours"
    said = f"{hours(ranking.lost)} of {hours(ranking.hours)} GPU hours ({share}) are lost to what advice mends"
    if not ranking.assumed:
        return said
    them = "all of them" if ranking.assumed == ranking.hours else f"all of the {hours(ranking.assumed)} without a share"
    return f"{said}, if convolutions take {them}; the column convolution_share says how much they take"


def pairs(count: int, summary: Summary) -> str:
    """Models, or what else is counted where they are audited for several GPUs each."""
    what = "model" if summary.ranking.pairs == summary.tally.models else "pair"
    return plural(count, what) + (" of a model and a GPU" if what == "pair" else "")


def notes(summary: Summary) -> Iterator[str]:
    """What has to be known beside the numbers."""
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
        names = ", ".join(without_middle(clean(name), _MOST_NAME) for name in unused.names)
        yield f"{plural(unused.rows, 'row')} of weights ({hours(unused.hours)} h) {match} no model: {names}{more}"
    if ranking.lost:
        rest = [
            f"{percent(lost / ranking.lost)} {_BASES[basis]}"
            for basis, lost in ranking.by_basis.items()
            if basis in _BASES
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
    named = ", ".join(without_middle(clean(name), _MOST_NAME) for name in some.names)
    return named + (f", {CUT}" if some.pairs > len(some.names) else "")


def without_middle(cell: str, size: int) -> str:
    """The cell, without its middle where it is too long: the ends of paths and names tell most."""
    if len(cell) <= size or columns(cell) > len(cell):
        return shorten(cell, size, CUT)
    end = (size - 1) // 2
    return cell[: size - 1 - end] + CUT + cell[len(cell) - end :]


def _hours_of(some: Some, summary: Summary) -> str:
    return f" ({hours(some.hours)} h)" if summary.ranking.weighed else ""


def hours(value: float) -> str:
    """Three figures that matter: 1,234, 12.3, 0.0123, and the same below 0."""
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
