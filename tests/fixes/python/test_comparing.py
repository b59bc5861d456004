"""An edited module passes for the one that was meant only where nothing else of it changed, wherever that stands."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import pytest

from convlint.fixes.python.comparing import Module, Rewrites, Value, same
from convlint.fixes.python.lines import Lines

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
    return same(Module(tree, Lines(old)), Module(ast.parse(new), Lines(new)), rewrites)


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
    assert same(Module(old, lines), Module(new, lines), Rewrites({}, {}))
    assert not same(Module(old, lines), Module(new, Lines("a = f(1)\nb = g(2)\n")), Rewrites({}, {}))
