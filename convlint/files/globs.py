"""Patterns with `*`, `?`, `[…]` and, for paths, `**`, as regular expressions that do not backtrack.

A star takes as little as the text after it allows, and never more once that text was found. With pieces of a fixed
length between the stars, no other choice can make a difference. So matching takes at most the length of the text times
that of the pattern, whatever pattern a config of somebody else's has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

MOST_CHARACTERS = 500  # of one pattern
_END = r"(?=/|\Z)"  # of a part of a path


def refusal(pattern: str) -> str | None:
    """Why a pattern is refused; None where it is not."""
    return f"the pattern is longer than {MOST_CHARACTERS} characters" if len(pattern) > MOST_CHARACTERS else None


@lru_cache(maxsize=1024)
def name_expression(pattern: str) -> re.Pattern[str]:
    """An expression for whole names, such as those of layers: `*` and `?` stand for any characters."""
    return re.compile(_part(pattern, any_one=".", end=r"\Z"), re.DOTALL)


@lru_cache(maxsize=1024)
def path_expression(parts: Sequence[str], *, below: bool) -> re.Pattern[str]:
    """An expression for relative paths, written as `/a/b`: `*` and `?` stay within a part, `**` is any number of parts.

    `below`: files in a folder that matches do so too. Otherwise a last `**` stands for at least one part.
    """
    chunks: list[str] = [""]  # the expressions between one `**` and the next
    for part in parts:
        if part == "**":
            chunks.append("")
        else:
            chunks[-1] += f"/(?>{_part(part, any_one='[^/]', end=_END)})"
    *first, last = chunks
    text = "".join(f"(?>(?:/[^/]*+)*?{chunk})" if number else chunk for number, chunk in enumerate(first) if chunk)
    spanned = bool(first)
    if below:
        text += f"(?>(?:/[^/]*+)*?{last})" if spanned else last
    elif last:
        text += (r"(?:/[^/]*+)*?" if spanned else "") + last + r"\Z"
    else:
        text += r"(?:/[^/]*+)++\Z"
    return re.compile(text, re.DOTALL)


def _part(pattern: str, *, any_one: str, end: str) -> str:
    """The expression for a pattern without `/`; `any_one` matches one character, `end` the end of the text."""
    pieces = [""]  # the expressions between one star and the next
    index = 0
    while index < len(pattern):
        char = pattern[index]
        index += 1
        if char == "*":
            if len(pieces) == 1 or pieces[-1]:
                pieces.append("")
        elif char == "?":
            pieces[-1] += any_one
        elif char == "[" and (close := _close(pattern, index)) > 0:
            pieces[-1] += _set(pattern[index:close], any_one)
            index = close + 1
        else:
            pieces[-1] += re.escape(char)
    first, *others = pieces
    if not others:
        return first + end
    *middle, last = others
    return first + "".join(f"(?>{any_one}*?{piece})" for piece in middle) + f"{any_one}*{last}{end}"


def _close(pattern: str, index: int) -> int:
    """The index of the bracket that closes a set; one that comes first in the set is a member of it."""
    index += pattern[index : index + 1] == "!"
    return pattern.find("]", index + 1)


def _set(content: str, any_one: str) -> str:
    """The expression for a set, given what is between its brackets."""
    negated = content.startswith("!")
    content = content[negated:]
    members = ""
    index = 0
    while index < len(content):
        low = high = content[index]
        if content[index + 1 : index + 2] == "-" and index + 2 < len(content):
            high = content[index + 2]
            index += 2
        index += 1
        if low <= high:  # a reversed range has no members; `re` would raise an error
            members += f"{re.escape(low)}-{re.escape(high)}"
    if not members:
        return any_one if negated else "(?!)"
    return f"(?:(?={any_one})[{'^' * negated}{members}])"
