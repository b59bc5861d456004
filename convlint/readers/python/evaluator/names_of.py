"""Find which names a body binds and which objects it changes, without running it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from convlint.readers.python.source_file import last_name
from convlint.readers.python.walking import LEAVES, below, every

Body = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
# An inner body binds names of its own, at another time; below a name is nothing.
_ENDS = frozenset((ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Name, ast.alias))
_NAMING = frozenset((
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.alias, ast.ExceptHandler, ast.MatchAs, ast.MatchStar,
    ast.MatchMapping, ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom,
))  # fmt: skip
_EMPTY = LEAVES - {ast.Name, ast.alias}
_NAMES_CLASS = re.compile(rb"classmethod|__class__|type(?<!\wtype)\s*\(")
CHANGERS = frozenset({  # methods that change a list, dict or set
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "reverse",
    "sort", "update", "move_to_end",
})  # fmt: skip


def within(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of a body, without constants and without the bodies of inner functions and classes."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        if node.__class__ not in _ENDS:
            waiting += below(node, _EMPTY)


class BodyNames:
    """The names a body binds, those it declares global or nonlocal, and whether it yields."""

    __slots__ = ("bound", "declared", "yields")

    def __init__(self, nodes: Iterable[ast.AST]) -> None:
        names: set[str] = set()
        self.bound, self.yields = names, False
        self.declared: set[str] = set()
        for node in within(nodes):
            if node.__class__ is ast.Name:
                if node.ctx.__class__ is not ast.Load:
                    names.add(node.id)
                continue
            if node.__class__ not in _NAMING:  # nearly all others: `match` takes longer
                continue
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    names.add(node.name)
                case ast.alias():
                    names.add((node.asname or node.name).split(".")[0])
                case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar():
                    names.update([node.name] if node.name else [])
                case ast.MatchMapping():
                    names.update([node.rest] if node.rest else [])
                case ast.Global() | ast.Nonlocal():
                    self.declared.update(node.names)
                case ast.Yield() | ast.YieldFrom():
                    self.yields = True


def gives(function: Body) -> bool:
    """Whether a call of the function has a result other than None."""
    if isinstance(function, ast.Lambda):
        return True
    given = (ast.Yield, ast.YieldFrom)
    return any(
        isinstance(node, given) or (isinstance(node, ast.Return) and node.value) for node in within(function.body)
    )


def changed(nodes: Iterable[ast.AST]) -> tuple[set[str], set[tuple[str, str]]]:
    """Return the names whose objects statements change, and the attributes of names that they set."""
    objects: set[str] = set()
    attributes: set[tuple[str, str]] = set()
    for node in within(nodes):
        match node:
            case ast.Call(func=ast.Attribute(value=holder, attr=name)) if name in CHANGERS:
                _add(holder, objects, attributes)
            case ast.Subscript(value=holder, ctx=ast.Store() | ast.Del()):
                _add(holder, objects, attributes)
            case ast.Attribute(value=ast.Name(id=name), attr=attr, ctx=ast.Store() | ast.Del()):
                attributes.add((name, attr))
            case ast.AugAssign(target=ast.Name(id=name)):
                objects.add(name)
            case ast.Call(func=ast.Name(id="setattr"), args=[ast.Name(id=name), key, _]):
                attributes.add((name, str(key.value) if isinstance(key, ast.Constant) else ""))
    return objects, attributes


def asks_mode(test: ast.expr) -> bool:
    """Whether a test reads the mode of a network, `training`, which is taken to be true."""
    return any(isinstance(node, ast.Attribute) and node.attr == "training" for node in within([test]))


def changes_anything(functions: Iterable[ast.AST]) -> bool:
    """Whether any of the functions sets an item or attribute, or changes a list or dict."""
    return any(any(changed(node.body)) for node in functions if isinstance(node, ast.FunctionDef))


def set_on_class(node: ast.ClassDef, content: bytes) -> set[str]:
    """Return the attributes of a class that its own methods set, whose values depend on the calls before.

    `content` is the text of its file, whose search is faster than that of the tree.
    """
    attributes: set[str] = set()
    for method in node.body if _NAMES_CLASS.search(content) else ():
        # These three run while a class or an object is created, and are followed.
        if not isinstance(method, ast.FunctionDef) or method.name in ("__init_subclass__", "__new__", "__call__"):
            continue
        for part in within(method.body):
            if isinstance(part, ast.Attribute) and not isinstance(part.ctx, ast.Load) and _is_class(part.value, method):
                attributes.add(part.attr)
    return attributes


def annotated(node: ast.ClassDef) -> dict[str, ast.expr | None]:
    """Return the names that a class body annotates, which are the fields of a record, with their defaults."""
    return {
        statement.target.id: statement.value
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and "ClassVar" not in ast.dump(statement.annotation)[:200]
    }


def validated(nodes: Iterable[ast.ClassDef], fields: Iterable[str]) -> set[str]:
    """Return the fields of a record of pydantic that its methods may change when an object gets them."""
    names: set[str] = set()
    for decorator in (part for node in nodes for method in node.body for part in getattr(method, "decorator_list", ())):
        if isinstance(decorator, ast.Call) and last_name(decorator.func).endswith("validator"):
            given = {argument.value for argument in decorator.args if isinstance(argument, ast.Constant)}
            names.update(fields if not given or "*" in given else map(str, given))
    return names


def _is_class(node: ast.expr, method: ast.FunctionDef) -> bool:
    """Whether the expression is the class of a method: `cls`, `type(self)`, `self.__class__`."""
    if isinstance(node, ast.Name):
        return any(getattr(decorator, "id", "") == "classmethod" for decorator in method.decorator_list) and (
            bool(method.args.args) and method.args.args[0].arg == node.id
        )
    if isinstance(node, ast.Attribute):
        return node.attr == "__class__"
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type"


class OuterNames:
    """The names around functions that these rebind, those whose objects they change, and the attributes they set.

    `rebound` has `*` if the name is computed. What these names hold depends on the calls before.
    """

    __slots__ = ("attributes", "objects", "rebound")

    def __init__(self, functions: Iterable[Body]) -> None:
        self.rebound: set[str] = set()
        self.objects: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()
        for node in functions:
            body = [node.body] if isinstance(node, ast.Lambda) else node.body
            names = BodyNames(body)
            # `global x` makes a binding of `x` one of the module.
            rebound = names.declared | set(_set_in_globals(body))
            own = (names.bound | {arg.arg for arg in parameters(node)}) - rebound
            objects, attributes = changed(body)
            self.rebound |= rebound
            self.objects |= objects - own
            self.attributes |= {pair for pair in attributes if pair[0] not in own}


def _set_in_globals(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names of `globals()["name"] = value`; `*` for a computed one."""
    for node in within(nodes):
        match node:
            case ast.Subscript(value=ast.Call(func=ast.Name(id="globals")), slice=key, ctx=ast.Store() | ast.Del()):
                yield str(key.value) if isinstance(key, ast.Constant) else "*"


