"""Find the data sets that a program trains on, and the size of images behind their transforms."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Literal

from msgspec import Struct

from convlint.model.location import Location
from convlint.readers.python.programs.segments import Segment
from convlint.readers.python.programs.unit import ResolvedName, SourceUnit, bindings, last_name, statements
from convlint.readers.python.walking import below, every

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
_RANDOM = ("random", "randint", "choice", "uniform", "randrange")
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
        inside = (
            node.args[0]
            if node.args
            else next((each.value for each in node.keywords if each.arg == "transforms"), None)
        )
        if isinstance(inside, ast.List | ast.Tuple):
            return _chain(inside.elts, unit, before)
        return ("unknown", None) if before == "unknown" else (before, None)
    if name in ("RandomApply", "RandomChoice", "OneOf", "Lambda") or not is_transform(node, unit):
        return ("unknown", node) if _OWN_SIZES.search(name) else (before, None)
    if name == "Resize" and unit.full_name(node.func).startswith("albumentations") and len(node.args) > 1:
        return "fixed", node  # torchvision's second argument is no width
    return _one(name, node, before)


def _chain(parts: list[ast.expr], unit: SourceUnit, before: Size) -> tuple[Size, ast.expr | None]:
    size, settled = before, None
    for each in parts:
        after, by = size_after(each, unit, size)
        if by is not None:
            size, settled = after, by
    return size, settled


def _one(name: str, node: ast.Call, before: Size) -> tuple[Size, ast.expr | None]:
    given = [
        *node.args,
        *(each.value for each in node.keywords if each.arg in ("size", "height", "width", "output_size")),
    ]
    if any(_drawn(each) for each in given):
        return "varying", node
    if name in _VARYING:
        return "varying", node
    if name in _CROPS:
        pads = {each.arg for each in node.keywords}
        return ("fixed", node) if given or pads else (before, None)
    if name == "create_transform":
        return "fixed", node
    if name in ("Resize", "Scale"):
        return _resized(node, given, before)
    if name == "RandomRotation" and any(
        each.arg == "expand" and not (isinstance(each.value, ast.Constant) and not each.value.value)
        for each in node.keywords
    ):
        return "varying", node
    return before, None


def _resized(node: ast.Call, given: list[ast.expr], before: Size) -> tuple[Size, ast.expr | None]:
    """Return the size behind a resize: fixed with both sides; one side keeps the aspect ratio of each image."""
    keywords = {each.arg for each in node.keywords}
    first = given[0] if given else None
    both = {"height", "width"} <= keywords or (isinstance(first, ast.Tuple | ast.List) and len(first.elts) == 2)
    two = len(node.args) >= 2 and all(_is_number(each) for each in node.args[:2])  # albumentations' Resize(h, w)
    if both or two:
        return "fixed", node
    return ("fixed", node) if before == "fixed" else ("unknown", node)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value > 8


def _drawn(node: ast.expr) -> bool:
    """Whether a size is random."""
    return any(isinstance(each, ast.Call) and last_name(each.func) in _RANDOM for each in every(node))


Settled = tuple[str, Location]  # the transform that decides a size, as text, and its location
_MOST_HOPS = 5


def transformed(call: ast.Call, body: list[ast.stmt], unit: SourceUnit, before: Size) -> tuple[Size, Settled | None]:
    """Return the size behind the transforms among the arguments of a data set."""
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
    # Several transforms: one that varies the size decides, then one that is unknown.
    return next((one for size in ("varying", "unknown") for one in results if one[0] == size), results[0])


def _values(node: ast.expr, body: list[ast.stmt], unit: SourceUnit, hops: int) -> Iterator[tuple[ast.expr, SourceUnit]]:
    """Yield the expressions that an argument may stand for: the values of its name, the results of a function."""
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
    """Yield the values that a dict may have at a key: all of them, if the key is no literal."""
    for key, value in zip(table.keys, table.values, strict=True):
        match key, at:
            case ast.Constant(value=one), ast.Constant(value=other) if one != other:
                continue
        yield value


def _bound(name: str, body: list[ast.stmt]) -> list[ast.expr]:
    """Return the values bound to a name in a body."""
    return [value for node in statements(body) for one, value in bindings(node) if one == name and value is not None]


def inside(node: ast.ClassDef, unit: SourceUnit) -> tuple[Size, Settled | None]:
    """Return the size behind the transforms inside the class of a data set."""
    results = []
    for each in every(node):
        if isinstance(each, ast.Call) and is_transform(each, unit) and unit.full_name(each.func).endswith(".Compose"):
            size, by = size_after(each, unit)
            results.append((size, _words(by, unit) if by is not None else None))
    if not results or any(size != "fixed" for size, _ in results):
        return next((one for one in results if one[0] == "varying"), ("unknown", None))
    return results[0]


def _words(node: ast.expr, unit: SourceUnit) -> Settled:
    text = ast.unparse(node)
    name, _, rest = text.partition("(")
    return f"{name.split('.')[-1]}({rest}" if len(text) < 80 else f"{name.split('.')[-1]}(...)", unit.file.locate(node)


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
_HELD_OUT = ("val", "test", "eval", "query", "gallery", "infer", "demo", "predict", "sample")
_NAMES = frozenset(name.encode() for name in ONE_SIZE | _FOLDERS)


class Data(Struct, frozen=True):
    """A data set for training: its name, its construction, and the size of its images."""

    name: str
    at: Location
    size: Size
    settled: Settled | None = None  # the transform that makes it so


def data_sets(reached: Iterable[Segment]) -> list[Data]:
    """Return the data sets that the segments construct, without those held out for evaluation."""
    return [each for segment in reached if _mentions(segment) for each in segment.once(_made)]


def _mentions(segment: Segment) -> bool:
    """Whether the text of a segment can construct a data set."""
    return b"data" in segment.content or b"Data" in segment.content or not _NAMES.isdisjoint(segment.words)


def _made(segment: Segment) -> list[Data]:
    """Return the data sets for training that a segment constructs."""
    unit, found = segment.unit, []
    bound = _Bound(segment.body) if unit is not None else None
    for node in statements(segment.body):
        if unit is None or bound is None or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for call in _own_calls(node):
            made = _data(call, bound, unit)
            if made is not None and not _held_out(call, _targets(node), segment):
                found.append(made)
    return found


class _Bound:
    """The values of the variables of a body, computed when a variable is called."""

    def __init__(self, body: list[ast.stmt]) -> None:
        self.body = body

    @cached_property
    def values(self) -> dict[str, list[ast.expr | None]]:
        """The values by name; None for one that is unpacked."""
        found: dict[str, list[ast.expr | None]] = {}
        for node in statements(self.body):
            for name, value in bindings(node):
                found.setdefault(name, []).append(value)
        return found


def _targets(node: ast.stmt) -> str:
    """Return the source text of a statement's targets, in lower case."""
    return " ".join(map(ast.unparse, node.targets if isinstance(node, ast.Assign) else [])).lower()


