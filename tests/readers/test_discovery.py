"""Which files a folder, a glob or a name stands for."""

import os
import subprocess
import time
from collections.abc import Iterable, Iterator
from io import BufferedReader
from pathlib import Path

import pytest
from audited import write_spec

from convlint.files.bounded_file import open_regular
from convlint.model.errors import InputFault, UsageError
from convlint.model.report import InputError
from convlint.readers import discovery
from convlint.readers.discovery import discover as discover_of_streaming
from convlint.readers.discovery import streamed
from convlint.readers.inputs import Input


def discover(arguments: Iterable[str]) -> tuple[tuple[str, ...], tuple[InputError, ...]]:
    found, errors = discovery.discover(arguments)
    return tuple(source.name for source in found), errors


SPEC = "version: 1\nlayers:\n  - {C: 8}\n"


@pytest.fixture
def tree(here: Path) -> Path:
    """A folder with inputs, with files that are none, and with folders that are not entered."""
    files = {
        "b.onnx": "", "a/net.keras": "", "a/deep/x.pt2": "", "spec.yaml": SPEC, "other.yaml": "name: ci\n",
        "spec.json": '{"version": 1, "layers": [{"K": 8}]}', "package.json": '{"name": "x"}', "model.pt": "",
        "notes.txt": "",
        ".hidden.onnx": "", ".git/g.onnx": "", ".venv/v.onnx": "", "node_modules/n.onnx": "", "__pycache__/p.onnx": "",
        "sharded/model.safetensors.index.json": "{}", "sharded/model-00001-of-00002.safetensors": "",
        "sharded/model-00002-of-00002.safetensors": "", "lone/model-00001-of-00002.safetensors": "",
    }  # fmt: skip
    for name, text in files.items():
        path = here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return here


FOUND = (
    "a/deep/x.pt2", "a/net.keras", "b.onnx", "lone/model-00001-of-00002.safetensors",
    "sharded/model.safetensors.index.json", "spec.json", "spec.yaml",
)  # fmt: skip


@pytest.mark.usefixtures("tree")
def test_a_folder_stands_for_every_file_that_a_reader_knows() -> None:
    assert discover(["."]) == (FOUND, ())
    assert discover(["a"]) == (("a/deep/x.pt2", "a/net.keras"), ())


@pytest.mark.usefixtures("tree")
def test_globs() -> None:
    assert discover(["*.onnx"]) == (("b.onnx",), ())
    assert discover(["**/*"]) == (FOUND, ())
    assert discover(["a/**/*.pt2"]) == (("a/deep/x.pt2",), ())
    assert discover(["**/*.pt2"]) == (("a/deep/x.pt2",), ())
    assert discover(["*/*.keras"]) == (("a/net.keras",), ())
    assert discover(["?.onnx"]) == (("b.onnx",), ())
    assert discover(["[ab]/**"])[0] == ("a/deep/x.pt2", "a/net.keras")
    assert discover(["[!a].onnx"]) == (("b.onnx",), ())
    assert discover(["[a.onnx"])[1] != ()
    here = str(Path.cwd())
    assert discover([f"{here}/*.onnx"]) == ((f"{here}/b.onnx",), ())


@pytest.mark.usefixtures("tree")
def test_what_is_named_is_kept_as_it_is() -> None:
    named = ("model.pt", "notes.txt", "other.yaml", ".git/g.onnx", "-", "pkg.mod:net", "not-there.onnx")
    assert discover(named) == (named, ())
    assert discover(["spec.yaml", "b.onnx", "spec.yaml"]) == (("spec.yaml", "b.onnx"), ())
    assert discover(["b.onnx", "."])[0] == ("b.onnx", *(path for path in FOUND if path != "b.onnx"))


@pytest.mark.usefixtures("tree")
def test_nothing_found_is_an_error() -> None:
    Path("empty").mkdir()
    found, errors = discover(["empty", "*.nothing", "b.onnx"])
    assert found == ("b.onnx",)
    assert [error.path for error in errors] == ["empty", "*.nothing"]
    assert ".safetensors" in errors[0].message


def test_links_to_folders_make_no_loops(tree: Path) -> None:
    (tree / "a" / "loop").symlink_to(tree, target_is_directory=True)
    (tree / "a" / "link.onnx").symlink_to(tree / "b.onnx")
    for argument in ("a", "a/**/*"):
        assert discover([argument]) == (("a/deep/x.pt2", "a/link.onnx", "a/net.keras"), ())
    (tree / "self").symlink_to("self")
    assert discover(["self"]) == (("self",), ())
    assert "self" not in discover(["."])[0]


def test_names_of_any_kind(tree: Path) -> None:
    for name in ("[x].onnx", "new\nline.onnx", "sp ace.onnx", "ünï.onnx"):
        (tree / "odd").mkdir(exist_ok=True)
        (tree / "odd" / name).write_text("")
        assert discover([f"odd/{name}"]) == ((f"odd/{name}",), ())
    assert len(discover(["odd"])[0]) == 4
    assert discover(["nul\0.onnx"]) == (("nul\0.onnx",), ())