def asked_of(node: ast.AST, table: str) -> Iterator[tuple[str, ast.expr]]:
    """Yield each key that a function gets or pops from its `**table` with a default, and that default."""
    for part in within(ast.iter_child_nodes(node)) if table else ():
        match part:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="get" | "pop"),
                args=[ast.Constant(value=str(key)), default],
            ) if name == table:
                yield key, default


def parameters(node: Body) -> list[ast.arg]:
    """Return all parameters of a function, in no particular order."""
    arguments = node.args
    args = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return args + [arg for arg in (arguments.vararg, arguments.kwarg) if arg is not None]


@lru_cache(maxsize=8)
def bound_in_functions(tree: ast.Module) -> frozenset[str]:
    """Return the names that any function in a module binds for itself."""
    names: set[str] = set()
    for node in every(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names |= BodyNames(node.body).bound.union(parameter.arg for parameter in parameters(node))
    return frozenset(names)


def defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield each parameter that may have a default, and that; None for keyword-only ones without."""
    positional = [*arguments.posonlyargs, *arguments.args]
    for arg, default in [
        *zip(reversed(positional), reversed(arguments.defaults), strict=False),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]:
        yield arg.arg, default


def _add(node: ast.expr, objects: set[str], attributes: set[tuple[str, str]]) -> None:
    # `table[a][b].append(c)` changes what `table` holds.
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name):
        objects.add(node.id)
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        attributes.add((node.value.id, node.attr))
