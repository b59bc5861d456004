"""`convlint check` and `convlint layer`: check inputs, write the report and return an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import cache, partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from convlint.cli.streams import outputs
from convlint.cli.streams.gate import write
from convlint.files.languages import plural
from convlint.files.located_yaml import LINE_BREAK, Value, read_text
from convlint.files.safe import clean
from convlint.mend.checking import as_asked, judged, resolve_targets, settings_of
from convlint.model.errors import InputFault, UsageError
from convlint.model.location import Span
from convlint.model.network import Network
from convlint.model.report import Report
from convlint.model.runtime import Runtime
from convlint.readers.inputs import file_input
from convlint.readers.spec.fields import read_fields
from convlint.readers.spec.shapes import conv_layer, conv_op
from convlint.reporters import reporter
from convlint.reporters.words import fault, place_of
from convlint.run.plan import Options, RunPlanner
from convlint.run.run import Verdict, conclude, lint_paths
from convlint.verdict.baseline import Baseline, baseline_of, read_baseline, rendered_for, renewed
from convlint.verdict.select import incomplete

if TYPE_CHECKING:
    from convlint.cli.check import BaselineFlags
    from convlint.cli.commands.fix import Mender

_MOST_SOURCE = 2**21  # characters of broken files kept to show lines of: many broken files must not fill the memory
_MOST_NAMED = 5  # stale entries of a baseline that one note names
FLAGS_PATH = "<flags>"


def check(
    paths: Sequence[str], options: Options, shown: outputs.Presentation, files: BaselineFlags, *, diff: bool = False
) -> int:
    """Checks `paths`, fixes them where `options` ask for it, writes the report and returns the exit code.

    `diff`: prints only what --fix would change. Raises UsageError.
    """
    mender: Mender | None = None
    if options.mends:
        from convlint.cli.commands.fix import Mender  # a check without --fix does not load what writes files

        mender = Mender(diff=diff)
    proposes = not diff and any(reporter(place.format).edits for place in shown.outputs)
    summary = _job_summary(shown.outputs)
    details = shown.verbose or summary is not None or any(place.format != "text" for place in shown.outputs)
    if files.prune_baseline and files.baseline is None:
        raise UsageError("--prune-baseline needs --baseline FILE")
    written, baselines = _written(shown.outputs, files, summary)
    outputs.refuse_clashes(written, baselines)
    baseline = None if files.baseline is None else read_baseline(files.baseline)
    with outputs.Progress(sys.stderr, quiet=shown.quiet) as progress:
        verdict = lint_paths(
            paths,
            replace(options, proposes=proposes, details=details),
            baseline=baseline,
            adopt=files.write_baseline is not None,
            # before any input is read: an output that would overwrite one ends the run at once
            on_inputs=lambda sources, planner: outputs.refuse_clashes(
                written, [*outputs.inputs(sources), *baselines, *outputs.in_force(planner)]
            ),
            on_start=progress.start,
            on_done=progress.done,
            settled=(lambda outcome: outcome) if mender is None else mender.settled,
        )
    if mender is not None and diff:
        return _shown_as_diff(mender, verdict, shown)
    report = _with_sources(verdict.report)
    stream = None  # reports go to standard output, unless that holds the fixed standard input
    if mender is not None:
        mender.answer_stdin()
        stream = sys.stderr if mender.answers_stdin else None
        _say(mender.notes())
        if not shown.quiet:
            _say(mender.done())
    outputs.write_outputs(report, shown, stream, language=verdict.language)
    if summary is not None:
        outputs.append_summary(summary, report)
    _say(_keep_baseline(verdict, baseline, files))
    _say(_failing_infos(verdict))
    return verdict.exit_code


def _failing_infos(verdict: Verdict) -> Iterator[str]:
    """A note on the infos that failed a run, where nothing else did: short reports do not list all of them."""
    failing = verdict.failing
    if verdict.exit_code == 1 and failing and all(finding.severity == "info" for finding in failing):
        texts = [f"{finding.rule.code} at {place_of(finding.location)}" for finding in failing]
        more = f" and {len(texts) - _MOST_NAMED} more" if len(texts) > _MOST_NAMED else ""
        yield f"failed by {plural(len(failing), 'info')}, with --fail-on info: {', '.join(texts[:_MOST_NAMED])}{more}"


def _shown_as_diff(mender: Mender, verdict: Verdict, shown: outputs.Presentation) -> int:
    """Prints the diff, and on standard error what is wrong with inputs. Returns the exit code."""
    mender.show_diff(shown.color)
    errors = verdict.report.errors
    _say(map(fault, errors))
    _say(mender.notes())
    if not shown.quiet:
        _say(mender.done())
    return incomplete(errors) or int(mender.differs)


def _say(notes: Iterable[str]) -> None:
    for note in notes:
        write(sys.stderr, f"convlint: {clean(note)}")


def _with_sources(report: Report) -> Report:
    """The report with the lines of the files that could not be parsed, so that their errors can be shown in place."""
    sources = dict(report.sources)
    room = _MOST_SOURCE
    for error in report.errors:
        if error.line is not None and error.path not in sources and error.path != "<stdin>" and room > 0:
            with suppress(InputFault):  # what is no text is shown without it
                text = read_text(error.path)
                room -= len(text)
                if room > 0:
                    sources[error.path] = tuple(LINE_BREAK.split(text))
    return replace(report, sources=sources)


def _keep_baseline(verdict: Verdict, baseline: Baseline | None, files: BaselineFlags) -> Iterator[str]:
    """Writes the new or the pruned baseline; yields notes on it for standard error."""
    if files.write_baseline is not None and verdict.report.errors:
        yield f"{files.write_baseline} is not written: the check is incomplete"
    elif files.write_baseline is not None:
        entries = baseline_of(verdict.findings)
        outputs.replace_file(files.write_baseline, rendered_for(files.write_baseline, entries))
        yield f"wrote {plural(len(entries), 'finding')} to {files.write_baseline}"
    if baseline is None or files.baseline is None:
        return
    older = any(entry.joined for entry in baseline.values())
    folder = os.path.dirname(files.baseline)
    is_apart = cache(partial(_is_of, folder))
    apart = [entry for entry in verdict.stale if is_apart(entry.path)]
    stale = [entry for entry in verdict.stale if not is_apart(entry.path)]
    if apart:
        yield (
            f"{plural(len(apart), 'finding')} of {files.baseline} {'is' if len(apart) == 1 else 'are'} of files whose "
            f"paths begin in {folder}: run convlint there"
        )
    if files.prune_baseline and (stale or older):
        remaining = renewed(baseline, stale, verdict.old)
        outputs.replace_file(files.baseline, rendered_for(files.baseline, remaining))
    if not stale:
        if older:
            done = "rewrote" if files.prune_baseline else "--prune-baseline rewrites"
            yield f"{done} {files.baseline} with an entry for each layer: in its older form new layers pass as old ones"
        return
    count, occur = plural(len(stale), "finding"), "occurs" if len(stale) == 1 else "occur"
    if files.prune_baseline:
        yield f"took {count} that no longer {occur} out of {files.baseline}"
        return
    listed = ", ".join(map(str, stale[:_MOST_NAMED])) + (", ..." if len(stale) > _MOST_NAMED else "")
    yield f"{count} of {files.baseline} no longer {occur} ({listed}); --prune-baseline removes them"


def _is_of(folder: str, path: str) -> bool:
    """Whether a path names no file from the current folder, but one from this folder."""
    return not os.path.exists(path) and os.path.exists(os.path.join(folder, path))


def _job_summary(places: Sequence[outputs.Destination]) -> str | None:
    """The file that GitHub shows as the job's summary, where there is one to write."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    return path if path and any(place.format == "github" for place in places) else None


