"""Decide whether all images that a program trains on have one size, with the evidence for it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from convlint.model.location import Location
from convlint.readers.python.programs.segments import Reached, Segment, parts
from convlint.readers.python.programs.unit import (
    Bound,
    Definition,
    ResolvedName,
    SourceUnit,
    bound_in,
    statements,
    stored,
)
from convlint.readers.python.source_file import last_name, unparsed
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


def rescaled(reached: Reached) -> bool:
    """Whether a training loop scales or crops its batches to an unknown size, itself or in functions it calls."""
    steps = [segment.once(_step) for segment in reached]
    if any(scales for scales, _ in steps):
        return True
    collating = {
        name.decode() for segment in reached.having(_COLLATES) for name in _COLLATED_BY.findall(segment.content)
    }
    called = collating.union(*(calls for _, calls in steps)) - _OF_MODULES
    return any(part.once(_scales_itself) for part in reached if part.kind == "function" and part.name in called)


def _scales_at_random(segment: Segment) -> bool:
    """Whether a network draws numbers where it scales its features."""
    for method in segment.body if segment.kind == "class" else ():
        if isinstance(method, ast.FunctionDef) and method.name == "forward":
            called = {last_name(call.func) for call in every(method) if isinstance(call, ast.Call)}
            if not called.isdisjoint(_RANDOM) and not called.isdisjoint(_FUNCTIONS):
                return True
    return False


_READING = frozenset((
    "cv2.imread", "PIL.Image.open", "imageio.imread", "imageio.v2.imread", "skimage.io.imread", "nibabel.load",
    "torchvision.io.read_image", "SimpleITK.ReadImage", "soundfile.read", "torchaudio.load", "librosa.load",
))  # fmt: skip
_READS = re.compile(rb"imread|Image\.open|\.(?:read|load|read_image|ReadImage)\(")
_EVALUATING = frozenset(("no_grad", "inference_mode", "eval"))
_RESIZES = re.compile(rb"resiz|crop|transform|process", re.IGNORECASE)


def _evaluates_files(segment: Segment) -> bool:
    """Whether a loop of an evaluation reads image after image, or sound after sound, as large as each is."""
    unit = segment.unit
    if unit is None or not segment.has(_READS) or segment.has(_RESIZES):
        return False
    nodes = list(parts(segment))  # with decorators
    loops = (loop for loop in nodes if isinstance(loop, ast.For))
    calls = (node for loop in loops for node in every(loop) if isinstance(node, ast.Call))
    reads = any(unit.full_name(call.func) in _READING for call in calls)
    return reads and any(isinstance(node, ast.Attribute) and node.attr in _EVALUATING for node in nodes)


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
        if segment.name == "training_step" or any(_passes_back(node) and id(node) not in looped for node in nodes):
            yield from nodes


def _passes_back(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) in ("backward", "manual_backward")


def _scales_own(loop: ast.For) -> bool:
    """Whether a loop scales its own items."""
    names = {node.id for node in every(loop.target) if isinstance(node, ast.Name)}
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
    sizes = _keywords(call, _SIZES)
    # A function's first argument is the image, that of a class the size.
    given = call.args if name in _CLASSES else call.args[1:] or ([] if sizes else call.args)
    return not all(map(_is_stated, (*given, *sizes)))


def _cuts(node: ast.AST) -> bool:
    """Whether the node reads `images[:, :, :n]`."""
    match node:
        case ast.Subscript(slice=ast.Tuple(elts=places), ctx=ast.Load()):
            dots = (at for at, place in enumerate(places) if isinstance(place, ast.Constant) and place.value is ...)
            return any(isinstance(place, ast.Slice) and not _is_stated(place) for place in places[next(dots, 1) + 1 :])
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


def grows(reached: Reached) -> bool:
    """Whether a loop gives a transform another size: its attribute, or a variable that the loop changes.

    The variable may be passed through a function.
    """
    if any(segment.once(_sets_size) for segment in reached.having(_SETS_SIZE)):
        return True
    stating = reached.having(_GROWTH_SIZES)
    functions: Sized = {
        segment.name: (segment.node, segment.once(_stated))
        for segment in stating
        if isinstance(segment.node, Definition) and segment.once(_stated)
    }
    names = {name.encode() for name in functions}
    return any(
        not changed.isdisjoint(_names(_sizes(call, functions)))
        for segment in reached
        if segment.has(_GROWTH_SIZES) or not names.isdisjoint(segment.words)
        for calls, changed in segment.once(_loops)
        for call in calls
    )


def _sets_size(segment: Segment) -> bool:
    """Whether a loop sets the attribute `size` of something, or one that ends so."""
    loops = (loop for loop in parts(segment) if isinstance(loop, ast.For | ast.While))
    assigned = (node for loop in loops for node in every(loop) if isinstance(node, ast.Assign))
    targets = (target for node in assigned if not _is_stated(node.value) for target in node.targets)
    return any(isinstance(target, ast.Attribute) and target.attr.endswith("size") for target in targets)


def _stated(segment: Segment) -> frozenset[str]:
    """Return the names in the sizes of a segment's transforms."""
    calls = (call for call in parts(segment) if isinstance(call, ast.Call) and last_name(call.func) in _SIZING)
    return frozenset(name for call in calls for name in _names(_sizes_passed(call)))


