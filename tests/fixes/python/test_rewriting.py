"""New literals and keywords go where they belong, and nothing else of a module changes."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from convlint.errors import InputFault
from convlint.fixes.python.rewriting import Rewrites, applied_to_bytes, rewritten
from convlint.fixes.python.source import PythonSource


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


def test_what_would_mean_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    source = PythonSource(b"f(60, 3)\n")
    sixty = calls(source)[0].args[0]
    assert isinstance(sixty, ast.Constant)
    monkeypatch.setattr(source, "extent", lambda node: (1, 4))
    with pytest.raises(InputFault, match="not Python"):
        rewritten(source, Rewrites({sixty: 64}, {}))


def test_one_place_is_not_edited_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    source = PythonSource(b"f(60, 3)\n")
    one, other = calls(source)[0].args
    assert isinstance(one, ast.Constant)
    assert isinstance(other, ast.Constant)
    monkeypatch.setattr(source, "extent", lambda node: (2, 4))
    with pytest.raises(InputFault, match="overlaps"):
        rewritten(source, Rewrites({one: 64, other: 5}, {}))


def test_another_literal_than_was_meant_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    source = PythonSource(b"f(60, 30)\n")
    sixty = calls(source)[0].args[0]
    assert isinstance(sixty, ast.Constant)
    monkeypatch.setattr(source, "extent", lambda node: (6, 8))
    with pytest.raises(InputFault, match="something else"):
        rewritten(source, Rewrites({sixty: 64}, {}))
