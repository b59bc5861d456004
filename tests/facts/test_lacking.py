"""What the framework in use lacks, as rules read it."""

from __future__ import annotations

import pytest
from layer_facts import facts

from convlint.facts.unknown import UNKNOWN
from convlint.model.layer import Mode

LACKING = frozenset(("lacking",))


@pytest.mark.parametrize(
    ("dtype", "runtime", "mode", "gpu", "expected"),
    [
        ("fp8", "framework: pytorch", "training", "b200", True),
        ("fp8", "framework: pytorch", "inference", "h100-sxm", True),
        ("fp8", "framework: pytorch", "inference", "b200", False),
        ("fp8", "framework: tensorrt", "inference", "h100-sxm", False),
        ("int8", "framework: pytorch", "inference", "t4", True),
        ("int8", "cudnn_benchmark: true", "inference", "t4", True),  # PyTorch's, whose setting it is
        ("int8", "framework: tensorrt", "inference", "t4", False),
        ("int8", "", "training", "t4", True),  # nowhere
        ("int8", "framework: onnxruntime", "inference", "t4", True),
        ("int8", "framework: onnxruntime, tensorrt: '10.3'", "inference", "t4", False),
        ("fp16", "framework: tensorrt", "training", "t4", True),
        ("fp64", "framework: tensorrt", "inference", "a100", True),
        ("fp16", "framework: pytorch", "training", "t4", False),
        ("fp8", "framework: tensorflow", "inference", "h100-sxm", True),
        ("int8", "framework: pytorch", "training", "t4", True),
        ("bf16", "framework: mxnet", "training", "a100", True),
        ("fp16", "", "training", "t4", False),  # all have it
        ("fp8", "", "inference", "h100-sxm", UNKNOWN),
        ("int8", "", "inference", "t4", UNKNOWN),
    ],
)
def test_what_is_lacking(dtype: str, runtime: str, mode: Mode, gpu: str, expected: object) -> None:
    found = facts(f"name: a, dtype: {dtype}", gpu=gpu, runtime=runtime, mode=mode)
    assert found["lacking"] is expected
    says, fix = found["lacking_says"], found["lacking_fix"]
    assert (says is not UNKNOWN) == (fix is not UNKNOWN) == (expected is True)
    assert found.needs(LACKING) == (("runtime.framework",) if expected is UNKNOWN else ())


def test_without_a_dtype_it_is_the_dtype_that_is_needed() -> None:
    found = facts("name: a", runtime="framework: pytorch")
    assert found["lacking"] is UNKNOWN
    assert found.needs(LACKING) == ("dtype",)


def test_what_the_framework_has_instead() -> None:
    assert facts("name: a, dtype: fp8", runtime="framework: pytorch")["lacking_instead"] == "fp16"
    assert facts("name: a, dtype: fp16", runtime="framework: tensorrt")["lacking_instead"] is UNKNOWN


def test_the_one_mode_that_is_lacking() -> None:
    assert facts("name: a, dtype: int8", gpu="t4")["lacking_mode"] == "training"
    assert facts("name: a, dtype: int8", gpu="t4", runtime="framework: pytorch")["lacking_mode"] is UNKNOWN  # both
    assert facts("name: a, dtype: fp8", gpu="b200", runtime="framework: pytorch")["lacking_mode"] == "training"
