"""Words in the user's language: the catalogue, texts in two languages at once, and the choice between them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from convlint.files.languages import ENGLISH

if TYPE_CHECKING:
    from convlint.files.languages.catalogue import Catalogue

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


_NOBODY: tuple[Catalogue | None, bool] = (None, False)
_spoken = _NOBODY


@contextmanager
def speaking(language: str, *, both: bool = False) -> Iterator[None]:
    """What is said within is in `language`, or in `both` it and English."""
    global _spoken
    before = _spoken
    _spoken = _NOBODY
    if language != ENGLISH:
        from convlint.files.languages.catalogue import catalogue  # which English has no use for

        _spoken = catalogue(language), both
    try:
        yield
    finally:
        _spoken = before


def say(english: str, /, **values: object) -> str:
    """The sentence, with `values` for the names in it."""
    said = english.format(**values) if values else english
    known, both = _spoken
    if known is None:
        return said

    other = known.sentence(english)
    other = other.format(**values) if values else other
    return pair(said, other) if both else tidied(other)


def rule_text(code: str, english: str) -> str:
    """A text of a rule in the language that is spoken; in English where that has none."""
    known, both = _spoken
    other = None if known is None else known.of_rule(code, english)
    if other is None:
        return english

    return pair(english, other) if both else other


def spoken() -> str:
    """The language that is spoken, beside English or alone."""
    return ENGLISH if _spoken[0] is None else _spoken[0].language


def is_english() -> bool:
    """Whether English alone is spoken."""
    return _spoken[0] is None


def sentence(english: str) -> str:
    """The text as it is, for tables of what is said later: it marks what a catalogue has to hold."""
    return english


def duration(time_us: float) -> str:
    """Three significant digits and a unit: `210 us`, `1.23 ms`, `4.5 s`."""
    value, unit = time_us, "us"
    for larger in ("ms", "s"):
        if abs(value) < 999.5:
            break
        value, unit = value / 1000, larger
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    text = f"{value:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {unit}"


def plural(count: int, noun: str) -> str:
    """`1 layer`, `2 layers`."""
    if not is_english():
        return say(f"{{count}} {noun}", count=count)
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
