"""Which files construct layers whose norms the code holds in evaluation: a bias before those is not cancelled.

In doubt they are held so: by a class of the file, by a base of one, or by what this file imports or is imported by.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property

from convlint.readers.python.nn.held_norms import freezes_norms, freezes_tested_norms
from convlint.readers.python.nn.sites import dotted
from convlint.readers.python.programs.closure import Imports
from convlint.readers.python.programs.imports import Import
from convlint.readers.python.source_file import SourceFile, is_quiet

_WORDS = (b".eval()", b".train(False)", b".train(mode=False)", b".training = False")
_TEST = re.compile(rb"\bif\b[^:]{0,300}?(?:norm|bn)", re.IGNORECASE)
_MOST_PASSED = 5  # files that hand on a class which one of them defines


class FrozenNorms:
    """Asks each file once."""

    def __init__(self, imports: Imports) -> None:
        self._project, self._imports = imports.project, imports
        self._answers: dict[str, bool] = {}
        self._known: dict[str, bool] = {}
        self._frozen: dict[str, bool] = {}
        self._based: dict[str, frozenset[str]] = {}
        self._near: dict[str, frozenset[str]] = {}
        self._bound: dict[str, dict[str, Import]] = {}

    def in_file(self, path: str) -> bool:
        """Whether classes of the file, or their bases in the repository, may hold norms in evaluation."""
        if path not in self._answers:
            self._answers[path] = self._by_bases(path) or self._by_neighbours(path)
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

    def _by_neighbours(self, path: str) -> bool:
        """Whether a file that it imports, or one that imports it, freezes the norms of any network."""
        return any(
            (path in self._reached(each) or each in self._reached(path)) and self._freezes(each)
            for each in self._may_freeze
        )

    @cached_property
    def _may_freeze(self) -> tuple[str, ...]:
        """The files of the repository whose words are those of code that freezes norms; most of them never do."""
        return tuple(path for path in self._project.where(_may_freeze) if not is_quiet(path))

    def _freezes(self, path: str) -> bool:
        """Whether a file has code that freezes the norms of networks that it is given."""
        if path not in self._frozen:
            file = self._project.file(path)
            self._frozen[path] = file is not None and freezes_tested_norms(file.tree)
        return self._frozen[path]

    def _reached(self, path: str) -> frozenset[str]:
        """The files that one imports, and those that hand on to it what they import."""
        if path not in self._near:
            handed = (found for name in self._names(path) for found in self._defining(name, path))
            self._near[path] = frozenset((*self._imports.near(path), *handed))
        return self._near[path]

    def _of(self, path: str) -> bool:
        if path not in self._known:
            content = self._project.content(path) or b""
            file = self._project.file(path) if _evaluates(content) else None
            self._known[path] = file is not None and freezes_norms(file.tree)
        return self._known[path]

    def _bases(self, path: str) -> frozenset[str]:
        """The files that define what classes of a file are derived from, as far as its imports tell."""
        if path not in self._based:
            file = self._project.file(path)
            names = _base_names(file) if file is not None else set[str]()
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


def _evaluates(content: bytes) -> bool:
    """Whether anything in it is switched to evaluation."""
    return any(word in content for word in _WORDS)


def _may_freeze(content: bytes) -> bool:
    """Whether it may do so to norms of a network that it is given."""
    return _evaluates(content) and _TEST.search(content) is not None


def _base_names(file: SourceFile) -> set[str]:
    """What the bases of classes begin with."""
    bases = (dotted(base) for node in file.nodes[ast.ClassDef] for base in node.bases)
    return {base.split(".")[0] for base in bases if base}