def _written(
    places: Sequence[outputs.Destination], files: BaselineFlags, summary: str | None
) -> tuple[list[outputs.FileUse], list[outputs.FileUse]]:
    """The files that this run writes, and the baseline that it only reads. Rewriting one in its place is no clash."""
    written = outputs.files_of(places)
    if summary is not None:
        written.append(outputs.FileUse(role="the job summary", path=summary))
    if files.write_baseline is not None:
        written.append(outputs.FileUse(role="the new baseline", path=files.write_baseline))
    old, new = files.baseline, files.write_baseline
    if old is None or (new is not None and outputs.identify(old) == outputs.identify(new)):
        return written, []
    baseline = outputs.FileUse(role="the baseline", path=old)
    return ([*written, baseline], []) if files.prune_baseline else (written, [baseline])


def layer(flags: Mapping[str, str], options: Options, shown: outputs.Presentation) -> int:
    """Checks the one layer that `flags` describe. Raises UsageError for a flag that cannot be read."""
    planner = RunPlanner(options, date.today())
    plan = planner.plan(None)
    outputs.refuse_clashes(outputs.files_of(shown.outputs), outputs.in_force(planner))
    targets = resolve_targets(plan.job.gpus or plan.job.default_gpus)
    network = as_asked(network_from_flags(flags), plan.job)
    result = judged(network, plan.rulebook, targets, plan.job.silencing, plan.job.calibrations, allow=plan.job.allow)
    verdict = conclude([(result, plan)], (), [file_input(FLAGS_PATH)], planner)
    outputs.write_outputs(verdict.report, shown, language=verdict.language)
    return verdict.exit_code


_NOWHERE: Span = (0, 0, 0, 0)
_SETTING = "runtime."  # before the name of a setting of the runtime


def network_from_flags(flags: Mapping[str, str]) -> Network:
    """A network of one layer. Raises UsageError that names the flag."""
    dims = int(flags.get("dims", "2"))
    op = conv_op(flags.get("op", "conv"))
    if op is None:
        raise UsageError(f"--op: {flags['op']!r} is neither conv nor conv_transpose")
    mapping = {
        name: _flag_value(text)
        for name, text in flags.items()
        if name not in ("op", "dims", "name") and not name.startswith(_SETTING)
    }
    errors: list[InputFault] = []
    fields = read_fields(mapping, dims, errors.append, where="flags")
    if not errors:
        fields.spans["layer"] = _NOWHERE
        try:
            layer = conv_layer(flags.get("name", "layer"), "", op, dims, fields, None, None, complete=False)
        except InputFault as error:
            errors.append(error)
    if errors:
        raise UsageError("; ".join(error.message for error in errors))
    settings = {name[len(_SETTING) :]: _flag_value(text) for name, text in flags.items() if name.startswith(_SETTING)}
    try:
        runtime = Runtime(**settings_of(settings))
    except InputFault as fault:
        raise UsageError(fault.message) from None
    first = layer.C is not None and layer.C <= 4
    layers = (replace(layer, path=FLAGS_PATH, first=first, spans={}),)
    return Network(path=FLAGS_PATH, layers=layers, runtime=runtime)


def _flag_value(text: str) -> Value:
    """`3` or `3,3` as YAML would hold it."""
    if "," in text:
        return Value([Value(part.strip(), _NOWHERE, plain=True) for part in text.split(",")], _NOWHERE)
    return Value(text, _NOWHERE, plain=True)
