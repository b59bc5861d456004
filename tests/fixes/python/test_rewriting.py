"""New literals and keywords go where they belong, and nothing else of a module changes."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from convlint.fixes.python.rewriting import applied_to_bytes, inserted, rewritten
from convlint.fixes.python.source import PythonSource, Rewrites
from convlint.model.errors import InputFault


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
        ("@wraps\n@other(1)\ndef f(): pass\n", (3, 1), f"{NEW}\n@wraps\n@other(1)\ndef f(): pass\n"),
        ("for a in b:\n    c\nelse:\n    d\n", (4, 5), f"for a in b:\n    c\nelse:\n    {NEW}\n    d\n"),
        ("try:\n    a\nexcept E:\n    b\n", (4, 5), f"try:\n    a\nexcept E:\n    {NEW}\n    b\n"),
        ("# ä\nclass C:\n  def f(s):\n    a\n", (4, 5), f"# ä\nclass C:\n  def f(s):\n    {NEW}\n    a\n"),
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
