"""Bars as SVG within a page: text labels beside each, colours by classes that follow the theme."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from msgspec import Struct

_WIDTH, _ROW, _BAR = 640, 44, 14
_NAMES = 96  # columns of the names at the left, in the drawing's units
_LEAST = 1.5  # no bar is thinner


class Bar(Struct, frozen=True, kw_only=True):
    """One row: its name, its length, the part of that which is marked, and the words above the bar."""

    name: str
    value: float
    marked: float = 0.0
    words: str
    kind: str = "plain"  # what the marked part is: saved, idle


def bars(rows: Sequence[Bar], title: str) -> list[str]:
    """The drawing as lines of HTML, all bars on one scale; `title` is what a screen reader says of it."""
    longest = max((row.value for row in rows), default=0.0)
    height = _ROW * len(rows) + 4
    lines = [
        '<figure class="chart" markdown="0">',
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(_all(rows, title))}">',
    ]
    for number, row in enumerate(rows):
        lines += _row(row, number * _ROW, longest)
    return [*lines, "</svg>", "</figure>", ""]


def _row(row: Bar, top: int, longest: float) -> list[str]:
    room = _WIDTH - _NAMES
    length = max(_LEAST, room * row.value / longest) if row.value > 0 and longest > 0 else 0.0
    part = min(length, length * row.marked / row.value) if row.value > 0 else 0.0
    middle = top + 33
    lines = [
        f'<text class="name" x="0" y="{middle}">{escape(row.name)}</text>',
        f'<text class="words" x="{_NAMES}" y="{top + 16}">{escape(row.words)}</text>',
    ]
    if length - part > 0:
        lines.append(_rect("time", _NAMES, top, length - part))
    if part > 0:
        lines.append(_rect(row.kind, _NAMES + length - part, top, part))
    return lines


def _rect(kind: str, left: float, top: int, width: float) -> str:
    return f'<rect class="{kind}" x="{left:.1f}" y="{top + 22}" width="{width:.1f}" height="{_BAR}"/>'


def _all(rows: Sequence[Bar], title: str) -> str:
    return f"{title}: " + "; ".join(f"{row.name}: {row.words}" for row in rows)
