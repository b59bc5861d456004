"""Audits in this process or in several of this machine: each takes the next task as soon as it is free."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice

from convlint.linting.audit.circles import look_after, look_seldom
from convlint.linting.audit.task import TRIES, Audited, Task, audited, death, lost
from convlint.linting.one_input import say
from convlint.linting.processes import Processes
from convlint.readers.children.child import ChildDied
from convlint.readers.children.serve import Channel
from convlint.readers.reading import Reading

Answers = Iterator[tuple[Task, Audited]]
_MOST = 1024  # processes, whatever is asked for: no machine has room for more
_WAITING = 2  # tasks of each process that are asked for before there is room: few, so that memory stays flat


def audit_here(tasks: Iterator[Task]) -> Answers:
    """The outcome of each task, in their order."""
    with Reading(on_output=say) as reading:
        for number, task in enumerate(tasks, 1):
            yield task, audited(task, reading)
            look_after(number)


def audit_in_processes(tasks: Iterator[Task], jobs: int) -> Answers:
    """The same from `jobs` processes, as they come; tasks are asked for as they are needed."""
    jobs = min(jobs, _MOST)
    processes = Processes("convlint.linting.audit.local:work")
    pool = ThreadPoolExecutor(jobs)
    running: dict[Future[Audited], Task] = {}
    try:
        while True:
            for task in islice(tasks, _WAITING * jobs - len(running)):
                running[pool.submit(_audit, processes, task)] = task
            if not running:
                processes.finish()
                return
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(done), done.result()
    finally:
        processes.end()  # interrupted, the threads learn from it that nobody waits for them
        pool.shutdown(cancel_futures=True)


def _audit(processes: Processes, task: Task) -> Audited:
    """The outcome of a task, which is tried again where its process dies."""
    for _ in range(TRIES):
        if processes.ended:
            break
        try:
            # Both ends are convlint's own code: what a stranger's model says has been through the wire's checks.
            found: Audited = pickle.loads(processes.ask(pickle.dumps(task)))
            return found
        except ChildDied as died:
            if died.unstarted:
                return lost(task, f"the process that audits it could not be started ({died})")
    return lost(task, death())


def work(channel: Channel) -> None:
    """A worker's life: audits what it is given until there is no more."""
    look_seldom()
    with Reading(on_output=say) as reading:
        number = 0
        while (request := channel.receive()) is not None:
            number += 1
            channel.send(pickle.dumps(audited(pickle.loads(request), reading)))
            look_after(number)
