"""Settings that no run of a program comes by: in a branch that is never taken, whoever calls its function."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence

from convlint.model.location import Location
from convlint.readers.python.programs.bodies import local_names
from convlint.readers.python.programs.closure import Imports
from convlint.readers.python.programs.constants import literal
from convlint.readers.python.programs.segments import Segment, parts
from convlint.readers.python.programs.unit import Function, Unit
from convlint.readers.python.walking import every

_PATH = re.compile(r"[\w.:/]+")  # a string that a registry, or importlib, may take for a function
_SEPARATOR = re.compile(r"[.:/]")
_SETS_GLOBALS = re.compile(rb"(?<![\w.])(?:exec|execfile|globals|eval)\s*\(|\bsys\.modules\b|\bimport_module\b")
Place = tuple[str, int, int]  # path, line and column


class Passed:
    """What walks through programs have passed: calls that they followed, and branches that they left out."""

    def __init__(self) -> None:
        self.calls: set[Place] = set()  # of the name that is called
        self._branches: dict[tuple[str, int, int], frozenset[str]] = {}

    def call(self, name: ast.expr, unit: Unit) -> None:
        """A call of a function that was followed with what it is given."""
        self.calls.add((unit.path, name.lineno, name.col_offset))

    def branch(self, body: Sequence[ast.stmt], test: ast.expr, unit: Unit) -> None:
        """A branch that the known outcome of its test leaves out."""
        if body:
            names = frozenset(each.id for each in every(test) if isinstance(each, ast.Name))
            self._branches[unit.path, body[0].lineno, body[-1].end_lineno or body[-1].lineno] = names

    def left_out(self, at: Location) -> frozenset[str] | None:
        """The names in the test of the branch that a place lies in; None where it lies in none that was left out."""
        line = at.line or 0
        return next(
            (
                names
                for (path, first, last), names in self._branches.items()
                if path == at.path and first <= line <= last
            ),
            None,
        )


class Skipped:
    """Tells for one program, by all that it may reach, what it surely never comes by."""

    def __init__(self, reached: Iterable[Segment], passed: Passed, imports: Imports) -> None:
        self._reached, self._passed = tuple(reached), passed
        self._renamed = {
            each.attr
            for path in dict.fromkeys(each.path for each in self._reached)
            for each in imports.of(path)
            if each.name not in ("*", each.attr)
        }
        self._sure: dict[int, bool] = {}
        self._open = any(each.has(_SETS_GLOBALS) for each in self._reached)  # names may change behind one's back

    def never(self, segment: Segment, at: Location) -> bool:
        """Whether a place in a segment, which the walk did not come by, lies in a branch that is never taken."""
        names = None if self._open else self._passed.left_out(at)
        return names is not None and not self._set_from_outside(names, segment) and self._as_followed(segment)

    def _set_from_outside(self, names: frozenset[str], segment: Segment) -> bool:
        """Whether a module-level constant of the test is an attribute that something else sets."""
        if segment.kind == "module" or not names:
            return False  # its body has run before anybody can
        pattern = re.compile(rb"\.(?:%s)\s*=(?!=)" % b"|".join(re.escape(each.encode()) for each in sorted(names)))
        return any(pattern.search(each.content) for each in self._reached)

    def _as_followed(self, segment: Segment) -> bool:
        """Whether all that can run a segment was followed; the body of a module is run once."""
        if segment.kind == "module":
            return True
        if segment.kind == "class" or segment.is_method or segment.handed_over or segment.name in self._renamed:
            return False
        if id(segment) not in self._sure:
            self._sure[id(segment)] = False  # of one that calls itself
            name = segment.name.encode()
            self._sure[id(segment)] = all(
                self._only_calls(each, segment) for each in self._reached if name in each.words
            )
        return self._sure[id(segment)]

    def _only_calls(self, segment: Segment, wanted: Segment) -> bool:
        """Whether a segment says the name of `wanted` in calls alone that were followed, with what they give."""
        unit = segment.unit
        if unit is None:
            return False
        local = frozenset(local_names(segment.node)) if isinstance(segment.node, Function) else frozenset()
        nodes = list(parts(segment))
        calls = {id(node.func): node for node in nodes if isinstance(node, ast.Call)}
        return all(self._followed(calls.get(id(node)), segment) for node in nodes if _means(node, wanted, unit, local))

    def _followed(self, call: ast.Call | None, segment: Segment) -> bool:
        if call is None or (segment.path, call.func.lineno, call.func.col_offset) not in self._passed.calls:
            return False
        given: list[ast.expr] = [*call.args, *(each.value for each in call.keywords)]
        whatever = all(literal(each) is not None for each in given) and all(each.arg for each in call.keywords)
        return whatever or self._as_followed(segment)


def _means(node: ast.AST, wanted: Segment, unit: Unit, local: frozenset[str]) -> bool:
    """Whether a node may mean the function `wanted`: anything of its name that does not surely mean something else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        text = node.value
        return (
            text.endswith(wanted.name)
            and _PATH.fullmatch(text) is not None
            and _SEPARATOR.split(text)[-1] == wanted.name
        )
    if isinstance(node, ast.Name):
        if node.id != wanted.name or node.id in local or not isinstance(node.ctx, ast.Load):
            return False
    elif not isinstance(node, ast.Attribute) or node.attr != wanted.name:
        return False
    named = unit.named(node, local)
    if named.unit is not None and named.node is not None:
        return named.unit.path == wanted.path and named.node.lineno == wanted.line
    return not (named.full or named.path)
