"""Checks inputs in several processes: one child for each thread that waits, and what such a child runs."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import islice
from threading import Lock, local

from convlint.mend.checking import InputResult, Task, say
from convlint.mend.outcome import outcome_of
from convlint.model.errors import UsageError
from convlint.model.report import InputError
from convlint.readers.children.child import Channel, Child, ChildDied
from convlint.readers.reading import Reading
from convlint.rulebook.book import Rulebook, load_rulebook


class Processes:
    """Children that all run the same work; whatever their code prints is passed on."""

    def __init__(self, work: str) -> None:
        """`work` is module:function, which serves a channel."""
        self._work = work
        self._mine = local()
        self._all: list[Child] = []
        self.ended = False  # nobody waits for answers any more

    def ask(self, request: bytes) -> bytes:
        """The answer of this thread's process. Raises ChildDied; the next request goes to another one then."""
        child: Child | None = getattr(self._mine, "child", None)
        try:
            if child is None:
                child = self._mine.child = Child(self._work, on_output=say)
                self._all.append(child)
            return child.ask(request)
        except ChildDied:
            self._mine.child = None
            raise

    def finish(self) -> None:
        """Ends all processes, whose work is done, and passes on what their modules printed last."""
        for child in self._all:
            child.finish()

    def end(self) -> None:
        """Ends all processes, whatever they do."""
        self.ended = True
        for child in self._all:
            child.close()


def in_parts(task: Task, jobs: int) -> list[Task]:
    """The task, or the parts of it that several processes read."""
    if task[0].kind != "source":
        return [task]
    from convlint.mend import source_fixing  # a spec needs nothing that reads Python

    return source_fixing.in_parts(task, jobs)


def check_in_workers(
    tasks: Sequence[Task],
    jobs: int,
    on_done: Callable[[str], None],
    settled: Callable[[InputResult], InputResult] = lambda outcome: outcome,
) -> list[InputResult]:
    """The outcome of each task, in their order. Raises what a worker raises for wrong rules or usage."""
    processes = Processes("convlint.run.workers:work")
    lock = Lock()

    def done(task: Task, outcome: InputResult) -> InputResult:
        with lock:
            outcome = settled(outcome)
            on_done(task[0].name)
        return outcome

    def check(task: Task) -> InputResult:
        outcome = _checked(processes, task)
        return outcome if task[0].part else done(task, outcome)

    all_parts = [in_parts(task, jobs) for task in tasks]
    pool = ThreadPoolExecutor(jobs)
    try:
        answers = pool.map(check, [part for parts in all_parts for part in parts])
        outcomes = []
        for task, parts in zip(tasks, all_parts, strict=True):
            own = list(islice(answers, len(parts)))
            if parts == [task]:
                outcomes.append(own[0])
                continue
            from convlint.mend.source_fixing import outcome_of_parts

            outcomes.append(done(task, outcome_of_parts(task, own)))
        processes.finish()
        return outcomes
    finally:
        processes.end()  # interrupted, the threads learn from it that nobody waits for them
        pool.shutdown(cancel_futures=True)


def _checked(processes: Processes, task: Task) -> InputResult:
    """The outcome of a task from one of the processes, whose death is an error of its input."""
    source, rulebook, job = task
    if processes.ended:
        return InputResult(None, [])
    try:
        # Both ends are convlint's own code: what a stranger's model says has been through the checks of the wire.
        request = pickle.dumps((source, rulebook.folders, job, gc.get_threshold()))
        result: InputResult | str = pickle.loads(processes.ask(request))
    except ChildDied as died:
        what = "could not be started" if died.unstarted else "died"
        return InputResult(None, [InputError(path=source.name, message=f"the process that checks it {what} ({died})")])
    if isinstance(result, str):
        raise UsageError(result)
    return result


@cache
def _rulebook(folders: tuple[str, ...]) -> Rulebook:
    """The rules, loaded once in each process: they hold compiled code, which cannot be pickled."""
    return load_rulebook(folders)


def work(channel: Channel) -> None:
    """The loop of a worker process: checks each input that it is sent."""
    with Reading(on_output=say) as reading:
        while (request := channel.receive()) is not None:
            source, folders, job, collected = pickle.loads(request)
            gc.set_threshold(*collected)  # as seldom as in the process that asks
            result: InputResult | str
            try:
                if source.part:
                    from convlint.mend.source_fixing import outcome_of_part

                    result = outcome_of_part(source, job)
                else:
                    result = outcome_of(source, _rulebook(folders), job, reading)
            except UsageError as error:
                result = str(error)
            channel.send(pickle.dumps(result))
