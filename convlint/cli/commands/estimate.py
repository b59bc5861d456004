"""`convlint estimate`: the predicted time of each layer and pass, and what it is made of."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import date

from msgspec.structs import replace

from convlint.cli.streams.gate import style_of
from convlint.cli.streams.outputs import Presentation, deliver, files_of, in_force, inputs, refuse_clashes
from convlint.facts.network import shortened
from convlint.model.grouping import grouped
from convlint.model.layer import ConvLayer
from convlint.model.report import InputError, LayerReport, Report
from convlint.readers.inputs import decide
from convlint.reporters import Style
from convlint.reporters.estimates import render_csv, render_table, why_no_time
from convlint.run.plan import Options, RunPlanner, models_here, refuse_idle
from convlint.run.run import report_on
from convlint.verdict.select import incomplete

_PLAIN_WIDTH = 120  # columns of a table that goes to no terminal: all of them
_NAMES = 5  # layers named in one message


def run(
    paths: Sequence[str], models: Sequence[str] | None, options: Options, shown: Presentation, *, operations: bool
) -> int:
    """Writes the estimates of all layers in `paths` and `models` and returns the exit code. Raises UsageError.

    `operations`: the table has those between the convolutions too.

    The JSON form is the document of `convlint check --output json` without findings: times and grades are the same,
    with the rules and exceptions of the config.
    """
    sources = [*map(decide, paths), *models_here(models)]
    refuse_idle(options.reading, sources)
    planner = RunPlanner(options, date.today())
    planned = [(source, planner.plan(source)) for source in sources]  # all of them before anything is read
    refuse_clashes(files_of(shown.outputs), [*inputs(sources), *in_force(planner)])
    if not any(place.format == "json" for place in shown.outputs):  # else what `--fix` leaves of the time is asked for
        planned = [(source, replace(plan, job=replace(plan.job, fixing=None))) for source, plan in planned]
    checked = report_on([(source, plan.rulebook, plan.job) for source, plan in planned])
    report = replace(with_unknown_times(checked), findings=(), skipped=(), suppressed=())
    for place in shown.outputs:
        style = _terminal_style(shown.color) if place.file is None else Style(width=_PLAIN_WIDTH)
        deliver(place.file, _render(place.format, report, style, operations=operations), style)
    return incomplete(report.errors)


def _terminal_style(color: str) -> Style:
    style = style_of(sys.stdout, color)
    # Output into a file or a pipe gets every column: 80 columns, which is the default there, would leave some out.
    measured = sys.stdout.isatty() or os.environ.get("COLUMNS")
    return style if measured else replace(style, width=_PLAIN_WIDTH)


def _render(name: str, report: Report, style: Style, *, operations: bool) -> str:
    if name == "json":
        from convlint.reporters.json_v3 import render

        return render(report, style)
    if name == "html":
        from convlint.reporters.page.assembling import page

        return page(report, judged=False, unicode=style.unicode)
    return render_csv(report) if name == "csv" else render_table(report, style, operations=operations)


def with_unknown_times(report: Report) -> Report:
    """The report with one error for each reason why layers of an input have no time: a total lacks them."""
    layers = grouped(
        ((entry.layer.path, label, why_no_time(entry, label)), entry)
        for entry in report.layers
        for label, estimate in entry.estimates.items()
        if estimate is None
    )
    merged: dict[tuple[str, str], tuple[list[str], list[LayerReport]]] = {}
    for (path, label, reason), entries in layers.items():
        labels, _ = merged.setdefault((path, reason), ([], entries))
        labels.append(label)
    many = len(report.targets) > 1
    errors = [
        no_time(path, reason, [entry.layer for entry in entries], f" on {', '.join(labels)}" if many else "")
        for (path, reason), (labels, entries) in merged.items()
    ]
    return replace(report, errors=(*report.errors, *errors))


def no_time(path: str, reason: str, layers: Sequence[ConvLayer], where: str = "") -> InputError:
    """The error that no time is known of the layers, with the place of the first one."""
    at = layers[0].locate()
    names = shortened([layer.name for layer in layers], _NAMES)
    return InputError(path=path, message=f"no time{where} for {names}: {reason}", line=at.line, column=at.column)
