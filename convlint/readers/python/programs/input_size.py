"""Decide whether all images that a program trains on have one size, with the evidence for it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from convlint.model.location import Location
from convlint.readers.python.programs.segments import Segment, parts
from convlint.readers.python.programs.unit import (
    Bound,
    Definition,
    ResolvedName,
    SourceUnit,
    bound_in,
    statements,
    stored,
)
from convlint.readers.python.source_file import last_name
from convlint.readers.python.walking import below, every

# Code that scales batches

_FUNCTIONS = frozenset((
    "interpolate", "resize", "upsample", "upsample_bilinear", "upsample_nearest", "resized_crop", "center_crop",
    "random_crop", "adaptive_avg_pool2d", "adaptive_max_pool2d",
))  # fmt: skip
_CUTTING = _FUNCTIONS | {"crop"}
_ADDING = frozenset(("pad", "avg_pool2d", "max_pool2d", "narrow"))  # change the size of what is no feature map, too
_CLASSES = frozenset((
    "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d", "Resize", "CenterCrop", "RandomCrop",
    "RandomResizedCrop", "AdaptiveAvgPool2d", "AdaptiveMaxPool2d",
))  # fmt: skip
_SIZES = frozenset(("size", "scale_factor", "output_size"))
_SCALES = re.compile(rb"\b(?:%s)\b" % "|".join(sorted(_FUNCTIONS | _ADDING | _CLASSES)).encode())
_CUTS = re.compile(rb"\[[^\]\n]*(?:,|\.\.\.)[^\]\n]*:")
_TRAINS = re.compile(rb"\bbackward\b|\btraining_step\b")
_COLLATES = re.compile(rb"collate_fn(?<!\wcollate_fn)\b")  # `\b` in front would make the search far slower
_COLLATED_BY = re.compile(rb"collate_fn\s*=\s*(?:\w+\.)*(\w+)")
_OF_MODULES = frozenset(("forward", "backward", "__init__", "__call__"))  # scale features, or are no code of a loop
_COUNTING = frozenset(("int", "float", "round", "tuple", "list", "min", "max"))


def rescaled(reached: Sequence[Segment]) -> bool:
    """Whether a training loop scales or crops its batches to an unknown size, itself or in functions it calls."""
    steps = [each.once(_step) for each in reached]
    if any(scales for scales, _ in steps):
        return True
    collating = {
        name.decode() for each in reached if each.has(_COLLATES) for name in _COLLATED_BY.findall(each.content)
    }
    called = collating.union(*(calls for _, calls in steps)) - _OF_MODULES
    return any(each.once(_scales_itself) for each in reached if each.kind == "function" and each.name in called)


def _scales_at_random(segment: Segment) -> bool:
    """Whether a network draws numbers where it scales its features."""
    for method in segment.body if segment.kind == "class" else ():
        if isinstance(method, ast.FunctionDef) and method.name == "forward":
            called = {last_name(each.func) for each in every(method) if isinstance(each, ast.Call)}
            if not called.isdisjoint(_RANDOM) and not called.isdisjoint(_FUNCTIONS):
                return True
    return False


def _scales_itself(segment: Segment) -> bool:
    return _may_scale(segment) and _scale(parts(segment))


def _may_scale(segment: Segment) -> bool:
    return segment.has(_SCALES) or segment.has(_CUTS)


def _step(segment: Segment) -> tuple[bool, frozenset[str]]:
    """Return whether a segment scales the batches it handles, and the functions that it calls for each."""
    trains = segment.has(_TRAINS) and segment.name not in _OF_MODULES
    if not trains and not segment.has(_SCALES):
        return False, frozenset()
    loops = [node for node in parts(segment) if isinstance(node, ast.For | ast.AsyncFor | ast.While)]
    scales = any(_scales_own(loop) for loop in loops if isinstance(loop, ast.For))
    code = list(_trained(segment, loops)) if trains else []
    called = frozenset(last_name(node.func) for node in code if isinstance(node, ast.Call))
    return scales or (_may_scale(segment) and _scale(code)), called


def _trained(segment: Segment, loops: list[ast.For | ast.AsyncFor | ast.While]) -> Iterator[ast.AST]:
    """Yield the code that runs for each batch: loops with a backward pass, or a function called from one."""
    inside = [node for loop in loops if any(map(_passes_back, every(loop))) for node in every(loop)]
    yield from inside
    if segment.kind == "function":
        looped = {id(node) for node in inside}
        nodes = list(parts(segment))
        if segment.name == "training_step" or any(_passes_back(each) and id(each) not in looped for each in nodes):
            yield from nodes


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
    if name not in _FUNCTIONS and name not in _ADDING and name not in _CLASSES:
        return False
    named = _keywords(call, _SIZES)
    # A function's first argument is the image, that of a class the size.
    given = call.args if name in _CLASSES else call.args[1:] or ([] if named else call.args)
    return not all(map(_is_stated, (*given, *named)))


def _cuts(node: ast.AST) -> bool:
    """Whether the node reads `images[:, :, :n]`."""
    match node:
        case ast.Subscript(slice=ast.Tuple(elts=places), ctx=ast.Load()):
            dots = (at for at, each in enumerate(places) if isinstance(each, ast.Constant) and each.value is ...)
            return any(isinstance(each, ast.Slice) and not _is_stated(each) for each in places[next(dots, 1) + 1 :])
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
    return all(map(_is_stated, ast.iter_child_nodes(node)))


_SIZING = frozenset(("Resize", "Scale", "CenterCrop", "RandomCrop", "RandomResizedCrop", "RandomSizedCrop"))
_GROWTH_SIZES = re.compile(rb"\b(?:%s)\b" % "|".join(sorted(_SIZING)).encode())
_SETS_SIZE = re.compile(rb"\.\w*size[ \t]*=")
Sized = dict[str, tuple[Definition, frozenset[str]]]  # functions by name, with the parameters that are image sizes


def grows(reached: Sequence[Segment]) -> bool:
    """Whether a loop gives a transform another size: its attribute, or a variable that the loop changes.

    The variable may be passed through a function.
    """
    if any(each.once(_sets_size) for each in reached if each.has(_SETS_SIZE)):
        return True
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


def _sets_size(segment: Segment) -> bool:
    """Whether a loop sets the attribute `size` of something, or one that ends so."""
    loops = (each for each in parts(segment) if isinstance(each, ast.For | ast.While))
    assigned = (each for loop in loops for each in every(loop) if isinstance(each, ast.Assign))
    targets = (target for each in assigned if not _is_stated(each.value) for target in each.targets)
    return any(isinstance(each, ast.Attribute) and each.attr.endswith("size") for each in targets)


def _stated(segment: Segment) -> frozenset[str]:
    """Return the names in the sizes of a segment's transforms."""
    calls = (each for each in parts(segment) if isinstance(each, ast.Call) and last_name(each.func) in _SIZING)
    return frozenset(name for each in calls for name in _names(_given(each)))


