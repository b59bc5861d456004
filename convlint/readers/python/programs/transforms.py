"""What a chain of image transforms makes of the size of an image: one size for all, or sizes that differ."""

from __future__ import annotations

import ast
import re
from typing import Literal

from convlint.readers.python.programs.unit import Unit
from convlint.readers.python.walking import every

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


def is_transform(node: ast.expr, unit: Unit) -> bool:
    """Whether an expression makes a transform of a library, or a chain of them."""
    return isinstance(node, ast.Call) and unit.full_name(node.func).startswith(_MODULES)


def size_after(node: ast.expr, unit: Unit, before: Size = "unknown") -> tuple[Size, ast.expr | None]:
    """The size behind a transform or a chain, and the transform that settles it. `before` is that of the data."""
    if isinstance(node, ast.List | ast.Tuple):
        return _chain(node.elts, unit, before)
    if not isinstance(node, ast.Call):
        return before, None
    name = unit.full_name(node.func).split(".")[-1] or _last(node.func)
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


def _chain(parts: list[ast.expr], unit: Unit, before: Size) -> tuple[Size, ast.expr | None]:
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
    """Both sides given, or one size for data of one size; one side alone keeps the shape of each image."""
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
    """Whether a size is drawn at random."""
    return any(isinstance(each, ast.Call) and _last(each.func) in _RANDOM for each in every(node))


def _last(func: ast.expr) -> str:
    if isinstance(func, ast.Attribute):
        return func.attr
    return func.id if isinstance(func, ast.Name) else ""
