"""The files of a program: their functions and constants by name, and the resolution of names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache, cached_property
from typing import TYPE_CHECKING, TypeGuard

from msgspec import Struct

from convlint.model.grouping import grouped
from convlint.readers.python.evaluator import names_of
from convlint.readers.python.evaluator.values import Class, Function, Module, Name, Value
from convlint.readers.python.source_file import dotted
from convlint.readers.python.walking import every

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine
    from convlint.readers.python.imports import Import, ProjectImports
    from convlint.readers.python.programs.settings import LiteralValue
    from convlint.readers.python.source_file import SourceFile

Definition = ast.FunctionDef | ast.AsyncFunctionDef
Bound = dict[str, list[ast.expr | None]]  # by name: what it is bound to, None for what is unpacked
_WITH_BLOCKS = frozenset(
    (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
)
_UNBOUND = {"torch": "torch", "cudnn": "torch.backends.cudnn", "os": "os"}  # usual names behind a star import


class ResolvedName(Struct, frozen=True):
    """The meaning of a name: a definition in the repository (`node` in `unit`), a file, or a full name outside."""

    full: str = ""
    unit: SourceUnit | None = None
    node: Definition | ast.ClassDef | None = None
    path: str = ""


class SourceUnit:
    """A parsed file among those of its project."""

    def __init__(self, file: SourceFile, units: Units) -> None:
        self.file, self.path, self._units = file, file.path, units
        self.imports = units.imports.of(self.path)
        self.assigned = bound_in(file.tree.body)
        self._defined: dict[str, list[Definition | ast.ClassDef]] = {}
        self.functions: dict[str, Definition] = {}
        for node in statements(file.tree.body):
            if isinstance(node, Definition | ast.ClassDef):
                self._defined.setdefault(node.name, []).append(node)
            if isinstance(node, Definition):
                self.functions[node.name] = node
        self._meanings: dict[str, ResolvedName] = {}

    @cached_property
    def at(self) -> dict[int, Definition | ast.ClassDef]:
        """Its functions, classes and methods by the line of their `def` or `class`."""
        definitions: dict[int, Definition | ast.ClassDef] = {}
        for node in statements(self.file.tree.body):
            if isinstance(node, Definition | ast.ClassDef):
                definitions.setdefault(node.lineno, node)
            for inner in statements(node.body) if isinstance(node, ast.ClassDef) else ():
                if isinstance(inner, Definition):
                    definitions.setdefault(inner.lineno, inner)
        return definitions

    def full_name(self, node: ast.expr) -> str:
        """Return the full name of something outside the repository: `torch.backends.cudnn.benchmark`; else ''."""
        return self.resolve(node).full

    def resolve(self, node: ast.expr, local: frozenset[str] = frozenset()) -> ResolvedName:
        """Resolve a dotted name; `local` names have another meaning in its function."""
        first, *rest = dotted(node).split(".")
        if not first or first in local:
            return ResolvedName()
        meaning = self.meaning(first)
        for attr in rest:
            meaning = self._units.member(meaning, attr)
            below = self._units.imports.resolve(meaning.full, self.path) if meaning.full else None
            meaning = ResolvedName(path=below) if below is not None else meaning  # in a folder that is no package
        return meaning

    def meaning(self, name: str) -> ResolvedName:
        """Resolve a name of the module, or one bound by an import in one of its functions."""
        if name not in self._meanings:
            self._meanings[name] = ResolvedName()  # for a name that resolves to itself
            self._meanings[name] = self._meaning(name)
        return self._meanings[name]

    def _meaning(self, name: str) -> ResolvedName:
        """Resolve a name; a module is evaluated only if the name has several definitions or is assigned."""
        imports = [binding for binding in self.imports if binding.name == name]
        nodes = self._defined.get(name, [])
        if len(imports) + len(nodes) == 1 and name not in self.assigned:
            return ResolvedName(unit=self, node=nodes[0]) if nodes else self._units.imported(imports[0], self.path)
        star = any(binding.name == "*" for binding in self.imports)
        meaning = self._units.variable(self.path, name) if nodes or star or name in self.assigned else ResolvedName()
        if meaning == ResolvedName() and imports:
            return self._units.imported(imports[0], self.path)
        return ResolvedName(full=_UNBOUND[name]) if meaning == ResolvedName() and star and name in _UNBOUND else meaning


class Units:
    """The units of a project, each created when first needed; `machine` evaluates modules if that is necessary."""

    def __init__(self, imports: ProjectImports, machine: Machine) -> None:
        self.imports, self.machine, self.get = imports, machine, cache(self._get)

    def _get(self, path: str) -> SourceUnit | None:
        """Return the unit at `path`; None if it cannot be parsed."""
        file = self.imports.project.file(path)
        return None if file is None else SourceUnit(file, self)

    def variable(self, path: str, name: str) -> ResolvedName:
        """Resolve a variable by evaluating its module."""
        return self._of(self._value(path, name))

    def _value(self, path: str, name: str) -> Value | None:
        scope = self.machine.run_module(path)
        return self.machine.modules.variable(scope, name) if scope is not None else None

    def imported(self, bound: Import, path: str) -> ResolvedName:
        """Resolve the name that an import in a file binds."""
        if not bound.attr:
            whole = bound.name != bound.module.split(".")[0] or "." not in bound.module
            return self._module(bound.module if whole else bound.name, path, 0)
        home = self._module(bound.module, path, bound.level)
        if home.path in ("", path):  # a folder that is no package, or a package that imports a module below it
            below = self.imports.resolve(f"{bound.module}.{bound.attr}".lstrip("."), path, bound.level)
            if below is not None:
                return ResolvedName(path=below)
        return self.member(home, bound.attr) if home.path != path else ResolvedName()

    def _module(self, name: str, path: str, level: int) -> ResolvedName:
        target = self.imports.resolve(name, path, level)
        return ResolvedName(path=target) if target is not None else ResolvedName() if level else ResolvedName(full=name)

    def member(self, of: ResolvedName, name: str) -> ResolvedName:
        """Resolve `of.name`: a name of a file, or an attribute of a class, inherited ones included."""
        if of.full:
            return ResolvedName(full=f"{of.full}.{name}")
        unit = self.get(of.path) if of.path else None
        if unit is not None:
            meaning = unit.meaning(name)
            below = self.imports.resolve(name, of.path, 1) if meaning == ResolvedName() else None
            return ResolvedName(path=below) if below is not None else meaning
        if of.unit is None or not isinstance(of.node, ast.ClassDef):
            return ResolvedName()
        # Inherited attributes need the order of bases, which the evaluator has.
        value = self._value(of.unit.path, of.node.name)
        return self._of(self.machine.attribute(value, name)) if isinstance(value, Class) else ResolvedName()

    def _of(self, value: Value | None) -> ResolvedName:
        if isinstance(value, Name):
            return ResolvedName(full=value.name)
        if isinstance(value, Module):
            return ResolvedName(path=value.path)
        if isinstance(value, Function | Class) and not isinstance(value.node, ast.Lambda):
            return ResolvedName(unit=self.get(value.file.path), node=value.node)
        return ResolvedName()


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a body and of its blocks; those within functions and classes are left out."""
    for node in body:
        yield node
        if node.__class__ in _WITH_BLOCKS:
            for block in ("body", "orelse", "finalbody"):
                inner = getattr(node, block, None)
                if inner:
                    yield from statements(inner)
            for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                yield from statements(part.body)


