"""What the JSON says of Python source: how much of it was read, and places in it."""

from __future__ import annotations

from typing import Any

from convlint.files.safe import clean, clean_path
from convlint.model.location import Location
from convlint.model.source import PlacedLayer, SourceReport


def source_object(source: SourceReport) -> dict[str, Any]:
    """What was read, what was not, and why."""
    return {
        "files": len(source.files),
        "programs": source.programs,
        "constructions": source.constructions,
        "known": source.known,
        "layers": [_source_layer(each) for each in source.layers],
        "unread": [{**place_object(each.at), "why": clean(each.why)} for each in source.unread],
        "unread_files": [
            {"path": clean_path(path), "line": each.line, "column": each.column, "why": clean(each.why)}
            for path, each in source.unread_files.items()
        ],
        "unread_cells": [{**place_object(each.at), "why": clean(each.why)} for each in source.unread_cells],
    }


def _source_layer(placed: PlacedLayer) -> dict[str, Any]:
    """A convolution where it is constructed; sizes that nobody knows are null."""
    record, layer = placed.record, placed.record.layer
    sizes = ("D", "H", "W", "T", "R", "S", "StrideD", "U", "V") if layer.dims == 3 else ("H", "W", "R", "S", "U", "V")
    known = {name: None if name in record.unknown else getattr(layer, name) for name in (*sizes, "groups", "bias")}
    return {
        "name": clean(layer.name),
        **place_object(placed.at),
        "framework": record.framework,
        "op": layer.op,
        "C": layer.C,
        "K": layer.K,
        **known,
        "certainty": record.certainty,
        "condition": clean(record.condition) or None,
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
