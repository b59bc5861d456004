"""One file of a program: its functions, classes and constants by name, and what a dotted name means in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from convlint.readers.python.walking import every

if TYPE_CHECKING:
    from convlint.readers.python.programs.closure import Imports
    from convlint.readers.python.source_file import SourceFile

Function = ast.FunctionDef | ast.AsyncFunctionDef
_MOST_HOPS = 12  # from one re-export to the next
_WITH_BLOCKS = frozenset(
    (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
)
_UNBOUND = {"torch": "torch", "cudnn": "torch.backends.cudnn", "os": "os"}  # as a star import brings them


class Named(Struct, frozen=True):
    """What a name leads to: a function or class of the repository (`node`, in `unit`), a file of it, or a full name."""

    full: str = ""
    unit: Unit | None = None
    node: Function | ast.ClassDef | None = None
    path: str = ""


class Unit:
    """A parsed file among those of its project."""

    def __init__(self, file: SourceFile, imports: Imports, units: Units) -> None:
        self.file, self.path, self._imports, self._units = file, file.path, imports, units
        self._found: dict[re.Pattern[bytes], bool] = {}
        self.functions: dict[str, Function] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self.assigned: dict[str, list[ast.expr | None]] = {}  # module-level names -> what they are bound to
        for node in statements(file.tree.body):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self.functions[node.name] = node
            elif isinstance(node, ast.ClassDef):
                self.classes[node.name] = node
            else:
                for name, value in bindings(node):
                    self.assigned.setdefault(name, []).append(value)
        self.bound = {each.name: each for each in imports.of(self.path) if each.name != "*"}
        self.stars = [each for each in imports.of(self.path) if each.name == "*"]

    @cached_property
    def at(self) -> dict[int, Function | ast.ClassDef]:
        """Its functions and classes, and the methods of those, by the lines of their `def`; the first of a line."""
        found: dict[int, Function | ast.ClassDef] = {}
        for each in statements(self.file.tree.body):
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.setdefault(each.lineno, each)
            for inner in statements(each.body) if isinstance(each, ast.ClassDef) else ():
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                    found.setdefault(inner.lineno, inner)
        return found

    def has(self, pattern: re.Pattern[bytes]) -> bool:
        """Whether a pattern is found in the file; remembered."""
        if pattern not in self._found:
            self._found[pattern] = pattern.search(self.file.content) is not None
        return self._found[pattern]

    def full_name(self, node: ast.expr) -> str:
        """What a dotted name means outside of the repository: `torch.backends.cudnn.benchmark`; else ''."""
        return self.named(node).full

    def named(self, node: ast.expr, local: frozenset[str] = frozenset()) -> Named:
        """What a dotted name leads to; `local` are names that mean something else where it stands."""
        parts = _parts(node)
        return self.lookup(parts) if parts and parts[0] not in local else Named()

    def lookup(self, parts: list[str], hops: int = 0) -> Named:
        """The same for a name in its parts."""
        first, *rest = parts
        if hops > _MOST_HOPS:
            return Named()
        if not rest and first in self.functions:
            return Named(unit=self, node=self.functions[first])
        if first in self.classes:
            return self._member(self.classes[first], rest)
        if first in self.functions:
            return Named()
        bound = self.bound.get(first)
        if bound is None:
            return self._unbound(parts, hops)
        if not bound.attr:
            plain = bound.name == bound.module.split(".")[0] and "." in bound.module
            return self._inside([*([first] if plain else bound.module.split(".")), *rest], 0, hops)
        if bound.level and not bound.module:
            return self._inside([bound.attr, *rest], bound.level, hops)
        return self._inside([*bound.module.split("."), bound.attr, *rest], bound.level, hops)

    def _unbound(self, parts: list[str], hops: int) -> Named:
        first, *rest = parts
        values = self.assigned.get(first, [])
        same = _parts(values[0]) if len(values) == 1 else []
        if same and first not in same:  # another name for it
            return self.lookup([*same, *rest], hops + 1)
        if values:
            return Named()
        for star in self.stars:
            path = self._imports.resolve(star.module, self.path, star.level)
            unit = self._units.get(path) if path else None
            found = unit.lookup(parts, hops + 1) if unit is not None else Named()
            if found != Named():
                return found
        return Named(full=".".join([_UNBOUND[first], *rest])) if first in _UNBOUND else Named()

    def _inside(self, parts: list[str], level: int, hops: int) -> Named:
        """`parts` as seen from an import: as much of it as is a module, then names in that."""
        for count in range(len(parts), 0, -1):
            path = self._imports.resolve(".".join(parts[:count]), self.path, level)
            if path is None or path == self.path:
                continue
            if count == len(parts):
                return Named(path=path)
            unit = self._units.get(path)
            return unit.lookup(parts[count:], hops + 1) if unit is not None else Named()
        if level:
            path = self._imports.resolve("", self.path, level)
            unit = self._units.get(path) if path and path != self.path else None
            return unit.lookup(parts, hops + 1) if unit is not None else Named()
        return Named(full=".".join(parts))

    def _member(self, node: ast.ClassDef, rest: list[str]) -> Named:
        if not rest:
            return Named(unit=self, node=node)
        found = self.method(node, rest[0]) if len(rest) == 1 else None
        return Named(unit=found[0], node=found[1]) if found else Named()

    def method(self, node: ast.ClassDef, name: str, hops: int = 0) -> tuple[Unit, Function] | None:
        """A method of a class, or of what it is derived from, and the file that it stands in."""
        for each in node.body:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name == name:
                return self, each
        return self.inherited(node, name, hops)

    def inherited(self, node: ast.ClassDef, name: str, hops: int = 0) -> tuple[Unit, Function] | None:
        """A method of what a class is derived from."""
        for base in node.bases if hops < _MOST_HOPS else ():
            named = self.named(base)
            if named.unit is not None and isinstance(named.node, ast.ClassDef) and named.node is not node:
                found = named.unit.method(named.node, name, hops + 1)
                if found is not None:
                    return found
        return None


class Units:
    """The files of a project as units, each made when it is first needed."""

    def __init__(self, imports: Imports) -> None:
        self.imports = imports
        self._made: dict[str, Unit | None] = {}

    def get(self, path: str) -> Unit | None:
        """The unit at `path`; None where it cannot be parsed."""
        if path not in self._made:
            file = self.imports.project.file(path)
            self._made[path] = None if file is None else Unit(file, self.imports, self)
        return self._made[path]


def _parts(node: ast.expr | None) -> list[str]:
    """The parts of a dotted name; none of anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) else []


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body and of the blocks in it, but for functions and classes, which are one each."""
    for node in body:
        yield node
        kind = node.__class__
        if kind in _WITH_BLOCKS:
            for block in ("body", "orelse", "finalbody"):
                inner = getattr(node, block, None)
                if inner:
                    yield from statements(inner)
            for handler in getattr(node, "handlers", ()):
                yield from statements(handler.body)
            for case in getattr(node, "cases", ()):
                yield from statements(case.body)


def bindings(node: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
    """Names that a statement binds, each with its value; None where that is part of something."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value
            else:
                yield from ((each.id, None) for each in every(target) if _stored(each))  # type: ignore[attr-defined]
    elif isinstance(node, ast.AnnAssign | ast.AugAssign) and isinstance(node.target, ast.Name):
        yield node.target.id, node.value if isinstance(node, ast.AnnAssign) else None
    elif isinstance(node, ast.For | ast.AsyncFor):
        yield from ((each.id, None) for each in every(node.target) if _stored(each))  # type: ignore[attr-defined]
    elif isinstance(node, ast.With | ast.AsyncWith):
        for item in node.items:
            if isinstance(item.optional_vars, ast.Name):
                yield item.optional_vars.id, item.context_expr


def _stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
