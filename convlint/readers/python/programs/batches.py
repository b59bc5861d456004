"""What becomes of the images of a batch where a program trains on them: scaled or cut to a size that changes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from convlint.readers.python.programs.segments import Segment, parts
from convlint.readers.python.walking import every

_FUNCTIONS = frozenset((
    "interpolate", "resize", "upsample", "upsample_bilinear", "upsample_nearest", "resized_crop", "center_crop",
    "random_crop", "adaptive_avg_pool2d", "adaptive_max_pool2d",
))  # fmt: skip
_CLASSES = frozenset((
    "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d", "Resize", "CenterCrop", "RandomCrop",
    "RandomResizedCrop", "AdaptiveAvgPool2d", "AdaptiveMaxPool2d",
))  # fmt: skip
_SIZES = frozenset(("size", "scale_factor", "output_size"))
_SCALES = re.compile(rb"\b(?:%s)\b" % "|".join(sorted(_FUNCTIONS | _CLASSES)).encode())
_CUTS = re.compile(rb"\[[^\]\n]*(?:,|\.\.\.)[^\]\n]*:")
_TRAINS = re.compile(rb"\bbackward\b|\btraining_step\b")
_OF_MODULES = frozenset(
    ("forward", "backward", "__init__", "__call__")
)  # they scale features, or are no code of a loop
_COUNTING = frozenset(("int", "float", "round", "tuple", "list", "min", "max"))


class _Step(Struct, frozen=True):
    """What the code of a segment does with each batch: whether it scales, and the functions that it calls."""

    scales: bool
    called: frozenset[str]


class Batches:
    """Looks each segment through once."""

    def __init__(self) -> None:
        self._steps: dict[int, _Step] = {}
        self._bodies: dict[int, bool] = {}

    def rescaled(self, reached: Sequence[Segment]) -> bool:
        """Whether a loop scales or cuts what it trains on to a size that nobody knows, itself or by what it calls."""
        steps = [self._step(each) for each in reached]
        if any(step.scales for step in steps):
            return True
        called = frozenset().union(*(step.called for step in steps)) - _OF_MODULES
        return any(self._body(each) for each in reached if each.kind == "function" and each.name in called)

    def _step(self, segment: Segment) -> _Step:
        if id(segment) not in self._steps:
            self._steps[id(segment)] = _step(segment)
        return self._steps[id(segment)]

    def _body(self, segment: Segment) -> bool:
        if id(segment) not in self._bodies:
            self._bodies[id(segment)] = _may_scale(segment) and _scale(parts(segment))
        return self._bodies[id(segment)]


def _may_scale(segment: Segment) -> bool:
    return segment.has(_SCALES) or segment.has(_CUTS)


def _step(segment: Segment) -> _Step:
    trains = segment.has(_TRAINS) and segment.name not in _OF_MODULES
    if not trains and not segment.has(_SCALES):
        return _Step(scales=False, called=frozenset())
    loops = [node for node in parts(segment) if isinstance(node, ast.For | ast.AsyncFor | ast.While)]
    scales = any(_scales_own(loop) for loop in loops if isinstance(loop, ast.For))
    code = list(_trained(segment, loops)) if trains else []
    called = frozenset(_name(node) for node in code if isinstance(node, ast.Call))
    return _Step(scales=scales or (_may_scale(segment) and _scale(code)), called=called)


def _trained(segment: Segment, loops: list[ast.For | ast.AsyncFor | ast.While]) -> Iterator[ast.AST]:
    """The code that runs for each batch: loops with a backward pass, or all of a function that is called in one."""
    inside = [node for loop in loops for node in every(loop) if _passes_back(node)]
    for loop in loops:
        if any(map(_passes_back, every(loop))):
            yield from every(loop)
    if segment.kind == "function":
        looped = {id(node) for node in inside}
        if segment.name == "training_step" or any(
            _passes_back(node) and id(node) not in looped for node in parts(segment)
        ):
            yield from parts(segment)


def _passes_back(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _name(node) in ("backward", "manual_backward")


def _scales_own(loop: ast.For) -> bool:
    """Whether a loop of any kind scales what it goes through."""
    names = {each.id for each in every(loop.target) if isinstance(each, ast.Name)}
    return any(
        isinstance(node, ast.Call) and node.args and _whose(node.args[0]) in names and _scales(node)
        for node in every(loop)
    )


def _scale(code: Iterable[ast.AST]) -> bool:
    nodes = list(code)
    pasted = {
        id(inner)
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript)
        for inner in every(node.value)
    }  # a part of an image put into a part of another: none changes its size
    return any(
        _scales(node) if isinstance(node, ast.Call) else id(node) not in pasted and _cuts(node) for node in nodes
    )


def _scales(call: ast.Call) -> bool:
    name = _name(call)
    if name not in _FUNCTIONS and name not in _CLASSES:
        return False
    named = [each.value for each in call.keywords if each.arg in _SIZES]
    given = call.args if name in _CLASSES else call.args[1:] or ([] if named else call.args)
    return not all(map(_is_stated, (*given, *named)))


def _cuts(node: ast.AST) -> bool:
    """Whether it is `images[:, :, :n]`, read."""
    match node:
        case ast.Subscript(slice=ast.Tuple(elts=places), ctx=ast.Load()):
            filled = next(
                (at for at, each in enumerate(places) if isinstance(each, ast.Constant) and each.value is ...), 1
            )
            return any(isinstance(each, ast.Slice) and not _is_stated(each) for each in places[filled + 1 :])
        case _:
            return False


def _name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _whose(node: ast.expr) -> str:
    """The name that `name.cuda().float()` begins with."""
    while isinstance(node, ast.Attribute) or (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_stated(node: ast.AST) -> bool:
    """Whether a size is written there, or is that of another tensor: what the model gives is brought to the labels'."""
    match node:
        case ast.Attribute(attr="shape") | ast.Call(func=ast.Attribute(attr="size")):
            return True
        case ast.Name(id=name):
            return name in _COUNTING
        case _:
            return all(map(_is_stated, ast.iter_child_nodes(node)))
