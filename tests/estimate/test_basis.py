"""What a predicted time rests on."""

from __future__ import annotations

import pytest
from calibrated import calibration
from convolutions import conv
from msgspec.structs import replace

from convlint.estimate import estimate_layer
from convlint.estimate.basis import basis, kind_of
from convlint.estimate.problem import problem_of
from convlint.gpus.calibration import Group
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import PASSES, Dtype
from convlint.model.runtime import Runtime
from convlint.model.version import Version


@pytest.mark.parametrize(
    ("kind", "which", "compute", "capability", "expected"),
    [
        ("dense", "wgrad", "fp16", "7.0", "measured"),
        ("dense", "fprop", "fp16", "8.0", "measured"),
        ("dense", "wgrad", "fp16", "8.0", "extrapolated"),
        ("dense", "fprop", "fp16", "9.0", "extrapolated"),
        ("dense", "fprop", "tf32", "9.0", "measured"),
        ("dense", "wgrad", "tf32", "9.0", "extrapolated"),  # from fp16's, at another rate
        ("dense", "fprop", "bf16", "8.0", "extrapolated"),  # the same kernels as fp16's
        ("dense", "fprop", "fp8", "9.0", "assumed"),
        ("depthwise", "fprop", "fp16", "7.0", "extrapolated"),  # timed in TensorRT alone
        ("depthwise", "dgrad", "fp16", "7.0", "extrapolated"),  # within whole steps alone
        ("depthwise", "wgrad", "fp8", "9.0", "assumed"),
        ("grouped", "wgrad", "fp32", "8.0", "assumed"),
        ("volume", "dgrad", "tf32", "8.6", "measured"),
        ("volume", "fprop", "tf32", "8.9", "extrapolated"),
        ("volume", "wgrad", "fp16", "8.0", "extrapolated"),
        ("volume", "wgrad", "fp32", "7.5", "assumed"),
    ],
)
def test_what_a_pass_rests_on(kind, which, compute, capability, expected):
    assert basis(kind, which, Dtype(compute), Version(capability)) == expected


@pytest.mark.parametrize(
    ("sizes", "kind"),
    [
        ({}, "dense"), ({"groups": 2}, "grouped"), ({"C": 32, "K": 64, "groups": 32}, "depthwise"),
        ({"dims": 3, "D": 8, "T": 3}, "volume"), ({"dims": 1, "H": 1, "R": 1}, "dense"),
    ],
)  # fmt: skip
def test_kinds(sizes, kind):
    assert kind_of(problem_of(conv(**sizes))) == kind


@pytest.mark.parametrize(
    ("gpu", "mode", "sizes", "expected"),
    [
        ("v100", "training", {}, "measured"), ("a100", "inference", {}, "measured"),
        ("a100", "training", {}, "extrapolated"), ("h100", "training", {"dtype": Dtype.fp8}, "assumed"),
        ("v100", "training", {"C": 64, "K": 64, "groups": 64}, "extrapolated"),
        # what a transposed layer runs forward is a dgrad
        ("h100", "inference", {"op": "conv_transpose", "dtype": Dtype.fp32}, "measured"),
    ],
)  # fmt: skip
def test_a_layer_rests_on_what_its_weakest_pass_does(gpu, mode, sizes, expected):
    estimate = estimate_layer(conv(**sizes), load_gpu(gpu), Runtime(), mode)
    assert estimate.basis == expected


@pytest.mark.parametrize(
    ("gpu", "framework", "sizes", "expected"),
    [
        ("v100", "tensorrt", {"C": 64, "groups": 64}, "measured"),
        ("v100", "pytorch", {"C": 64, "groups": 64, "layout": "NCHW"}, "extrapolated"),
        ("a100", "pytorch", {"C": 64, "groups": 64, "layout": "NCHW", "dtype": Dtype.fp32}, "measured"),
        ("a100", "pytorch", {"C": 64, "groups": 64, "dtype": Dtype.fp32}, "extrapolated"),  # cuDNN's kernels
        ("t4", "pytorch", {}, "measured"),
        ("gtx-1650", "pytorch", {}, "extrapolated"),  # of T4's generation, without its Tensor Cores
        ("gtx-1650", "pytorch", {"dtype": Dtype.fp32}, "measured"),
        ("a100", "pytorch", {"C": 64, "groups": 64, "dims": 3, "D": 8, "T": 3, "dtype": Dtype.fp32}, "extrapolated"),
    ],
)
def test_what_runs_a_layer_counts(gpu, framework, sizes, expected):
    estimate = estimate_layer(conv(**sizes), load_gpu(gpu), Runtime(framework=framework), "inference")
    assert estimate.basis == expected


def test_what_was_calibrated_is_measured_and_nothing_else():
    groups = tuple(Group(kind="depthwise", dtype=Dtype.bf16, which=which, rows=4, spread=0.1) for which in PASSES)
    gpu = load_gpu("h100")
    there = replace(gpu, calibration=calibration(gpu, groups=groups))

    def of(gpu, mode="training", **sizes):
        return estimate_layer(conv(**sizes), gpu, Runtime(), mode).basis

    layer = {"groups": 64, "dtype": Dtype.bf16}
    assert (of(gpu, **layer), of(there, **layer)) == ("extrapolated", "measured")
    for other in ({"dtype": Dtype.bf16}, {"groups": 64}, {"groups": 32, "dtype": Dtype.bf16}):
        assert of(there, **other) == of(gpu, **other) != "measured"
    forward = replace(gpu, calibration=calibration(gpu, groups=groups[:1]))
    assert (of(forward, **layer), of(forward, "inference", **layer)) == ("extrapolated", "measured")


def test_too_few_timings_of_a_group_say_nothing_of_it():
    gpu, layer = load_gpu("h100"), conv(groups=64, dtype=Dtype.bf16)
    for rows, expected in ((3, "extrapolated"), (4, "measured")):
        groups = tuple(
            Group(kind="depthwise", dtype=Dtype.bf16, which=which, rows=rows, spread=0.1) for which in PASSES
        )
        there = replace(gpu, calibration=calibration(gpu, groups=groups))
        assert estimate_layer(layer, there, Runtime(), "training").basis == expected
