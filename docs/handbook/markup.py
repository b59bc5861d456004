"""Markdown from plain text: what has to be escaped, tables, addresses that become links."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_ADDRESS = re.compile(r"https?://[^\s;,|<>\"]*[^\s;,|<>\".)]")
_SPECIAL = re.compile(r"[\\`*_\[\]<>|#{}&]")


def text(plain: object) -> str:
    """The text with nothing in it that Markdown or HTML would take for markup; addresses become links."""
    words, done = [], 0
    plain = " ".join(str(plain).split())
    for match in _ADDRESS.finditer(plain):
        words += [_escaped(plain[done : match.start()]), f"<{match[0]}>"]
        done = match.end()
    return "".join([*words, _escaped(plain[done:])])


def _escaped(plain: str) -> str:
    return _SPECIAL.sub(lambda match: f"&#{ord(match[0])};", plain)


def code(plain: object) -> str:
    """The text as code within a line."""
    words = " ".join(str(plain).split())
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", words)), default=0))
    return f"{fence}{words}{fence}"


def block(lines: Iterable[str], language: str = "") -> list[str]:
    """The lines as a block of code."""
    return [f"```{language}", *lines, "```", ""]


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[int] = ()) -> list[str]:
    """A table of cells that are Markdown already; the columns `right` are numbers."""
    numbers = set(right)
    rule = ["--:" if column in numbers else "---" for column in range(len(head))]
    return [*("| " + " | ".join(row) + " |" for row in (head, rule, *rows)), ""]
