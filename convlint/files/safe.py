"""Makes text from files harmless to print: no control or direction characters, line breaks or lone surrogates.

What a format needs beyond that (quoting, its own escapes) is done in the format's module.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x9b[0-?]*[ -/]*[@-~]")  # colours and cursor movements, as a whole
_CI_COMMAND = re.compile(r"(?<!#)##++(?=\w*\[)")  # Azure Pipelines, TeamCity, and GitHub's old form
_KEPT_FORMATS = "\u200c\u200d"  # joiners: Persian, Indic scripts and emoji are not readable without
_REPLACEMENT = "\ufffd"
_MOST_KNOWN = 4096  # characters whose replacement is kept; a text may hold every one there is


def clean(text: str) -> str:
    """One line of printable text; line breaks and tabs become a space, what cannot be shown is dropped.

    Commands that CI systems read anywhere in a line of a log (`##[error]`, `##vso[...]`) are broken up.
    """
    if not text.isprintable():
        text = _ANSI.sub("", text).translate(_LINE)
    return break_up_commands(text) if "##" in text else text


def printable(text: str) -> str:
    """The text without what steers a terminal; tabs and line feeds stay."""
    return text.translate(_TEXT)


def break_up_commands(text: str) -> str:
    """The text without `##[error]`, `##vso[...]` and the like, wherever in a line they stand."""
    return _CI_COMMAND.sub(lambda found: "#" + "_" * (len(found[0]) - 1), text)


def is_exact(text: str) -> bool:
    r"""Whether the text leaves this process as it is, in a format that escapes line breaks (LF, CRLF)."""
    text = text.replace("\r\n", "\n")
    return printable(text) == text == break_up_commands(text)


class _Replacements(dict[int, str]):
    """What each character becomes, worked out when it first occurs."""

    def __missing__(self, code: int) -> str:
        char = _clean_char(chr(code))
        if len(self) < _MOST_KNOWN:
            self[code] = char
        return char


_LINE = _Replacements()
_TEXT = _Replacements({ord("\t"): "\t", ord("\n"): "\n"})


def _clean_char(char: str) -> str:
    category = unicodedata.category(char)
    if category[0] == "Z" or char in "\t\n\v\f\r\x85":
        return " "
    if category == "Cs" or (category == "Cn" and is_noncharacter(char)):
        return _REPLACEMENT
    if category == "Cc" or (category == "Cf" and char not in _KEPT_FORMATS):
        return ""
    return char


def is_noncharacter(char: str) -> bool:
    """U+FDD0 to U+FDEF and the last two of each plane: no text has them, and XML forbids some."""
    code = ord(char)
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF


def ascii_only(text: str) -> str:
    r"""The text with everything beyond ASCII written as `\xe9`, `\u4e2d` or `\U0001f600`."""
    return text if text.isascii() else text.encode("ascii", "backslashreplace").decode("ascii")


def clean_path(path: str) -> str:
    """A path as people write it: cleaned, and without a leading `./`, unless a log would read it as a command."""
    path = clean(path)
    while path.startswith("./"):
        path = path[2:].lstrip("/") or "."
    return f"./{path}" if path.lstrip().startswith("::") else path


def number(value: float | None, digits: int = 3) -> float | None:
    """The value rounded, and None for what JSON cannot say (NaN and the infinities)."""
    if value is None or not math.isfinite(value):
        return None
    return round(value, digits)


def settings_object(values: Mapping[str, str | int | float | bool]) -> dict[str, Any]:
    """What a fix sets, by field."""
    settings: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, str):
            settings[clean(key)] = clean(value)
        else:
            settings[clean(key)] = number(value, 6) if isinstance(value, float) else value
    return settings
