"""Names of layers that stay when lines move: where a layer is constructed, and what it is assigned to there."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from convlint.readers.python.nn.sites import dotted
from convlint.readers.python.source_file import SourceFile
from convlint.readers.python.walking import LEAVES, below

_Nodes = list[tuple[ast.AST, str, str]]


def names(file: SourceFile) -> dict[int, str]:
    """For every call of a file, by its identity: `Bottleneck.conv2`, `Net.features[3]`, `conv3x3`."""
    found: list[tuple[int, int, ast.Call, str]] = []
    waiting: _Nodes = [(file.tree, "", "")]
    while waiting:
        node, scope, slot = waiting.pop()
        kind = node.__class__
        if kind in LEAVES:
            continue
        if isinstance(node, ast.Call):
            found.append((node.lineno, node.col_offset, node, _joined(scope, slot)))
        within = _BELOW.get(kind)
        waiting += within(node, scope, slot) if within is not None else [(each, scope, slot) for each in below(node)]
    found.sort(key=lambda each: each[:2])
    counts: dict[str, int] = {}
    result: dict[int, str] = {}
    for *_, call, name in found:
        counts[name] = count = counts.get(name, 0) + 1
        result[id(call)] = name if count == 1 else f"{name}#{count}"
    return result


def _in_class(node: ast.ClassDef, scope: str, _: str) -> _Nodes:
    inner = _joined(scope, node.name)
    return [(each, inner, "") for each in below(node)]


def _in_function(node: ast.FunctionDef | ast.AsyncFunctionDef, scope: str, _: str) -> _Nodes:
    inner = scope if node.name == "__init__" and scope else _joined(scope, node.name)
    return [(each, inner, "") for each in below(node)]


def _assigned(node: ast.Assign, scope: str, _: str) -> _Nodes:
    return [(node.value, scope, _slot(node.targets[0]))]


def _bound(node: ast.AnnAssign | ast.AugAssign | ast.NamedExpr, scope: str, slot: str) -> _Nodes:
    if node.value is None:
        return [(each, scope, slot) for each in below(node)]
    return [(node.value, scope, _slot(node.target))]


def _slot(target: ast.expr) -> str:
    text = dotted(target)
    return text.removeprefix("self.") if text else ""


def _arguments(call: ast.Call, scope: str, slot: str) -> _Nodes:
    args = call.args
    if isinstance(call.func, ast.Attribute):
        method = call.func.attr
        if method in ("add_module", "register_module", "add_sublayer") and len(args) == 2:
            return [(args[1], scope, _keyed("", args[0]))]
        if method in ("append", "extend", "insert") and args:
            return [(each, scope, _slot(call.func.value)) for each in args]
    if len(args) == 1 and not call.keywords and isinstance(args[0], (ast.List, ast.Tuple, ast.Starred, ast.Call)):
        inner: _Nodes = [(args[0], scope, slot)]
    else:
        inner = [(each, scope, f"{slot}[{index}]") for index, each in enumerate(args) if each.__class__ not in LEAVES]
    inner += [(each.value, scope, f"{slot}.{each.arg}" if slot and each.arg else each.arg or slot)
              for each in call.keywords if each.value.__class__ not in LEAVES]  # fmt: skip
    function = call.func
    while isinstance(function, ast.Attribute):
        function = function.value
    return [*inner, (function, scope, slot)]


def _items(node: ast.List | ast.Tuple, scope: str, slot: str) -> _Nodes:
    first = node.elts[0] if node.elts else None
    if len(node.elts) == 2 and isinstance(first, ast.Constant) and isinstance(first.value, str):
        return [(node.elts[1], scope, _keyed(slot, first))]
    return [(each, scope, f"{slot}[{index}]") for index, each in enumerate(node.elts) if each.__class__ not in LEAVES]


def _keyed(slot: str, key: ast.expr | None) -> str:
    if isinstance(key, ast.Constant) and isinstance(key.value, (str, int)):
        return f"{slot}.{key.value}" if slot else str(key.value)
    return slot


def _joined(scope: str, slot: str) -> str:
    if not slot:
        return scope
    return scope + slot if slot.startswith("[") else f"{scope}.{slot}" if scope else slot


def _values(node: ast.Dict, scope: str, slot: str) -> _Nodes:
    return [(value, scope, _keyed(slot, key)) for key, value in zip(node.keys, node.values, strict=True)]


# What lies in nodes of a kind, with where it belongs; in all others, where they do themselves.
_BELOW: dict[type, Callable[[Any, str, str], _Nodes]] = {
    ast.ClassDef: _in_class, ast.FunctionDef: _in_function, ast.AsyncFunctionDef: _in_function,
    ast.Assign: _assigned, ast.AnnAssign: _bound, ast.AugAssign: _bound, ast.NamedExpr: _bound,
    ast.Call: _arguments, ast.List: _items, ast.Tuple: _items, ast.Dict: _values,
}  # fmt: skip
