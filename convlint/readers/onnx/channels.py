"""ONNX operators by what they do to feature maps, and what a graph says of its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from convlint.model.network import WorkKind
from convlint.readers.operations import Effect, Shape, one_element

if TYPE_CHECKING:
    import onnx


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


# Hand on what they read, without a kernel.
_VIEWS = frozenset(("Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"))
_WORK: Mapping[str, WorkKind] = {
    "BatchNormalization": "batch norm", "InstanceNormalization": "group norm", "GroupNormalization": "group norm",
    **dict.fromkeys(("LayerNormalization", "RMSNormalization", "MeanVarianceNormalization", "LRN"), "layer norm"),
    **dict.fromkeys(("Add", "Sub", "Sum"), "add"), **dict.fromkeys(("Mul", "Div"), "multiply"), "Concat": "concat",
    **dict.fromkeys(("Softmax", "LogSoftmax"), "softmax"), "Gemm": "linear", "MatMul": "product",
    **dict.fromkeys(("Resize", "Upsample", "GridSample"), "resize"), **dict.fromkeys(POOLS, "pool"),
    **dict.fromkeys(REDUCTIONS, "reduce"), **dict.fromkeys(("ArgMax", "ArgMin", "TopK", "CumSum"), "reduce"),
    **dict.fromkeys(
        ("Cast", "DepthToSpace", "Expand", "Gather", "GatherElements", "GatherND", "Pad", "ScatterND", "Slice",
         "SpaceToDepth", "Split", "Tile", "Transpose"), "copy",
    ),
}  # fmt: skip


def kind_of_work(op: str) -> WorkKind | None:
    """What a node of this operator does; None where it runs no kernel."""
    if op in _VIEWS:
        return None
    return _WORK.get(op, "activation" if op in SAME or op in ELEMENTWISE else "unknown")


class GraphScope:
    """What is known of the values of one graph: shapes, element types, stored tensors.

    A value that the graph does not have is looked up in the graph around it, as ONNX scopes names.
    """

    __slots__ = ("outer", "tensors", "values")

    def __init__(self, graph: onnx.GraphProto, outer: GraphScope | None = None) -> None:
        self.values: dict[str, Any] = {value.name: value for value in graph.value_info}
        for declared in (graph.input, graph.output):
            self.values.update({value.name: value for value in declared})
        self.tensors: dict[str, Any] = {tensor.name: tensor for tensor in graph.initializer}
        self.outer = outer

    def shape(self, name: str) -> Shape | None:
        """The sizes of a value, each None where unknown; None where the rank is unknown too."""
        tensor = self.tensors.get(name)
        if tensor is not None:
            return tuple([size if size > 0 else None for size in tensor.dims])
        value = self.values.get(name)
        if value is None:
            return self.outer.shape(name) if self.outer is not None else None
        kind = value.type.tensor_type
        if not kind.HasField("shape"):
            return None
        # protobuf reads 0 from an axis without a value, and from a symbolic one
        return tuple([size if (size := axis.dim_value) > 0 else None for axis in kind.shape.dim])

    def element_type(self, name: str) -> int:
        """The onnx.TensorProto.DataType of a value; 0 where unknown."""
        tensor = self.tensors.get(name)
        if tensor is not None:
            return int(tensor.data_type)
        value = self.values.get(name)
        if value is None:
            return self.outer.element_type(name) if self.outer is not None else 0
        return int(value.type.tensor_type.elem_type)

    def tensor(self, name: str) -> Any:
        """The stored tensor of that name, or None."""
        tensor = self.tensors.get(name)
        return self.outer.tensor(name) if tensor is None and self.outer is not None else tensor


class Map(NamedTuple):
    """A tensor that depends on the graph's inputs: the operation that makes it, and its axis of channels.

    `composed`: the channels may be several runs, one after another, as a concatenation makes them.
    """

    operation: int
    axis: int
    composed: bool = False


class Given(NamedTuple):
    """A node with the maps that it reads, their shapes (`before`), and the shape of its first output (`after`)."""

    node: Any
    maps: Sequence[Map]
    before: Sequence[Shape | None]
    after: Shape | None
    constants: int  # how many of its inputs are constants

    @property
    def axis(self) -> int:
        """The axis of channels of the first map."""
        return self.maps[0].axis

    def number(self, name: str, default: int) -> int:
        """The whole number that an attribute of the node has."""
        return next((attribute.i for attribute in self.node.attribute if attribute.name == name), default)


def effect_of(op: str, given: Given) -> Effect | None:
    """The effect of a node of operator `op` on its maps; None where it may do anything."""
    if op in ELEMENTWISE:
        return _elementwise(given)
    if op == "Concat":
        return _concatenation(given)
    rule = _RULES.get(op)
    return None if rule is None or len(given.maps) > 1 else rule(given)


def _elementwise(given: Given) -> Effect | None:
    after, axis = given.after, given.axis
    if after is None or axis >= len(after) or after[axis] is None:
        return None
    for operand, shape in zip(given.maps, given.before, strict=True):
        if shape is None or len(shape) != len(after) or operand.axis != axis:
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
    if given.constants or None in shapes or len(ranks) != 1 or any(each.axis != axis for each in given.maps):
        return None
    along = given.number("axis", 0)
    return Effect("concat", axis) if axis == (along + min(ranks) if along < 0 else along) else None


def _any_axis(given: Given) -> Effect | None:
    if not _keeps_channels(given):
        return None
    known = given.after is not None and None not in given.after[1:]
    return Effect("identity" if known and given.before[0] == given.after else "resize", given.axis)


def _reduction(given: Given) -> Effect | None:
    """A reduction over axes of space alone; not of one channel, which would be of size 1 also when reduced."""
    before = given.before[0]
    return Effect("resize", given.axis) if _keeps_channels(given) and before and before[given.axis] != 1 else None


def _pool(given: Given) -> Effect | None:
    return Effect("resize", 1) if given.axis == 1 else None


def _group_norm(given: Given) -> Effect | None:
    groups = given.number("num_groups", 0)
    return Effect("identity", 1, groups=groups) if given.axis == 1 and groups > 0 else None


def _transpose(given: Given) -> Effect | None:
    """A transpose that moves the channels alone, before or behind the axes of space."""
    order = next((list(each.ints) for each in given.node.attribute if each.name == "perm"), [])
    rank, axis = len(order), given.axis
    others = [position for position in range(rank) if position != axis]
    if axis not in order or [position for position in order if position != axis] != others:
        return None
    moved = order.index(axis)
    return Effect("identity", moved) if rank > 2 and moved in (1, rank - 1) else None


def _shuffle(given: Given) -> Effect | None:
    """DepthToSpace. Mode DCR orders its input by block, then channel, which keeps a single run of channels together."""
    mode = next((each.s for each in given.node.attribute if each.name == "mode"), b"DCR")
    factor = given.number("blocksize", 0)
    if given.axis != 1 or factor < 1 or (mode != b"CRD" and (mode != b"DCR" or given.maps[0].composed)):
        return None
    return Effect("pixel_shuffle", 1, factor=factor)


def _unshuffle(given: Given) -> Effect | None:
    """SpaceToDepth, which orders its output by block, then channel."""
    factor = given.number("blocksize", 0)
    whole = given.axis == 1 and factor > 0 and not given.maps[0].composed
    return Effect("pixel_unshuffle", 1, factor=factor) if whole else None


def _one_element(given: Given) -> Effect | None:
    """Adds or removes axes of size 1 in maps of one element."""
    before, after = given.before[0], given.after
    moved = None if before is None or after is None else one_element(before, after, given.axis)
    return None if moved is None else Effect("identity", moved)


def _map_of_one_element(given: Given) -> Effect | None:
    """A reshape to a map. One to a vector may be a flatten, which meets larger maps when the input is larger."""
    return _one_element(given) if given.after is not None and len(given.after) > 2 else None


_RULES: Mapping[str, Callable[[Given], Effect | None]] = {
    **dict.fromkeys(SAME, lambda given: Effect("identity", given.axis)),
    **dict.fromkeys(NORMS, lambda given: Effect("batchnorm", given.axis)),
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
