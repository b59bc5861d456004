"""The outcome of Python source, which one process reads or several, each a part; the report is the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

from convlint.linting.fixed import Outcome
from convlint.linting.one_input import Job, Task, last_resort
from convlint.linting.source import errors_of, judged_source, placed, reading_of
from convlint.model.source import SourceReading
from convlint.readers.inputs import Input
from convlint.readers.python.reader import joined
from convlint.report import InputError
from convlint.rulebook.book import Rulebook

_LEAST = 8  # files of a part: fewer are read sooner than a process starts


def in_parts(task: Task, jobs: int) -> list[Task]:
    """The task, or the tasks of reading parts of it: neighbours, which import the same files, together."""
    source, rulebook, job = task
    count = min(jobs, len(source.members) // _LEAST)
    if source.kind != "source" or count < 2:
        return [task]
    bounds = [len(source.members) * number // count for number in range(count + 1)]
    parts = [source.members[start:end] for start, end in pairwise(bounds)]
    return [(replace(source, part=part), rulebook, job) for part in parts]


def outcome_of_part(source: Input, job: Job) -> Outcome:
    """What a part says; it is judged with the others."""
    errors: list[InputError] = []
    with last_resort(errors, source.name):
        return Outcome(None, errors, reading=reading_of(source, job))
    return Outcome(None, errors)


def outcome_of_parts(task: Task, parts: Sequence[Outcome]) -> Outcome:
    """The outcome of a whole input whose parts were read elsewhere."""
    source, rulebook, job = task
    errors = [error for part in parts for error in part.errors]
    readings = [part.reading for part in parts if part.reading is not None]
    return _outcome(source, rulebook, job, joined(readings), errors)


def source_outcome(source: Input, rulebook: Rulebook, job: Job) -> Outcome:
    """The outcome of a whole input that is read here. Raises RuleError and UsageError only."""
    errors: list[InputError] = []
    with last_resort(errors, source.name):
        return _outcome(source, rulebook, job, joined([reading_of(source, job)]), errors)
    return Outcome(None, errors)


def _outcome(source: Input, rulebook: Rulebook, job: Job, reading: SourceReading, errors: list[InputError]) -> Outcome:
    errors += errors_of(source, reading)
    with last_resort(errors, source.name):
        result = judged_source(reading, rulebook, job)
        if job.fixing is not None:
            from convlint.linting.source_fixing import counted_source, mended_source

            if job.fixing.mends and not errors:
                return mended_source(source, rulebook, job, reading, result)
            result = counted_source(result, job.fixing)
        return Outcome(placed(result, reading.cells), errors)
    return Outcome(None, errors)
