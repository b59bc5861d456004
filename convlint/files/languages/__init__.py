"""The languages that people read reports in: which there are, and how a choice of one is checked.

English is the language of the rules and of the code; each other one is a catalogue of pairs beside this module.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from convlint.errors import UsageError, suggestion

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
