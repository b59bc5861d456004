"""The source of one Python module: its text, its syntax tree, and where the calls stand in it. Nothing of it is run."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from bisect import bisect_right
from collections.abc import Sequence

from convlint.errors import InputFault
from convlint.fixes.edits import Edit
from convlint.model.location import Span

MOST_BYTES = 4 << 20
_LINE_BREAK = re.compile(r"\r\n|\r|\n")  # what Python takes for one; a form feed is none


class PythonSource:
    """`text` is the module in characters, without a byte order mark; `tree` its syntax."""

    def __init__(self, raw: bytes) -> None:
        """Raises InputFault for what is no Python, and for text that its encoding would write in another way."""
        if len(raw) > MOST_BYTES:
            raise InputFault(f"more than {MOST_BYTES >> 20} MiB of Python")
        try:
            self.encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
            self.text = raw.decode(self.encoding)
            faithful = self.text.encode(self.encoding) == raw
        except (SyntaxError, UnicodeError, LookupError) as error:
            raise InputFault(f"not text: {error}") from None
        if not faithful:
            raise InputFault(f"its {self.encoding} is not as it would be written anew")
        self.raw = raw
        self.tree = parsed(self.text)
        self._starts = [0, *(match.end() for match in _LINE_BREAK.finditer(self.text))]
        self._calls = {self.extent(node): node for node in ast.walk(self.tree) if isinstance(node, ast.Call)}

    def call_at(self, span: Span) -> ast.Call | None:
        """The call that is exactly there; a span that is no more than a line holds none for sure."""
        line, column, end_line, end_column = span
        if not 0 < line <= end_line <= len(self._starts):
            return None
        start, end = self._starts[line - 1] + column - 1, self._starts[end_line - 1] + end_column - 1
        return self._calls.get((start, end))

    def extent(self, node: ast.expr) -> tuple[int, int]:
        """The characters of an expression: from, and up to."""
        assert node.end_lineno is not None  # the parser gives every expression its end
        assert node.end_col_offset is not None
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def offset(self, node: ast.stmt | ast.expr) -> int:
        """The character that a node begins with."""
        return self._offset(node.lineno, node.col_offset)

    def line_around(self, offset: int) -> tuple[int, int]:
        """The characters of the line that a character is in: from, and up to its line break."""
        start = self._starts[bisect_right(self._starts, offset) - 1]
        found = _LINE_BREAK.search(self.text, offset)
        return start, len(self.text) if found is None else found.start()

    def line_break(self, offset: int) -> str:
        """How the line ends that a character is in."""
        found = _LINE_BREAK.search(self.text, offset)
        return "\n" if found is None else found.group()

    def in_bytes(self, edits: Sequence[Edit]) -> tuple[Edit, ...]:
        """Edits of characters as edits of the file's bytes, in order."""
        codec = self.encoding.removesuffix("-sig")
        done, at = 0, len(self.raw) - len(self.text.encode(codec))  # the byte order mark
        found = []
        for edit in sorted(edits):
            start = at + len(self.text[done : edit.start].encode(codec))
            at = start + len(self.text[edit.start : edit.end].encode(codec))
            done = edit.end
            found.append(Edit(start, at, edit.new))
        return tuple(found)

    def _offset(self, line: int, column: int) -> int:
        """The character at a place that is counted as the parser does: from line 1, in bytes of UTF-8."""
        start = self._starts[line - 1]
        text = self.text[start : start + column]  # no fewer characters than bytes
        return start + (column if text.isascii() else len(text.encode()[:column].decode()))


def parsed(text: str) -> ast.Module:
    """The syntax tree of Python text. Raises InputFault."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the compiler, about what the text does
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputFault(f"not Python: {error}") from None
