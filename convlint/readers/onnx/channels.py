"""ONNX operators: where each is defined, and which axis of its operands holds channels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from convlint.model.network import OperationKind
from convlint.readers.operations import one_element

if TYPE_CHECKING:
    import onnx


STANDARD_DOMAINS = frozenset({"", "ai.onnx"})
CONVOLUTIONS = frozenset({"Conv", "ConvTranspose", "ConvInteger", "QLinearConv"})
WEIGHT_INPUT = {"Conv": 1, "ConvTranspose": 1, "ConvInteger": 1, "QLinearConv": 3}
NORMS = frozenset({"BatchNormalization", "InstanceNormalization"})
CONSTANTS = frozenset({"Constant", "ConstantOfShape"})
BODIES = frozenset({"If", "Loop", "Scan"})
RESHAPES = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze"})

# sizes, not maps: whoever widens a layer and exports again gets others
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
# take nothing but a type or a shape from the inputs behind these
DATA_INPUTS = {"CastLike": 1, "RandomNormalLike": 0, "RandomUniformLike": 0}
# broadcast all that they read to one shape
_ELEMENTWISE = (
    "Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Clip Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean "
    "Min Mod Mul Or PRelu Pow Sub Sum Where Xor"
)
ELEMENTWISE = frozenset(_ELEMENTWISE.split())
# work on the axes behind batch and channels
POOLS = frozenset({"AveragePool", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "LpPool", "MaxPool"})
# may change any axis: the shapes around them tell which
ANY_AXIS = frozenset({"Resize", "Upsample", "Pad", "Expand"})
_REDUCED_BY = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare"
REDUCTIONS = frozenset(f"Reduce{kind}" for kind in _REDUCED_BY.split())
# all that they write has the shape of the first output; what others write besides is no map, but some numbers
ALIKE = frozenset({"Dropout", "MaxPool"})


Shape = tuple[int | None, ...]


class GraphScope:
    """What is known of the values of one graph: shapes, element types, stored tensors. Looks outward if need be."""

    __slots__ = ("outer", "tensors", "values")

    def __init__(self, graph: onnx.GraphProto, outer: GraphScope | None = None) -> None:
        self.values: dict[str, Any] = {value.name: value for value in graph.value_info}
        for declared in (graph.input, graph.output):
            self.values.update({value.name: value for value in declared})
        self.tensors: dict[str, Any] = {tensor.name: tensor for tensor in graph.initializer}
        self.outer = outer

    def shape(self, name: str) -> Shape | None:
        """Sizes of a value, None where unknown; None where even the rank is."""
        tensor = self.tensors.get(name)
        if tensor is not None:
            return tuple([size if size > 0 else None for size in tensor.dims])
        value = self.values.get(name)
        if value is None:
            return self.outer.shape(name) if self.outer is not None else None
        kind = value.type.tensor_type
        if not kind.HasField("shape"):
            return None
        # an axis without a value reads as 0, and so does a symbolic one
        return tuple([size if (size := axis.dim_value) > 0 else None for axis in kind.shape.dim])

    def element_type(self, name: str) -> int:
        """onnx.TensorProto.DataType of a value; 0 where unknown."""
        tensor = self.tensors.get(name)
        if tensor is not None:
            return int(tensor.data_type)
        value = self.values.get(name)
        if value is None:
            return self.outer.element_type(name) if self.outer is not None else 0
        return int(value.type.tensor_type.elem_type)

    def tensor(self, name: str) -> Any:
        """The stored tensor of that name, or None."""
        found = self.tensors.get(name)
        return self.outer.tensor(name) if found is None and self.outer is not None else found


class Map(NamedTuple):
    """A tensor that depends on the graph's inputs, and its axis of channels.

    `composed`: they may be several runs, one behind another, as concatenations make them.
    """

    operation: int
    axis: int
    composed: bool = False


class NodeEffect(NamedTuple):
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


def step_of(op: str, given: Given) -> NodeEffect | None:
    """What a node of that operator does; None where it may do anything, or nobody can tell."""
    if op in ELEMENTWISE:
        return _elementwise(given)
    if op == "Concat":
        return _concatenation(given)
    rule = _RULES.get(op)
    return None if rule is None or len(given.maps) > 1 else rule(given)


def _elementwise(given: Given) -> NodeEffect | None:
    after, axis = given.after, given.axis
    if after is None or axis >= len(after) or after[axis] is None:
        return None
    for each, shape in zip(given.maps, given.before, strict=True):
        if shape is None or len(shape) != len(after) or each.axis != axis:
            return None
    if len(given.maps) > 1:
        return NodeEffect("add", axis)
    same = all(None in sizes or sizes[0] == sizes[1] for sizes in zip(given.before[0] or (), after, strict=True))
    return NodeEffect("identity", axis) if same and _keeps_channels(given) else None


def _keeps_channels(given: Given) -> bool:
    """Whether batch and channels are as they were, and all axes still there."""
    before, after, axis = given.before[0], given.after, given.axis
    if before is None or after is None or len(before) != len(after) or axis >= len(after):
        return False
    return before[axis] is not None and before[axis] == after[axis] and before[0] == after[0]


def _concatenation(given: Given) -> NodeEffect | None:
    shapes, axis = [given.after, *given.before], given.axis
    ranks = {len(shape) for shape in shapes if shape is not None}
    if given.constants or None in shapes or len(ranks) != 1 or any(each.axis != axis for each in given.maps):
        return None
    along = given.number("axis", 0)
    return NodeEffect("concat", axis) if axis == (along + min(ranks) if along < 0 else along) else None


def _any_axis(given: Given) -> NodeEffect | None:
    if not _keeps_channels(given):
        return None
    known = given.after is not None and None not in given.after[1:]
    return NodeEffect("identity" if known and given.before[0] == given.after else "resize", given.axis)


def _reduction(given: Given) -> NodeEffect | None:
    """Over axes of space alone: the one channel of a map would look the same when reduced."""
    before = given.before[0]
    return NodeEffect("resize", given.axis) if _keeps_channels(given) and before and before[given.axis] != 1 else None


def _pool(given: Given) -> NodeEffect | None:
    return NodeEffect("resize", 1) if given.axis == 1 else None


def _group_norm(given: Given) -> NodeEffect | None:
    groups = given.number("num_groups", 0)
    return NodeEffect("identity", 1, groups=groups) if given.axis == 1 and groups > 0 else None


def _transpose(given: Given) -> NodeEffect | None:
    """Moves the channels to the front or the end of the axes of space, which stay in order."""
    order = next((list(each.ints) for each in given.node.attribute if each.name == "perm"), [])
    rank, axis = len(order), given.axis
    others = [position for position in range(rank) if position != axis]
    if axis not in order or [position for position in order if position != axis] != others:
        return None
    moved = order.index(axis)
    return NodeEffect("identity", moved) if rank > 2 and moved in (1, rank - 1) else None


def _shuffle(given: Given) -> NodeEffect | None:
    """DCR mode orders what it reads by block, then channel: only one run of channels stays in one piece then."""
    mode = next((each.s for each in given.node.attribute if each.name == "mode"), b"DCR")
    factor = given.number("blocksize", 0)
    if given.axis != 1 or factor < 1 or (mode != b"CRD" and (mode != b"DCR" or given.maps[0].composed)):
        return None
    return NodeEffect("pixel_shuffle", 1, factor=factor)


def _unshuffle(given: Given) -> NodeEffect | None:
    """Orders what it writes by block, then channel."""
    factor = given.number("blocksize", 0)
    whole = given.axis == 1 and factor > 0 and not given.maps[0].composed
    return NodeEffect("pixel_unshuffle", 1, factor=factor) if whole else None


def _one_element(given: Given) -> NodeEffect | None:
    """Adds or takes axes of one element around the channels of maps of one element."""
    before, after = given.before[0], given.after
    moved = None if before is None or after is None else one_element(before, after, given.axis)
    return None if moved is None else NodeEffect("identity", moved)


def _map_of_one_element(given: Given) -> NodeEffect | None:
    """What makes a vector may as well flatten maps of more elements: only what makes a map is sure to mean one."""
    return _one_element(given) if given.after is not None and len(given.after) > 2 else None


_RULES: Mapping[str, Callable[[Given], NodeEffect | None]] = {
    **dict.fromkeys(SAME, lambda given: NodeEffect("identity", given.axis)),
    **dict.fromkeys(NORMS, lambda given: NodeEffect("batchnorm", given.axis)),
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
