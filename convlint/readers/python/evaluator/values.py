"""The values that the evaluator computes with: each is an object of its own class, and none is the real thing."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from convlint.model.source import Stated
    from convlint.readers.python.evaluator.scope import Scope
    from convlint.readers.python.source_file import SourceFile

Plain = int | float | str | bytes | bool | None
NOTHING_STATED: frozenset[Stated] = frozenset()


class Clock:
    """Times of birth of what can change: a path undoes what it changes of things that are older than itself.

    What a module makes while its body runs is older than all paths, whichever of them came to need the module.
    """

    def __init__(self) -> None:
        self.time, self.stopped = 0, False

    def __call__(self) -> int:
        """The time now, later than all before."""
        if self.stopped:
            return 0
        self.time += 1
        return self.time


birth = Clock()


class Unknown:
    """What nobody can know without running the program. `why`: config, parameter, branch, call, limit, caller."""

    __slots__ = ("why",)

    def __init__(self, why: str) -> None:
        self.why = why


class Deferred(Unknown):
    """A name that an import binds, of a module that nobody has needed yet. Reading a variable resolves it."""

    __slots__ = ("name", "path")

    def __init__(self, path: str, name: str) -> None:
        super().__init__("call")
        self.path, self.name = path, name


class Const:
    """A number, text, truth or None, and the literals that it was computed from."""

    __slots__ = ("stated", "value")

    def __init__(self, value: Plain, stated: frozenset[Stated] = NOTHING_STATED) -> None:
        self.value, self.stated = value, stated


class Items:
    """A list, tuple, set or iterator.

    Where it is not `complete`, something may have been added or changed that nobody knows, for the reason `why`;
    `items` are then some that it may hold.
    """

    __slots__ = ("born", "complete", "items", "kind", "why")

    def __init__(self, kind: str, items: list[Value], *, complete: bool = True, why: str = "branch") -> None:
        self.kind, self.items, self.complete, self.why = kind, items, complete, why
        self.born = birth()


class Table:
    """A dict with keys that are known. Where it is not `complete`, a key that it lacks may be there."""

    __slots__ = ("born", "complete", "default", "items", "why")

    def __init__(self, items: dict[Plain, Value], *, complete: bool = True, why: str = "branch") -> None:
        self.items, self.complete, self.why = items, complete, why
        self.default: Value | None = None  # what a defaultdict calls
        self.born = birth()

    @classmethod
    def of(cls, names: Mapping[str, Value], *, complete: bool = True, why: str = "branch") -> Table:
        """A dict with these names as its keys."""
        return cls(dict(names.items()), complete=complete, why=why)


class Function:
    """A function or lambda of the source; `bound` is its self or cls, `owner` the class that defines it.

    `kind` is what a decorator made of it: static, class, property, or nothing.
    """

    __slots__ = ("bound", "defaults", "file", "kind", "kw_defaults", "name", "node", "owner", "scope")

    def __init__(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, file: SourceFile, scope: Scope, name: str,
    ) -> None:  # fmt: skip
        self.node, self.file, self.scope, self.name = node, file, scope, name
        self.defaults: list[Value] = []
        self.kw_defaults: dict[str, Value] = {}
        self.bound: Value | None = None
        self.owner: Class | None = None
        self.kind = ""


class Class:
    """A class of the source; `bases` are classes of the source, names of frameworks, or unknown.

    `fields` are those of a dataclass or named tuple, which make its __init__.
    """

    __slots__ = ("bases", "born", "fields", "file", "name", "namespace", "node", "order")

    def __init__(self, node: ast.ClassDef, file: SourceFile, name: str, bases: list[Value]) -> None:
        self.node, self.file, self.name, self.bases = node, file, name, bases
        self.namespace: dict[str, Value] = {}
        self.fields: list[str] | None = None
        self.order: list[Value] | None = None  # of the classes that attributes are looked for in
        self.born = birth()


class Instance:
    """An object of a class of the source, or of a framework's (`cls` is its Name then).

    `extra` is what the framework's meaning of it is, as the package `nn` keeps it: a convolution, a container, ...
    `complete` is false where attributes may have been set that nobody knows.
    """

    __slots__ = ("attributes", "born", "cls", "complete", "extra")

    def __init__(self, cls: Class | Name, extra: Any = None) -> None:
        self.cls, self.extra = cls, extra
        self.attributes: dict[str, Value] = {}
        self.complete = True
        self.born = birth()


class Name:
    """Something of a library by its full name, aliases resolved: `torch.nn.Conv2d`; modules too."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Module:
    """A module of the repository."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path


class Partial:
    """functools.partial of something."""

    __slots__ = ("args", "function", "keywords")

    def __init__(self, function: Value, args: list[Value], keywords: dict[str, Value]) -> None:
        self.function, self.args, self.keywords = function, args, keywords


class Tensor:
    """A tensor of the forward pass: its shape as far as known, and what it comes from, as the package `nn` keeps it."""

    __slots__ = ("data",)

    def __init__(self, data: Any) -> None:
        self.data = data


Value = Unknown | Const | Items | Table | Function | Class | Instance | Name | Module | Partial | Tensor

_UNKNOWN = {why: Unknown(why) for why in ("config", "parameter", "branch", "call", "limit", "caller")}
NONE = Const(None)


def unknown(why: str) -> Unknown:
    """The unknown for that reason: one object for each."""
    return _UNKNOWN[why]
