"""What a file makes its variables, and the attributes of its objects: layers of a framework, and which kind of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from convlint.readers.python.nn.bias_guards import names_other_kind
from convlint.readers.python.project import of_framework
from convlint.readers.python.walking import every, walked

_GIVE_ITSELF = frozenset(("to", "cuda", "cpu", "eval", "train", "half", "float", "double", "requires_grad_"))


class Made(NamedTuple):
    """Attributes by name. `here`: every line of the file that sets one constructs a framework's layer in that place.

    `others`: every such line constructs a norm, a linear layer or its like, whose ever that is. `variables` are as
    those `here`, of functions and of the module.
    """

    here: frozenset[str]
    others: frozenset[str]
    variables: frozenset[str]


@lru_cache(maxsize=1)  # uses of a bias are judged by it, and then placed by it
def attributes_made(tree: ast.Module) -> Made:
    """Of a whole file, whatever the object is."""
    modules = _framework_names(tree)
    here: dict[str, bool] = {}
    others: dict[str, bool] = {}
    variables: dict[str, bool] = {}
    for target, value in _set(tree):
        function = _constructing(value)
        made = function is not None and _root(function) in modules
        match target:
            case ast.Attribute(attr=name):
                here[name] = here.get(name, True) and made
                others[name] = others.get(name, True) and function is not None and names_other_kind(last_name(function))
            case ast.Name(id=name) | ast.arg(arg=name):
                variables[name] = variables.get(name, True) and made
            case _:
                pass
    return Made(*(frozenset(name for name, holds in each.items() if holds) for each in (here, others, variables)))


def norms_in_doubt(tree: ast.Module) -> frozenset[str]:
    """The names of norms that a file may give to something else: to variables of loops, and what it takes from there.

    An attribute, which many lines construct in ways of their own, is in doubt where it is set to what says conv.
    """
    found: set[str] = set()
    for target, value in _set(tree):
        text = "" if value is None else ast.dump(value).lower()
        match target:
            case ast.Name(id=name) if "conv" in text or not ("norm" in text or "bn" in text):
                found.add(name)
            case ast.Attribute(attr=name) if "conv" in text:
                found.add(name)
            case _:
                pass
    return frozenset(found)


def _constructing(value: ast.expr | None) -> ast.expr | None:
    """What a call is of, such as nn.Conv2d; `.to(...)` and the like behind it give the layer itself."""
    while isinstance(value, ast.Call):
        function = value.func
        if not isinstance(function, ast.Attribute) or function.attr not in _GIVE_ITSELF:
            return function
        value = function.value
    return None


def last_name(node: ast.expr) -> str:
    """Of `nn.Conv2d` Conv2d; empty for what is no name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _set(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.expr | None]]:
    """Each attribute and variable that anything sets, with the value; None where that is not said."""
    valued: set[int] = set()
    for node in every(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                valued.add(id(target))
                yield target, node.value
        elif isinstance(node, (ast.Attribute, ast.Name)) and isinstance(node.ctx, ast.Store):
            if id(node) not in valued:
                yield node, None
        elif isinstance(node, ast.arg):
            yield node, None


def _framework_names(tree: ast.Module) -> frozenset[str]:
    """The names of modules that are imported from frameworks: `nn` of `from torch import nn`."""
    found: set[str] = set()
    for node in walked([tree]):
        match node:
            case ast.Import(names=names):
                found |= {(each.asname or each.name).split(".")[0] for each in names if of_framework(each.name)}
            case ast.ImportFrom(module=str(module), names=names, level=0) if of_framework(module):
                found |= {each.asname or each.name for each in names if each.name.islower()}
            case _:
                pass
    return frozenset(found)


def _root(function: ast.expr) -> str:
    """Of `nn.Conv2d` nn; empty for what is no layer by its name, such as a function that passes one on."""
    if not isinstance(function, ast.Attribute) or not function.attr[:1].isupper():
        return ""
    node: ast.expr = function
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
