"""The exceptions of convlint: one family, so that callers can catch exactly ours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal


class ConvlintError(Exception):
    """Base of every error that convlint raises on purpose."""


class UsageError(ConvlintError):
    """Wrong usage or configuration: an unknown rule, GPU, option or key (exit code 2)."""


class RuleError(UsageError):
    """A defect in a rule file, with the place where it stands (exit code 2)."""

    def __init__(self, message: str, *, path: str, line: int | None = None, column: int | None = None) -> None:
        self.message, self.path, self.line, self.column = message, path, line, column
        place = path + (f":{line}" if line is not None else "") + (f":{column}" if column is not None else "")
        super().__init__(f"{place}: {message}")


class InputFault(ConvlintError):
    """An input that cannot be read or resolved; readers turn it into an InputError value (exit code 3)."""

    def __init__(self, message: str, *, line: int | None = None, column: int | None = None) -> None:
        self.message, self.line, self.column = message, line, column
        super().__init__(message)


class AskedWrong(InputFault):
    """An input that is asked for in a way that cannot be right: by its `model` reference, or by its `inputs`."""

    def __init__(self, message: str, *, about: Literal["model", "inputs"]) -> None:
        super().__init__(message)
        self.about = about


DEFECT = "internal error: "  # how the message for one begins


def defect(error: BaseException) -> str:
    """The message for an error that nobody expected: a defect of convlint itself (exit code 4)."""
    import traceback

    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{DEFECT}{type(error).__name__}: {error} ({place.name}, line {place.lineno}); please report it"


def suggestion(word: str, known: Iterable[str]) -> str:
    """What to append to a message: "; did you mean 'x'?", or nothing."""
    import difflib

    if len(word) > 100:  # no name is that long, and the search for it takes quadratic time
        return ""
    options = list(known)
    close = difflib.get_close_matches(word, options, n=1) or difflib.get_close_matches(
        word.lower(), [option.lower() for option in options], n=1
    )
    spelled = {option.lower(): option for option in options}
    return f"; did you mean {spelled.get(close[0].lower(), close[0])!r}?" if close else ""


def shown(text: str) -> str:
    """A value from the file, short enough for a message."""
    return text if len(text) <= 40 else f"{text[:20]}… ({len(text)} characters)"
