"""Lists of models: one per line, CSV with a header, or JSON lines; read as they are needed, however long they are."""

from __future__ import annotations

import codecs
import csv
import json
import re
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

from msgspec import Struct

from convlint.errors import InputFault, UsageError
from convlint.files.bounded_file import open_regular
from convlint.linting.audit.entry import known_key

MOST_LINE = 1 << 16  # bytes of one entry
_TABLES, _JSON = (".csv", ".tsv"), (".jsonl", ".ndjson")
# The keys after a model, from the right: a value has no brackets, so that no argument of a call is taken for a key.
_TAIL = re.compile(r"""\s+([A-Za-z_][\w.]*)=("[^"]*"|[^\s()"]+)\s*$""")


class Entry(Struct, frozen=True, kw_only=True):
    """An entry as it stands in its list, by key; `fault` where it cannot be read."""

    line: int
    values: dict[str, Any] = {}
    fault: str = ""


def entries_of(path: str) -> Iterator[Entry]:
    """The entries of the list at `path`, `-` being standard input. Raises UsageError where there is no such list."""
    if path == "-":
        return _entries(sys.stdin.buffer, "")
    try:
        stream = open_regular(path)
    except InputFault as fault:
        raise UsageError(f"{path}: {fault.message}") from None
    return _closing(stream, path)


def _closing(stream: BinaryIO, path: str) -> Iterator[Entry]:
    with stream:
        yield from _entries(stream, path)


def _entries(stream: BinaryIO, path: str) -> Iterator[Entry]:
    name = path.lower()
    if name.endswith(_TABLES):
        return _of_table(stream, path, "\t" if name.endswith(".tsv") else ",")
    return _of_lines(stream, as_json=name.endswith(_JSON))


def lines_of(stream: BinaryIO) -> Iterator[tuple[int, str | None]]:
    """Each line with its number; None where it is too long, or no UTF-8."""
    number = 0
    while line := stream.readline(MOST_LINE + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        if len(line) > MOST_LINE:
            while line and not line.endswith(b"\n"):
                line = stream.readline(MOST_LINE)
            yield number, None
            continue
        try:
            yield number, line.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            yield number, None


def _unreadable(number: int) -> Entry:
    return Entry(line=number, fault=f"is no line of UTF-8 with at most {MOST_LINE:,} bytes")


def _of_lines(stream: BinaryIO, *, as_json: bool) -> Iterator[Entry]:
    for number, line in lines_of(stream):
        if line is None:
            yield _unreadable(number)
        elif text := line.strip():
            if as_json or text.startswith("{"):
                yield _of_json(number, text)
            elif not text.startswith("#"):
                yield _of_words(number, text)


def _of_json(number: int, text: str) -> Entry:
    try:
        found = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return Entry(line=number, fault=f"is no JSON: {error}")
    if isinstance(found, str):
        return Entry(line=number, values={"model": found})
    if not isinstance(found, dict):
        return Entry(line=number, fault='is no JSON object, such as {"model": "net.onnx"}')
    return Entry(line=number, values=found)


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _of_words(number: int, text: str) -> Entry:
    """`zoo/net.onnx batch=8 gpu=t4`: what is left of the keys is the model, with whatever spaces it has."""
    values: dict[str, Any] = {}
    while found := _TAIL.search(text):
        try:
            key = known_key(found[1])
        except InputFault as fault:
            return Entry(line=number, fault=fault.message)
        if key in values:
            return Entry(line=number, fault=f"{key} is given twice")
        values[key] = found[2].strip('"')
        text = text[: found.start()]
    return Entry(line=number, values={"model": text, **values})


def _of_table(stream: BinaryIO, path: str, delimiter: str) -> Iterator[Entry]:
    # A line that is none holds a NUL instead, which no cell of a sound row has.
    lines = ("\0\n" if line is None else f"{line}\n" for _, line in lines_of(stream))
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    header: list[str] | None = None
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            if header is None:
                raise UsageError(f"{path}:{rows.line_num}: {error}") from None
            yield Entry(line=rows.line_num, fault=f"is no row of CSV: {error}")
            continue
        if row is None:
            break
        if not any(cell.strip() for cell in row):
            continue
        if header is None:
            header = _header(row, path, rows.line_num)
        elif len(row) > len(header):
            yield Entry(line=rows.line_num, fault=f"has {len(row)} cells, and the header {len(header)}")
        elif any(not cell.isprintable() for cell in row):
            yield Entry(line=rows.line_num, fault="has what is no UTF-8, or a character that steers a terminal")
        else:
            yield Entry(line=rows.line_num, values=dict(zip(header, row, strict=False)))


def _header(row: list[str], path: str, line: int) -> list[str]:
    keys = [cell.strip() for cell in row]
    try:
        known = [known_key(key) for key in keys]
    except InputFault as fault:
        raise UsageError(f"{path}:{line}: {fault.message}") from None
    if "model" not in known:
        raise UsageError(f"{path}:{line}: its first row must name columns, and one of them be model")
    doubled = next((key for key in known if known.count(key) > 1), None)
    if doubled is not None:
        raise UsageError(f"{path}:{line}: there are two columns {doubled}")
    return known
