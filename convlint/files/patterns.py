"""Patterns that are compiled when they are first asked for: those of all modules cost a tenth of a small check."""

from __future__ import annotations

import re
from typing import Any, AnyStr, Generic, cast

_compile = re.compile  # as it is: see late_patterns_of


class _LatePattern(Generic[AnyStr]):
    """Stands for a pattern until something of it is asked for, and hands its methods on from then on."""

    def __init__(self, text: AnyStr, flags: int) -> None:
        self._made_of: tuple[AnyStr, int] = (text, flags)

    def __getattr__(self, name: str) -> Any:
        if name == "_made_of":  # of a copy that is being made
            raise AttributeError(name)
        compiled = _compile(*self._made_of)
        for method in ("match", "fullmatch", "search", "sub", "split", "findall", "finditer"):
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """The compiled form of a pattern, later."""
    return cast("re.Pattern[AnyStr]", _LatePattern(text, flags))
