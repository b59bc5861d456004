"""Characters are found where the parser says a node stands, whatever the lines end with and hold."""

from __future__ import annotations

import ast

import pytest

from convlint.fixes.python.lines import Lines

TEXT = "größe = 'ß'\r\nb = 'ẞ𝄞'; c = g(\x0c\r    1,\n)\nd = h('\u2028')"


@pytest.mark.parametrize("text", [TEXT, TEXT.encode("ascii", "ignore").decode()])
def test_every_node_stands_where_its_text_is(text: str) -> None:
    lines = Lines(text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt | ast.expr):
            segment = ast.get_source_segment(text, node) or ""
            found = text[lines.offset(node) : lines.end(node)]
            assert found.replace("\r\n", "\n").replace("\r", "\n") == segment.replace("\r\n", "\n").replace("\r", "\n")
        if isinstance(node, ast.expr):
            assert lines.extent(node) == (lines.offset(node), lines.end(node))


@pytest.mark.parametrize(
    ("line", "column", "place"), [(1, 1, 0), (2, 3, 15), (0, 1, None), (6, 1, None), (5, 2, len(TEXT) - 9)]
)
def test_a_place_is_a_character_of_a_line_that_there_is(line: int, column: int, place: int | None) -> None:
    assert Lines(TEXT).place(line, column) == place
