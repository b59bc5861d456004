"""Which files construct layers whose norms the code holds in evaluation: a bias before those is not cancelled.

In doubt they are held so: by a class of the file, or by a base of one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from convlint.readers.python.nn.held_norms import freezes_norms
from convlint.readers.python.programs.closure import Imports
from convlint.readers.python.programs.imports import Import
from convlint.readers.python.project import Project

_WORD = b".eval("
_MOST_PASSED = 5  # files that hand on a class which one of them defines


class FrozenNorms:
    """Asks each file once."""

    def __init__(self, project: Project) -> None:
        self._project, self._imports = project, Imports(project)
        self._answers: dict[str, bool] = {}
        self._known: dict[str, bool] = {}
        self._based: dict[str, frozenset[str]] = {}
        self._bound: dict[str, dict[str, Import]] = {}

    def in_file(self, path: str) -> bool:
        """Whether classes of the file, or their bases in the repository, may hold norms in evaluation."""
        if path not in self._answers:
            self._answers[path] = self._by_bases(path)
        return self._answers[path]

    def _by_bases(self, path: str) -> bool:
        waiting, seen = [path], {path}
        while waiting:
            here = waiting.pop()
            if self._of(here):
                return True
            bases = self._bases(here) - seen
            seen |= bases
            waiting += bases
        return False

    def _of(self, path: str) -> bool:
        if path not in self._known:
            file = self._project.file(path) if _WORD in (self._project.content(path) or b"") else None
            self._known[path] = file is not None and freezes_norms(file.tree)
        return self._known[path]

    def _bases(self, path: str) -> frozenset[str]:
        """The files that define what classes of a file are derived from, as far as its imports tell."""
        if path not in self._based:
            file = self._project.file(path)
            names = _base_names(file.tree) if file is not None else set[str]()
            self._based[path] = frozenset(found for name in names for found in self._defining(name, path))
        return self._based[path]

    def _defining(self, name: str, path: str) -> Iterator[str]:
        """The files that an imported name goes through, up to the one that defines it."""
        for _ in range(_MOST_PASSED):
            bound = self._names(path).get(name)
            if bound is None:
                return
            inner = f"{bound.module}.{bound.attr}" if bound.module and bound.attr else bound.module or bound.attr
            found = self._imports.resolve(inner, path, bound.level)
            if found is None and bound.attr:
                found = self._imports.resolve(bound.module, path, bound.level)
            if found is None or found == path:
                return
            yield found
            name, path = bound.attr or name, found

    def _names(self, path: str) -> dict[str, Import]:
        """What imports of a file bind, the first of each name."""
        if path not in self._bound:
            self._bound[path] = {each.name: each for each in reversed(self._imports.of(path))}
        return self._bound[path]


def _base_names(tree: ast.Module) -> set[str]:
    """What the bases of classes begin with."""
    dotted = {
        ast.unparse(base) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for base in node.bases
    }  # fmt: skip
    return {each.split(".")[0] for each in dotted if all(map(str.isidentifier, each.split(".")))}
