"""Edits by lines and columns are those of the text, whatever its encoding."""

from __future__ import annotations

import pytest

from convlint.fixes.python.columns import by_columns
from convlint.model.location import CodeEdit


@pytest.mark.parametrize(
    ("head", "encoding"),
    [("# coding: latin-1\n", "latin-1"), ("", "utf-8"), ("", "utf-8-sig"), ("# coding: cp1252\n", "cp1252")],
)
def test_columns_are_those_of_the_text_in_its_own_encoding(head: str, encoding: str) -> None:
    text = f"{head}ä = 'äöü'; a = nn.Conv2d(3, 60, 3)\r\n'é'; b = 1\r\n"
    content = text.encode(encoding)
    for word in ("60", "1\r"):
        start = content.index(word.encode())
        found = by_columns(CodeEdit(path="net.py", start=start, end=start + len(word.strip()), new="7"), content)
        lines = text.split("\n")
        assert found.line == found.end_line
        assert lines[found.line - 1][found.column - 1 : found.end_column - 1] == word.strip()
        assert (found.path, found.text) == ("net.py", "7")
