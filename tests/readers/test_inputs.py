"""A word is a module only where the user typed one: nothing that lies on disk is ever imported."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from checkout import ROOT
from hypothesis import given
from hypothesis import strategies as st

import convlint
from convlint.model.errors import InputFault
from convlint.readers import discovery
from convlint.readers.inputs import Input, Reference, decide, file_input, looks_like_reference, parse_reference


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("m:Net", Reference(module="m", attributes=("Net",))),
        ("a.b:zoo.make", Reference(module="a.b", attributes=("zoo", "make"))),
        ("m:Net()", Reference(module="m", attributes=("Net",), called=True)),
        (
            "m:Net(3, 'a', width=-1.5, deep=True, sizes=[1, (2, 3)], none=None, table={'a': 1})",
            Reference(
                module="m", attributes=("Net",), called=True, arguments=(3, "a"),
                keywords={"width": -1.5, "deep": True, "sizes": [1, (2, 3)], "none": None, "table": {"a": 1}},
            ),
        ),
        ("m:zoo.make('x').net.body", Reference(module="m", attributes=("zoo", "make"), called=True, arguments=("x",),
                                               then=("net", "body"))),
        (" m : Net ( 3 ) ", Reference(module="m", attributes=("Net",), called=True, arguments=(3,))),
    ],
)  # fmt: skip
def test_references_are_read(text: str, expected: Reference) -> None:
    assert parse_reference(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("m", "is not package.module:name"),
        ("m:", "is not package.module:name"),
        (":Net", "is not package.module:name"),
        ("a b:Net", "is not package.module:name"),
        ("m:Net(", "is no Python expression"),
        ("m:Net(foo())", "'foo()' is no literal"),
        ("m:Net(width)", "'width' is no literal"),
        ("m:Net(*[1, 2])", "arguments are written out, not spread"),
        ("m:Net(**{'a': 1})", "arguments are written out, not spread"),
        ("m:Net()()", "neither a name nor a name that is called once"),
        ("m:Net[0]", "neither a name nor a name that is called once"),
        ("m:__import__('os').system('x')", "neither a name nor a name that is called once"),
        ("m:lambda: 3", "neither a name nor a name that is called once"),
        ("m:Net(" + "[" * 60 + "]" * 60 + ")", "has too many brackets"),
        ("m:" + "a" * 3000, "longer than 2,000 characters"),
    ],
)
def test_what_is_wrong_is_said(text: str, message: str) -> None:
    with pytest.raises(InputFault) as caught:
        parse_reference(text)
    assert message in caught.value.message


@given(st.text(max_size=60))
def test_no_text_is_too_odd(text: str) -> None:
    for prefix in ("", "m:", "m:Net("):
        with suppress(InputFault):
            parse_reference(prefix + text)


@pytest.mark.parametrize(
    ("text", "looks"),
    [
        ("m:Net", True), ("a.b:c.d", True), ("m:Net(3, 'x y')", True), ("m:make('a:b').body", True),
        ("m:Net(foo())", True), ("C:\\\\net.onnx", False), ("m:", False), ("m:Net)", False), ("a b:c", False),
        ("https://x.y/z", False), ("m:Net(3", False), ("m:" + "a" * 3000, False),
    ],
)  # fmt: skip
def test_words_that_are_written_as_references(text: str, looks: bool) -> None:
    assert looks_like_reference(text) == looks


pytestmark = [pytest.mark.slow, pytest.mark.contract]

NAMES = ("evil:Net.yaml", "evil:Net", "evil:Net.onnx", "evil:Net.json", "evil:net.pt2")
SPEC = "version: 1\nlayers:\n  - {name: a, N: 8, C: 64, H: 8, W: 8, K: 64, R: 3, S: 3, dtype: fp16, layout: NHWC}\n"


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose `evil.py` leaves a mark when it is imported, beside files that are named like its members."""
    (tmp_path / "evil.py").write_text("open('ran', 'w').close()\nclass Net: yaml = onnx = json = None\n")
    for name in NAMES:
        (tmp_path / name).write_text(SPEC)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "evil:Net.yaml").write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("word", ["evil:Net", "pkg.mod:name.attr"])
def test_what_is_not_there_and_is_written_as_a_module_is_one(word: str) -> None:
    assert decide(word) == Input(kind="module", name=word)
    assert decide(word, modules=False) == Input(kind="file", name=word)


@pytest.mark.parametrize("word", ["./evil:Net", "evil:Net.yaml", "a b:c", "C:\\a.onnx", "evil:", ":Net", "nul\0:Net"])
def test_what_is_written_otherwise_is_a_file(word: str) -> None:
    assert decide(word).kind == "file"


def test_standard_input_and_a_file_of_its_name() -> None:
    assert decide("-") == Input(kind="stdin", name="-")
    assert file_input("-") == Input(kind="file", name="./-")


@pytest.mark.usefixtures("trap")
@pytest.mark.parametrize("make", [lambda p: p.write_text(""), lambda p: p.symlink_to("gone"), lambda p: p.symlink_to(p),
                                  lambda p: os.mkfifo(p), lambda p: p.mkdir()])  # fmt: skip
def test_whatever_has_the_name_on_disk_keeps_it_from_being_a_module(make: object) -> None:
    path = Path("evil:Other")
    make(path)  # type: ignore[operator]
    assert decide("evil:Other").kind == "file"


def test_a_name_that_cannot_be_looked_up_is_no_module(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: str) -> None:
        raise PermissionError(13, "denied", path)

    monkeypatch.setattr(os, "lstat", refused)
    assert decide("evil:Net").kind == "file"


@pytest.mark.usefixtures("trap")
def test_walking_and_patterns_find_files_only() -> None:
    for arguments in (["."], ["*"], ["evil:*"], ["**/*.yaml"], list(NAMES)):
        found, _ = discovery.discover(arguments)
        assert {source.kind for source in found} <= {"file", "source"}, arguments  # Python is read, and never run


def commands() -> list[list[str]]:
    words = [*NAMES, ".", "*.yaml", "./evil:Net.yaml", "sub/evil:Net.yaml"]
    return [
        *(["check", word] for word in words),
        ["check", "--specs-only", *NAMES],
        ["check", "--specs-only", "evil:Gone"],
        ["check", "--files-only", "evil:Gone"],
        ["check", "--jobs", "2", *NAMES],
        *([command, word] for command in ("estimate", "export", "config") for word in NAMES),
        ["sweep", "evil:Net.yaml", "-N", "1:4"],
        ["sweep", "evil:Net", "-N", "1:4"],
    ]


@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_no_command_runs_what_lies_on_disk(arguments: list[str], trap: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "convlint", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert not (trap / "ran").exists()
    assert ran.returncode in (0, 1, 3), ran.stderr


def test_absolute_paths_are_files(trap: Path) -> None:
    assert decide(str(trap / "evil:Net.yaml")).kind == "file"


def test_a_path_object_is_a_file(trap: Path) -> None:
    report = convlint.lint(Path("evil:Gone"))
    assert not (trap / "ran").exists()
    assert len(report.errors) == 1
    report = convlint.lint([Path("evil:Net.yaml")])
    assert [entry.layer.name for entry in report.layers] == ["a"]
