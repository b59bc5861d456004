"""What a terminal adds to plain lines: colours, links, drawn lines; and how lines are broken to its width."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from msgspec import Struct

from convlint.reporters.snippet import columns

# Written out, not taken from rich: a coloured report starts as fast as a plain one.
_CODES: Mapping[str, str] = {
    "error": "1;31",
    "warning": "1;33",
    "info": "1;36",
    "good": "1;32",
    "fair": "1;33",
    "poor": "1;31",
    "strong": "1",
    "frame": "34",
    "faint": "2",
    "label": "36",
    "fix": "32",
    "lost": "33",
    "added": "32",
    "removed": "31",
}
INK_CODES = frozenset((*_CODES.values(), "0"))  # all that a painter writes
GRADE_INKS: Mapping[str, str] = {"A": "good", "B": "good", "C": "fair", "D": "fair", "F": "poor"}

# punctuation that stays with what is before, or behind it
_CLOSING, _OPENING = "，。；：、！？）》」』”’％…", "（《「『“‘"

Paint = Callable[[str, str], str]
Link = Callable[[str, str], str]
# a link as terminals read it (OSC 8): what opens one, without its address, what ends that, and what closes the link
LINK_OPENS, LINK_ENDS = "\x1b]8;;", "\x1b\\"
LINK_CLOSES = LINK_OPENS + LINK_ENDS


def painter(color: bool) -> Paint:
    """A function (ink, text) -> text, in ANSI colours or as it was."""
    return _coloured if color else _plain


def _plain(_ink: str, text: str) -> str:
    return text


def _coloured(ink: str, text: str) -> str:
    return f"\x1b[{_CODES[ink]}m{text}\x1b[0m" if text else text


def linker(links: bool) -> Link:
    """A function (address, text) -> text, as a link of a terminal or as it was; so it is too without an address."""
    return _linked if links else _plain


def _linked(address: str, text: str) -> str:
    return f"{LINK_OPENS}{address}{LINK_ENDS}{text}{LINK_CLOSES}" if address and text else text


class Glyphs(Struct, frozen=True, kw_only=True):
    """The characters that frames are drawn with."""

    line: str
    corner: str
    bar: str
    times: str
    arrow: str
    more: str


UNICODE = Glyphs(line="─", corner="┌─", bar="│", times="×", arrow="→", more="…")
ASCII = Glyphs(line="-", corner="-->", bar="|", times="x", arrow="->", more="...")


def wrap(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` columns, broken between words; a longer word keeps its own line.

    Between Chinese characters lines break too, but for punctuation that must not begin or end one. No line but the
    first begins with `::`, which GitHub would read as a command.
    """
    if len(text) <= width and text.isascii():
        return [text]
    lines: list[str] = []
    line, used = "", 0
    for gap, word in _words(text):
        size = columns(word)
        if not line:
            line, used = word, size
        elif used + len(gap) + size <= width or word.startswith("::"):
            line, used = f"{line}{gap}{word}", used + len(gap) + size
        else:
            lines.append(line)
            line, used = word, size
    lines.append(line)
    return lines


def _words(text: str) -> Iterator[tuple[str, str]]:
    """What is not broken, and what stands before it: words, a number with its percent sign, single wide characters."""
    words: list[str] = []
    for word in text.split():
        if word.startswith("%") and words and words[-1][-1].isdigit():
            words[-1] += f" {word}"
        else:
            words.append(word)
    for word in words:
        if word.isascii() or not any(map(_is_wide, word)):
            yield " ", word
            continue
        gap = " "
        for part in _parts(word):
            yield gap, part
            gap = ""


def _parts(word: str) -> list[str]:
    """A word with wide characters in pieces, between which a line may end."""
    parts = [word[0]]
    for before, char in pairwise(word):
        together = not _is_wide(before) and not _is_wide(char)
        if together or char in _CLOSING or before in _OPENING:
            parts[-1] += char
        else:
            parts.append(char)
    return parts


def _is_wide(char: str) -> bool:
    return columns(char) == 2


def padded(text: str, width: int) -> str:
    """The text with spaces behind it, `width` columns wide if it is not wider."""
    return text + " " * (width - columns(text))


def shorten(text: str, width: int, more: str) -> str:
    """The text, cut to `width` columns with `more` at its end."""
    if columns(text) <= width:
        return text
    kept, used = [], columns(more)
    for char in text:
        used += columns(char)
        if used > width:
            break
        kept.append(char)
    return "".join(kept) + more
