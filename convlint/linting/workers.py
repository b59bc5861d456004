"""Checking inputs in several processes: each takes the next one, and what becomes of it harms that input alone.

The files of Python source, which are one input, are read in parts, and judged together where the parts come back.
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import islice
from threading import Lock

from convlint.errors import UsageError
from convlint.files.languages.saying import speaking
from convlint.linting.fixed import Outcome
from convlint.linting.fixing import outcome_of
from convlint.linting.one_input import Task, say
from convlint.linting.processes import Processes
from convlint.linting.source_parts import in_parts, outcome_of_part, outcome_of_parts
from convlint.readers.children.child import ChildDied
from convlint.readers.children.serve import Channel
from convlint.readers.reading import Reading
from convlint.report import InputError
from convlint.rulebook.book import Rulebook, load_rulebook


def check_in_workers(
    tasks: Sequence[Task],
    jobs: int,
    on_done: Callable[[str], None],
    settled: Callable[[Outcome], Outcome] = lambda outcome: outcome,
) -> list[Outcome]:
    """The outcome of each task, in their order. Raises what a worker raises for wrong rules or usage."""
    processes = Processes("convlint.linting.workers:work")
    lock = Lock()

    def done(task: Task, outcome: Outcome) -> Outcome:
        with lock:
            outcome = settled(outcome)
            on_done(task[0].name)
        return outcome

    def one(task: Task) -> Outcome:
        outcome = _checked(processes, task)
        return outcome if task[0].part else done(task, outcome)

    several = [in_parts(task, jobs) for task in tasks]
    pool = ThreadPoolExecutor(jobs)
    try:
        found = pool.map(one, [part for parts in several for part in parts])
        outcomes = []
        for task, parts in zip(tasks, several, strict=True):
            own = list(islice(found, len(parts)))
            outcomes.append(own[0] if parts == [task] else done(task, outcome_of_parts(task, own)))
        processes.finish()
        return outcomes
    finally:
        processes.end()  # interrupted, the threads learn from it that nobody waits for them
        pool.shutdown(cancel_futures=True)


def _checked(processes: Processes, task: Task) -> Outcome:
    """The outcome of a task from one of the processes, whose death is an error of its input."""
    source, rulebook, job = task
    if processes.ended:
        return Outcome(None, [])
    try:
        # Both ends are convlint's own code: what a stranger's model says has been through the checks of the wire.
        asked = pickle.dumps((source, rulebook.folders, rulebook.language, job, gc.get_threshold()))
        result: Outcome | str = pickle.loads(processes.ask(asked))
    except ChildDied as died:
        what = "could not be started" if died.unstarted else "died"
        return Outcome(None, [InputError(path=source.name, message=f"the process that checks it {what} ({died})")])
    if isinstance(result, str):
        raise UsageError(result)
    return result


@cache
def _rulebook(folders: tuple[str, ...], language: str) -> Rulebook:
    """Rules hold code and cannot travel, so each process loads its own."""
    return load_rulebook(folders, language)


def work(channel: Channel) -> None:
    """A worker's life: checks what it is given until there is no more."""
    with Reading(on_output=say) as reading:
        while (request := channel.receive()) is not None:
            source, folders, language, job, collected = pickle.loads(request)
            gc.set_threshold(*collected)  # as seldom as in the process that asks
            result: Outcome | str
            try:
                with speaking(language, both=True):
                    if source.part:
                        result = outcome_of_part(source, job)
                    else:
                        result = outcome_of(source, _rulebook(folders, language), job, reading)
            except UsageError as error:
                result = str(error)
            channel.send(pickle.dumps(result))
