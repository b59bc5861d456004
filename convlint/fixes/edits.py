"""Edits of a text: which characters are replaced, and by what."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct


class Edit(Struct, frozen=True, order=True, gc=False):
    """`new` takes the place of the characters from `start` up to `end`; where both are equal, it is inserted there."""

    start: int
    end: int
    new: str


def applied(text: str, edits: Iterable[Edit]) -> str:
    """The text after all edits. Raises ValueError where two overlap, insert at one place, or leave the text."""
    parts: list[str] = []
    done, inserted = 0, -1
    for edit in sorted(edits):
        if not done <= edit.start <= edit.end <= len(text):
            raise ValueError(f"an edit of {edit.start} to {edit.end} overlaps another or leaves the text")
        if edit.start == edit.end:
            if edit.start == inserted:
                raise ValueError(f"two edits insert at {inserted}")
            inserted = edit.start
        parts += (text[done : edit.start], edit.new)
        done = edit.end
    return "".join([*parts, text[done:]])
