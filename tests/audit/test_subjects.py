"""What an entry of a list says of its model, and what is wrong with one."""

import io
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from convlint.audit.subjects import MOST_LINE, ListEntry, Subject, entries_of, subject_of
from convlint.mend.checking import Job, Running
from convlint.model.errors import InputFault, UsageError
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


def entries(folder: Path, text: str | bytes, name: str = "list.txt") -> list[ListEntry]:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return list(entries_of(str(path)))


def values(folder: Path, text: str | bytes, name: str = "list.txt") -> list[dict[str, Any]]:
    found = entries(folder, text, name)
    assert [entry.fault for entry in found] == [""] * len(found)
    return [entry.values for entry in found]


class TestLines:
    def test_comments_and_empty_lines(self, tmp_path: Path) -> None:
        found = entries(tmp_path, "\ufeff# ours\n\na.onnx\r\n  b c.yaml  \n")
        assert [(entry.line, entry.values) for entry in found] == [(3, {"model": "a.onnx"}), (4, {"model": "b c.yaml"})]

    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            ("a.onnx batch=8 gpu=t4,h100", {"model": "a.onnx", "batch": "8", "gpu": "t4,h100"}),
            ("my nets/a b.onnx  batch=8", {"model": "my nets/a b.onnx", "batch": "8"}),
            ('a.onnx name="the first" cudnn=8.9.2', {"model": "a.onnx", "name": "the first", "cudnn": "8.9.2"}),
            ("m:Net(3, batch=8)", {"model": "m:Net(3, batch=8)"}),
            ("m:Net( 3, batch=8 ) inputs=8x3x9x9", {"model": "m:Net( 3, batch=8 )", "inputs": "8x3x9x9"}),
            ("a=b.onnx", {"model": "a=b.onnx"}),
            ("a.onnx runtime.cudnn_benchmark=true", {"model": "a.onnx", "runtime.cudnn_benchmark": "true"}),
            ('{"model": "a.onnx", "batch": 8}', {"model": "a.onnx", "batch": 8}),
        ],
    )
    def test_keys_behind_a_model(self, tmp_path: Path, line: str, expected: dict[str, Any]) -> None:
        assert values(tmp_path, line) == [expected]

    def test_a_key_that_nobody_knows(self, tmp_path: Path) -> None:
        (entry,) = entries(tmp_path, "a.onnx bach=8\n")
        assert entry.fault == "unknown key 'bach'; did you mean 'batch'?"

    def test_a_key_twice(self, tmp_path: Path) -> None:
        assert entries(tmp_path, "a.onnx batch=8 batch=9\n")[0].fault == "batch is given twice"

    def test_what_is_no_line(self, tmp_path: Path) -> None:
        found = entries(tmp_path, b"a.onnx\n\xff\xfe\n" + b"x" * (3 * MOST_LINE) + b"\nb.onnx\n")
        assert [entry.line for entry in found] == [1, 2, 3, 4]
        assert [bool(entry.fault) for entry in found] == [False, True, True, False]


class TestJson:
    def test_objects_and_names(self, tmp_path: Path) -> None:
        text = '{"model": "m:Net", "inputs": {"x": "8x3x9x9"}, "runtime": {"cudnn": "8.9"}}\n"a.onnx"\n'
        assert values(tmp_path, text, "list.jsonl") == [
            {"model": "m:Net", "inputs": {"x": "8x3x9x9"}, "runtime": {"cudnn": "8.9"}},
            {"model": "a.onnx"},
        ]

    @pytest.mark.parametrize("line", ["{", "3", "[1]", '{"batch": NaN}', "[" * 5000])
    def test_what_is_none(self, tmp_path: Path, line: str) -> None:
        found = entries(tmp_path, f'{line}\n"a.onnx"\n', "list.jsonl")
        assert [bool(entry.fault) for entry in found] == [True, False]


class TestTable:
    def test_cells_by_column(self, tmp_path: Path) -> None:
        text = '\ufeffpath,gpu,cudnn_benchmark\r\n"a, b.onnx","t4,h100",true\r\n\r\nc.onnx\r\n'
        assert values(tmp_path, text, "list.csv") == [
            {"model": "a, b.onnx", "gpu": "t4,h100", "cudnn_benchmark": "true"},
            {"model": "c.onnx"},
        ]
        assert values(tmp_path, "model\tbatch\na.onnx\t8\n", "list.tsv") == [{"model": "a.onnx", "batch": "8"}]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("owner,model\n", "1: unknown key 'owner'"),
            ("name,batch\n", "1: its first row must name columns, and one of them be model"),
            ("model,path\n", "1: there are two columns model"),
            ('"model\n', "unexpected end of data"),
        ],
    )
    def test_a_header_that_is_none(self, tmp_path: Path, text: str, message: str) -> None:
        with pytest.raises(UsageError, match=message):
            entries(tmp_path, text, "list.csv")

    def test_rows_that_are_none(self, tmp_path: Path) -> None:
        text = b'model,batch\na,1,2\n"a"b,1\n\xff,1\na\x1b[31m,1\n' + b"x" * (2 * MOST_LINE) + b"\nb.onnx,1\n"
        found = entries(tmp_path, text, "list.csv")
        assert [bool(entry.fault) for entry in found] == [True, True, True, True, True, False]

    def test_a_quote_without_an_end(self, tmp_path: Path) -> None:
        found = entries(tmp_path, 'model\na.onnx\n"b.onnx\n' + "c.onnx\n" * 50_000, "list.csv")
        assert found[0].values == {"model": "a.onnx"}
        assert all(entry.fault for entry in found[1:2])
        assert len(found) > 2


def test_a_list_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.txt: cannot read the file"):
        entries_of(str(tmp_path / "none.txt"))
    with pytest.raises(UsageError, match="not a regular file"):
        entries_of(str(tmp_path))


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Mock(buffer=io.BytesIO(b'a.onnx\n{"model": "b.onnx"}\n')))
    assert [entry.values["model"] for entry in entries_of("-")] == ["a.onnx", "b.onnx"]
