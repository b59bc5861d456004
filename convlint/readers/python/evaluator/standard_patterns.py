"""Regular expressions on texts that are known, where they cannot take long."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from convlint.readers.python.evaluator.library import Call
from convlint.readers.python.evaluator.limits import LONGEST
from convlint.readers.python.evaluator.stated import stated_by
from convlint.readers.python.evaluator.values import Const, Items, Value

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

Known = Callable[["Machine", Call], "Value | None"]
LONGEST_PATTERN, LONGEST_TEXT, MOST_REPEATS = 100, 200, 2


def _applied(function: Callable[..., Any]) -> Known:
    def run(_: Machine, call: Call) -> Value | None:
        texts = [value.value for value in call.args if isinstance(value, Const) and isinstance(value.value, str)]
        if len(texts) != len(call.args) or call.keywords or not call.exact or len(texts) < 2:
            return None
        if not is_harmless(texts[0]) or len(texts[-1]) > LONGEST_TEXT:
            return None
        try:
            found = function(*texts)
        except (re.error, TypeError, ValueError, OverflowError, RecursionError, MemoryError):
            return None
        stated = stated_by(*call.args)
        if isinstance(found, str):
            return Const(found, stated) if len(found) <= LONGEST else None
        if not all(isinstance(each, str) for each in found):
            return None
        return Items("list", [Const(each, stated) for each in found[:LONGEST]])

    return run


def is_harmless(pattern: str) -> bool:
    """Whether the time that it takes is bounded by a low power of the length of a text: no repeat within a repeat."""
    repeats = len(re.findall(r"[*+?{]", pattern))
    return len(pattern) <= LONGEST_PATTERN and repeats <= MOST_REPEATS and not re.search(r"\)[*+?{]|\\[0-9]", pattern)


PATTERNS: dict[str, Known] = {
    "re.split": _applied(re.split), "re.findall": _applied(re.findall), "re.sub": _applied(re.sub),
}  # fmt: skip
