"""From a layer to what is timed, and back."""

import pytest
from convolutions import conv
from msgspec.structs import replace

from convlint.estimate import estimate_pass
from convlint.gpus.gpu import load_gpu
from convlint.measuring.workload import (
    layer_of,
    runtime_of,
    why_not,
    workloads,
)
from convlint.model.layer import PASSES, Dtype, with_output
from convlint.model.runtime import Runtime

A100, T4 = load_gpu("a100"), load_gpu("t4")
LAYER = with_output(
    replace(
        conv(), name="a", N=8, C=60, H=28, W=30, K=64, R=3, S=5, PadH=1, PadH_end=1, PadW=2, PadW_end=2, U=2, V=1,
        dtype=Dtype.fp16, layout="NHWC", groups=1,
    )
)  # fmt: skip


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
