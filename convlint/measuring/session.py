"""Timing many workloads: each once, as long as there is time, and none that is known already."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from convlint.measuring.device import Device
from convlint.measuring.protocol import Answer
from convlint.measuring.rows import Row
from convlint.measuring.workload import Workload

MOST_FATAL = 5  # in a row: then the device is of no use any more
EACH_S = 0.12  # for the blocks of one workload, after it is warm: a median of 50 short ones, or of fewer long ones


class Timer(Protocol):
    """What times: a `Bench`."""

    device: Device

    def time(self, workload: Workload, seconds: float) -> Answer:
        """A timing, or what came of it instead."""
        ...


class Timed(NamedTuple):
    """What came of all workloads: those in neither were not reached in time."""

    rows: Mapping[Workload, Row]
    failed: Mapping[Workload, str]


def timed(
    workloads: Iterable[Workload],
    timer: Timer,
    gpu: str,
    known: Mapping[Workload, Row],
    keep: Callable[[Row], None],
    done: Callable[[Workload], None] = lambda _: None,
    limit_s: float | None = None,
    now: Callable[[], float] = time.monotonic,
) -> Timed:
    """Times what is not `known`; each new row is handed to `keep` at once, so that an interrupt loses none.

    `gpu` is the name that rows get. After `limit_s` no other workload is begun.
    """
    rows: dict[Workload, Row] = {}
    failed: dict[Workload, str] = {}
    begin, device, fatal = now(), timer.device, 0
    for workload in dict.fromkeys(workloads):
        if workload in known:
            rows[workload] = known[workload]
        elif fatal == MOST_FATAL:
            failed[workload] = f"not begun, since timing failed {MOST_FATAL} times in a row"
        elif limit_s is None or now() - begin < limit_s:
            answer = timer.time(workload, EACH_S)
            fatal = fatal + 1 if answer.fatal else 0
            if answer.timing is None:
                failed[workload] = answer.error
            else:
                rows[workload] = row = Row(
                    workload=workload, timing=answer.timing, gpu=gpu, device=device.name,
                    framework_version=device.framework_version, cudnn=device.cudnn, cuda=device.cuda,
                    clock=answer.clock,
                )  # fmt: skip
                keep(row)
        done(workload)
    return Timed(rows, failed)
