"""Where the time of a target goes, in short: its dearest layers, what bounds it, and how much of it is known."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from msgspec import Struct

from convlint.files.languages.saying import say
from convlint.model.layer import Mode
from convlint.report import Report
from convlint.reporters.page.layers import passes_run
from convlint.reporters.words import duration, plural

_DEAREST = 3  # layers at the top


class Dearest(Struct, frozen=True, kw_only=True):
    """A layer that is among those that cost most."""

    number: int
    share: str


class Costs(Struct, frozen=True, kw_only=True):
    """Of the layers of one mode on one target; shares are of those whose time is known."""

    dearest: tuple[Dearest, ...]
    bounds: tuple[tuple[str, str], ...]  # what bounds it, and the share of the time
    known: str  # `57 of 60 layers`, where the time of some is unknown
    together: str  # the time of those that are known; empty where none is


def costs(report: Report, gpu: str, mode: Mode) -> Costs:
    """What takes longest, of how much."""
    own = [number for number, entry in enumerate(report.layers) if entry.mode == mode]
    times = {number: one.time_us for number in own if (one := report.layers[number].times.get(gpu)) is not None}
    whole = sum(times.values())
    longest = heapq.nlargest(_DEAREST, times, key=lambda number: (times[number], -number)) if whole else []
    return Costs(
        dearest=tuple(Dearest(number=number, share=_percent(times[number], whole)) for number in longest),
        bounds=_bounds(report, gpu, list(times)),
        known=""
        if len(times) == len(own)
        else say("{count:,} of {layers}", count=len(times), layers=plural(len(own), "layer")),
        together=duration(whole) if times else "",
    )


def _bounds(report: Report, gpu: str, numbers: Sequence[int]) -> tuple[tuple[str, str], ...]:
    by_bound: dict[str, float] = {}
    for number in numbers:
        entry = report.layers[number]
        for _, one in passes_run(entry, gpu):
            by_bound[one.bound_by] = by_bound.get(one.bound_by, 0.0) + one.time_us * entry.layer.calls
    whole = sum(by_bound.values())
    largest = sorted(by_bound.items(), key=lambda each: -each[1])
    return tuple((bound, _percent(time_us, whole)) for bound, time_us in largest if time_us > 0)


def _percent(part: float, whole: float) -> str:
    share = 100 * part / whole
    return f"{share:.0f} %" if share >= 0.95 else say("under 1 %")
