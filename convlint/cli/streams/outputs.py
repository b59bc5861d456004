"""Outputs of every command: what `--output FORMAT[=FILE]` means, and how a text gets to its place."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import Literal, TextIO

from msgspec import Struct

from convlint.cli.streams.files import FileUse, append, replace_file
from convlint.cli.streams.gate import style_of, write
from convlint.errors import UsageError, suggestion
from convlint.files.languages import ENGLISH
from convlint.files.languages.saying import speaking
from convlint.model.report import Report
from convlint.reporters import Reporter, Style, reporter
from convlint.reporters.harmless import harmless

ColorWhen = Literal["auto", "always", "never"]


class Destination(Struct, frozen=True, kw_only=True):
    """A format and the file that it goes to; None is standard output."""

    format: str
    file: str | None = None


class Presentation(Struct, frozen=True, kw_only=True):
    """How a report is to be shown."""

    outputs: tuple[Destination, ...] = (Destination(format="text"),)
    color: ColorWhen = "auto"
    quiet: bool = False


def parse_outputs(
    values: Sequence[str], known: Collection[str], *, default: str = "text", files_only: Sequence[str] = ()
) -> tuple[Destination, ...]:
    """Each `FORMAT[=FILE]`; `default` where none is given.

    Raises UsageError for an unknown format, one of `files_only` without a file, and two for standard output.
    """
    places: list[Destination] = []
    for value in values or (default,):
        name, _, path = value.partition("=")
        if name not in known:
            raise UsageError(f"unknown format {name!r}{suggestion(name, known)}; known are {', '.join(known)}")
        if not path and name in files_only:
            raise UsageError(f"--output {name} needs a file: --output {name}=FILE.{name}")
        if not path and any(other.file is None for other in places):
            raise UsageError(f"two formats write to standard output; give one of them a file: {name}=FILE")
        places.append(Destination(format=name, file=path or None))
    return tuple(places)


def files_of(places: Sequence[Destination]) -> list[FileUse]:
    """The files among the places."""
    return [FileUse(role=place.format, path=place.file) for place in places if place.file is not None]


def deliver(
    file: str | None,
    text: str,
    style: Style | None = None,
    *,
    annotations: bool = False,
    stream: TextIO | None = None,
) -> None:
    """A text to its file, or to `stream` (default: standard output) in the colours of `style`. Raises UsageError."""
    if file is None:
        write(stream or sys.stdout, text, style, annotations=annotations)
    else:
        replace_file(file, harmless(text, annotations=annotations))


def write_outputs(
    report: Report, shown: Presentation, stream: TextIO | None = None, *, language: str = ENGLISH
) -> None:
    """Renders each format to its place, which is `stream` (default: standard output) where it has no file.

    Formats for people are in `language`. Raises UsageError where a file cannot be
    written after all.
    """
    for place in shown.outputs:
        found = reporter(place.format)
        plain = Style(quiet=shown.quiet, color=False)
        style = style_of(stream or sys.stdout, shown.color, quiet=shown.quiet) if place.file is None else plain
        text = _said(report, language, found, style)
        deliver(place.file, text, style, annotations=found.annotations, stream=stream)


def append_summary(file: str, report: Report) -> None:
    """Adds the job's summary, which is English, to its file. Raises UsageError where it cannot be written."""
    from convlint.reporters import github

    append(file, harmless(github.summary(report)))


def _said(report: Report, language: str, found: Reporter, style: Style) -> str:
    """The report in a format that speaks the `language` of its run, or English."""
    if language == ENGLISH or not found.for_people:
        return found(report, style)
    from convlint.reporters.translated import in_language

    with speaking(language):
        return found(in_language(report, language), style)
