"""Walk syntax trees faster than `ast.walk` does, by leaving out leaves and fields that hold no nodes."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Nodes = Mapping[type[ast.AST], list[Any]]

# Types whose nodes hold no other nodes: most of a tree
LEAVES: frozenset[type] = frozenset({
    ast.Name, ast.Constant, ast.Load, ast.Store, ast.Del, ast.alias, ast.Pass, ast.Break, ast.Continue, type(None),
    str, int, *ast.operator.__subclasses__(), *ast.unaryop.__subclasses__(), *ast.cmpop.__subclasses__(),
    *ast.boolop.__subclasses__(),
})  # fmt: skip

# Fields that never hold nodes, or hold only contexts and operators
_PLAIN = frozenset((
    "arg", "asname", "attr", "conversion", "ctx", "id", "is_async", "kind", "kwd_attrs", "level", "module", "op", "ops",
    "rest", "simple", "tag", "type_comment",
))  # fmt: skip
_WITHOUT_NODES = frozenset((ast.Constant, ast.Global, ast.Nonlocal, ast.MatchSingleton, ast.TypeIgnore))


# A dict subclass, as `__missing__` costs nothing on the calls that find their type: thousands for each file.
class _Holding(dict[type, tuple[str, ...]]):
    """The fields of each node type that may hold other nodes, computed once for each type."""

    def __init__(self, plain: frozenset[str]) -> None:
        super().__init__()
        self._plain = plain  # fields that are left out

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        names = () if kind in _WITHOUT_NODES else tuple(name for name in kind._fields if name not in self._plain)
        self[kind] = names
        return names


_holding = _Holding(_PLAIN)
_without_annotations = _Holding(_PLAIN | {"annotation", "returns"})


def below(node: ast.AST, empty: frozenset[type] = LEAVES) -> list[ast.AST]:
    """Return the direct children of a node in source order, without those of the types in `empty`."""
    children: list[ast.AST] = []
    for name in _holding[node.__class__]:
        child = getattr(node, name, None)
        kind = child.__class__
        if kind is list:
            children += [item for item in child if item.__class__ not in empty]  # type: ignore[union-attr]
        elif kind not in empty:
            children.append(child)  # type: ignore[arg-type]
    return children


def every(node: ast.AST, *, annotations: bool = True) -> list[ast.AST]:
    """Return the node and all its descendants, breadth first, leaves included, operators and contexts not."""
    nodes = [node]
    holding = _holding if annotations else _without_annotations
    for inner in nodes:  # which grows meanwhile
        for name in holding[inner.__class__]:
            child = getattr(inner, name, None)
            kind = child.__class__
            if kind is list:
                nodes += child if None not in child else filter(None, child)  # type: ignore[operator, arg-type]
            elif child is not None and kind is not str:
                nodes.append(child)
    return nodes


def walked(node: ast.AST) -> list[ast.AST]:
    """Return the node and all its descendants but leaves, breadth first, as `ast.walk` orders them."""
    nodes = [node]
    for inner in nodes:  # which grows meanwhile
        nodes += below(inner)
    return nodes


def bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield all lists of statements."""
    for node in every(tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                yield body


def by_kind(nodes: Iterable[ast.AST]) -> Nodes:
    """Group nodes by their type, in their order; a type without nodes has an empty list."""
    groups: dict[type[ast.AST], list[Any]] = defaultdict(list)
    for node in nodes:
        groups[node.__class__].append(node)
    return groups
