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

_NAMED = frozenset((ast.Name, ast.Constant))  # leaves that say something


def below(node: ast.AST, empty: frozenset[type] = LEAVES) -> list[ast.AST]:
    """The nodes directly in one, in their order, but for those of the kinds in `empty`."""
    found: list[ast.AST] = []
    for name in node._fields:
        child = getattr(node, name, None)
        kind = child.__class__
        if kind is list:
            found += [each for each in child if each.__class__ not in empty]  # type: ignore[union-attr]
        elif kind not in empty and isinstance(child, ast.AST):
            found.append(child)
    return found


def every(node: ast.AST) -> list[ast.AST]:
    """The node and all within it, leaves too, but for operators and contexts; one level behind the other."""
    found = [node]
    level = [] if node.__class__ in LEAVES else [node]
    while level:
        holding: list[ast.AST] = []
        for each in level:
            for name in each._fields:
                child = getattr(each, name, None)
                kind = child.__class__
                if kind is list:
                    for one in child:  # type: ignore[union-attr]
                        if isinstance(one, ast.AST):
                            found.append(one)
                            if one.__class__ not in LEAVES:
                                holding.append(one)
                elif kind in _NAMED:
                    found.append(child)  # type: ignore[arg-type]
                elif kind not in LEAVES and isinstance(child, ast.AST):
                    found.append(child)
                    holding.append(child)
        level = holding
    return found


def walked(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes and all within them but leaves, one level behind the other, as ast.walk has them."""
    level = list(nodes)
    while level:
        yield from level
        level = [each for node in level for each in below(node)]
