"""Sentences in the language that is spoken at the moment: English, unless a command has chosen another one.

While a network is checked nobody knows which formats a text goes to, so that it is said in both languages (`pairs`);
while a report for people is rendered, it is said in theirs. The choice is the process's, as a run has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from convlint.files.languages import ENGLISH

if TYPE_CHECKING:
    from convlint.files.languages.catalogue import Catalogue

_NOBODY: tuple[Catalogue | None, bool] = (None, False)
_spoken = _NOBODY


@contextmanager
def speaking(language: str, *, both: bool = False) -> Iterator[None]:
    """What is said within is in `language`, or in `both` it and English."""
    global _spoken
    before = _spoken
    if language == ENGLISH:
        _spoken = _NOBODY
    else:
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
    from convlint.files.languages.pairs import pair, tidied  # which English has no use for

    other = known.sentence(english)
    other = other.format(**values) if values else other
    return pair(said, other) if both else tidied(other)


def rule_text(code: str, english: str) -> str:
    """A text of a rule in the language that is spoken; in English where that has none."""
    known, both = _spoken
    other = None if known is None else known.of_rule(code, english)
    if other is None:
        return english
    from convlint.files.languages.pairs import pair

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