def _loops(segment: Segment) -> list[tuple[list[ast.Call], frozenset[str]]]:
    """Return the calls in each loop, and the names that it binds."""
    loops = [every(each) for each in parts(segment) if isinstance(each, ast.For | ast.While)]
    return [
        ([each for each in nodes if isinstance(each, ast.Call)], frozenset(each.id for each in nodes if stored(each)))
        for nodes in loops
    ]


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
    return [*call.args, *_keywords(call, ("size", "height", "width"))]


def _keywords(call: ast.Call, names: Collection[str]) -> list[ast.expr]:
    """Return the values that a call gives to parameters with these names."""
    return [each.value for each in call.keywords if each.arg in names]


def _names(nodes: Iterable[ast.expr]) -> Iterator[str]:
    return (each.id for node in nodes for each in every(node) if isinstance(each, ast.Name))


# Data sets, and the size of images behind their transforms

Size = Literal["fixed", "varying", "unknown"]

_MODULES = ("torchvision.transforms", "albumentations", "timm.data", "kornia.augmentation")
_CROPS = {
    "CenterCrop", "RandomCrop", "RandomResizedCrop", "RandomSizedCrop", "FiveCrop", "TenCrop",
    "RandomSizedBBoxSafeCrop", "RandomCropNearBBox", "RandomResizedCropAndInterpolation", "CropNonEmptyMaskIfExists",
}  # fmt: skip
_VARYING = {
    "RandomShortestSize", "RandomResize", "ScaleJitter", "RandomZoomOut", "RandomIoUCrop", "SmallestMaxSize",
    "LongestMaxSize", "RandomScale", "ResizeShortestEdge",
}  # fmt: skip
_RANDOM = frozenset(("random", "randint", "choice", "uniform", "randrange"))
_OWN_SIZES = re.compile(r"(?:multi|random)_?(?:re)?(?:scal|siz|zoom)", re.IGNORECASE)  # transforms of one's own
_COMPOSED = {"Compose", "Sequential", "AugmentationSequential"}


