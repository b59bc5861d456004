"""One measurement: the child process that times, the rows that it yields, and the workloads that fail."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from convlint.gpus.devices import Device, Kind
from convlint.gpus.gpu import Gpu
from convlint.measuring.rows import CallTiming, Order, TimingAnswer, TimingRow, answer_of, encode
from convlint.measuring.workload import Workload, why_not, workloads
from convlint.model.errors import ConvlintError
from convlint.model.layer import ConvLayer
from convlint.model.runtime import Runtime
from convlint.readers.children.child import Child, ChildDied

START_S = 300.0  # to load PyTorch from a slow disk
WORKLOAD_S = 120.0  # for one workload


class NoDevice(ConvlintError):
    """There is nothing to time on; says why."""


class Bench:
    """Times workloads on one device. A context manager, which ends the child."""

    def __init__(self, kind: Kind) -> None:
        """Raises NoDevice."""
        self._kind = kind
        self._child: Child | None = None
        answer = self._asked(Order(device=kind), START_S)
        if answer.device is None:
            self.close()
            raise NoDevice(answer.error)
        self.device: Device = answer.device

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def time(self, workload: Workload, seconds: float) -> TimingAnswer:
        """The timing of a workload, or the error."""
        return self._asked(Order(device=self._kind, workload=workload, seconds=seconds), WORKLOAD_S)

    def close(self) -> None:
        """Ends the child."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def _asked(self, order: Order, timeout_s: float) -> TimingAnswer:
        try:
            if self._child is None:
                self._child = Child("convlint.measuring.bench:work")
                timeout_s = max(timeout_s, START_S)
            answer = answer_of(self._child.ask(encode(order), timeout_s))
        except ChildDied as died:
            self.close()
            return TimingAnswer(error=_ending(died, timeout_s), fatal=True)
        if answer.fatal:
            self.close()
        return answer


def _ending(died: ChildDied, timeout_s: float) -> str:
    if died.timed_out:
        return f"it took more than {timeout_s:.0f} s"
    if died.signal_name is not None:
        more = "; the machine may be out of memory" if died.signal_name == "SIGKILL" else ""
        return f"the process that timed it was ended by {died.signal_name}{more}"
    last = died.tail.strip().rpartition("\n")[2]
    return f"the process that timed it ended{f': {last}' if last else ''}"


MOST_FATAL = 5  # in a row: then the device is of no use any more
_MOST_OTHER = 0.1  # of a pass, in kernels of which nobody can tell which pass they belong to
EACH_S = 0.12  # for the blocks of one workload, after it is warm: a median of 50 short ones, or of fewer long ones


class RecordedTimer:
    """The timings that a trace recorded, in the place of a device; there are no others."""

    def __init__(self, device: Device, layers: Iterable[ConvLayer], gpu: Gpu, runtime: Runtime) -> None:
        """`gpu` is the one that ran them; `runtime` says what a trace does not: whether algorithms were searched."""
        self.device = device
        self.timings: dict[Workload, CallTiming] = {}
        for layer in layers:
            if layer.measured is None or layer.layout == "auto" or why_not(layer):
                continue
            for which, measured in layer.measured.passes:
                us = measured.us - measured.bias  # kernels of its own, which a timing of the convolution leaves out
                if us > 0 and measured.other <= _MOST_OTHER * us:
                    timing = CallTiming(us=us, spread=measured.spread, runs=measured.calls)
                    self.timings.update(dict.fromkeys(workloads(layer, which, gpu, runtime), timing))

    def time(self, workload: Workload, _seconds: float) -> TimingAnswer:
        """The timing of that workload."""
        timing = self.timings.get(workload)
        return TimingAnswer(timing=timing, error="" if timing is not None else "the trace has no timing of it alone")


Timer = Bench | RecordedTimer


class TimedSession(NamedTuple):
    """The rows of timed workloads, and the errors of failed ones; those in neither were not reached in time."""

    rows: Mapping[Workload, TimingRow]
    failed: Mapping[Workload, str]


def timed(
    wanted: Iterable[Workload],
    timer: Timer,
    gpu: str,
    known: Mapping[Workload, TimingRow],
    keep: Callable[[TimingRow], None],
    done: Callable[[Workload], None] = lambda _: None,
    limit_s: float | None = None,
    each_s: float = EACH_S,
    now: Callable[[], float] = time.monotonic,
) -> TimedSession:
    """Times what is not `known`; each new row is handed to `keep` at once, so that an interrupt loses none.

    `gpu` is the name that rows get. After `limit_s` no other workload is begun; each takes about `each_s` once it is
    warm.
    """
    rows: dict[Workload, TimingRow] = {}
    failed: dict[Workload, str] = {}
    begin, device, fatal = now(), timer.device, 0
    for workload in dict.fromkeys(wanted):
        if workload in known:
            rows[workload] = known[workload]
        elif fatal == MOST_FATAL:
            failed[workload] = f"not begun, since timing failed {MOST_FATAL} times in a row"
        elif limit_s is None or now() - begin < limit_s:
            answer = timer.time(workload, each_s)
            fatal = fatal + 1 if answer.fatal else 0
            if answer.timing is None:
                failed[workload] = answer.error
            else:
                rows[workload] = row = TimingRow(
                    workload=workload, timing=answer.timing, gpu=gpu, device=device.name,
                    framework_version=device.framework_version, cudnn=device.cudnn, cuda=device.cuda,
                    clock=answer.clock,
                )  # fmt: skip
                keep(row)
        done(workload)
    return TimedSession(rows, failed)
