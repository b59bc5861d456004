"""Data sets that a program trains on, and whether all of their images reach the model in one size."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property

from msgspec import Struct

from convlint.model.location import Location
from convlint.readers.python.programs.pipelines import Settled, inside, transformed
from convlint.readers.python.programs.segments import Segment
from convlint.readers.python.programs.transforms import Size
from convlint.readers.python.programs.unit import Named, Unit, bindings, statements
from convlint.readers.python.walking import below

# Data sets of torchvision whose images are all of one size.
ONE_SIZE = frozenset(
    [
        "CIFAR10",
        "CIFAR100",
        "MNIST",
        "FashionMNIST",
        "KMNIST",
        "EMNIST",
        "QMNIST",
        "SVHN",
        "STL10",
        "USPS",
        "FakeData",
        "PCAM",
        "EuroSAT",
        "Omniglot",
        "SEMEION",
        "CelebA",
    ]
)
_FOLDERS = frozenset(
    [
        "ImageFolder",
        "DatasetFolder",
        "ImageNet",
        "Places365",
        "LSUN",
        "Flowers102",
        "OxfordIIITPet",
        "Food101",
        "StanfordCars",
        "FGVCAircraft",
        "Caltech101",
        "Caltech256",
        "INaturalist",
        "SUN397",
        "DTD",
        "GTSRB",
        "Country211",
        "Imagenette",
        "RenderedSST2",
        "VOCSegmentation",
        "Cityscapes",
        "VOCDetection",
        "CocoDetection",
        "CocoCaptions",
        "SBDataset",
        "Kinetics",
        "HMDB51",
        "UCF101",
        "LFWPeople",
        "LFWPairs",
        "Flickr8k",
        "Flickr30k",
    ]
)
_BASES = {"torch.utils.data.Dataset", "torch.utils.data.IterableDataset", "torch.utils.data.dataset.Dataset"}
_HELD_OUT = ("val", "test", "eval", "query", "gallery", "infer", "demo", "predict", "sample")
_MOST_HOPS = 5
_NAMES = frozenset(name.encode() for name in ONE_SIZE | _FOLDERS)


class Data(Struct, frozen=True):
    """A data set that is made for training: what it is called, where, and of what sizes its images are."""

    name: str
    at: Location
    size: Size
    settled: Settled | None = None  # the transform that makes it so


class DataSets:
    """The data sets that segments make, each segment looked through once."""

    def __init__(self) -> None:
        self._made: dict[int, list[Data]] = {}

    def of(self, reached: Iterable[Segment]) -> list[Data]:
        """Those that the reached parts of a program make, held-out ones left aside."""
        return [each for segment in reached if _mentions(segment) for each in self._of(segment)]

    def _of(self, segment: Segment) -> list[Data]:
        if id(segment) not in self._made:
            self._made[id(segment)] = list(_made(segment))
        return self._made[id(segment)]


def _mentions(segment: Segment) -> bool:
    """Whether its words speak of data at all."""
    return b"data" in segment.content or b"Data" in segment.content or not _NAMES.isdisjoint(segment.words)


def _made(segment: Segment) -> Iterator[Data]:
    """The data sets that a segment makes for training."""
    unit = segment.unit
    bound = _Bound(segment.body) if unit is not None else None
    for node in statements(segment.body):
        if unit is None or bound is None or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for call in _own_calls(node):
            made = _data(call, bound, unit)
            if made is not None and not _held_out(call, _targets(node), segment):
                yield made


class _Bound:
    """What each variable of a body is bound to, looked for where a variable is called."""

    def __init__(self, body: list[ast.stmt]) -> None:
        self.body = body

    @cached_property
    def values(self) -> dict[str, list[ast.expr | None]]:
        """By name; None for what is a part of something."""
        found: dict[str, list[ast.expr | None]] = {}
        for node in statements(self.body):
            for name, value in bindings(node):
                found.setdefault(name, []).append(value)
        return found


def _targets(node: ast.stmt) -> str:
    """What a statement binds, as it is written."""
    return " ".join(map(ast.unparse, node.targets if isinstance(node, ast.Assign) else [])).lower()


def _own_calls(node: ast.stmt) -> Iterator[ast.Call]:
    """Calls in a statement itself, and not in the statements of its blocks."""
    waiting: list[ast.AST] = [each for each in below(node) if not isinstance(each, ast.stmt)]
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.Call):
            yield each
        waiting.extend(child for child in below(each) if not isinstance(child, ast.stmt))


def _data(call: ast.Call, bound: _Bound, unit: Unit) -> Data | None:
    """The data set that a call makes; None of any other call."""
    named = unit.named(call.func)
    names = [named.full.split(".")[-1]] if _of_library(named.full) else []
    if named == Named() and isinstance(call.func, ast.Name):
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


def _chosen(values: Iterable[ast.expr | None], unit: Unit) -> list[str]:
    """The data sets of a library among which a variable was chosen; none where it may be anything else."""
    full = ["" if each is None else unit.full_name(each) for each in values]
    return list(dict.fromkeys(each.split(".")[-1] for each in full)) if all(map(_of_library, full)) else []


def _library_base(node: ast.ClassDef, unit: Unit) -> str:
    """The data set of a library that a class adds something to."""
    full = (unit.full_name(base) for base in node.bases)
    return next((each.split(".")[-1] for each in full if _of_library(each)), "")


def _is_data_set(node: ast.ClassDef, unit: Unit, hops: int = 0) -> bool:
    for base in node.bases:
        named = unit.named(base)
        if named.full in _BASES or (named.full.startswith("torchvision.datasets.")):
            return True
        near = hops < _MOST_HOPS and isinstance(named.node, ast.ClassDef) and named.unit is not None
        if near and _is_data_set(named.node, named.unit, hops + 1):  # type: ignore[arg-type]
            return True
    return False


def _held_out(call: ast.Call, bound: str, segment: Segment) -> bool:
    """Whether a data set is for anything but training, by what it is given and by what it is called."""
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
