"""Libraries that are loaded without what they do for everybody and nothing here needs."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from convlint.files.patterns import pattern


def load_msgspec() -> None:
    """Loads msgspec without typing_extensions, which it asks for what typing has as well, and which takes as long."""
    absent: dict[str, object] = {"typing_extensions": None}
    if "typing_extensions" not in sys.modules:
        cast("dict[str, object]", sys.modules).update(absent)
        try:
            import msgspec  # noqa: F401
        finally:
            del sys.modules["typing_extensions"]


@contextmanager
def late_patterns_of(package: str) -> Iterator[None]:
    """While active, patterns that modules of `package` compile are compiled later: for its import, all at once."""
    original = re.compile

    def compile_(text: Any, flags: Any = 0) -> Any:
        caller: str = sys._getframe(1).f_globals["__name__"]
        return (pattern if caller.startswith(f"{package}.") else original)(text, flags)

    vars(re)["compile"] = compile_
    try:
        yield
    finally:
        vars(re)["compile"] = original
