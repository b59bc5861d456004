"""An audit from beginning to end: subjects claimed, models audited wherever that is, rows weighed and told on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from convlint.errors import UsageError
from convlint.gpus.gpu import load_gpu
from convlint.linting.audit.local import Answers
from convlint.linting.audit.ranking import Ledger, Ranking, lost_hours
from convlint.linting.audit.rows import ROWS, ErrorRow, LayerRow, ModelRow, Row, Rows, Table, error_row
from convlint.linting.audit.seal import digest_of_plan, fingerprint
from convlint.linting.audit.store import Store
from convlint.linting.audit.subject import Subject
from convlint.linting.audit.subjects import Found
from convlint.linting.audit.task import Setting, Task, setting_of
from convlint.linting.audit.weights import Weight, Weights
from convlint.linting.plan import Planner
from convlint.report import InputError

Run = Callable[[Iterator[Task]], Answers]
_MOST_ERRORS = 5  # that are said at once
_MOST_UNUSED = 3  # names of weights that match no model


class Tally(Struct, kw_only=True):
    """What an audit covered; `unread` counts errors, and `failed` the models that have no other rows."""

    models: int = 0
    failed: int = 0
    layers: int = 0
    findings: int = 0
    errors: int = 0
    warnings: int = 0
    infos: int = 0
    unread: int = 0
    internal: bool = False
    stored: int = 0  # models whose dtype is that of stored weights, which run as the engine is told
    first_errors: list[ErrorRow] = []
    gpus: dict[str, str] = {}  # by id, in the order in which they were met: what they are called first


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
            message = f"another model is called {subject.name} and asked for otherwise: give each a name of its own"
            self._store.fault(number, error_row(subject.name, InputError(path=subject.source.name, message=message)))
        elif claim == "known":
            self.known += 1
        return Task(number=number, subject=subject, setting=setting) if claim == "new" else None


def columns(table: Table) -> tuple[str, ...]:
    """The names of a table's columns, in their order."""
    return ROWS[table].__struct_fields__ + (() if table == "errors" else WEIGHED)


WEIGHED = ("gpu_hours", "lost_gpu_hours")  # the model's hours, and those that the row's advice would save
Cells = tuple[object, ...]


def told(store: Store, weights: Weights, ledger: Ledger, tally: Tally, on_row: Callable[[Table, Cells], None]) -> None:
    """Goes through all rows in the order of the audit: counted, ranked, and told with their hours."""
    for rows in store.rows():
        _count(rows, tally)
        heavy: dict[str, tuple[ModelRow, Weight | None]] = {}
        for row in rows.models:
            first = not heavy
            weight = weights.of(row.model, row.gpu, first=first)
            heavy[row.gpu] = row, weight
            ledger.add(row, rows.findings, weight)
        only = next(iter(heavy), "")
        for table in ROWS:
            for each in rows.of(table):
                on_row(table, _cells(table, each, heavy, only))


def _count(rows: Rows, tally: Tally) -> None:
    tally.models += bool(rows.models)
    tally.failed += bool(rows.errors) and not rows.models
    tally.layers += rows.models[0].layers if rows.models else 0
    tally.findings += len(rows.findings)
    tally.unread += len(rows.errors)
    tally.first_errors += rows.errors[: _MOST_ERRORS - len(tally.first_errors)]
    tally.internal = tally.internal or any(row.internal for row in rows.errors)
    tally.stored += any(row.dtype_source == "storage" for row in rows.layers)
    for finding in rows.findings:
        if finding.severity == "error":
            tally.errors += 1
        elif finding.severity == "warning":
            tally.warnings += 1
        else:
            tally.infos += 1
    for row in rows.models:
        tally.gpus.setdefault(load_gpu(row.gpu).id, row.gpu)


def _cells(table: Table, row: Row, heavy: dict[str, tuple[ModelRow, Weight | None]], first: str) -> Cells:
    cells = tuple(getattr(row, name) for name in row.__struct_fields__)
    if table == "errors":
        return cells
    gpu = getattr(row, "gpu", None) or first  # what is found on every GPU is weighed by the first one's hours
    model, weight = heavy.get(gpu, (None, None))
    if model is None or weight is None:
        return (*cells, None, None)
    return (*cells, weight.hours, lost_hours(_lost_us(row), model, weight))


def _lost_us(row: Row) -> float | None:
    if isinstance(row, LayerRow):
        return None if row.time_us is None or row.time_after_us is None else row.time_us - row.time_after_us
    return None if isinstance(row, ErrorRow) else row.lost_us


def summary_of(store: Store, weights: Weights, ledger: Ledger, tally: Tally, *, known: int, most: int) -> Summary:
    """The answer, once everything is told; `most` entries of each ranking."""
    unused = None
    if weights.path is not None:
        rows, hours, names = weights.unused(_MOST_UNUSED)
        unused = Unused(rows=rows, hours=hours, names=tuple(names))
    return Summary(
        tally=tally, ranking=ledger.ranking(most), unused=unused, known=known, failing=store.is_failing()
    )  # fmt: skip
