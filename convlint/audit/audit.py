"""An audit: claims subjects, audits models in processes of this machine, stores the rows, and sums up."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import chain, islice

from msgspec import Struct

from convlint.audit.ranking import Ranking, Tally, ranking_of
from convlint.audit.rows import error_row
from convlint.audit.store import Store, Unused, Weights
from convlint.audit.subjects import Subject, SubjectOrError
from convlint.audit.task import (
    DEATH,
    TRIES,
    AuditConfig,
    Audited,
    Task,
    audited,
    digest_of_plan,
    fingerprint,
    lost,
    setting_of,
)
from convlint.mend.checking import say
from convlint.model.errors import UsageError
from convlint.model.report import InputError
from convlint.readers.children.child import Channel, ChildDied
from convlint.readers.reading import Reading
from convlint.run.plan import RunPlanner
from convlint.run.run import worth
from convlint.run.workers import Processes

# Thresholds of the garbage collector: with its own, it takes a fifth of a run.
_SELDOM = 5_000_000, 50, 100
_MODELS = 50  # models between two collections, so that memory stays flat


def look_seldom() -> None:
    """Makes this process collect garbage only when `look_after` tells it to."""
    gc.set_threshold(*_SELDOM)


def look_after(number: int) -> None:
    """Collects garbage after every so many models; `number` is how many were audited."""
    if number % _MODELS == 0:
        gc.collect()


Answers = Iterator[tuple[Task, Audited]]
_MOST = 1024  # processes, whatever is asked for: no machine has room for more
_LOOKED_AT = 64  # tasks, to say how many processes are worth it
_WAITING = 2  # tasks of each process that are asked for before there is room: few, so that memory stays flat


def audit_here(tasks: Iterator[Task]) -> Answers:
    """The outcome of each task, in their order."""
    with Reading(on_output=say) as reading:
        for number, task in enumerate(tasks, 1):
            yield task, audited(task, reading)
            look_after(number)


def audit_in_processes(tasks: Iterator[Task], jobs: int) -> Answers:
    """The outcomes from `jobs` processes, in the order in which they end; tasks are taken as they are needed."""
    jobs = min(jobs, _MOST)
    processes = Processes("convlint.audit.audit:work")
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


def audit_as_worth(tasks: Iterator[Task]) -> Answers:
    """The outcomes from as many processes as are worth it for the first tasks."""
    first = list(islice(tasks, _LOOKED_AT))
    jobs = worth(task.subject.source for task in first)
    tasks = chain(first, tasks)
    return audit_here(tasks) if jobs == 1 else audit_in_processes(tasks, jobs)


def _audit(processes: Processes, task: Task) -> Audited:
    """The outcome of a task, which is tried again where its process dies."""
    for _ in range(TRIES):
        if processes.ended:
            break
        try:
            # Both ends are convlint's own code: what a stranger's model says has been through the wire's checks.
            outcome: Audited = pickle.loads(processes.ask(pickle.dumps(task)))
            return outcome
        except ChildDied as died:
            if died.unstarted:
                return lost(task, f"the process that audits it could not be started ({died})")
    return lost(task, DEATH)


def work(channel: Channel) -> None:
    """The loop of a worker process: audits each model that it is sent."""
    look_seldom()
    with Reading(on_output=say) as reading:
        number = 0
        while (request := channel.receive()) is not None:
            number += 1
            channel.send(pickle.dumps(audited(pickle.loads(request), reading)))
            look_after(number)


Run = Callable[[Iterator[Task]], Answers]
_MOST_UNUSED = 3  # names of weights that match no model


class Summary(Struct, frozen=True, kw_only=True):
    """The answer of an audit; `known` models were taken over from a run before."""

    tally: Tally
    ranking: Ranking
    unused: Unused | None
    known: int
    failing: bool

    @property
    def exit_code(self) -> int:
        """4 for a defect of convlint, 3 where anything could not be read, 1 where a finding counts, else 0."""
        if self.tally.internal:
            return 4
        return 3 if self.tally.unread else 1 if self.failing else 0


class Auditor:
    """Claims subjects for one run of a store."""

    def __init__(self, planner: RunPlanner, store: Store) -> None:
        self._planner, self._store = planner, store
        self._settings: dict[int, tuple[AuditConfig, str]] = {}  # by plan, with its digest
        self.known = 0

    def audit(self, subjects: Iterator[SubjectOrError], run: Run, on_done: Callable[[str], None]) -> None:
        """Audits what is new or changed, in whatever order `run` answers; `on_done` gets the name of each model."""
        for task, answer in run(self._tasks(subjects, on_done)):
            self._store.put(task.subject.name, answer)
            on_done(task.subject.name)
        self._store.finish()

    def _tasks(self, subjects: Iterator[SubjectOrError], on_done: Callable[[str], None]) -> Iterator[Task]:
        for number, subject in enumerate(subjects):
            if isinstance(subject, InputError):
                self._store.fault(number, error_row(None, subject))
                continue
            task = self._claimed(number, subject)
            if task is not None:
                yield task
            else:
                on_done(subject.name)

    def _claimed(self, number: int, subject: Subject) -> Task | None:
        """The task of a subject that has to be audited."""
        try:
            plan = self._planner.plan(subject.source)
            if id(plan) not in self._settings:
                self._settings[id(plan)] = setting_of(plan), digest_of_plan(plan)
        except UsageError as error:  # of a config that lies beside this model
            fault = InputError(path=subject.source.name, message=str(error))
            self._store.fault(number, error_row(subject.name, fault))
            return None
        setting, digest = self._settings[id(plan)]
        claim = self._store.claim(number, subject, fingerprint(subject, digest), self._planner.today)
        if claim == "taken":
            message = (
                f"a model before it is called {subject.name} too, and is another file or asked for otherwise: "
                "give each a name of its own"
            )
            self._store.fault(number, error_row(subject.name, InputError(path=subject.source.name, message=message)))
        elif claim == "known":
            self.known += 1
        return Task(subject=subject, setting=setting) if claim == "new" else None


def summary_of(store: Store, weights: Weights, tally: Tally, *, known: int, most: int) -> Summary:
    """The summary, once the ledger has all rows; `most` entries of each ranking."""
    ranking = ranking_of(store.base, most, weighed=weights.path is not None)
    unused = weights.unused(_MOST_UNUSED)
    return Summary(tally=tally, ranking=ranking, unused=unused, known=known, failing=store.is_failing())