def _loops(segment: Segment) -> list[tuple[list[ast.Call], frozenset[str]]]:
    """Return the calls in each loop, and the names that it binds."""
    loops = [every(loop) for loop in parts(segment) if isinstance(loop, ast.For | ast.While)]
    return [
        ([node for node in nodes if isinstance(node, ast.Call)], frozenset(node.id for node in nodes if stored(node)))
        for nodes in loops
    ]


def _sizes(call: ast.Call, functions: Sized) -> Iterator[ast.expr]:
    """Yield the arguments of a call that are sizes of images."""
    name = last_name(call.func)
    if name in _SIZING:
        yield from _sizes_passed(call)
    elif name in functions:
        function, sized = functions[name]
        parameters = [parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args)]
        if parameters[:1] == ["self"]:
            del parameters[0]
        yield from (value for parameter, value in zip(parameters, call.args, strict=False) if parameter in sized)
        yield from (keyword.value for keyword in call.keywords if keyword.arg in sized)


def _sizes_passed(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *_keywords(call, ("size", "height", "width"))]


def _keywords(call: ast.Call, names: Collection[str]) -> list[ast.expr]:
    """Return the values that a call gives to parameters with these names."""
    return [keyword.value for keyword in call.keywords if keyword.arg in names]


def _names(nodes: Iterable[ast.expr]) -> Iterator[str]:
    return (inner.id for node in nodes for inner in every(node) if isinstance(inner, ast.Name))


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
        called = {last_name(call.func) for call in every(code) if isinstance(call, ast.Call)}
        cuts = not called.isdisjoint(_CUTTING)
        # Classes of the repository that crop too mostly end in one size.
        crops = not isinstance(code, ast.Lambda) and any("crop" in word.lower() for word in called)
        drawn = cuts and not crops and not called.isdisjoint(_RANDOM)
        # A resize behind a varying size may fix the size.
        doubtful = drawn or (cuts and before == "varying") or _OWN_SIZES.search(name)
        return ("unknown", node) if doubtful else (before, None)
    if name == "Resize" and unit.full_name(node.func).startswith("albumentations") and len(node.args) > 1:
        return "fixed", node  # torchvision's second argument is no width
    given = [*_sizes_passed(node), *_keywords(node, ("output_size",))]
    if name in _VARYING or _expands(name, node) or any(map(_drawn, given)):
        return "varying", node
    if name == "create_transform" or (name in _CROPS and (given or node.keywords)):
        return "fixed", node
    return (_resized(node, given, before), node) if name in ("Resize", "Scale") else (before, None)


def _code_of(name: str, node: ast.Call, unit: SourceUnit) -> ast.AST:
    """Return what a transform of one's own runs: its class, or for `Lambda(f)` the function."""
    if name != "Lambda" or len(node.args) != 1:
        own = unit.resolve(node.func).node
        return own if isinstance(own, ast.ClassDef) else node
    (given,) = node.args
    function = unit.resolve(given).node
    return given if isinstance(given, ast.Lambda) else function if isinstance(function, ast.FunctionDef) else node


