"""GitHub Actions: annotations as workflow commands, and the whole report as a job summary."""

from __future__ import annotations

from convlint.files.repository import from_checkout
from convlint.files.safe import ascii_only, clean, clean_path
from convlint.model.grouping import grouped
from convlint.model.location import Location
from convlint.model.report import Finding, InputError, Report
from convlint.reporters import Reporter, Style, markdown
from convlint.reporters.causes import Cause, causes
from convlint.reporters.summary import ending
from convlint.reporters.words import behind, finding_text, layer_of, partly_read, place_of, without_kind

MOST_ANNOTATIONS = 10  # of one type that GitHub shows per step; it drops the others without a word
MOST_SUMMARY_BYTES = 1_000_000  # GitHub refuses a summary of more than 1 MiB per step
_MOST_OTHERS = 5  # places that an annotation names beside its own
_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def render(report: Report, style: Style) -> str:
    """An annotation for each cause in each file, ten of a type, what could not be read first; and what was covered.

    What is beyond them stands in `summary`, and one line says how many those are.
    """
    several_targets = len(report.targets) > 1
    by_file = [part for cause in causes(report) for part in _of_each_file(cause)]
    partly = partly_read(report)
    unread = [_error(error, "incomplete" if error.path in partly else "not read") for error in report.errors]
    commands: dict[str, list[str]] = {"error": unread, "warning": [], "notice": []}
    for cause in by_file:
        command = _COMMANDS[cause.severity]
        if len(commands[command]) < MOST_ANNOTATIONS:
            commands[command].append(_cause(command, cause, several_targets))
    lines = [line for command in commands.values() for line in command[:MOST_ANNOTATIONS]]
    left_out = len(by_file) + len(report.errors) - len(lines)
    if left_out > 0:
        lines.append(f"{left_out} more not annotated: GitHub shows {MOST_ANNOTATIONS} of a type; see the job summary")
    text = "\n".join([*lines, *ending(report), ""])
    return text if style.unicode else ascii_only(text)


def summary(report: Report) -> str:
    """The report for the job's summary page, in Markdown, within GitHub's limit."""
    return markdown.page(report, most=MOST_SUMMARY_BYTES)


def _of_each_file(cause: Cause) -> list[Cause]:
    """The cause split by file, as a pull request shows annotations only on files that it changes."""
    files = grouped((finding.location.path, finding) for finding in cause.findings)
    return [Cause(findings=tuple(findings), most_us=cause.most_us) for findings in files.values()]


def _cause(command: str, cause: Cause, several_targets: bool) -> str:
    """The annotation of the gravest finding, which names other places of the cause."""
    title = f"{clean(cause.rule.code)} {clean(cause.rule.name)}"
    text, others = finding_text(cause.first, several_targets), cause.others
    if others:
        also = ", ".join(_other(finding) for finding in others[:_MOST_OTHERS])
        more = len(others) - _MOST_OTHERS
        text += f"\nAlso: {also}" + (f" and {more} more: see the job summary" if more > 0 else "")
    return _command(command, cause.first.location, title, text)


def _other(finding: Finding) -> str:
    """`conv2 at net.py:9:5`; for a layer that a library builds, the line of the library."""
    where = behind(finding) or place_of(finding.location)
    return f"{layer_of(finding)} at {where}" if finding.layer is not None else where


def _error(error: InputError, kind: str) -> str:
    place = Location(path=error.path, line=error.line, column=error.column)
    title = f"convlint: {'internal error' if error.internal else kind}"
    return _command("error", place, title, without_kind(error))


def _command(command: str, at: Location, title: str, message: str) -> str:
    properties: dict[str, object] = {"file": clean_path(from_checkout(at.path, "GITHUB_WORKSPACE"))}
    if at.line is not None:
        properties["line"] = at.line
        if at.end_line is not None:
            properties["endLine"] = at.end_line
        if at.column is not None and at.end_line in (None, at.line):  # GitHub takes columns within one line only
            properties["col"] = at.column
            if at.end_column is not None:
                properties["endColumn"] = at.end_column
    properties["title"] = title
    written = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{command} {written}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


REPORTER = Reporter(render=render, annotations=True)
