"""Dotted versions of libraries, compared number by number."""

from __future__ import annotations

import re
from functools import lru_cache, total_ordering

_VERSION = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})*")


@total_ordering
class Version:
    """A dotted version, compared number by number; also against text, so that rules can write `< "7.6.3"`."""

    __slots__ = ("numbers", "text")

    def __init__(self, text: str) -> None:
        """Reads the leading numbers ("2.1.0+cu118" is 2.1.0). Raises ValueError where there are none."""
        match = _VERSION.match(text.strip())
        if match is None:
            raise ValueError(f"not a version: {text!r}")
        numbers = [int(part) for part in match.group().split(".")]
        while len(numbers) > 1 and numbers[-1] == 0:
            numbers.pop()
        self.text, self.numbers = text, tuple(numbers)

    def __eq__(self, other: object) -> bool:
        that = _read(other) if isinstance(other, str) else other
        return isinstance(that, Version) and self.numbers == that.numbers

    def __lt__(self, other: object) -> bool:
        that = _read(other) if isinstance(other, str) else other
        return self.numbers < that.numbers if isinstance(that, Version) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.numbers)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Version({self.text!r})"


@lru_cache(maxsize=256)
def _read(text: str) -> Version:
    """What a rule compares with, at every layer the same few."""
    return Version(text)
