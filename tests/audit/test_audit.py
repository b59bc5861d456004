"""Processes audit what one would have audited; a model that kills its process is tried again, and then an error."""

import os
import signal
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from audited import write_spec

from convlint.audit.audit import audit_here, audit_in_processes
from convlint.audit.subjects import Subject
from convlint.audit.task import TRIES, Task, setting_of
from convlint.readers.children.child import Child
from convlint.readers.inputs import file_input
from convlint.run.plan import Options, RunPlanner

pytestmark = pytest.mark.slow


def tasks_of(names: list[str]) -> list[Task]:
    setting = setting_of(RunPlanner(Options(isolated=True), date(2026, 1, 1)).plan(None))
    return [Task(subject=Subject(name=name, source=file_input(name)), setting=setting) for name in names]


@pytest.fixture
def names(here: Path) -> list[str]:
    return [write_spec(Path(f"{number}.yaml"), C=60 + number) for number in range(8)]


def test_all_answers_are_the_same(names: list[str]) -> None:
    tasks = tasks_of(names)
    here = {task.subject.name: audited.rows for task, audited in audit_here(iter(tasks))}
    several = {task.subject.name: audited.rows for task, audited in audit_in_processes(iter(tasks), 3)}
    assert several == here
    assert len(here) == 8


def test_a_model_without_the_sizes_that_a_time_needs_is_an_error(tmp_path: Path) -> None:
    """As where it is checked."""
    path = tmp_path / "net.yaml"
    path.write_text("version: 1\nlayers:\n  - {C: 8, H: 9, W: 9, K: 8, kernel_size: 3, dtype: fp16}\n")
    ((_, audited),) = audit_here(iter(tasks_of([str(path)])))
    (error,) = audited.rows.errors
    assert error.message.startswith("nothing could be priced: no layer has the sizes that a time needs; layer1 lacks N")
    assert len(audited.rows.layers) == 1


def test_tasks_are_asked_for_as_there_is_room(names: list[str]) -> None:
    asked: list[str] = []

    def tasks() -> Iterator[Task]:
        for task in tasks_of(names):
            asked.append(task.subject.name)
            yield task

    answers = audit_in_processes(tasks(), 1)
    next(answers)
    assert len(asked) == 2
    answers.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(("deaths", "lost"), [(TRIES - 1, False), (TRIES, True)])
def test_a_model_that_kills_its_process(
    names: list[str], monkeypatch: pytest.MonkeyPatch, deaths: int, lost: bool
) -> None:
    ask, left = Child.ask, [deaths]

    def dying(self: Child, request: bytes, timeout_s: float | None = None) -> bytes:
        if b"2.yaml" in request and left[0]:
            left[0] -= 1
            os.kill(self._process.pid, signal.SIGKILL)
        return ask(self, request, timeout_s)

    monkeypatch.setattr(Child, "ask", dying)
    found = {task.subject.name: audited for task, audited in audit_in_processes(iter(tasks_of(names)), 2)}
    assert {name for name, audited in found.items() if audited.rows.errors} == ({"2.yaml"} if lost else set())
    assert len(found) == 8
    if lost:
        (error,) = found["2.yaml"].rows.errors
        assert error.message.startswith("the process that audits it died 3 times")
        assert found["2.yaml"].digest is None  # it is tried again
