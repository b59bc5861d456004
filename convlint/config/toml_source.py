"""A TOML file with the place of every value, and values of the kind that a key wants."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import Any, NoReturn, TypeVar

from msgspec import Struct

from convlint.files.bounded_file import MOST_CONFIG_BYTES, read_settings
from convlint.model.errors import UsageError, shown, suggestion

# tomllib has no limits of its own: these are checked on the tokens, before it sees the text.
MOST_MARKS = 50_000  # of `[`, `{`, `,`, `.` and `=`: some ten thousand lines
MOST_PARTS = 16  # names joined by dots in one key
MOST_NESTED = 32  # brackets within brackets
MOST_WORD = 10_000  # characters of a number or bare key

# Every alternative either matches without going back or not at all, so that no text takes more than one pass. Of a
# string of several lines it matches the opening: one pattern for the whole takes memory for each quote in it, or is
# possessive around a look-ahead, with which Python before 3.11.5 matches nothing (python/cpython#100061).
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r]++|\#[^\n]*+)
      | (?P<newline>\n)
      | (?P<long>\"{3}|'{3})
      | (?P<string>"(?:[^"\\\n]++|\\[^\n])*+"|'[^'\n]*+')
      | (?P<mark>[\[\]{}=,.])
      | (?P<bare>[^\s\[\]{}=,.\#"']++)
      | (?P<odd>.)""",
    re.VERBOSE | re.DOTALL,
)
_LONG_ENDS = {'"""': re.compile(r'\\.|"{3,5}', re.DOTALL), "'''": re.compile("'{3,5}")}


def tokens(text: str) -> Iterator[re.Match[str]]:
    """All but the spaces and comments, up to the first thing that no TOML can hold; `lastgroup` says what each is.

    That of a string of several lines is its opening.
    """
    at = 0
    while (match := _TOKEN.match(text, at)) is not None:
        if match.lastgroup == "odd":  # a quote that is never closed, for one: tomllib stops here as well
            return
        at = match.end()
        if match.lastgroup == "long":
            ends = _LONG_ENDS[match.group()].finditer(text, at)
            end = next((closing for closing in ends if closing.group()[0] != "\\"), None)
            if end is None:
                return
            at = end.end()
        if match.lastgroup != "space":
            yield match


def problem(text: str, marks: int = 0) -> tuple[int, str, int]:
    """(marks counted, the limit that is exceeded or "", where); `marks` are those of texts that belong to it."""
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


_COUNTED = ", counting the configs that extend it"
_MOST_PATH = 32  # names that lead to a key whose place is kept; ours take six

Key = tuple[str | int, ...]  # the names, and the numbers of list items, that lead to a value


class TomlLocation(Struct, frozen=True):
    """Where a key or value was written; lines and columns from 1."""

    path: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


class TomlSource:
    """One file: its values and, worked out only when someone asks, the place of each."""

    def __init__(self, path: str, text: str, held: Sequence[TomlSource] = ()) -> None:
        """Raises UsageError with the place where the text is no TOML, or where it and those `held` are too much."""
        import tomllib

        self.path, self.text = path, text
        self._places: Mapping[Key, int] | None = None
        self._lines: array[int] | None = None
        before = sum(source.marks for source in held)
        marks, too_much, offset = problem(text, before)
        self.marks: int = marks - before
        if too_much:
            raise UsageError(f"{TomlLocation(path, *position(text, offset))}: {too_much}{_COUNTED if before else ''}")
        try:
            self.values: dict[str, Any] = tomllib.loads(text)
        except RecursionError:
            raise UsageError(f"{path}: is nested too deep") from None
        except ValueError as error:  # TOMLDecodeError, and integers of thousands of digits
            message, line, column = _problem(str(error), text)
            raise UsageError(f"{TomlLocation(path, line, column)}: is not valid TOML: {message}") from None

    def place(self, key: Key) -> TomlLocation:
        """Where `key` was written, or the nearest that holds it."""
        if self._places is None or self._lines is None:
            self._places = key_offsets(self.text)
            self._lines = array("I", (match.end() for match in re.finditer("\n", self.text)))
        while key and key not in self._places:
            key = key[:-1]
        offset = self._places.get(key, 0)
        line = bisect_right(self._lines, offset)
        return TomlLocation(self.path, line + 1, offset - (self._lines[line - 1] if line else 0) + 1)


