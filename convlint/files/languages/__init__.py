"""The languages of reports: which there are, how one is chosen, and sentences, durations and counts in it.

English is the language of the rules and of the code; each other one is a catalogue of pairs beside this module.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from convlint.files.patterns import pattern
from convlint.model.errors import UsageError, suggestion

if TYPE_CHECKING:
    from convlint.files.languages.catalogue import Catalogue


ENGLISH = "en"
LANGUAGES: tuple[str, ...] = (ENGLISH, "zh")
VARIABLE = "CONVLINT_LANG"


def language_asked(flag: str | None, environ: Mapping[str, str] = os.environ) -> str | None:
    """What the flag says, else the variable; None where the config is to say. Raises UsageError for an unknown one."""
    if flag is not None:
        return _known(flag, "--lang")
    return _known(environ[VARIABLE], VARIABLE) if environ.get(VARIABLE) else None


def language_chosen(asked: str | None, configured: Callable[[], str | None]) -> str:
    """What was asked for, else what the config says, which is read only where nothing was; else English."""
    return asked or configured() or ENGLISH


def _known(value: str, where: str) -> str:
    if value in LANGUAGES:
        return value
    raise UsageError(f"{where}: {value!r} is not one of {', '.join(LANGUAGES)}{suggestion(value, LANGUAGES)}")


_BESIDE = pattern(r"(?<=[，。；：、！？（）]) +| +(?=[，。；：、！？（）])")


def tidied(text: str) -> str:
    """The text without spaces beside full-width punctuation, which brings its own: parts do not know what is next."""
    return _BESIDE.sub("", text) if not text.isascii() else text


_spoken: Catalogue | None = None  # None: English


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Makes `language` the one that is spoken within."""
    global _spoken
    before = _spoken
    _spoken = None
    if language != ENGLISH:
        from convlint.files.languages.catalogue import catalogue  # English runs need not load it

        _spoken = catalogue(language)
    try:
        yield
    finally:
        _spoken = before


def say(english: str, /, **values: object) -> str:
    """The sentence, with `values` for the names in it."""
    template = english if _spoken is None else _spoken.sentence(english)
    text = template.format(**values) if values else template
    return text if _spoken is None else tidied(text)


def rule_text(code: str, english: str) -> str:
    """A text of a rule in the language that is spoken; in English where that has none."""
    return (None if _spoken is None else _spoken.of_rule(code, english)) or english


def spoken() -> str:
    """The language that is spoken."""
    return ENGLISH if _spoken is None else _spoken.language


def is_english() -> bool:
    """Whether English is spoken."""
    return _spoken is None


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
