"""Checking all inputs, in this process or in several, and one report on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from convlint.engine.results import assemble
from convlint.linting.calibrating import Files
from convlint.linting.fixed import Outcome
from convlint.linting.fixing import is_mended_together, outcome_of
from convlint.linting.one_input import Job, Task, resolve_targets, say
from convlint.readers.inputs import Input
from convlint.readers.reading import Reading
from convlint.report import Report
from convlint.rulebook.book import Rulebook


def check_inputs(
    inputs: Sequence[Input], rulebook: Rulebook, job: Job, calibrations: Callable[[Input], Files] = lambda _: ()
) -> Report:
    """The report on all `inputs` under one rulebook, in their order; equal networks share estimates."""
    if job.gpus:
        resolve_targets(job.gpus)  # an unknown GPU is the caller's mistake, not each input's
    outcomes = check_tasks([(each, rulebook, replace(job, calibrations=calibrations(each))) for each in inputs])
    results = [outcome.result for outcome in outcomes if outcome.result is not None]
    errors = [error for outcome in outcomes for error in outcome.errors]
    return assemble(results, errors, rulebook, files=len(inputs))


def check_tasks(
    tasks: Sequence[Task],
    *,
    jobs: int = 1,
    on_done: Callable[[str], None] = lambda _: None,
    settled: Callable[[Outcome], Outcome] = lambda outcome: outcome,
) -> list[Outcome]:
    """The outcome of each task, in their order whatever `jobs` is; `on_done` hears of each input that is done.

    `settled` says what becomes of each outcome, one after the other, as soon as there is one.
    """
    models = [task for task in tasks if is_mended_together(task[0], task[2])]
    if models:
        from convlint.linting.mending_models import mended_models

        others = [task for task in tasks if not is_mended_together(task[0], task[2])]
        found = iter(check_tasks(others, jobs=jobs, on_done=on_done, settled=settled) if others else ())
        with Reading(on_output=say) as reading:
            together = iter([settled(outcome) for outcome in mended_models(models, reading)])
        for source, _, _ in models:
            on_done(source.name)
        return [next(together if is_mended_together(source, job) else found) for source, _, job in tasks]
    if jobs > 1 and (len(tasks) > 1 or any(len(source.members) > 1 for source, _, _ in tasks)):
        from convlint.linting.source_parts import in_parts
        from convlint.linting.workers import check_in_workers

        most = sum(len(in_parts(task, jobs)) for task in tasks)
        if most > 1:
            return check_in_workers(tasks, min(jobs, most), on_done, settled)
    with Reading(on_output=say) as reading:
        reading.expect(source for source, _, _ in tasks)
        return [_told(settled(outcome_of(*task, reading)), task[0].name, on_done) for task in tasks]


def _told(outcome: Outcome, path: str, on_done: Callable[[str], None]) -> Outcome:
    on_done(path)
    return outcome
