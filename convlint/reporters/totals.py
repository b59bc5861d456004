"""What a network's layers come to, in words: the time, the grade, and what all advice makes of it."""

from __future__ import annotations

from collections.abc import Iterator

from convlint.files.languages.saying import say
from convlint.report import LayerTimes, Report, Total
from convlint.reporters.words import NOTHING_US, duration, step


def totals(report: Report) -> tuple[Total, ...]:
    """What the layers come to on each target and in each mode; of one alone, what the report says of the whole run."""
    if len(report.totals) > 1:
        return report.totals
    return () if report.total is None else (report.total,)


def verdicts(report: Report) -> Iterator[tuple[Total, str]]:
    """The verdict on each total, in words too where one of several is unknown."""
    every = totals(report)
    batches = asking_for_a_batch(report)
    for total in every:
        if text := verdict(total, asks_for_a_batch=total.gpu in batches):
            yield total, text
        elif len(every) > 1:
            yield total, say("time per {step} unknown", step=step(total.mode))


def asking_for_a_batch(report: Report) -> frozenset[str | None]:
    """The targets on which a warning asks for another batch."""
    return frozenset(
        finding.gpu
        for finding in report.findings
        if finding.severity == "warning" and finding.fix is not None and "N" in finding.fix.set
    )


def verdict(total: Total, *, asks_for_a_batch: bool = False) -> str:
    """`45.7 ms of convolutions per training step, grade B; 38.0 ms with all of it`; empty where the time is unknown."""
    times = total.times
    if times is None:
        return ""
    now = say(
        "{time} of convolutions per {step}, grade {grade}",
        time=duration(times.time_us),
        step=step(total.mode),
        grade=times.grade,
    )
    after, is_saving = outcome(times)
    if not after:
        but = say("no fix is advised but another batch") if asks_for_a_batch else say("no fix is advised")
        return say("{now}; {then}", now=now, then=but)
    less = say("{time} less with all of it", time=after) if is_saving else say("{time} with all of it", time=after)
    return say("{now}; {then}", now=now, then=less + (say(" but another batch") if asks_for_a_batch else ""))


def outcome(times: LayerTimes) -> tuple[str, bool]:
    """The time with all advice taken; where that reads as the time now, what is saved, and True; empty without advice.

    All advice is every advised fix of a layer. Another batch is no part of it: its gain is one per image.
    """
    if times.time_us - times.after_us < NOTHING_US:
        return "", False
    after = duration(times.after_us)
    if after == duration(times.time_us):
        return duration(times.time_us - times.after_us), True
    return after, False
