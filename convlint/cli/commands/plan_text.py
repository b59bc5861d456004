"""A plan for people: one row of figures per step, and below it what to change."""

from __future__ import annotations

from convlint.cli.commands.plan_words import Planned, change, headline, notes, percent, verdict
from convlint.engine.steps import Plan
from convlint.files.languages.saying import duration
from convlint.files.safe import ascii_only, clean, clean_path
from convlint.reporters import Style
from convlint.reporters.ink import GRADE_INKS, Paint, painter, wrap
from convlint.reporters.words import place

_NARROW, _WIDE = 60, 120
_TITLES = ("time", "after", "change", "grade", "parameters", "FLOPs")


def render(planned: Planned, style: Style) -> str:
    """The whole table; the same words with and without colour."""
    paint, width = painter(style.color), min(max(style.width, _NARROW), _WIDE)
    plan = planned.plan
    lines: list[str] = []
    if plan is not None:
        lines += _wrapped(f"{clean_path(planned.path)}: {headline(plan)}", width, "")
        lines += _table(plan, paint, width)
    said = list(notes(planned))
    lines += [""] if lines and (said or planned.errors) else []
    for note in said:
        lines += _wrapped(note, width, "  ")
    for error in planned.errors:
        first, *rest = _wrapped(f"error: {place(error.path, error.line, error.column)}: {error.message}", width, "")
        lines += [first.replace("error:", paint("error", "error:"), 1), *(f"  {line}" for line in rest)]
    if plan is not None:
        first, *rest = _wrapped(verdict(plan), width - 2, "")
        lines += ["", paint("poor" if plan.is_reached is False else "good", first), *(f"  {line}" for line in rest)]
    text = "\n".join(line.rstrip() for line in [*lines, ""])
    return text if style.unicode else ascii_only(text)


def _table(plan: Plan, paint: Paint, width: int) -> list[str]:
    if not plan.steps:
        return []
    rows = [
        (
            duration(step.before.time_us), duration(step.after.time_us),
            percent(step.before.time_us, step.after.time_us), step.after.grade or "-",
            percent(step.before.parameters, step.after.parameters), percent(step.before.flops, step.after.flops),
        )
        for step in plan.steps
    ]  # fmt: skip
    sizes = [max(map(len, column)) for column in zip(_TITLES, *rows, strict=True)]
    margin = len(str(len(rows)))

    def line(number: str, cells: tuple[str, ...]) -> str:
        return f"{number:>{margin}}  " + "  ".join(cell.rjust(size) for cell, size in zip(cells, sizes, strict=True))

    lines = ["", paint("faint", line("", _TITLES).rstrip())]
    for number, (step, cells) in enumerate(zip(plan.steps, rows, strict=True), start=1):
        letter = cells[3]
        row = line(str(number), cells)
        lines.append(row.replace(f" {letter} ", f" {paint(GRADE_INKS.get(letter, 'strong'), letter)} ", 1))
        lines += _wrapped(change(step), width, " " * (margin + 2))
    return lines


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return [indent + line for line in wrap(clean(text), width - len(indent))]
