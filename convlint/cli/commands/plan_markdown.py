"""A plan as Markdown, for a pull request: a headline and a table of the steps."""

from __future__ import annotations

from convlint.cli.commands.plan_words import Planned, change, headline, notes, percent, verdict
from convlint.files.languages.saying import duration, plural
from convlint.files.safe import clean_path
from convlint.reporters.markdown import MOST_CHARACTERS, code, prose
from convlint.reporters.words import place

_NOTE_ROOM = 1000  # bytes kept for what comes behind the table


def render(planned: Planned) -> str:
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
    lines += [
        "",
        "| | change | time | after | saved | grade | parameters | FLOPs |",
        "|--:|---|--:|--:|--:|:-:|--:|--:|",
    ]
    size = sum(len(line.encode()) + 1 for line in lines)
    for number, step in enumerate(plan.steps, start=1):
        before, after = step.before, step.after
        row = (
            f"| {number} | {prose(change(step))} | {duration(before.time_us)} | {duration(after.time_us)} "
            f"| {percent(before.time_us, after.time_us)} | {after.grade or '-'} "
            f"| {percent(before.parameters, after.parameters)} | {percent(before.flops, after.flops)} |"
        )
        size += len(row.encode()) + 1
        if size > MOST_CHARACTERS - _NOTE_ROOM:
            lines += ["", f"*{plural(len(plan.steps) - number + 1, 'step')} left out: this is as much as fits here.*"]
            break
        lines.append(row)
    return "\n".join([*lines, ""])
