"""What one ONNX node does to the channels of the maps that it reads, by its operator, its attributes and the shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from convlint.model.operation import OperationKind
from convlint.readers.onnx.operators import ANY_AXIS, ELEMENTWISE, NORMS, POOLS, REDUCTIONS, SAME
from convlint.readers.onnx.scope import Shape
from convlint.readers.operations import one_element


class Map(NamedTuple):
    """A tensor that depends on the graph's inputs, and its axis of channels.

    `composed`: they may be several runs, one behind another, as concatenations make them.
    """

    operation: int
    axis: int
    composed: bool = False


class Step(NamedTuple):
    """What a node does; `axis` is that of the channels that it hands on."""

    kind: OperationKind
    axis: int
    factor: int = 1
    groups: int = 1


class Given(NamedTuple):
    """The maps that a node reads, and the shapes of these and of what it writes."""

    node: Any
    maps: Sequence[Map]
    before: Sequence[Shape | None]
    after: Shape | None
    constants: int  # how many of its inputs are no maps

    @property
    def axis(self) -> int:
        """Where the channels of the first map are."""
        return self.maps[0].axis

    def number(self, name: str, default: int) -> int:
        """A whole number among the node's attributes."""
        return next((each.i for each in self.node.attribute if each.name == name), default)


def step_of(op: str, given: Given) -> Step | None:
    """What a node of that operator does; None where it may do anything, or nobody can tell."""
    if op in ELEMENTWISE:
        return _elementwise(given)
    if op == "Concat":
        return _concatenation(given)
    rule = _RULES.get(op)
    return None if rule is None or len(given.maps) > 1 else rule(given)


def _elementwise(given: Given) -> Step | None:
    after, axis = given.after, given.axis
    if after is None or axis >= len(after) or after[axis] is None:
        return None
    for each, shape in zip(given.maps, given.before, strict=True):
        if shape is None or len(shape) != len(after) or each.axis != axis:
            return None
    if len(given.maps) > 1:
        return Step("add", axis)
    same = all(None in sizes or sizes[0] == sizes[1] for sizes in zip(given.before[0] or (), after, strict=True))
    return Step("identity", axis) if same and _keeps_channels(given) else None


def _keeps_channels(given: Given) -> bool:
    """Whether batch and channels are as they were, and all axes still there."""
    before, after, axis = given.before[0], given.after, given.axis
    if before is None or after is None or len(before) != len(after) or axis >= len(after):
        return False
    return before[axis] is not None and before[axis] == after[axis] and before[0] == after[0]


def _concatenation(given: Given) -> Step | None:
    shapes, axis = [given.after, *given.before], given.axis
    ranks = {len(shape) for shape in shapes if shape is not None}
    if given.constants or None in shapes or len(ranks) != 1 or any(each.axis != axis for each in given.maps):
        return None
    along = given.number("axis", 0)
    return Step("concat", axis) if axis == (along + min(ranks) if along < 0 else along) else None


def _any_axis(given: Given) -> Step | None:
    if not _keeps_channels(given):
        return None
    known = given.after is not None and None not in given.after[1:]
    return Step("identity" if known and given.before[0] == given.after else "resize", given.axis)


def _reduction(given: Given) -> Step | None:
    """Over axes of space alone: the one channel of a map would look the same when reduced."""
    before = given.before[0]
    return Step("resize", given.axis) if _keeps_channels(given) and before and before[given.axis] != 1 else None


def _pool(given: Given) -> Step | None:
    return Step("resize", 1) if given.axis == 1 else None


def _group_norm(given: Given) -> Step | None:
    groups = given.number("num_groups", 0)
    return Step("identity", 1, groups=groups) if given.axis == 1 and groups > 0 else None


def _transpose(given: Given) -> Step | None:
    """Moves the channels to the front or the end of the axes of space, which stay in order."""
    order = next((list(each.ints) for each in given.node.attribute if each.name == "perm"), [])
    rank, axis = len(order), given.axis
    others = [position for position in range(rank) if position != axis]
    if axis not in order or [position for position in order if position != axis] != others:
        return None
    moved = order.index(axis)
    return Step("identity", moved) if rank > 2 and moved in (1, rank - 1) else None


def _shuffle(given: Given) -> Step | None:
    """DCR mode orders what it reads by block, then channel: only one run of channels stays in one piece then."""
    mode = next((each.s for each in given.node.attribute if each.name == "mode"), b"DCR")
    factor = given.number("blocksize", 0)
    if given.axis != 1 or factor < 1 or (mode != b"CRD" and (mode != b"DCR" or given.maps[0].composed)):
        return None
    return Step("pixel_shuffle", 1, factor=factor)


def _unshuffle(given: Given) -> Step | None:
    """Orders what it writes by block, then channel."""
    factor = given.number("blocksize", 0)
    whole = given.axis == 1 and factor > 0 and not given.maps[0].composed
    return Step("pixel_unshuffle", 1, factor=factor) if whole else None


def _one_element(given: Given) -> Step | None:
    """Adds or takes axes of one element around the channels of maps of one element."""
    before, after = given.before[0], given.after
    moved = None if before is None or after is None else one_element(before, after, given.axis)
    return None if moved is None else Step("identity", moved)


def _map_of_one_element(given: Given) -> Step | None:
    """What makes a vector may as well flatten maps of more elements: only what makes a map is sure to mean one."""
    return _one_element(given) if given.after is not None and len(given.after) > 2 else None


_RULES: Mapping[str, Callable[[Given], Step | None]] = {
    **dict.fromkeys(SAME, lambda given: Step("identity", given.axis)),
    **dict.fromkeys(NORMS, lambda given: Step("batchnorm", given.axis)),
    **dict.fromkeys(POOLS, _pool),
    **dict.fromkeys(ANY_AXIS, _any_axis),
    **dict.fromkeys(REDUCTIONS, _reduction),
    "GroupNormalization": _group_norm,
    "Transpose": _transpose,
    "DepthToSpace": _shuffle,
    "SpaceToDepth": _unshuffle,
    "Squeeze": _one_element,
    "Unsqueeze": _one_element,
    "Reshape": _map_of_one_element,
}
