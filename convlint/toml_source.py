"""A TOML file whose keys know where they stand: tomllib keeps no positions, so the keys are found in the text again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from convlint.errors import UsageError

MAX_BYTES = 2**20

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

    def __init__(self, path: str, text: str) -> None:
        """Raises UsageError with the place where the text is no TOML."""
        import tomllib

        self.path, self.text = path, text
        self._places: Mapping[Key, int] | None = None
        try:
            self.values: dict[str, Any] = tomllib.loads(text)
        except RecursionError:
            raise UsageError(f"{path}: is nested too deep") from None
        except ValueError as error:  # TOMLDecodeError, and integers of thousands of digits
            message, line, column = _problem(str(error), text)
            raise UsageError(f"{Place(path, line, column)}: is not valid TOML: {message}") from None

    def place(self, key: Key) -> Place:
        """Where `key` was written, or the nearest that holds it."""
        if self._places is None:
            self._places = key_offsets(self.text)
        while key and key not in self._places:
            key = key[:-1]
        return Place(self.path, *position(self.text, self._places.get(key, 0)))


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


def read_toml(path: str, shown_path: str) -> TomlSource:
    """The file at `path`. Raises UsageError where it cannot be read or is no TOML."""
    file = Path(path)
    try:
        if not file.is_file():
            raise UsageError(f"{shown_path}: is no file" if file.exists() else f"{shown_path}: does not exist")
        with open(file, "rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise UsageError(f"{shown_path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return TomlSource(shown_path, decode(raw, shown_path))


def decode(raw: bytes, path: str) -> str:
    """The text of a config or baseline. Raises UsageError with line and column where it is not UTF-8."""
    if len(raw) > MAX_BYTES:
        raise UsageError(f"{path}: is larger than {MAX_BYTES >> 20} MiB")
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line, column = position(raw[: error.start].decode("utf-8", "replace"), error.start)
        raise UsageError(f"{Place(path, line, column)}: is not UTF-8: byte 0x{raw[error.start]:02x}") from None


def position(text: str, offset: int) -> tuple[int, int]:
    """(line, column), from 1, of an offset in `text`."""
    before = text[:offset]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def _problem(message: str, text: str) -> tuple[str, int, int]:
    """The message of tomllib without the place that it ends with, and that place."""
    found = re.fullmatch(r"(.*) \((?:at line (\d+), column (\d+)|at end of document)\)", message, re.DOTALL)
    if found is None:
        return message[:200], 1, 1
    line, column = (int(found[2]), int(found[3])) if found[2] else position(text, len(text))
    return found[1][:200], line, column


# compiled only when somebody asks for a place
_TOKEN = r"""(?P<space>[ \t\r]+|\#[^\n]*)
      | (?P<newline>\n)
      | (?P<string>\"{3}(?:\\.|[^\\])*?\"{3,5}|'{3}.*?'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*')
      | (?P<mark>[\[\]{}=,.])
      | (?P<bare>[^\s\[\]{}=,.\#"']+)"""


def key_offsets(text: str) -> dict[Key, int]:
    """The offset of every key and list item in a TOML text that tomllib has accepted."""
    keys = _Keys(text)
    with suppress(IndexError, RecursionError):  # what was found until then is right
        keys.document()
    return keys.offsets


class _Keys:
    """One pass over the tokens; `offsets` grows."""

    def __init__(self, text: str) -> None:
        self.tokens = [
            match for match in re.finditer(_TOKEN, text, re.VERBOSE | re.DOTALL) if match.lastgroup != "space"
        ]
        self.index = 0
        self.offsets: dict[Key, int] = {}
        self.counts: dict[Key, int] = {}  # arrays of tables: how many so far

    def document(self) -> None:
        table: Key = ()
        while self.index < len(self.tokens):
            if self.skip("\n"):
                continue
            start = self.tokens[self.index].start()
            if not self.skip("["):
                self.pair(table)
                continue
            several = self.skip("[")
            table = self.header(self.key(), several, start)
            self.index += 2 if several else 1

    def header(self, keys: list[str], several: bool, start: int) -> Key:
        """The table that a header opens: names go on from the last item of an array of tables."""
        path: Key = ()
        for number, name in enumerate(keys):
            path = (*path, name)
            self.offsets.setdefault(path, start)
            last = number == len(keys) - 1
            if several and last:
                self.counts[path] = self.counts.get(path, 0) + 1
            if path in self.counts:
                path = (*path, self.counts[path] - 1)
                self.offsets.setdefault(path, start)
        return path

    def pair(self, table: Key) -> None:
        start = self.tokens[self.index].start()
        path = table
        for name in self.key():
            path = (*path, name)
            self.offsets.setdefault(path, start)
        self.index += 1  # the "="
        self.value(path)

    def value(self, path: Key) -> None:
        if self.skip("["):
            item = 0
            while not self.skip("]"):
                if self.skip(","):
                    item += 1
                elif not self.skip("\n"):
                    self.offsets.setdefault((*path, item), self.tokens[self.index].start())
                    self.value((*path, item))
        elif self.skip("{"):
            while not self.skip("}"):
                if not self.skip(",") and not self.skip("\n"):
                    self.pair(path)
        else:
            while self.index < len(self.tokens) and self.tokens[self.index].group() not in ("\n", ",", "]", "}"):
                self.index += 1

    def key(self) -> list[str]:
        """`a."b.c".d` -> its three names."""
        names = [self.name()]
        while self.skip("."):
            names.append(self.name())
        return names

    def name(self) -> str:
        token = self.tokens[self.index].group()
        self.index += 1
        if token[0] == '"' and "\\" in token:
            import tomllib

            return str(tomllib.loads(f"name = {token}")["name"])
        return token[1:-1] if token[0] in "\"'" else token

    def skip(self, text: str) -> bool:
        """Whether the next token is `text`; moves on if so. Raises IndexError at the end."""
        if self.tokens[self.index].group() != text:
            return False
        self.index += 1
        return True
