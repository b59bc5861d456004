"""Where the nodes of a syntax tree stand in their text: lines and bytes, as the parser counts, in characters."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right

_LINE_BREAK = re.compile(r"\r\n|\r|\n")  # what Python takes for one; a form feed is none


class Lines:
    """The lines of Python text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(match.end() for match in _LINE_BREAK.finditer(text))]
        self._narrow = text.isascii()  # a character is a byte

    def extent(self, node: ast.expr) -> tuple[int, int]:
        """The characters of an expression: from, and up to."""
        return self.offset(node), self.end(node)

    def offset(self, node: ast.stmt | ast.expr) -> int:
        """The character that a node begins with."""
        return self._offset(node.lineno, node.col_offset)

    def end(self, node: ast.stmt | ast.expr) -> int:
        """The character behind a node."""
        assert node.end_lineno is not None  # the parser gives every node its end
        assert node.end_col_offset is not None
        return self._offset(node.end_lineno, node.end_col_offset)

    def place(self, line: int, column: int) -> int | None:
        """The character at a line and a column, both from 1; None where there is no such line."""
        return self._starts[line - 1] + column - 1 if 0 < line <= len(self._starts) else None

    def line_around(self, offset: int) -> tuple[int, int]:
        """The characters of the line that a character is in: from, and up to its line break."""
        start = self._starts[bisect_right(self._starts, offset) - 1]
        found = _LINE_BREAK.search(self.text, offset)
        return start, len(self.text) if found is None else found.start()

    def line_break(self, offset: int) -> str:
        """How the line ends that a character is in."""
        found = _LINE_BREAK.search(self.text, offset)
        return "\n" if found is None else found.group()

    def _offset(self, line: int, column: int) -> int:
        """The character at a place that is counted as the parser does: from line 1, in bytes of UTF-8."""
        start = self._starts[line - 1]
        if self._narrow:
            return start + column
        text = self.text[start : start + column]  # no fewer characters than bytes
        return start + (column if text.isascii() else len(text.encode()[:column].decode()))
