"""Where something was written."""

from __future__ import annotations

from msgspec import Struct

# Where a value was written: line, column, end line, end column; all from 1, the end column exclusive.
Span = tuple[int, int, int, int]


class Location(Struct, frozen=True, kw_only=True, cache_hash=True):
    """A place in an input. Lines and columns count from 1; None where the format has none (an ONNX graph).

    `library` is the line of a library that stands behind a line of the user's, such as `timm/models/resnet.py:30`;
    `model` the entry of the config that it is about. In a notebook, `line` is that of the file, without a column, and
    `cell` has the cell, counted as the notebook has them, with the line and column there.
    """

    path: str
    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    library: str = ""
    model: str = ""
    cell: tuple[int, int, int | None] | None = None


class TextEdit(Struct, frozen=True, kw_only=True):
    """What takes the place of a part of a file, or goes in where both ends are one.

    Lines, which end with LF or CRLF, and columns count from 1, columns in code points and without a byte order mark;
    the end is exclusive.
    """

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str


class CodeEdit(Struct, frozen=True, kw_only=True):
    """`new` takes the place of the bytes from `start` up to `end` of a file; where both are equal, it is inserted."""

    path: str
    start: int
    end: int
    new: str
