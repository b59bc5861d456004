"""Which files construct layers whose norms the code holds in evaluation: a bias before those is not cancelled.

Their statistics are constants then. In doubt they are held so, by a class of the file or a base of one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from convlint.readers.python.programs.closure import Imports
from convlint.readers.python.project import Project

_WORD = b".eval("
_MOST_PASSED = 5  # files that hand on a class which one of them defines
_Method = ast.FunctionDef | ast.AsyncFunctionDef


class FrozenNorms:
    """Asks each file once."""

    def __init__(self, project: Project) -> None:
        self._project, self._imports = project, Imports(project)
        self._known: dict[str, bool] = {}
        self._derived_from: dict[str, frozenset[str]] = {}

    def in_file(self, path: str) -> bool:
        """Whether classes of the file, or their bases in the repository, may hold norms in evaluation."""
        waiting, seen = [path], {path}
        while waiting:
            here = waiting.pop()
            if self._of(here):
                return True
            bases = {each for each in self._bases_of(here) if each not in seen}
            seen |= bases
            waiting += bases
        return False

    def _of(self, path: str) -> bool:
        if path not in self._known:
            file = self._project.file(path) if _WORD in (self._project.content(path) or b"") else None
            self._known[path] = file is not None and freezes_norms(file.tree)
        return self._known[path]

    def _bases_of(self, path: str) -> frozenset[str]:
        if path not in self._derived_from:
            self._derived_from[path] = frozenset(self._bases(path))
        return self._derived_from[path]

    def _bases(self, path: str) -> Iterator[str]:
        """The files that define what classes of a file are derived from, as far as its imports tell."""
        file = self._project.file(path)
        if file is None:
            return
        for node in ast.walk(file.tree):
            for base in node.bases if isinstance(node, ast.ClassDef) else ():
                dotted = ast.unparse(base).split(".")
                if all(map(str.isidentifier, dotted)):
                    yield from self._defining(dotted[0], path)

    def _defining(self, name: str, path: str) -> Iterator[str]:
        """The files that an imported name goes through, up to the one that defines it."""
        for _ in range(_MOST_PASSED):
            bound = next((each for each in self._imports.of(path) if each.name == name), None)
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


def freezes_norms(tree: ast.Module) -> bool:
    """Whether code puts norms into evaluation, and they may stay there."""
    return any(
        _holds(node) if isinstance(node, ast.ClassDef) else _evaluates_tested(node) for node in ast.walk(tree)
    )  # fmt: skip


def _holds(cls: ast.ClassDef) -> bool:
    """Whether a class evaluates parts of itself whatever its mode, or one that is a norm by its name."""
    evaluated = list(_evaluated([cls]))
    own = {each.attr for each in evaluated if isinstance(each, ast.Attribute) and _is_self(each.value)}
    if any(map(_is_norm, own)) or (evaluated and any(map(_overrides_train, cls.body))):
        return True
    return bool(own) and any(_makes_norm(node, own) for node in ast.walk(cls))


def _makes_norm(node: ast.AST, attributes: set[str]) -> bool:
    """Whether it sets one of these attributes of `self` to a norm."""
    match node:
        case ast.Assign(targets=[ast.Attribute(value=holder, attr=name)], value=ast.Call(func=function)):
            return name in attributes and _is_self(holder) and _names_norm([function])
        case _:
            return False


def _overrides_train(method: ast.stmt) -> bool:
    """Whether it is `train` of a module, and not what trains one."""
    if not isinstance(method, _Method) or method.name != "train":
        return False
    modes = any(each.arg == "mode" for each in (*method.args.args, *method.args.kwonlyargs))
    return modes or any(
        isinstance(node, ast.Call) and ast.unparse(node.func) in ("super().train", "nn.Module.train")
        for node in ast.walk(method)
    )


def _evaluates_tested(node: ast.AST) -> bool:
    """Whether what a test takes for a norm is evaluated."""
    match node:
        case ast.If(test=test, body=body):
            return _names_norm([test]) and _evaluates(body)
        case ast.ListComp(elt=elt, generators=loops) | ast.GeneratorExp(elt=elt, generators=loops):
            return _evaluates([elt]) and _names_norm(test for loop in loops for test in loop.ifs)
        case _:
            return False


def _evaluates(code: Iterable[ast.AST]) -> bool:
    return any(isinstance(each, ast.Name) for each in _evaluated(code))


def _names_norm(tests: Iterable[ast.expr]) -> bool:
    """By the name of a class: in isinstance(m, ...), type(m) or a text."""
    for test in tests:
        for node in ast.walk(test):
            match node:
                case ast.Constant(value=str(name)) | ast.Attribute(attr=name) | ast.Name(id=name) if _is_norm(name):
                    return True
                case _:
                    pass
    return False


def _is_norm(name: str) -> bool:
    return "norm" in name.lower() or "bn" in name.lower()


def _evaluated(code: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """What `.eval()` is called of."""
    for each in code:
        for node in ast.walk(each):
            match node:
                case ast.Call(func=ast.Attribute(value=holder, attr="eval"), args=[], keywords=[]):
                    yield holder
                case _:
                    pass


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
