"""What a file makes the attributes of its objects: layers of a framework, constructed there, and which kind of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from convlint.readers.python.nn.bias_guards import names_other_kind
from convlint.readers.python.project import FRAMEWORKS


class Made(NamedTuple):
    """Attributes by name. `here`: every line of the file that sets one constructs a framework's layer in that place.

    `others`: every such line constructs a norm, a linear layer or its like, whose ever that is.
    """

    here: frozenset[str]
    others: frozenset[str]


def attributes_made(tree: ast.Module) -> Made:
    """Of a whole file, whatever the object is."""
    modules = _framework_names(tree)
    here: dict[str, bool] = {}
    others: dict[str, bool] = {}
    for name, value in _set(tree):
        function = value.func if isinstance(value, ast.Call) else None
        here[name] = here.get(name, True) and function is not None and _root(function) in modules
        others[name] = others.get(name, True) and function is not None and names_other_kind(last_name(function))
    return Made(*(frozenset(name for name, holds in each.items() if holds) for each in (here, others)))


def last_name(node: ast.expr) -> str:
    """Of `nn.Conv2d` Conv2d; empty for what is no name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _set(tree: ast.Module) -> Iterator[tuple[str, ast.expr | None]]:
    """Each attribute that anything sets, with the value; None where that is not said."""
    valued: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Attribute):
                    valued.add(id(target))
                    yield target.attr, node.value
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and id(node) not in valued:
            yield node.attr, None


def _framework_names(tree: ast.Module) -> frozenset[str]:
    """The names of modules that are imported from frameworks: `nn` of `from torch import nn`."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found |= {(each.asname or each.name).split(".")[0] for each in names if _is_framework(each.name)}
            case ast.ImportFrom(module=str(module), names=names, level=0) if _is_framework(module):
                found |= {each.asname or each.name for each in names if each.name.islower()}
            case _:
                pass
    return frozenset(found)


def _is_framework(module: str) -> bool:
    return module.split(".")[0] in FRAMEWORKS


def _root(function: ast.expr) -> str:
    """Of `nn.Conv2d` nn; empty for what is no layer by its name, such as a function that passes one on."""
    if not isinstance(function, ast.Attribute) or not function.attr[:1].isupper():
        return ""
    node: ast.expr = function
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