def is_transform(node: ast.expr, unit: SourceUnit) -> bool:
    """Whether an expression constructs a transform of a library, or a chain of them."""
    return isinstance(node, ast.Call) and unit.full_name(node.func).startswith(_MODULES)


def size_after(node: ast.expr, unit: SourceUnit, before: Size = "unknown") -> tuple[Size, ast.expr | None]:
    """Return the size behind a transform or chain, and the transform that decides it; `before` is the data's."""
    if isinstance(node, ast.List | ast.Tuple):
        return _chain(node.elts, unit, before)
    if not isinstance(node, ast.Call):
        return before, None
    name = unit.full_name(node.func).split(".")[-1] or last_name(node.func)
    if name in _COMPOSED:
        inside = next(iter((*node.args, *_keywords(node, ("transforms",)))), None)
        return _chain(inside.elts, unit, before) if isinstance(inside, ast.List | ast.Tuple) else (before, None)
    if name in ("RandomApply", "RandomChoice", "OneOf", "Lambda") or not is_transform(node, unit):
        code = _code_of(name, node, unit)
        called = {last_name(each.func) for each in every(code) if isinstance(each, ast.Call)}
        cuts = not called.isdisjoint(_CUTTING)
        # Of one's own classes those that crop too mostly end in one size.
        crops = not isinstance(code, ast.Lambda) and any("crop" in each.lower() for each in called)
        drawn = cuts and not crops and not called.isdisjoint(_RANDOM)
        # What resizes behind a varying size may end that.
        doubtful = drawn or (cuts and before == "varying") or _OWN_SIZES.search(name)
        return ("unknown", node) if doubtful else (before, None)
    if name == "Resize" and unit.full_name(node.func).startswith("albumentations") and len(node.args) > 1:
        return "fixed", node  # torchvision's second argument is no width
    given = [*_given(node), *_keywords(node, ("output_size",))]
    if name in _VARYING or _expands(name, node) or any(map(_drawn, given)):
        return "varying", node
    if name == "create_transform" or (name in _CROPS and (given or node.keywords)):
        return "fixed", node
    return (_resized(node, given, before), node) if name in ("Resize", "Scale") else (before, None)


def _code_of(name: str, node: ast.Call, unit: SourceUnit) -> ast.AST:
    """Return what a transform of one's own runs: its class, or for `Lambda(f)` the function."""
    if name != "Lambda" or len(node.args) != 1:
        own = unit.named(node.func).node
        return own if isinstance(own, ast.ClassDef) else node
    (given,) = node.args
    named = unit.named(given).node
    return given if isinstance(given, ast.Lambda) else named if isinstance(named, ast.FunctionDef) else node


def _chain(parts: list[ast.expr], unit: SourceUnit, before: Size) -> tuple[Size, ast.expr | None]:
    size, settled = before, None
    for each in parts:
        after, by = size_after(each, unit, size)
        if by is not None:
            size, settled = after, by
    return size, settled


def _expands(name: str, node: ast.Call) -> bool:
    """Whether the call is a rotation that grows with its angle."""
    expand = _keywords(node, ("expand",)) if name == "RandomRotation" else []
    return any(not isinstance(each, ast.Constant) or bool(each.value) for each in expand)


def _resized(node: ast.Call, given: list[ast.expr], before: Size) -> Size:
    """Return the size behind a resize: fixed with both sides; one side keeps the aspect ratio of each image."""
    keywords = {each.arg for each in node.keywords}
    first = given[0] if given else None
    both = {"height", "width"} <= keywords or (isinstance(first, ast.Tuple | ast.List) and len(first.elts) == 2)
    two = len(node.args) >= 2 and all(_is_number(each) for each in node.args[:2])  # albumentations' Resize(h, w)
    return "fixed" if both or two or before == "fixed" else "unknown"


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value > 8


