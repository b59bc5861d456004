"""Paths and options to a report and its verdict: plan, check, leave out what is silenced, put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from convlint.config.find import shown_path
from convlint.engine.findings import NetworkResult, assemble
from convlint.files.languages import ENGLISH
from convlint.files.languages.saying import speaking
from convlint.files.safe import clean_path
from convlint.linting.fixed import Outcome
from convlint.linting.fixing import with_content
from convlint.linting.idle import refuse_idle
from convlint.linting.one_input import Job
from convlint.linting.plan import Options, Plan, Planner
from convlint.linting.run import check_tasks
from convlint.linting.source_inputs import grouped
from convlint.readers.discovery import discover
from convlint.readers.inputs import Input, file_input, source_input
from convlint.report import Finding, InputError, LayerReport, Report, Suppressed
from convlint.rulebook.book import Rulebook
from convlint.verdict.baseline import NOTHING_KNOWN, Baseline, Entry, Known, baseline_of, known_by_path, known_of, stale
from convlint.verdict.comments import judge_mentions
from convlint.verdict.completeness import incompleteness
from convlint.verdict.select import chosen, counts, verdict

NOTHING = ("nothing to check", "holds nothing", "matches nothing")  # how an error begins that --allow-empty forgives


class Verdict(Struct, frozen=True, kw_only=True):
    """A report, its exit code, all findings, those that the baseline holds, and its entries that no longer occur."""

    report: Report
    exit_code: int
    found: tuple[Finding, ...] = ()
    old: tuple[Finding, ...] = ()
    stale: tuple[Entry, ...] = ()
    language: str = ENGLISH  # where it is another one, the report says its texts in both


def lint_paths(
    paths: Sequence[str],
    options: Options,
    *,
    baseline: Baseline | None = None,
    adopt: bool = False,
    on_inputs: Callable[[Sequence[Input], Planner], None] = lambda *_: None,
    on_start: Callable[[int], None] = lambda _: None,
    on_done: Callable[[str], None] = lambda _: None,
    settled: Callable[[Outcome], Outcome] = lambda outcome: outcome,
    today: date | None = None,
) -> Verdict:
    """Checks files, folders, modules and "-"; no path stands for the current folder.

    What each path names is decided here and once: where `options.modules` is false, never a module.

    `adopt` treats all that is found as if the baseline held it. `on_inputs` hears of the inputs and of all that is
    read beside them before any is read, and may refuse to go on. Where `options` ask for mending, `settled` hears what
    each input is to become, writes it, and says what came of that. Raises UsageError for wrong options, configs, rules.
    """
    planner = Planner(options, today or date.today())
    with speaking(planner.language, both=True):
        return _linted(
            paths, planner, baseline, adopt=adopt, on_inputs=on_inputs, on_start=on_start, on_done=on_done,
            settled=settled,
        )  # fmt: skip


def _linted(
    paths: Sequence[str],
    planner: Planner,
    baseline: Baseline | None,
    *,
    adopt: bool,
    on_inputs: Callable[[Sequence[Input], Planner], None],
    on_start: Callable[[int], None],
    on_done: Callable[[str], None],
    settled: Callable[[Outcome], Outcome],
) -> Verdict:
    options = planner.options
    models = planner.models()
    inputs, errors = find_inputs(paths or ([] if models else ["."]), planner)
    inputs += models
    refuse_idle(options.reading, inputs)
    planned = [(source, planner.plan(source)) for source in inputs]  # all of them before anything is read
    on_inputs(inputs, planner)
    on_start(len(planned))
    known = _Known(baseline or {})
    held = with_content if options.mends or options.proposes else _as_it_is
    tasks = [(held(source), plan.rulebook, known.added(plan.job, source)) for source, plan in planned]
    outcomes = check_tasks(tasks, jobs=options.jobs, on_done=on_done, settled=settled)
    results = [
        (each.result, plan) for each, (_, plan) in zip(outcomes, planned, strict=True) if each.result is not None
    ]
    errors += [error for outcome in outcomes for error in outcome.errors]
    if not inputs and not errors and not (options.specs_only or options.skip_foreign):
        errors.append(InputError(path=" ".join(paths) or ".", message="nothing to check"))
    if options.allow_empty:
        errors = [error for error in errors if not error.message.startswith(NOTHING)]
    return conclude(results, errors, inputs, planner, baseline=baseline, adopt=adopt)


def _as_it_is(source: Input) -> Input:
    return source


class _Known:
    """What the baseline holds of each input; what modules find may lie in any file."""

    def __init__(self, baseline: Baseline) -> None:
        self._all, self._by_path = known_of(baseline), known_by_path(baseline)

    def added(self, job: Job, source: Input) -> Job:
        """The job with what the baseline holds of `source`."""
        if not self._all or job.silencing is None:
            return job
        known = self._by_path.get(clean_path(source.name), NOTHING_KNOWN) if source.kind == "file" else self._all
        return replace(job, silencing=replace(job.silencing, known=known))


def find_inputs(paths: Iterable[str], planner: Planner) -> tuple[list[Input], list[InputError]]:
    """Every input once, and what stands for none; in folders, only what the configs include."""
    options = planner.options
    found, errors = discover(
        paths,
        modules=options.modules and not (options.specs_only or options.skip_foreign),
        specs_only=options.specs_only or options.skip_foreign,
        source=not options.specs_only,
        wanted=lambda path: included(path, planner),
    )
    return grouped(dict.fromkeys(map(tidy, found)), planner), list(errors)


def included(path: str, planner: Planner) -> bool:
    """Whether the config of this path lets folders and globs stand for it."""
    config = planner.configs.of(path)
    if any(pattern.matches(path) for pattern in config.exclude):
        return False
    return not config.include or any(pattern.matches(path) for pattern in config.include)


def tidy(source: Input) -> Input:
    """One spelling per file, so that fingerprints do not depend on how it was named."""
    if source.kind not in ("file", "source"):
        return source
    path = str(Path(source.name))
    name = file_input(shown_path(path) if Path(path).is_absolute() else path).name
    return source_input(name, named=bool(source.named)) if source.kind == "source" else replace(source, name=name)


def conclude(
    results: Sequence[tuple[NetworkResult, Plan]],
    errors: Sequence[InputError],
    inputs: Sequence[Input],
    planner: Planner,
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
    found = tuple(finding for result, _ in judged for finding in result.findings)
    kept = judged
    if adopt and not errors:
        suppressed += [Suppressed(finding=finding, reason="", by="baseline") for finding in found]
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
    failing = any(counts(finding, plan.policy) for result, plan in kept for finding in result.findings)
    gone: tuple[Entry, ...] = ()
    if baseline and not adopt:
        codes = {code for plan in plans for code in plan.codes}
        checked = [path for source in inputs for path in source.members or (source.name,)]
        gone = stale(baseline, baseline_of((*found, *old)), report, checked, codes)
    code = verdict(report, failing=failing)
    return Verdict(
        report=report,
        exit_code=code,
        found=(*found, *old),
        old=tuple(old),
        stale=gone,
        language=planner.language,
    )


def _incomplete(results: Sequence[tuple[NetworkResult, Plan]], errors: Sequence[InputError]) -> Iterator[InputError]:
    """What of the results is not complete, where no error says so already."""
    broken = {error.path for error in errors}
    for result, plan in results:
        if result.path not in broken:
            yield from incompleteness(result, strict=plan.policy.strict)


def _unadvised(entry: LayerReport) -> LayerReport:
    """The layer as it is where all advice is known: as good as before, and nothing is promised."""
    times = {
        label: None if each is None else replace(each, after_us=each.time_us) for label, each in entry.times.items()
    }
    return replace(entry, times=times)


def _place(entry: Suppressed) -> tuple[str, int, int, str]:
    at = entry.finding.location
    return at.path, at.line or 0, at.column or 0, entry.finding.rule.code


class _Expired:
    """Adds to the first result of each plan what its config no longer silences, and changes severities as it wants."""

    def __init__(self, known: Known) -> None:
        self.config_texts: dict[str, tuple[str, ...]] = {}
        self._known = known
        self._asked: set[int] = set()  # plans whose expired entries were reported

    def judge(self, result: NetworkResult, plan: Plan) -> NetworkResult:
        """The result as the user's config has it."""
        findings, suppressed = result.findings, result.suppressed
        if plan.expired and id(plan) not in self._asked:
            self._asked.add(id(plan))
            for source in {id(entry.at.source): entry.at.source for entry in plan.config.per_layer_ignores}.values():
                self.config_texts[source.path] = tuple(source.text.split("\n"))
            left, silenced = self._own(plan)
            findings, suppressed = (*findings, *left), (*suppressed, *silenced)
        return replace(result, findings=chosen(findings, set(plan.codes), plan.severities), suppressed=suppressed)

    def _own(self, plan: Plan) -> tuple[list[Finding], list[Suppressed]]:
        """(what is wrong with a config's entries, and what of that is an old finding)."""
        left, silenced = [], []
        for finding in judge_mentions(plan.expired, plan.rulebook):
            if finding.rule.code in plan.codes and self._known.holds(finding):
                silenced.append(Suppressed(finding=finding, reason="", by="baseline"))
            else:
                left.append(finding)
        return left, silenced
