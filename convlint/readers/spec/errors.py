"""The errors of one spec: all of them, up to a bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from convlint.errors import InputFault
from convlint.readers.untrusted.limits import MOST_MESSAGES
from convlint.report import InputError

_T = TypeVar("_T")


class TooManyErrors(Exception):
    """Enough was said about this file."""


class SpecErrors:
    """Grows as the spec at `path` is read; reading goes on after each."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.found: list[InputError] = []

    def fail(self, error: InputFault) -> None:
        """Notes an error. Raises TooManyErrors."""
        if len(self.found) >= MOST_MESSAGES:
            self.found.append(InputError(path=self.path, message=f"more than {MOST_MESSAGES} errors; not read further"))
            raise TooManyErrors
        self.found.append(InputError(path=self.path, message=error.message, line=error.line, column=error.column))

    def attempt(self, what: Callable[[], _T], otherwise: _T) -> _T:
        """What `what` returns, or `otherwise` once its error is noted."""
        try:
            return what()
        except InputFault as error:
            self.fail(error)
            return otherwise
