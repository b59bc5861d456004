"""Modules of the repository: run once, when a name of theirs is first read; and where names are looked up."""

from __future__ import annotations

import ast
import os
import re
from typing import TYPE_CHECKING

from convlint.readers.python.evaluator import names_of
from convlint.readers.python.evaluator.scope import Scope
from convlint.readers.python.evaluator.values import (
    Class,
    Const,
    Deferred,
    Function,
    Instance,
    Items,
    Module,
    Name,
    Table,
    Value,
    unknown,
)
from convlint.readers.python.project import FRAMEWORKS
from convlint.readers.python.source_file import SourceFile

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

_FIXED = (Function, Class, Module, Name, Deferred)
_CHANGES = rb"\s*(?:\[|\+=|\.(?:%s)\()|\.\w+\s*=[^=]" % b"|".join(name.encode() for name in names_of.CHANGERS)
LONGEST_CHAIN = 20  # of modules that import a name from one another


class Modules:
    """The modules that were run, by path."""

    def __init__(self, machine: Machine, builtin_names: frozenset[str]) -> None:
        self.machine, self.builtin_names = machine, builtin_names
        self.scopes: dict[str, Scope | None] = {}
        self._chain: list[tuple[str, str]] = []

    def scope(self, path: str) -> Scope | None:
        """The variables of the module, run if it was not; of one that runs now, those so far."""
        if path not in self.scopes:
            file = self.machine.project.file(path)
            if file is None:
                self.scopes[path] = None
                return None
            scope = self.scopes[path] = Scope(self.machine, file, None, None)
            scope.variables["__name__"] = Const(os.path.basename(path).removesuffix(".py"))
            whole = self.machine.run_body(scope)
            self._finish(scope, file, whole=whole)
        return self.scopes[path]

    def _finish(self, scope: Scope, file: SourceFile, *, whole: bool) -> None:
        """What functions may change is unknown to functions: what it holds depends on who was called before."""
        held = {name for name, value in scope.variables.items() if not isinstance(value, _FIXED)}
        functions = (*file.nodes[ast.FunctionDef], *file.nodes[ast.AsyncFunctionDef]) if _may_change(file, held) else ()
        changed = names_of.changed_by_functions(functions)
        for name, value in scope.variables.items():
            if name not in changed and whole:
                continue
            if isinstance(value, (Items, Table, Instance)):
                value.complete = False
                if isinstance(value, Table):
                    value.items, value.why = {}, "caller"
                elif isinstance(value, Items):
                    value.why = "caller"
            elif not isinstance(value, _FIXED) or name in changed:
                scope.variables[name] = unknown("caller" if whole else "limit")

    def lookup(self, scope: Scope, name: str) -> Value:
        """What the name means in that scope."""
        at: Scope = scope
        while at.parent is not None:
            found = at.variables.get(name)
            if found is not None:
                return self._settled(at, name, found)
            at = at.parent
        return self.variable(at, name) or self._builtin(name)

    def _settled(self, scope: Scope, name: str, value: Value) -> Value:
        if isinstance(value, Deferred):
            value = self._resolved(value)
            if not isinstance(value, Deferred):
                scope.variables[name] = value
        return value

    def _resolved(self, value: Deferred) -> Value:
        key = value.path, value.name
        if key in self._chain or len(self._chain) >= LONGEST_CHAIN:
            return self._below(value.path, value.name)  # all that a package has before its own body ends
        self._chain.append(key)
        try:
            return self.member(value.path, value.name)
        finally:
            self._chain.pop()

    def _builtin(self, name: str) -> Value:
        if name in self.builtin_names:
            return Name(f"builtins.{name}")
        return unknown("call")

    def variable(self, scope: Scope, name: str) -> Value | None:
        """The variable of a module, those that come by `from m import *` too."""
        found = scope.variables.get(name)
        if found is not None:
            return self._settled(scope, name, found)
        for path in reversed(scope.stars):
            key = path, name
            if key in self._chain or len(self._chain) >= LONGEST_CHAIN or name.startswith("__"):
                continue
            self._chain.append(key)
            try:
                other = self.scope(path)
                found = self.variable(other, name) if other is not None else None
            finally:
                self._chain.pop()
            if found is not None:
                return found
        return None

    def member(self, path: str, name: str) -> Value:
        """`module.name`: a variable of the module, or a module below it."""
        scope = self.scope(path)
        if scope is None:
            return unknown("call")
        found = self.variable(scope, name)
        if found is not None:
            return found
        return self._below(path, name)

    def _below(self, path: str, name: str) -> Value:
        """The module of that name in a package."""
        if os.path.basename(path) == "__init__.py":
            below = self.machine.project.resolve(name, path, 1)
            if below is not None:
                return Module(below)
        return unknown("call")

    def imported(self, name: str, file: SourceFile, *, whole: bool) -> Value:
        """What `import a.b` binds: `a`, or with a name of its own (`whole`) all of `a.b`."""
        top = name if whole else name.split(".")[0]
        path = self.machine.project.resolve(top, file.path)
        return Module(path) if path is not None else Name(top)

    def member_of(self, module: str, level: int, name: str, file: SourceFile) -> Value:
        """What `from module import name` binds."""
        path = self.machine.project.resolve(module, file.path, level)
        if path is None:
            below = self.machine.project.resolve(f"{module}.{name}" if module else name, file.path, level)
            if below is not None:
                return Module(below)
            return Name(f"{module}.{name}") if not level else unknown("call")
        if path == file.path:  # a package that imports a module below it
            below = self.machine.project.resolve(f"{module}.{name}" if module else name, file.path, level)
            return Module(below) if below is not None else unknown("call")
        return Deferred(path, name)

    def import_all(self, module: str, level: int, scope: Scope) -> None:
        """`from module import *`."""
        path = self.machine.project.resolve(module, scope.file.path, level)
        if path is not None and path != scope.file.path and path not in scope.module.stars:
            scope.module.stars.append(path)

    def succeeds(self, statements: list[ast.stmt], file: SourceFile) -> bool:
        """Whether these imports find what they name: modules of the repository, or a framework that is installed."""
        for node in statements:
            names: list[str] = []
            level = 0
            if isinstance(node, ast.Import):
                names = [each.name for each in node.names]
            elif isinstance(node, ast.ImportFrom):
                names, level = [node.module or ""], node.level
            for name in names:
                if not level and name.split(".")[0] in FRAMEWORKS:
                    continue
                if self.machine.project.resolve(name, file.path, level) is None:
                    return False
        return True


def _may_change(file: SourceFile, names: set[str]) -> bool:
    """Whether a look at the text finds a function that may change one of these: a look at the tree takes its time."""
    if b"global " in file.content:
        return True
    if not names:
        return False
    words = b"|".join(re.escape(name.encode()) for name in names)
    return re.search(rb"\b(?:%s)(?:%s)" % (words, _CHANGES), file.content) is not None
