"""`convlint compare` and `convlint versions`: two checks, and what differs between them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from msgspec.structs import replace

from convlint.cli.streams.gate import style_of
from convlint.cli.streams.outputs import FileUse, Presentation, deliver, files_of, in_force, inputs, refuse_clashes
from convlint.model.errors import InputFault, UsageError
from convlint.model.report import InputError
from convlint.model.runtime import Version
from convlint.reporters import Style
from convlint.reporters.comparisons import render_json, render_markdown, render_text
from convlint.reporters.json_v3 import render
from convlint.run.comparison import (
    MOST_REPORT_BYTES,
    Comparison,
    Side,
    compared,
    looks_like_report,
    read_side,
    report_in,
    unread,
)
from convlint.run.plan import Options
from convlint.run.run import lint_paths
from convlint.verdict.select import incomplete

SLOWER = 1  # exit code: a network takes longer by more than may be


def compare(old: str, new: str, options: Options, shown: Presentation, tolerance: float) -> int:
    """Compares two inputs or reports, writes what differs and returns the exit code. Raises UsageError."""
    if old == new == "-":
        raise UsageError("standard input can be one side only")
    sides = [_side(word, options, shown) for word in (old, new)]
    return _deliver(compared(sides[0], sides[1], (old, new), tolerance), shown)


def versions(
    paths: Sequence[str], before: str | None, after: str, options: Options, shown: Presentation, tolerance: float
) -> int:
    """Compares the same inputs under two releases or lock files. Raises UsageError."""
    sides = []
    for name, word in (("--from", before), ("--to", after)):
        running = options.running
        if word is not None and os.path.lexists(word):
            running = replace(running, versions=word)
        elif word is not None:
            running = replace(running, release=_release(name, word))
        sides.append(_checked(paths, replace(options, running=running), shown))
    old, new = sides
    found = compared(old, new, (before or "now", after), tolerance)
    unnamed = [one.path for one in new.networks if "framework_version" not in one.runtime]
    if unnamed and not os.path.lexists(after):
        error = InputError(
            path=unnamed[0], message="nobody says which framework runs it; --runtime framework=pytorch does"
        )
        found = replace(found, errors=(*found.errors, error))
    return _deliver(found, shown)


def _release(name: str, word: str) -> str:
    try:
        Version(word)
    except ValueError:
        raise UsageError(f"{name}: {word!r} is neither a version, such as 2.9.1, nor a file") from None
    return word


def _side(word: str, options: Options, shown: Presentation) -> Side:
    """A report as it stands, or that of a check."""
    try:
        if word == "-":
            content: bytes | None = sys.stdin.buffer.read(MOST_REPORT_BYTES + 1)
            if content is None or len(content) > MOST_REPORT_BYTES or not looks_like_report(content[:512]):
                raise InputFault("standard input has to be a JSON report of check")
        else:
            content = report_in(word)
            if content is not None:
                refuse_clashes(files_of(shown.outputs), [FileUse(role="a report", path=word)])
        return _checked([word], options, shown) if content is None else read_side(content)
    except InputFault as fault:
        return unread(word, fault.message)


def _checked(paths: Sequence[str], options: Options, shown: Presentation) -> Side:
    report = lint_paths(
        paths,
        options,
        on_inputs=lambda sources, planner: refuse_clashes(
            files_of(shown.outputs), [*inputs(sources), *in_force(planner)]
        ),
    ).report
    return read_side(render(report, Style()).encode())


def _deliver(comparison: Comparison, shown: Presentation) -> int:
    for place in shown.outputs:
        style = style_of(sys.stdout, shown.color) if place.file is None else Style()
        deliver(place.file, _render(place.format, comparison, style), style)
    return incomplete(comparison.errors) or (SLOWER if comparison.slower else 0)


def _render(name: str, comparison: Comparison, style: Style) -> str:
    if name == "json":
        return render_json(comparison)
    return render_markdown(comparison) if name == "markdown" else render_text(comparison, style)
