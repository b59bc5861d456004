"""Whether a program trains on images that grow: a loop makes its data anew, each time in another size."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from convlint.readers.python.programs.segments import Segment, parts
from convlint.readers.python.programs.unit import Function
from convlint.readers.python.walking import every

_SIZING = frozenset(("Resize", "Scale", "CenterCrop", "RandomCrop", "RandomResizedCrop", "RandomSizedCrop"))
_SIZES = re.compile(rb"\b(?:%s)\b" % "|".join(sorted(_SIZING)).encode())
Sized = dict[str, tuple[Function, frozenset[str]]]  # functions by name: the parameters that are sizes of images


class Growth:
    """Looks each segment through once for what its loops change and for the sizes that it states."""

    def __init__(self) -> None:
        self._sized: dict[int, frozenset[str]] = {}
        self._changed: dict[int, list[tuple[list[ast.Call], frozenset[str]]]] = {}

    def grows(self, reached: Sequence[Segment]) -> bool:
        """Whether a loop hands what it changes itself to a transform, or to a function that hands it to one."""
        stating = [each for each in reached if each.has(_SIZES)]
        functions: Sized = {
            each.name: (each.node, self._stated(each))
            for each in stating
            if isinstance(each.node, Function) and self._stated(each)
        }
        named = {name.encode() for name in functions}
        return any(
            self._in_loops(each, functions) for each in reached if each.has(_SIZES) or not named.isdisjoint(each.words)
        )

    def _stated(self, segment: Segment) -> frozenset[str]:
        """Names that sizes in a segment are stated by."""
        if id(segment) not in self._sized:
            calls = (each for each in parts(segment) if isinstance(each, ast.Call) and _name(each) in _SIZING)
            self._sized[id(segment)] = frozenset(name for each in calls for name in _names(_given(each)))
        return self._sized[id(segment)]

    def _in_loops(self, segment: Segment, functions: Sized) -> bool:
        if id(segment) not in self._changed:
            loops = (each for each in parts(segment) if isinstance(each, ast.For | ast.While))
            self._changed[id(segment)] = [_loop(each) for each in loops]
        return any(
            not changed.isdisjoint(_names(_sizes(call, functions)))
            for calls, changed in self._changed[id(segment)]
            for call in calls
        )


def _loop(loop: ast.For | ast.While) -> tuple[list[ast.Call], frozenset[str]]:
    """The calls in a loop, and the names that it binds."""
    nodes = list(every(loop))
    bound = frozenset(each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
    return [each for each in nodes if isinstance(each, ast.Call)], bound


def _sizes(call: ast.Call, functions: Sized) -> Iterator[ast.expr]:
    """What a call states as a size of images."""
    name = _name(call)
    if name in _SIZING:
        yield from _given(call)
    elif name in functions:
        function, sized = functions[name]
        parameters = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        if parameters[:1] == ["self"]:
            del parameters[0]
        yield from (value for parameter, value in zip(parameters, call.args, strict=False) if parameter in sized)
        yield from (each.value for each in call.keywords if each.arg in sized)


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(each.value for each in call.keywords if each.arg in ("size", "height", "width"))]


def _names(nodes: Iterable[ast.expr]) -> Iterator[str]:
    return (each.id for node in nodes for each in every(node) if isinstance(each, ast.Name))


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