class Spot(Struct, frozen=True):
    """A key of a source; the place is worked out when it is shown."""

    source: TomlSource
    key: Key

    def place(self) -> TomlLocation:
        """Path, line and column."""
        return self.source.place(self.key)

    def below(self, *key: str | int) -> Spot:
        """The spot of an entry inside this one."""
        return Spot(self.source, (*self.key, *key))

    def fail(self, message: str) -> NoReturn:
        """Raises UsageError that begins with the place."""
        raise UsageError(f"{self.place()}: {message}")


def read_toml(path: str, shown_path: str, held: Sequence[TomlSource] = ()) -> TomlSource:
    """The file at `path`, extended by those `held`. Raises UsageError where it cannot be read or is no TOML."""
    text = decode(read_settings(path, f"{shown_path}:", MOST_CONFIG_BYTES), shown_path)
    if len(text) + sum(len(source.text) for source in held) > MOST_CONFIG_BYTES:
        raise UsageError(f"{shown_path}: is larger than {MOST_CONFIG_BYTES >> 20} MiB{_COUNTED}")
    return TomlSource(shown_path, text, held)


def decode(raw: bytes, path: str) -> str:
    """The text of a config. Raises UsageError with line and column where it is not UTF-8."""
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line, column = position(raw[: error.start].decode("utf-8", "replace"), error.start)
        raise UsageError(f"{TomlLocation(path, line, column)}: is not UTF-8: byte 0x{raw[error.start]:02x}") from None


def position(text: str, offset: int) -> tuple[int, int]:
    """(line, column), from 1, of an offset in `text`."""
    offset = min(offset, len(text))
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _problem(message: str, text: str) -> tuple[str, int, int]:
    """The message of tomllib without the place that it ends with, and that place."""
    match = re.fullmatch(r"(.*) \((?:at line (\d+), column (\d+)|at end of document)\)", message, re.DOTALL)
    if match is None:
        return message[:200], 1, 1
    line, column = (int(match[2]), int(match[3])) if match[2] else position(text, len(text))
    return match[1][:200], line, column


def key_offsets(text: str) -> dict[Key, int]:
    """The offset of every key and list item in a TOML text that tomllib has accepted; of very deep ones, none."""
    keys = _Keys(text)
    with suppress(IndexError, RecursionError):  # what was found until then is right
        keys.document()
    return keys.offsets


class _Keys:
    """One pass over the tokens, one of them at a time; `offsets` grows."""

    def __init__(self, text: str) -> None:
        self.tokens = tokens(text)
        self.token: re.Match[str] | None = next(self.tokens, None)
        self.offsets: dict[Key, int] = {}
        self.counts: dict[Key, int] = {}  # arrays of tables: how many so far

    def document(self) -> None:
        table: Key = ()
        while self.token is not None:
            if self.skip("\n"):
                continue
            start = self.token.start()
            if not self.skip("["):
                self.pair(table)
                continue
            is_array = self.skip("[")
            table = self.header(self.key(), is_array, start)
            for _ in range(2 if is_array else 1):
                self.advance()

    def header(self, keys: list[str], several: bool, start: int) -> Key:
        """The table that a header opens: names go on from the last item of an array of tables."""
        path: Key = ()
        for number, name in enumerate(keys):
            path = self.entry_path(path, name, start)
            last = number == len(keys) - 1
            if several and last:
                self.counts[path] = self.counts.get(path, 0) + 1
            if path in self.counts:
                path = self.entry_path(path, self.counts[path] - 1, start)
        return path

    def pair(self, table: Key) -> None:
        start = self.current().start()
        path = table
        for name in self.key():
            path = self.entry_path(path, name, start)
        self.advance()  # the "="
        self.value(path)

    def value(self, path: Key) -> None:
        if self.skip("["):
            item = 0
            while not self.skip("]"):
                if self.skip(","):
                    item += 1
                elif not self.skip("\n"):
                    self.value(self.entry_path(path, item, self.current().start()))
        elif self.skip("{"):
            while not self.skip("}"):
                if not self.skip(",") and not self.skip("\n"):
                    self.pair(path)
        else:
            while self.token is not None and self.token.group() not in ("\n", ",", "]", "}"):
                self.advance()

    def entry_path(self, path: Key, name: str | int, start: int) -> Key:
        """The path of an entry of `path`, which stands at `start`."""
        path = (*path, name)
        if len(path) <= _MOST_PATH:
            self.offsets.setdefault(path, start)
        return path

    def key(self) -> list[str]:
        """`a."b.c".d` -> its three names."""
        names = [self.name()]
        while self.skip("."):
            names.append(self.name())
        return names

    def name(self) -> str:
        token = self.current().group()
        self.advance()
        if token[0] == '"' and "\\" in token:
            import tomllib

            return str(tomllib.loads(f"name = {token}")["name"])
        return token[1:-1] if token[0] in "\"'" else token

    def skip(self, text: str) -> bool:
        """Whether the next token is `text`; moves on if so. Raises IndexError at the end."""
        if self.current().group() != text:
            return False
        self.advance()
        return True

    def current(self) -> re.Match[str]:
        if self.token is None:
            raise IndexError
        return self.token

    def advance(self) -> None:
        self.token = next(self.tokens, None)


