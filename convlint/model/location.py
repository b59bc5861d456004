"""Where something was written."""

from __future__ import annotations

from msgspec import Struct

# Where a value was written: line, column, end line, end column; all from 1, the end column exclusive.
Span = tuple[int, int, int, int]


class Location(Struct, frozen=True, kw_only=True):
    """A place in an input. Lines and columns count from 1; None where the format has none (an ONNX graph)."""

    path: str
    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
