"""Offsets in Python source are right in every encoding; rewrites go where they belong and change nothing else."""

import ast
from collections.abc import Mapping
from typing import Any

import pytest
from constructed import span_of

from convlint.fixes.edits import Edit, applied
from convlint.fixes.python.source import (
    MOST_BYTES,
    Lines,
    PythonSource,
    Rewrites,
    Value,
    applied_to_bytes,
    by_columns,
    inserted,
    parsed,
    rewritten,
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
    source = PythonSource(old.encode())
    nodes = list(ast.walk(source.tree))
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
    return same(source, new, rewrites)


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


def calls(source: PythonSource) -> list[ast.Call]:
    return [node for node in ast.walk(source.tree) if isinstance(node, ast.Call)]


def after(raw: bytes, rewrites: Rewrites, source: PythonSource) -> bytes:
    return applied_to_bytes(raw, rewritten(source, rewrites))


def with_keywords(text: str, **given: Any) -> str:
    source = PythonSource(text.encode())
    return after(text.encode(), Rewrites({}, {calls(source)[0]: given}), source).decode()


def with_literals(raw: bytes, old: int, new: int) -> bytes:
    source = PythonSource(raw)
    found = [node for node in ast.walk(source.tree) if isinstance(node, ast.Constant) and node.value == old]
    return after(raw, Rewrites(dict.fromkeys(found, new), {}), source)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("f(3, 60, 3)", "f(3, 60, 3, bias=False)"),
        ("f()", "f(bias=False)"),
        ("f(\n)", "f(bias=False\n)"),
        ("f(3, 60, 3,)", "f(3, 60, 3, bias=False,)"),
        ("f(3, 60, (3))", "f(3, 60, (3), bias=False)"),
        ("f(3, k=(3) , )", "f(3, k=(3), bias=False , )"),
        ("f(3, 60,\n  3)", "f(3, 60,\n  3, bias=False)"),
        ("f(\n  3, 60,\n  3,\n)", "f(\n  3, 60,\n  3, bias=False,\n)"),
        ("f(\n\t3,\n\t60,\n)", "f(\n\t3,\n\t60,\n\tbias=False,\n)"),
        ("f(\r\n  3,\r\n  60,  # (a, 'b\r\n)\r\n", "f(\r\n  3,\r\n  60,  # (a, 'b\r\n  bias=False,\r\n)\r\n"),
        ("f(\r  3,\r  60,\r)\r", "f(\r  3,\r  60,\r  bias=False,\r)\r"),
        ("f(\n  3,\n  60  # last\n)", "f(\n  3,\n  60, bias=False  # last\n)"),
        ("f(\n  3,\n  60,)", "f(\n  3,\n  60, bias=False,)"),
        ("f(\n  3,\n  60,\n  # bias=True,\n)", "f(\n  3,\n  60,\n  bias=False,\n  # bias=True,\n)"),
        ("f(\n  3,\n  60\n  , )", "f(\n  3,\n  60, bias=False\n  , )"),
        ("f(\n  a,\n  '''x\ny''',\n)", "f(\n  a,\n  '''x\ny''',\n  bias=False,\n)"),
        ("x = [\n  f(3, g(\n    1,\n  )),\n]", "x = [\n  f(3, g(\n    1,\n  ), bias=False),\n]"),
        ("ß = 'ẞ𝄞'; f(3, 'ß')", "ß = 'ẞ𝄞'; f(3, 'ß', bias=False)"),
        ("(m\n .f(3))", "(m\n .f(3, bias=False))"),
        ("f(3)(4)", "f(3)(4, bias=False)"),
        ("f(3, f'{x})')", "f(3, f'{x})', bias=False)"),
    ],
)
def test_keywords_come_last(before: str, expected: str) -> None:
    assert with_keywords(before, bias=False) == expected


def test_several_keywords_come_in_order() -> None:
    assert with_keywords("f(3)", bias=False, padding=(1, 2)) == "f(3, bias=False, padding=(1, 2))"
    assert with_keywords("f(\n  3,\n)", bias=False, groups=2) == "f(\n  3,\n  bias=False,\n  groups=2,\n)"


