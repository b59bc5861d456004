"""The top of the page: for each target the time, the grade, and what to do first."""

from __future__ import annotations

from msgspec import Struct

from convlint.files.safe import clean
from convlint.model.layer import Mode
from convlint.report import Report
from convlint.reporters.page.findings import Item
from convlint.reporters.page.roofline import known_gpu
from convlint.reporters.totals import totals
from convlint.reporters.words import duration, step

_FIRST = 3  # pieces of advice at the top


class Verdict(Struct, frozen=True, kw_only=True):
    """What the layers come to on one target in one mode."""

    gpu: str
    device: str
    mode: str
    grade: str
    time: str
    after: str
    batch: int | None  # where all networks have one
    first: tuple[Item, ...]  # what to do first


def cards(report: Report, found: list[Item]) -> list[Verdict]:
    """One for each target and mode."""
    batches: dict[tuple[str, Mode], set[int | None]] = {}
    for network in report.networks:
        batches.setdefault((network.gpu, network.mode), set()).add(network.batch)
    of_mode: dict[Mode, set[int]] = {}
    for number, entry in enumerate(report.layers):
        of_mode.setdefault(entry.mode, set()).add(number)
    result = []
    for total in totals(report):
        times = total.times
        result.append(
            Verdict(
                gpu=clean(total.gpu),
                device="" if (gpu := known_gpu(total.gpu)) is None else gpu.name,
                mode=step(total.mode),
                grade=total.grade or "",
                time="" if times is None else duration(times.time_us),
                after="" if times is None or times.after_us >= times.time_us else duration(times.after_us),
                batch=_only(batches.get((total.gpu, total.mode), set())),
                first=_first(found, total.gpu, of_mode.get(total.mode, set())),
            )
        )
    return result


def _only(values: set[int | None]) -> int | None:
    return next(iter(values)) if len(values) == 1 else None


def _first(found: list[Item], gpu: str, layers: set[int]) -> tuple[Item, ...]:
    """What to do first: errors, then what saves most; of the whole network, and of the layers that this mode has."""
    own = [item for item in found if item.fix and item.finding.gpu in (gpu, None)
           and (not item.layers or not layers.isdisjoint(item.layers))]  # fmt: skip
    worth = [item for item in own if item.severity != "info" or (item.finding.advised and item.lost_us > 0)]
    return tuple(sorted(worth, key=lambda item: (item.severity != "error", -item.lost_us))[:_FIRST])
