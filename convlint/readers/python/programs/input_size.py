"""Decide whether all images that a program trains on have one size, with the evidence for it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from convlint.model.location import Location
from convlint.readers.python.programs.segments import Segment, parts
from convlint.readers.python.programs.transforms import data_sets
from convlint.readers.python.programs.unit import Definition, SourceUnit, last_name, statements
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
    """The handling of batches in a segment: whether it scales them, and the functions that it calls."""

    scales: bool
    called: frozenset[str]


def rescaled(reached: Sequence[Segment]) -> bool:
    """Whether a training loop scales or crops its batches to an unknown size, itself or in functions it calls."""
    steps = [each.once(_step) for each in reached]
    if any(step.scales for step in steps):
        return True
    called = frozenset().union(*(step.called for step in steps)) - _OF_MODULES
    return any(each.once(_scales_itself) for each in reached if each.kind == "function" and each.name in called)


def _scales_itself(segment: Segment) -> bool:
    return _may_scale(segment) and _scale(parts(segment))


def _may_scale(segment: Segment) -> bool:
    return segment.has(_SCALES) or segment.has(_CUTS)


def _step(segment: Segment) -> _Step:
    trains = segment.has(_TRAINS) and segment.name not in _OF_MODULES
    if not trains and not segment.has(_SCALES):
        return _Step(scales=False, called=frozenset())
    loops = [node for node in parts(segment) if isinstance(node, ast.For | ast.AsyncFor | ast.While)]
    scales = any(_scales_own(loop) for loop in loops if isinstance(loop, ast.For))
    code = list(_trained(segment, loops)) if trains else []
    called = frozenset(last_name(node.func) for node in code if isinstance(node, ast.Call))
    return _Step(scales=scales or (_may_scale(segment) and _scale(code)), called=called)


def _trained(segment: Segment, loops: list[ast.For | ast.AsyncFor | ast.While]) -> Iterator[ast.AST]:
    """Yield the code that runs for each batch: loops with a backward pass, or a function called from one."""
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
    return isinstance(node, ast.Call) and last_name(node.func) in ("backward", "manual_backward")


def _scales_own(loop: ast.For) -> bool:
    """Whether a loop scales its own items."""
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
    }  # pasting a crop into another image changes no size
    return any(
        _scales(node) if isinstance(node, ast.Call) else id(node) not in pasted and _cuts(node) for node in nodes
    )


def _scales(call: ast.Call) -> bool:
    name = last_name(call.func)
    if name not in _FUNCTIONS and name not in _CLASSES:
        return False
    named = [each.value for each in call.keywords if each.arg in _SIZES]
    given = call.args if name in _CLASSES else call.args[1:] or ([] if named else call.args)
    return not all(map(_is_stated, (*given, *named)))


def _cuts(node: ast.AST) -> bool:
    """Whether the node reads `images[:, :, :n]`."""
    match node:
        case ast.Subscript(slice=ast.Tuple(elts=places), ctx=ast.Load()):
            filled = next(
                (at for at, each in enumerate(places) if isinstance(each, ast.Constant) and each.value is ...), 1
            )
            return any(isinstance(each, ast.Slice) and not _is_stated(each) for each in places[filled + 1 :])
        case _:
            return False


def _whose(node: ast.expr) -> str:
    """Return the name at the start of `name.cuda().float()`."""
    while isinstance(node, ast.Attribute) or (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_stated(node: ast.AST) -> bool:
    """Whether a size is a literal, or that of another tensor, as when outputs are scaled to the labels' size."""
    match node:
        case ast.Attribute(attr="shape") | ast.Call(func=ast.Attribute(attr="size")):
            return True
        case ast.Name(id=name):
            return name in _COUNTING
        case _:
            return all(map(_is_stated, ast.iter_child_nodes(node)))


_SIZING = frozenset(("Resize", "Scale", "CenterCrop", "RandomCrop", "RandomResizedCrop", "RandomSizedCrop"))
_GROWTH_SIZES = re.compile(rb"\b(?:%s)\b" % "|".join(sorted(_SIZING)).encode())
Sized = dict[str, tuple[Definition, frozenset[str]]]  # functions by name, with the parameters that are image sizes


def grows(reached: Sequence[Segment]) -> bool:
    """Whether a loop passes a variable that it changes as a size to a transform, directly or through a function."""
    stating = [each for each in reached if each.has(_GROWTH_SIZES)]
    functions: Sized = {
        each.name: (each.node, each.once(_stated))
        for each in stating
        if isinstance(each.node, Definition) and each.once(_stated)
    }
    named = {name.encode() for name in functions}
    return any(
        not changed.isdisjoint(_names(_sizes(call, functions)))
        for each in reached
        if each.has(_GROWTH_SIZES) or not named.isdisjoint(each.words)
        for calls, changed in each.once(_loops)
        for call in calls
    )


