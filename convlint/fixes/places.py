"""Edits of a text by lines and columns, as formats for machines have them."""

from __future__ import annotations

import re
from bisect import bisect_right

from convlint.fixes.edits import Edit
from convlint.model.location import TextEdit

# Line breaks of YAML that others take for a part of the line.
_OTHER_BREAK = re.compile("\r(?!\n)|[\x85\u2028\u2029]")


class Places:
    """The lines of one text, without a byte order mark."""

    def __init__(self, text: str) -> None:
        self.are_plain = _OTHER_BREAK.search(text) is None  # whether all who read the text count the same lines
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def text_edit(self, edit: Edit, path: str) -> TextEdit:
        """An edit of the text, which is that of the file at `path`."""
        line, column = self._place(edit.start)
        end_line, end_column = self._place(edit.end)
        return TextEdit(path=path, line=line, column=column, end_line=end_line, end_column=end_column, text=edit.new)

    def _place(self, at: int) -> tuple[int, int]:
        line = bisect_right(self._starts, at)
        return line, at - self._starts[line - 1] + 1
