"""The calls of PyTorch by which a workload is timed, their tensors, and the timer of a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from convlint.measuring.workload import Workload, layer_of
from convlint.model.layer import Dtype

Call = Callable[[], Any]
MOST_SETS = 200  # of tensors: small layers would fill a large cache with thousands, which take long to make
_DTYPES = {
    Dtype.fp64: torch.float64, Dtype.fp32: torch.float32, Dtype.tf32: torch.float32,
    Dtype.fp16: torch.float16, Dtype.bf16: torch.bfloat16,
}  # fmt: skip


class Shapes:
    """The tensors of one convolution: two spatial dimensions, or three."""

    def __init__(self, workload: Workload) -> None:
        self.volume = workload.dims == 3
        first = 0 if self.volume else 1
        layer = layer_of(workload)
        self.stride, self.pad = workload.stride[first:], workload.pad[first:]
        self.dilation, self.output_padding = workload.dilation[first:], workload.output_padding[first:]
        self.x = (workload.N, workload.C, *(workload.D, workload.H, workload.W)[first:])
        self.y = (workload.N, workload.K, *(size or 0 for size in (layer.Z, layer.P, layer.Q)[first:]))
        into, outof = (workload.C, workload.K) if layer.op == "conv_transpose" else (workload.K, workload.C)
        self.w = (into, outof // workload.groups, *(workload.T, workload.R, workload.S)[first:])


class WorkloadTensors:
    """The tensors of one call; several sets are rotated, so that none lies in the cache from the call before.

    `bytes` counts what the pass reads. A tensor of which it needs the shape alone is that of `other`, if there is one.
    """

    def __init__(self, workload: Workload, shapes: Shapes, device: str, other: WorkloadTensors | None = None) -> None:
        last = torch.channels_last_3d if shapes.volume else torch.channels_last
        dtype, which = _DTYPES[workload.precision], workload.which
        self.bytes = 0

        def make(shape: tuple[int, ...], order: str, before: torch.Tensor | None, *, is_read: bool) -> torch.Tensor:
            if before is not None and not is_read:
                return before
            # Strides are given explicitly: of 1x1 filters, or one channel, `contiguous` takes either order for both.
            order_of = last if order == "NHWC" else torch.contiguous_format
            tensor = torch.empty(shape, dtype=dtype, device=device, memory_format=order_of)
            self.bytes += tensor.nbytes if is_read else 0
            # Random numbers: multiplying zeros takes less power, so that the clock is higher than in a network.
            return tensor.normal_()

        x: torch.Tensor | None = None if other is None else other.x
        w: torch.Tensor | None = None if other is None else other.w
        self.x: torch.Tensor = make(shapes.x, workload.arrives, x, is_read=which != "dgrad")
        self.w: torch.Tensor = make(shapes.w, workload.layout, w, is_read=which != "wgrad")
        self.gradient = make(shapes.y, workload.layout, None, is_read=True) if which != "fprop" else None


def calls(workload: Workload, device: str, *, cache_bytes: int, free_bytes: int) -> list[Call]:
    """One call for each set of tensors, so many that what they read is twice the cache, as far as memory allows.

    Raises whatever PyTorch raises where it cannot.
    """
    shapes = Shapes(workload)
    first = WorkloadTensors(workload, shapes, device)
    count = min(-(-2 * cache_bytes // first.bytes), free_bytes // 4 // first.bytes, MOST_SETS)
    rest = [WorkloadTensors(workload, shapes, device, first) for _ in range(count - 1)]
    return [_call(workload, shapes, tensors) for tensors in (first, *rest)]


def _call(workload: Workload, shapes: Shapes, tensors: WorkloadTensors) -> Call:
    transposed = workload.op == "conv_transpose"
    geometry = (
        list(shapes.stride), list(shapes.pad), list(shapes.dilation), transposed, list(shapes.output_padding),
        workload.groups,
    )  # fmt: skip
    if workload.which == "fprop":
        return lambda: torch.convolution(tensors.x, tensors.w, None, *geometry)
    output_mask = [workload.which == "dgrad", workload.which == "wgrad", False]
    backward = torch.ops.aten.convolution_backward
    return lambda: backward(tensors.gradient, tensors.x, tensors.w, None, *geometry, output_mask)


class EventTimer:
    """For calls that only start the GPU's work; what the host needs to start them is not counted.

    The GPU is kept waiting until all of them are started: else short kernels would be timed at the host's pace.
    """

    _CYCLES_PER_S = 3.0e9  # no GPU of today ticks faster
    _MOST_WAIT_S = 0.02

    def __init__(self) -> None:
        self._host_s = 0.0  # for one call

    def block(self, calls: Sequence[Callable[[], Any]]) -> float:
        """The seconds between two events around the calls."""
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
