"""Classes that need not be run by themselves, since what their file makes of them says it all.

Such a class is a module of the framework's whose methods take no decision, and whose layers are the framework's own. If
its file constructs it with everything known, its own parameters, which nobody knows, could only say less of the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from convlint.readers.python.evaluator.values import Class, Function, Name
from convlint.readers.python.nn.gathering import Seen
from convlint.readers.python.nn.sites import Sites, dotted
from convlint.readers.python.project import of_framework
from convlint.readers.python.source_file import SourceFile
from convlint.readers.python.walking import every, walked

_MODULES = frozenset(("Module", "Layer", "Block", "HybridBlock"))
_DECISIONS = frozenset((
    ast.If, ast.IfExp, ast.BoolOp, ast.Compare, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.With,
    ast.AsyncWith, ast.Match, ast.comprehension, ast.Lambda, ast.Starred, ast.Await, ast.Yield, ast.YieldFrom,
    ast.NamedExpr, ast.Delete, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.Assert, ast.AugAssign,
))  # fmt: skip
_NO_WIDTH = frozenset((
    "kernel_size", "stride", "strides", "padding", "dilation", "dilation_rate", "bias", "bias_attr", "use_bias",
    "padding_mode",
))  # fmt: skip
_Place = tuple[str, int, int]


class PlainClasses:
    """Tells them by their code, each once, and asks what was seen of their layers."""

    def __init__(self, sites: Sites) -> None:
        self._sites = sites
        self._own: dict[str, frozenset[str]] = {}  # by file: names of the framework's

    def holds(self, root: Function | Class) -> bool:
        """Whether the root is one that others of its file may speak for."""
        return isinstance(root, Class) and _is_module(root) and self._is_plain(root) and bool(self._layers(root))

    def told(self, classes: Iterable[Class], seen: Iterable[Seen]) -> set[int]:
        """The identities of those, all of whose layers other roots of their file construct with everything known."""
        known: dict[_Place, Seen] = {}
        for each in seen:
            if each.layer.whole and each.context > 0 and not each.replaced and each.rank == (False, False):
                file, node = each.layer.place
                if each.root.startswith(f"{file.path}:"):
                    known[file.path, node.lineno, node.col_offset] = each
        return {
            id(cls)
            for cls in classes
            if all((cls.file.path, call.lineno, call.col_offset) in known for call in self._layers(cls))
        }

    def _is_plain(self, cls: Class) -> bool:
        if cls.node.decorator_list or cls.node.keywords:
            return False
        for node in walked([cls.node]):
            if node.__class__ in _DECISIONS:
                return False
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                arguments = node.args
                if node.decorator_list or arguments.vararg or arguments.kwarg:
                    return False
        makes = [each for each in cls.node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
        calls = [node for node in walked(makes) if isinstance(node, ast.Call)]
        return (
            len(makes) == 1
            and not _gives_widths(makes[0], self._layers(cls))
            and all(self._is_frameworks(node, cls.file) for node in calls)
        )

    def _is_frameworks(self, call: ast.Call, file: SourceFile) -> bool:
        """Whether a call is of something of the framework's, or of the class's own base."""
        match call.func:
            case ast.Name(id="super"):
                return True
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="__init__"):
                return True
        name = dotted(call.func)
        return bool(name) and name.split(".")[0] in self._names(file)

    def _names(self, file: SourceFile) -> frozenset[str]:
        if file.path not in self._own:
            self._own[file.path] = frozenset(_imported(file.tree))
        return self._own[file.path]

    def _layers(self, cls: Class) -> list[ast.Call]:
        calls, node = self._sites.of(cls.file.path), cls.node
        return [call for call in calls if node.lineno <= call.lineno <= (node.end_lineno or node.lineno)]


def _gives_widths(init: ast.FunctionDef, layers: Iterable[ast.Call]) -> bool:
    """Whether a default of a parameter may be the width of a layer."""
    places = [*init.args.posonlyargs, *init.args.args]
    named = {each.arg for each in places[len(places) - len(init.args.defaults) :]} | {
        each.arg for each, value in zip(init.args.kwonlyargs, init.args.kw_defaults, strict=True) if value is not None
    }
    widths = [
        value
        for call in layers
        for value in (*call.args[:2], *(each.value for each in call.keywords if each.arg not in _NO_WIDTH))
    ]
    return any(isinstance(node, ast.Name) and node.id in named for value in widths for node in every(value))


def _is_module(cls: Class) -> bool:
    return (
        len(cls.bases) == 1
        and isinstance(cls.bases[0], Name)
        and cls.bases[0].name.split(".")[-1] in _MODULES
        and cls.fields is None
    )


def _imported(tree: ast.Module) -> Iterable[str]:
    """The names that imports of frameworks at the top of a file bind."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from ((each.asname or each.name).split(".")[0] for each in node.names if of_framework(each.name))
        elif isinstance(node, ast.ImportFrom) and not node.level and of_framework(node.module or ""):
            yield from (each.asname or each.name for each in node.names)
