"""The source line: cut around the value to the width, with the underline where the value is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convlint.reporters.ink import column_sizes, columns, error_lines, excerpt, finished, painter, row


def shown(
    text: str, column: int | None, end: int | None, width: int = 30, unicode: bool = True
) -> tuple[str, int, int]:
    end_line = None if end is None else 1
    result = excerpt({"p": (text,)}, "p", (1, column, end_line, end), width=width, unicode=unicode)
    assert result is not None
    return result


def marked(text: str, column: int, end: int | None, width: int = 30) -> str:
    """What stands above the underline; only for text in which a character takes one column."""
    line, start, length = shown(text, column, end, width)
    return line[start : start + length]


def test_short_lines_stand_as_they_are() -> None:
    assert shown("  - {C: 62, K: 64}", 9, 11) == ("  - {C: 62, K: 64}", 8, 2)


@pytest.mark.parametrize("length", [10, 100, 1_000_000])
def test_long_lines_show_the_value(length: int) -> None:
    text = "a" * length + "VALUE" + "b" * length
    assert marked(text, length + 1, length + 6) == "VALUE"
    line, _, _ = shown(text, length + 1, length + 6)
    assert len(line) <= 30
    assert line.startswith("…") or length == 10


def test_a_value_wider_than_the_window_is_underlined_as_far_as_it_is_shown() -> None:
    line, start, length = shown("x" * 10 + "V" * 500, 11, 511)
    assert start + length <= len(line) <= 30
    assert line[start : start + length] == "V" * length


def test_tabs_take_up_to_four_columns() -> None:
    assert shown("\tC:\t62", 5, 7) == ("    C:  62", 8, 2)


def test_wide_characters_take_two_columns_and_combining_marks_none() -> None:
    line, start, length = shown("名前: 値, C: 62", 11, 13)
    assert (line, start, length) == ("名前: 値, C: 62", 13, 2)
    assert shown("e\u0301: 62", 5, 7) == ("e\u0301: 62", 3, 2)


def test_control_characters_keep_their_place() -> None:
    assert shown("a\x1bb: 62", 6, 8) == ("a\ufffdb: 62", 5, 2)


def test_ascii_terminals_get_escapes() -> None:
    line, start, length = shown("é: 62", 4, 6, unicode=False)
    assert line.isascii()
    assert line[start : start + length] == "62"


def test_log_commands_are_broken_up_without_moving_the_underline() -> None:
    line, start, length = shown("##vso[x]: 62", 11, 13)
    assert (line, line[start : start + length]) == ("#_vso[x]: 62", "62")


@pytest.mark.parametrize("span", [(None, 1, None, None), (0, 1, None, None), (2, 1, None, None)])
def test_no_line_no_excerpt(span: tuple[int | None, int | None, None, None]) -> None:
    assert excerpt({"p": ("a",)}, "p", span, width=30, unicode=True) is None
    assert excerpt({}, "p", (1, 1, None, None), width=30, unicode=True) is None


def test_a_value_over_several_lines_is_underlined_to_the_end_of_the_first() -> None:
    assert excerpt({"p": ("k: [1,   ", "2]")}, "p", (1, 4, 2, 2), width=30, unicode=True) == ("k: [1,   ", 3, 3)


@given(st.text(max_size=200), st.integers(1, 250), st.integers(1, 250), st.integers(20, 100), st.booleans())
def test_any_line_fits_and_its_underline_too(text: str, column: int, end: int, width: int, unicode: bool) -> None:
    line, start, length = shown(text, column, end, width, unicode)
    assert columns(line) <= max(width, len(text)) if text.isascii() and text.isprintable() else columns(line) <= width
    assert length >= 1
    assert start <= columns(line)
    assert len(line.splitlines()) <= 1


def test_rows_of_a_table_are_aligned_and_cut_to_their_columns() -> None:
    rows = [("a", "12", "networks/resnet50.yaml"), ("名", "3", "x")]
    assert column_sizes(rows) == [2, 2, 22]
    assert [row(cells, [2, 4, 9], "lrm", "…") for cells in rows] == ["a     12  netw…yaml", "名     3  x        "]
    assert row(("networks",), [6], "l", "...") == "net..."
    assert row(("名名名名",), [6], "m", "…") == "名名… "  # wide text is cut at its end: columns are counted


def test_errors_are_painted_and_set_in() -> None:
    assert error_lines("error: a b", 8, painter(True)) == ["\x1b[1;31merror:\x1b[0m a", "  b"]
    assert finished(["a  ", "é"], unicode=False) == "a\n\\xe9"
