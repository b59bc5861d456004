"""A TOML file whose keys know where they stand: tomllib keeps no positions, so the keys are found in the text again."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from convlint.config.toml_tokens import problem, tokens
from convlint.errors import UsageError
from convlint.files.settings_file import MAX_BYTES, read_settings

_COUNTED = ", counting the configs that extend it"
_MOST_PATH = 32  # names that lead to a key whose place is kept; ours take six

Key = tuple[str | int, ...]  # the names, and the numbers of list items, that lead to a value


class Place:
    """Where a key or value was written; lines and columns from 1."""

    __slots__ = ("column", "line", "path")

    def __init__(self, path: str, line: int, column: int) -> None:
        self.path, self.line, self.column = path, line, column

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
            raise UsageError(f"{Place(path, *position(text, offset))}: {too_much}{_COUNTED if before else ''}")
        try:
            self.values: dict[str, Any] = tomllib.loads(text)
        except RecursionError:
            raise UsageError(f"{path}: is nested too deep") from None
        except ValueError as error:  # TOMLDecodeError, and integers of thousands of digits
            message, line, column = _problem(str(error), text)
            raise UsageError(f"{Place(path, line, column)}: is not valid TOML: {message}") from None

    def place(self, key: Key) -> Place:
        """Where `key` was written, or the nearest that holds it."""
        if self._places is None or self._lines is None:
            self._places = key_offsets(self.text)
            self._lines = array("I", (match.end() for match in re.finditer("\n", self.text)))
        while key and key not in self._places:
            key = key[:-1]
        offset = self._places.get(key, 0)
        line = bisect_right(self._lines, offset)
        return Place(self.path, line + 1, offset - (self._lines[line - 1] if line else 0) + 1)


class Spot:
    """A key of a source; the place is worked out when it is shown."""

    __slots__ = ("key", "source")

    def __init__(self, source: TomlSource, key: Key) -> None:
        self.source, self.key = source, key

    def place(self) -> Place:
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
    text = decode(read_settings(path, f"{shown_path}:", MAX_BYTES), shown_path)
    if len(text) + sum(len(source.text) for source in held) > MAX_BYTES:
        raise UsageError(f"{shown_path}: is larger than {MAX_BYTES >> 20} MiB{_COUNTED}")
    return TomlSource(shown_path, text, held)


def decode(raw: bytes, path: str) -> str:
    """The text of a config. Raises UsageError with line and column where it is not UTF-8."""
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line, column = position(raw[: error.start].decode("utf-8", "replace"), error.start)
        raise UsageError(f"{Place(path, line, column)}: is not UTF-8: byte 0x{raw[error.start]:02x}") from None


def position(text: str, offset: int) -> tuple[int, int]:
    """(line, column), from 1, of an offset in `text`."""
    offset = min(offset, len(text))
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _problem(message: str, text: str) -> tuple[str, int, int]:
    """The message of tomllib without the place that it ends with, and that place."""
    found = re.fullmatch(r"(.*) \((?:at line (\d+), column (\d+)|at end of document)\)", message, re.DOTALL)
    if found is None:
        return message[:200], 1, 1
    line, column = (int(found[2]), int(found[3])) if found[2] else position(text, len(text))
    return found[1][:200], line, column


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
            several = self.skip("[")
            table = self.header(self.key(), several, start)
            for _ in range(2 if several else 1):
                self.advance()

    def header(self, keys: list[str], several: bool, start: int) -> Key:
        """The table that a header opens: names go on from the last item of an array of tables."""
        path: Key = ()
        for number, name in enumerate(keys):
            path = self.found(path, name, start)
            last = number == len(keys) - 1
            if several and last:
                self.counts[path] = self.counts.get(path, 0) + 1
            if path in self.counts:
                path = self.found(path, self.counts[path] - 1, start)
        return path

    def pair(self, table: Key) -> None:
        start = self.current().start()
        path = table
        for name in self.key():
            path = self.found(path, name, start)
        self.advance()  # the "="
        self.value(path)

    def value(self, path: Key) -> None:
        if self.skip("["):
            item = 0
            while not self.skip("]"):
                if self.skip(","):
                    item += 1
                elif not self.skip("\n"):
                    self.value(self.found(path, item, self.current().start()))
        elif self.skip("{"):
            while not self.skip("}"):
                if not self.skip(",") and not self.skip("\n"):
                    self.pair(path)
        else:
            while self.token is not None and self.token.group() not in ("\n", ",", "]", "}"):
                self.advance()

    def found(self, path: Key, name: str | int, start: int) -> Key:
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
