"""Parts of Python source: how files are dealt out, and what a file costs that convlint fails on."""

from pathlib import Path
from typing import Any

import pytest
from cases import for_each

from convlint.mend.checking import InputResult, Job
from convlint.mend.source_fixing import in_parts, outcome_of_part, outcome_of_parts
from convlint.readers.inputs import Input, file_input
from convlint.rulebook.book import load_rulebook


def _parts(members: int, jobs: int) -> list[int]:
    paths = tuple(f"{number:03}.py" for number in range(members))
    source = Input(kind="source", name=".", members=paths, root=".")
    tasks = in_parts((source, load_rulebook(), Job()), jobs)
    parts = [task[0].part for task in tasks]
    assert parts == [()] or tuple(path for part in parts for path in part) == paths
    return [len(part) for part in parts]


def test_files_are_dealt_out_evenly_and_neighbours_together() -> None:
    assert _parts(100, 2) == [50, 50]
    assert _parts(101, 3) == [33, 34, 34]
    assert _parts(16, 2) == [8, 8]


def test_tests_and_documents_which_are_not_run_count_for_nothing() -> None:
    paths = (*(f"net{number:02}.py" for number in range(16)), *(f"tests/test_{number:02}.py" for number in range(40)))
    task = Input(kind="source", name=".", members=paths, root="."), load_rulebook(), Job()
    assert [part[0].part for part in in_parts(task, 2)] == [paths[:8], paths[8:]]
    assert in_parts((Input(kind="source", name=".", members=paths[9:], root="."), *task[1:]), 2)[0][0].part == ()


def test_few_files_are_not_worth_a_process() -> None:
    assert _parts(15, 2) == [0]
    assert _parts(100, 1) == [0]
    assert _parts(30, 8) == [10, 10, 10]


def test_other_inputs_are_one_part() -> None:
    task = file_input("a.yaml"), load_rulebook(), Job()
    assert in_parts(task, 4) == [task]


NET = """from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(64, 62, 3, bias=True)
        self.bn = nn.BatchNorm2d(62)

    def forward(self, x):
        return self.bn(self.conv(x))
"""


def _failing(patch: pytest.MonkeyPatch, names: set[str]) -> None:
    """Let convlint fail on the files of these names, wherever in a run."""
    from convlint.readers.python.nn import reading

    original = reading.run_body

    def breaks(machine: Any, library: Any, path: str, *rest: Any) -> None:
        if path in names:
            raise KeyError("lost")
        original(machine, library, path, *rest)

    patch.setattr(reading, "run_body", breaks)


def _outcome(jobs: int, count: int = 16) -> InputResult:
    paths = tuple(f"net{number:02}.py" for number in range(count))
    for path in paths:
        Path(path).write_text(NET)
    task = Input(kind="source", name=".", members=paths, root="."), load_rulebook(), Job()
    parts = [outcome_of_part(source, job) for source, _, job in in_parts(task, jobs)]
    assert len(parts) == min(jobs, count // 8)
    return outcome_of_parts(task, parts)


def _found(outcome: InputResult) -> set[str]:
    assert outcome.result is not None
    return {finding.location.path for finding in outcome.result.findings if finding.rule.code == "CL506"}


@for_each("jobs", [1, 2])
@for_each("lost", [{"net03.py"}, {"net00.py", "net15.py"}, {f"net{number:02}.py" for number in range(9)}])
def test_a_file_that_convlint_fails_on_costs_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lost: set[str], jobs: int
) -> None:
    with monkeypatch.context() as patch:
        patch.chdir(tmp_path)
        everything = _found(_outcome(jobs))
        _failing(patch, lost)
        outcome = _outcome(jobs)
    assert [error.path for error in outcome.errors] == sorted(lost)
    assert all(error.internal and "KeyError: 'lost'" in error.message for error in outcome.errors)
    assert len(everything) == 16
    assert _found(outcome) == everything - lost
    assert outcome.result is not None
    assert outcome.result.source is not None
    assert (len(outcome.result.source.files), outcome.result.source.given) == (16 - len(lost), 16)


def test_where_convlint_fails_on_everything_the_search_ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    paths = {f"net{number:02}.py" for number in range(60)}
    _failing(monkeypatch, paths)
    outcome = _outcome(1, len(paths))
    assert outcome.result is None
    assert [error.path for error in outcome.errors] == sorted(paths)