def _drawn(node: ast.expr) -> bool:
    """Whether a size is random."""
    return any(isinstance(each, ast.Call) and last_name(each.func) in _RANDOM for each in every(node))


Settled = tuple[str, Location]  # the transform that decides a size, as text, and its location
_MOST_HOPS = 5


def transformed(call: ast.Call, bound: Bound, unit: SourceUnit, before: Size) -> tuple[Size, Settled | None]:
    """Return the size behind the transforms among the arguments of a data set."""
    given = (*call.args, *(each.value for each in call.keywords))
    results = [
        _settled(node, where, before)
        for node, where in (each for value in given for each in _values(value, bound, unit, 0))
        if any(is_transform(each, where) for each in (node.elts if isinstance(node, ast.List) else [node]))
    ]
    if not results:
        return before, None
    # Several transforms: one that varies the size decides, then one that is unknown.
    return next((one for size in ("varying", "unknown") for one in results if one[0] == size), results[0])


def _values(node: ast.expr, bound: Bound, unit: SourceUnit, hops: int) -> Iterator[tuple[ast.expr, SourceUnit]]:
    """Yield the expressions that an argument may stand for: the values of its name, the results of a function."""
    # Names and functions may refer to each other in circles.
    if hops > _MOST_HOPS:
        return
    if isinstance(node, ast.IfExp):
        yield from _values(node.body, bound, unit, hops + 1)
        yield from _values(node.orelse, bound, unit, hops + 1)
    elif isinstance(node, ast.Name):
        values = [each for each in bound.get(node.id, ()) if each is not None]
        for each in values or filter(None, unit.assigned.get(node.id, ())):
            yield from _values(each, bound, unit, hops + 1)
    elif isinstance(node, ast.Subscript):
        for each, where in _values(node.value, bound, unit, hops + 1):
            if isinstance(each, ast.Dict):
                yield from ((value, where) for value in _entries(each, node.slice))
    elif isinstance(node, ast.Call) and not is_transform(node, unit):
        named = unit.named(node.func)
        if isinstance(named.node, ast.FunctionDef) and named.unit is not None:
            for returned in statements(named.node.body):
                if isinstance(returned, ast.Return) and returned.value is not None:
                    yield from _values(returned.value, bound_in(named.node.body), named.unit, hops + 1)
    else:
        yield node, unit


def _entries(table: ast.Dict, at: ast.expr) -> Iterator[ast.expr]:
    """Yield the values that a dict may have at a key: all of them, if the key is no literal."""
    for key, value in zip(table.keys, table.values, strict=True):
        match key, at:
            case ast.Constant(value=one), ast.Constant(value=other) if one != other:
                continue
        yield value


def inside(node: ast.ClassDef, unit: SourceUnit) -> tuple[Size, Settled | None]:
    """Return the size behind the transforms inside the class of a data set."""
    calls = (each for each in every(node) if isinstance(each, ast.Call) and is_transform(each, unit))
    results = [_settled(each, unit) for each in calls if unit.full_name(each.func).endswith(".Compose")]
    if not results or any(size != "fixed" for size, _ in results):
        return next((one for one in results if one[0] == "varying"), ("unknown", None))
    return results[0]


def _settled(node: ast.expr, unit: SourceUnit, before: Size = "unknown") -> tuple[Size, Settled | None]:
    """Return the size behind a transform or chain, and what decides it as text."""
    size, by = size_after(node, unit, before)
    if by is None:
        return size, None
    text = ast.unparse(by)
    name, _, rest = text.partition("(")
    name = name.split(".")[-1]
    return size, (f"{name}({rest}" if len(text) < 80 else f"{name}(...)", unit.file.locate(by))


