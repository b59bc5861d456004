"""From paths to a report and its verdict: all inputs checked, in this process or in several."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from convlint.config.find import shown_path
from convlint.engine.findings import NetworkResult, assemble
from convlint.files.languages import ENGLISH
from convlint.files.safe import clean_path
from convlint.mend.checking import InputResult, Job, Task, say
from convlint.mend.outcome import is_mended_together, outcome_of, with_content
from convlint.model.report import Finding, InputError, LayerReport, Report, Suppressed
from convlint.readers.discovery import discover
from convlint.readers.inputs import Input, file_input, source_input
from convlint.readers.reading import Reading
from convlint.rulebook.book import Rulebook
from convlint.run.plan import Options, RunPlan, RunPlanner, refuse_idle
from convlint.verdict.baseline import (
    NOTHING_KNOWN,
    Baseline,
    BaselineEntry,
    Known,
    baseline_of,
    known_by_path,
    known_of,
    stale,
)
from convlint.verdict.select import counts, incompleteness, verdict
from convlint.verdict.suppress import judge_mentions

# For how much one more process pays, if nobody says how many: starting one takes as long as reading some files.
_FILES_OF_PROCESS = 40  # of Python
_SECONDS_OF_PROCESS = 0.8
_SECONDS_OF_BYTE = 8e-6  # of a spec, of which some are flawed
_SECONDS_OF_MODEL, _SECONDS_OF_MODULE = 0.2, 0.4
_BYTES_OF_PROCESS, _BYTES_OF_MODULE = 200 << 20, 1 << 30  # of memory; a module's process loads its framework


def report_on(tasks: Sequence[Task]) -> Report:
    """The report on the inputs of all tasks, in their order; equal networks share estimates."""
    outcomes = check_tasks(tasks)
    results = [outcome.result for outcome in outcomes if outcome.result is not None]
    errors = [error for outcome in outcomes for error in outcome.errors]
    rules = {rule.info.code: rule for _, rulebook, _ in tasks for rule in rulebook.rules}
    return assemble(results, errors, Rulebook(rules.values()), files=len(tasks))


def check_tasks(
    tasks: Sequence[Task],
    *,
    jobs: int = 1,
    on_done: Callable[[str], None] = lambda _: None,
    settled: Callable[[InputResult], InputResult] = lambda outcome: outcome,
) -> list[InputResult]:
    """The outcome of each task, in their order whatever `jobs` is; `on_done` gets the name of each input that is done.

    With 0 of them, as many as are worth it.
    `settled` returns the outcome that counts for each one, one after the other, as soon as there is one.
    """
    models = [task for task in tasks if is_mended_together(task[0], task[2])]
    if models:
        from convlint.mend.mending import mended_models

        others = [task for task in tasks if not is_mended_together(task[0], task[2])]
        separate = iter(check_tasks(others, jobs=jobs, on_done=on_done, settled=settled) if others else ())
        with Reading(on_output=say) as reading:
            together = iter([settled(outcome) for outcome in mended_models(models, reading)])
        for source, _, _ in models:
            on_done(source.name)
        return [next(together if is_mended_together(source, job) else separate) for source, _, job in tasks]
    jobs = jobs or worth(source for source, _, _ in tasks)
    if jobs > 1 and (len(tasks) > 1 or any(len(source.members) > 1 for source, _, _ in tasks)):
        from convlint.run.workers import check_in_workers, in_parts  # one process needs nothing of it

        most = sum(len(in_parts(task, jobs)) for task in tasks)
        if most > 1:
            return check_in_workers(tasks, min(jobs, most), on_done, settled)
    outcomes: list[InputResult] = []
    with Reading(on_output=say) as reading:
        reading.expect(source for source, _, _ in tasks)
        for task in tasks:
            outcomes.append(settled(outcome_of(*task, reading)))
            on_done(task[0].name)
    return outcomes


def worth(sources: Iterable[Input]) -> int:
    """How many processes are worth it for these: one for each second or so of work, as far as cores and memory go."""
    files, seconds, modules = 0, 0.0, False
    for source in sources:
        if source.kind == "source":
            files = max(files, len(source.members))
        modules = modules or source.kind == "module"
        seconds += _seconds(source)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    processes = max(files // _FILES_OF_PROCESS, int(seconds / _SECONDS_OF_PROCESS))
    if min(cores, processes) < 2:
        return 1
    return max(1, min(cores, processes, _free_bytes() // (_BYTES_OF_MODULE if modules else _BYTES_OF_PROCESS)))


def _seconds(source: Input) -> float:
    """About how long an input takes, and no more than a process is worth it for: no two share one."""
    if source.kind == "module":
        return _SECONDS_OF_MODULE
    if source.kind != "file":
        return 0.0
    try:
        size = os.path.getsize(source.name)
    except (OSError, ValueError):
        return 0.0
    is_text = source.name.endswith((".yaml", ".yml", ".json"))
    return min(size * _SECONDS_OF_BYTE, _SECONDS_OF_PROCESS if is_text else _SECONDS_OF_MODEL)


def _free_bytes() -> int:
    """The memory that is free and may be had; as much as one likes where the system does not say."""
    free = sys.maxsize
    with suppress(OSError, StopIteration, ValueError, IndexError), open("/proc/meminfo") as lines:
        free = 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    if os.name == "posix":
        from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit

        limit, _ = getrlimit(RLIMIT_AS)
        free = free if limit == RLIM_INFINITY else min(free, limit)
    return free


def grouped(inputs: Iterable[Input], planner: RunPlanner) -> list[Input]:
    """The inputs in their order, each group of Python files where its first one stood."""
    members: dict[tuple[int, str], dict[str, bool]] = {}  # config and repository -> path -> whether it was named
    result: list[Input | tuple[int, str]] = []  # a key stands for the group that begins there
    for source in inputs:
        if source.kind != "source":
            result.append(source)
            continue
        key = id(planner.configs.of(source.name)), _root(os.path.dirname(source.name))
        if key not in members:
            members[key] = {}
            result.append(key)
        paths = members[key]
        paths[source.name] = paths.get(source.name, False) or bool(source.named)
    return [entry if isinstance(entry, Input) else _group(entry[1], members[entry]) for entry in result]


def _group(root: str, members: dict[str, bool]) -> Input:
    paths = tuple(sorted(members))
    return Input(
        kind="source",
        name=paths[0] if len(paths) == 1 else root,
        members=paths,
        named=frozenset(path for path, named in members.items() if named),
        root=root,
    )


@cache
def _root(folder: str) -> str:
    from convlint.files.repository import root_of

    return root_of(folder or ".")


NOTHING = ("nothing to check", "holds nothing", "matches nothing")  # how an error begins that --allow-empty forgives


class Verdict(Struct, frozen=True, kw_only=True):
    """A report, its exit code, all findings, those that the baseline holds, its entries that no longer occur.

    `failing` are the findings at or above what fails the run. Where a baseline is written, `findings` has those, too,
    that come up once it holds the others.
    """

    report: Report
    exit_code: int
    findings: tuple[Finding, ...] = ()
    old: tuple[Finding, ...] = ()
    stale: tuple[BaselineEntry, ...] = ()
    failing: tuple[Finding, ...] = ()
    language: str = ENGLISH  # that its report is to be shown in


def lint_paths(
    paths: Sequence[str],
    options: Options,
    *,
    baseline: Baseline | None = None,
    adopt: bool = False,
    on_inputs: Callable[[Sequence[Input], RunPlanner], None] = lambda *_: None,
    on_start: Callable[[int], None] = lambda _: None,
    on_done: Callable[[str], None] = lambda _: None,
    settled: Callable[[InputResult], InputResult] = lambda outcome: outcome,
) -> Verdict:
    """Checks files, folders, modules and "-"; no path stands for the current folder.

    What each path names is decided here and once: where `options.modules` is false, never a module.

    `adopt` treats all that is found as if the baseline held it. `on_inputs` hears of the inputs and of all that is
    read beside them before any is read, and may refuse to go on. Where `options` ask for mending, `settled` hears what
    each input is to become, writes it, and says what came of that. Raises UsageError for wrong options, configs, rules.
    """
    planner = RunPlanner(options, date.today())
    models = planner.models()
    inputs, errors = find_inputs(paths or ([] if models else ["."]), planner)
    inputs += models
    refuse_idle(options.reading, inputs)
    planned = [(source, planner.plan(source)) for source in inputs]  # all of them before anything is read
    on_inputs(inputs, planner)
    on_start(len(planned))
    known = known_of(baseline or {}), known_by_path(baseline or {})
    # Standard input can be read once, and whether a spec can be edited is told from its text.
    tasks = [
        (with_content(source), plan.rulebook, _with_known(plan.job, source, *known, adopts=adopt))
        for source, plan in planned
    ]
    outcomes = check_tasks(tasks, jobs=options.jobs, on_done=on_done, settled=settled)
    results = [
        (item.result, plan) for item, (_, plan) in zip(outcomes, planned, strict=True) if item.result is not None
    ]
    errors += [error for outcome in outcomes for error in outcome.errors]
    if not inputs and not errors and not (options.specs_only or options.skip_foreign):
        errors.append(InputError(path=" ".join(paths) or ".", message="nothing to check"))
    if options.allow_empty:
        errors = [error for error in errors if not error.message.startswith(NOTHING)]
    return conclude(results, errors, inputs, planner, baseline=baseline, adopt=adopt)


def _with_known(job: Job, source: Input, every: Known, by_path: Mapping[str, Known], *, adopts: bool) -> Job:
    """The job with what the baseline holds of its input; what modules find may lie in any file."""
    if job.silencing is None or not (every or adopts):
        return job
    known = by_path.get(clean_path(source.name), NOTHING_KNOWN) if source.kind == "file" else every
    return replace(job, silencing=replace(job.silencing, known=known, adopts=adopts))


def find_inputs(paths: Iterable[str], planner: RunPlanner) -> tuple[list[Input], list[InputError]]:
    """Every input once, and errors of words that name none; in folders, only what the configs include.

    Where foreign files are passed over, a tool such as pre-commit has named the files: there that holds of all of them.
    """
    options = planner.options
    of_tool = options.specs_only or options.skip_foreign
    inputs, errors = discover(
        paths,
        modules=options.modules and not of_tool,
        specs_only=of_tool,
        source=not options.specs_only,
        wanted=lambda path: included(path, planner),
    )
    if of_tool:
        inputs = tuple(item for item in inputs if item.kind not in ("file", "source") or included(item.name, planner))
    return grouped(dict.fromkeys(map(tidy, inputs)), planner), list(errors)


def included(path: str, planner: RunPlanner) -> bool:
    """Whether the config of this path lets folders and globs stand for it."""
    config = planner.configs.of(path)
    if any(pattern.matches(path) for pattern in config.exclude):
        return False
    return not config.include or any(pattern.matches(path) for pattern in config.include)


def tidy(source: Input) -> Input:
    """One spelling per file, so that fingerprints do not depend on how it was named."""
    if source.kind not in ("file", "source"):
        return source
    path = source.name
    if os.sep == "\\" or any(part in ("", ".") for part in path.removeprefix("/").split("/")):
        from pathlib import Path  # felt at every start

        path = str(Path(path))
    name = file_input(shown_path(path) if os.path.isabs(path) else path).name
    return source_input(name, named=bool(source.named)) if source.kind == "source" else replace(source, name=name)


def conclude(
    results: Sequence[tuple[NetworkResult, RunPlan]],
    errors: Sequence[InputError],
    inputs: Sequence[Input],
    planner: RunPlanner,
    *,
    baseline: Baseline | None = None,
    adopt: bool = False,
) -> Verdict:
    """The report on all results, with what is wrong with the configs' suppressions, and the verdict on it.

    What comments, configs and the baseline silence was left out where it was found.
    """
    errors = [*errors, *_incomplete(results, errors)]
    expired = _Expired(known_of(baseline or {}))
    judged = [(expired.judge(result, plan), plan) for result, plan in results]
    suppressed = [entry for result, _ in judged for entry in result.suppressed]
    old = [entry.finding for entry in suppressed if entry.by == "baseline"]
    findings = tuple(finding for result, _ in judged for finding in result.findings)
    kept = judged
    later = [finding for result, _ in judged for finding in result.later]
    if adopt and not errors:
        suppressed += [Suppressed(finding=finding, reason="", by="baseline") for finding in findings]
        kept = [
            (
                replace(result, findings=(), layers=tuple(map(_unadvised, result.layers)), fixable=0, fixable_unsafe=0),
                plan,
            )
            for result, plan in judged
        ]
    plans = list({id(plan): plan for _, plan in judged}.values()) or [planner.plan(None)]
    rules = {rule.info.code: rule for plan in plans for rule in plan.rulebook.rules}
    files = sum(len(source.members) or 1 for source in inputs)
    report = assemble([result for result, _ in kept], errors, Rulebook(rules.values()), files=files)
    report = replace(
        report,
        suppressed=tuple(sorted(suppressed, key=_place)),
        sources={**report.sources, **expired.config_texts},
    )
    failing = [item for result, plan in kept for item in result.findings if counts(item, plan.selection.policy)]
    gone: tuple[BaselineEntry, ...] = ()
    if baseline and not adopt:
        codes = {code for plan in plans for code in plan.selection.codes}
        checked = [path for source in inputs for path in source.members or (source.name,)]
        gone = stale(baseline, baseline_of((*findings, *old)), report, checked, codes)
    code = verdict(report, failing=bool(failing))
    return Verdict(
        report=report,
        exit_code=code,
        findings=(*findings, *later, *old),
        old=tuple(old),
        stale=gone,
        failing=tuple(failing),
        language=planner.language,
    )


def _incomplete(results: Sequence[tuple[NetworkResult, RunPlan]], errors: Sequence[InputError]) -> Iterator[InputError]:
    """The errors of results that are not complete, where their input has no error yet."""
    broken = {error.path for error in errors}
    for result, plan in results:
        if result.path not in broken:
            yield from incompleteness(result, strict=plan.selection.policy.strict)


def _unadvised(entry: LayerReport) -> LayerReport:
    """The layer without advice: its time with all advice taken is the time now."""
    times = {
        label: None if time is None else replace(time, after_us=time.time_us) for label, time in entry.times.items()
    }
    return replace(entry, times=times)


def _place(entry: Suppressed) -> tuple[str, int, int, str]:
    at = entry.finding.location
    return at.path, at.line or 0, at.column or 0, entry.finding.rule.code


class _Expired:
    """Adds to the first result of each plan what its config no longer silences, and sets severities as it states."""

    def __init__(self, known: Known) -> None:
        self.config_texts: dict[str, tuple[str, ...]] = {}
        self._known = known
        self._asked: set[int] = set()  # plans whose expired entries were reported

    def judge(self, result: NetworkResult, plan: RunPlan) -> NetworkResult:
        """The result as the user's config has it."""
        findings, suppressed = result.findings, result.suppressed
        if plan.expired and id(plan) not in self._asked:
            self._asked.add(id(plan))
            for source in {id(entry.at.source): entry.at.source for entry in plan.config.per_layer_ignores}.values():
                self.config_texts[source.path] = tuple(source.text.split("\n"))
            added, silenced = self._own(plan)
            findings, suppressed = (*findings, *added), (*suppressed, *silenced)
        return replace(result, findings=plan.selection.of(findings), suppressed=suppressed)

    def _own(self, plan: RunPlan) -> tuple[list[Finding], list[Suppressed]]:
        """(what is wrong with a config's entries, and what of that is an old finding)."""
        findings, silenced = [], []
        for finding in judge_mentions(plan.expired, plan.rulebook):
            if finding.rule.code in plan.selection.codes and self._known.holds(finding):
                silenced.append(Suppressed(finding=finding, reason="", by="baseline"))
            else:
                findings.append(finding)
        return findings, silenced
