"""What ONNX's operators do to the channels of feature maps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from convlint.readers.operations import (
    ChannelPlace,
    Effect,
    Shape,
    axes_of,
    flattens,
    joined_again,
    moved_by,
    parted,
    reshaped,
)

STANDARD_DOMAINS = frozenset({"", "ai.onnx"})
CONVOLUTIONS = frozenset({"Conv", "ConvTranspose", "ConvInteger", "QLinearConv"})
WEIGHT_INPUT = {"Conv": 1, "ConvTranspose": 1, "ConvInteger": 1, "QLinearConv": 3}
NORMS = frozenset({"BatchNormalization", "InstanceNormalization"})
CONSTANTS = frozenset({"Constant", "ConstantOfShape"})
BODIES = frozenset({"If", "Loop", "Scan"})
RESHAPES = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze"})

# write sizes, not maps: a model that is exported again with a wider layer has other ones
SIZES = frozenset({"Shape", "Size"})
# keep the sizes of their first input, whatever they read besides
_SAME = (
    "Abs Acos Acosh Asin Asinh Atan Atanh Bernoulli BitwiseNot Cast CastLike Ceil Celu Cos Cosh DequantizeLinear "
    "Dropout DynamicQuantizeLinear Elu Erf Exp Floor Gelu HardSigmoid HardSwish Hardmax Identity IsInf IsNaN LRN "
    "LayerNormalization LeakyRelu Log LogSoftmax LpNormalization MeanVarianceNormalization Mish Neg Not "
    "QuantizeLinear RMSNormalization Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softmax Softplus "
    "Softsign Sqrt Swish Tan Tanh ThresholdedRelu"
)
SAME = frozenset(_SAME.split())
# how many of the first inputs are data: from the others these take a type or a shape alone
DATA_INPUTS = {"CastLike": 1, "RandomNormalLike": 0, "RandomUniformLike": 0}
# broadcast all that they read to one shape
_ELEMENTWISE = (
    "Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Clip Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean "
    "Min Mod Mul Or PRelu Pow Sub Sum Where Xor"
)
ELEMENTWISE = frozenset(_ELEMENTWISE.split())
# work on the axes behind batch and channels
POOLS = frozenset({"AveragePool", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "LpPool", "MaxPool"})
# may change any axis: the shapes before and after tell which
ANY_AXIS = frozenset({"Resize", "Upsample", "Pad", "Expand"})
_REDUCED_BY = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare"
REDUCTIONS = frozenset(f"Reduce{kind}" for kind in _REDUCED_BY.split())
# all their outputs have the shape of the first; further outputs of other operators are numbers, not maps
ALIKE = frozenset({"Dropout", "MaxPool"})


class Map(NamedTuple):
    """A tensor that depends on the graph's inputs: the operation that makes it, and where its channels are.

    `composed`: the channels may be several runs, one after another, as a concatenation makes them. `made_up`: an
    operation that may do anything made them, so that they may be on any axis.
    """

    operation: int
    place: ChannelPlace
    composed: bool = False
    made_up: bool = False


class Given(NamedTuple):
    """A node with the maps that it reads, their shapes (`before`), and the shape of its first output (`after`)."""

    node: Any
    maps: Sequence[Map]
    before: Sequence[Shape | None]
    after: Shape | None
    constants: int  # how many of its inputs are constants
    measured: bool = False  # where it cuts is computed from the size of what it reads
    along: Sequence[int] = ()  # the axes that it reduces, where they are known

    @property
    def axis(self) -> int:
        """The axis of channels of the first map; 0 where they are on two."""
        place = self.maps[0].place
        return place if isinstance(place, int) else 0

    def number(self, name: str, default: int) -> int:
        """The whole number that an attribute of the node has."""
        return next((attribute.i for attribute in self.node.attribute if attribute.name == name), default)


def effect_of(op: str, given: Given) -> Effect | None:
    """The effect of a node of operator `op` on its maps; None where it may do anything."""
    for operand, shape in zip(given.maps, given.before, strict=True):
        if shape is not None and len(shape) <= max(axes_of(operand.place)):  # a vector or a number, without channels
            return None
    if op in ELEMENTWISE:
        return _elementwise(given)
    if op == "Concat":
        return _concatenation(given)
    rule = _RULES.get(op)
    if rule is None or len(given.maps) > 1 or not (given.axis or rule in (_same, _reshape, _transpose)):
        return None
    return rule(given)


def _same(given: Given) -> Effect:
    return Effect("identity", given.maps[0].place)


def _elementwise(given: Given) -> Effect | None:
    after, axis = given.after, given.axis
    if after is None or axis >= len(after) or after[axis] is None:
        return None
    for operand, shape in zip(given.maps, given.before, strict=True):
        if shape is None or len(shape) != len(after) or operand.place != axis:
            return None
    if len(given.maps) > 1:
        return Effect("add", axis)
    same = all(None in sizes or sizes[0] == sizes[1] for sizes in zip(given.before[0] or (), after, strict=True))
    return Effect("identity", axis) if same and _keeps_channels(given) else None


def _keeps_channels(given: Given) -> bool:
    """Whether the sizes of batch and channels, and the number of axes, are the same before and after."""
    before, after, axis = given.before[0], given.after, given.axis
    if before is None or after is None or len(before) != len(after) or axis >= len(after):
        return False
    return before[axis] is not None and before[axis] == after[axis] and before[0] == after[0]


def _concatenation(given: Given) -> Effect | None:
    shapes, axis = [given.after, *given.before], given.axis
    ranks = {len(shape) for shape in shapes if shape is not None}
    if given.constants or None in shapes or len(ranks) != 1 or any(operand.place != axis for operand in given.maps):
        return None
    if given.number("axis", 0) % min(ranks) == axis:
        return Effect("concat", axis)
    sizes = {shape[axis] for shape in shapes if shape is not None}
    return Effect("add", axis) if len(sizes) == 1 and None not in sizes else None


def _any_axis(given: Given) -> Effect | None:
    if not _keeps_channels(given):
        return None
    known = given.after is not None and None not in given.after[1:]
    return Effect("identity" if known and given.before[0] == given.after else "resize", given.axis)


def _reduction(given: Given) -> Effect | None:
    """A reduction over axes of space alone, or over the channels; not of one channel, of size 1 in either case.

    Where its axes are not known, those that keep none of space are told by sizes that no other axis has.
    """
    before, after = given.before[0], given.after
    if given.along and before is not None and after is not None:
        return _reduction_along({axis % len(before) for axis in given.along}, given.axis, before, after)
    if before is not None and after is not None and len(after) == 2 < len(before):
        others = [size for axis, size in enumerate(before) if axis not in (0, given.axis)]
        kept = after == (before[0], before[given.axis]) and {None, *after}.isdisjoint(others)
        return Effect("resize") if kept else None
    if before is None or given.axis >= len(before) or before[given.axis] == 1:
        return None
    if after is not None and len(after) == len(before) - 1:
        return _without_an_axis(given.axis, before, after)
    pooled = (*before[: given.axis], 1, *before[given.axis + 1 :])
    if after == pooled and None not in before[1:]:
        return Effect("channel_pool", given.axis)
    return Effect("resize", given.axis) if _keeps_channels(given) else None


def _reduction_along(axes: Collection[int], place: int, before: Shape, after: Shape) -> Effect | None:
    """A reduction over these axes; None where it is over the channels and others, or one channel."""
    keeps = len(after) == len(before)
    if place >= len(before) or before[place] in (None, 1):
        return None
    if place in axes:
        return Effect("channel_pool", place if keeps else 0) if len(axes) == 1 else None
    left = place if keeps else place - sum(axis < place for axis in axes)
    return Effect("resize", left) if left > 0 and after[left : left + 1] == (before[place],) else None


def _without_an_axis(place: int, before: Shape, after: Shape) -> Effect | None:
    """A reduction that keeps no axis, where the sizes tell whether it is that of the channels."""
    gone = [axis for axis in range(len(before)) if (*before[:axis], *before[axis + 1 :]) == after]
    if None in before[1:] or not gone:
        return None
    if gone == [place]:
        return Effect("channel_pool", 0)
    left = {place - (axis < place) for axis in gone}
    return Effect("resize", left.pop()) if place not in gone and len(left) == 1 and min(left) > 0 else None


def _norm(given: Given) -> Effect:
    """A norm of what is behind the batch, be it the channels or others."""
    return Effect("batchnorm" if given.axis == 1 else "identity", given.axis)


def _pool(given: Given) -> Effect | None:
    return Effect("resize", 1) if given.axis == 1 else None


def _group_norm(given: Given) -> Effect | None:
    groups = given.number("num_groups", 0)
    return Effect("identity", 1, groups=groups) if given.axis == 1 and groups > 0 else None


def _transpose(given: Given) -> Effect | None:
    """A transpose."""
    order = next((list(attribute.ints) for attribute in given.node.attribute if attribute.name == "perm"), [])
    place = moved_by(given.maps[0].place, order) if len(order) > 2 else None
    return None if place is None else Effect("identity", place)


def _shuffle(given: Given) -> Effect | None:
    """DepthToSpace. Mode DCR orders its input by block, then channel, which keeps a single run of channels together."""
    mode = next((attribute.s for attribute in given.node.attribute if attribute.name == "mode"), b"DCR")
    factor = given.number("blocksize", 0)
    if given.axis != 1 or factor < 1 or (mode != b"CRD" and (mode != b"DCR" or given.maps[0].composed)):
        return None
    return Effect("pixel_shuffle", 1, factor=factor)


def _unshuffle(given: Given) -> Effect | None:
    """SpaceToDepth, which orders its output by block, then channel."""
    factor = given.number("blocksize", 0)
    fits = given.axis == 1 and factor > 0 and not given.maps[0].composed
    return Effect("pixel_unshuffle", 1, factor=factor) if fits else None


def _view(given: Given) -> Effect | None:
    """A reshape that leaves the channels together."""
    before, after = given.before[0], given.after
    moved = None if before is None or after is None else reshaped(before, after, given.axis)
    return None if moved is None else Effect("identity" if before == after else "resize", moved)


def _reshape(given: Given) -> Effect | None:
    """A reshape that leaves the channels together, or to a vector of each image; two that shuffle channels."""
    before, after, place = given.before[0], given.after, given.maps[0].place
    if before is None or after is None:
        return None
    if isinstance(place, tuple):
        return joined_again(before, place, after)
    if len(after) == 2:
        return Effect("view") if flattens(before, after) else None
    return _view(given) or (parted(before, after) if place == 1 else None)


def _split(given: Given) -> Effect | None:
    """Equal parts of the channels, as many as the node has outputs, all of one size; or parts of another axis."""
    before, after, parts = given.before[0], given.after, len(given.node.output)
    if before is None or after is None or len(after) != len(before) or parts < 2:
        return None
    along = given.number("axis", 0) % len(before)
    if along != given.axis:
        return _any_axis(given)
    whole, part = before[given.axis], after[given.axis]
    fits = whole is not None and part is not None and whole == parts * part
    return Effect("split", given.axis, factor=parts) if fits else None


def _slice(given: Given) -> Effect | None:
    """One of several equal parts of the channels, which is so much of them however many; or a part of other axes."""
    before, after, axis = given.before[0], given.after, given.axis
    if before != after and _keeps_channels(given):
        return Effect("resize", axis)
    if not given.measured or before is None or after is None or len(before) <= axis or len(after) != len(before):
        return None
    whole, part = before[axis], after[axis]
    if whole is None or part is None or after != (*before[:axis], part, *before[axis + 1 :]):
        return None
    return Effect("split", axis, factor=whole // part) if part < whole and whole % part == 0 else None


def _product(given: Given) -> Effect | None:
    """A product of a map's channels, where they are on its last axis, with a matrix that is stored."""
    before, after = given.before[0], given.after
    known = before is not None and after is not None and given.axis == len(before) - 1 == len(after) - 1
    stored = given.constants and len(given.maps) == 1 and not given.number("transA", 0)
    return Effect("linear", given.axis) if known and stored else None


_RULES: Mapping[str, Callable[[Given], Effect | None]] = {
    **dict.fromkeys(SAME, _same),
    **dict.fromkeys(NORMS, _norm),
    **dict.fromkeys(POOLS, _pool),
    **dict.fromkeys(ANY_AXIS, _any_axis),
    **dict.fromkeys(REDUCTIONS, _reduction),
    "GroupNormalization": _group_norm,
    "Transpose": _transpose,
    "DepthToSpace": _shuffle,
    "SpaceToDepth": _unshuffle,
    "Squeeze": _view,
    "Unsqueeze": _view,
    "Split": _split,
    "Slice": _slice,
    **dict.fromkeys(("Reshape", "Flatten"), _reshape),
    **dict.fromkeys(("Gemm", "MatMul"), _product),
}