def _chain(parts: list[ast.expr], unit: SourceUnit, before: Size) -> tuple[Size, ast.expr | None]:
    size, settled = before, None
    for part in parts:
        after, by = size_after(part, unit, size)
        if by is not None:
            size, settled = after, by
    return size, settled


def _expands(name: str, node: ast.Call) -> bool:
    """Whether the call is a rotation that grows with its angle."""
    expand = _keywords(node, ("expand",)) if name == "RandomRotation" else []
    return any(not isinstance(node, ast.Constant) or bool(node.value) for node in expand)


def _resized(node: ast.Call, given: list[ast.expr], before: Size) -> Size:
    """Return the size behind a resize: fixed with both sides; one side keeps the aspect ratio of each image."""
    keywords = {keyword.arg for keyword in node.keywords}
    first = given[0] if given else None
    both = {"height", "width"} <= keywords or (isinstance(first, ast.Tuple | ast.List) and len(first.elts) == 2)
    sides = [side.value for side in node.args[:2] if isinstance(side, ast.Constant) and isinstance(side.value, int)]
    two = len(sides) == 2 and min(sides) > 8  # albumentations' Resize(h, w)
    return "fixed" if both or two or before == "fixed" else "unknown"


def _drawn(node: ast.expr) -> bool:
    """Whether a size is random."""
    return any(isinstance(inner, ast.Call) and last_name(inner.func) in _RANDOM for inner in every(node))


Settled = tuple[str, Location]  # the transform that decides a size, as text, and its location
_MOST_HOPS = 5


def transformed(call: ast.Call, bound: Bound, unit: SourceUnit, before: Size) -> tuple[Size, Settled | None]:
    """Return the size behind the transforms among the arguments of a data set."""
    given = (*call.args, *(keyword.value for keyword in call.keywords))
    results = [
        _settled(node, where, before)
        for node, where in (pair for value in given for pair in _values(value, bound, unit, 0))
        if any(is_transform(element, where) for element in (node.elts if isinstance(node, ast.List) else [node]))
    ]
    if not results:
        return before, None
    # Several transforms: one that varies the size decides, then one that is unknown.
    return next((result for size in ("varying", "unknown") for result in results if result[0] == size), results[0])


def _values(node: ast.expr, bound: Bound, unit: SourceUnit, hops: int) -> Iterator[tuple[ast.expr, SourceUnit]]:
    """Yield the expressions that an argument may stand for: the values of its name, the results of a function."""
    # Names and functions may refer to each other in circles.
    if hops > _MOST_HOPS:
        return
    if isinstance(node, ast.IfExp):
        yield from _values(node.body, bound, unit, hops + 1)
        yield from _values(node.orelse, bound, unit, hops + 1)
    elif isinstance(node, ast.Name):
        values = [value for value in bound.get(node.id, ()) if value is not None]
        for expression in values or filter(None, unit.assigned.get(node.id, ())):
            yield from _values(expression, bound, unit, hops + 1)
    elif isinstance(node, ast.Subscript):
        for expression, where in _values(node.value, bound, unit, hops + 1):
            if isinstance(expression, ast.Dict):
                yield from ((value, where) for value in _entries(expression, node.slice))
    elif isinstance(node, ast.Call) and not is_transform(node, unit):
        target = unit.resolve(node.func)
        if isinstance(target.node, ast.FunctionDef) and target.unit is not None:
            for returned in statements(target.node.body):
                if isinstance(returned, ast.Return) and returned.value is not None:
                    yield from _values(returned.value, bound_in(target.node.body), target.unit, hops + 1)
    else:
        yield node, unit


def _entries(table: ast.Dict, at: ast.expr) -> Iterator[ast.expr]:
    """Yield the values that a dict may have at a key: all of them, if the key is no literal."""
    for key, value in zip(table.keys, table.values, strict=True):
        match key, at:
            case ast.Constant(value=first), ast.Constant(value=other) if first != other:
                continue
        yield value


def inside(node: ast.ClassDef, unit: SourceUnit) -> tuple[Size, Settled | None]:
    """Return the size behind the transforms inside the class of a data set."""
    calls = (call for call in every(node) if isinstance(call, ast.Call) and is_transform(call, unit))
    results = [_settled(call, unit) for call in calls if unit.full_name(call.func).endswith(".Compose")]
    if not results or any(size != "fixed" for size, _ in results):
        return next((result for result in results if result[0] == "varying"), ("unknown", None))
    return results[0]


