"""What all layers of one network share on one target."""

from __future__ import annotations

import pytest
from layer_facts import facts

from convlint.facts.target import framework_picks_layout
from convlint.facts.unknown import UNKNOWN
from convlint.model.layer import Dtype, Mode
from convlint.model.runtime import Runtime


@pytest.mark.parametrize(
    ("gpu", "dtype", "runtime", "compute", "alignment", "tensor"),
    [
        ("a100", "fp16", "", "fp16", 8, True), ("a100", "fp32", "", "tf32", 4, True),
        ("a100", "fp32", "tf32: false", "fp32", 1, False), ("a100", "int8", "", "int8", 16, True),
        ("a100", "int8", "framework: tensorrt", "int8", 32, True), ("a100", "fp64", "", "fp64", 1, False),
        ("p100", "fp16", "", "fp16", 1, False), ("titan-xp", "fp16", "", "fp32", 1, False),
        ("h100", "fp8", "", "fp8", 16, True), ("v100", "fp32", "", "fp32", 1, False),
    ],
)  # fmt: skip
def test_precision(gpu: str, dtype: str, runtime: str, compute: str, alignment: int, tensor: bool) -> None:
    found = facts(f"C: 8, dtype: {dtype}", gpu=gpu, runtime=runtime)
    assert (found["compute_dtype"], found["alignment"], found["on_tensor_cores"]) == (compute, alignment, tensor)


def test_precision_is_unknown_without_a_dtype() -> None:
    found = facts("C: 8")
    assert found["compute_dtype"] is found["alignment"] is found["on_tensor_cores"] is UNKNOWN


@pytest.mark.parametrize("mode", ["training", "inference"])
def test_mode(mode: Mode) -> None:
    found = facts("C: 8", mode=mode)
    assert (found["mode"], found["training"]) == (mode, mode == "training")


def test_gpus_and_settings_are_read_as_they_are_given() -> None:
    found = facts("C: 8", gpu="k80", runtime="framework: pytorch, cudnn_benchmark: true, deterministic: true")
    assert (found["gpu"].id, found["gpu"].architecture, found["gpu"].tensor_cores) == ("k80", "kepler", False)
    assert (found["gpu"].tensor_fp16, found["gpu"].dies_per_board) == (False, 2)
    assert (found["runtime"].framework, found["runtime"].cudnn_benchmark) == ("pytorch", True)
    assert found["runtime"].deterministic is True
    assert found["runtime"].fixed_input_size is UNKNOWN
    assert found["framework_picks_layout"] is False


@pytest.mark.parametrize(
    ("runtime", "framework", "deterministic", "stated"),
    [
        ("framework: pytorch", "pytorch", False, False),
        ("framework: pytorch, deterministic: false", "pytorch", False, True),
        ("cudnn_benchmark: true", "pytorch", False, False),
        ("fixed_input_size: true", UNKNOWN, UNKNOWN, False),
        ("fixed_input_size: true, deterministic: true", UNKNOWN, True, True),
    ],
)
def test_what_is_left_out_has_its_default_and_what_is_given_can_be_told(
    runtime: str, framework: object, deterministic: object, stated: bool
) -> None:
    found = facts("C: 8", runtime=runtime)
    assert found["runtime"].framework is framework or found["runtime"].framework == framework
    assert found["runtime"].deterministic is deterministic
    assert found["stated"].deterministic is stated
    assert found["stated"].cudnn_benchmark is ("cudnn_benchmark" in runtime)


def test_the_same_network_under_other_settings() -> None:
    context = facts("N: 8, C: 64, H: 28, W: 28, K: 64, R: 3, S: 3, dtype: fp32, layout: NHWC").context
    other = context.with_runtime(Runtime(tf32=False, deterministic=True))
    assert (context.precision(Dtype.fp32)[0], other.precision(Dtype.fp32)[0]) == (Dtype.tf32, Dtype.fp32)
    assert (other.shared["runtime"].deterministic, other.shared["stated"].deterministic) == (True, True)
    assert context.shared["stated"].deterministic is False
    assert (other.time_us, other.network_us, other.whole) == (context.time_us, context.network_us, context.whole)
    assert other.shared["network"] is context.shared["network"]


@pytest.mark.parametrize(
    ("runtime", "picks"),
    [
        (Runtime(), False), (Runtime(framework="pytorch"), False), (Runtime(framework="jax"), True),
        (Runtime(framework="tensorflow"), True), (Runtime(framework="tensorrt"), True),
        (Runtime(framework="pytorch", compile=True), True), (Runtime(framework="pytorch", compile=False), False),
        (Runtime(framework="onnxruntime"), False), (Runtime(framework="onnxruntime", prefer_nhwc=True), True),
        (Runtime(framework="pytorch", prefer_nhwc=True), False),
        # the framework is the one whose settings are given, as rules see it
        (Runtime(tf_cudnn_use_autotune=True), True), (Runtime(cudnn_benchmark=True), False),
        (Runtime(cudnn_conv_algo_search="HEURISTIC", prefer_nhwc=True), True),
    ],
)  # fmt: skip
def test_who_picks_the_layout(runtime: Runtime, picks: bool) -> None:
    assert framework_picks_layout(runtime) is picks
