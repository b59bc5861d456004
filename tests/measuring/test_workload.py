"""From a layer to what is timed, and back."""

from __future__ import annotations

import pytest
import torch
from cases import for_each
from convolutions import conv
from msgspec.structs import replace

from convlint.estimate import estimate_pass
from convlint.gpus.gpu import gpu_names, load_gpu
from convlint.measuring import calls as timed_calls
from convlint.measuring.calls import Shapes, WorkloadTensors, calls
from convlint.measuring.workload import (
    Device,
    Workload,
    gpu_of,
    layer_of,
    passes,
    runtime_of,
    why_not,
    workloads,
)
from convlint.model.layer import PASSES, ConvLayer, Dtype, Pass, with_output
from convlint.model.runtime import Runtime

A100, T4 = load_gpu("a100"), load_gpu("t4")
LAYER = with_output(
    replace(
        conv(), name="a", N=8, C=60, H=28, W=30, K=64, R=3, S=5, PadH=1, PadH_end=1, PadW=2, PadW_end=2, U=2, V=1,
        dtype=Dtype.fp16, layout="NHWC", groups=1,
    )
)  # fmt: skip


def test_training_runs_three_passes_and_a_first_layer_two() -> None:
    assert passes(LAYER, "inference") == ("fprop",)
    assert passes(LAYER, "training") == ("fprop", "dgrad", "wgrad")
    assert passes(replace(LAYER, first=True), "training") == ("fprop", "wgrad")


@pytest.mark.parametrize("which", PASSES)
def test_what_is_timed_is_predicted_as_the_layer_is(which: str) -> None:
    (work,) = workloads(LAYER, which, A100, Runtime())  # type: ignore[arg-type]
    again = estimate_pass(layer_of(work), which, A100, runtime_of(work))  # type: ignore[arg-type]
    assert again == estimate_pass(LAYER, which, A100, Runtime(framework="pytorch"))  # type: ignore[arg-type]


def test_tf32_multiplies_fp32_tensors_where_the_gpu_has_it_and_nobody_forbids_it() -> None:
    single = replace(LAYER, dtype=Dtype.fp32)
    precisions = [
        next(workloads(single, "fprop", gpu, runtime)).precision
        for gpu, runtime in ((A100, Runtime()), (A100, Runtime(tf32=False)), (T4, Runtime()))
    ]
    assert precisions == [Dtype.tf32, Dtype.fp32, Dtype.fp32]


def test_an_open_layout_is_timed_in_both() -> None:
    assert [work.layout for work in workloads(replace(LAYER, layout="auto"), "fprop", A100, Runtime())] == [
        "NCHW", "NHWC",
    ]  # fmt: skip


def test_an_input_that_is_copied_arrives_in_the_other_layout() -> None:
    copied = replace(LAYER, copies_input=True)
    assert [next(workloads(copied, which, A100, Runtime())).arrives for which in PASSES] == ["NCHW", "NHWC", "NCHW"]


def test_uneven_padding_is_done_before() -> None:
    (work,) = workloads(replace(LAYER, PadH=0, PadH_end=1), "fprop", A100, Runtime())
    assert (work.H, work.pad) == (29, (0, 0, 2))
    assert (layer_of(work).P, layer_of(work).Q) == (14, 30)


def test_settings_that_choose_the_kernel_are_part_of_it() -> None:
    (work,) = workloads(LAYER, "fprop", A100, Runtime(cudnn_benchmark=True, deterministic=True))
    assert (work.benchmark, work.deterministic) == (True, True)
    (work,) = workloads(LAYER, "fprop", A100, Runtime())
    assert (work.benchmark, work.deterministic) == (False, False)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        ({"N": None}, "N is not known"),
        ({"H": None, "W": None}, "H and W are not known"),
        ({"PadH": None}, "its padding is not known"),
        ({"dtype": None}, "its dtype is not known; --dtype says it"),
        ({"dtype": Dtype.int8}, "PyTorch, which times it, has no int8 convolutions"),
        ({"dtype": Dtype.fp8}, "PyTorch, which times it, has no fp8 convolutions"),
    ],
)
def test_what_cannot_be_timed_says_why(changes: dict[str, object], reason: str) -> None:
    assert why_not(replace(LAYER, **changes)) == reason


GIB = 2**30


