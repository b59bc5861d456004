"""The calls of PyTorch that are timed: their tensors, their layouts, and how many sets of tensors are rotated."""

import pytest
import torch
from msgspec.structs import replace

from convlint.gpus.gpu import load_gpu
from convlint.measuring import calls as timed_calls
from convlint.measuring.calls import Shapes, WorkloadTensors, calls
from convlint.measuring.workload import (
    Workload,
    workloads,
)
from convlint.model.layer import PASSES, ConvLayer, Dtype, Pass, with_output
from convlint.model.runtime import Runtime

A100, T4 = load_gpu("a100"), load_gpu("t4")

PLAIN = ConvLayer(
    name="a", N=2, C=4, H=9, W=7, K=6, R=3, S=2, PadH=1, PadH_end=1, PadW=1, PadW_end=1, U=2, V=1,
    dtype=Dtype.fp64, layout="NCHW",
)  # fmt: skip
LAYERS = {
    "plain": PLAIN,
    "nhwc": replace(PLAIN, layout="NHWC"),
    "copied": replace(PLAIN, layout="NHWC", copies_input=True),
    "depthwise": replace(PLAIN, K=4, groups=4),
    "grouped": replace(PLAIN, groups=2),
    "dilated": replace(PLAIN, DilH=2, DilW=2),
    "line": replace(PLAIN, dims=1, H=1, R=1, PadH=0, PadH_end=0, U=1),
    "transposed": replace(PLAIN, op="conv_transpose", OutPadH=1),
    "grouped transposed": replace(PLAIN, op="conv_transpose", groups=2),
    "volume": replace(PLAIN, dims=3, D=5, T=2, StrideD=2, PadD=1, PadD_end=1, layout="NHWC"),
}


def workload_of(layer: ConvLayer, which: Pass) -> Workload:
    return next(workloads(with_output(layer), which, load_gpu("a100"), Runtime()))


@pytest.mark.parametrize("which", PASSES)
@pytest.mark.parametrize("name", LAYERS)
def test_each_pass_is_what_autograd_makes_of_it(name: str, which: Pass, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, made = LAYERS[name], []

    class Kept(WorkloadTensors):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)  # type: ignore[arg-type]
            made.append(self)

    monkeypatch.setattr(timed_calls, "WorkloadTensors", Kept)
    work = workload_of(layer, which)
    (call,) = calls(work, "cpu", cache_bytes=0, free_bytes=1 << 20)
    found = call()
    (given,), shapes = made, Shapes(work)
    x, w = given.x.clone().requires_grad_(), given.w.clone().requires_grad_()
    y = torch.convolution(
        x, w, None, shapes.stride, shapes.pad, shapes.dilation, layer.op == "conv_transpose", shapes.output_padding,
        layer.groups,
    )  # fmt: skip
    full = with_output(layer)
    sizes = (full.Z, full.P, full.Q)[0 if layer.dims == 3 else 1 :]
    assert tuple(y.shape) == shapes.y == (layer.N, layer.K, *sizes)
    if which == "fprop":
        assert torch.equal(found, y.detach())
        return
    y.backward(given.gradient)
    expected, others = (x.grad, (1, 2)) if which == "dgrad" else (w.grad, (0, 2))
    assert torch.allclose(found[0 if which == "dgrad" else 1], expected)
    assert [found[place] for place in others] == [None, None]


def test_tensors_lie_in_memory_as_the_layer_says() -> None:
    for name, (x, w) in {"plain": (False, False), "nhwc": (True, True), "copied": (False, True)}.items():
        work = workload_of(LAYERS[name], "fprop")
        given = WorkloadTensors(work, Shapes(work), "cpu")
        last = [each.is_contiguous(memory_format=torch.channels_last) for each in (given.x, given.w)]
        assert last == [x, w]
    work = workload_of(LAYERS["volume"], "wgrad")
    given = WorkloadTensors(work, Shapes(work), "cpu")
    assert given.gradient.is_contiguous(memory_format=torch.channels_last_3d)


@pytest.mark.parametrize(
    "layer",
    [replace(PLAIN, R=1, S=1, layout="NHWC"), replace(PLAIN, K=4, groups=4, layout="NHWC"),
     replace(PLAIN, C=1, layout="NHWC"), replace(PLAIN, R=1, S=1, layout="NHWC", copies_input=True)],
)  # fmt: skip
def test_filters_of_one_tap_or_channel_lie_in_nhwc_too(layer: ConvLayer) -> None:
    work = workload_of(layer, "fprop")
    given = WorkloadTensors(work, Shapes(work), "cpu")
    assert given.w.stride()[1] == 1
    assert given.w.stride()[-1] == given.w.shape[1]
    (call,) = calls(work, "cpu", cache_bytes=0, free_bytes=1 << 20)
    assert call().stride()[1] == 1


def test_sets_of_tensors_exceed_the_cache_twice_but_not_the_memory() -> None:
    work = workload_of(PLAIN, "fprop")
    size = WorkloadTensors(work, Shapes(work), "cpu").bytes
    assert size == 8 * (2 * 4 * 9 * 7 + 6 * 4 * 3 * 2)
    assert len(calls(work, "cpu", cache_bytes=5 * size, free_bytes=1 << 30)) == 10
    assert len(calls(work, "cpu", cache_bytes=5 * size, free_bytes=12 * size)) == 3
    assert len(calls(work, "cpu", cache_bytes=1 << 40, free_bytes=1 << 50)) == timed_calls.MOST_SETS
    assert len(calls(work, "cpu", cache_bytes=size, free_bytes=0)) == 1


def test_only_what_a_pass_reads_is_rotated() -> None:
    several: tuple[tuple[Pass, str], ...] = (("dgrad", "x"), ("wgrad", "w"))
    for which, unread in several:
        work = workload_of(PLAIN, which)
        shapes = Shapes(work)
        first = WorkloadTensors(work, shapes, "cpu")
        second = WorkloadTensors(work, shapes, "cpu", first)
        assert getattr(second, unread) is getattr(first, unread)
        assert first.gradient is not second.gradient
        read = first.w if which == "dgrad" else first.x
        assert first.gradient is not None
        assert first.bytes == second.bytes == first.gradient.nbytes + read.nbytes
