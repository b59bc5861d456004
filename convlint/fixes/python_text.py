"""Edits of Python source that change a live model's layers: literals and keywords where it constructs them.

A width changes everywhere that states it, or nowhere: in all layers that share it, and in the norms between them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import cache, partial
from pathlib import PurePath

from msgspec import Struct

from convlint.fixes.edits import Edit
from convlint.fixes.python.constructors import CONVOLUTIONS, DEFAULTS, NORMS, Read, argument, opened, origin
from convlint.fixes.python.rewriting import rewritten
from convlint.fixes.python.source import Rewrites
from convlint.fixes.python.statements import OF_A_NORM, Asked, Constructed, ConstructorCall, Statement, Statements
from convlint.model.errors import InputFault
from convlint.model.network import Network
from convlint.model.report import Scalar


class PythonEdits(Struct, frozen=True):
    """What to change in the bytes of which file, by its path; and what cannot be changed, with the reason.

    `in_code` is a reason that names a line which would have to change; empty where there is none.
    """

    edits: Mapping[str, tuple[Edit, ...]]
    refused: Mapping[Asked, str]
    in_code: str = ""


class _ParameterEdit(Struct, frozen=True):
    """What changes at one place for one parameter, and all that depends on it."""

    path: str
    rewrites: Rewrites
    asked: frozenset[Asked]


class PythonEditor:
    """The code of one network; `read` gives a file by the path that layers have, None where it cannot be read."""

    def __init__(self, network: Network, read: Read) -> None:
        self._constructed = Constructed(network)
        self._opened = cache(partial(opened, read))

    def edits(self, sets: Mapping[int, Mapping[str, Scalar]]) -> PythonEdits:
        """The edits after which the layers, by index, are what `sets` says: its widths complete."""
        statements = Statements(self._constructed, sets)
        refused, tied = dict(statements.refused), list(statements.tied)
        by_place: dict[tuple[ConstructorCall | None, str], list[Statement]] = {}
        for each in statements.found:
            by_place.setdefault((each.site, each.parameter), []).append(each)
        places = []
        in_code: list[str] = []
        for (site, _), several in by_place.items():
            asked: frozenset[Asked] = frozenset().union(*(each.asked for each in several))
            tied.append(asked)
            made = None if site is None else self._rewrites(site, several[0])
            if site is not None and isinstance(made, str):
                found = f"{site.path}:{site.span[0]}: {made}"
            else:
                found = _unlike(statements, several)
            if site is not None and isinstance(made, Rewrites) and not found:
                places.append(_ParameterEdit(site.path, made, asked))
            if found:
                in_code += [found] if site is not None else []
                refused |= {each: found for each in asked if each not in refused}
        # A file that cannot be edited refuses its places, and with them whatever is tied to them in other files.
        while True:
            _spread(refused, tied)
            edits, failing = self._by_file([place for place in places if not place.asked & refused.keys()])
            if not failing:
                return PythonEdits(edits, refused, next(iter(in_code), ""))
            refused |= failing

    def _rewrites(self, site: ConstructorCall, statement: Statement) -> Rewrites | str:
        """The rewrites after which a call states the new values, or why there are none."""
        if PurePath(site.path).is_absolute() or not site.path.endswith(".py"):  # paths of own code are relative
            return "it is no code of the project"
        source = self._opened(site.path)
        if isinstance(source, str):
            return source
        call = source[0].call_at(site.span)
        if call is None:
            return "there is no call, or more than one"
        of_norm = statement.parameter == OF_A_NORM
        parameters = (NORMS if of_norm else CONVOLUTIONS).get(source[1].torch_class(call) or "")
        name = parameters[-1] if of_norm and parameters else statement.parameter
        if parameters is not None and name not in parameters:
            return Rewrites({}, {})  # a lazy layer or norm takes it from its input
        given = argument(call, name, parameters or ())
        if given.unclear:
            return f"{name} {given.unclear}"
        if given.value is None and parameters is not None and all(each == DEFAULTS.get(name) for each in statement.old):
            new = statement.new[0] if len(set(statement.new)) == 1 else statement.new
            return Rewrites({}, {call: {name: new}})
        if given.value is None:
            called = ast.unparse(call.func)[:60]
            return f"{name} is not given" if parameters else f"which sizes `{called}` takes is not known"
        literals = _literals(given.value, statement)
        if literals is not None:
            return Rewrites(literals, {})
        return f"{name} comes from {origin(source[0], given.value, site.path)}"

    def _by_file(self, places: Iterable[_ParameterEdit]) -> tuple[dict[str, tuple[Edit, ...]], dict[Asked, str]]:
        """The edits of all places by file; where a file cannot be edited, what depends on it is refused."""
        by_path: dict[str, list[_ParameterEdit]] = {}
        for place in places:
            by_path.setdefault(place.path, []).append(place)
        edits: dict[str, tuple[Edit, ...]] = {}
        failing: dict[Asked, str] = {}
        for path, several in by_path.items():
            source = self._opened(path)
            assert not isinstance(source, str)  # it has places
            try:
                made = rewritten(source[0], _merged(place.rewrites for place in several))
            except InputFault as fault:
                failing |= {each: f"{path}: {fault.message}" for place in several for each in place.asked}
                continue
            if made:
                edits[path] = made
        return edits, failing


def _unlike(statements: Statements, several: list[Statement]) -> str:
    """Why one constructor call cannot state all that is wanted of it; empty if it can."""
    network, first = statements.network, several[0]
    if first.site is None:
        if first.layer is not None:
            return f"it is not known which line constructs {network.layers[first.layer].name}"
        name = network.operations[first.operation or 0].name
        return f"{name} has as many weights, and it is not known which line of the project says how many"
    built = statements.constructed.built[first.site]
    where = f"{first.site.path}:{first.site.span[0]} constructs"
    if any((each.old, each.new) != (first.old, first.new) for each in several):
        return f"{where} several layers, which would have to differ in {first.parameter}"
    layers = {each.layer for each in several}
    for index in built.layers:
        if index not in layers:
            return f"{where} {network.layers[index].name} too, whose {first.parameter} would stay"
    operations = {each.operation for each in several}
    if first.parameter in (OF_A_NORM, "out_channels") and not operations.issuperset(built.operations):
        return f"{where} norms too that would stay as they are"
    return ""


def _spread(refused: dict[Asked, str], tied: Iterable[frozenset[Asked]]) -> None:
    """Refuses whatever is tied to something refused, for the same reason."""
    sets_of: dict[Asked, list[frozenset[Asked]]] = {}
    for together in tied:
        for each in together:
            sets_of.setdefault(each, []).append(together)
    pending = list(refused)
    while pending:
        reached = pending.pop()
        for together in sets_of.pop(reached, ()):
            new = together - refused.keys()
            refused |= dict.fromkeys(new, refused[reached])
            pending += new


def _literals(value: ast.expr, statement: Statement) -> dict[ast.Constant, int | bool] | None:
    """The literals to change in an argument, which are now what the statement says; None where they are not."""
    old, new = statement.old, statement.new
    if isinstance(value, ast.Constant) and len(set(old)) == len(set(new)) == 1:
        parts: list[ast.expr] = [value]
        old, new = old[:1], new[:1]
    elif isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(old):
        parts = value.elts
    else:
        return None
    found = {}
    for part, before, after in zip(parts, old, new, strict=True):
        if not isinstance(part, ast.Constant) or type(part.value) is not type(before) or part.value != before:
            return None
        if before != after:
            found[part] = after
    return found


def _merged(several: Iterable[Rewrites]) -> Rewrites:
    """All of them at once. Raises InputFault where one literal would have to be two numbers."""
    literals: dict[ast.Constant, int | bool | tuple[int, ...]] = {}
    keywords: dict[ast.Call, dict[str, int | bool | tuple[int, ...]]] = {}
    for each in several:
        for node, value in each.literals.items():
            if literals.setdefault(node, value) != value:
                raise InputFault("one number would have to be two")
        for call, given in each.keywords.items():
            keywords.setdefault(call, {}).update(given)
    return Rewrites(literals, keywords)
