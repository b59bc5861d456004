"""Find files whose norms may be kept in evaluation mode, in which a norm does not cancel a bias before it.

A norm in doubt counts as frozen: by a class of the file, by a base of one, or by a file that it imports or that
imports it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property

from convlint.files.repository import is_quiet
from convlint.readers.python.evaluator.machine import Machine
from convlint.readers.python.evaluator.values import Class, Function
from convlint.readers.python.imports import ProjectImports
from convlint.readers.python.source_file import dotted, unparsed
from convlint.readers.python.walking import every

_WORDS = (b".eval()", b".train(False)", b".train(mode=False)", b".training = False", b".trainable = ")
_TEST = re.compile(rb"\bif\b[^:]{0,300}?(?:norm|bn)", re.IGNORECASE)
_NORM = re.compile("norm|bn", re.IGNORECASE)
_MADE_BY_KERAS = re.compile(r"(?:\bModel|\bSequential|BatchNormalization)$")
_OTHER_LAYER = re.compile(
    r"(?:torch\.)?nn\.(?:(?:Lazy)?Conv\w*|Linear|\w*ReLU6?|\w*Dropout\w*|\w*Pool\dd|Sigmoid|Tanh|GELU|SiLU|Identity)"
)
_MAKES_NORM = re.compile(r"\b(?=[A-Z])\w*(?i:norm|bn)\w*\(")


def freezes_norms(tree: ast.Module) -> bool:
    """Whether code puts norms into evaluation mode in which they may stay."""
    return (
        freezes_tested_norms(tree)
        or _freezes_in_keras(tree)
        or any(_holds_parts(node) if isinstance(node, ast.ClassDef) else _evaluates_made(node) for node in every(tree))
    )


def freezes_tested_norms(tree: ast.Module) -> bool:
    """Whether code puts into evaluation mode a loop variable or parameter that a test selects as a norm."""
    nodes = every(tree)
    names = {node.arg for node in nodes if isinstance(node, ast.arg)}
    loops = [node.target for node in nodes if isinstance(node, (ast.For, ast.comprehension))]
    names.update(node.id for loop in loops for node in every(loop) if isinstance(node, ast.Name))
    for node in nodes:
        match node:
            case ast.If(test=test, body=code):
                tests: list[ast.expr] = [test]
            case ast.ListComp(elt=elt, generators=generators) | ast.GeneratorExp(elt=elt, generators=generators):
                tests, code = [test for loop in generators for test in loop.ifs], [ast.Expr(elt)]
            case _:
                continue
        # `for m in net.modules(): if isinstance(m, BatchNorm2d): m.eval()`
        if any(_NORM.search(unparsed(test)) for test in tests) and not names.isdisjoint(_evaluated(code)):
            return True
    return False


def _freezes_in_keras(tree: ast.Module) -> bool:
    """Whether code makes a norm or network of Keras, or the layers of one, untrainable: their norms then stay as is."""
    nodes = every(tree)
    names = {node.id for loop in nodes if isinstance(loop, (ast.For, ast.comprehension)) for node in every(loop.target)
             if isinstance(node, ast.Name)}  # fmt: skip
    frozen: set[str] = set()
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=function)):
                names.update([name] if _MADE_BY_KERAS.search(unparsed(function)) else [])
            case ast.Assign(targets=[ast.Attribute(ast.Name(name), "trainable"), *_], value=ast.Constant(value)):
                frozen.update([] if value else [name])
    return not names.isdisjoint(frozen)


def _evaluates_made(node: ast.AST) -> bool:
    """Whether a norm, or a module named as one, is put into evaluation mode by the code that constructs it."""
    if isinstance(node, ast.Call):
        return any(_MAKES_NORM.search(text) and text.endswith(")") for text in _evaluated([node], deep=False))
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    # A function that calls `.train()` on it afterwards, as around a validation, does not leave it so.
    evaluated = set(_evaluated(node.body))
    for inner in every(node) if evaluated else ():
        match inner:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="train"), args=[], keywords=[]):
                evaluated.discard(name)
    assigned = [inner for inner in every(node) if isinstance(inner, ast.Assign)] if evaluated else []
    return any(unparsed(node.targets[0]) in evaluated and _MAKES_NORM.search(unparsed(node.value)) for node in assigned)


def _holds_parts(cls: ast.ClassDef) -> bool:
    """Whether a class puts parts of itself into evaluation mode: in its `train`, or parts named as norms."""
    evaluated = set(_evaluated(cls.body))
    made: dict[str, list[ast.expr]] = {}  # by the source text of what gets it
    for node in every(cls) if evaluated else ():
        if isinstance(node, ast.Assign):
            made.setdefault(unparsed(node.targets[0]), []).append(node.value)
    evaluated = {text for text in evaluated if not _is_other_part(text, made)}
    if evaluated and any(map(_overrides_train, cls.body)):
        return True
    own = {text for text in evaluated if text.startswith("self.")}
    return any(
        _NORM.search(text.rpartition(".")[2])
        or any(isinstance(value, ast.Call) and _NORM.search(unparsed(value.func)) for value in made.get(text, ()))
        or ("[" in text and any(_MAKES_NORM.search(unparsed(value)) for value in made.get(text.split("[")[0], ())))
        for text in own
    )


def _is_other_part(text: str, made: Mapping[str, Sequence[ast.expr]]) -> bool:
    """Whether it is a part of a Sequential, such as `self.block[0]`, that is a layer of another kind than a norm."""
    holder, _, index = text.removesuffix("]").partition("[")
    values = made.get(holder, ())
    return bool(values) and index.isdecimal() and all(
        isinstance(value, ast.Call) and dotted(value.func).endswith("nn.Sequential")
        and not any(isinstance(part, ast.Starred) for part in value.args)
        and len(value.args) > int(index)
        and isinstance(part := value.args[int(index)], ast.Call) and _OTHER_LAYER.fullmatch(dotted(part.func))
        for value in values
    )  # fmt: skip


def _overrides_train(method: ast.stmt) -> bool:
    """Whether the method overrides `Module.train`, in contrast to a training loop of that name."""
    if not isinstance(method, ast.FunctionDef) or method.name != "train":
        return False
    modes = any(parameter.arg == "mode" for parameter in (*method.args.args, *method.args.kwonlyargs))
    return modes or re.search(r"(super\(\)|nn\.Module)\.train\(", unparsed(method)) is not None


def _evaluated(code: list[ast.stmt] | list[ast.Call], *, deep: bool = True) -> Iterator[str]:
    """Yield the source text of what is put into evaluation mode: `.eval()`, `.train(False)`, `.training = False`.

    The last two are ignored for `self`: a module that writes them sets its own mode, which users can change back.
    """
    for node in [inner for part in code for inner in every(part)] if deep else code:
        match node:
            case ast.Call(func=ast.Attribute(value=holder, attr="eval"), args=[], keywords=[]):
                yield unparsed(holder)
            case (
                ast.Call(func=ast.Attribute(value=holder, attr="train"), args=[ast.Constant(value=False)])
                | ast.Call(
                    func=ast.Attribute(value=holder, attr="train"),
                    keywords=[ast.keyword(arg="mode", value=ast.Constant(value=False))],
                )
                | ast.Assign(targets=[ast.Attribute(value=holder, attr="training")], value=ast.Constant(value=False))
            ) if (text := unparsed(holder)) != "self":
                yield text


class FrozenNorms:
    """Answers for each file whether its norms may be frozen, each question once."""

    def __init__(self, machine: Machine, imports: ProjectImports) -> None:
        self._machine, self._project, self._imports = machine, imports.project, imports
        self.in_file = cache(self._in_file)
        self._freezes, self._reached = cache(self._freezes_by), cache(self._near)

    def _in_file(self, path: str) -> bool:
        """Whether classes of the file, or their bases in the repository, may freeze norms."""
        files = [path]
        for here in files:  # which grows meanwhile
            if self._freezes(here, freezes_norms):
                return True
            # A base in another file may freeze the norms of its subclasses.
            bases = {base.file.path for cls in self._defined(here) if isinstance(cls, Class) for base in cls.bases
                     if isinstance(base, Class)}  # fmt: skip
            files += bases.difference(files)
        return any(
            # Such code freezes the norms of networks that it is given.
            path in self._reached(other) or other in self._reached(path)
            for other in self._freezing
        )

    @cached_property
    def _freezing(self) -> tuple[str, ...]:
        """The files that freeze tested norms; what others import and define need not be known."""
        paths = self._project.where(lambda content: _evaluates(content) and _TEST.search(content) is not None)
        return tuple(path for path in paths if not is_quiet(path) and self._freezes(path, freezes_tested_norms))

    def _freezes_by(self, path: str, says: Callable[[ast.Module], bool]) -> bool:
        file = self._project.file(path) if _evaluates(self._project.content(path) or b"") else None
        return file is not None and says(file.tree)

    def _near(self, path: str) -> frozenset[str]:
        """Return the files that one imports, and those that define the names it imports."""
        return frozenset((*self._imports.near(path), *(definition.file.path for definition in self._defined(path))))

    def _defined(self, path: str) -> list[Class | Function]:
        """Return the classes and functions among the names of a module."""
        modules = self._machine.modules
        scope = modules.scope(path)
        values = [modules.variable(scope, name) for name in list(scope.variables)] if scope is not None else []
        return [value for value in values if isinstance(value, (Class, Function))]


def _evaluates(content: bytes) -> bool:
    """Whether the text puts anything into evaluation mode."""
    return any(word in content for word in _WORDS)
