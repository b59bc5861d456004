"""Locations in files, and edits of them; the base of what networks are made of."""

from __future__ import annotations

from msgspec import Struct

# The place of a value: line, column, end line, end column; all count from 1, the end column is exclusive.
Span = tuple[int, int, int, int]


class WireRecord(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What crosses from one process to another: defaults are left out, and a key that it does not have is refused."""


class Location(Struct, frozen=True, kw_only=True, cache_hash=True):
    """A place in an input. Lines and columns count from 1; they are None where the format has none (an ONNX graph).

    `library` is the line of a library that the user's line calls, such as `timm/models/resnet.py:30`; `model` is the
    entry of the config. In a notebook, `line` is that of the file, without a column, and `cell` is the number of the
    cell, and the line and column in it.
    """

    path: str
    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    library: str = ""
    model: str = ""
    cell: tuple[int, int, int | None] | None = None


def lies_in(at: Location, path: str, span: Span) -> bool:
    """Whether a place begins within a span of the file at `path`."""
    return (
        at.path == path
        and at.line is not None
        and at.column is not None
        and span[:2] <= (at.line, at.column) < span[2:]
    )


class TextEdit(Struct, frozen=True, kw_only=True):
    """A replacement of a part of a file, or an insertion where both ends are equal.

    Lines end with LF or CRLF. Lines and columns count from 1, columns in code points, without the byte order mark; the
    end is exclusive.
    """

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str


class CodeEdit(Struct, frozen=True, kw_only=True):
    """A replacement of the bytes from `start` up to `end` of a file by `new`; an insertion where both are equal."""

    path: str
    start: int
    end: int
    new: str