def device(name: str, capability: str, sms: int, memory_gib: float) -> Device:
    return Device(
        kind="cuda", name=name, framework_version="2.11.0", cudnn="9.10.2", cuda="12.8",
        compute_capability=capability, sms=sms, memory_bytes=int(memory_gib * GIB),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "capability", "sms", "memory_gib", "expected"),
    [
        ("Tesla V100-SXM2-16GB", "7.0", 80, 15.8, "v100-sxm2-16gb"),
        ("Tesla V100-SXM2-32GB", "7.0", 80, 31.7, "v100-sxm2-32gb"),
        ("Tesla V100-PCIE-16GB", "7.0", 80, 15.8, "v100-pcie-16gb"),
        ("Tesla T4", "7.5", 40, 14.6, "t4"),
        ("NVIDIA A100-SXM4-40GB", "8.0", 108, 39.4, "a100-40gb-sxm"),
        ("NVIDIA A100-SXM4-80GB", "8.0", 108, 79.1, "a100-80gb-sxm"),
        ("NVIDIA A100 80GB PCIe", "8.0", 108, 79.1, "a100-80gb-pcie"),
        ("NVIDIA A100-PCIE-40GB", "8.0", 108, 39.4, "a100-40gb-pcie"),
        ("NVIDIA H100 80GB HBM3", "9.0", 132, 79.1, "h100-sxm"),
        ("NVIDIA H100 PCIe", "9.0", 114, 79.1, "h100-pcie"),
        ("NVIDIA H100 NVL", "9.0", 132, 93.0, "h100-nvl"),
        ("NVIDIA H200", "9.0", 132, 139.8, "h200-sxm"),
        ("NVIDIA GH200 480GB", "9.0", 132, 94.5, "gh200"),
        ("NVIDIA GeForce RTX 4090", "8.9", 128, 23.5, "rtx-4090"),
        ("NVIDIA GeForce RTX 2080 Ti", "7.5", 68, 10.8, "rtx-2080-ti"),
        ("NVIDIA RTX A6000", "8.6", 84, 47.4, "rtx-a6000"),
        ("NVIDIA A40", "8.6", 84, 44.3, "a40"),
        ("NVIDIA RTX 6000 Ada Generation", "8.9", 142, 47.4, "rtx-6000-ada"),
        ("NVIDIA L40", "8.9", 142, 44.4, "l40"),
        ("NVIDIA L40S", "8.9", 142, 44.4, "l40s"),
        ("NVIDIA TITAN RTX", "7.5", 72, 23.6, "titan-rtx"),
        ("Quadro RTX 6000", "7.5", 72, 23.6, "quadro-rtx-6000"),
        ("NVIDIA A10G", "8.6", 80, 22.0, "a10g"),
        ("NVIDIA B200", "10.0", 148, 178.4, "b200"),
        ("NVIDIA B300 SXM6 AC", "10.3", 148, 267.7, "b300"),
        ("NVIDIA GB300", "10.3", 152, 276.6, "gb300"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "12.0", 188, 95.6, "rtx-pro-6000-blackwell"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "12.0", 188, 95.6, "rtx-pro-6000-max-q"),
        ("NVIDIA GB10", "12.1", 48, 119.7, "gb10"),
        ("NVIDIA Thor", "11.0", 20, 122.6, "jetson-agx-thor"),
        ("Orin", "8.7", 8, 15.2, "jetson-orin-nx-16gb"),
        ("Orin", "8.7", 16, 61.4, "jetson-agx-orin"),
        ("Tesla K80", "3.7", 13, 11.2, "k80"),
    ],
)
def test_what_the_driver_calls_it(name: str, capability: str, sms: int, memory_gib: float, expected: str) -> None:
    found = gpu_of(device(name, capability, sms, memory_gib))
    assert found is not None
    assert found.id == expected


@for_each("gpu_id", gpu_names())
def test_every_gpu_is_itself_by_its_own_name(gpu_id: str) -> None:
    gpu = load_gpu(gpu_id)
    found = gpu_of(device(gpu.name, str(gpu.compute_capability), gpu.sms, (gpu.memory_bytes or 0) / GIB))
    assert found == gpu


@pytest.mark.parametrize(
    ("name", "capability", "sms"),
    [
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "8.9", 76),
        ("Tesla V100S-PCIE-32GB", "7.0", 80),
        ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", "8.0", 42),
        ("NVIDIA H100 PCIe", "9.0", 132),
        ("NVIDIA GeForce RTX 4080 Laptop GPU", "8.9", 58),
    ],
)
def test_what_only_resembles_one_is_none(name: str, capability: str, sms: int) -> None:
    assert gpu_of(device(name, capability, sms, 16)) is None


def test_a_processor_is_no_gpu() -> None:
    assert gpu_of(Device(kind="cpu", name="x86_64", framework_version="2.13.0")) is None


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
    assert given.gradient is not None
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
