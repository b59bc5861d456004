"""The words and marks of a TOML text in one pass, whatever the text, and the limits that keep reading it cheap.

tomllib takes quadratic time for deep keys and a kilobyte for each part of a key. Its work is bounded here, before it
starts: a text is refused by what it is made of, wherever its mistakes are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST_MARKS = 50_000  # of `[`, `{`, `,`, `.` and `=`: some ten thousand lines
MOST_PARTS = 16  # names joined by dots in one key
MOST_NESTED = 32  # brackets within brackets
MOST_WORD = 10_000  # characters of a number or bare key

# Every alternative either matches without going back or not at all, so that no text takes more than one pass.
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r]++|\#[^\n]*+)
      | (?P<newline>\n)
      | (?P<string>\"{3}(?:[^"\\]++|\\.|"(?!""))*+\"{3,5}|'{3}(?:[^']++|'(?!''))*+'{3,5}
          |(?!\"{3})"(?:[^"\\\n]++|\\[^\n])*+"|(?!'{3})'[^'\n]*+')
      | (?P<mark>[\[\]{}=,.])
      | (?P<bare>[^\s\[\]{}=,.\#"']++)
      | (?P<odd>.)""",
    re.VERBOSE | re.DOTALL,
)


def tokens(text: str) -> Iterator[re.Match[str]]:
    """All but the spaces and comments, up to the first thing that no TOML can hold; `lastgroup` says what each is."""
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "odd":  # a quote that is never closed, for one: tomllib stops here as well
            return
        if match.lastgroup != "space":
            yield match


def problem(text: str, marks: int = 0) -> tuple[int, str, int]:
    """(marks counted, what is beyond the limits or nothing, where); `marks` are those of texts that belong to it."""
    nested = parts = 0
    dotted = False  # whether the last mark was a dot, so that a name goes on
    for match in tokens(text):
        mark = match.group() if match.lastgroup == "mark" else ""
        if not mark:
            parts = parts + 1 if dotted else 1
            dotted = False
            if parts > MOST_PARTS:
                return marks, f"a key has more than {MOST_PARTS} parts", match.start()
            if match.lastgroup == "bare" and match.end() - match.start() > MOST_WORD:
                return marks, f"a word is longer than {MOST_WORD:,} characters", match.start()
            continue
        dotted = mark == "."
        if mark in "]}":
            nested = max(0, nested - 1)
            continue
        nested += mark in "[{"
        if nested > MOST_NESTED:
            return marks, "is nested too deep", match.start()
        marks += 1
        if marks > MOST_MARKS:
            return marks, f"holds more than {MOST_MARKS:,} keys and values", match.start()
    return marks, "", 0
