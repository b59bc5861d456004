"""One walk finds every node that a walk by the standard library finds, but contexts and operators."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from convlint.fixes.python.syntax import by_kind

_UNASKED = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
ODD = """
import a.b, c as d
from e import f as g
@h(i)
async def j(k: l = 1, /, *m, n=2, o, **p) -> q:
    global r
    async for s, in t: await u[v:w, ::x]
    return lambda y, z=3: (yield)
class A(B, metaclass=C):
    D: E = {**F, 'G': f'{H!r:>{I}}'}
    del J.K, L[0]
try: M += -N if not O else P and Q < R in S
except* T as U: raise V from W
with X as (Y, *Z): assert 1, "2"
match a:
    case [b, *c] | {'d': e, **f} | G(h, i=None) as j if k: pass
[l for m in n if o for p in q]
(r := 1)
"""


@pytest.mark.parametrize("text", [ODD, Path(ast.__file__).read_text("utf-8"), ""])
def test_every_node_is_found_once_and_in_breadth(text: str) -> None:
    tree = ast.parse(text)
    wanted: dict[type[ast.AST], list[ast.AST]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, _UNASKED):
            wanted.setdefault(type(node), []).append(node)
    assert by_kind(tree) == wanted
