"""Modules of the repository, each run once, when one of its names is first read; and the lookup of names."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from convlint.readers.python.evaluator import names_of
from convlint.readers.python.evaluator.limits import DEEPEST, STEPS_OF_MODULE, Exhausted
from convlint.readers.python.evaluator.paths import Scope
from convlint.readers.python.evaluator.statements import BodyCompiler
from convlint.readers.python.evaluator.values import (
    Class,
    Const,
    Deferred,
    Function,
    Instance,
    List,
    Module,
    Name,
    Table,
    Value,
    unknown,
)
from convlint.readers.python.project import FRAMEWORKS
from convlint.readers.python.source_file import SourceFile, is_guard

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine
    from convlint.readers.python.evaluator.memory import Recorded

_FIXED = (Function, Class, Module, Name, Deferred)
_CHANGES = rb"\s*(?:\[|\+=|\.(?:%s)\()|\.\w+\s*=[^=]" % b"|".join(name.encode() for name in names_of.CHANGERS)
_CHANGED = re.compile(rb"\b(\w+)(?=%s)" % _CHANGES)
# `Class.name = value`, `Class.name[key] = value`, `Class.name.update(...)`
_SETS = re.compile(
    rb"([A-Z](?<!\w[A-Z])\w*)\.([A-Za-z_]\w*)\s*(?:\[[^\]\n]*\]\s*)?(?:[-+*/|]?=(?!=)|\.(?:%s)\()"
    % b"|".join(sorted(name.encode() for name in names_of.CHANGERS))
)
# `module.NAME = value` at the top level
_SETS_CONSTANT = re.compile(rb"^([a-z_]\w*)\.([A-Z][A-Z0-9_]*)\s*[-+*/|]?=(?!=)", re.MULTILINE)
# Packages that bind no name of a framework's layer to something else by a star import
_NO_LAYERS = (
    FRAMEWORKS | sys.stdlib_module_names | {"numpy", "scipy", "matplotlib", "pylab", "sklearn", "pandas", "PIL"}
)
_FEW = 50  # names, for which the text is searched one by one
LONGEST_CHAIN = 20  # of modules that import a name from one another


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Modules:
    """The modules run so far, by path."""

    def __init__(self, machine: Machine, builtin_names: frozenset[str]) -> None:
        self.machine = machine
        self._builtins = {name: Name(f"builtins.{name}") for name in builtin_names}
        self.scopes: dict[str, Scope | None] = {}
        self.recorded: dict[str, list[Recorded]] = {}  # records of the library from their bodies
        self.unfinished: set[str] = set()  # modules whose bodies were not run to the end
        self._running: list[str] = [""]  # modules whose bodies are running
        self._changing: list[List | Table] = []  # lists and dicts that functions of their modules change
        self._chain: list[tuple[str, str]] = []
        self._missing: set[tuple[str, str]] = set()  # names that the search of the chain did not find in modules
        self._set_by: dict[str, dict[str, set[str]]] | None = None  # paths by names of classes and their attributes

    def scope(self, path: str) -> Scope | None:
        """Return the variables of a module, which is run if needed; of a running one, those bound so far."""
        if path not in self.scopes:
            file = self.machine.project.file(path)
            self._running.append(path)
            self._missing.clear()
            self.scopes[path] = self._run(path, file) if file is not None else None
            self._running.pop()
            self._missing.clear()
        return self.scopes[path]

    def _run(self, path: str, file: SourceFile) -> Scope:
        """Run a module's body with the state of the machine set aside, as imports take place anywhere."""
        machine = self.machine
        heap = machine.heap
        heap_state = (heap.layer, heap.in_module, heap.watched, heap.oldest, heap.base.kept, heap.changed,
                      heap.class_changed)  # fmt: skip
        state = (machine.conditions, machine.stack, machine.steps, machine.floor, machine.recorded, machine.root,
                 machine.again, machine.doubts, machine.modes, machine.decided, machine.recorded_at,
                 machine.running)  # fmt: skip
        heap.layer, heap.in_module, heap.watched, heap.base.kept = heap.base, True, None, 0
        heap.changed, heap.class_changed = set(), False
        machine.conditions, machine.stack = [], []
        machine.steps = start = min(STEPS_OF_MODULE, machine.left_of_run)
        # A script that constructs nothing, as of most graph networks, would train to its end.
        machine.floor, machine.recorded_at = max(start - 2 * machine.least_steps, 0), start + machine.remembered
        machine.recorded, machine.root, machine.again, machine.doubts, machine.running = [], "", 0, [], None
        machine.modes, machine.decided = [], []
        height, machine.height = machine.height, machine.height + 12
        outer = machine.library.begin_module()
        # Stored before the body runs: modules that import each other see what is bound so far.
        scope = self.scopes[path] = Scope(machine, file, None, None)
        scope.first.items["__name__"] = Const(os.path.basename(path).removesuffix(".py"))
        whole = machine.height <= DEEPEST
        try:
            compiler = BodyCompiler(file)
            run = compiler.block(file.tree.body)
            machine.height += 2 * compiler.deepest
            if machine.height <= DEEPEST:
                run(scope)
            else:
                whole = False
        except (Exhausted, RecursionError):
            whole = False
        heap.abandon(heap.base)
        self._finish(scope, file, whole=whole)
        if not whole and machine.height <= DEEPEST:
            self._define_rest(scope, file)
        machine.library.end_module(path, outer)
        self.recorded[path] = machine.recorded
        if not whole:
            self.unfinished.add(path)
        machine.left_of_run -= start - max(machine.steps, 0)
        machine.height = height
        (heap.layer, heap.in_module, heap.watched, heap.oldest, heap.base.kept, heap.changed,
         heap.class_changed) = heap_state  # fmt: skip
        # The module may have set attributes of classes of other modules.
        machine.calls.forget_attributes()
        (machine.conditions, machine.stack, machine.steps, machine.floor, machine.recorded, machine.root,
         machine.again, machine.doubts, machine.modes, machine.decided, machine.recorded_at,
         machine.running) = state  # fmt: skip
        return scope

    def _finish(self, scope: Scope, file: SourceFile, *, whole: bool) -> None:
        """Make unknown what functions of the module change: its value depends on the calls before."""
        data = {name for name, value in scope.variables.items() if not isinstance(value, _FIXED)}
        functions = (*file.nodes[ast.FunctionDef], *file.nodes[ast.AsyncFunctionDef]) if _may_change(file, data) else ()
        imported = {name for name, value in scope.variables.items() if isinstance(value, (Name, Module))}
        names = names_of.OuterNames(functions)
        # `layers.add(...)` changes no imported module, although it looks like a change of a set.
        changed = names.rebound | (names.objects - imported) | {name for name, _ in names.attributes}
        if data:
            named = os.path.basename(file.path).removesuffix(".py")
            changed |= {name for name, paths in self._setters().get(named, {}).items() if paths - {file.path}}
        for name, value in list(scope.variables.items()):
            if name not in changed and "*" not in changed and whole:
                continue
            if isinstance(value, Name) and names.rebound.isdisjoint((name, "*")):
                continue  # an attribute or item of it is set: it still is what has that name
            if isinstance(value, (List, Table)):
                self._changing.append(value)
            elif isinstance(value, Instance):
                value.heap.edit(value).complete = False
            elif not isinstance(value, _FIXED) or name in changed:
                scope.variables[name] = unknown("caller" if whole else "limit")
        # A script that called such a function says nothing of them to other files, which may be read without it.
        for collection in self._changing:
            if collection.complete or collection.why != "caller":
                collection.heap.edit(collection.owner if isinstance(collection, Table) else collection).complete = True
                collection.heap.soften(collection, "caller")
        self._open_classes(scope, file)

    def _define_rest(self, scope: Scope, file: SourceFile) -> None:
        """Run the definitions and imports behind the statement at which a module's body ended."""
        machine = self.machine
        machine.conditions, machine.stack, machine.doubts, machine.modes, machine.decided = [], [], [], [], []
        machine.steps, machine.floor = machine.least_steps, 0
        block = BodyCompiler(file).block
        with suppress(Exhausted, RecursionError):
            for node in file.tree.body:
                name = node.name if isinstance(node, _DEFINITIONS) else ""
                if isinstance(node, (ast.Import, ast.ImportFrom)) or (name and name not in scope.variables):
                    block([node])(scope)
        machine.heap.abandon(machine.heap.base)
        self._open_classes(scope, file)

    def _open_classes(self, scope: Scope, file: SourceFile) -> None:
        """Make class attributes unknown that functions, scripts or other files set."""
        for name, value in scope.variables.items():
            if not isinstance(value, Class) or value.file is not file:
                continue
            own: set[tuple[str, str]] | None = None
            for attr, paths in self._setters().get(name, {}).items():
                attribute = value.namespace.get(attr)
                if attribute is None or isinstance(attribute, (*_FIXED, Instance)):
                    continue
                if file.path in paths and own is None:
                    own = _set_later(file)
                if not self._sets_from_elsewhere(name, paths, file.path) and (name, attr) not in (own or ()):
                    continue
                if isinstance(attribute, (List, Table)):
                    attribute.heap.soften(attribute, "caller")
                else:
                    value.namespace[attr] = unknown("caller")

    def _setters(self) -> dict[str, dict[str, set[str]]]:
        """Return the files that set attributes of classes, or constants of modules, by the names of both."""
        if self._set_by is None:
            self._set_by = {}
            project = self.machine.project
            for path in project.where(lambda content: _SETS.search(content) or _SETS_CONSTANT.search(content)):
                content = project.content(path) or b""
                for name, attr in {*_SETS.findall(content), *_SETS_CONSTANT.findall(content)}:
                    self._set_by.setdefault(name.decode(), {}).setdefault(attr.decode(), set()).add(path)
        return self._set_by

    def _sets_from_elsewhere(self, name: str, paths: set[str], own: str) -> bool:
        """Whether another file sets the attribute, and defines no class of that name itself."""
        defines = re.compile(rb"^\s*class\s+%s\b" % name.encode(), re.MULTILINE)
        return any(path != own and not defines.search(self.machine.project.content(path) or b"") for path in paths)

    def lookup(self, scope: Scope, name: str) -> Value:
        """Return the value of a name in a scope."""
        at: Scope = scope
        while at.parent is not None:
            cell = at.cell
            value = cell.items.get(name)
            if value is not None:
                settled = self._settled(at, name, value)
                if at.of_class and name in cell.may:
                    return at.heap.joined(settled, self.lookup(at.parent, name))
                return settled
            at = at.parent
        return self.variable(at, name) or self._builtins.get(name) or unknown("call")

    def _settled(self, scope: Scope, name: str, value: Value) -> Value:
        if not isinstance(value, Deferred):
            return value
        # In a circle of imports, a package has only the modules below it before its own body ends.
        resolved = self._followed(self.member, value.path, value.name) or self._below(value.path, value.name)
        if not isinstance(resolved, Deferred):
            scope.variables[name] = resolved
        return resolved

    def _followed(self, find: Callable[[str, str], Value | None], path: str, name: str) -> Value | None:
        """Return what `find` finds; None if it is being looked for already, or too far away."""
        key = path, name
        if key in self._chain or len(self._chain) >= LONGEST_CHAIN:
            return None
        self._chain.append(key)
        try:
            return find(path, name)
        finally:
            self._chain.pop()
            if not self._chain:
                self._missing.clear()

    def variable(self, scope: Scope, name: str) -> Value | None:
        """Return a variable of a module, including those bound by `from m import *`; None if there is none."""
        cell = scope.cell
        value = cell.items.get(name)
        if value is not None:
            settled = self._settled(scope, name, value)
            other = self._builtins.get(name) if name in cell.may else None
            return scope.heap.joined(settled, other) if other is not None else settled
        if name.startswith("__"):
            return None
        # A later star import overrides an earlier one; that of an unknown package may have a layer of the same name.
        doubtful = False
        for module in reversed(scope.stars):
            if isinstance(module, Module):
                # Packages that import all of each other lead to each module on very many ways.
                key = module.path, name
                value = self._followed(self._exported, *key) if key not in self._missing else None
                if value is not None:
                    return value
                if self._chain:
                    self._missing.add(key)
            elif self.machine.library.has(full := f"{module.name}.{name}"):
                return unknown("call") if doubtful else Name(full)
            else:
                doubtful = doubtful or module.name.split(".")[0] not in _NO_LAYERS
        return None

    def _exported(self, path: str, name: str) -> Value | None:
        scope = self.scope(path)
        return self.variable(scope, name) if scope is not None else None

    def member(self, path: str, name: str) -> Value:
        """Return `module.name`: a variable of the module, or a module below it."""
        value = self._exported(path, name)
        if value is not None:
            return value
        return self._below(path, name) if self.scope(path) is not None else unknown("call")

    def _below(self, path: str, name: str) -> Value:
        """Return the module of that name in a package."""
        is_package = os.path.basename(path) == "__init__.py"
        below = self.machine.project.resolve(name, path, 1) if is_package else None
        return Module(below) if below is not None else unknown("call")

    def put(self, path: str, name: Value, value: Value) -> None:
        """Evaluate `module.name = value` or `globals()[name] = value`; set from another module, it is unknown."""
        scope = self.scope(path)
        if scope is None:
            return
        if not self.machine.root and path != self._running[-1]:
            value = unknown("caller")
        if isinstance(name, Const) and isinstance(name.value, str):
            scope.heap.put(scope, name.value, value)
            return
        for variable, current in list(scope.variables.items()):
            if not isinstance(current, _FIXED):
                scope.heap.put(scope, variable, unknown("call"))

    def imported(self, name: str, file: SourceFile, *, whole: bool) -> Value:
        """Return what `import a.b` binds: `a`; with `whole`, as in `import a.b as c`, `a.b`."""
        top = name if whole else name.split(".")[0]
        path = self.machine.project.resolve(top, file.path)
        return Module(path) if path is not None else Name(top)

    def member_of(self, module: str, level: int, name: str, file: SourceFile) -> Value:
        """Return what `from module import name` binds."""
        path = self.machine.project.resolve(module, file.path, level)
        if path is None or path == file.path:  # the latter in a package that imports a module below it
            below = self.machine.project.resolve(f"{module}.{name}" if module else name, file.path, level)
            if below is not None:
                return Module(below)
            return Name(f"{module}.{name}") if path is None and not level else unknown("call")
        return Deferred("call", path, name)

    def import_all(self, module: str, level: int, scope: Scope) -> None:
        """Evaluate `from module import *`, which only notes the module: names are looked up there later."""
        path = self.machine.project.resolve(module, scope.file.path, level)
        if path != scope.file.path:
            scope.module.stars.append(Module(path) if path is not None else Name(module))

    def succeeds(self, statements: list[ast.stmt], file: SourceFile) -> bool:
        """Whether these imports surely succeed: of modules of the repository, or of a framework."""
        imports: list[tuple[str, int]] = []
        for node in statements:
            if isinstance(node, ast.Import):
                imports += [(alias.name, 0) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                imports.append((node.module or "", node.level))
        resolve = self.machine.project.resolve
        return all((not level and name.split(".")[0] in FRAMEWORKS) or resolve(name, file.path, level) is not None
                   for name, level in imports)  # fmt: skip


def _set_later(file: SourceFile) -> set[tuple[str, str]]:
    """Return the attributes of the module's names that its functions set, or its code below the guard."""
    attributes = names_of.OuterNames((*file.nodes[ast.FunctionDef], *file.nodes[ast.AsyncFunctionDef])).attributes
    return attributes.union(*(names_of.changed(node.body)[1] for node in file.tree.body if is_guard(node)))


def _may_change(file: SourceFile, names: set[str]) -> bool:
    """Whether the text suggests that a function changes one of the names; a search of the tree is far slower."""
    if b"global " in file.content or b"globals()" in file.content or b"setattr(" in file.content:
        return True
    encoded = {name.encode() for name in names}
    if len(encoded) < _FEW:  # a name that stands there once is bound there, and changed nowhere
        encoded = {name for name in encoded if file.content.count(name) > 1}
    return bool(encoded) and not encoded.isdisjoint(_CHANGED.findall(file.content))
