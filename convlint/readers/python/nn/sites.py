"""The places at which a file constructs convolutions, by names alone: through imports, aliases and subclasses."""

from __future__ import annotations

import ast

from convlint.readers.python.nn.kinds import CONVOLUTIONS, canonical
from convlint.readers.python.project import Project
from convlint.readers.python.source_file import SourceFile

_LONGEST_CHAIN = 12  # of imports and base classes from a name to the framework's


class _Names:
    """What the names of a file stand for: `imports` and `aliases` by dotted names, `classes` by their bases."""

    def __init__(self, file: SourceFile) -> None:
        self.modules: dict[str, str] = {}  # name -> module
        self.members: dict[str, tuple[str, int, str]] = {}  # name -> module, dots, member
        self.aliases: dict[str, str] = {}
        self.classes: dict[str, tuple[str, ...]] = {}
        self.stars: list[tuple[str, int]] = []
        self.calls: list[ast.Call] = file.nodes[ast.Call]
        for node in file.nodes[ast.Import]:
            for each in node.names:
                bound = each.asname or each.name.split(".")[0]
                self.modules[bound] = each.name if each.asname else bound
        for node in file.nodes[ast.ImportFrom]:
            for each in node.names:
                if each.name == "*":
                    self.stars.append((node.module or "", node.level))
                else:
                    self.members[each.asname or each.name] = node.module or "", node.level, each.name
        for node in file.nodes[ast.ClassDef]:
            self.classes[node.name] = tuple(filter(None, map(dotted, node.bases)))
        for statement in file.tree.body:
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                target, value = dotted(statement.targets[0]), dotted(statement.value)
                if target and value and "." not in target:
                    self.aliases[target] = value


class Sites:
    """Places of construction in the files of a project."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._names: dict[str, _Names | None] = {}
        self._found: dict[str, list[ast.Call]] = {}
        self._meant: dict[tuple[str, str], str | None] = {}

    def of(self, path: str) -> list[ast.Call]:
        """The calls of a file that construct convolutions, in the order of the text."""
        if path not in self._found:
            names = self._of_file(path)
            found = [call for call in names.calls if self._constructs(path, call)] if names is not None else []
            self._found[path] = sorted(found, key=lambda call: (call.lineno, call.col_offset))
        return self._found[path]

    def _constructs(self, path: str, call: ast.Call) -> bool:
        name = dotted(call.func)
        if not name or name.startswith(("self.", "cls.", "super.")):
            return False
        return self.meaning(path, name) in CONVOLUTIONS

    def meaning(self, path: str, name: str, depth: int = 0) -> str | None:
        """The framework's full name that a dotted name stands for in a file, of a subclass that of its base."""
        key = path, name
        if key not in self._meant:
            self._meant[key] = None  # what a circle finds
            if depth < _LONGEST_CHAIN:
                self._meant[key] = self._meaning(path, name, depth + 1)
        return self._meant[key]

    def _meaning(self, path: str, name: str, depth: int) -> str | None:
        names = self._of_file(path)
        if names is None:
            return None
        head, _, rest = name.partition(".")
        if head in names.classes:
            if rest:
                return None
            bases = (self.meaning(path, base, depth) for base in names.classes[head])
            return next((base for base in bases if base in CONVOLUTIONS), None)
        if head in names.members:
            module, level, member = names.members[head]
            return self._imported(path, module, level, f"{member}.{rest}" if rest else member, depth)
        if head in names.modules:
            return self._imported(path, names.modules[head], 0, rest, depth)
        if head in names.aliases and names.aliases[head] != head:
            return self.meaning(path, names.aliases[head] + (f".{rest}" if rest else ""), depth)
        for module, level in names.stars:
            found = self._imported(path, module, level, name, depth)
            if found in CONVOLUTIONS:
                return found
        return None

    def _imported(self, path: str, module: str, level: int, rest: str, depth: int) -> str | None:
        """What `rest` of a module is: of the repository, or of a library. Part of it may be a module below."""
        parts = rest.split(".") if rest else []
        for taken in range(len(parts), -1, -1):
            below = ".".join((*([module] if module else []), *parts[:taken]))
            found = self._project.resolve(below, path, level) if below or level else None
            if found is not None and found != path:
                left = ".".join(parts[taken:])
                return self.meaning(found, left, depth) if left else None
        return canonical(f"{module}.{rest}" if rest else module) if not level else None

    def _of_file(self, path: str) -> _Names | None:
        if path not in self._names:
            file = self._project.file(path)
            self._names[path] = None if file is None else _Names(file)
        return self._names[path]


def dotted(node: ast.expr) -> str:
    """`a.b.c` of a chain of attributes; '' for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join((node.id, *reversed(parts)))
