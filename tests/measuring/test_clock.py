"""The timing loop, with a clock whose calls take as long as they say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from convlint.measuring import clock
from convlint.measuring.clock import LEAST_BLOCKS, MOST_BLOCKS, MOST_CALLS, WARM_UP_CALLS, EventTimer, Stopwatch, timed


class Pretended:
    """A machine on which each block takes the next of `seconds` for every call, the last of them for ever."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *seconds: float) -> None:
        self.now, self.seconds, self.blocks = 0.0, list(seconds), list[int]()
        monkeypatch.setattr(clock.time, "perf_counter", lambda: self.now)

    def block(self, calls: Sequence[Callable[[], Any]]) -> float:
        for call in calls:
            call()
        each = self.seconds.pop(0) if len(self.seconds) > 1 else self.seconds[0]
        self.now += each * len(calls)
        self.blocks.append(len(calls))
        return each * len(calls)


def test_the_first_calls_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Pretended(monkeypatch, 5.0, 0.5, 0.5, 0.010)
    found = timed([lambda: None], machine, seconds=0.1)
    assert found.us == pytest.approx(10_000)
    assert found.spread == pytest.approx(0)
    assert 10 <= found.runs <= 11
    assert machine.blocks[: 1 + WARM_UP_CALLS] == [1, 1, 1, 1]


def test_short_calls_are_timed_many_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Pretended(monkeypatch, 20e-6)
    found = timed([lambda: None], machine, seconds=10.0)
    assert found.us == pytest.approx(20)
    assert found.runs == MOST_BLOCKS
    assert set(machine.blocks[-MOST_BLOCKS:]) == {100}
    machine = Pretended(monkeypatch, 1e-7)
    timed([lambda: None], machine, seconds=1.0)
    assert machine.blocks[-1] == MOST_CALLS


def test_long_calls_are_timed_a_few_times_whatever_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Pretended(monkeypatch, 3.0)
    assert timed([lambda: None], machine, seconds=0.1).runs == LEAST_BLOCKS


def test_the_median_is_told_with_the_width_of_the_middle_half(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Pretended(monkeypatch, 1.0, 1.0, 1.0, 1.0, 8.0, 10.0, 12.0, 10.0, 100.0)
    found = timed([lambda: None], machine, seconds=0.0)
    assert (found.us, found.runs) == (10e6, 5)
    assert found.spread == pytest.approx((56.0 - 9.0) / 10.0)


def test_sets_of_tensors_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Pretended(monkeypatch, 0.001)
    turns: list[int] = []
    timed([lambda number=number: turns.append(number) for number in range(3)], machine, seconds=0.05)  # type: ignore[misc]
    assert turns == [number % 3 for number in range(len(turns))]
    assert len(turns) > 50


def test_a_stopwatch_runs_all_calls() -> None:
    turns: list[int] = []
    assert Stopwatch().block([lambda: turns.append(1)] * 3) > 0
    assert turns == [1, 1, 1]


def test_a_gpu_is_kept_waiting_until_all_calls_of_a_block_are_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    class Event:
        def __init__(self, *, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            done.append("event")

        def synchronize(self) -> None:
            done.append("wait for the end")

        def elapsed_time(self, end: Event) -> float:
            assert end is not self
            return 6.0  # ms

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: done.append("synchronize"))
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: done.append(f"sleep {cycles / 3e9 * 1e3:.1f} ms"))
    now = iter((0.0, 0.002, 10.0, 10.002, 20.0, 29.0, 30.0, 30.1))
    monkeypatch.setattr(clock.time, "perf_counter", lambda: next(now))
    timer = EventTimer()
    calls = [lambda: done.append("call")] * 2
    assert [timer.block(calls) for _ in range(4)] == [0.006] * 4
    blocks = " ".join(done).split("synchronize ")[1:]
    rest = "event call call event wait for the end"
    # the host needs 1 ms for each call, so that the next two take it 3 ms with some to spare; never more than 20 ms
    assert [block.strip() for block in blocks] == [
        f"sleep 0.0 ms {rest}", f"sleep 3.0 ms {rest}", f"sleep 3.0 ms {rest}", f"sleep 20.0 ms {rest}",
    ]  # fmt: skip
