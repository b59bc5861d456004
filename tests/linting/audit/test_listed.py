"""Lists of models as people and programs write them, and as nobody should."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from convlint.errors import UsageError
from convlint.linting.audit.listed import MOST_LINE, Entry, entries_of


def entries(folder: Path, text: str | bytes, name: str = "list.txt") -> list[Entry]:
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
