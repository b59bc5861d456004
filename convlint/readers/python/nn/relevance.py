"""Which functions and classes may lead to a convolution, by their words alone: the others need not be evaluated.

Words and not names: strings count, so that what is reached through a registry or getattr counts as reached.
"""

from __future__ import annotations

import ast
import re

from convlint.readers.python.evaluator.values import Class, Function
from convlint.readers.python.programs.closure import Imports
from convlint.readers.python.project import Project

_WORD = re.compile(rb"[A-Za-z_]\w*")
# Whatever a layer of convolutions may be called, but not: convert, convention, convergence, converse, convey
_CONV = re.compile(rb"(?i)conv(?!ers|ert|erg|ent|ey|ince)")
_LARGEST = 400  # parts of a repository that are looked at for one root; beyond, it is run

Part = tuple[str, str]  # path, and a name at the top of that file


class Relevance:
    """What the words of a repository's functions and classes lead to."""

    def __init__(self, project: Project) -> None:
        self._project, self._imports = project, Imports(project)
        self._words: dict[str, dict[str, frozenset[bytes]]] = {}  # of each name at the top of a file, by path
        self._bound: dict[str, dict[bytes, list[Part]]] = {}  # what the imports of a file bind, by path
        self._leads: dict[Part, bool] = {}

    def may_construct(self, root: Function | Class) -> bool:
        """Whether anything that the root names, directly or not, may construct a convolution."""
        first = root.file.path, root.name
        if first[1] not in self._top(first[0]):
            return True  # defined where nobody looks, as in an `if`
        if first not in self._leads:
            seen = [first]
            known = {first}
            leads = False
            for part in seen:
                leads = self._leads.get(part) or self._says(part) or len(seen) > _LARGEST
                if leads:
                    break
                if part not in self._leads:
                    following = [each for each in self._named(part) if each not in known]
                    known.update(following)
                    seen += following
            if leads:
                self._leads[first] = True
            else:
                self._leads.update(dict.fromkeys(seen, False))
        return self._leads[first]

    def _says(self, part: Part) -> bool:
        path, name = part
        if name:
            return any(map(_CONV.search, self._top(path).get(name, ())))
        return _CONV.search(self._project.content(path) or b"") is not None  # a module, and anything of it

    def _named(self, part: Part) -> list[Part]:
        """What the words of a part stand for in its file."""
        path, name = part
        top, bound = self._top(path), self._bound_in(path)
        words = top.get(name, frozenset()) if name else frozenset().union(*top.values())
        found = [(path, text) for word in words if (text := word.decode("utf-8", "replace")) in top and text != name]
        for word in words:
            found += bound.get(word, ())
        return found

    def _top(self, path: str) -> dict[str, frozenset[bytes]]:
        if path not in self._words:
            found: dict[str, frozenset[bytes]] = {}
            file = self._project.file(path)
            lines = [] if file is None else file.content.split(b"\n")
            for node in () if file is None else file.tree.body:
                words = None
                for name in _defines(node):
                    if words is None:
                        words = frozenset(_WORD.findall(b"\n".join(lines[node.lineno - 1 : node.end_lineno])))
                    found[name] = found.get(name, frozenset()) | words
            self._words[path] = found
        return self._words[path]

    def _bound_in(self, path: str) -> dict[bytes, list[Part]]:
        if path not in self._bound:
            found: dict[bytes, list[Part]] = {}
            self._bound[path] = found  # first, for those that import each other by stars
            for each in self._imports.of(path):
                module = self._imports.resolve(each.module, path, each.level)
                if each.attr == "*" and module is not None:
                    for word, parts in self._bound_in(module).items():
                        found.setdefault(word, []).extend(parts)
                    for name in self._top(module):
                        found.setdefault(name.encode(), []).append((module, name))
                    continue
                word = each.name.encode()
                inner = f"{each.module}.{each.attr}" if each.module else each.attr
                beneath = self._imports.resolve(inner, path, each.level) if each.attr else None
                if beneath is not None:
                    found.setdefault(word, []).append((beneath, ""))
                if module is not None:
                    passed = self._bound_in(module).get(each.attr.encode(), [])
                    target = each.attr if each.attr in self._top(module) else ""
                    found.setdefault(word, []).extend(passed if passed and not target else [(module, target)])
        return self._bound[path]


def _defines(node: ast.stmt) -> list[str]:
    """The names that a statement at the top of a file gives a meaning."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
    if isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While):
        return [name for inner in ast.iter_child_nodes(node) if isinstance(inner, ast.stmt) for name in _defines(inner)]
    return []
