"""Trees gone through without their leaves."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from checkout import ROOT

from convlint.readers.python.walking import LEAVES, below, every, walked

FILES = sorted((ROOT / "convlint" / "readers" / "python").rglob("*.py"))


@pytest.mark.parametrize("path", FILES[::5], ids=lambda path: path.name)
def test_all_but_leaves_in_the_order_of_the_standard_library(path: Path) -> None:
    tree = ast.parse(path.read_bytes())
    assert list(walked([tree])) == [node for node in ast.walk(tree) if node.__class__ not in LEAVES]


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
