"""The child process that times workloads on the user's device.

PyTorch is imported where it is used: a child without it answers with what to install.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

from convlint.gpus.devices import Device, Kind
from convlint.measuring.rows import CallTiming, Order, TimingAnswer, encode, order_of

if TYPE_CHECKING:
    from convlint.measuring.workload import Workload
    from convlint.readers.children.child import Channel


LEAST_BLOCKS = 5  # of which the median is taken
MOST_BLOCKS = 50
BLOCK_S = 0.002  # that the calls of one block take at least, so that the ends of it do not count
MOST_CALLS = 200  # in one block
WARM_UP_S = 0.02
WARM_UP_CALLS = 3  # the first one chooses an algorithm, and loads it


Calls = Sequence[Callable[[], Any]]


def by_stopwatch(calls: Calls) -> float:
    """The seconds that calls take, one after the other, which are over when they return."""
    begin = time.perf_counter()
    for call in calls:
        call()
    return time.perf_counter() - begin


def timed(calls: Calls, clock: Callable[[Calls], float], seconds: float) -> CallTiming:
    """The time of one call, measured for about `seconds`, and for LEAST_BLOCKS blocks in any case.

    `clock` returns the seconds that a list of calls takes.
    """
    turn = 0

    def block(count: int) -> float:
        nonlocal turn
        row = [calls[(turn + number) % len(calls)] for number in range(count)]
        turn += count
        return clock(row) / count

    begin = time.perf_counter()
    call_s = block(1)
    for _ in range(WARM_UP_CALLS):
        call_s = min(call_s, block(1))
    while time.perf_counter() - begin < WARM_UP_S:
        call_s = min(call_s, block(1))
    count = max(1, min(MOST_CALLS, int(BLOCK_S / call_s) if call_s > 0 else MOST_CALLS))
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < LEAST_BLOCKS or (len(times) < MOST_BLOCKS and time.perf_counter() - begin < seconds):
        times.append(block(count) * 1e6)
    low, middle, high = quantiles(times, n=4)
    return CallTiming(us=median(times), spread=(high - low) / middle if middle > 0 else 0.0, runs=len(times))


_NEEDS_TORCH = (
    "timing needs PyTorch 2.4 or later, in a build for your GPU, as https://pytorch.org/get-started names them"
)
_CPU_CACHE_BYTES = 2 << 20  # of one core
_CPU_FREE_BYTES = 1 << 30
_FATAL = ("CUDA error", "CUDNN_STATUS_EXECUTION_FAILED", "CUDNN_STATUS_INTERNAL_ERROR")  # no kernel runs after them
_WARM_S = 0.5  # until clocks are what they are under load


def work(channel: Channel) -> None:
    """Answers each order."""
    while (request := channel.receive()) is not None:
        channel.send(encode(_answer(order_of(request))))


def _answer(order: Order) -> TimingAnswer:
    try:
        if sys.modules.get("torch") is None:
            import torch  # noqa: F401

            gc.freeze()  # what PyTorch consists of stays: to look through it takes as long as a timing
    except ImportError:
        return TimingAnswer(error=_NEEDS_TORCH, fatal=True)
    try:
        if order.workload is None:
            return _described(order.device)
        return TimingAnswer(timing=_timed(order.workload, order.device, order.seconds), clock=_clock_mhz(order.device))
    except Exception as error:  # whatever a kernel ends in, the others are still to be timed
        line = str(error).strip().partition("\n")[0][:300]
        return TimingAnswer(error=line or type(error).__name__, fatal=any(word in str(error) for word in _FATAL))
    finally:
        _forget(order.device)


def _described(kind: Kind) -> TimingAnswer:
    import platform

    import torch

    if kind == "cpu":
        name = platform.processor() or platform.machine()
        return TimingAnswer(device=Device(kind=kind, name=name, framework_version=str(torch.__version__)))
    if not torch.cuda.is_available():
        return TimingAnswer(
            error="PyTorch finds no CUDA device; run it where the GPU is, or try --device cpu", fatal=True
        )
    properties = torch.cuda.get_device_properties(0)
    _warm_up()
    number = torch.backends.cudnn.version() or 0
    return TimingAnswer(
        device=Device(
            kind=kind, name=properties.name, framework_version=str(torch.__version__), cudnn=_cudnn(number),
            cuda=torch.version.cuda or "", compute_capability=f"{properties.major}.{properties.minor}",
            sms=properties.multi_processor_count, memory_bytes=properties.total_memory,
        )
    )  # fmt: skip


def _warm_up() -> None:
    import torch

    side = torch.randn(2048, 2048, device="cuda")
    begin = time.perf_counter()
    while time.perf_counter() - begin < _WARM_S:
        for _ in range(10):
            side @ side
        torch.cuda.synchronize()


def _cudnn(number: int) -> str:
    """8.9.2 of 8902, 9.10.2 of 91002: thousands before cuDNN 9, ten thousands since (cudnn_version.h)."""
    if not number:
        return ""
    major, rest = divmod(number, 10_000 if number >= 90_000 else 1_000)
    return f"{major}.{rest // 100}.{rest % 100}"


def _timed(workload: Workload, kind: Kind, seconds: float) -> CallTiming:
    import torch

    from convlint.measuring.calls import EventTimer, calls
    from convlint.model.layer import Dtype

    if kind == "cpu":
        torch.set_num_threads(1)  # several would wait for each other where others work too
        cache, free = _CPU_CACHE_BYTES, _CPU_FREE_BYTES
    else:
        cache, free = torch.cuda.get_device_properties(0).L2_cache_size, torch.cuda.mem_get_info()[0]
    flags = torch.backends.cudnn.flags(
        enabled=True, benchmark=workload.benchmark, deterministic=workload.deterministic,
        allow_tf32=workload.precision == Dtype.tf32,
    )  # fmt: skip
    with torch.inference_mode(), flags:
        row = calls(workload, kind, cache_bytes=cache, free_bytes=free)
        return timed(row, EventTimer().block if kind == "cuda" else by_stopwatch, seconds)


def _clock_mhz(kind: Kind) -> int:
    if kind == "cuda":
        import torch

        with suppress(Exception):  # it asks NVML, by a package that PyTorch does not bring, and not every GPU answers
            return int(torch.cuda.clock_rate())
    return 0


def _forget(kind: Kind) -> None:
    gc.collect()
    if kind == "cuda":
        import torch

        with suppress(RuntimeError):
            torch.cuda.empty_cache()
