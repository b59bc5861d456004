"""A text in two languages at once, for as long as nobody knows yet which formats it goes to.

The engine puts texts together: it adds words before, behind and in between, fills in what it learns last, and compares.
A pair stands in such a text between marks, so that all this works on both halves alike; a report is made of one half.
"""

from __future__ import annotations

import re

# Control characters: what stands for something unknown in a text is NUL already, and no report keeps any of them.
_START, _MIDDLE, _END = "\x02", "\x1f", "\x03"
_MARKS = re.compile(f"[{_START}{_MIDDLE}{_END}]")
_PAIR = re.compile(f"{_START}([^{_START}{_MIDDLE}{_END}]*){_MIDDLE}([^{_START}{_MIDDLE}{_END}]*){_END}")
_BESIDE = re.compile(r"(?<=[，。；：、！？（）]) +| +(?=[，。；：、！？（）])")
_DEEPEST = 20  # pairs within pairs; the engine makes three


def pair(english: str, other: str) -> str:
    """Both texts as one; either may hold pairs itself."""
    return english if english == other else f"{_START}{english}{_MIDDLE}{other}{_END}"


def english_of(text: str) -> str:
    """The text with the English half of each pair in it."""
    return _half(text, 1)


def other_of(text: str) -> str:
    """The text with the other half of each pair in it."""
    return _half(text, 2)


def tidied(text: str) -> str:
    """The text without spaces beside full-width punctuation, which brings its own: parts do not know what is next."""
    return _BESIDE.sub("", text) if not text.isascii() else text


def unmarked(text: str) -> str:
    """The text without anything that could be taken for a mark: names come from files."""
    return _MARKS.sub("", text) if _START in text or _MIDDLE in text or _END in text else text


def _half(text: str, which: int) -> str:
    if _START not in text:
        return unmarked(text)
    for _ in range(_DEEPEST):  # innermost first
        text, found = _PAIR.subn(lambda match: match[which], text)
        if not found:
            break
    return unmarked(text)