def _own_calls(node: ast.stmt) -> Iterator[ast.Call]:
    """Yield the calls in a statement, without those in its blocks."""
    waiting: list[ast.AST] = [each for each in below(node) if not isinstance(each, ast.stmt)]
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.Call):
            yield each
        waiting.extend(child for child in below(each) if not isinstance(child, ast.stmt))


def _data(call: ast.Call, bound: _Bound, unit: SourceUnit) -> Data | None:
    """Return the data set that a call constructs; None for any other call."""
    named = unit.named(call.func)
    names = [named.full.split(".")[-1]] if _of_library(named.full) else []
    if named == ResolvedName() and isinstance(call.func, ast.Name):
        names = _chosen(bound.values.get(call.func.id, []), unit)
    if names:
        before: Size = "fixed" if ONE_SIZE.issuperset(names) else "unknown"
        size, settled = transformed(call, bound.body, unit, before)
        return Data(" or ".join(names), unit.file.locate(call), size, settled)
    if not isinstance(named.node, ast.ClassDef) or named.unit is None or not _is_data_set(named.node, named.unit):
        return None
    of_one_size = _library_base(named.node, named.unit) in ONE_SIZE
    size, settled = transformed(call, bound.body, unit, "fixed" if of_one_size else "unknown")
    if settled is None and not of_one_size:
        size, settled = inside(named.node, named.unit)
    return Data(named.node.name, unit.file.locate(call), size, settled)


def _of_library(full: str) -> bool:
    return full.startswith("torchvision.datasets") and full.split(".")[-1] in ONE_SIZE | _FOLDERS


def _chosen(values: Iterable[ast.expr | None], unit: SourceUnit) -> list[str]:
    """Return the library's data sets that a variable may stand for; none if it may be anything else."""
    full = ["" if each is None else unit.full_name(each) for each in values]
    return list(dict.fromkeys(each.split(".")[-1] for each in full)) if all(map(_of_library, full)) else []


def _library_base(node: ast.ClassDef, unit: SourceUnit) -> str:
    """Return the library's data set from which a class derives; '' if there is none."""
    full = (unit.full_name(base) for base in node.bases)
    return next((each.split(".")[-1] for each in full if _of_library(each)), "")


def _is_data_set(node: ast.ClassDef, unit: SourceUnit, hops: int = 0) -> bool:
    for base in node.bases:
        named = unit.named(base)
        if named.full in _BASES or (named.full.startswith("torchvision.datasets.")):
            return True
        near = hops < _MOST_HOPS and isinstance(named.node, ast.ClassDef) and named.unit is not None
        if near and _is_data_set(named.node, named.unit, hops + 1):  # type: ignore[arg-type]
            return True
    return False


def _held_out(call: ast.Call, bound: str, segment: Segment) -> bool:
    """Whether a data set is held out for evaluation, by its arguments or by its name."""
    for keyword in call.keywords:
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if keyword.arg in ("train", "is_train", "training") and value is False:
            return True
        if keyword.arg in ("split", "mode", "image_set", "phase", "subset", "partition", "set") and isinstance(
            value, str
        ):
            return any(each in value.lower() for each in _HELD_OUT)
    if any(
        isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value.lower() in _HELD_OUT
        for each in call.args
    ):
        return True
    words = bound.replace(".", "_").split("_")
    if any(word.startswith(_HELD_OUT) for word in words) and "train" not in bound:
        return True
    owner = segment.name.lower()
    return any(each in owner for each in ("val", "test", "eval")) and "train" not in owner