def _settled(node: ast.expr, unit: SourceUnit, before: Size = "unknown") -> tuple[Size, Settled | None]:
    """Return the size behind a transform or chain, and what decides it as text."""
    size, by = size_after(node, unit, before)
    if by is None:
        return size, None
    text = unparsed(by)
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
    settled: Settled | None = None  # the transform that decides the size
    held_out: bool = False


def data_sets(reached: Reached) -> list[Data]:
    """Return the data sets that the segments construct."""
    return [data for segment in reached.having(_names_data) for data in segment.once(_constructed)]


def _names_data(segment: Segment) -> bool:
    return b"data" in segment.content or b"Data" in segment.content or not _NAMES.isdisjoint(segment.words)


def _constructed(segment: Segment) -> list[Data]:
    """Return the data sets that a segment constructs."""
    unit, bound = segment.unit, bound_in(segment.body)
    if unit is None:
        return []
    return [
        replace(data, held_out=_held_out(call, node, segment))
        for node in statements(segment.body)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for call in _own_calls(node)
        if (data := _data(call, bound, unit)) is not None
    ]


def _own_calls(node: ast.stmt) -> Iterator[ast.Call]:
    """Yield the calls in a statement, without those in its blocks."""
    waiting: list[ast.AST] = [node]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, ast.Call):
            yield inner
        waiting += [child for child in below(inner) if not isinstance(child, ast.stmt)]


def _data(call: ast.Call, bound: Bound, unit: SourceUnit) -> Data | None:
    """Return the data set that a call constructs; None for any other call."""
    target = unit.resolve(call.func)
    names = [target.full.split(".")[-1]] if _of_library(target.full) else []
    if target == ResolvedName() and isinstance(call.func, ast.Name):
        names = _chosen(bound.get(call.func.id, []), unit)
    if names:
        before: Size = "fixed" if ONE_SIZE.issuperset(names) else "unknown"
        size, settled = transformed(call, bound, unit, before)
        return Data(" or ".join(names), unit.file.locate(call), size, settled)
    if not isinstance(target.node, ast.ClassDef) or target.unit is None or not _is_data_set(target.node, target.unit):
        return None
    # `class Pairs(CIFAR10)` has the images of CIFAR10.
    bases = [full for full in map(target.unit.full_name, target.node.bases) if _of_library(full)]
    of_one_size = any(full.split(".")[-1] in ONE_SIZE for full in bases[:1])
    size, settled = transformed(call, bound, unit, "fixed" if of_one_size else "unknown")
    if settled is None and not of_one_size:
        size, settled = inside(target.node, target.unit)
    return Data(target.node.name, unit.file.locate(call), size, settled)


def _of_library(full: str) -> bool:
    return full.startswith("torchvision.datasets") and full.split(".")[-1] in ONE_SIZE | _FOLDERS


def _chosen(values: Iterable[ast.expr | None], unit: SourceUnit) -> list[str]:
    """Return the library's data sets that a variable may stand for; none if it may be anything else."""
    full = ["" if value is None else unit.full_name(value) for value in values]
    return list(dict.fromkeys(name.split(".")[-1] for name in full)) if all(map(_of_library, full)) else []


def _is_data_set(node: ast.ClassDef, unit: SourceUnit, hops: int = 0) -> bool:
    for base in node.bases if hops <= _MOST_HOPS else ():
        target = unit.resolve(base)
        if target.full in _BASES or (target.full.startswith("torchvision.datasets.")):
            return True
        if isinstance(target.node, ast.ClassDef) and target.unit and _is_data_set(target.node, target.unit, hops + 1):
            return True
    return False


def _held_out(call: ast.Call, statement: ast.stmt, segment: Segment) -> bool:
    """Whether a data set is held out for evaluation, by its arguments or by the name that a statement gives it."""
    for keyword in call.keywords:
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if keyword.arg in ("train", "is_train", "training") and value is False:
            return True
        if keyword.arg in _PARTS and isinstance(value, str):
            return any(word in value.lower() for word in _HELD_OUT)
    if any(str(argument.value).lower() in _HELD_OUT for argument in call.args if isinstance(argument, ast.Constant)):
        return True
    bound = " ".join(map(unparsed, statement.targets if isinstance(statement, ast.Assign) else [])).lower()
    words = bound.replace(".", "_").split("_")
    if any(word.startswith(_HELD_OUT) for word in words) and "train" not in bound:
        return True
    owner = segment.name.lower()
    return any(word in owner for word in ("val", "test", "eval")) and "train" not in owner


