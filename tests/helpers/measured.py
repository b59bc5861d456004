"""Timings in the form that a device gives them, without a device."""

from __future__ import annotations

from collections.abc import Callable

from convolutions import conv

from convlint.gpus.devices import Device
from convlint.gpus.gpu import load_gpu
from convlint.measuring.rows import CallTiming, TimingAnswer, TimingRow
from convlint.measuring.workload import Workload, layer_of, runtime_of, workloads
from convlint.model.layer import ConvLayer, Dtype, Pass
from convlint.model.runtime import Runtime

DEVICE = Device(
    kind="cuda", name="NVIDIA A100-SXM4-40GB", framework_version="2.11.0", cudnn="9.10.2", cuda="12.8",
    compute_capability="8.0", sms=108, memory_bytes=42 << 30,
)  # fmt: skip


def work(layer: ConvLayer | None = None, which: Pass = "dgrad") -> Workload:
    """One pass of a layer on an A100."""
    if layer is None:
        layer = conv(N=8, C=64, H=28, W=28, K=96, R=3, S=3, dtype=Dtype.fp16, layout="NHWC")
    return next(workloads(layer, which, load_gpu("a100"), Runtime()))


def row(layer: ConvLayer | None = None, us: float = 123.4, spread: float = 0.02, runs: int = 20) -> TimingRow:
    """Its timing."""
    return row_of(work(layer), us, spread, runs)


def row_of(workload: Workload, us: float, spread: float = 0.0, runs: int = 20) -> TimingRow:
    """A timing of this."""
    return TimingRow(
        workload=workload, timing=CallTiming(us=us, spread=spread, runs=runs), gpu="a100-40gb-sxm", device=DEVICE.name,
        framework_version=DEVICE.framework_version, cudnn=DEVICE.cudnn, cuda=DEVICE.cuda, clock=1410,
    )  # fmt: skip


class Pretender:
    """Times by a function, and remembers what it was asked for; it stands in for a `Bench` of its own making."""

    def __init__(self, times: Callable[[Workload], float | str]) -> None:
        self.device, self.asked, self._times = DEVICE, list[Workload](), times

    def time(self, workload: Workload, seconds: float) -> TimingAnswer:
        assert seconds > 0
        self.asked.append(workload)
        found = self._times(workload)
        if isinstance(found, str):
            return TimingAnswer(error=found)
        return TimingAnswer(timing=CallTiming(us=found, spread=0.01, runs=25), clock=1410)

    def __call__(self, kind: str) -> Pretender:
        assert kind == "cuda"
        return self

    def __enter__(self) -> Pretender:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def predicted_us(workload: Workload, gpu: str = "a100") -> float:
    """What the cost model says of it."""
    from convlint.estimate import estimate_pass

    found = estimate_pass(layer_of(workload), workload.which, load_gpu(gpu), runtime_of(workload))
    return found.time_us
