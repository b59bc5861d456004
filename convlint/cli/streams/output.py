"""Where output goes: each format to its file or stream, and how a terminal is dressed."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import TextIO

from convlint.cli.streams.destinations import Destination
from convlint.cli.streams.files import replace_file
from convlint.cli.streams.gate import Gate
from convlint.report import Report
from convlint.reporters import Style, reporter
from convlint.reporters.harmless import harmless

_WIDEST = 1000  # columns; no terminal is wider, but COLUMNS may say anything


def write_outputs(report: Report, outputs: Sequence[Destination], *, color: str, quiet: bool) -> None:
    """Renders each format to its place. Raises UsageError where a file cannot be written after all."""
    for name, path in outputs:
        found = reporter(name)
        if path is None:
            style = style_of(sys.stdout, color, quiet=quiet)
            write(sys.stdout, found(report, style), style, annotations=found.annotations)
        else:
            text = found(report, Style(quiet=quiet, color=False))
            replace_file(path, harmless(text, annotations=found.annotations))


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
