"""Makes text from files harmless to print: removes control and direction characters, line breaks, lone surrogates.

Quoting and the escapes of a format are done in the format's own module.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from typing import Any

from convlint.files.patterns import pattern

_ANSI = pattern(r"\x1b\[[0-?]*[ -/]*[@-~]|\x9b[0-?]*[ -/]*[@-~]")  # colours and cursor movements, as a whole
_CI_COMMAND = pattern(r"(?<!#)##++(?=\w*\[)")  # Azure Pipelines, TeamCity, and GitHub's old form
_KEPT_FORMATS = "\u200c\u200d"  # joiners, without which Persian, Indic scripts and emoji are not readable
_REPLACEMENT = "\ufffd"
_MOST_KNOWN = 4096  # characters whose replacement is remembered; a hostile text may have all of Unicode


def clean(text: str) -> str:
    """The text as one printable line: line breaks and tabs become spaces, other control characters are dropped.

    Commands that CI systems execute anywhere in a line of a log (`##[error]`, `##vso[...]`) are broken up.
    """
    if not text.isprintable():
        text = _ANSI.sub("", text).translate(_LINE)
    return break_up_commands(text) if "##" in text else str(text)  # without what a Text keeps for translations


def printable(text: str) -> str:
    """The text without characters that control a terminal; tabs and line feeds stay."""
    return text.translate(_TEXT)


def break_up_commands(text: str) -> str:
    """The text with `##[error]`, `##vso[...]` and the like changed, so that no CI system executes them."""
    return _CI_COMMAND.sub(lambda match: "#" + "_" * (len(match[0]) - 1), text)


def is_exact(text: str) -> bool:
    """Whether the text is printed unchanged in a format that escapes its line breaks (LF, CRLF)."""
    text = text.replace("\r\n", "\n")
    return printable(text) == text == break_up_commands(text)


class _Replacements(dict[int, str]):
    """A table for `str.translate` that is filled as characters occur."""

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
    """Whether this is a noncharacter, U+FDD0 to U+FDEF or one of the last two of a plane; XML forbids some."""
    code = ord(char)
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF


def ascii_only(text: str) -> str:
    r"""The text with everything beyond ASCII written as `\xe9`, `\u4e2d` or `\U0001f600`."""
    return text if text.isascii() else text.encode("ascii", "backslashreplace").decode("ascii")


def clean_path(path: str) -> str:
    """A path, cleaned and without a leading `./`, which stays where GitHub would read `::` as a command."""
    path = clean(path)
    while path.startswith("./"):
        path = path[2:].lstrip("/") or "."
    return f"./{path}" if path.lstrip().startswith("::") else path


def number(value: float | None, digits: int = 3) -> float | None:
    """The value rounded; None for NaN and the infinities, which JSON does not have."""
    if value is None or not math.isfinite(value):
        return None
    return round(value, digits)


def plain(value: Any, digits: int = 3) -> Any:
    """The value as JSON has it: text cleaned, numbers rounded, tuples as lists, settings of a fix by their fields."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float):
        return number(value, digits)
    if isinstance(value, Mapping):
        return {clean(key): plain(item, 6) for key, item in value.items()}
    return [plain(item, digits) for item in value] if isinstance(value, tuple) else value


def fields(record: object, *names: str) -> dict[str, Any]:
    """These fields of a record as JSON has them, each under its own name; `path` is cleaned as one."""
    result: dict[str, Any] = {}
    for name in names:
        value = getattr(record, name)
        kind = value.__class__
        if kind is float:  # most values are numbers, and a report has many
            value = number(value)
        elif kind is str:
            value = clean_path(value) if name == "path" else clean(value)
        elif kind is not int and value is not None:
            value = plain(value)
        result[name] = value
    return result
