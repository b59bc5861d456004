"""`convlint audit`: any number of models into tables, and what loses most GPU hours."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

from convlint.audit.audit import Auditor, Run, Summary, audit_as_worth, audit_here, audit_in_processes, summary_of
from convlint.audit.ranking import Cells, Tally, for_each_row
from convlint.audit.rows import Table
from convlint.audit.store import Ledger, Store, Weights
from convlint.audit.subjects import Subject, SubjectOrError, subjects_of
from convlint.cli.streams import outputs, tables
from convlint.cli.streams.gate import style_of
from convlint.files.languages import plural
from convlint.model.errors import UsageError
from convlint.model.report import InputError
from convlint.reporters import Style
from convlint.reporters.audits import render_json, render_text
from convlint.run.plan import Options, RunPlanner
from convlint.run.run import NOTHING

if TYPE_CHECKING:
    from convlint.cli.audit import AuditFlags

TABLES = tables.FORMATS
FORMATS = ("text", "json", *TABLES)
_STATE = "-resume.sqlite"


def run(paths: Sequence[str], asked: AuditFlags, options: Options, shown: outputs.Presentation) -> int:
    """Audits, writes tables and the answer, and returns the exit code. Raises UsageError."""
    planner = RunPlanner(options, date.today())
    planner.plan(None)  # what is wrong in options or the config here ends the audit before it begins
    written = [place for place in shown.outputs if place.format in tables.FORMATS]
    for place in written:
        tables.refuse_lacking(place.format)
    state = _state(written, resume=asked.resume)
    answers = [place for place in shown.outputs if place not in written] or [outputs.Destination(format="text")]
    uses = _uses(shown.outputs, state)
    outputs.refuse_clashes(uses, (*_read(asked), *outputs.in_force(planner)))
    lists = asked.models_from or []
    subjects = subjects_of(paths or (() if lists or options.models is not None else (".",)), lists, planner)
    subjects = _or_nothing(subjects, " ".join((*paths, *lists)) or ".", allow_empty=options.allow_empty)
    with _running(asked, options.jobs) as audit, Store(state) as store:  # without its cluster, an audit leaves nothing
        files = [path for place in written for path in tables.files_of(place.file or "").values()]
        store.refuse_foreign(files)
        with store.guarded():
            weights = Weights(store.base, asked.weights)
        auditor = Auditor(planner, store)
        with outputs.Progress(sys.stderr, quiet=shown.quiet, doing="auditing") as progress:
            progress.start(None)
            try:
                auditor.audit(_apart(subjects, uses), audit, progress.done)
            except KeyboardInterrupt:
                done = store.count()
                how = "--resume goes on" if state else "without a table of --output, nothing of it is kept"
                if done:
                    print(f"convlint: {plural(done, 'model')} audited; {how}", file=sys.stderr)
                raise
        outputs.refuse_clashes(uses, outputs.in_force(planner))  # by now, of the configs beside models as well
        with store.guarded():
            summary = _summary(store, weights, written, known=auditor.known, most=asked.top)
        store.wrote(files)
    for place in answers:
        render = render_json if place.format == "json" else render_text
        own = style_of(sys.stdout, shown.color, quiet=shown.quiet)
        style = own if place.file is None else Style(quiet=shown.quiet)
        outputs.deliver(place.file, render(summary, style), style if place.file is None else None)
    return summary.exit_code


@contextmanager
def _running(flags: AuditFlags, jobs: int) -> Iterator[Run]:
    """How tasks are run: here, in processes, or on a cluster. Raises UsageError for a cluster that cannot be used."""
    if flags.cluster is None:
        yield audit_as_worth if jobs == 0 else audit_here if jobs == 1 else partial(audit_in_processes, jobs=jobs)
        return
    from convlint.audit.cluster import on_cluster

    with on_cluster(flags.cluster, flags.ship_limit << 20) as run:  # from MiB
        yield run


def _or_nothing(subjects: Iterator[SubjectOrError], words: str, *, allow_empty: bool) -> Iterator[SubjectOrError]:
    """The subjects; where there are none, an error of what was asked for, unless --allow-empty is given."""
    subject = None
    for subject in subjects:
        if not (allow_empty and isinstance(subject, InputError) and subject.message.startswith(NOTHING)):
            yield subject
    if subject is None and not allow_empty:
        yield InputError(path=words, message="nothing to audit")


def _summary(
    store: Store, weights: Weights, written: Sequence[outputs.Destination], *, known: int, most: int
) -> Summary:
    """The answer, while the tables are written."""
    tally, ledger = Tally(), Ledger(store.base, weighed=weights.path is not None)
    with ExitStack() as stack:
        writers = [stack.enter_context(tables.written(place.format, place.file or "")) for place in written]

        def on_row(table: Table, cells: Cells) -> None:
            for add in writers:
                add(table, cells)

        for_each_row(store, weights, ledger, tally, on_row)
    return summary_of(store, weights, tally, known=known, most=most)


def _state(written: Sequence[outputs.Destination], *, resume: bool) -> str:
    """Where what was found so far is kept: beside the first tables; "" where none are written. Raises UsageError."""
    if not written:
        if resume:
            raise UsageError("--resume needs tables to go on with: --output parquet=FILE.parquet, csv= or jsonl=")
        return ""
    first = written[0].file or ""
    state = os.path.splitext(first)[0] + _STATE
    there = [path for place in written for path in tables.files_of(place.file or "").values() if os.path.lexists(path)]
    if os.path.lexists(state):
        if not resume:
            raise UsageError(f"an audit has left {state}: --resume goes on with it; remove it to audit anew")
    elif there:
        how = f", and no audit has left {state} to go on with" if resume else ""
        raise UsageError(f"{there[0]} exists{how}: name another file, or remove it")
    return state


def _uses(places: Sequence[outputs.Destination], state: str) -> list[outputs.FileUse]:
    """All files that are written."""
    uses = [outputs.FileUse(role="what was found so far", path=state)] if state else []
    for place in places:
        if place.file is not None:
            files = tables.files_of(place.file).values() if place.format in tables.FORMATS else (place.file,)
            uses += [outputs.FileUse(role=place.format, path=path) for path in files]
    return uses


def _read(flags: AuditFlags) -> Iterator[outputs.FileUse]:
    """What is read beside models."""
    yield from (outputs.FileUse(role="a list of models", path=path) for path in flags.models_from or () if path != "-")
    if flags.weights is not None:
        yield outputs.FileUse(role="the weights", path=flags.weights)


def _apart(subjects: Iterator[SubjectOrError], uses: Sequence[outputs.FileUse]) -> Iterator[SubjectOrError]:
    """The subjects. Raises UsageError for one that an output would be written over."""
    # Subjects come one by one, of lists of any length, so they cannot be compared with the outputs beforehand.
    there = {outputs.identify(use.path): use for use in uses if os.path.isfile(use.path)}
    there.pop(None, None)  # may be shared
    for subject in subjects:
        if there and isinstance(subject, Subject):
            for own in outputs.inputs([subject.source]):
                use = there.get(outputs.identify(own.path))
                if use is not None:
                    raise outputs.written_over(use, own)
        yield subject
