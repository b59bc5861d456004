"""The table of convolutions that frameworks do not have."""

from __future__ import annotations

import pytest

from convlint.gpus.frameworks import is_settled, lack_of, lacks
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import Dtype
from convlint.model.runtime import Runtime

KNOWN = {"pytorch", "tensorflow", "jax", "tensorrt", "onnxruntime", "mxnet", "cudnn", None}


def test_every_row_has_a_source_and_says_something_of_its_own() -> None:
    for lack in lacks():
        assert lack.source.startswith("https://")
        assert lack.framework in KNOWN
        assert lack.says
        assert lack.fix
        assert lack.mode in ("training", "inference", None)
        assert lack.framework is not None or lack.dtype is not None
        assert lack.unless is None or hasattr(Runtime(), lack.unless)
    assert len({lack.says for lack in lacks()}) == len(lacks())


@pytest.mark.parametrize("lack", lacks(), ids=lambda lack: lack.says)
def test_what_is_had_instead_is_had(lack) -> None:
    if lack.instead is None:
        return
    runtime = Runtime(framework=lack.framework)
    for mode in ("training", "inference"):
        if lack.mode in (None, mode):
            assert lack_of(runtime, lack.instead, mode, load_gpu("a100")) is None


def test_a_row_holds_below_its_compute_capability_and_without_its_setting() -> None:
    pytorch, onnxruntime = Runtime(framework="pytorch"), Runtime(framework="onnxruntime")
    for gpu, expected in (("h100-sxm", True), ("b200", False)):
        assert (lack_of(pytorch, Dtype.fp8, "inference", load_gpu(gpu)) is not None) == expected
    assert lack_of(onnxruntime, Dtype.int8, "inference", load_gpu("t4")) is not None


def test_without_a_framework_what_all_have_or_none_is_settled() -> None:
    nobody = Runtime()
    assert is_settled(nobody, Dtype.fp16, "training")
    assert is_settled(nobody, Dtype.int8, "training")
    assert not is_settled(nobody, Dtype.int8, "inference")
    assert not is_settled(nobody, Dtype.fp8, "training")
    assert is_settled(Runtime(framework="jax"), Dtype.fp8, "training")