# Loaders that stack what they shuffle: any two items may meet in a batch, so that all have one size

Evidence = tuple[tuple[str, Location], ...]
# A loader without a batch size has one of 1; a data set may be read without a loader too.
_ALONE = re.compile(
    rb"batch_size\s*=\s*1\b|\bunsqueeze\(\s*(?:self\.)?\w*data\w*\[|DataLoader\(\s*[\w.]+\s*(?:,\s*1\s*)?(?:,\s*(?!batch_)[a-z_]+\s*=\s*[\w.]+\s*)*,?\s*\)"
)
_LOADS = re.compile(rb"\bDataLoader\s*\(")
_OPTION = re.compile(rb"add_argument\(")
_LOADER = ("dataset", "batch_size", "shuffle")
_SAMPLERS = ("torch.utils.data.RandomSampler", "torch.utils.data.distributed.DistributedSampler")
_KEEPING = frozenset((
    *_LOADER, "sampler", "num_workers", "pin_memory", "drop_last", "timeout", "worker_init_fn", "prefetch_factor",
    "generator", "persistent_workers", "pin_memory_device",
))  # fmt: skip


def stacked(reached: Reached) -> Evidence:
    """Return the first loader that stacks shuffled items; none if one of the program's loaders may not stack."""
    found: list[tuple[str, Location]] = []
    if reached.having(_ALONE):
        return ()
    for segment in reached.having(_LOADS):
        calls = segment.once(_loads)
        if calls and (segment.unit is None or _repeats(segment, calls, reached)):
            return ()
        for call in calls:
            given = _arguments(call, segment)
            size = _batch(given.get("batch_size"), segment, reached)
            if size < 2 or not _KEEPING.issuperset(given) or segment.unit is None:
                return ()
            if _shuffles(given, segment, segment.unit):
                found.append((f"DataLoader stacks {size} of them", segment.unit.file.locate(call)))
    return tuple(found[:1])


def _arguments(call: ast.Call, segment: Segment) -> dict[str, ast.expr]:
    """Return the arguments of a loader by name, with those in a dict that is written out; '' if there may be others."""
    given = dict(zip(_LOADER, call.args, strict=False)) | {word.arg or "": word.value for word in call.keywords}
    more = given.get("")
    if isinstance(more, ast.Name) and not re.search(rb"\b%s[.\[]" % more.id.encode(), segment.content):
        tables = [_written(inner) for value in _given(more, segment) for inner in _either(value)]
        if tables and None not in tables:
            del given[""]
            given |= {name: value for table in tables for name, value in (table or {}).items()}
    return given


def _written(node: ast.expr | None) -> dict[str, ast.expr] | None:
    """Return the entries of a dict that is written out, by their names; None for any other expression."""
    if not isinstance(node, ast.Dict):
        return None
    names = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
    entries = {name: value for name, value in zip(names, node.values, strict=True) if isinstance(name, str)}
    return entries if len(entries) == len(names) else None


def _of_data(segment: Segment) -> bool:
    """Whether a segment is code of a data set or transform."""
    if segment.name in ("__getitem__", "__call__") or not segment.cls or segment.unit is None:
        return segment.name in ("__getitem__", "__call__")
    node = segment.unit.meaning(segment.cls).node
    return isinstance(node, ast.ClassDef) and _is_data_set(node, segment.unit)


def _loads(segment: Segment) -> list[ast.Call]:
    """Return the calls of a segment that construct PyTorch's loaders."""
    calls = (node for node in parts(segment) if isinstance(node, ast.Call) and last_name(node.func) == "DataLoader")
    unit = segment.unit
    return [call for call in calls if unit is None or unit.full_name(call.func).startswith("torch.utils.data.")]


