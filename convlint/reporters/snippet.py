"""The offending source line with the value underlined, cut to the width around it."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

from convlint.files.safe import ascii_only, clean

_TAB = 4  # columns a tab advances to
_LEAD = 3  # a window opens a third of its width before the value


def excerpt(
    sources: Mapping[str, tuple[str, ...]],
    path: str,
    span: tuple[int | None, int | None, int | None, int | None],
    *,
    width: int,
    unicode: bool,
) -> tuple[str, int, int] | None:
    """The line to show, and where in it the underline starts and how long it is, in terminal columns.

    `span` is line, column, end line, end column. None where the place or its text is not known.
    """
    line, column, end_line, end_column = span
    lines = sources.get(path)
    if lines is None or line is None or not 1 <= line <= len(lines):
        return None
    text = lines[line - 1]
    text = text.rstrip("\r\n") if text[-1:] in "\r\n" else text
    start = min(max((column or 1) - 1, 0), len(text))
    if end_column is not None and end_line == line:
        end = end_column - 1
    elif end_line is not None and end_line > line:
        end = len(text.rstrip()) if len(text) < 8 * width else len(text)
    else:
        end = start + 1
    end = max(min(end, len(text)), start + 1)
    if len(text) <= width and text.isascii() and text.isprintable():
        return clean(text), start, end - start
    shown, start, length = _window(text, start, end, width, unicode)
    return clean(shown), start, length


def _window(text: str, start: int, end: int, width: int, unicode: bool) -> tuple[str, int, int]:
    """The part of a long or unusual line around start..end, each character made one or two plain columns."""
    more = "…" if unicode else "..."
    first = max(start - width, 0)  # look at no more of the line than may be shown: it may be a megabyte
    piece = text[first : start + width + 1]
    cells: Sequence[str] = piece
    offset: Sequence[int] = range(len(piece) + 1)
    if not (piece.isascii() and piece.isprintable()):
        cells = _cells(piece, unicode)
        offset = [0, *accumulate(map(columns, cells))]
    at = start - first
    stop = min(end - first, len(cells))
    before = first > 0
    after = start + width + 1 < len(text)
    left, right = 0, len(cells)
    if before or after or offset[-1] > width:
        room = width - 2 * len(more)
        lead = max(room // _LEAD, room - (offset[-1] - offset[at]) if not after else 0)
        left = bisect_left(offset, offset[at] - lead)
        right = max(bisect_right(offset, offset[left] + room) - 1, left)
        before, after = before or left > 0, after or right < len(cells)
    prefix = more if before else ""
    shown = prefix + "".join(cells[left:right]) + (more if after else "")
    underline = offset[max(min(stop, right), at)] - offset[at]
    return shown, len(prefix) + offset[at] - offset[left], max(underline, 1)


def _cells(text: str, unicode: bool) -> list[str]:
    cells: list[str] = []
    column = 0
    for char in text:
        if char == "\t":
            cell = " " * (_TAB - column % _TAB)
        elif char.isprintable():
            cell = char if unicode else ascii_only(char)
        else:
            cell = clean(char) or ("\ufffd" if unicode else "?")
            cell = cell if unicode else ascii_only(cell)
        cells.append(cell)
        column += columns(cell)
    return cells


def columns(text: str) -> int:
    """How many terminal columns the text takes: East Asian wide characters two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(map(_char_columns, text))


@lru_cache(maxsize=4096)
def _char_columns(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
