"""Files that several inputs are made of are written once, all of them or none."""

import os
from pathlib import Path
from unittest.mock import patch

import pytest

from convlint.cli.commands import fix
from convlint.cli.commands.fix import Mender
from convlint.engine.findings import NetworkResult
from convlint.mend.checking import Edited, Fixed, InputResult
from convlint.model.errors import UsageError

OLD, NEW = b"WIDTH = 60\n", b"WIDTH = 64\n"


@pytest.fixture(autouse=True)
def _here(here: Path) -> None:
    for name in ("a.py", "b.py"):
        Path(name).write_bytes(OLD)


def result(path: str) -> NetworkResult:
    return NetworkResult(path=path, labels=(), mode="training", layers=(), findings=(), skipped=())


def outcome(*names: str, count: int = 1) -> InputResult:
    files = tuple(Edited(path=name, before=OLD, after=NEW) for name in names)
    return InputResult(result("after"), [], Fixed(files=files, count=count, unmended=result("before")))


def contents() -> list[bytes]:
    return [Path(name).read_bytes() for name in ("a.py", "b.py")]


def test_a_file_of_two_inputs_is_written_once() -> None:
    mender = Mender(diff=False)
    settled = [mender.settled(each) for each in (outcome("a.py", "b.py"), outcome("a.py", "b.py", count=2))]
    assert contents() == [NEW, NEW]
    assert [each.result == result("after") for each in settled] == [True, True]
    assert list(mender.done()) == ["fixed 3 findings in 2 files"]


def test_where_one_cannot_be_written_none_is_for_any_input(capsys: pytest.CaptureFixture[str]) -> None:
    write = fix.replace_file

    def failing(path: str, content: bytes) -> None:
        if path == "b.py" and content == NEW:
            raise UsageError("b.py cannot be written: no space left")
        write(path, content)

    mender = Mender(diff=False)
    with patch.object(fix, "replace_file", failing):
        settled = [mender.settled(each) for each in (outcome("a.py", "b.py"), outcome("a.py", "b.py"))]
    assert contents() == [OLD, OLD]
    assert [each.result == result("before") for each in settled] == [True, True]
    said = [error.message for each in settled for error in each.errors]
    assert said == ["is not fixed: b.py cannot be written: no space left"]
    assert list(mender.done()) == []


def test_a_diff_shows_each_file_once(capsys: pytest.CaptureFixture[str]) -> None:
    mender = Mender(diff=True)
    for each in (outcome("a.py"), outcome("a.py")):
        mender.settled(each)
    mender.show_diff("never")
    assert capsys.readouterr().out == "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-WIDTH = 60\n+WIDTH = 64\n"
    assert contents() == [OLD, OLD]


def test_new_source_is_of_another_second_than_its_bytecode() -> None:
    os.utime("a.py", (4e9, 4e9))
    Mender(diff=False).settled(outcome("a.py"))
    assert int(os.stat("a.py").st_mtime) != 4e9
    now = int(os.stat("b.py").st_mtime)
    with patch.object(fix, "replace_file", lambda path, content: None):  # as if within the second
        Mender(diff=False).settled(outcome("b.py"))
    assert int(os.stat("b.py").st_mtime) == now + 1