def test_a_keyword_that_a_call_cannot_get_is_refused() -> None:
    with pytest.raises(InputFault):
        with_keywords("f(x for x in y)", bias=False)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (b"f(60)\n", b"f(64)\n"),
        (b"\xef\xbb\xbff(60)\r\n", b"\xef\xbb\xbff(64)\r\n"),
        (b"# coding: latin-1\ns = '\xdf'; f('\xe4', 60)\x0c", b"# coding: latin-1\ns = '\xdf'; f('\xe4', 64)\x0c"),
        ("s = 'ẞ𝄞'; f('ß', 0x3C,60)".encode(), "s = 'ẞ𝄞'; f('ß', 64,64)".encode()),
        (b"# coding: shift_jis\ns = '\x82\xa0'; f(60)", b"# coding: shift_jis\ns = '\x82\xa0'; f(64)"),
        (b"f(6_0,\\\n\t60)# 60", b"f(64,\\\n\t64)# 60"),
        (b"f(1)", b"f(1)"),
    ],
)
def test_literals_change_and_all_else_stays(before: bytes, expected: bytes) -> None:
    assert with_literals(before, 60, 64) == expected


@pytest.mark.parametrize("text", ["x = 60if y else 3", "f'{60}'", "match x:\n  case 60: pass"])
def test_literals_in_odd_places(text: str) -> None:
    """Where Python says no exact place, as inside of f-strings of 3.11, nothing is edited."""
    try:
        changed = with_literals(text.encode(), 60, 64).decode()
    except InputFault:
        return
    assert changed == text.replace("60", "64")


