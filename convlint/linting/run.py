"""Checking all inputs, in this process or in several, and one report on them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from convlint.engine.findings import assemble
from convlint.linting.fixed import Outcome
from convlint.linting.fixing import is_mended_together, outcome_of
from convlint.linting.one_input import Job, Task, resolve_targets, say
from convlint.linting.plan import Plan
from convlint.readers.inputs import Input
from convlint.readers.reading import Reading
from convlint.report import Report
from convlint.rulebook.book import Rulebook

_FILES_OF_PROCESS = 40  # that are worth one more which nobody asked for


def check_inputs(inputs: Sequence[Input], rulebook: Rulebook, job: Job) -> Report:
    """The report on all `inputs` under one rulebook, in their order; equal networks share estimates."""
    if job.gpus:
        resolve_targets(job.gpus)  # an unknown GPU is the caller's mistake, not each input's
    return _report([(source, rulebook, job) for source in inputs])


def check_planned(planned: Sequence[tuple[Input, Plan]]) -> Report:
    """The report on inputs, each by the config that holds for it; nobody asks what could be mended."""
    return _report([(source, plan.rulebook, replace(plan.job, fixing=None)) for source, plan in planned])


def _report(tasks: Sequence[Task]) -> Report:
    outcomes = check_tasks(tasks)
    results = [outcome.result for outcome in outcomes if outcome.result is not None]
    errors = [error for outcome in outcomes for error in outcome.errors]
    rules = {rule.info.code: rule for _, rulebook, _ in tasks for rule in rulebook.rules}
    return assemble(results, errors, Rulebook(rules.values()), files=len(tasks))


def check_tasks(
    tasks: Sequence[Task],
    *,
    jobs: int = 1,
    on_done: Callable[[str], None] = lambda _: None,
    settled: Callable[[Outcome], Outcome] = lambda outcome: outcome,
) -> list[Outcome]:
    """The outcome of each task, in their order whatever `jobs` is; `on_done` hears of each input that is done.

    With 0 of them, as many read folders of much Python as there are cores, and this one all else.
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
    jobs = jobs or _worth(tasks)
    if jobs > 1 and (len(tasks) > 1 or any(len(source.members) > 1 for source, _, _ in tasks)):
        from convlint.linting.source_parts import in_parts
        from convlint.linting.workers import check_in_workers

        most = sum(len(in_parts(task, jobs)) for task in tasks)
        if most > 1:
            return check_in_workers(tasks, min(jobs, most), on_done, settled)
    with Reading(on_output=say) as reading:
        reading.expect(source for source, _, _ in tasks)
        return [_told(settled(outcome_of(*task, reading)), task[0].name, on_done) for task in tasks]


def _worth(tasks: Sequence[Task]) -> int:
    """How many processes are worth it for these: more than one where a folder has much Python."""
    files = max((len(source.members) for source, _, _ in tasks if source.kind == "source"), default=0)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(min(cores, files // _FILES_OF_PROCESS), 1)


def _told(outcome: Outcome, path: str, on_done: Callable[[str], None]) -> Outcome:
    on_done(path)
    return outcome
