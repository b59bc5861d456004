"""Trees gone through without their leaves."""

import ast
from pathlib import Path

import pytest
from checkout import ROOT

from convlint.readers.python.walking import LEAVES, below, by_kind, every, walked

FILES = sorted((ROOT / "convlint" / "readers" / "python").rglob("*.py"))
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


@pytest.mark.parametrize("path", FILES[::5], ids=lambda path: path.name)
def test_all_but_leaves_in_the_order_of_the_standard_library(path: Path) -> None:
    tree = ast.parse(path.read_bytes())
    assert walked(tree) == [node for node in ast.walk(tree) if node.__class__ not in LEAVES]


def test_leaves_hold_nothing() -> None:
    empty = [kind for kind in LEAVES if issubclass(kind, ast.AST)]
    held = {name for kind in empty for name in kind._fields}
    assert held == {"id", "ctx", "value", "kind", "name", "asname"}  # names, numbers and texts


def test_what_lies_directly_in_a_node() -> None:
    call = ast.parse("f(a, g(b), *c, k=h())").body[0].value  # type: ignore[attr-defined]
    assert [ast.unparse(each) for each in below(call)] == ["g(b)", "*c", "k=h()"]
    assert below(ast.parse("{1: f(), **g}").body[0].value)[0].lineno == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", FILES[1::5], ids=lambda path: path.name)
def test_every_node_but_operators_and_contexts_in_the_order_of_the_standard_library(path: Path) -> None:
    tree = ast.parse(path.read_bytes())
    marks = ast.expr_context | ast.operator | ast.unaryop | ast.cmpop | ast.boolop
    found = [node for node in every(tree) if not isinstance(node, marks)]
    assert found == [node for node in ast.walk(tree) if not isinstance(node, marks)]
    assert len(found) < len(list(ast.walk(tree))) or not tree.body[1:]


@pytest.mark.parametrize("text", [ODD, Path(ast.__file__).read_text("utf-8"), ""])
def test_every_node_is_found_once_and_in_breadth(text: str) -> None:
    tree = ast.parse(text)
    wanted: dict[type[ast.AST], list[ast.AST]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, _UNASKED):
            wanted.setdefault(type(node), []).append(node)
    assert by_kind(every(tree)) == wanted
