"""A plan as text, JSON and Markdown: each step with what it saves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from convlint import __version__
from convlint.engine.plan import THEN
from convlint.engine.steps import LEAST_GAIN, NetworkPlan, PlannedStep, State
from convlint.files.languages import duration, plural
from convlint.files.safe import clean, clean_path, fields, number
from convlint.model.report import CalibrationUse, Finding, InputError
from convlint.reporters import Style
from convlint.reporters.ink import GRADE_INKS, Paint, column_sizes, error_lines, finished, painter, row, wrapped
from convlint.reporters.json_v3 import calibration_object, error_object
from convlint.reporters.markdown import MOST_CHARACTERS, code, prose, with_table
from convlint.reporters.words import CHANGES, fault, place, step

_NO_STEP = f"no step would shorten it by {100 * LEAST_GAIN:g} % or more"


class Planned(Struct, frozen=True, kw_only=True):
    """The plan for one input, None where there is none, and what is wrong with the input.

    `is_whole`: all of the input could be read.
    """

    path: str
    plan: NetworkPlan | None
    is_whole: bool = True
    errors: tuple[InputError, ...] = ()
    notes: tuple[str, ...] = ()
    calibrations: tuple[CalibrationUse, ...] = ()


def percent(before: float | None, after: float | None) -> str:
    """`+1.9 %`; `-` where nothing changes, `?` where it is not known."""
    if before is None or after is None:
        return "?"
    if before == after or not before:
        return "-"
    change = 100 * (after / before - 1)
    return f"{change:+.1f} %" if abs(change) >= 0.05 else f"{change:+.1g} %"


def change(step: PlannedStep) -> str:
    """What it changes, in how many layers, and whether the network and its weights stay."""
    counted = plural(len(step.layers), "layer")
    words = step.describe if step.kinds == ("channels",) or not step.layers else f"{step.describe} ({counted})"
    if step.safety == "safe":
        return words
    return f"{words}; {'changes the weights' if step.changes == 'weights' else CHANGES[step.changes]}"


def headline(plan: NetworkPlan) -> str:
    """`13.9 ms of convolutions per training step with N=64 on a100, grade B`."""
    batch = f" with N={plan.batch}" if plan.batch is not None else ""
    return f"{duration(plan.now.time_us)} of convolutions per {step(plan.mode)}{batch} on {plan.gpu}{_graded(plan.now)}"


def _graded(state: State) -> str:
    return "" if state.grade is None else f", grade {state.grade}"


def verdict(plan: NetworkPlan) -> str:
    """The result of all steps, in one line."""
    now, after = plan.now, plan.after
    if not plan.steps:
        words = "no step is needed" if plan.is_reached else _NO_STEP
        if plan.target_us is not None and now.step_us is not None:
            words += f", and the whole step takes {duration(now.step_us)}"
        return words if plan.is_reached is not False else f"{words}: {_missed(plan)}"
    words = f"{duration(after.time_us)} after {plural(len(plan.steps), 'step')} ({percent(now.time_us, after.time_us)})"
    words += f"{_graded(after)}; parameters {percent(now.parameters, after.parameters)}"
    words += f", FLOPs {percent(now.flops, after.flops)}"
    if now.step_us is not None and after.step_us is not None:
        words += f"; the step {duration(now.step_us)} before, {duration(after.step_us)} after"
    return f"{words}: {_missed(plan)}" if plan.is_reached is False else words


def _missed(plan: NetworkPlan) -> str:
    # What comes up only once these are taken may reach it.
    more = any(note.startswith(THEN) for note in plan.notes)
    return f"{duration(plan.target_us or 0.0)} is {'not reached by these alone' if more else 'out of reach'}"


def notes(planned: Planned) -> Iterator[str]:
    """Further notes for the user."""
    yield from planned.notes
    if planned.plan is None:
        return
    yield from planned.plan.notes
    for finding in planned.plan.unpriced:
        yield f"also advised, without a price: {unpriced(finding)}"


def unpriced(finding: Finding) -> str:
    """`CL502: use HEURISTIC`."""
    return f"{finding.rule.code}: {finding.fix.describe if finding.fix else finding.message}"


_TITLES = ("", "time", "after", "change", "grade", "parameters", "FLOPs")
_STEP = "step"  # the title of one more column, where the whole step is known


def render_text(planned: Planned, style: Style) -> str:
    """The whole table; the same words with and without colour."""
    paint, width = painter(style.color), style.table_width
    plan = planned.plan
    lines: list[str] = []
    if plan is not None:
        lines += wrapped(f"{clean_path(planned.path)}: {headline(plan)}", width)
        lines += _table(plan, paint, width)
    texts = list(notes(planned))
    lines += [""] if lines and (texts or planned.errors) else []
    for note in texts:
        lines += wrapped(note, width, "  ")
    for error in planned.errors:
        lines += error_lines(f"error: {fault(error)}", width, paint)
    if plan is not None:
        first, *rest = wrapped(verdict(plan), width - 2)
        lines += ["", paint("poor" if plan.is_reached is False else "good", first), *(f"  {line}" for line in rest)]
    return finished([*lines, ""], unicode=style.unicode)


def _cells(before: State, after: State) -> tuple[str, ...]:
    """Time before and after, what that saves, the grade, and how much parameters and FLOPs change."""
    return (
        duration(before.time_us),
        duration(after.time_us),
        percent(before.time_us, after.time_us),
        after.grade or "-",
        percent(before.parameters, after.parameters),
        percent(before.flops, after.flops),
    )


def _table(plan: NetworkPlan, paint: Paint, width: int) -> list[str]:
    if not plan.steps:
        return []
    rows = [(str(position), *_cells(step.before, step.after)) for position, step in enumerate(plan.steps, start=1)]
    titles: tuple[str, ...] = _TITLES
    if plan.now.step_us is not None:
        titles = (*_TITLES, _STEP)
        rows = [(*cells, duration(step.after.step_us or 0)) for cells, step in zip(rows, plan.steps, strict=True)]
    sizes = column_sizes([titles, *rows])
    sides = "r" * len(sizes)
    lines = ["", paint("faint", row(titles, sizes, sides))]
    for entry, cells in zip(plan.steps, rows, strict=True):
        letter = cells[_TITLES.index("grade")]
        painted = f" {paint(GRADE_INKS.get(letter, 'strong'), letter)} "
        lines.append(row(cells, sizes, sides).replace(f" {letter} ", painted, 1))
        lines += wrapped(change(entry), width, " " * (sizes[0] + 2))  # below the first title, beside the number
    return lines


_NOTHING: dict[str, Any] = {"gpu": None, "mode": None, "steps": [], "time_us": None, "time_after_us": None}


def render_json(planned: Planned) -> str:
    """The plan as one JSON object on one line; times in us, `null` for what is not known."""
    plan = planned.plan
    document = {
        "schema_version": 3,
        "convlint": __version__,
        "complete": not planned.errors,
        "path": clean_path(planned.path),
        **(_NOTHING if plan is None else _plan(plan)),
        "calibrations": [calibration_object(use) for use in planned.calibrations],
        "notes": [clean(note) for note in (*planned.notes, *(plan.notes if plan else ()))],
        "errors": [error_object(error) for error in planned.errors],
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def _plan(plan: NetworkPlan) -> dict[str, Any]:
    now, after = plan.now, plan.after
    return {
        **fields(plan, "gpu", "mode", "batch"),
        "target_time_us": number(plan.target_us),
        "target_reached": plan.is_reached,
        "time_us": number(now.time_us),
        "time_after_us": number(after.time_us),
        "grade": now.grade,
        "grade_after": after.grade,
        "parameters": now.parameters,
        "parameters_after": after.parameters,
        "flops": now.flops,
        "flops_after": after.flops,
        "step_us": number(now.step_us),
        "step_after_us": number(after.step_us),
        "steps": [_step(step) for step in plan.steps],
        "unpriced": [
            {
                **fields(finding.rule, "code", "name"),
                **fields(finding, "severity", "message"),
                **fields(finding.fix, "describe", "safety", "set"),
            }
            for finding in plan.unpriced
            if finding.fix is not None
        ],
        "without_time": [plan.network.layers[index].name for index in plan.without_time],
    }


def _step(step: PlannedStep) -> dict[str, Any]:
    before, after = step.before, step.after
    return {
        **fields(step, "describe", "kinds", "safety", "layers", "set", "by_layer"),
        "time_before_us": number(before.time_us),
        "time_after_us": number(after.time_us),
        "grade_after": after.grade,
        "parameters_added": _added(before.parameters, after.parameters),
        "flops_added": _added(before.flops, after.flops),
        "step_before_us": number(before.step_us),
        "step_after_us": number(after.step_us),
    }


def _added(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before


_NOTE_ROOM = 1000  # bytes kept for the line that counts the steps left out


def render_markdown(planned: Planned) -> str:
    """At most 65,536 bytes; what is beyond is counted."""
    plan = planned.plan
    lines = [f"### convlint: plan for {code(clean_path(planned.path))}", ""]
    if plan is None:
        lines += ["No plan: no layer's time is known.", ""]
    else:
        lines += [prose(f"{headline(plan)}; {verdict(plan)}") + ".", ""]
    lines += [
        f"- **error** {code(place(error.path, error.line, error.column))}: {prose(error.message)}"
        for error in planned.errors
    ]
    lines += [f"- {prose(note)}" for note in notes(planned)]
    if plan is None or not plan.steps:
        return "\n".join([*lines, ""])
    whole = plan.now.step_us is not None
    lines += [
        "",
        "| | change | time | after | saved | grade | parameters | FLOPs |" + " whole step |" * whole,
        "|--:|---|--:|--:|--:|:-:|--:|--:|" + "--:|" * whole,
    ]
    rows = (
        f"| {' | '.join((str(position), prose(change(entry)), *_cells(entry.before, entry.after)))} |"
        + f" {duration(entry.after.step_us or 0)} |" * whole
        for position, entry in enumerate(plan.steps, start=1)
    )
    return with_table(lines, rows, len(plan.steps), "step", MOST_CHARACTERS - _NOTE_ROOM)
