"""Outputs of every command: what `--output FORMAT[=FILE]` means, how a text gets to its place, and the progress bar."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TextIO

from msgspec import Struct

from convlint.cli.streams.files import FileUse, append, replace_file
from convlint.cli.streams.gate import bare, harmless, style_of, write
from convlint.errors import UsageError, suggestion
from convlint.files.languages import ENGLISH
from convlint.files.languages.saying import speaking
from convlint.model.report import Report
from convlint.reporters import Reporter, Style, reporter

if TYPE_CHECKING:
    import threading

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
            # an image or a table in a binary format is of no use in a terminal
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
        text = _rendered(report, language, found, style)
        deliver(place.file, text, style, annotations=found.annotations, stream=stream)


def append_summary(file: str, report: Report) -> None:
    """Adds the job's summary, which is English, to its file. Raises UsageError where it cannot be written."""
    from convlint.reporters import github

    append(file, harmless(github.summary(report)))


def _rendered(report: Report, language: str, found: Reporter, style: Style) -> str:
    """The report in a format that speaks the `language` of its run, or English."""
    if language == ENGLISH or not found.for_people:
        return found(report, style)
    from convlint.reporters.translated import in_language

    with speaking(language):
        return found(in_language(report, language), style)


DELAY_S = 1.0  # shorter runs show no bar, and do not load Rich, which takes longer than most of them


class Progress:
    """A progress bar on standard error.

    It shows nothing where nobody watches: where that is no terminal, with --quiet, or in a run that is soon over.
    """

    def __init__(self, stream: TextIO, *, quiet: bool, doing: str = "checking") -> None:
        self._stream, self._doing = stream, doing
        self._watched = not quiet and stream.isatty()
        self._timer: threading.Timer | None = None
        self._lock: Any = None  # made where there is a second thread
        self._bar: Any = None
        self._task: Any = None
        self._total: int | None = 0
        self._finished = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is None:
            return
        self._timer.cancel()
        with self._lock:
            self._watched = False
            if self._bar is not None:
                with suppress(OSError):  # the terminal is gone
                    self._bar.stop()

    def start(self, total: int | None) -> None:
        """From now on `total` inputs are checked; None where nobody knows how many there are."""
        self._total = total
        if self._watched:
            import threading

            self._lock = threading.Lock()
            self._timer = threading.Timer(DELAY_S, self._show)
            self._timer.daemon = True
            self._timer.start()

    def done(self, path: str) -> None:
        """The input at `path` is checked."""
        self._finished += 1
        if self._lock is None:
            return
        with self._lock:
            if self._bar is not None:
                from convlint.files.safe import clean_path

                self._bar.update(self._task, completed=self._finished, path=clean_path(path))

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bar

        with self._lock:
            if not self._watched:
                return
            columns = (
                TextColumn(self._doing),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[path]}", markup=False),
            )
            console = Console(
                file=bare(self._stream)
            )  # it moves the cursor; the one text in it that comes from outside is cleaned
            # Whatever else is printed goes through the gate, not through Rich.
            self._bar = Bar(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
            self._task = self._bar.add_task("", total=self._total, completed=self._finished, path="")
            self._bar.start()