def _repeats(segment: Segment, loads: list[ast.Call], reached: Reached) -> bool:
    """Whether loaders are constructed in a loop, whose data sets may have different sizes."""
    here = {id(call) for call in loads}
    return any(
        id(call) in here or _calls(call, segment, other.unit)
        for other in reached
        for calls, _ in other.once(_loops)
        for call in calls
    )


def _calls(call: ast.Call, segment: Segment, unit: SourceUnit | None) -> bool:
    """Whether the call may run the segment: a function, or the constructor or any method of a class."""
    name = last_name(call.func)
    if segment.cls:
        return name in (segment.cls, segment.name)
    return bool(name) and name == segment.name and unit is not None and unit.resolve(call.func).node is segment.node


def _shuffles(given: dict[str, ast.expr], segment: Segment, unit: SourceUnit) -> bool:
    """Whether a loader takes its items in an order that is drawn anew."""
    sampler, shuffle = given.get("sampler"), unparsed(given["shuffle"]) if "shuffle" in given else ""
    if sampler is None:
        return shuffle == "True"
    values = [inner for value in _given(sampler, segment) for inner in _either(value)]
    nothing = [value for value in values if isinstance(value, ast.Constant) and value.value is None]
    drawn = [value for value in values if isinstance(value, ast.Call) and unit.full_name(value.func) in _SAMPLERS]
    return bool(drawn) and len(nothing) + len(drawn) == len(values) and (not nothing or shuffle.endswith(" is None"))


def _either(node: ast.expr | None) -> Iterator[ast.expr | None]:
    if isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    else:
        yield node


def _given(node: ast.expr, segment: Segment) -> list[ast.expr | None]:
    """Return the values that a variable of a segment, or of its file, may have; any other expression itself."""
    if not isinstance(node, ast.Name):
        return [node]
    return bound_in(segment.body).get(node.id) or (segment.unit.assigned.get(node.id, []) if segment.unit else [])


def _batch(size: ast.expr | None, segment: Segment, reached: Reached, hops: int = 0) -> int:
    """Return the size of a batch, which a variable, callers or the default of an option may give; 0 if unknown."""
    if isinstance(size, ast.Constant):
        return size.value if isinstance(size.value, int) else 0
    if isinstance(size, ast.BinOp) and isinstance(size.op, ast.Mult) and hops < _MOST_HOPS:
        return _batch(size.left, segment, reached, hops + 1) * _batch(size.right, segment, reached, hops + 1)
    values = _given(size, segment) if size is not None else []
    if not values and isinstance(size, ast.Name) and hops < _MOST_HOPS:
        passed = [_batch(value, caller, reached, hops + 1) for value, caller in _passed(size.id, segment, reached)]
        if passed:
            return min(passed)
    if isinstance(size, ast.Attribute) or (isinstance(size, ast.Name) and not values):
        name = _plain(size.attr if isinstance(size, ast.Attribute) else size.id)
        values = [
            default for part in reached.having(_OPTION) for option, default in part.once(_options) if option == name
        ]
    deeper = hops + 1
    return min((_batch(value, segment, reached, deeper) if deeper <= _MOST_HOPS else 0 for value in values), default=0)


def _passed(name: str, segment: Segment, reached: Reached) -> Iterator[tuple[ast.expr | None, Segment]]:
    """Yield what the callers of a function give to its parameter of that name, None if unknown, and where they do."""
    node = segment.node if not segment.cls else None
    names = [parameter.arg for parameter in node.args.args] if isinstance(node, Definition) else []
    if name in names and isinstance(node, Definition):
        at, default = names.index(name), dict(zip(names[::-1], node.args.defaults[::-1], strict=False)).get(name)
        for caller in reached:
            for call in parts(caller) if segment.name.encode() in caller.words else ():
                if isinstance(call, ast.Call) and _calls(call, segment, caller.unit):
                    given = {str(place): value for place, value in enumerate(call.args)}
                    given |= {word.arg or "": word.value for word in call.keywords}
                    unclear = "" in given or any(isinstance(value, ast.Starred) for value in call.args)
                    yield None if unclear else given.get(name, given.get(str(at), default)), caller


def _options(segment: Segment) -> list[tuple[str, ast.expr | None]]:
    """Return the options of the command line that a segment states, each with its default."""
    calls = [node for node in parts(segment) if isinstance(node, ast.Call) and last_name(node.func) == "add_argument"]
    return [
        (_plain(word.value), next(iter(_keywords(call, ("default",))), None))
        for call in calls
        for word in call.args
        if isinstance(word, ast.Constant) and isinstance(word.value, str)
    ]


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


