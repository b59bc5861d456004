"""Which names a body binds, found without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from convlint.readers.python.walking import LEAVES, below

Body = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_NAMING = frozenset((
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.alias, ast.ExceptHandler, ast.MatchAs, ast.MatchStar,
    ast.MatchMapping, ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom,
))  # fmt: skip
_EMPTY = LEAVES - {ast.Name, ast.alias}
CHANGERS = frozenset({  # methods that change a list, dict or set
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "reverse",
    "sort", "update", "move_to_end",
})  # fmt: skip


def within(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of a body but for constants; those of functions and classes inside it are left out."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _INNER):
            waiting += below(node, _EMPTY)


class Names:
    """What a body binds (assigned, imported, defined, caught), what it declares global or nonlocal, if it yields."""

    __slots__ = ("bound", "declared", "yields")

    def __init__(self, nodes: Iterable[ast.AST]) -> None:
        found: set[str] = set()
        self.bound, self.yields = found, False
        self.declared: set[str] = set()
        for node in within(nodes):
            if isinstance(node, ast.Name):
                if node.ctx.__class__ is not ast.Load:
                    found.add(node.id)
                continue
            if node.__class__ not in _NAMING:  # nearly all others, which are told apart only by many questions
                continue
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    found.add(node.name)
                case ast.alias():
                    found.add((node.asname or node.name).split(".")[0])
                case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar():
                    found.update([node.name] if node.name else [])
                case ast.MatchMapping():
                    found.update([node.rest] if node.rest else [])
                case ast.Global() | ast.Nonlocal():
                    self.declared.update(node.names)
                case ast.Yield() | ast.YieldFrom():
                    self.yields = True


def bound(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that statements bind."""
    return Names(nodes).bound


def changed(nodes: Iterable[ast.AST]) -> tuple[set[str], set[tuple[str, str]]]:
    """Names of objects that statements change by a method or subscript, and attributes of names that they set."""
    objects: set[str] = set()
    attributes: set[tuple[str, str]] = set()
    for node in within(nodes):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGERS:
            _add(node.func.value, objects, attributes)
        elif isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
            if isinstance(node, ast.Subscript):
                _add(node.value, objects, attributes)
            elif isinstance(node.value, ast.Name):
                attributes.add((node.value.id, node.attr))
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            objects.add(node.target.id)
    return objects, attributes


def changed_by_functions(functions: Iterable[ast.FunctionDef | ast.AsyncFunctionDef]) -> set[str]:
    """Names of the module that a function of it binds anew or changes: what they hold depends on who called what."""
    found: set[str] = set()
    for node in functions:
        names = Names(node.body)
        own = names.bound | {arg.arg for arg in parameters(node)}
        everywhere = names.declared
        objects, attributes = changed(node.body)
        found |= (objects | {name for name, _ in attributes}) - (own - everywhere)
        found |= everywhere
    return found


def parameters(node: Body) -> list[ast.arg]:
    """All parameters of a function, in no order that matters."""
    arguments = node.args
    found = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return found + [arg for arg in (arguments.vararg, arguments.kwarg) if arg is not None]


def _add(node: ast.expr, objects: set[str], attributes: set[tuple[str, str]]) -> None:
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name):
        objects.add(node.id)
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        attributes.add((node.value.id, node.attr))
