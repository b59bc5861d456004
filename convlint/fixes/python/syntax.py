"""The nodes of a syntax tree by their kind, gathered in one walk for all who ask."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

Nodes = Mapping[type[ast.AST], list[Any]]

# fields that hold no nodes, or none but contexts and operators, which nobody asks for
_LEAVES = frozenset(
    ("attr", "conversion", "ctx", "id", "is_async", "kind", "level", "module", "op", "ops", "simple", "type_comment")
)


def by_kind(tree: ast.AST) -> Nodes:
    """The nodes of each kind, breadth first; a kind that the tree has none of is missing."""
    found: dict[type[ast.AST], list[Any]] = defaultdict(list)
    pending: list[object] = [tree]
    for node in pending:  # which grows meanwhile
        if not isinstance(node, ast.AST):
            continue  # of a list of names or of optional nodes
        kind = type(node)
        found[kind].append(node)
        for name in _below[kind]:
            value = getattr(node, name, None)
            if type(value) is list:
                pending += value
            elif isinstance(value, ast.AST):
                pending.append(value)
    return dict(found)


class _Below(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of each kind that may hold nodes."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        names = () if kind is ast.Constant else tuple(name for name in kind._fields if name not in _LEAVES)
        self[kind] = names
        return names


_below = _Below()