# Data sets of torchvision whose images all have one size
ONE_SIZE = frozenset(
    """
    CIFAR10 CIFAR100 MNIST FashionMNIST KMNIST EMNIST QMNIST SVHN STL10 USPS FakeData PCAM EuroSAT Omniglot
    SEMEION CelebA
    """.split()  # noqa: SIM905 - a table of names reads better so
)
_FOLDERS = frozenset(
    """
    ImageFolder DatasetFolder ImageNet Places365 LSUN Flowers102 OxfordIIITPet Food101 StanfordCars FGVCAircraft
    Caltech101 Caltech256 INaturalist SUN397 DTD GTSRB Country211 Imagenette RenderedSST2 VOCSegmentation
    Cityscapes VOCDetection CocoDetection CocoCaptions SBDataset Kinetics HMDB51 UCF101 LFWPeople LFWPairs
    Flickr8k Flickr30k
    """.split()  # noqa: SIM905 - a table of names reads better so
)
_BASES = {"torch.utils.data.Dataset", "torch.utils.data.IterableDataset", "torch.utils.data.dataset.Dataset"}
_PARTS = frozenset(("split", "mode", "image_set", "phase", "subset", "partition", "set"))  # keywords
_HELD_OUT = ("val", "test", "eval", "query", "gallery", "infer", "demo", "predict", "sample")
_NAMES = frozenset(name.encode() for name in ONE_SIZE | _FOLDERS)


class Data(Struct, frozen=True):
    """A data set: its name, its construction, the size of its images, and whether it is held out for evaluation."""

    name: str
    at: Location
    size: Size
    settled: Settled | None = None  # the transform that makes it so
    held_out: bool = False


def data_sets(reached: Iterable[Segment]) -> list[Data]:
    """Return the data sets that the segments construct."""
    found: list[Data] = []
    for each in reached:
        if b"data" in each.content or b"Data" in each.content or not _NAMES.isdisjoint(each.words):
            found += each.once(_made)
    return found


def _made(segment: Segment) -> list[Data]:
    """Return the data sets that a segment constructs."""
    unit, found = segment.unit, []
    if unit is None:
        return []
    bound = bound_in(segment.body)
    for node in statements(segment.body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for call in _own_calls(node):
            made = _data(call, bound, unit)
            if made is not None:
                found.append(replace(made, held_out=_held_out(call, node, segment)))
    return found


def _own_calls(node: ast.stmt) -> Iterator[ast.Call]:
    """Yield the calls in a statement, without those in its blocks."""
    waiting: list[ast.AST] = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.Call):
            yield each
        waiting += [child for child in below(each) if not isinstance(child, ast.stmt)]


def _data(call: ast.Call, bound: Bound, unit: SourceUnit) -> Data | None:
    """Return the data set that a call constructs; None for any other call."""
    named = unit.named(call.func)
    names = [named.full.split(".")[-1]] if _of_library(named.full) else []
    if named == ResolvedName() and isinstance(call.func, ast.Name):
        names = _chosen(bound.get(call.func.id, []), unit)
    if names:
        before: Size = "fixed" if ONE_SIZE.issuperset(names) else "unknown"
        size, settled = transformed(call, bound, unit, before)
        return Data(" or ".join(names), unit.file.locate(call), size, settled)
    if not isinstance(named.node, ast.ClassDef) or named.unit is None or not _is_data_set(named.node, named.unit):
        return None
    # `class Pairs(CIFAR10)` has the images of CIFAR10.
    bases = [full for full in map(named.unit.full_name, named.node.bases) if _of_library(full)]
    of_one_size = any(full.split(".")[-1] in ONE_SIZE for full in bases[:1])
    size, settled = transformed(call, bound, unit, "fixed" if of_one_size else "unknown")
    if settled is None and not of_one_size:
        size, settled = inside(named.node, named.unit)
    return Data(named.node.name, unit.file.locate(call), size, settled)


def _of_library(full: str) -> bool:
    return full.startswith("torchvision.datasets") and full.split(".")[-1] in ONE_SIZE | _FOLDERS


def _chosen(values: Iterable[ast.expr | None], unit: SourceUnit) -> list[str]:
    """Return the library's data sets that a variable may stand for; none if it may be anything else."""
    full = ["" if each is None else unit.full_name(each) for each in values]
    return list(dict.fromkeys(each.split(".")[-1] for each in full)) if all(map(_of_library, full)) else []


