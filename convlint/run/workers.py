"""Checks inputs in several processes: one child for each thread that waits, and what such a child runs."""

from __future__ import annotations

import gc
import pickle
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import islice
from threading import Lock, local

from convlint.mend.checking import InputResult, Task, say
from convlint.mend.outcome import outcome_of
from convlint.model.errors import UsageError
from convlint.model.report import InputError
from convlint.readers.children.child import Channel, Child, ChildDied
from convlint.readers.reading import Reading
from convlint.rulebook.book import Rulebook, load_rulebook

NextFiles = Callable[[], tuple[str, ...]]
_AT_ONCE = 4  # files that a process asks for


class Files:
    """The files of one input, dealt out to processes: each begins with its own part, and then helps the slowest."""

    def __init__(self, parts: Sequence[Sequence[str]]) -> None:
        self._left = [deque(part) for part in parts]
        self._lock = Lock()

    def next(self, number: int) -> tuple[str, ...]:
        """What the process of that part reads next; nothing once all files are dealt out."""
        with self._lock:
            left = self._left[number]
            if left:
                return tuple(left.popleft() for _ in range(min(_AT_ONCE, len(left))))
            left = max(self._left, key=len)  # from its end, which its own process comes to last
            return tuple(left.pop() for _ in range(min(_AT_ONCE, len(left))))


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
        """All is done: what their modules printed last is still to come."""
        for child in self._all:
            child.finish()

    def end(self) -> None:
        """Whatever they are at."""
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

    def one(task: Task, next_files: NextFiles | None) -> InputResult:
        outcome = _checked(processes, task, next_files)
        return outcome if task[0].part else done(task, outcome)

    several = [in_parts(task, jobs) for task in tasks]
    asked: list[tuple[Task, NextFiles | None]] = []
    for parts in several:
        files = Files([source.part for source, _, _ in parts])
        asked += [(each, partial(files.next, number) if each[0].part else None) for number, each in enumerate(parts)]
    pool = ThreadPoolExecutor(jobs)
    try:
        found = pool.map(one, *zip(*asked, strict=True))
        outcomes = []
        for task, parts in zip(tasks, several, strict=True):
            own = list(islice(found, len(parts)))
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


def _checked(processes: Processes, task: Task, next_files: NextFiles | None) -> InputResult:
    """The outcome of a task from one of the processes, whose death is an error of its input.

    A process that reads a part asks for `next_files` as it goes.
    """
    source, rulebook, job = task
    if processes.ended:
        return InputResult(None, [])
    try:
        # Both ends are convlint's own code: what a stranger's model says has been through the checks of the wire.
        asked = pickle.dumps((source, rulebook.folders, job, gc.get_threshold()))
        result: InputResult | str | None = pickle.loads(processes.ask(asked))
        while result is None and next_files is not None:
            result = pickle.loads(processes.ask(pickle.dumps(next_files())))
    except ChildDied as died:
        what = "could not be started" if died.unstarted else "died"
        return InputResult(None, [InputError(path=source.name, message=f"the process that checks it {what} ({died})")])
    if isinstance(result, str):
        raise UsageError(result)
    assert result is not None
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

                    result = outcome_of_part(source, job, _dealt_out(channel))
                else:
                    result = outcome_of(source, _rulebook(folders), job, reading)
            except UsageError as error:
                result = str(error)
            channel.send(pickle.dumps(result))


def _dealt_out(channel: Channel) -> Iterator[str]:
    """Files of the part at hand, as long as there are any that no other process reads."""
    while True:
        channel.send(pickle.dumps(None))
        files = pickle.loads(channel.receive() or pickle.dumps(()))
        if not files:
            return
        yield from files
