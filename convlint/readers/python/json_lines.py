"""On which lines of a notebook's file the source of each cell is written; the file was found to be sound before."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[{}\[\]:,]', re.DOTALL)
_MOST_DEPTH = 4  # cells[i].source[j]
_ESCAPE = re.compile(rb"\\r\\n|\\.", re.DOTALL)
_BREAKS = (rb"\r\n", rb"\r", rb"\n")  # ends of lines, as text in JSON has them


def source_lines(content: bytes) -> dict[int, list[int]]:
    """By the position of each cell, the line of the file for each line of its source."""
    found: dict[int, list[int]] = {}
    for cell, offset_line, text in _strings(content):
        lines = found.setdefault(cell, [])
        if lines:
            lines.pop()  # what follows the last end of a line goes on in the next string
        lines += [offset_line] * (sum(escape in _BREAKS for escape in _ESCAPE.findall(text)) + 1)
    return found


def _strings(content: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Each string of a cell's source: the cell's position, the line of the file, and the text as it is written."""
    path: list[bytes | int] = []  # keys and positions that lead to where we are
    key: bytes | None = None
    line, counted = 1, 0
    before: bytes = b""
    for match in _TOKEN.finditer(content):
        token = match.group()
        if token in b"{[":
            path.append(b"" if token == b"{" else 0)
        elif token in b"}]":
            if path:
                path.pop()
        elif token == b",":
            if path and isinstance(path[-1], int):
                path[-1] += 1
        elif token == b":":
            if path and key is not None:
                path[-1] = key
        else:
            key = token[1:-1]
            is_value = before == b":" or (bool(path) and isinstance(path[-1], int))
            if is_value and _is_source(path):
                line += content.count(b"\n", counted, match.start())
                counted = match.start()
                assert isinstance(path[1], int)
                yield path[1], line, token
        before = token


def _is_source(path: list[bytes | int]) -> bool:
    return (
        2 < len(path) <= _MOST_DEPTH
        and path[0] == b"cells"
        and isinstance(path[1], int)
        and path[2] == b"source"
        and (len(path) == 3 or isinstance(path[3], int))
    )