def _is_data_set(node: ast.ClassDef, unit: SourceUnit, hops: int = 0) -> bool:
    for base in node.bases if hops <= _MOST_HOPS else ():
        named = unit.named(base)
        if named.full in _BASES or (named.full.startswith("torchvision.datasets.")):
            return True
        if isinstance(named.node, ast.ClassDef) and named.unit and _is_data_set(named.node, named.unit, hops + 1):
            return True
    return False


def _held_out(call: ast.Call, statement: ast.stmt, segment: Segment) -> bool:
    """Whether a data set is held out for evaluation, by its arguments or by the name that a statement gives it."""
    for keyword in call.keywords:
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if keyword.arg in ("train", "is_train", "training") and value is False:
            return True
        if keyword.arg in _PARTS and isinstance(value, str):
            return any(each in value.lower() for each in _HELD_OUT)
    if any(str(each.value).lower() in _HELD_OUT for each in call.args if isinstance(each, ast.Constant)):
        return True
    bound = " ".join(map(ast.unparse, statement.targets if isinstance(statement, ast.Assign) else [])).lower()
    words = bound.replace(".", "_").split("_")
    if any(word.startswith(_HELD_OUT) for word in words) and "train" not in bound:
        return True
    owner = segment.name.lower()
    return any(each in owner for each in ("val", "test", "eval")) and "train" not in owner


# The answer for a program

Evidence = tuple[tuple[str, Location], ...]

# Text of code that may vary the size outside of the data set: it makes the answer unknown
_DOUBT = re.compile(
    rb"multi_?scale|random_?resize(?!d)|GroupedBatchSampler|ResizeShortestEdge|RandomShortestSize|ScaleJitter|"
    rb"progressive_resiz|grow_size|random_size|sizes?\s*=\s*random|img_?scales|variable_size|keep_ratio|"
    rb"interpolate\([^)\n]*rand|bucket",
    re.IGNORECASE,
)
# A loader without a batch size has one of 1.
_ALONE = re.compile(
    rb"batch_size\s*=\s*1\b|DataLoader\(\s*[\w.]+\s*(?:,\s*1\s*)?(?:,\s*(?!batch_)[a-z_]+\s*=\s*[\w.]+\s*)*,?\s*\)"
)


def input_size(reached: Sequence[Segment], followed: Callable[[], Sequence[Segment]]) -> tuple[bool | None, Evidence]:
    """Return whether all images have one size, None if unknown, and the data sets and transforms that show it.

    Any code in `reached` can contradict it; only code in `followed`, which surely runs, is evidence for it.
    """
    size, _ = _judged(reached)
    again, evidence = _judged(followed()) if size is not None else (None, ())
    return (size, evidence) if again == size else (None, ())


def _judged(reached: Sequence[Segment]) -> tuple[bool | None, Evidence]:
    varied = next(filter(None, (each.once(_collated) for each in reached)), ())
    every_set = data_sets(reached)
    found = [each for each in every_set if not each.held_out]
    if varied:  # of this program's data only if there are no others
        return (None, ()) if any(each.size == "fixed" for each in found) else (False, varied)
    varying = [each for each in found if each.size == "varying"]
    if varying and len(varying) == len(found):
        return False, tuple(each.settled for each in varying if each.settled is not None)
    if not found or any(each.size != "fixed" for each in found) or any(each.has(_DOUBT) for each in reached):
        return None, ()
    if rescaled(reached) or grows(reached) or any(each.once(_scales_at_random) for each in reached):
        return None, ()
    # Each new size of an evaluation would be tuned for as well. Images of several sizes are read one by one.
    if any(each.has(_ALONE) for each in reached) and any(each.held_out and each.size != "fixed" for each in every_set):
        return None, ()
    # A collate function may scale a batch, unless a transform has already fixed the size.
    if any(each.has(_COLLATES) for each in reached) and not all(each.settled for each in found):
        return None, ()
    shown = [one for each in found for one in ((each.name, each.at), each.settled) if one is not None]
    return True, tuple(dict.fromkeys(shown))


def _collated(segment: Segment) -> Evidence:
    """Return a loader whose `collate_fn` makes lists, as it must if images of a batch differ in size."""
    unit = segment.unit if segment.has(_COLLATES) else None
    if unit is not None:
        for call in parts(segment):
            if isinstance(call, ast.Call) and any(_lists(each, unit) for each in _keywords(call, ("collate_fn",))):
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