# The answer for a program


# Text of code that may vary the size outside of the data set: it makes the answer unknown
_DOUBT = re.compile(
    rb"multi_?scale|random_?resize(?!d)|GroupedBatchSampler|ResizeShortestEdge|RandomShortestSize|ScaleJitter|"
    rb"progressive_resiz|grow_size|random_size|sizes?\s*=\s*random|img_?scales|variable_size|keep_ratio|"
    rb"interpolate\([^)\n]*rand|"
    # buckets of sizes, rather than of gradients, files, positions or numbers
    rb"bucket\w*(?:sampl|batch|manag|reso|ing\b|boundar)|(?:aspect|size|resolution|length|enable)_?\w*bucket",
    re.IGNORECASE,
)


def input_size(reached: Reached, followed: Callable[[], Reached]) -> tuple[bool | None, Evidence]:
    """Return whether all images have one size, None if unknown, and the data sets and transforms that show it.

    Any code in `reached` can contradict it; only code in `followed`, which surely runs, is evidence for it.
    """
    size, _ = _judged(reached)
    again, evidence = _judged(followed()) if size is not None else (None, ())
    return (size, evidence) if again == size else (None, ())


def _judged(reached: Reached) -> tuple[bool | None, Evidence]:
    varied = next(filter(None, (segment.once(_collated) for segment in reached.having(_COLLATES))), ())
    every_set = data_sets(reached)
    sets = [data for data in every_set if not data.held_out]
    if varied:  # which is the program's data only if no data set has one size
        return (None, ()) if any(data.size == "fixed" for data in sets) else (False, varied)
    varying = [data for data in sets if data.size == "varying"]
    if varying and len(varying) == len(sets):
        return False, tuple(data.settled for data in varying if data.settled is not None)
    known = bool(sets) and all(data.size == "fixed" for data in sets)
    shown = () if known or varying else stacked(reached)
    if not (known or shown):
        return None, ()
    if shown:  # whatever the data sets draw, they give items that can be stacked
        reached = Reached(segment for segment in reached if not segment.once(_of_data))
    if (
        reached.having(_DOUBT)
        or rescaled(reached)
        or grows(reached)
        or any(segment.once(_scales_at_random) for segment in reached)
    ):
        return None, ()
    # cuDNN would tune for each size in an evaluation too, which reads images of several sizes one by one.
    if reached.having(_ALONE) and any(data.held_out and data.size != "fixed" for data in every_set):
        return None, ()
    if any(segment.once(_evaluates_files) for segment in reached):
        return None, ()
    # A collate function may scale a batch, unless a transform has already fixed the size.
    if reached.having(_COLLATES) and not (known and all(data.settled for data in sets)):
        return None, ()
    pairs = shown or (pair for data in sets for pair in ((data.name, data.at), data.settled) if pair is not None)
    return True, tuple(dict.fromkeys(pairs))


def _collated(segment: Segment) -> Evidence:
    """Return a loader whose `collate_fn` does what it must if the images, or sounds, of a batch differ in size."""
    unit = segment.unit if segment.has(_COLLATES) else None
    if unit is not None:
        for call in (node for node in parts(segment) if isinstance(node, ast.Call)):
            for value in _keywords(call, ("collate_fn",)):
                if does := _does(value if isinstance(value, ast.Lambda) else unit.resolve(value).node):
                    return ((f"collate_fn {does}", unit.file.locate(call)),)
    return ()


_LISTING = frozenset(("zip", "list", "tuple"))
_STACKING = frozenset(("stack", "cat", "default_collate", "zeros", "full", "pad", *_FUNCTIONS))


def _does(function: ast.AST | None) -> str:
    """Return how a function joins items of any size; '' if it does not, or they may have one size."""
    called = {last_name(node.func) for node in every(function) if isinstance(node, ast.Call)} if function else set()
    if "pad_sequence" in called:
        return "pads to the longest item" if called.isdisjoint(_STACKING) else ""
    return "makes lists" if "zip" in called and called <= _LISTING else ""
