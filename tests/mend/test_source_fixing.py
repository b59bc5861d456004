"""Parts of Python source: how files are dealt out."""

from __future__ import annotations

from convlint.mend.checking import Job
from convlint.mend.source_fixing import in_parts
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


def test_few_files_are_not_worth_a_process() -> None:
    assert _parts(15, 2) == [0]
    assert _parts(100, 1) == [0]
    assert _parts(30, 8) == [10, 10, 10]


def test_other_inputs_are_one_part() -> None:
    task = file_input("a.yaml"), load_rulebook(), Job()
    assert in_parts(task, 4) == [task]
