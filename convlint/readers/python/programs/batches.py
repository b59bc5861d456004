"""What becomes of the images of a batch in the loop that trains on them: scaled to a size that changes."""

from __future__ import annotations

import ast
import re

from convlint.readers.python.programs.segments import Segment, parts

_SCALES = re.compile(rb"\b(?:interpolate|resize|upsample)\b")
_NAMES = frozenset(("interpolate", "resize", "upsample"))
_LIKE = re.compile(r"\.shape\b|\.size\(")  # of another tensor: what the model gives is brought to the labels' size


def scaled(segment: Segment) -> bool:
    """Whether a loop scales what it goes through to a size that nobody knows."""
    if not segment.has(_SCALES):
        return False
    return any(
        _scales(call, {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)})
        for loop in parts(segment)
        if isinstance(loop, ast.For)
        for call in ast.walk(loop)
        if isinstance(call, ast.Call)
    )


def _scales(call: ast.Call, names: set[str]) -> bool:
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name not in _NAMES or not call.args or _whose(call.args[0]) not in names:
        return False
    sizes = [*call.args[1:], *(each.value for each in call.keywords if each.arg in ("size", "scale_factor"))]
    return any(not _is_stated(size) and not _LIKE.search(ast.unparse(size)) for size in sizes)


def _whose(node: ast.expr) -> str:
    """The name that `name.cuda().float()` begins with."""
    while isinstance(node, ast.Attribute) or (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_stated(node: ast.expr) -> bool:
    return not any(isinstance(each, ast.Name) for each in ast.walk(node))
