"""Offsets as lines and columns: in code points, whatever ends a line."""

from __future__ import annotations

import pytest

from convlint.fixes.edits import Edit
from convlint.fixes.places import Places
from convlint.model.location import TextEdit


def place(text: str, start: int, end: int) -> tuple[int, int, int, int]:
    edit = Places(text).text_edit(Edit(start, end, "new"), "net.yaml")
    assert (edit.path, edit.text) == ("net.yaml", "new")
    return edit.line, edit.column, edit.end_line, edit.end_column


@pytest.mark.parametrize(
    ("text", "start", "end", "expected"),
    [
        ("", 0, 0, (1, 1, 1, 1)),
        ("abc", 1, 2, (1, 2, 1, 3)),
        ("abc", 3, 3, (1, 4, 1, 4)),
        ("ab\ncd\n", 2, 2, (1, 3, 1, 3)),  # before the line break
        ("ab\ncd\n", 3, 3, (2, 1, 2, 1)),  # behind it
        ("ab\ncd\n", 1, 4, (1, 2, 2, 2)),
        ("ab\ncd\n", 6, 6, (3, 1, 3, 1)),
        ("ab\r\ncd", 2, 2, (1, 3, 1, 3)),
        ("ab\r\ncd", 4, 6, (2, 1, 2, 3)),
        ("ü🙂\tx", 3, 4, (1, 4, 1, 5)),  # a character is one column, beyond U+FFFF too
    ],
)
def test_places(text: str, start: int, end: int, expected: tuple[int, int, int, int]) -> None:
    assert place(text, start, end) == expected


@pytest.mark.parametrize("text", ["", "a", "a\nb\n", "a\r\nb", "a\x0bb\x0c"])
def test_lines_that_all_count_alike(text: str) -> None:
    assert Places(text).are_plain


@pytest.mark.parametrize("text", ["a\rb", "a\r", "a\r\r\nb", "a\x85b", "# \u2028", "\u2029"])
def test_lines_that_some_count_otherwise(text: str) -> None:
    assert not Places(text).are_plain


def test_edits_are_values() -> None:
    edit = Places("ab").text_edit(Edit(0, 2, ""), "p")
    assert edit == TextEdit(path="p", line=1, column=1, end_line=1, end_column=3, text="")