@pytest.fixture
def closed(tree: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder that nobody may list, and a spec that nobody may read; root may do both, and runs these tests."""
    (tree / "closed").mkdir()
    (tree / "secret.yaml").write_text(SPEC)
    scandir, access = os.scandir, os.access

    def refused(path: str) -> Iterator[os.DirEntry[str]]:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    def unreadable(path: str) -> BufferedReader:
        if path.endswith("secret.yaml"):
            raise InputFault("cannot be read: Permission denied")
        return open_regular(path)

    monkeypatch.setattr(os, "scandir", refused)
    monkeypatch.setattr(os, "access", lambda path, mode: not path.endswith("secret.yaml") and access(path, mode))
    monkeypatch.setattr("convlint.readers.spec.fields.open_regular", unreadable)
    return os.path.join(".", "closed")


@pytest.mark.parametrize("argument", [".", "**/*"])
def test_what_nobody_may_read_is_not_passed_over(closed: str, argument: str) -> None:
    found, errors = discover([argument])
    assert "secret.yaml" in found  # its reader says why it cannot be read
    assert "spec.yaml" in found
    assert [(os.path.normpath(each.path), each.message) for each in errors] == [
        ("closed", "cannot be read: Permission denied")
    ]
    assert InputError(path=errors[0].path, message=errors[0].message) in list(streamed(argument))


def test_what_is_excluded_may_be_closed(closed: str) -> None:
    _, errors = discovery.discover(["."], wanted=lambda path: not path.startswith((closed, "closed")))
    assert errors == ()


@pytest.mark.usefixtures("tree")
def test_pipes_are_not_opened() -> None:
    os.mkfifo("a/pipe.yaml")
    assert discover(["a"])[0] == ("a/deep/x.pt2", "a/net.keras")


@pytest.mark.usefixtures("tree")
def test_there_is_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "MOST_FILES", 3)
    found, errors = discover(["."])
    assert found == ()
    assert "more than 3 files" in errors[0].message


@pytest.mark.parametrize(
    "pattern",
    [
        "*a" * 60 + "x",
        "**/" * 100 + "x",
        "?*" * 200 + "0",
        "*[a-z]" * 80 + "0",
        "**/*a*a*b/" * 40 + "x",
        "[" * 400 + "*",
    ],
)
@pytest.mark.usefixtures("tree")
def test_no_pattern_takes_long(pattern: str) -> None:
    deep = Path("/".join(["aa" * 50] * 30))
    deep.mkdir(parents=True)
    (deep / ("a" * 200 + ".onnx")).write_text("")
    start = time.process_time()
    found, errors = discover([pattern])
    assert (found, [error.path for error in errors]) == ((), [pattern])
    assert time.process_time() - start < 5


@pytest.mark.usefixtures("tree")
def test_sets_in_patterns() -> None:
    for pattern in ("[z-a].onnx", "[[a].onnx", "[].onnx", "[!].onnx"):
        assert discover([pattern])[0] == ()
    for pattern in ("[b-b].onnx", "[!z-a].onnx", "[]b].onnx", "[!]]*.onnx"):
        assert discover([pattern])[0] == ("b.onnx",)


@pytest.mark.usefixtures("tree")
def test_patterns_have_a_length() -> None:
    with pytest.raises(UsageError, match="longer than 500 characters"):
        discover(["*" * 501])
    assert discover(["*" * 500])[0] == ("b.onnx", "spec.json", "spec.yaml")


@pytest.mark.parametrize("argument", ["deep", "deep/**/*.onnx", "deep/*"])
def test_folders_without_end_are_an_error_and_no_recursion(argument: str, tree: Path) -> None:
    here = os.open(tree, os.O_RDONLY)
    try:
        os.mkdir("deep", dir_fd=here)
        there = os.open("deep", os.O_RDONLY, dir_fd=here)
        for _ in range(1100):
            os.mkdir("d", dir_fd=there)
            below = os.open("d", os.O_RDONLY, dir_fd=there)
            os.close(there)
            there = below
        os.close(there)
    finally:
        os.close(here)
    found, errors = discover([argument, "b.onnx"])
    assert found == ("b.onnx",)
    assert [error.message for error in errors] == ["holds folders that nest deeper than 200 levels"]
    subprocess.run(["rm", "-rf", "deep"], check=True)  # shutil would recurse as deep


def test_files_of_nothing_but_white_space_are_passed_over_at_once(tmp_path: Path) -> None:
    for name, text in (("lines.yaml", "\n" * 65536), ("blanks.json", " " * 65536), ("mixed.yml", " \n" * 32768)):
        (tmp_path / name).write_text(text)
    before = time.process_time()
    assert discover([str(tmp_path)])[0] == ()
    assert time.process_time() - before < 2


@pytest.fixture
def folder(here: Path) -> Path:
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
    return here


def names(word: str) -> list[str]:
    return [found.name for found in streamed(word) if isinstance(found, Input)]


@pytest.mark.parametrize("word", ["zoo", "zoo/*.yaml", "zoo/**/*.yaml", "zoo/a.yaml", "zoo/none.onnx", "./zoo"])
def test_the_same_models_as_check_finds(folder: Path, word: str) -> None:
    found, errors = discover_of_streaming([word], source=False)
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
