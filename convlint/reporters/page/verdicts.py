"""The top of the page: for each target the time, the grade, what costs most, and what to do first."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TypeVar

from msgspec import Struct

from convlint.files.languages.saying import say
from convlint.files.safe import clean, clean_path
from convlint.model.layer import Mode
from convlint.report import GRADES, NetworkReport, Report
from convlint.reporters.machine import basis_of
from convlint.reporters.page.advice import Advice, first_steps
from convlint.reporters.page.costs import Costs, costs
from convlint.reporters.page.findings import Item
from convlint.reporters.page.roofline import known_gpu
from convlint.reporters.totals import asking_for_a_batch, outcome, totals
from convlint.reporters.words import duration, step

_FIRST = 3  # pieces of advice that a card has room for
T = TypeVar("T")


class Verdict(Struct, frozen=True, kw_only=True):
    """What the layers come to on one target in one mode."""

    gpu: str
    device: str
    mode: str
    grade: str
    time: str  # empty where some layer's is unknown
    after: str  # with all advice taken: the time, or what is saved, where `is_saving`; empty without advice
    is_saving: bool
    asks_for_a_batch: bool  # which is no part of `after`
    batch: int | None  # where all networks have one
    costs: Costs
    basis: str  # what the times rest on
    pace: str  # where the GPU waits for its host
    first: tuple[Advice, ...]  # what to do first
    more: int  # pieces of advice behind those


def cards(report: Report, found: list[Item]) -> list[Verdict]:
    """One for each target and mode."""
    batches: dict[tuple[str, Mode], set[int | None]] = {}
    for network in report.networks:
        batches.setdefault((network.gpu, network.mode), set()).add(network.batch)
    of_mode: dict[Mode, set[int]] = {}
    for number, entry in enumerate(report.layers):
        of_mode.setdefault(entry.mode, set()).add(number)
    asking = asking_for_a_batch(report)
    result = []
    for total in totals(report):
        times = total.times
        after, is_saving = ("", False) if times is None else outcome(times)
        advised = first_steps(found, total.gpu, of_mode.get(total.mode, set()))
        result.append(
            Verdict(
                gpu=clean(total.gpu),
                device="" if (gpu := known_gpu(total.gpu)) is None else gpu.name,
                mode=step(total.mode),
                grade=total.grade or "",
                time="" if times is None else duration(times.time_us),
                after=after,
                is_saving=is_saving,
                asks_for_a_batch=total.gpu in asking,
                batch=_only(batches.get((total.gpu, total.mode), set())),
                costs=costs(report, total.gpu, total.mode),
                basis=clean(basis_of(report, total.gpu, total.mode)),
                pace=_pace([each for each in report.networks if (each.gpu, each.mode) == (total.gpu, total.mode)]),
                first=advised[:_FIRST],
                more=max(len(advised) - _FIRST, 0),
            )
        )
    return result


def _pace(networks: Sequence[NetworkReport]) -> str:
    """Of the networks that wait for the host, how long both need; empty where none does."""
    waiting = [each for each in networks if each.waits]
    if not waiting:
        return ""
    host, gpu = (sum(getattr(each, name) or 0 for each in waiting) for name in ("host_us", "gpu_us"))
    return say(
        "the host needs about {host} to start the kernels, the GPU {gpu} to run them",
        host=duration(host),
        gpu=duration(gpu),
    )


def grades() -> str:
    """`A from 0.90, B from 0.75, C from 0.60, D from 0.40, else F`."""
    letters = say(", ").join(say("{letter} from {least:.2f}", letter=letter, least=least) for least, letter in GRADES)
    return say("{letters}, else F", letters=letters)


def plan_command(report: Report) -> str:
    """What prints the plan of the network, ready for a shell; a word to fill in stands for what is not one thing."""
    if not any(total.times for total in totals(report)):
        return ""  # a plan is made of times
    model = _only({entry.layer.model for entry in report.layers})
    path = _only({network.path for network in report.networks} | {entry.layer.path for entry in report.layers})
    what = "FILE"
    if model:
        what = f"--model {shlex.quote(clean(model))}"
    elif path and not path.startswith(("<", "-")):
        what = shlex.quote(clean_path(path))
    gpu = shlex.quote(clean(report.targets[0])) if len(report.targets) == 1 else "GPU"
    return f"convlint plan {what} --gpu {gpu}"


def _only(values: set[T]) -> T | None:
    return next(iter(values)) if len(values) == 1 else None