def bound_in(body: list[ast.stmt]) -> Bound:
    """Return the values of the names that the statements of a body and of its blocks bind."""
    return grouped([binding for node in statements(body) for binding in _bindings(node)])


def _bindings(node: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the names that a statement binds, each with its value; None for one that is unpacked."""
    unpacked: list[ast.expr] = []
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((target.id, value) for target in targets if isinstance(target, ast.Name))
            unpacked = [target for target in targets if not isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name), value=of_name):
            yield name, of_name
        case ast.AugAssign(target=target) | ast.For(target=target) | ast.AsyncFor(target=target):
            unpacked = [target]
        case ast.With(items=items) | ast.AsyncWith(items=items):
            for item in items:
                if isinstance(item.optional_vars, ast.Name):
                    yield item.optional_vars.id, item.context_expr
    yield from ((inner.id, None) for target in unpacked for inner in every(target) if stored(inner))


def stored(node: ast.AST) -> TypeGuard[ast.Name]:
    """Whether the node is a name that is bound."""
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def literal(node: ast.expr | None) -> tuple[LiteralValue] | None:
    """Return the value of a literal in a tuple, as that may be None; None for any other expression."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None as value):
            return (value,)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return (-value,)
    return None


def local_names(function: Definition, unit: SourceUnit) -> frozenset[str]:
    """Return the names that a function binds, without those it imports."""
    own = names_of.BodyNames(function.body).bound | {parameter.arg for parameter in names_of.parameters(function)}
    return frozenset(own - {binding.name for binding in unit.imports})
