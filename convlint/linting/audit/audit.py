"""An audit from beginning to end: subjects claimed, models audited wherever that is, rows weighed and told on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from convlint.errors import UsageError
from convlint.linting.audit.local import Answers
from convlint.linting.audit.ranking import Ranking, ranking_of
from convlint.linting.audit.rows import error_row
from convlint.linting.audit.seal import digest_of_plan, fingerprint
from convlint.linting.audit.store import Store
from convlint.linting.audit.subject import Subject
from convlint.linting.audit.subjects import Found
from convlint.linting.audit.task import Setting, Task, setting_of
from convlint.linting.audit.telling import Tally
from convlint.linting.audit.weights import Weights
from convlint.linting.plan import Planner
from convlint.report import InputError

Run = Callable[[Iterator[Task]], Answers]
_MOST_UNUSED = 3  # names of weights that match no model


class Unused(Struct, frozen=True, kw_only=True):
    """Rows of weights that match no model, the first of their names, and hours."""

    rows: int
    hours: float
    names: tuple[str, ...]


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

    def __init__(self, planner: Planner, store: Store) -> None:
        self._planner, self._store = planner, store
        self._settings: dict[int, tuple[Setting, str]] = {}  # by plan, with its digest
        self.known = 0

    def audit(self, subjects: Iterator[Found], run: Run, on_done: Callable[[str], None]) -> None:
        """Audits what is new or changed, in whatever order `run` answers; `on_done` hears the name of each model."""
        for task, audited in run(self._tasks(subjects, on_done)):
            self._store.put(task.subject.name, audited)
            on_done(task.subject.name)
        self._store.finish()

    def _tasks(self, subjects: Iterator[Found], on_done: Callable[[str], None]) -> Iterator[Task]:
        for number, found in enumerate(subjects):
            if isinstance(found, InputError):
                self._store.fault(number, error_row(None, found))
                continue
            task = self._claimed(number, found)
            if task is not None:
                yield task
            else:
                on_done(found.name)

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
        return Task(number=number, subject=subject, setting=setting) if claim == "new" else None


def summary_of(store: Store, weights: Weights, tally: Tally, *, known: int, most: int) -> Summary:
    """The answer, once everything is told; `most` entries of each ranking."""
    unused = None
    if weights.path is not None:
        rows, hours, names = weights.unused(_MOST_UNUSED)
        unused = Unused(rows=rows, hours=hours, names=tuple(names))
    ranking = ranking_of(store.base, most, weighed=weights.path is not None)
    return Summary(tally=tally, ranking=ranking, unused=unused, known=known, failing=store.is_failing())
