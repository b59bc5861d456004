"""A word of the user's becomes the models that it means, as they are found."""

from __future__ import annotations

from pathlib import Path

import pytest
from audited import write_spec

from convlint.readers.discovery import discover
from convlint.readers.inputs import Input
from convlint.readers.streaming import streamed
from convlint.report import InputError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("zoo/b.yaml", "zoo/a.yaml", "zoo/sub/c.yaml", "zoo/.git/d.yaml", "zoo/node_modules/e.yaml"):
        write_spec(Path(name))
    for name in ("zoo/z.onnx", "zoo/m-00001-of-00002.safetensors", "zoo/m.safetensors.index.json", "zoo/w.safetensors"):
        Path(name).write_bytes(b"x")
    Path("zoo/ci.yaml").write_text("jobs: []\n")
    Path("zoo/net.json").write_text('{"layers": [1]}')
    Path("zoo/net.py").write_text("import torch\n")
    Path("bare").mkdir()
    Path("other").mkdir()
    Path("other/net.json").write_text('{"layers": [1]}')
    return tmp_path


def names(word: str) -> list[str]:
    return [found.name for found in streamed(word) if isinstance(found, Input)]


@pytest.mark.parametrize("word", ["zoo", "zoo/*.yaml", "zoo/**/*.yaml", "zoo/a.yaml", "zoo/none.onnx", "./zoo"])
def test_the_same_models_as_check_finds(folder: Path, word: str) -> None:
    found, errors = discover([word], source=False)
    assert sorted(names(word)) == sorted(source.name for source in found) != []
    assert not errors


@pytest.mark.parametrize(("word", "message"), [("bare", "holds nothing that"), ("*.pt2", "matches nothing that")])
def test_what_means_nothing(folder: Path, word: str, message: str) -> None:
    (error,) = streamed(word)
    assert isinstance(error, InputError)
    assert (error.path, error.message.startswith(message)) == (word, True)


def test_files_that_are_no_specs(folder: Path) -> None:
    (error,) = streamed("other")
    assert isinstance(error, InputError)
    assert error.message == "holds nothing to check: all of it is excluded, or no spec"


def test_what_the_config_leaves_out(folder: Path) -> None:
    found = list(streamed("zoo", wanted=lambda path: path.endswith("a.yaml")))
    assert [each.name for each in found if isinstance(each, Input)] == ["zoo/a.yaml"]


def test_modules_only_where_they_may_be(folder: Path) -> None:
    assert [each.kind for each in streamed("nets:Net") if isinstance(each, Input)] == ["module"]
    assert [each.kind for each in streamed("nets:Net", modules=False) if isinstance(each, Input)] == ["file"]