MOST_TEXT = 500
_T = TypeVar("_T", bound=str)


class Word(Struct, frozen=True):
    """A rule or GPU that the config names, and where."""

    text: str
    at: Spot


def unknown_key(key: str, known: Mapping[str, object], at: Spot) -> None:
    """Raises UsageError, with a suggestion, where `key` is not known."""
    if key not in known:
        near = suggestion(key.replace("_", "-"), known)
        at.fail(f"unknown key {shown(key)!r}{near or '; known are ' + ', '.join(known)}")


def text_of(value: Any, at: Spot) -> str:
    """A text that is neither empty nor longer than MOST_TEXT."""
    if not isinstance(value, str):
        at.fail(f"must be text, not {kind_of(value)}")
    if not value.strip() or len(value) > MOST_TEXT:
        at.fail(f"must be 1 to {MOST_TEXT} characters long")
    return value


def texts_of(value: Any, at: Spot) -> tuple[Word, ...]:
    """One text, or a list of them."""
    if isinstance(value, str):
        return (Word(text_of(value, at).strip(), at),)
    if not isinstance(value, list):
        at.fail(f"must be a list of texts, not {kind_of(value)}")
    return tuple(Word(text_of(item, at.below(i)).strip(), at.below(i)) for i, item in enumerate(value))


def choice_of(value: Any, at: Spot, known: Sequence[_T]) -> _T:
    """One of the words that are `known`."""
    text = text_of(value, at)
    choice = next((word for word in known if word == text), None)
    if choice is None:
        at.fail(f"{shown(text)!r} is not one of {', '.join(known)}{suggestion(text, known)}")
    return choice


def pattern_of(text: str, at: Spot) -> str:
    """A pattern for paths or names that is short enough to be tried."""
    from convlint.files.globs import refusal

    reason = refusal(text)
    if reason is not None:
        at.fail(reason)
    return text


def table_of(value: Any, at: Spot) -> dict[str, Any]:
    """A table."""
    if not isinstance(value, dict):
        at.fail(f"must be a table, not {kind_of(value)}")
    return value


def entries_of(value: Any, at: Spot, known: Mapping[str, object], required: Iterable[str] = ()) -> dict[str, Any]:
    """A table with no key but the `known` ones, and all that are `required`."""
    table = table_of(value, at)
    for key in table:
        unknown_key(key, known, at.below(key))
    for key in required:
        if key not in table:
            at.fail(f"{key} is missing")
    return table


def truth_of(value: Any, at: Spot) -> bool:
    """A boolean; TOML has a type for it, so that "yes" is text."""
    if not isinstance(value, bool):
        at.fail(f"must be true or false, not {kind_of(value)}")
    return value


def number_of(value: Any, at: Spot, least: float, most: float) -> float:
    """A number within bounds; NaN is within none, and a boolean is no number although Python says so."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        at.fail(f"must be a number, not {kind_of(value)}")
    if not least <= value <= most:
        at.fail(f"must be from {least:g} to {most:g}")
    return float(value)


def date_of(value: Any, at: Spot, example: str) -> date:
    """A date, which TOML writes without quotes; a time of day is refused."""
    if not isinstance(value, date) or isinstance(value, datetime):
        at.fail(f"must be a date without quotes, such as {example}")
    return value


def kind_of(value: Any) -> str:
    """What a value is, in words."""
    names = {str: "text", bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "a table"}
    return names.get(type(value), "a date or time")
