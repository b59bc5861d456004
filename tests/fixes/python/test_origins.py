"""Where a value comes from is said as far as the syntax tells, and no further."""

from __future__ import annotations

import ast

import pytest

from convlint.fixes.python.origins import origin
from convlint.fixes.python.source import PythonSource


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("width = 60\nMARK(width)", "`width` at net.py:1"),
        ("width: int = 60\nMARK(width)", "`width` at net.py:1"),
        ("a, width = 3, 60\nMARK(width)", "`width` at net.py:1"),
        ("a, width = read()\nMARK(width)", "`width`, which changes, at net.py:1"),
        ("width = 60\nwidth = 64\nMARK(width)", "`width`, which several lines set, the first of them net.py:1"),
        ("width = 60\nwidth += 4\nMARK(width)", "`width`, which several lines set, the first of them net.py:1"),
        ("for width in (3, 60):\n  MARK(width)", "`width`, which changes, at net.py:1"),
        ("x = [MARK(width) for width in (3, 60)]", "`width`, which changes, at net.py:1"),
        ("with a as width:\n  MARK(width)", "`width`, which changes, at net.py:1"),
        ("if (width := 60): MARK(width)", "`width` at net.py:1"),
        ("def f():\n  width = 60\n  MARK(width)\nwidth = 3", "`width` at net.py:2"),
        ("width = 60\ndef f():\n  def g(): width = 3\n  MARK(width)", "`width` at net.py:1"),
        ("def f(width): MARK(width)", "`width`, a parameter of `f` at net.py:1"),
        ("def f(a,\n  *, width=60): MARK(width)",
         "`width`, a parameter of `f` (`60` where it is not given) at net.py:2"),
        ("f = lambda width: MARK(width)", "`width`, a parameter of a lambda at net.py:1"),
        ("class A:\n  def f(self, a, width=30 * 2):\n    MARK(width)",
         "`width`, a parameter of `A.f` (`30 * 2` where it is not given) at net.py:2"),
        ("def f(**width): MARK(width)", "`width`, a parameter of `f` at net.py:1"),
        ("class A:\n  width = 60\n  def f(self): MARK(width)\nwidth = 3", "`width` at net.py:4"),
        ("class A:\n  width = 60\n  x = MARK(width)", "`width` at net.py:2"),
        ("class A:\n  width = 60\n  def f(self): MARK(self.width)", "`self.width` at net.py:2"),
        ("class A:\n  def g(self): self.width = 60\n  def f(self): MARK(self.width)", "`self.width` at net.py:2"),
        ("class A:\n  width = 1\n  def f(self):\n    self.width = 2; MARK(self.width)", "the attribute `self.width`"),
        ("class A:\n  def f(self): MARK(cfg.width)", "the attribute `cfg.width`"),
        ("MARK(self.width)", "the attribute `self.width`"),
        ("from x import width\nMARK(width)", "`width`, which this file does not set"),
        ("MARK(2 * width)", "the expression `2 * width`"),
        ("MARK(a.b.c)", "the expression `a.b.c`"),
        ("MARK(64)", "`64`"),
        (f"MARK({'x + ' * 1000}x)", "the expression `x + x + x + x + x + x + x + x + x + x + ...`"),
    ],
)  # fmt: skip
def test_the_source_of_a_value(text: str, said: str) -> None:
    source = PythonSource(text.encode())
    call = next(
        node for node in ast.walk(source.tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "MARK"
    )
    assert origin(source, call.args[0], "net.py") == said