@pytest.mark.parametrize(
    ("text", "place", "new", "problem"),
    [
        ("f(60, 3)\n", (1, 4), [64], "not Python"),
        ("f(60, 3)\n", (2, 4), [64, 5], "overlaps"),
        ("f(60, 30)\n", (6, 8), [64], "something else"),
    ],
)
def test_edits_in_another_place_than_was_meant_are_refused(
    text: str, place: tuple[int, int], new: list[int], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = PythonSource(text.encode())
    literals = [node for node in calls(source)[0].args if isinstance(node, ast.Constant)]
    assert len(literals) == 2
    monkeypatch.setattr(source, "extent", lambda node: place)
    with pytest.raises(InputFault, match=problem):
        rewritten(source, Rewrites(dict(zip(literals, new, strict=False)), {}))


NEW = "torch.x = True"


def with_statement(raw: bytes, line: int, column: int = 1) -> bytes:
    return applied_to_bytes(raw, inserted(PythonSource(raw), (line, column), NEW))


@pytest.mark.parametrize(
    ("before", "place", "expected"),
    [
        ("a = 1\nb = 2\n", (2, 1), f"a = 1\n{NEW}\nb = 2\n"),
        ("def main():\n    a = 1\n", (2, 5), f"def main():\n    {NEW}\n    a = 1\n"),
        ("def main():\n\ta = 1\n", (2, 2), f"def main():\n\t{NEW}\n\ta = 1\n"),
        ("def main():\r\n    a = 1\r\n", (2, 5), f"def main():\r\n    {NEW}\r\n    a = 1\r\n"),
        ("def main():\r    a = 1\r", (2, 5), f"def main():\r    {NEW}\r    a = 1\r"),
        ("if a:\n    b", (2, 5), f"if a:\n    {NEW}\n    b"),
        ("if a: main()\n", (1, 7), f"if a: {NEW}; main()\n"),
        ("a = 1; b = 2\n", (1, 8), f"a = 1; {NEW}; b = 2\n"),
        ("a = 1; \\\nb = 2\n", (2, 1), f"a = 1; \\\n{NEW}\nb = 2\n"),
        ("'ä'; b = 2\n", (1, 6), f"'ä'; {NEW}; b = 2\n"),
        ("@wraps\n@other(1)\ndef f(): pass\n", (3, 1), f"{NEW}\n\n\n@wraps\n@other(1)\ndef f(): pass\n"),
        ("for a in b:\n    c\nelse:\n    d\n", (4, 5), f"for a in b:\n    c\nelse:\n    {NEW}\n    d\n"),
        ("try:\n    a\nexcept E:\n    b\n", (4, 5), f"try:\n    a\nexcept E:\n    {NEW}\n    b\n"),
        ("# ä\nclass C:\n  def f(s):\n    a\n", (4, 5), f"# ä\nclass C:\n  def f(s):\n    {NEW}\n    a\n"),
        ("x = 1\n# why\na = 1\n", (3, 1), f"x = 1\n{NEW}\n# why\na = 1\n"),
        ("def f():\r\n  x\r\n  # how\r\n  # why\r\n  a\r\n", (5, 3),
         f"def f():\r\n  x\r\n  {NEW}\r\n  # how\r\n  # why\r\n  a\r\n"),
        ("def f():\n    # why\n    a\n", (3, 5), f"def f():\n    {NEW}\n    # why\n    a\n"),
        ("x\n# why\n@wraps\ndef f(): pass\n", (4, 1), f"x\n{NEW}\n\n\n# why\n@wraps\ndef f(): pass\n"),
        ("x\n\n# --- A ---\n\n\nclass A: pass\n", (6, 1), f"x\n\n{NEW}\n\n\n# --- A ---\n\n\nclass A: pass\n"),
        ("x\r\n\r\n# A\r\n\r\n# B\r\n@b\r\ndef f(): pass\r\n", (7, 1),
         f"x\r\n\r\n{NEW}\r\n\r\n\r\n# A\r\n\r\n# B\r\n@b\r\ndef f(): pass\r\n"),
        ("x\n# x\n\nclass A: pass\n", (4, 1), f"x\n# x\n\n{NEW}\n\n\nclass A: pass\n"),
        ("x\n\n# %%\n\nclass A: pass\n", (5, 1), f"x\n\n# %%\n\n{NEW}\n\n\nclass A: pass\n"),
        ("x\n# ---\n\n# why\na\n", (5, 1), f"x\n# ---\n\n{NEW}\n# why\na\n"),
        ("x\n# what\n\na\n", (4, 1), f"x\n# what\n\n{NEW}\na\n"),
        ("def f():\n    x\n# b = 2\n    # why\n    a\n", (5, 5),
         f"def f():\n    x\n# b = 2\n    {NEW}\n    # why\n    a\n"),
        ("if a:\n    x\n    # else\nb\n", (4, 1), f"if a:\n    x\n    # else\n{NEW}\nb\n"),
        ("x  # what\na\n", (2, 1), f"x  # what\n{NEW}\na\n"),
        ("#!/usr/bin/env python\n# license\na\n", (3, 1), f"#!/usr/bin/env python\n# license\n{NEW}\na\n"),
        ("# license\n\n# why\na\n", (4, 1), f"# license\n\n{NEW}\n# why\na\n"),
        ("x\n# %% train\n# why\na\n", (4, 1), f"x\n# %% train\n{NEW}\n# why\na\n"),
        ("x = '''\n# no comment'''\na\n", (3, 1), f"x = '''\n# no comment'''\n{NEW}\na\n"),
        ("def f():\n    '''ä\n    '''\n    a\n", (4, 5), f"def f():\n    '''ä\n    '''\n    {NEW}\n    a\n"),
    ],
)  # fmt: skip
def test_in_front_of_a_statement(before: str, place: tuple[int, int], expected: str) -> None:
    assert with_statement(before.encode(), *place) == expected.encode()


def test_encodings_are_kept() -> None:
    assert with_statement(b"\xef\xbb\xbfa = 1\n", 1) == b"\xef\xbb\xbf" + NEW.encode() + b"\na = 1\n"
    assert with_statement("# coding: latin-1\n'ä'; b\n".encode("latin-1"), 2, 6) == (
        f"# coding: latin-1\n'ä'; {NEW}; b\n".encode("latin-1")
    )


@pytest.mark.parametrize(
    ("before", "place"),
    [
        ("a = 1\n", (1, 2)),
        ("a = 1\n", (7, 1)),
        ("x = lambda: f(\n    a)\n", (2, 5)),
    ],
)
def test_what_is_no_place_for_it_is_refused(before: str, place: tuple[int, int]) -> None:
    with pytest.raises(InputFault):
        with_statement(before.encode(), *place)


def test_calls_of_one_line_are_found_without_a_look_at_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "f(" + ", ".join(f"g({number})" for number in range(100)) + ")"
    source, looks, extent = PythonSource(text.encode()), list[int](), Lines.extent
    monkeypatch.setattr(Lines, "extent", lambda *given: looks.append(1) or extent(*given))
    for number in range(100):
        found = source.call_at(span_of(text, f"g({number})"))
        assert found is not None
        assert ast.unparse(found) == f"g({number})"
    assert len(looks) == 101
