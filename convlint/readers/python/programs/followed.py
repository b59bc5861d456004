"""What a program surely comes by: code that is reached from its entry by names that lead to it, and by no others.

Reach goes by the words alone, so that it misses nothing: two functions of one name are both reached, and so is what
another file does below its own guard. That is right for what may speak against a finding, and too much for what a
finding rests on. This is a part of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from convlint.readers.python.programs.bodies import local_names
from convlint.readers.python.programs.segments import Segment, parts
from convlint.readers.python.programs.unit import Function, Unit, Units
from convlint.readers.python.source_file import is_guard

Place = tuple[str, int]  # path and line of a `def` or a `class`


class Imported(Segment):
    """The body of a module that another one imports: all but what stands below its guard."""

    def __init__(self, units: Units, module: Segment) -> None:
        super().__init__(units, module.path)
        self.lines = module.lines

    @property
    def body(self) -> list[ast.stmt]:
        """Its statements without those of the guard."""
        return [each for each in super().body if not is_guard(each)]


class Followed:
    """Follows programs by their names; what a segment names is found once for all of them."""

    def __init__(self, units: Units) -> None:
        self._units = units
        self._imported: dict[str, Imported] = {}
        self._named: dict[int, frozenset[Place]] = {}

    def of(self, entry: str, reached: Iterable[Segment]) -> list[Segment]:
        """The segments among `reached` that the program which begins with `entry` surely comes by."""
        waiting: list[Segment] = []
        others: dict[Place, Segment] = {}
        methods: dict[tuple[str, str], list[Segment]] = {}
        for each in reached:
            if each.kind == "module":
                waiting.append(each if each.path == entry else self._view(each))
                continue
            others[each.path, each.line] = each
            if each.is_method:
                methods.setdefault((each.path, each.cls), []).append(each)
            elif each.handed_over:
                waiting.append(each)
        found: dict[int, Segment] = {}
        said: set[bytes] = set()
        live: list[Segment] = []
        while waiting:
            segment = waiting.pop()
            if id(segment) in found:
                continue
            found[id(segment)] = segment
            said |= segment.words
            if segment.kind == "class":
                live += methods.get((segment.path, segment.name), ())
            waiting += [others[place] for place in self._leads_to(segment) if place in others]
            waiting += [each for each in live if _runs(each, said)]
            live = [each for each in live if not _runs(each, said)]
        return list(found.values())

    def _view(self, module: Segment) -> Imported:
        if module.path not in self._imported:
            self._imported[module.path] = Imported(self._units, module)
        return self._imported[module.path]

    def _leads_to(self, segment: Segment) -> frozenset[Place]:
        """The functions and classes that a segment names, wherever they stand."""
        if id(segment) not in self._named:
            unit = segment.unit
            self._named[id(segment)] = frozenset(_places(segment, unit)) if unit is not None else frozenset()
        return self._named[id(segment)]


def _places(segment: Segment, unit: Unit) -> Iterable[Place]:
    node = segment.node if segment.kind != "module" else None
    local = frozenset(local_names(node)) if isinstance(node, Function) else frozenset[str]()
    bases: Sequence[ast.AST] = node.bases if isinstance(node, ast.ClassDef) else ()
    for each in (*parts(segment), *bases):
        if isinstance(each, ast.Name | ast.Attribute) and isinstance(each.ctx, ast.Load):
            named = unit.named(each, local)
            if named.unit is not None and named.node is not None:
                yield named.unit.path, named.node.lineno


def _runs(method: Segment, said: set[bytes]) -> bool:
    """Whether a method of a class that is made is run: something says its name, or Python does by itself."""
    return method.name.encode() in said or method.name.startswith("__") or method.handed_over
