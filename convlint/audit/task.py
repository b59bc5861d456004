"""Auditing one model in any process: from a task to rows, and the digests that tell whether to audit it again."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import date
from functools import cache
from hashlib import blake2b
from importlib.metadata import distributions

from msgspec import Struct
from msgspec.structs import replace

from convlint import __version__
from convlint.audit.rows import Rows, error_row, rows_of
from convlint.audit.subjects import Subject
from convlint.engine.findings import assemble
from convlint.files.bounded_file import open_regular
from convlint.mend.checking import Job, Running, last_resort
from convlint.mend.outcome import outcome_of
from convlint.model.errors import InputFault, UsageError
from convlint.model.report import InputError
from convlint.readers.discovery import SKIPPED_FOLDERS
from convlint.readers.inputs import Input
from convlint.readers.reading import Reading
from convlint.rulebook.book import Rulebook, load_rulebook, rule_files
from convlint.run.plan import RunPlan
from convlint.verdict.select import Selection, counts, incompleteness

_PIECE = 1 << 20
_INDEX, _SHARD = ".safetensors.index.json", ".safetensors"
_SETTLED_NS = 2_000_000_000  # a file changed within this time of a look at it may change again under the same times


def stamp_of(source: Input) -> str:
    """Size and times of the files of an input, which are looked up without reading them; empty where there are none."""
    stamps = []
    for path in _files_of(source):
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            return ""
        stamps.append((status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return repr(stamps) if stamps else ""


def is_settled(stamp: str, now_ns: int) -> bool:
    """Whether any change of the files after `now_ns`, when they had this stamp, must change the stamp.

    A file that had only just been written may be written again within the same tick of the file system's clock.
    """
    from ast import literal_eval

    return bool(stamp) and all(max(times[3:]) + _SETTLED_NS < now_ns for times in literal_eval(stamp))


def digest_of(source: Input) -> str:
    """The digest of an input's files; empty where one of them cannot be read."""
    digest = blake2b(digest_size=16)
    try:
        for path in _files_of(source):
            digest.update(os.path.basename(path).encode("utf-8", "surrogatepass") + b"\0")
            with open_regular(path) as file:
                while piece := file.read(_PIECE):
                    digest.update(piece)
    except (InputFault, OSError):
        return ""
    return digest.hexdigest()


def _files_of(source: Input) -> list[str]:
    if source.kind != "file":
        return []
    path = source.copy or source.name
    files = [path]
    if path.lower().endswith(_INDEX):
        folder = os.path.dirname(path)
        try:
            files += sorted(os.path.join(folder, name) for name in os.listdir(folder or ".") if name.endswith(_SHARD))
        except OSError:
            return files
    return files


