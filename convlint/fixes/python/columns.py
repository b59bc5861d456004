"""Edits of a Python file's bytes as edits by lines and columns, which formats of reports have."""

from __future__ import annotations

from convlint.files.python_files import python_encoding
from convlint.model.location import CodeEdit, TextEdit


def by_columns(edit: CodeEdit, content: bytes) -> TextEdit:
    """The same edit by lines and columns, in the encoding that the module declares."""
    encoding = python_encoding(content)

    def place(offset: int) -> tuple[int, int]:
        begin = content.rfind(b"\n", 0, offset) + 1
        return content.count(b"\n", 0, offset) + 1, len(content[begin:offset].decode(encoding)) + 1

    (line, column), (end_line, end_column) = place(edit.start), place(edit.end)
    return TextEdit(
        path=edit.path, line=line, column=column, end_line=end_line, end_column=end_column, text=edit.new
    )  # fmt: skip
