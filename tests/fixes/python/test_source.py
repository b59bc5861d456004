"""Offsets in Python source are right in every encoding, and what is no Python is refused."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import pytest
from constructed import span_of

from convlint.fixes.edits import Edit, applied
from convlint.fixes.python.source import (
    MOST_BYTES,
    Lines,
    ParsedModule,
    PythonSource,
    Rewrites,
    Value,
    by_columns,
    parsed,
    same,
)
from convlint.model.errors import InputFault
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


OLD = """@dec(1)
class Net:
    \"\"\"ä\"\"\"
    def __init__(self, width=2):
        if width: self.a = f(60, 3); self.b = g(5)
        elif self: self.c = h(4)
        else:
            self.d = f(7)
    @property
    def e(self): return 9  # ß
try: x = 10
except E: y = 11
"""


def compared(new: str, literals: Mapping[int, Value], keywords: Mapping[int, Mapping[str, Value]], old: str) -> bool:
    """Literals by their value, calls by their first argument."""
    tree = ast.parse(old)
    nodes = list(ast.walk(tree))
    constants = {node.value: node for node in nodes if isinstance(node, ast.Constant)}
    calls = {
        node.args[0].value: node
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.args[0], ast.Constant)
    }
    rewrites = Rewrites(
        {constants[value]: new for value, new in literals.items()},
        {calls[number]: new for number, new in keywords.items()},
    )
    return same(ParsedModule(tree, Lines(old)), ParsedModule(ast.parse(new), Lines(new)), rewrites)


@pytest.mark.parametrize(
    ("before", "after", "literals", "keywords"),
    [
        ("f(60, 3)", "f(60, 3, bias=False)", {}, {60: {"bias": False}}),
        ("f(60, 3)", "f(64, 3)", {60: 64}, {}),
        ("g(5)", "g(\n  True)", {5: True}, {}),
        ("h(4)", "h(4, a=(1, 2), b=3)", {}, {4: {"a": (1, 2), "b": 3}}),
        ("# ß", "# another comment, and a line\n", {}, {}),
        ("@dec(1)", "@dec(2)", {1: 2}, {}),
        ("x = 10", "x = (12)", {10: 12}, {}),
        ("f(60, 3)", "f(60, 3)", {60: 60}, {}),
        ("f(60, 3)", "f(60, 3)", {}, {60: {}}),
    ],
)
def test_what_was_meant_is_all_that_changed(
    before: str, after: str, literals: Mapping[int, Value], keywords: Mapping[int, Mapping[str, Value]]
) -> None:
    assert compared(OLD.replace(before, after), literals, keywords, OLD)
    spread = after.replace("5)", "5)\n")
    assert compared(OLD.replace(before, spread), literals, keywords, OLD)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(60, 3)", "f(60, 3)"), ("f(60, 3)", "f(63, 3)"), ("f(60, 3)", "f(64.0, 3)"),
        ("f(60, 3)", "f(64, 3, bias=False)"), ("f(60, 3)", "f(64, 3); f(1)"), ("f(60, 3)", "g(64, 3)"),
    ],
)  # fmt: skip
def test_what_was_meant_and_is_not_there_is_noticed(before: str, after: str) -> None:
    assert not compared(OLD.replace(before, after), {60: 64}, {}, OLD)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("@dec(1)", "@dec(2)"), ("@dec(1)\n", ""), ("@property", "@proper"), ("Net:", "Nets:"), ("Net:", "Net(A):"),
        ("width=2", "width=3"), ("if width", "if wide"), ("g(5)", "g(True)"), ("g(5)", "g('5')"), ("h(4)", "h(5)"),
        ("f(7)", "f(8)"), ("return 9", "return 8"), ("def e", "async def e"), ("x = 10", "x = 11"), ("E:", "F:"),
        ("y = 11", "y = 12"), ("y = 11", "y = 11; z = 1"), ("ä", "a"), ("y = 11", "y += 11"),
    ],
)  # fmt: skip
def test_what_else_changed_is_noticed(before: str, after: str) -> None:
    edited = OLD.replace("f(60, 3)", "f(64, 3)")
    assert compared(edited, {60: 64}, {}, OLD)
    assert not compared(edited.replace(before, after), {60: 64}, {}, OLD)


def test_statements_of_one_text_are_not_compared() -> None:
    """The tree of the second says something else, where nobody looks."""
    old, lines = ast.parse("a = f(1)\nb = f(2)\n"), Lines("a = f(1)\nb = f(2)\n")
    new = ast.parse("a = f(1)\nb = g(2)\n")
    assert same(ParsedModule(old, lines), ParsedModule(new, lines), Rewrites({}, {}))
    assert not same(ParsedModule(old, lines), ParsedModule(new, Lines("a = f(1)\nb = g(2)\n")), Rewrites({}, {}))
