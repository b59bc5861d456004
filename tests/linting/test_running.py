"""How inputs run: what the command line, the input and the config say, in that order."""

from __future__ import annotations

from typing import Any

import pytest
from convolutions import conv
from msgspec.structs import replace

from convlint.errors import UsageError
from convlint.linting.running import Running, as_it_runs, from_options
from convlint.model.layer import Dtype
from convlint.model.network import Network
from convlint.model.runtime import Runtime

PLAIN = Running()


def ran(asked: Running = PLAIN, usual: Running = PLAIN, *, stored: bool = False, **changes: Any) -> Network:
    runtime = Runtime(framework="pytorch", cudnn_benchmark=False)
    network = Network(path="a", layers=(replace(conv(), **changes),), runtime=runtime, stored=stored)
    return as_it_runs(network, asked, usual)


def test_nothing_said_changes_nothing() -> None:
    found = ran()
    assert found.layers == (conv(),)
    assert found.runtime == Runtime(framework="pytorch", cudnn_benchmark=False)


def test_the_command_line_has_the_last_word_and_the_config_the_first() -> None:
    settings = {"framework": "tensorrt", "cudnn_benchmark": True, "deterministic": False}
    assert ran(asked=Running(settings=settings)).runtime == Runtime(**settings)
    usual = ran(usual=Running(settings=settings)).runtime
    assert usual == Runtime(framework="pytorch", cudnn_benchmark=False, deterministic=False)


def test_a_stored_model_may_be_run_by_another_framework() -> None:
    assert ran(usual=Running(settings={"framework": "tensorrt"}), stored=True).runtime.framework == "tensorrt"


@pytest.mark.parametrize(
    ("asked", "usual", "dtype", "source", "expected"),
    [
        (Dtype.fp16, None, Dtype.fp32, "stated", Dtype.fp16),
        (None, Dtype.fp16, Dtype.fp32, "stated", Dtype.fp32),
        (None, Dtype.fp16, Dtype.fp32, "storage", Dtype.fp16),
        (None, Dtype.fp16, Dtype.fp32, "module", Dtype.fp16),
        (None, Dtype.fp16, None, "stated", Dtype.fp16),
        (Dtype.bf16, Dtype.fp16, None, "stated", Dtype.bf16),
        (Dtype.fp16, None, Dtype.int8, "stated", Dtype.int8),
    ],
)
def test_dtypes(asked: Any, usual: Any, dtype: Any, source: Any, expected: Dtype) -> None:
    (layer,) = ran(Running(dtype=asked), Running(dtype=usual), dtype=dtype, dtype_source=source).layers
    assert layer.dtype == expected
    assert expected in (dtype, Dtype.int8) or layer.dtype_source == "stated"


@pytest.mark.parametrize(
    ("asked", "usual", "layout", "expected"),
    [("NHWC", None, "NCHW", "NHWC"), (None, "NHWC", "NCHW", "NCHW"), (None, "NHWC", "auto", "NHWC")],
)
def test_layouts(asked: Any, usual: Any, layout: Any, expected: str) -> None:
    (layer,) = ran(Running(layout=asked), Running(layout=usual), layout=layout).layers
    assert layer.layout == expected


def test_options_are_read_as_a_spec_spells_them() -> None:
    found = from_options(["framework=trt", "benchmark=yes", "cudnn=8902"], "half", "channels_last")
    assert (found.dtype, found.layout) == (Dtype.fp16, "NHWC")
    assert {name: str(value) for name, value in found.settings.items()} == {
        "framework": "tensorrt", "cudnn_benchmark": "True", "cudnn": "8.9.2",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("runtime", "dtype", "layout", "message"),
    [
        (["cudnn"], None, None, "--runtime: 'cudnn' is not KEY=VALUE"),
        (["cudnnn=8"], None, None, "--runtime: unknown runtime setting 'cudnnn'; did you mean 'cudnn'?"),
        (["tf32=maybe"], None, None, "--runtime: tf32: must be true or false, not maybe"),
        (["tf32=on", "tf32=off"], None, None, "--runtime: tf32 is given twice"),
        ([], "fp15", None, "--dtype: 'fp15' is not one of"),
        ([], None, "NHCW", "--layout: 'NHCW' is not one of"),
    ],
)
def test_wrong_options_are_refused(runtime: list[str], dtype: Any, layout: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        from_options(runtime, dtype, layout)
    assert str(caught.value).startswith(message)
