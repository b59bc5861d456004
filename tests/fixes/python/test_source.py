"""Offsets in Python source are right in every encoding, and what is no Python is refused."""

from __future__ import annotations

import ast

import pytest
from constructed import span_of

from convlint.errors import InputFault
from convlint.fixes.edits import Edit, applied
from convlint.fixes.python.source import MOST_BYTES, PythonSource, parsed

BODY = "größe = 'ß'; a = f(1, 2)\r\nb = 'ẞ𝄞'; c = g(\r\n    1,\r\n)\x0c\r\nd = h('\t', f(3))\n"
LATIN = "# coding: latin-1\ngröße = 'ß'; a = f(1, 2)\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("call", ["f(1, 2)", "g(\r\n    1,\r\n)", "h('\t', f(3))", "f(3)"])
def test_calls_are_found_by_their_exact_span(call: str, encoding: str) -> None:
    source = PythonSource(BODY.encode(encoding))
    found = source.call_at(span_of(BODY, call))
    assert found is not None
    assert source.text[slice(*source.extent(found))] == call


@pytest.mark.parametrize("break_", ["\n", "\r\n", "\r"])
def test_lines_end_as_python_says(break_: str) -> None:
    text = break_.join(["a = 1 \x0c+ 1", "b = '\u2028\x0b'", "c = f(1)", ""])
    source = PythonSource(text.encode())
    found = source.call_at(span_of(text, "f(1)"))
    assert found is not None
    assert source.line_around(text.index("f(")) == (text.index("c ="), text.index("f(1)") + 4)
    assert source.line_break(text.index("f(")) == break_


@pytest.mark.parametrize(
    "span", [(1, 1, 1, 26), (2, 1, 4, 2), (9, 1, 9, 5), (0, 1, 0, 2), (1, 18, 9, 2), (2, 1, 1, 2), (1, 99, 1, 120)]
)
def test_a_span_that_is_no_call_has_none(span: tuple[int, int, int, int]) -> None:
    assert PythonSource(BODY.encode()).call_at(span) is None


@pytest.mark.parametrize("raw", [BODY.encode(), BODY.encode("utf-8-sig"), LATIN.encode("latin-1")])
def test_edits_of_bytes_are_edits_of_characters(raw: bytes) -> None:
    source = PythonSource(raw)
    at = source.text.index("(1, 2)")
    edits = [Edit(at + 4, at + 5, "200"), Edit(at + 1, at + 2, ""), Edit(0, 0, "#\n")]
    in_bytes = source.in_bytes(edits)
    assert applied(raw.decode("latin-1"), in_bytes).encode("latin-1") == applied(source.text, edits).encode(
        source.encoding
    )


@pytest.mark.parametrize(
    "raw",
    [
        b"a = (", b"a = 1\0", b"# coding: no-such\na = 1\n", b"\xff\xfe", b"# coding: rot13\n",
        b"# coding: utf-7\na = '+AGE-'\n", b"\xef\xbb\xbf# coding: latin-1\n",
        b"(" * 5000, b"a = " + b"-" * 200_000 + b"1",
        b"#" * (MOST_BYTES + 1),
    ],
)  # fmt: skip
def test_what_cannot_be_read_or_written_alike_is_refused(raw: bytes) -> None:
    with pytest.raises(InputFault):
        PythonSource(raw)


def test_what_the_compiler_warns_of_is_python() -> None:
    assert isinstance(parsed("a = '\\d'\nb = 1 is 1\n"), ast.Module)
