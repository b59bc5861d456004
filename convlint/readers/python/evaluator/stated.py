"""Literals, and the union of those that a value was computed from."""

from __future__ import annotations

import ast

from convlint.model.source import Stated
from convlint.readers.python.evaluator.limits import MOST_STATED
from convlint.readers.python.evaluator.values import NOTHING_STATED, Const, Plain, Value
from convlint.readers.python.source_file import SourceFile

LONGEST_TEXT = 200  # characters of a text that a report may show


def literal(file: SourceFile, node: ast.expr, value: Plain, name: str, *, default: bool = False) -> Const:
    """The constant that stands at `node`, bound to `name` there; or the `default` of a parameter of that name."""
    if isinstance(value, bytes) or (isinstance(value, str) and len(value) > LONGEST_TEXT):
        return Const(value)
    stated = Stated(at=file.locate(node), value=value, name=name, default=default, quiet=file.is_quiet)
    return Const(value, frozenset((stated,)))


def union(first: frozenset[Stated], second: frozenset[Stated]) -> frozenset[Stated]:
    """Both, cut to what a value remembers; of many, those that stand first in their files."""
    if not second or first is second:
        return first
    if not first:
        return second
    both = first | second
    if len(both) <= MOST_STATED:
        return both
    return frozenset(sorted(both, key=_place)[:MOST_STATED])


def stated_by(*values: Value) -> frozenset[Stated]:
    """What these values were computed from."""
    found = NOTHING_STATED
    for value in values:
        if value.__class__ is Const:
            found = union(found, value.stated)
    return found


def _place(stated: Stated) -> tuple[str, int, int]:
    return stated.at.path, stated.at.line or 0, stated.at.column or 0