def _stated(segment: Segment) -> frozenset[str]:
    """Return the names in the sizes of a segment's transforms."""
    calls = (each for each in parts(segment) if isinstance(each, ast.Call) and last_name(each.func) in _SIZING)
    return frozenset(name for each in calls for name in _names(_given(each)))


def _loops(segment: Segment) -> list[tuple[list[ast.Call], frozenset[str]]]:
    return [_loop(each) for each in parts(segment) if isinstance(each, ast.For | ast.While)]


def _loop(loop: ast.For | ast.While) -> tuple[list[ast.Call], frozenset[str]]:
    """Return the calls in a loop, and the names that it binds."""
    nodes = list(every(loop))
    bound = frozenset(each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
    return [each for each in nodes if isinstance(each, ast.Call)], bound


def _sizes(call: ast.Call, functions: Sized) -> Iterator[ast.expr]:
    """Yield the arguments of a call that are sizes of images."""
    name = last_name(call.func)
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


Evidence = tuple[tuple[str, Location], ...]

# Text of code that may vary the size outside of the data set: it makes the answer unknown
_DOUBT = re.compile(
    rb"multi_?scale|random_?resize(?!d)|GroupedBatchSampler|ResizeShortestEdge|RandomShortestSize|ScaleJitter|"
    rb"progressive_resiz|grow_size|random_size|sizes?\s*=\s*random|img_?scales|variable_size|keep_ratio|"
    rb"interpolate\([^)\n]*rand|bucket",
    re.IGNORECASE,
)
_COLLATES = re.compile(rb"collate_fn(?<!\wcollate_fn)\b")  # `\b` in front would make the search far slower


def input_size(reached: Sequence[Segment], followed: Callable[[], Sequence[Segment]]) -> tuple[bool | None, Evidence]:
    """Return whether all images have one size, None if unknown, and the data sets and transforms that show it.

    Any code in `reached` can contradict it; only code in `followed`, which surely runs, is evidence for it.
    """
    size, _ = _judged(reached)
    again, evidence = _judged(followed()) if size is not None else (None, ())
    return (size, evidence) if again == size else (None, ())


def _judged(reached: Sequence[Segment]) -> tuple[bool | None, Evidence]:
    varied = next(filter(None, (each.once(_collated) for each in reached)), ())
    found = data_sets(reached)
    if varied:  # of this program's data only if there are no others
        return (None, ()) if any(each.size == "fixed" for each in found) else (False, varied)
    varying = [each for each in found if each.size == "varying"]
    if varying and len(varying) == len(found):
        return False, tuple(each.settled for each in varying if each.settled is not None)
    if not found or any(each.size != "fixed" for each in found) or any(each.has(_DOUBT) for each in reached):
        return None, ()
    if rescaled(reached) or grows(reached):
        return None, ()
    if any(each.has(_COLLATES) for each in reached) and not all(each.settled for each in found):
        return None, ()
    shown = [one for each in found for one in ((each.name, each.at), each.settled) if one is not None]
    return True, tuple(dict.fromkeys(shown))


def _collated(segment: Segment) -> Evidence:
    """Return a loader whose `collate_fn` makes lists, as it must if images of a batch differ in size."""
    unit = segment.unit if segment.has(_COLLATES) else None
    for call in parts(segment) if unit is not None else ():
        if unit is None or not isinstance(call, ast.Call):
            continue
        if any(each.arg == "collate_fn" and _lists(each.value, unit) for each in call.keywords):
            return (("collate_fn makes lists", unit.file.locate(call)),)
    return ()


def _lists(value: ast.expr, unit: SourceUnit) -> bool:
    """Whether a function only does `return tuple(zip(*batch))`."""
    if isinstance(value, ast.Lambda):
        return _zips(value.body)
    named = unit.named(value)
    if not isinstance(named.node, ast.FunctionDef):
        return False
    returns = [each.value for each in statements(named.node.body) if isinstance(each, ast.Return)]
    return len(returns) == 1 and len(named.node.body) <= 2 and returns[0] is not None and _zips(returns[0])


def _zips(node: ast.expr) -> bool:
    return ast.unparse(node).replace(" ", "").startswith(("tuple(zip(*", "list(zip(*"))
