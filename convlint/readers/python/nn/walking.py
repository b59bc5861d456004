"""Going through trees in a part of the time that the standard library's walk takes: leaves are left out."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

# What holds no other node: most of a tree
LEAVES: frozenset[type] = frozenset({
    ast.Name, ast.Constant, ast.Load, ast.Store, ast.Del, ast.alias, ast.Pass, ast.Break, ast.Continue, type(None),
    str, int, *ast.operator.__subclasses__(), *ast.unaryop.__subclasses__(), *ast.cmpop.__subclasses__(),
    *ast.boolop.__subclasses__(),
})  # fmt: skip


def below(node: ast.AST) -> list[ast.AST]:
    """The nodes directly in one that may hold others, in their order."""
    found: list[ast.AST] = []
    for name in node._fields:
        child = getattr(node, name, None)
        kind = child.__class__
        if kind is list:
            found += [each for each in child if each.__class__ not in LEAVES]  # type: ignore[union-attr]
        elif kind not in LEAVES and isinstance(child, ast.AST):
            found.append(child)
    return found


def walked(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes and all within them but leaves, one level behind the other, as ast.walk has them."""
    level = list(nodes)
    while level:
        yield from level
        level = [each for node in level for each in below(node)]
