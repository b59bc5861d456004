"""Timing loops: how long one call takes on a device that works on its own, or on the processor at hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median, quantiles
from typing import Any, Protocol

import torch

from convlint.measuring.protocol import Timing

LEAST_BLOCKS = 5  # of which the median is taken
MOST_BLOCKS = 50
BLOCK_S = 0.002  # that the calls of one block take at least, so that the ends of it do not count
MOST_CALLS = 200  # in one block
WARM_UP_S = 0.02
WARM_UP_CALLS = 3  # the first one chooses an algorithm, and loads it


class Clock(Protocol):
    """Times a row of calls."""

    def block(self, calls: Sequence[Callable[[], Any]]) -> float:
        """The seconds that they take, one after the other."""
        ...


class Stopwatch:
    """For calls that are over when they return."""

    def block(self, calls: Sequence[Callable[[], Any]]) -> float:
        """The seconds that they take."""
        begin = time.perf_counter()
        for call in calls:
            call()
        return time.perf_counter() - begin


class EventTimer:
    """For calls that only start the GPU's work; what the host needs to start them is not counted.

    The GPU is kept waiting until all of them are started: else short kernels would be timed at the host's pace.
    """

    _CYCLES_PER_S = 3.0e9  # no GPU of today ticks faster
    _MOST_WAIT_S = 0.02

    def __init__(self) -> None:
        self._host_s = 0.0  # for one call

    def block(self, calls: Sequence[Callable[[], Any]]) -> float:
        """The seconds between two events around them."""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        wait_s = min(1.5 * self._host_s * len(calls), self._MOST_WAIT_S)
        torch.cuda._sleep(int(wait_s * self._CYCLES_PER_S))
        start.record()
        begin = time.perf_counter()
        for call in calls:
            call()
        self._host_s = (time.perf_counter() - begin) / len(calls)
        end.record()
        end.synchronize()
        elapsed_ms: float = start.elapsed_time(end)
        return elapsed_ms / 1e3


def timed(calls: Sequence[Callable[[], Any]], clock: Clock, seconds: float) -> Timing:
    """The time of one call, measured for about `seconds`, and for LEAST_BLOCKS blocks in any case."""
    turn = 0

    def block(count: int) -> float:
        nonlocal turn
        row = [calls[(turn + number) % len(calls)] for number in range(count)]
        turn += count
        return clock.block(row) / count

    begin = time.perf_counter()
    each = block(1)
    for _ in range(WARM_UP_CALLS):
        each = min(each, block(1))
    while time.perf_counter() - begin < WARM_UP_S:
        each = min(each, block(1))
    count = max(1, min(MOST_CALLS, int(BLOCK_S / each) if each > 0 else MOST_CALLS))
    found: list[float] = []
    begin = time.perf_counter()
    while len(found) < LEAST_BLOCKS or (len(found) < MOST_BLOCKS and time.perf_counter() - begin < seconds):
        found.append(block(count) * 1e6)
    low, middle, high = quantiles(found, n=4)
    return Timing(us=median(found), spread=(high - low) / middle if middle > 0 else 0.0, runs=len(found))
