"""Writing to a standard stream, and how a terminal is dressed."""

from __future__ import annotations

import os
import shutil
from typing import TextIO

from convlint.cli.streams.gate import Gate
from convlint.cli.streams.hyperlinks import follows_links
from convlint.reporters import Style

_WIDEST = 1000  # columns; no terminal is wider, but COLUMNS may say anything


def write(
    stream: TextIO, text: str, style: Style | None = None, *, annotations: bool = False, returns: bool = False
) -> None:
    """Text to a standard stream, in the colours of `style`; `annotations` for the github format alone.

    `returns` for what may have line breaks of two characters.
    """
    passing = stream if isinstance(stream, Gate) else Gate(stream)
    ending = "" if text.endswith("\n") or not text else "\n"
    passing.send(text + ending, inks=style is not None and style.color, annotations=annotations, returns=returns)
    passing.flush()


def style_of(stream: TextIO, color: str, *, quiet: bool = False) -> Style:
    """How to dress text for `stream`: --color first, then NO_COLOR and FORCE_COLOR, then whether it is a terminal.

    What has no colours has no links either.
    """
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
    links = colored and follows_links(os.environ, terminal=terminal)
    return Style(color=colored, links=links, width=min(max(40, width), _WIDEST), quiet=quiet, unicode=unicode)
