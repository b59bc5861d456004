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
from threading import Lock, local

from convlint.errors import UsageError
from convlint.files.languages.saying import speaking
from convlint.linting.fixed import Outcome
from convlint.linting.fixing import outcome_of
from convlint.linting.one_input import Task, say
from convlint.linting.source_parts import in_parts, outcome_of_part, outcome_of_parts
from convlint.readers.children.child import Child, ChildDied
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
    workers = _Workers()
    lock = Lock()

    def done(task: Task, outcome: Outcome) -> Outcome:
        with lock:
            outcome = settled(outcome)
            on_done(task[0].name)
        return outcome

    def one(task: Task) -> Outcome:
        outcome = workers.check(task)
        return outcome if task[0].part else done(task, outcome)

    several = [in_parts(task, jobs) for task in tasks]
    pool = ThreadPoolExecutor(jobs)
    try:
        found = pool.map(one, [part for parts in several for part in parts])
        outcomes = []
        for task, parts in zip(tasks, several, strict=True):
            own = list(islice(found, len(parts)))
            outcomes.append(own[0] if parts == [task] else done(task, outcome_of_parts(task, own)))
        workers.finish()
        return outcomes
    finally:
        workers.end()  # interrupted, the threads learn from it that nobody waits for them
        pool.shutdown(cancel_futures=True)


class _Workers:
    """A process for each thread that asks for one."""

    def __init__(self) -> None:
        self._mine = local()
        self._all: list[Child] = []
        self._ended = False

    def check(self, task: Task) -> Outcome:
        source, rulebook, job = task
        try:
            if self._ended:
                return Outcome(None, [])
            worker: Child | None = getattr(self._mine, "worker", None)
            if worker is None:
                worker = self._mine.worker = Child("convlint.linting.workers:work", on_output=say)
                self._all.append(worker)
            # Both ends are convlint's own code: what a stranger's model says has been through the checks of the wire.
            asked = pickle.dumps((source, rulebook.folders, rulebook.language, job, gc.get_threshold()))
            result: Outcome | str = pickle.loads(worker.ask(asked))
        except ChildDied as died:
            self._mine.worker = None
            what = "could not be started" if died.unstarted else "died"
            return Outcome(None, [InputError(path=source.name, message=f"the process that checks it {what} ({died})")])
        if isinstance(result, str):
            raise UsageError(result)
        return result

    def finish(self) -> None:
        """All is done: what their modules printed last is still to come."""
        for worker in self._all:
            worker.finish()

    def end(self) -> None:
        """Whatever they are at."""
        self._ended = True
        for worker in self._all:
            worker.close()


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