def fingerprint(subject: Subject, plan_digest: str) -> str:
    """The digest of a subject, its config and the version; of a module, also of the code that it may come from."""
    source = subject.source
    parts = (
        source.kind, source.name, subject.name, subject.architecture, subject.gpus, subject.mode, subject.batch,
        sorted(subject.inputs.items()), _running(subject.running), plan_digest,
    )  # fmt: skip
    digest = blake2b(repr(parts).encode("utf-8", "surrogateescape"), digest_size=16)
    if source.kind == "module":
        model = source.model
        folder = "." if model is None else model.folder
        digest.update(digest_of_code(os.path.realpath(folder)).encode())
        if model is not None:
            entry = (
                model.reference, sorted(model.inputs.items()), model.channels_last, model.autocast, model.mode,
                model.trains,
                model.targets, sorted((name, str(value)) for name, value in model.settings.items()),
            )  # fmt: skip
            digest.update(repr(entry).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def digest_of_plan(plan: RunPlan) -> str:
    """The digest of the rules, the config's files, the calibrations and the options of the command line."""
    job, selection, policy = plan.job, plan.selection, plan.selection.policy
    reading = job.reading
    parts = (
        __version__, job.gpus, job.mode, job.default_gpus, job.default_mode, reading.batch,
        sorted(reading.inputs.items()), reading.module_timeout_s, reading.trains, reading.channels_last,
        _running(job.asked), _running(job.usual), sorted(job.allow),
        sorted(selection.codes), sorted(selection.severities.items()), policy.fail_on, policy.min_loss,
        [(exemption.reason, sorted(exemption.codes), exemption.layers) for exemption in policy.exemptions],
    )  # fmt: skip
    digest = blake2b(repr(parts).encode("utf-8", "surrogateescape"), digest_size=16)
    digest.update(
        os.path.realpath(plan.config.path or "").encode("utf-8", "surrogateescape")
    )  # its patterns start there
    rules = [path for folder in plan.rulebook.folders for path in rule_files(folder)]
    for piece in _contents([*plan.config.files, *rules, *(file.path for file in job.calibrations)]):
        digest.update(piece)
    return digest.hexdigest()


def _running(running: Running) -> str:
    settings = sorted((name, str(value)) for name, value in running.settings.items())
    return repr((settings, str(running.dtype), running.layout))


def _contents(paths: Iterable[str]) -> Iterator[bytes]:
    for path in paths:
        yield os.path.basename(path).encode("utf-8", "surrogateescape") + b"\0"
        with open_regular(path) as file:
            yield file.read()


@cache
def digest_of_code(folder: str) -> str:
    """The digest of all Python below a folder, and of what is installed: a module may import any of it."""
    digest = blake2b(digest_size=16)
    installed = {f"{distribution.metadata['Name']} {distribution.version}" for distribution in distributions()}
    digest.update("\n".join(sorted(installed)).encode())
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in SKIPPED_FOLDERS)
        for name in sorted(files):
            if name.endswith(".py"):
                with suppress(InputFault):  # what cannot be read cannot be imported
                    for piece in _contents([os.path.join(here, name)]):
                        digest.update(piece)
    return digest.hexdigest()


TRIES = 3  # of a model whose process dies
DEATH = f"the process that audits it died {TRIES} times"  # wherever it ran; what ended it is not known everywhere


class AuditConfig(Struct, frozen=True, kw_only=True):
    """What is the same for all models under one config. It travels to other processes; rules hold code and do not."""

    folders: tuple[str, ...]  # of rules
    job: Job
    selection: Selection


class Task(Struct, frozen=True, kw_only=True):
    """A model to audit."""

    subject: Subject
    setting: AuditConfig


class Audited(Struct, array_like=True, kw_only=True):
    """What an audit found in one model: its rows, whether a finding fails the run, and the content that was read."""

    rows: Rows
    failing: bool = False
    digest: str | None = None  # None: it was lost, or could not be read
    stamp: str = ""
    seen_ns: int = 0  # when the stamp was looked up
    until: date | None = None  # the last day on which the same is found; None: any


def setting_of(plan: RunPlan) -> AuditConfig:
    """What of a plan is needed where models are audited."""
    return AuditConfig(folders=plan.rulebook.folders, job=plan.job, selection=plan.selection)


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
        results = [replace(result, findings=setting.selection.of(result.findings))]
        if not errors:
            errors += incompleteness(results[0], strict=setting.selection.policy.strict)
    report = assemble(results, errors, Rulebook(()), files=1)
    if result is not None:
        report = replace(report, suppressed=result.suppressed)
    failing = any(counts(finding, setting.selection.policy) for finding in report.findings)
    rows = rows_of(subject.name, subject.architecture, report)
    transient = any(error.internal or source.kind == "module" for error in errors)  # a run, not the content, failed
    lasting_digest = None if transient else digest
    until = None if result is None else result.until
    return Audited(rows=rows, failing=failing, digest=lasting_digest, stamp=stamp, seen_ns=seen_ns, until=until)


def lost(task: Task, why: str) -> Audited:
    """The outcome of a model that no process survived."""
    error = InputError(path=task.subject.source.name, message=why)
    return Audited(rows=Rows(errors=[error_row(task.subject.name, error)]))


@cache
def _rulebook(folders: tuple[str, ...]) -> Rulebook:
    return load_rulebook(folders)
