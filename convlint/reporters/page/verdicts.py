"""The top of the page: for each target the time, the grade, and what to do first."""

from __future__ import annotations

from msgspec import Struct

from convlint.errors import UsageError
from convlint.files.safe import clean
from convlint.gpus.gpu import load_gpu
from convlint.report import Report
from convlint.reporters.page.findings import Item
from convlint.reporters.words import duration, step, totals, verdicts

_FIRST = 3  # pieces of advice at the top


class Verdict(Struct, frozen=True, kw_only=True):
    """What the layers come to on one target in one mode."""

    gpu: str
    device: str
    mode: str
    grade: str
    time: str
    after: str
    says: str
    first: tuple[Item, ...]  # what to do first


def cards(report: Report, found: list[Item]) -> list[Verdict]:
    """One for each target and mode."""
    said = {(total.gpu, total.mode): text for total, text in verdicts(report)}
    result = []
    for total in totals(report):
        times = total.times
        result.append(
            Verdict(
                gpu=clean(total.gpu),
                device=_device(total.gpu),
                mode=step(total.mode),
                grade=total.grade or "",
                time="" if times is None else duration(times.time_us),
                after="" if times is None or times.after_us >= times.time_us else duration(times.after_us),
                says=clean(said.get((total.gpu, total.mode), "")) or f"time per {step(total.mode)} unknown",
                first=_first(found, total.gpu),
            )
        )
    return result


def _device(label: str) -> str:
    try:
        return load_gpu(label).name
    except UsageError:  # a report that was made elsewhere may name a GPU that is not known here
        return ""


def _first(found: list[Item], gpu: str) -> tuple[Item, ...]:
    """What costs most of what has a fix: errors and warnings, and infos only where there is nothing else."""
    own = [item for item in found if item.fix and item.finding.gpu in (gpu, None)]
    grave = [item for item in own if item.severity != "info"]
    worth = grave or [item for item in own if item.finding.advised and item.lost_us > 0]
    return tuple(sorted(worth, key=lambda item: (item.severity != "error", -item.lost_us))[:_FIRST])
