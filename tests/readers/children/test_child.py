"""A child process answers, or its end is the answer; whatever it prints stays apart."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from convlint.readers.children.child import Child, ChildDied

pytestmark = pytest.mark.slow

CODE = """
import os, signal, sys, time
def echo(channel):
    while (request := channel.receive()) is not None:
        channel.send(request[::-1])
def noisy(channel):
    print("printed"); os.system("echo shell"); os.write(1, b"written")
    channel.send(sys.stdin.read().encode() + b"quiet")
def dies(channel):
    how = channel.receive().decode()
    sys.stderr.write("last words"); sys.stderr.flush()
    os._exit(7) if how == "exit" else os.kill(os.getpid(), getattr(signal, how))
def sleeps(channel):
    os.fork() or time.sleep(1000)
    open(channel.receive().decode(), "w").write(str(os.getpid()))
    time.sleep(1000)
def folder(channel):
    channel.send(os.pathsep.join(sys.path).encode())
def huge(channel):
    import struct
    os.write(channel._answers.fileno(), struct.pack(">Q", 2**60)); time.sleep(1000)
def half(channel):
    import struct
    os.write(channel._answers.fileno(), struct.pack(">Q", 100) + b"x")
"""


@pytest.fixture(autouse=True)
def _entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "entries.py").write_text(CODE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)


@pytest.fixture
def heard() -> list[str]:
    return []


def child(name: str, heard: list[str] | None = None) -> Iterator[Child]:
    made = Child(f"entries:{name}", on_output=None if heard is None else heard.append)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.contract
def test_answers_in_order() -> None:
    for one in child("echo"):
        assert [one.ask(text) for text in (b"abc", b"x" * 300_000)] == [b"cba", b"x" * 300_000]


def test_what_it_prints_stands_apart_and_its_standard_input_is_empty(heard: list[str]) -> None:
    for one in child("noisy", heard):
        assert one.answer() == b"quiet"
    assert sorted("".join(heard).split()) == ["printed", "shell", "written"] or "written" in "".join(heard)
    assert {"printed", "shell"} <= set("".join(heard).replace("written", "").split())


@pytest.mark.contract
@pytest.mark.parametrize(
    ("how", "name", "status"), [("exit", None, 7), ("SIGABRT", "SIGABRT", -6), ("SIGKILL", "SIGKILL", -9)]
)
def test_its_death_is_told(how: str, name: str | None, status: int) -> None:
    for one in child("dies"):
        with pytest.raises(ChildDied) as died:
            one.ask(how.encode())
        assert (died.value.signal_name, died.value.status, died.value.timed_out) == (name, status, False)
        assert died.value.tail == "last words"


def test_a_child_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    for one in child("sleeps"):
        with pytest.raises(ChildDied) as died:
            one.ask(str(mark).encode(), timeout_s=3)
        assert died.value.timed_out
        assert ended(int(mark.read_text()))


def ended(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("name", ["huge", "half"])
def test_an_answer_that_is_none_is_a_death(name: str) -> None:
    for one in child(name):
        with pytest.raises(ChildDied):
            one.ask(b"")


@pytest.mark.contract
def test_the_current_folder_is_no_place_to_import_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "checkout").mkdir()
    (tmp_path / "checkout" / "json.py").write_text("raise SystemExit('imported from the current folder')\n")
    monkeypatch.chdir(tmp_path / "checkout")
    for one in child("folder"):
        paths = one.ask(b"").decode().split(os.pathsep)
        assert "" not in paths
        assert str(tmp_path / "checkout") not in paths


def test_asking_a_dead_child_again_is_a_death_too() -> None:
    for one in child("dies"):
        for _ in range(2):
            with pytest.raises(ChildDied):
                one.ask(b"exit", timeout_s=5)
