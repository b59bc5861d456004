"""Where a value comes from that is no literal in its place: what the syntax alone can tell, in words."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from convlint.fixes.python.source import PythonSource

_MOST_TEXT = 40
_Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_OWN_SCOPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def origin(source: PythonSource, value: ast.expr, path: str) -> str:
    """Such as "`width` at net.py:12", for an expression of a module that is shown as `path`."""
    if isinstance(value, ast.Constant):
        return _quoted(source, value)
    scopes = _scopes_around(source, value)
    if isinstance(value, ast.Name):
        return _of_name(source, value.id, scopes, path)
    if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name):
        return _of_attribute(source, value, scopes, path)
    return f"the expression {_quoted(source, value)}"


def _of_name(source: PythonSource, name: str, scopes: list[_Scope], path: str) -> str:
    for scope in scopes:
        if isinstance(scope, ast.ClassDef) and scope is not scopes[0]:
            continue  # methods do not see what their class binds
        if isinstance(scope, _Function) and (parameter := _parameter(scope, name)) is not None:
            return f"`{name}`, a parameter {_of_function(scope, scopes)}{_default(source, scope, name)} at " + (
                f"{path}:{parameter.lineno}"
            )
        bound = [(node, given) for node, given in _bound(scope) if isinstance(node, ast.Name) and node.id == name]
        if len(bound) == 1:
            return _bound_once(f"`{name}`", *bound[0], path)
        if bound:
            return f"`{name}`, which several lines set, the first of them {path}:{bound[0][0].lineno}"
    return f"`{name}`, which this file does not set"


def _of_attribute(source: PythonSource, value: ast.Attribute, scopes: list[_Scope], path: str) -> str:
    text = _quoted(source, value)
    holder = next((scope for scope in scopes if isinstance(scope, ast.ClassDef)), None)
    if holder is None or not isinstance(value.value, ast.Name) or value.value.id != "self":
        return f"the attribute {text}"
    bound: list[tuple[ast.expr, ast.expr | None]] = []
    for node in ast.walk(holder):
        for target, given in _targets(node):
            own = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
            if own and isinstance(target, ast.Attribute) and target.attr == value.attr:
                bound.append((target, given))
    bound += [(node, given) for node, given in _bound(holder) if isinstance(node, ast.Name) and node.id == value.attr]
    return _bound_once(text, *bound[0], path) if len(bound) == 1 else f"the attribute {text}"


def _bound_once(text: str, node: ast.expr, given: ast.expr | None, path: str) -> str:
    return f"{text}{'' if given is not None else ', which changes,'} at {path}:{node.lineno}"


def _scopes_around(source: PythonSource, value: ast.expr) -> list[_Scope]:
    """The functions and classes that an expression stands in, from the innermost to the module."""
    found: list[_Scope] = [source.tree]
    pending: list[ast.AST] = list(ast.iter_child_nodes(source.tree))
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.stmt, ast.expr)) and not _encloses(node, value):
            continue
        if isinstance(node, _OWN_SCOPE):
            found.append(node)
        pending = list(ast.iter_child_nodes(node)) if isinstance(node, (ast.stmt, ast.expr)) else [
            *pending, *ast.iter_child_nodes(node)
        ]  # fmt: skip
    return found[::-1]


def _encloses(node: ast.stmt | ast.expr, value: ast.expr) -> bool:
    end, last = (node.end_lineno, node.end_col_offset), (value.end_lineno, value.end_col_offset)
    begun = (node.lineno, node.col_offset) <= (value.lineno, value.col_offset)
    return begun and None not in end and end >= last


def _parameter(function: _Function, name: str) -> ast.arg | None:
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return next((each for each in every if each is not None and each.arg == name), None)


def _default(source: PythonSource, function: _Function, name: str) -> str:
    given = function.args
    plain = [*given.posonlyargs, *given.args]
    pairs = [
        *zip(reversed(plain), reversed(given.defaults), strict=False),
        *zip(given.kwonlyargs, given.kw_defaults, strict=True),
    ]
    found = next((default for each, default in pairs if each.arg == name and default is not None), None)
    return "" if found is None else f" ({_quoted(source, found)} where it is not given)"


def _of_function(function: _Function, scopes: list[_Scope]) -> str:
    if isinstance(function, ast.Lambda):
        return "of a lambda"
    outer = scopes[scopes.index(function) + 1]
    return f"of `{outer.name}.{function.name}`" if isinstance(outer, ast.ClassDef) else f"of `{function.name}`"


def _bound(scope: _Scope) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """What a scope binds itself, with the value, in order; None where a loop or the like gives it."""
    pending: list[ast.AST] = list(reversed(list(ast.iter_child_nodes(scope))))
    while pending:
        node = pending.pop()
        yield from _targets(node)
        if not isinstance(node, _OWN_SCOPE):
            pending += reversed(list(ast.iter_child_nodes(node)))


def _targets(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _unpacked(target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            yield target, value
        case ast.AugAssign(target=target):
            yield target, None
        case ast.For(target=target) | ast.AsyncFor(target=target) | ast.comprehension(target=target):
            yield from _unpacked(target, None)
        case ast.withitem(optional_vars=ast.expr() as target):
            yield from _unpacked(target, None)
        case _:
            pass


def _unpacked(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target, value
        return
    values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
    whole = len(values) == len(target.elts)
    for number, each in enumerate(target.elts):
        yield from _unpacked(each, values[number] if whole else None)


def _quoted(source: PythonSource, value: ast.expr) -> str:
    start, end = source.extent(value)
    text = " ".join(source.text[start:end][: 2 * _MOST_TEXT].split())
    return f"`{text}`" if len(text) <= _MOST_TEXT and end - start <= 2 * _MOST_TEXT else f"`{text[:_MOST_TEXT]}...`"
