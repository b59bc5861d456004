"""Auditing one model, in whatever process: a task goes in, rows come out, and nothing that goes wrong ends it all."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import date
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from convlint.engine.findings import assemble
from convlint.errors import UsageError
from convlint.linting.audit.rows import Rows, error_row, rows_of
from convlint.linting.audit.seal import digest_of, stamp_of
from convlint.linting.audit.subject import Subject
from convlint.linting.fixing import outcome_of
from convlint.linting.one_input import Job, last_resort
from convlint.linting.plan import Plan
from convlint.readers.reading import Reading
from convlint.report import InputError, Severity
from convlint.rulebook.book import Rulebook, load_rulebook
from convlint.verdict.select import Policy, chosen, counts

TRIES = 3  # of a model whose process dies


class Setting(Struct, frozen=True, kw_only=True):
    """What is the same for all models under one config. It travels to other processes; rules hold code and do not."""

    folders: tuple[str, ...]  # of rules
    job: Job
    policy: Policy
    codes: frozenset[str]
    severities: Mapping[str, Severity]


class Task(Struct, frozen=True, kw_only=True):
    """A model to audit; `number` is its place in the audit."""

    number: int
    subject: Subject
    setting: Setting


class Audited(Struct, array_like=True, kw_only=True):
    """What an audit found in one model: its rows, whether a finding fails the run, and the content that was read."""

    rows: Rows
    failing: bool = False
    digest: str | None = None  # None: it was lost, or could not be read
    stamp: str = ""
    seen_ns: int = 0  # when the stamp was looked up
    until: date | None = None  # the last day on which the same is found; None: any


def setting_of(plan: Plan) -> Setting:
    """What of a plan is needed where models are audited."""
    return Setting(
        folders=plan.rulebook.folders, job=plan.job, policy=plan.policy, codes=plan.codes, severities=plan.severities
    )


def audited(task: Task, reading: Reading) -> Audited:
    """Reads and checks the model of a task; whatever is wrong with it is among its rows."""
    subject, setting = task.subject, task.setting
    source = subject.source
    seen_ns = time.time_ns()
    stamp, digest = stamp_of(source), digest_of(source)  # before it is read: what changes meanwhile is audited anew
    errors: list[InputError] = []
    result = None
    with last_resort(errors, source.name):
        try:
            rulebook = _rulebook(setting.folders)
            outcome = outcome_of(source, rulebook, subject.job(setting.job), reading)
            errors, result = [*errors, *outcome.errors], outcome.result
        except UsageError as error:
            errors.append(InputError(path=source.name, message=str(error)))
    results = []
    if result is not None:
        findings = chosen(result.findings, set(setting.codes), setting.severities)
        results = [replace(result, findings=findings)]
    report = assemble(results, errors, Rulebook(()), files=1)
    if result is not None:
        report = replace(report, suppressed=result.suppressed)
    failing = any(counts(finding, setting.policy) for finding in report.findings)
    rows = rows_of(subject.name, subject.architecture, report)
    transient = any(error.internal or source.kind == "module" for error in errors)  # a run, not the content, failed
    kept = None if transient else digest
    until = None if result is None else result.until
    return Audited(rows=rows, failing=failing, digest=kept, stamp=stamp, seen_ns=seen_ns, until=until)


def lost(task: Task, why: str) -> Audited:
    """The outcome of a model that no process survived."""
    error = InputError(path=task.subject.source.name, message=why)
    return Audited(rows=Rows(errors=[error_row(task.subject.name, error)]))


def death() -> str:
    """What is said of a model whose processes died, wherever they ran; what ended them is not known everywhere."""
    return f"the process that audits it died {TRIES} times"


@cache
def _rulebook(folders: tuple[str, ...]) -> Rulebook:
    return load_rulebook(folders)
