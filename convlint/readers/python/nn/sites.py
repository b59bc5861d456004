"""Find the places where a file constructs convolutions, by names alone, and give them names that survive edits."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from convlint.model.location import Location
from convlint.readers.python.evaluator.machine import Machine
from convlint.readers.python.evaluator.values import Class, Deferred, Module, Name, Value
from convlint.readers.python.nn.kinds import BUILD_CONVOLUTIONS, COMPOSITES, CONVOLUTIONS, FUNCTIONAL, canonical
from convlint.readers.python.source_file import SourceFile, dotted
from convlint.readers.python.walking import LEAVES, below

_CONSTRUCT = {*CONVOLUTIONS, *FUNCTIONAL, *COMPOSITES, *BUILD_CONVOLUTIONS}


class ConstructionSites:
    """Places of construction in the files of a project, by the values of names in the evaluated modules."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._meaning = cache(self._meaning_of)

    def of(self, path: str) -> list[Location]:
        """Return the calls of a file that construct convolutions."""
        file = self._machine.project.file(path)
        if file is None:
            return []
        kinds = [node for node in file.nodes[ast.ClassDef] if self._meaning(path, node.name) in CONVOLUTIONS]
        locations = []
        for call in file.nodes[ast.Call]:
            meaning = self._meaning(path, dotted(call.func))
            # What a kind of convolution computes by a function is that convolution.
            within = meaning in FUNCTIONAL and any(
                kind.lineno <= call.lineno <= (kind.end_lineno or kind.lineno) for kind in kinds
            )
            if meaning is not None and not within:
                locations.append(file.locate(call))
        return locations

    def _meaning_of(self, path: str, name: str) -> str | None:
        """Return the framework's convolution to which a dotted name refers in a file; for a subclass, its base."""
        machine, file, scope = self._machine, self._machine.project.file(path), self._machine.modules.scope(path)
        if file is None or scope is None or not name:
            return None
        head, *rest = name.split(".")
        value = machine.modules.variable(scope, head)
        if not isinstance(value, (Name, Class, Module)):
            value = next(self._imported(file, head), None)
        for part in rest:
            value = machine.attribute(value, part) if isinstance(value, (Name, Module)) else None
        full = machine.library.subclass_of(value) if isinstance(value, Class) else None
        full = canonical(value.name) if isinstance(value, Name) else full
        return full if full in _CONSTRUCT else None

    def _imported(self, file: SourceFile, name: str) -> Iterator[Value]:
        """Yield what imports in functions bind to a name that the module does not have."""
        modules = self._machine.modules
        for node in file.nodes[ast.ImportFrom]:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    value = modules.member_of(node.module or "", node.level, alias.name, file)
                    yield modules.member(value.path, value.name) if isinstance(value, Deferred) else value
        for node in file.nodes[ast.Import]:
            for alias in node.names:
                if (alias.asname or alias.name.split(".")[0]) == name:
                    yield modules.imported(alias.name, file, whole=alias.asname is not None)


_Nodes = list[tuple[ast.AST, str, str]]  # each with its scope, and its slot in it: an attribute or index


def names(file: SourceFile) -> dict[int, str]:
    """Return a name for every call of a file, by its identity: `Bottleneck.conv2`, `Net.features[3]`, `conv3x3`."""
    calls: list[tuple[int, int, ast.Call, str]] = []
    waiting: _Nodes = [(file.tree, "", "")]
    while waiting:
        node, scope, slot = waiting.pop()
        if node.__class__ not in LEAVES:
            if isinstance(node, ast.Call):
                calls.append((node.lineno, node.col_offset, node, _joined(scope, slot)))
            waiting += _within(node, scope, slot)
    calls.sort(key=lambda entry: entry[:2])
    counts: dict[str, int] = {}
    result: dict[int, str] = {}
    for *_, call, name in calls:
        counts[name] = count = counts.get(name, 0) + 1
        # Numbered in source order, so that an edit of other lines changes no name.
        result[id(call)] = name if count == 1 else f"{name}#{count}"
    return result


def _within(node: ast.AST, scope: str, slot: str) -> _Nodes:
    """Return the children of a node, each with its scope and its slot in it."""
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            # A layer belongs to its class, not to the constructor.
            inner = scope if name == "__init__" and scope and not isinstance(node, ast.ClassDef) else None
            return [(child, inner or _joined(scope, name), "") for child in below(node)]
        case ast.Assign(targets=[target, *_], value=value):
            return [(value, scope, _slot(target))]
        case (
            ast.AnnAssign(target=target, value=ast.expr() as value)
            | ast.AugAssign(target=target, value=value)
            | ast.NamedExpr(target=target, value=value)
        ):
            return [(value, scope, _slot(target))]
        case (
            ast.List(elts=[ast.Constant(value=str(key)), value]) | ast.Tuple(elts=[ast.Constant(value=str(key)), value])
        ):
            return [(value, scope, _keyed(slot, key))]
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return [(element, scope, f"{slot}[{index}]") for index, element in enumerate(elements)]
        case ast.Dict(keys=keys, values=values):
            literals = (key.value if isinstance(key, ast.Constant) else None for key in keys)
            return [(value, scope, _keyed(slot, key)) for key, value in zip(literals, values, strict=True)]
        case ast.Call():
            return _arguments(node, scope, slot)
    return [(child, scope, slot) for child in below(node)]


def _arguments(call: ast.Call, scope: str, slot: str) -> _Nodes:
    args = call.args
    match call:
        case ast.Call(func=ast.Attribute(attr="add_module" | "register_module" | "add_sublayer"), args=[key, value]):
            return [(value, scope, _keyed("", key.value if isinstance(key, ast.Constant) else None))]
        case (
            ast.Call(func=ast.Attribute(attr="append" | "extend" | "insert", value=target), args=[_, *_])
            | ast.Call(func=ast.Attribute(attr="add", value=target), args=[_])  # to a Sequential of Keras
        ):
            return [(argument, scope, _slot(target)) for argument in args]
        case ast.Call(func=ast.Attribute(attr="add", value=target)) if args and all(map(_is_constructed, args)):
            return [(argument, scope, f"{_slot(target)}[{index}]") for index, argument in enumerate(args)]  # of MXNet
        # The index in `Sequential(*[a, b])` is that within the list.
        case ast.Call(args=[ast.List() | ast.Tuple() | ast.Starred() | ast.Call() as only], keywords=[]):
            inner: _Nodes = [(only, scope, slot)]
        case _:
            inner = [(argument, scope, f"{slot}[{index}]") for index, argument in enumerate(args)]
    inner += [(keyword.value, scope, f"{slot}.{keyword.arg}" if slot and keyword.arg else keyword.arg or slot)
              for keyword in call.keywords]  # fmt: skip
    function = call.func
    while isinstance(function, ast.Attribute):
        function = function.value
    return [*inner, (function, scope, slot)]


def _is_constructed(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2][:1].isupper()


def _slot(target: ast.expr) -> str:
    return dotted(target).removeprefix("self.")


def _keyed(slot: str, key: object) -> str:
    if not isinstance(key, (str, int)):
        return slot
    return f"{slot}.{key}" if slot else str(key)


def _joined(scope: str, slot: str) -> str:
    if not slot:
        return scope
    return scope + slot if slot.startswith("[") else f"{scope}.{slot}" if scope else slot
