"""Where output goes: which format to which file, and how a terminal is dressed."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from convlint.commands.gate import Gate
from convlint.errors import UsageError, suggestion
from convlint.report import Report
from convlint.reporters import REPORTERS, Style, reporter
from convlint.reporters.harmless import harmless

_WIDEST = 1000  # columns; no terminal is wider, but COLUMNS may say anything


def parse_outputs(values: Sequence[str]) -> list[tuple[str, str | None]]:
    """`FORMAT[=FILE]` -> (format, file). Raises UsageError for an unknown format or two that share a place."""
    outputs: list[tuple[str, str | None]] = []
    for value in values or ("text",):
        name, _, path = value.partition("=")
        if name not in REPORTERS:
            raise UsageError(f"unknown format {name!r}{suggestion(name, REPORTERS)}; known are {', '.join(REPORTERS)}")
        if any(other == (path or None) for _, other in outputs):
            raise UsageError(f"two formats write to {path or 'standard output'}; give one of them a file: {name}=FILE")
        outputs.append((name, path or None))
    return outputs


def check_writable(outputs: Sequence[tuple[str, str | None]], inputs: Sequence[str] = ()) -> None:
    """Raises UsageError before anything is checked where a file could not be written, or would replace an input."""
    for _, path in outputs:
        if path is None:
            continue
        target = Path(path)
        if target.exists() and any(Path(source).exists() and target.samefile(source) for source in inputs):
            raise UsageError(f"{path} is an input; write to another file")
        folder = target.parent
        if target.is_dir():
            raise UsageError(f"{path} is a folder, not a file to write")
        if not folder.is_dir():
            raise UsageError(f"{path} cannot be written: there is no folder {folder}")
        if not os.access(target if target.exists() else folder, os.W_OK):
            raise UsageError(f"{path} cannot be written: permission denied")


def write_outputs(report: Report, outputs: Sequence[tuple[str, str | None]], *, color: str, quiet: bool) -> None:
    """Renders each format to its place. Raises UsageError where a file cannot be written after all."""
    for name, path in outputs:
        commands = name == "github"  # the one format that is made of them
        if path is None:
            style = style_of(sys.stdout, color, quiet=quiet)
            write(sys.stdout, reporter(name)(report, style), style, annotations=commands)
        else:
            text = reporter(name)(report, Style(quiet=quiet, color=False))
            replace_file(path, harmless(text, annotations=commands))


def replace_file(path: str, text: str) -> None:
    """Writes all of `text` or nothing: an existing file stays as it was until the new one is complete."""
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        if target.exists() and not target.is_file():  # a device or pipe, such as /dev/stderr
            target.write_text(text, encoding="utf-8", errors="replace", newline="\n")
            return
        temporary.write_text(text, encoding="utf-8", errors="replace", newline="\n")
        temporary.replace(target)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def append(path: str, text: str) -> None:
    """Adds `text` to a file that others write to as well. Raises UsageError where that cannot be done."""
    try:
        with open(path, "a", encoding="utf-8", errors="replace", newline="\n") as file:
            file.write(text)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise UsageError(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}") from error


def write(stream: TextIO, text: str, style: Style | None = None, *, annotations: bool = False) -> None:
    """Text to a standard stream, in the colours of `style`; `annotations` for the github format alone."""
    passing = stream if isinstance(stream, Gate) else Gate(stream)
    ending = "" if text.endswith("\n") or not text else "\n"
    passing.send(text + ending, inks=style is not None and style.color, annotations=annotations)
    passing.flush()


def style_of(stream: TextIO, color: str, *, quiet: bool = False) -> Style:
    """How to dress text for `stream`: --color first, then NO_COLOR and FORCE_COLOR, then whether it is a terminal."""
    terminal = stream.isatty()
    if color == "auto":
        colored = terminal and os.environ.get("TERM") != "dumb"
        if os.environ.get("FORCE_COLOR"):
            colored = True
        if os.environ.get("NO_COLOR"):
            colored = False
    else:
        colored = color == "always"
    width = shutil.get_terminal_size((80, 24)).columns if terminal or os.environ.get("COLUMNS") else 80
    unicode = (stream.encoding or "").lower().replace("-", "") in ("utf8", "utf16")
    return Style(color=colored, width=min(max(40, width), _WIDEST), quiet=quiet, unicode=unicode)
