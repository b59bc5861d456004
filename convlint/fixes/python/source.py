"""The source of one Python module: its text, its syntax tree, and where the calls stand in it. Nothing of it is run."""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property

from convlint.errors import InputFault
from convlint.fixes.edits import Edit
from convlint.fixes.python.lines import Lines
from convlint.model.location import Span
from convlint.readers.python.walking import Nodes, by_kind, every

MOST_BYTES = 4 << 20


class PythonSource(Lines):
    """`text` is the module in characters, without a byte order mark; `tree` its syntax."""

    def __init__(self, raw: bytes) -> None:
        """Raises InputFault for what is no Python, and for text that its encoding would write in another way."""
        if len(raw) > MOST_BYTES:
            raise InputFault(f"more than {MOST_BYTES >> 20} MiB of Python")
        try:
            self.encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
            text = raw.decode(self.encoding)
            faithful = text.encode(self.encoding) == raw
        except (SyntaxError, UnicodeError, LookupError) as error:
            raise InputFault(f"not text: {error}") from None
        if not faithful:
            raise InputFault(f"its {self.encoding} is not as it would be written anew")
        super().__init__(text)
        self.raw = raw
        self.tree = parsed(self.text)

    @cached_property
    def nodes(self) -> Nodes:
        """Those of the tree, by kind."""
        return by_kind(every(self.tree))

    def call_at(self, span: Span) -> ast.Call | None:
        """The call that is exactly there; a span that is no more than a line holds none for sure."""
        line, column, end_line, end_column = span
        start, end = self.place(line, column), self.place(end_line, end_column)
        found = None
        for call in self._calls.get((line, end_line), ()):
            if self.extent(call) == (start, end):
                found = call
        return found

    @cached_property
    def _calls(self) -> Mapping[tuple[int, int | None], list[ast.Call]]:
        """By the lines that they begin and end on."""
        found: dict[tuple[int, int | None], list[ast.Call]] = {}
        for call in self.nodes[ast.Call]:
            found.setdefault((call.lineno, call.end_lineno), []).append(call)
        return found

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


def parsed(text: str) -> ast.Module:
    """The syntax tree of Python text. Raises InputFault."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the compiler, about what the text does
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputFault(f"not Python: {error}") from None
