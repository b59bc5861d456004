"""What the child answers, in this process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from convolutions import conv
from measured import work
from msgspec.structs import replace

from convlint.measuring import bench
from convlint.measuring.bench import LEAST_BLOCKS, MOST_BLOCKS, MOST_CALLS, WARM_UP_CALLS, by_stopwatch, timed
from convlint.measuring.calls import EventTimer
from convlint.measuring.rows import Order, TimingAnswer, answer_of, encode
from convlint.model.layer import Dtype


class Pretended:
    """A machine on which each block takes the next of `seconds` for every call, the last of them for ever."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *seconds: float) -> None:
        self.now, self.seconds, self.blocks = 0.0, list(seconds), list[int]()
        monkeypatch.setattr(bench.time, "perf_counter", lambda: self.now)

    def block(self, calls: Sequence[Callable[[], Any]]) -> float:
        for call in calls:
            call()
        each = self.seconds.pop(0) if len(self.seconds) > 1 else self.seconds[0]
        self.now += each * len(calls)
        self.blocks.append(len(calls))
        return each * len(calls)


def test_the_first_calls_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Pretended(monkeypatch, 5.0, 0.5, 0.5, 0.010)
    found = timed([lambda: None], machine.block, seconds=0.1)
    assert found.us == pytest.approx(10_000)
    assert found.spread == pytest.approx(0)
    assert 10 <= found.runs <= 11
    assert machine.blocks[: 1 + WARM_UP_CALLS] == [1, 1, 1, 1]


def test_short_calls_are_timed_many_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Pretended(monkeypatch, 20e-6)
    found = timed([lambda: None], machine.block, seconds=10.0)
    assert found.us == pytest.approx(20)
    assert found.runs == MOST_BLOCKS
    assert set(machine.blocks[-MOST_BLOCKS:]) == {100}
    machine = Pretended(monkeypatch, 1e-7)
    timed([lambda: None], machine.block, seconds=1.0)
    assert machine.blocks[-1] == MOST_CALLS


def test_long_calls_are_timed_a_few_times_whatever_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Pretended(monkeypatch, 3.0)
    assert timed([lambda: None], machine.block, seconds=0.1).runs == LEAST_BLOCKS


def test_the_median_is_told_with_the_width_of_the_middle_half(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Pretended(monkeypatch, 1.0, 1.0, 1.0, 1.0, 8.0, 10.0, 12.0, 10.0, 100.0)
    found = timed([lambda: None], machine.block, seconds=0.0)
    assert (found.us, found.runs) == (10e6, 5)
    assert found.spread == pytest.approx((56.0 - 9.0) / 10.0)


def test_sets_of_tensors_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Pretended(monkeypatch, 0.001)
    turns: list[int] = []
    timed([lambda number=number: turns.append(number) for number in range(3)], machine.block, seconds=0.05)  # type: ignore[misc]
    assert turns == [number % 3 for number in range(len(turns))]
    assert len(turns) > 50


def test_a_stopwatch_runs_all_calls() -> None:
    turns: list[int] = []
    assert by_stopwatch([lambda: turns.append(1)] * 3) > 0
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
    monkeypatch.setattr(bench.time, "perf_counter", lambda: next(now))
    timer = EventTimer()
    calls = [lambda: done.append("call")] * 2
    assert [timer.block(calls) for _ in range(4)] == [0.006] * 4
    blocks = " ".join(done).split("synchronize ")[1:]
    rest = "event call call event wait for the end"
    # the host needs 1 ms for each call, so that the next two take it 3 ms with some to spare; never more than 20 ms
    assert [block.strip() for block in blocks] == [
        f"sleep 0.0 ms {rest}", f"sleep 3.0 ms {rest}", f"sleep 3.0 ms {rest}", f"sleep 20.0 ms {rest}",
    ]  # fmt: skip


SMALL = work(conv(N=1, C=4, H=6, W=6, K=4, dtype=Dtype.fp32), "fprop")


class Asked:
    """A channel on which these orders come."""

    def __init__(self, *orders: Order) -> None:
        self._orders, self.answers = list(orders), list[TimingAnswer]()

    def receive(self) -> bytes | None:
        return encode(self._orders.pop(0)) if self._orders else None

    def send(self, content: bytes) -> None:
        self.answers.append(answer_of(content))


def answers(*orders: Order) -> list[TimingAnswer]:
    channel: Any = Asked(*orders)
    bench.work(channel)
    return channel.answers


def test_the_device_and_a_timing() -> None:
    device, timing = answers(Order(device="cpu"), Order(device="cpu", workload=SMALL, seconds=0.01))
    assert (device.device.kind, device.device.framework_version) == ("cpu", torch.__version__)
    assert timing.timing.us > 0
    assert timing.timing.runs >= 5
    assert timing.clock == 0


def test_a_kernel_that_fails_is_an_answer_and_the_next_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    too_large = work(conv(N=1 << 20, C=1 << 20, H=1 << 10, W=1 << 10, dtype=Dtype.fp32), "fprop")
    failed, fine = answers(*(Order(device="cpu", workload=each, seconds=0.01) for each in (too_large, SMALL)))
    assert failed.timing is None
    assert failed.error
    assert "\n" not in failed.error
    assert not failed.fatal
    assert fine.timing is not None

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered\nmore of it")

    monkeypatch.setattr(torch, "convolution", broken)
    (fatal,) = answers(Order(device="cpu", workload=SMALL, seconds=0.01))
    assert (fatal.error, fatal.fatal) == ("CUDA error: an illegal memory access was encountered", True)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so() -> None:
    (answer,) = answers(Order(device="cuda"))
    assert answer.device is None
    assert "no CUDA device" in answer.error
    assert "--device cpu" in answer.error


def test_the_command_line_and_the_child_start_without_pytorch() -> None:
    modules = "convlint.cli.commands.measure, convlint.reporters.measurements, convlint.measuring.bench"
    code = f"import sys; sys.modules['torch'] = None; import {modules}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_pytorch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    (answer,) = answers(Order(device="cpu"))
    assert answer.error.startswith("timing needs PyTorch 2.4 or later, in a build for your GPU")


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, ""), (7605, "7.6.5"), (8902, "8.9.2"), (90100, "9.1.0"), (91002, "9.10.2")],
)
def test_cudnn_counts_in_another_way_since_9(number: int, text: str) -> None:
    assert bench._cudnn(number) == text


def test_settings_of_cudnn_hold_while_it_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[bool, bool, bool]] = []
    real = torch.convolution
    cudnn = torch.backends.cudnn

    def noted(*arguments: Any) -> torch.Tensor:
        seen.append((cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32))
        return real(*arguments)

    monkeypatch.setattr(torch, "convolution", noted)
    tuned = replace(SMALL, benchmark=True, deterministic=True, precision=Dtype.fp32)
    for workload in (SMALL, tuned):
        answers(Order(device="cpu", workload=workload, seconds=0.001))
    assert set(seen) == {(False, False, True), (True, True, False)}
    assert SMALL.precision == Dtype.tf32
