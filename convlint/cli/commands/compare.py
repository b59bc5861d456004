"""`convlint compare` and `convlint versions`: two checks, and what differs between them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from msgspec.structs import replace

from convlint.cli.streams.gate import style_of
from convlint.cli.streams.outputs import FileUse, Presentation, deliver, files_of, in_force, inputs, refuse_clashes
from convlint.mend.checking import Running
from convlint.model.errors import InputFault, UsageError
from convlint.model.errors import shown as shown_text
from convlint.model.report import InputError
from convlint.readers import ReadOptions
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

SLOWER = 1  # exit code: a network takes longer by more than may be, or has an error that it did not have


def compare(old: str, new: str, options: Options, shown: Presentation, tolerance: float) -> int:
    """Compares two inputs or reports, writes what differs and returns the exit code. Raises UsageError."""
    if old == new == "-":
        raise UsageError("standard input can be one side only")
    reports = [_report(word, shown) for word in (old, new)]
    existing = [report for report in reports if report is not None]
    if len(existing) == 2 and (
        options.gpus or options.mode or options.reading != ReadOptions() or options.running != Running()
    ):
        raise UsageError("two reports are compared as they are: leave out --gpu, --batch and the like")
    if len(existing) == 1 and existing[0].networks:  # the other side is checked for the same
        gpus = options.gpus or tuple(dict.fromkeys(network.gpu for network in existing[0].networks))
        options = replace(options, gpus=gpus, mode=options.mode or existing[0].networks[0].mode)
    sides = [
        _checked([word], options, shown) if report is None else report
        for word, report in zip((old, new), reports, strict=True)
    ]
    return _deliver(compared(sides[0], sides[1], (old, new), tolerance), shown)


def versions(
    paths: Sequence[str], before: str | None, after: str, options: Options, shown: Presentation, tolerance: float
) -> int:
    """Compares the same inputs under two releases or lock files. Raises UsageError."""
    if "-" in paths:
        raise UsageError("versions reads its inputs twice, standard input only once; name a file")
    sides = []
    for name, word in (("--from", before), ("--to", after)):
        running = options.running
        if word is not None and os.path.lexists(word):
            running = replace(running, versions=word, pinned=True)
        elif word is not None:
            running = replace(running, release=_release(name, word))
        sides.append(_checked(paths, replace(options, running=running), shown))
    old, new = sides
    comparison = compared(old, new, (before or "now", after), tolerance)
    errors = (*_unversioned(old, before or "what is pinned now"), *_unversioned(new, after))
    if errors and not comparison.errors:  # times of a version that nobody knows are no comparison
        comparison = replace(comparison, pairs=(), errors=errors)
    return _deliver(comparison, shown)


def _unversioned(side: Side, word: str) -> list[InputError]:
    """Why one network of a side has no version of its framework, if there is one."""
    for network in side.networks:
        if not {"framework_version", "tensorrt"} & network.runtime.keys():
            message = f"{word} names no version of its framework, or nobody says which that is"
            return [InputError(path=network.path, message=message)]
    return []


def _release(name: str, word: str) -> str:
    from packaging.version import InvalidVersion
    from packaging.version import Version as Released

    if os.path.sep in word or word.endswith((".lock", ".toml", ".txt", ".yml", ".yaml")):
        raise UsageError(f"{name}: there is no file {shown_text(word)!r}")
    try:
        released = Released(word)
    except InvalidVersion:
        raise UsageError(f"{name}: {shown_text(word)!r} is neither a version, such as 2.9.1, nor a file") from None
    if len(released.release) < 2:
        raise UsageError(f"{name}: {word} is no release; name one such as 2.9.1")
    if released.is_prerelease:
        raise UsageError(f"{name}: {word} is a nightly or a release candidate, of which convlint knows nothing")
    local = released.local or ""
    if local.startswith(("cpu", "rocm", "xpu")):
        raise UsageError(f"{name}: {word} is no build for NVIDIA GPUs")
    return word.strip()


def _report(word: str, shown: Presentation) -> Side | None:
    """The report that a word names; None where it names what is to be checked."""
    try:
        if word == "-":
            content: bytes | None = sys.stdin.buffer.read(MOST_REPORT_BYTES + 1)
            if content is None or len(content) > MOST_REPORT_BYTES or not looks_like_report(content[:512]):
                raise InputFault("standard input has to be a JSON report of check")
        else:
            content = report_in(word)
            if content is not None:
                refuse_clashes(files_of(shown.outputs), [FileUse(role="a report", path=word)])
        return None if content is None else read_side(content)
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
    side = read_side(render(report, Style()).encode())
    side.errors = report.errors  # which know more than the report shows
    return side


def _deliver(comparison: Comparison, shown: Presentation) -> int:
    for place in shown.outputs:
        style = style_of(sys.stdout, shown.color) if place.file is None else Style()
        deliver(place.file, _render(place.format, comparison, style), style)
    return incomplete(comparison.errors) or (SLOWER if comparison.slower or comparison.broken else 0)


def _render(name: str, comparison: Comparison, style: Style) -> str:
    if name == "json":
        return render_json(comparison)
    return render_markdown(comparison) if name == "markdown" else render_text(comparison, style)
