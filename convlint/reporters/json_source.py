"""What the JSON says of Python source: how much of it was read, and places in it."""

from __future__ import annotations

from typing import Any

from convlint.files.safe import clean, clean_path
from convlint.model.location import Location
from convlint.model.source import SourceReport


def source_object(source: SourceReport) -> dict[str, Any]:
    """What was read, what was not, and why."""
    return {
        "files": len(source.files),
        "programs": source.programs,
        "constructions": source.constructions,
        "known": source.known,
        "unread": [{**place_object(each.at), "why": clean(each.why)} for each in source.unread],
        "unread_files": [
            {"path": clean_path(path), "line": each.line, "column": each.column, "why": clean(each.why)}
            for path, each in source.unread_files.items()
        ],
    }


def place_object(at: Location) -> dict[str, Any]:
    """A place, with its cell in a notebook."""
    return {"path": clean_path(at.path), "line": at.line, "column": at.column, **cell_object(at)}


def cell_object(at: Location) -> dict[str, Any]:
    """Where in a notebook; nothing of other files."""
    if at.cell is None:
        return {}
    cell, line, column = at.cell
    return {"cell": cell, "cell_line": line, "cell_column": column}
