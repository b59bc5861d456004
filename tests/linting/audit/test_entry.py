"""What an entry of a list says of its model, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from convlint.errors import InputFault
from convlint.linting.audit.entry import subject_of
from convlint.linting.audit.subject import Subject
from convlint.linting.one_input import Job
from convlint.linting.running import Running
from convlint.model.layer import Dtype
from convlint.readers import ReadOptions


def subject(**given: Any) -> Subject:
    return subject_of(given, "list.csv", 3, modules=True)


def test_a_file_and_all_that_may_be_said_of_it() -> None:
    found = subject(
        model="zoo/a.onnx", name="a", architecture="resnet", batch="8", gpu="T4, h100", mode="inference", dtype="fp16",
        layout="NHWC", cudnn="8.9.2", inputs="x=8x3x224x224",
    )  # fmt: skip
    assert (found.name, found.source.kind, found.source.name) == ("a", "file", "zoo/a.onnx")
    assert (found.architecture, found.batch, found.gpus, found.mode) == ("resnet", 8, ("T4", "h100"), "inference")
    assert found.inputs == {"x": "8x3x224x224"}
    assert (found.running.dtype, found.running.layout) == (Dtype.fp16, "NHWC")
    assert str(found.running.settings["cudnn"]) == "8.9.2"


def test_a_file_is_called_by_its_path() -> None:
    assert subject(path="zoo/a.onnx", batch="").name == "zoo/a.onnx"


def test_a_module_as_the_config_has_it() -> None:
    found = subject(model="nets:Net(3)", channels_last="true", autocast="bf16", inputs=["8x3x9x9", "8"], target=["t4"])
    model = found.source.model
    assert model is not None
    assert (model.reference, model.channels_last, model.autocast) == ("nets:Net(3)", True, "bf16")
    assert (model.settings["mixed_precision"], model.inputs, found.gpus) == (True, {"": "8x3x9x9,8"}, ("t4",))
    assert (model.path, model.spans["model"]) == ("list.csv", (3, 1, 3, 1))


def test_settings_of_json_keep_their_types() -> None:
    found = subject(model="a.onnx", runtime={"cudnn_benchmark": True, "cudnn": "8.9"}, tf32="false")
    assert found.running.settings["cudnn_benchmark"] is True
    assert found.running.settings["tf32"] is False


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "names no model"),
        ({"model": " "}, "names no model"),
        ({"model": 3}, "model must be a text"),
        ({"model": "-"}, "standard input is no model of a list"),
        ({"model": "a.onnx", "gpu": "a1000"}, "unknown GPU 'a1000'"),
        ({"model": "a.onnx", "gpu": 3}, "gpu must be a name"),
        ({"model": "a.onnx", "mode": "train"}, "mode: 'train' is not one of training, inference"),
        ({"model": "a.onnx", "batch": "0"}, "batch must be from 1"),
        ({"model": "a.onnx", "batch": "1.5"}, "batch must be a whole number"),
        ({"model": "a.onnx", "batch": True}, "batch must be a whole number"),
        ({"model": "a.onnx", "dtype": "float17"}, "dtype"),
        ({"model": "a.onnx", "layout": "NCWH"}, "layout"),
        ({"model": "a.onnx", "channels_last": "yes"}, "channels_last is for package.module:name"),
        ({"model": "m:Net", "channels_last": "perhaps"}, "channels_last must be true or false"),
        ({"model": "m:Net", "autocast": "fp8"}, "autocast: 'fp8' is not one of fp16, bf16"),
        ({"model": "m:Net(x)"}, "m:Net|x"),
        ({"model": "a.onnx", "path": "b.onnx"}, "model is given twice"),
        ({"model": "a.onnx", "runtime": "cudnn=8"}, "runtime must be an object"),
        ({"model": "a.onnx", "runtime": {"cudnn": "8"}, "cudnn": "9"}, "cudnn is given twice"),
        ({"model": "a.onnx", "runtime": {"cudn": "8"}}, "cudn"),
        ({"model": "a.onnx", "inputs": 3}, "inputs must be shapes"),
        ({"model": "a.onnx", "inputs": {"x": 3}}, "inputs must have a text for each shape"),
    ],
)
def test_what_is_wrong(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputFault, match=message):
        subject(**given)


def test_no_module_where_none_may_run() -> None:
    assert subject_of({"model": "nets:Net"}, "l", 1, modules=False).source.kind == "file"


def test_the_command_line_has_the_last_word(tmp_path: Path) -> None:
    own = subject(model="a.onnx", batch="8", gpu="t4", mode="inference", dtype="fp16", cudnn="8.9", inputs="1x3x9x9")
    quiet = own.job(Job())
    assert (quiet.gpus, quiet.mode, quiet.reading.batch, quiet.reading.inputs) == (
        ("t4",),
        "inference",
        8,
        {"": "1x3x9x9"},
    )
    asked = Running(settings={"cudnn": "9"}, dtype=Dtype.bf16)
    reading = ReadOptions(batch=4, inputs={"": "2x3x9x9"})
    loud = own.job(replace(Job(), gpus=("h100",), mode="training", asked=asked, reading=reading))
    assert (loud.gpus, loud.mode, loud.reading.batch, loud.reading.inputs) == (
        ("h100",),
        "training",
        4,
        {"": "2x3x9x9"},
    )
    assert (loud.asked.dtype, loud.asked.settings["cudnn"]) == (Dtype.bf16, "9")
