"""The transforms that a data set is given or has in its class, found where they are written."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from convlint.model.location import Location
from convlint.readers.python.programs.transforms import Size, is_transform, size_after
from convlint.readers.python.programs.unit import Unit, bindings, statements
from convlint.readers.python.walking import every

Settled = tuple[str, Location]  # the transform that settles a size, in words, and where it stands
_MOST_HOPS = 5


def transformed(call: ast.Call, body: list[ast.stmt], unit: Unit, before: Size) -> tuple[Size, Settled | None]:
    """The size behind the transforms that a data set is given, where they can be found."""
    results: list[tuple[Size, Settled | None]] = []
    for value in (*call.args, *(each.value for each in call.keywords)):
        for node, where in _values(value, body, unit, 0):
            chain = isinstance(node, ast.List) and any(is_transform(each, where) for each in node.elts)
            if not (chain or is_transform(node, where)):
                continue
            size, by = size_after(node, where, before)
            results.append((size, _words(by, where) if by is not None else None))
    if not results:
        return before, None
    return next((one for size in ("varying", "unknown") for one in results if one[0] == size), results[0])


def _values(node: ast.expr, body: list[ast.stmt], unit: Unit, hops: int) -> Iterator[tuple[ast.expr, Unit]]:
    """What an argument may be: itself, what its name is bound to, what a function of the repository returns."""
    if hops > _MOST_HOPS:
        return
    if isinstance(node, ast.IfExp):
        yield from _values(node.body, body, unit, hops + 1)
        yield from _values(node.orelse, body, unit, hops + 1)
    elif isinstance(node, ast.Name):
        values = _bound(node.id, body)
        if not values and node.id in unit.assigned:
            values = [each for each in unit.assigned[node.id] if each is not None]
        for each in values:
            yield from _values(each, body, unit, hops + 1)
    elif isinstance(node, ast.Subscript):
        for each, where in _values(node.value, body, unit, hops + 1):
            if isinstance(each, ast.Dict):
                yield from ((value, where) for value in _entries(each, node.slice))
    elif isinstance(node, ast.Call) and not is_transform(node, unit):
        named = unit.named(node.func)
        if isinstance(named.node, ast.FunctionDef) and named.unit is not None:
            for returned in statements(named.node.body):
                if isinstance(returned, ast.Return) and returned.value is not None:
                    yield from _values(returned.value, named.node.body, named.unit, hops + 1)
    else:
        yield node, unit


def _entries(table: ast.Dict, at: ast.expr) -> Iterator[ast.expr]:
    """What a dictionary may have at a place: all that it has, where only a run knows the place."""
    for key, value in zip(table.keys, table.values, strict=True):
        match key, at:
            case ast.Constant(value=one), ast.Constant(value=other) if one != other:
                continue
        yield value


def _bound(name: str, body: list[ast.stmt]) -> list[ast.expr]:
    """What a name is bound to in a body."""
    return [value for node in statements(body) for one, value in bindings(node) if one == name and value is not None]


def inside(node: ast.ClassDef, unit: Unit) -> tuple[Size, Settled | None]:
    """What the transforms in a data set's own class make of its images."""
    results = []
    for each in every(node):
        if isinstance(each, ast.Call) and is_transform(each, unit) and unit.full_name(each.func).endswith(".Compose"):
            size, by = size_after(each, unit)
            results.append((size, _words(by, unit) if by is not None else None))
    if not results or any(size != "fixed" for size, _ in results):
        return next((one for one in results if one[0] == "varying"), ("unknown", None))
    return results[0]


def _words(node: ast.expr, unit: Unit) -> Settled:
    text = ast.unparse(node)
    name, _, rest = text.partition("(")
    return f"{name.split('.')[-1]}({rest}" if len(text) < 80 else f"{name.split('.')[-1]}(...)", unit.file.locate(node)
