"""Colours, widths, rows of tables and excerpts of source in a terminal."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise

from msgspec import Struct

from convlint.files.safe import ascii_only, clean
from convlint.reporters import Style

_TAB = 4  # columns a tab advances to
_LEAD = 3  # a window opens a third of its width before the value


def excerpt(
    sources: Mapping[str, tuple[str, ...]],
    path: str,
    span: tuple[int | None, int | None, int | None, int | None],
    *,
    width: int,
    unicode: bool,
) -> tuple[str, int, int] | None:
    """The line to show, and where in it the underline starts and how long it is, in terminal columns.

    `span` is line, column, end line, end column. None where the place or its text is not known.
    """
    line, column, end_line, end_column = span
    lines = sources.get(path)
    if lines is None or line is None or not 1 <= line <= len(lines):
        return None
    text = lines[line - 1]
    text = text.rstrip("\r\n") if text[-1:] in "\r\n" else text
    start = min(max((column or 1) - 1, 0), len(text))
    if end_column is not None and end_line == line:
        end = end_column - 1
    elif end_line is not None and end_line > line:
        end = len(text.rstrip()) if len(text) < 8 * width else len(text)
    else:
        end = start + 1
    end = max(min(end, len(text)), start + 1)
    if len(text) <= width and text.isascii() and text.isprintable():
        return clean(text), start, end - start
    window, start, length = _window(text, start, end, width, unicode)
    return clean(window), start, length


def _window(text: str, start: int, end: int, width: int, unicode: bool) -> tuple[str, int, int]:
    """The part of a long or unusual line around start..end, each character made one or two plain columns."""
    more = "…" if unicode else "..."
    first = max(start - width, 0)  # look at no more of the line than may be shown: it may be a megabyte
    piece = text[first : start + width + 1]
    cells: Sequence[str] = piece
    offset: Sequence[int] = range(len(piece) + 1)
    if not (piece.isascii() and piece.isprintable()):
        cells = _cells(piece, unicode)
        offset = [0, *accumulate(map(columns, cells))]
    at = start - first
    stop = min(end - first, len(cells))
    before = first > 0
    after = start + width + 1 < len(text)
    left, right = 0, len(cells)
    if before or after or offset[-1] > width:
        room = width - 2 * len(more)
        lead = max(room // _LEAD, room - (offset[-1] - offset[at]) if not after else 0)
        left = bisect_left(offset, offset[at] - lead)
        right = max(bisect_right(offset, offset[left] + room) - 1, left)
        before, after = before or left > 0, after or right < len(cells)
    prefix = more if before else ""
    window = prefix + "".join(cells[left:right]) + (more if after else "")
    underline = offset[max(min(stop, right), at)] - offset[at]
    return window, len(prefix) + offset[at] - offset[left], max(underline, 1)


def _cells(text: str, unicode: bool) -> list[str]:
    cells: list[str] = []
    column = 0
    for char in text:
        if char == "\t":
            cell = " " * (_TAB - column % _TAB)
        elif char.isprintable():
            cell = char if unicode else ascii_only(char)
        else:
            cell = clean(char) or ("\ufffd" if unicode else "?")
            cell = cell if unicode else ascii_only(cell)
        cells.append(cell)
        column += columns(cell)
    return cells


def columns(text: str) -> int:
    """How many terminal columns the text takes: East Asian wide characters two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(map(_char_columns, text))


@lru_cache(maxsize=4096)
def _char_columns(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


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
    """A function (address, text) -> text, as a link of a terminal, or as it was without `links` or an address."""
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
    """(gap before it, piece that is not broken): words, a number with its percent sign, single wide characters."""
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
    chars, used = [], columns(more)
    for char in text:
        used += columns(char)
        if used > width:
            break
        chars.append(char)
    return "".join(chars) + more


def without_middle(text: str, width: int, more: str) -> str:
    """The text, cut to `width` columns with `more` in its middle: the ends of paths and names tell most."""
    if len(text) <= width or columns(text) > len(text):
        return shorten(text, width, more)
    end = (width - 1) // 2
    return text[: width - 1 - end] + more + text[len(text) - end :]


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """The text, made harmless, in lines of at most `width` columns, each set in by `indent`."""
    return [indent + line for line in wrap(clean(text), width - len(indent))]


def error_lines(text: str, width: int, paint: Paint) -> list[str]:
    """A text that begins with `error:`, which is painted; further lines are set in."""
    first, *rest = wrap(text, width)
    return [first.replace("error:", paint("error", "error:"), 1), *(f"  {line}" for line in rest)]


def column_sizes(rows: Iterable[Sequence[str]]) -> list[int]:
    """How wide the columns of a table are."""
    return [max(map(columns, cells)) for cells in zip(*rows, strict=True)]


def row(cells: Sequence[str], sizes: Sequence[int], sides: str, more: str = UNICODE.more) -> str:
    """One line of a table. Of `sides`, "r" sets a cell at the right; "m" cuts its middle where it is too long."""
    placed = []
    for cell, size, side in zip(cells, sizes, sides, strict=True):
        cut = without_middle(cell, size, more) if side == "m" else shorten(cell, size, more)
        space = " " * (size - columns(cut))
        placed.append(space + cut if side == "r" else cut + space)
    return "  ".join(placed)


class Page:
    """The lines written so far of a report, and how the terminal wants them."""

    def __init__(self, style: Style, width: int) -> None:
        self.lines: list[str] = []
        self.width = width
        self.paint, self.link = painter(style.color), linker(style.links)
        self.glyphs = UNICODE if style.unicode else ASCII

    def shown(self, text: str) -> str:
        """The text, made harmless, and in ASCII where the frames are."""
        text = clean(text)
        return ascii_only(text) if self.glyphs is ASCII else text

    def note_lines(self, notes: Iterable[str]) -> Iterator[str]:
        """Notes below a table: each in lines of the page's width, set in, further lines more than the first."""
        for note in notes:
            first, *rest = wrap(self.shown(note), self.width - 4)
            yield from (f"  {first}", *(f"    {line}" for line in rest))


def finished(lines: Iterable[str], *, unicode: bool) -> str:
    """The lines as one text without spaces at their ends, in ASCII where the terminal has no Unicode."""
    text = "\n".join(line.rstrip() for line in lines)
    return text if unicode else ascii_only(text)
