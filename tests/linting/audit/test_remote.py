"""What a worker of a cluster makes of a request: files where they lie, files that were sent, and projects it lacks."""

from __future__ import annotations

import os
import pickle
import tempfile
from pathlib import Path

import pytest
from onnx import helper
from onnx_graphs import model, save, value, weight

from convlint.linting.audit.remote import Answer, Common, Request, answer, is_alike
from convlint.linting.audit.seal import stamp_of
from convlint.linting.audit.subject import Subject
from convlint.linting.audit.task import Setting, Task, audited
from convlint.linting.one_input import Job
from convlint.readers.inputs import Input, Model, decide, file_input
from convlint.readers.reading import Reading
from convlint.verdict.select import Policy

SPEC = "version: 1\nlayers:\n  - {name: a, N: 64, C: 62, H: 56, W: 56, K: 64, R: 3, S: 3, dtype: fp16, layout: NHWC}\n"
SETTING = Setting(folders=(), job=Job(), policy=Policy(), codes=frozenset(), severities={})


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.yaml").write_text(SPEC)
    Path("broken.yaml").write_text("layers: [")
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="only")
    graph = model([node], [value("x", [8, 3, 32, 32])], ["y"], [weight("w", [16, 3, 3, 3])])
    save(tmp_path, graph, "net.onnx")


def asked(source: Input, *, folder: str, stamp: str = "", content: bytes | None = None) -> Answer:
    request = Request(number=0, subject=Subject(name="m", source=source), stamp=stamp)
    common = Common(setting=SETTING, folder=folder)
    found: Answer = pickle.loads(answer(pickle.dumps(request), pickle.dumps(common), content))
    return found


@pytest.mark.parametrize("name", ["a.yaml", "broken.yaml", pytest.param("net.onnx", marks=pytest.mark.slow)])
def test_a_file_is_the_same_where_it_lies_and_where_it_was_sent(name: str, tmp_path: Path) -> None:
    source = file_input(name)
    with Reading() as reading:
        here = audited(Task(number=0, subject=Subject(name="m", source=source), setting=SETTING), reading)
    where = asked(source, folder=str(tmp_path), stamp=stamp_of(source)).audited
    content = Path(name).read_bytes()
    sent = asked(source, folder="/no/such/folder", stamp="[(1, 1, 1, 1, 1)]", content=content).audited
    assert where is not None
    assert sent is not None
    assert here.rows == where.rows == sent.rows
    assert here.digest == where.digest == sent.digest
    assert here.digest


def test_what_was_sent_is_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    room = tmp_path / "room"
    room.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(room))
    assert asked(file_input("a.yaml"), folder="/no/such/folder", content=SPEC.encode()).audited
    assert os.listdir(room) == []


def test_a_file_that_is_not_there_or_another_is_asked_for(tmp_path: Path) -> None:
    source = file_input("a.yaml")
    stamp = stamp_of(source)
    assert asked(source, folder="/no/such/folder", stamp=stamp) == Answer()
    (tmp_path / "a.yaml").write_text(SPEC + "\n")
    assert asked(source, folder=str(tmp_path), stamp=stamp) == Answer()
    (tmp_path / "a.yaml").unlink()
    assert asked(source, folder=str(tmp_path), stamp=stamp) == Answer()


def test_the_same_file_on_another_machine() -> None:
    """Devices, numbers and times of change differ there."""
    source = file_input("a.yaml")
    status = os.stat("a.yaml")
    assert is_alike(f"[(7, 7, {status.st_size}, {status.st_mtime_ns}, 7)]", source)
    assert not is_alike(f"[(7, 7, {status.st_size}, {status.st_mtime_ns + 1}, 7)]", source)
    assert not is_alike(f"[(7, 7, {status.st_size + 1}, {status.st_mtime_ns}, 7)]", source)
    assert is_alike("", source)


def test_a_path_from_the_root_needs_no_common_folder(tmp_path: Path) -> None:
    source = file_input(str(tmp_path / "a.yaml"))
    assert asked(source, folder="/no/such/folder", stamp=stamp_of(source)).audited


def test_what_nobody_sees_is_judged_in_the_common_folder_alone(tmp_path: Path) -> None:
    gone = file_input("gone.yaml")
    found = asked(gone, folder=str(tmp_path)).audited
    assert found is not None
    assert [row.path for row in found.rows.errors] == ["gone.yaml"]
    assert asked(gone, folder="/no/such/folder") == Answer()


@pytest.mark.parametrize(("folder", "inner"), [("/no/such/folder", "."), ("", "no/such")])
def test_code_is_not_run_where_its_project_is_not(folder: str, inner: str, tmp_path: Path) -> None:
    known = Model(reference="net:Net", path="convlint.toml", folder=inner)
    source = Input(kind="module", name="mine", model=known)
    folder = folder or str(tmp_path)
    found = asked(source, folder=folder).audited
    assert found is not None
    message = f"its code cannot be run: {os.path.join(folder, inner)} is not on the cluster's disks"
    assert [row.message for row in found.rows.errors] == [message]
    assert found.digest is None


def test_a_module_named_alone() -> None:
    found = asked(decide("net:Net"), folder="/no/such/folder").audited
    assert found is not None
    message = "its code cannot be run: /no/such/folder is not on the cluster's disks"
    assert [row.message for row in found.rows.errors] == [message]
