"""PyTorch's operators: the role of each, its effect on feature maps, and its work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from msgspec.structs import replace

from convlint.model.network import BATCH_NORMS, PROMOTED, SPLITS, OperationKind, Work, WorkKind
from convlint.readers.operations import (
    WITH_WEIGHTS,
    ChannelPlace,
    Effect,
    Shape,
    channels_second,
    elements,
    joined_again,
    moved_by,
    parted,
    reshaped,
)

_ONE_TO_THREE = ("1d", "2d", "3d")
DETACHES = frozenset(("aten::detach", "aten::detach_"))  # no gradient goes back through them
# operator -> positions of stride, padding, dilation, transposed (or its constant value), output padding, groups
CONVOLUTIONS: dict[str, tuple[int, int, int, bool | int, int | None, int]] = {
    "aten::convolution": (3, 4, 5, 6, 7, 8),
    "aten::_convolution": (3, 4, 5, 6, 7, 8),
    "aten::convolution_overrideable": (3, 4, 5, 6, 7, 8),
    "aten::_convolution_mode": (3, 4, 5, False, None, 6),
    **{f"aten::conv{n}": (3, 4, 5, False, None, 6) for n in _ONE_TO_THREE},
    **{f"aten::conv_transpose{n}": (3, 4, 7, True, 5, 6) for n in _ONE_TO_THREE},
}
NORMS = frozenset(
    {
        "aten::batch_norm", "aten::native_batch_norm", "aten::_native_batch_norm_legit", "aten::cudnn_batch_norm",
        "aten::_native_batch_norm_legit_no_training", "aten::_batch_norm_with_update", "aten::instance_norm",
    }
)  # fmt: skip
LEARNED = frozenset(
    {
        "aten::linear", "aten::addmm", "aten::mm", "aten::bmm", "aten::matmul", "aten::embedding", "aten::einsum",
        "aten::bilinear", "aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu", "aten::baddbmm",
        "aten::scaled_dot_product_attention",
    }
)  # fmt: skip
# operators whose result may be a view of their first argument, so that a write to one changes the other
_VIEWS = """
    _reshape_alias adjoint alias as_strided broadcast_to chunk contiguous detach diagonal dsplit expand expand_as
    flatten hsplit lift_fresh moveaxis movedim narrow permute pin_memory positive ravel real reshape reshape_as
    resolve_conj resolve_neg select slice split split_with_sizes squeeze swapaxes swapdims t tensor_split to transpose
    unbind unflatten unfold unsqueeze view view_as view_as_complex view_as_real vsplit
"""
VIEWS = frozenset(f"aten::{name}" for name in _VIEWS.split())
# views of some of the elements that they read
PARTS = SPLITS | {"dsplit", "hsplit", "narrow", "select", "slice", "tensor_split", "vsplit"}
# operators that copy a tensor whose layout is not the one asked for
_COPIES = "_to_copy _unsafe_view clone contiguous copy flatten reshape to type_as"
MAY_COPY = frozenset(f"aten::{name}" for name in _COPIES.split())
NORM = "norm"


def is_frozen(name: str, argument: Callable[[str], Any]) -> bool:
    """Whether an operator normalises by stored statistics, which cancel no bias."""
    flag = "use_input_stats" if name == "aten::instance_norm" else "training"
    return name == "aten::_native_batch_norm_legit_no_training" or (name in NORMS and argument(flag) is False)


def role(name: str) -> str | None:
    """The role of an operator: convolution, norm, learned, unknown (its name has `conv` in it), or None for others."""
    if name in CONVOLUTIONS:
        return "convolution"
    if name in NORMS:
        return NORM
    if name in LEARNED:
        return "learned"
    return "unknown" if "conv" in name.partition("::")[2] else None


# Operators that torch tags as pointwise (torch.Tag.pointwise), without max and min, which reduce as well, and
# without those that do not occur in networks.
_TAGGED = """
    abs acos acosh add addcdiv addcmul angle asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor
    ceil celu clamp clamp_max clamp_min clip clone copysign cos cosh deg2rad digamma div elu eq erf erfc erfinv exp exp2
    expm1 float_power floor fmax fmin fmod frac ge gelu gt hardshrink hardsigmoid hardtanh heaviside hypot isfinite
    isinf isnan ldexp le leaky_relu lerp lgamma log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not
    logical_or logical_xor logit lt masked_fill maximum minimum mish mul nan_to_num ne neg positive pow rad2deg
    reciprocal relu relu6 remainder round rrelu rsqrt rsub selu sgn sigmoid sign silu sin sinc sinh softplus softshrink
    sqrt square sub tan tanh threshold true_divide trunc where xlogy
"""
# Pointwise operators without the tag: compositions and aliases of tagged ones, and those that fill a tensor.
_UNTAGGED = """
    absolute arccos arccosh arcsin arcsinh arctan arctanh bernoulli copy divide empty_like fill fix floor_divide
    full_like greater greater_equal hardswish less less_equal log_sigmoid multiply negative normal normal_functional
    not_equal ones_like prelu rand_like randn_like rrelu_with_noise subtract uniform zero zeros_like _prelu_kernel
"""
TAGGED, UNTAGGED = frozenset(_TAGGED.split()), frozenset(_UNTAGGED.split())
POINTWISE = TAGGED | UNTAGGED


_TO_THE_END = 2**62  # torch writes the largest integer for the end of a slice that has none


OPAQUE = Effect("reshape")


class OperatorCall(NamedTuple):
    """A call of an operator.

    `reads`: the shapes of the activations among its arguments, in order; `different`: how many distinct tensors these
    are; `tensors`: how many arguments are tensors, with constants; `at`: which of these is the first activation.
    `written`: the shape of its first result. `argument` returns an argument by its name in the schema: None where it
    is absent, and an object of another type where its value is not known. `axes`: where each activation has its
    channels.
    """

    reads: Sequence[Shape]
    different: int
    tensors: int
    at: int
    written: Shape
    argument: Callable[[str], Any]
    axes: Sequence[ChannelPlace]

    @property
    def axis(self) -> int:
        """The axis of the channels of all that it reads; 0 where not all have the same."""
        found = {(axis, len(shape)) for axis, shape in zip(self.axes, self.reads, strict=True)}
        (axis, _), *others = found or {(0, 0)}
        return axis if isinstance(axis, int) and not others else 0

    @property
    def are_last(self) -> bool:
        """Whether the channels of all that it reads are on the last axis."""
        return self.axis == len(self.reads[0]) - 1

    def turned(self) -> OperatorCall:
        """The same call of tensors whose channels are behind the batch; `axis` is that of them all."""
        rank, place = len(self.reads[0]), self.axis

        def moved(axis: Any) -> Any:
            if not isinstance(axis, int):
                return axis
            at = axis % rank
            return 1 if at == place else at + (0 < at < place)

        def argument(name: str) -> Any:
            value = self.argument(name)
            if name != "dim":
                return value
            return [moved(axis) for axis in value] if isinstance(value, (list, tuple)) else moved(value or 0)

        reads = [channels_second(shape, place) for shape in self.reads]
        written = channels_second(self.written, place)
        return self._replace(reads=reads, written=written, argument=argument, axes=(1,) * len(reads))


def effect_of(name: str, call: OperatorCall) -> Effect:
    """The effect of an operator that is no convolution."""
    behind_batch = all(axis == 1 for axis in call.axes)
    if role(name) == NORM:  # of what is behind the batch, be it the channels or others
        return _NORM if behind_batch else Effect("identity", call.axis) if call.axis else OPAQUE
    short, axis = plain(name), 1
    # `max` and `min` of one tensor reduce.
    rule = _reduced if short in _LARGER and call.tensors == 1 else _RULES.get(short)
    if rule is None or not all(len(shape) in _RANKS for shape in (*call.reads, call.written)):
        return OPAQUE
    if any(isinstance(place, tuple) for place in call.axes):
        return _of_parts(rule, short, call)
    if rule in _PLACING:
        return rule(short, call)
    if short in _OF_THE_LAST_AXIS or not behind_batch:
        if not (call.are_last if short in _OF_THE_LAST_AXIS else call.axis) or short in _OF_SPACE:
            return OPAQUE
        axis = call.axis
        if len(call.written) != len(call.reads[0]):
            return OPAQUE
        call = call.turned()
    shapes = (*call.reads, call.written)
    known = all(shape[1] is not None for shape in shapes)
    same_rank = all(len(shape) == len(call.written) for shape in shapes)
    effect = rule(short, call) if known and same_rank else OPAQUE
    return effect if axis == 1 or effect is OPAQUE else replace(effect, axis=axis)


def plain(name: str) -> str:
    """An operator's name as the tables have it: `relu` for `aten::relu_`."""
    short = name.removeprefix("aten::")
    return short[:-1] if writes_in_place(name) else short


def writes_in_place(name: str) -> bool:
    """Whether an operator changes its first argument, by its name."""
    return name.endswith("_") and not name.endswith("__")


_RANKS = (2, 3, 4, 5)
_NORM, _IDENTITY, _RESIZED = Effect("batchnorm"), Effect("identity"), Effect("resize")
_ADDED, _CONCATENATED = Effect("add"), Effect("concat")


def _pointwise(_: str, call: OperatorCall) -> Effect:
    """One tensor may be broadcast to another, but no operand may have more channels than the result."""
    if max(_channels(shape) for shape in call.reads) != call.written[1]:
        return OPAQUE
    if call.different > 1:
        return _ADDED
    return _IDENTITY if call.reads[0] == call.written else _RESIZED


def _unchanged(_: str, call: OperatorCall) -> Effect:
    return _IDENTITY if _alone(call) and call.reads[0] == call.written else OPAQUE


def _viewed(_: str, call: OperatorCall) -> Effect:
    """A view keeps the order of elements: those of a channel stay together, or all those of an image in one vector."""
    before, after, place = call.reads[0], call.written, call.axes[0]
    if None in (*before, *after) or isinstance(place, tuple):
        return OPAQUE
    if before == after and call.different == 1:
        return Effect("identity", place)
    moved = reshaped(before, after, place)
    if moved is not None and all(axis == moved for axis in call.axes[1:]):  # as those of what gives the sizes
        return Effect("resize", moved)
    if call.different > 1 or before[0] != after[0]:
        return OPAQUE
    if len(after) == 2:
        return Effect("view") if place in (1, len(before) - 1) else OPAQUE
    return (parted(before, after) if place == 1 else None) or OPAQUE


def _spatial(name: str, call: OperatorCall) -> Effect:
    """Pooling and interpolation, whose names have the number of axes of space."""
    return _RESIZED if _alone(call) and f"{len(call.written) - 2}d" in name else OPAQUE


def _padded(_: str, call: OperatorCall) -> Effect:
    """Padding that spares batch and channels: two numbers for each axis, from the last one on."""
    widths = call.argument("pad")
    known = isinstance(widths, (list, tuple)) and len(widths) <= 2 * (len(call.written) - 2)
    return _RESIZED if known and _alone(call) else OPAQUE


def _reduced(_: str, call: OperatorCall) -> Effect:
    """A reduction over axes of space, or over the channels alone."""
    axes, place, rank = call.argument("dim"), call.axis, len(call.reads[0])
    axes = [axes] if isinstance(axes, int) else axes
    if not isinstance(axes, (list, tuple)) or not axes or not all(isinstance(axis, int) for axis in axes):
        return OPAQUE
    reduced = {axis % rank for axis in axes}
    keeps = call.argument("keepdim") is True
    if place in reduced:
        return Effect("channel_pool", place if keeps else 0) if len(reduced) == 1 and place else OPAQUE
    return _left_at(place if keeps else place - sum(axis < place for axis in reduced), call)


def _selected(_: str, call: OperatorCall) -> Effect:
    """One position of an axis, which is then gone."""
    axis, place = call.argument("dim") or 0, call.axis
    if not isinstance(axis, int) or axis % len(call.reads[0]) == place:
        return OPAQUE
    return _left_at(place - (axis % len(call.reads[0]) < place), call)


def _left_at(place: int, call: OperatorCall) -> Effect:
    """The effect of an operator that leaves the channels as they are, at that axis of what it writes."""
    size = call.reads[0][call.axis]
    known = len(call.reads) == 1 and 0 < place < len(call.written) and size is not None
    return Effect("resize", place) if known and call.written[place] == size else OPAQUE


def _stacked(_: str, call: OperatorCall) -> Effect:
    """Tensors of the same sizes, or one alone, along an axis of their own."""
    axis, place = call.argument("dim") or 0, call.axis
    known = isinstance(axis, int) and place > 0 and call.tensors == len(call.reads)
    if not known or call.reads[0][place] is None:
        return OPAQUE
    return Effect("add" if call.different > 1 else "resize", place + (axis % len(call.written) <= place))


def _squeezed(_: str, call: OperatorCall) -> Effect:
    """Removes axes of one element; opaque where the only channel is one of them, since several channels would stay."""
    axes, place, rank = call.argument("dim"), call.axis, len(call.reads[0])
    axes = [axes] if isinstance(axes, int) else list(range(rank)) if axes is None else axes
    if not isinstance(axes, (list, tuple)) or not all(isinstance(axis, int) for axis in axes):
        return OPAQUE
    gone = {at for axis in axes if call.reads[0][at := axis % rank] == 1}
    return OPAQUE if place in gone else _left_at(place - sum(axis < place for axis in gone), call)


def _multiplied(name: str, call: OperatorCall) -> Effect:
    """A product of the channels with a matrix that is no activation."""
    known = len(call.reads) == 1 and call.tensors > 1 and call.reads[0][2:] == call.written[2:]
    return Effect("linear") if known and call.at == (name == "addmm") else OPAQUE


def _layer_norm(_: str, call: OperatorCall) -> Effect:
    """A norm over the channels alone."""
    sizes = call.argument("normalized_shape")
    known = isinstance(sizes, (list, tuple)) and len(sizes) == 1
    return _IDENTITY if known and _alone(call) and call.reads[0] == call.written else OPAQUE


def _moved(name: str, call: OperatorCall) -> Effect:
    """A permutation."""
    rank = len(call.reads[0])
    given = call.argument("dims") if name == "permute" else [call.argument("dim0"), call.argument("dim1")]
    if not isinstance(given, (list, tuple)) or not all(isinstance(axis, int) for axis in given):
        return OPAQUE
    order = [axis % rank for axis in given]
    if name == "transpose":
        first, second = order
        order = [second if axis == first else first if axis == second else axis for axis in range(rank)]
    place = moved_by(call.axes[0], order)
    return OPAQUE if place is None else Effect("identity", place)


def _of_parts(rule: Callable[[str, OperatorCall], Effect], name: str, call: OperatorCall) -> Effect:
    """The effect on a tensor that a shuffle of channels has parted, which has them on two axes."""
    place, before = call.axes[0], call.reads[0]
    if isinstance(place, int) or len(call.reads) > 1:
        return OPAQUE
    if rule is _viewed:
        return joined_again(before, place, call.written) or OPAQUE
    if rule is _moved:
        return _moved(name, call)
    return Effect("identity", place) if rule in (_unchanged, _pointwise) and before == call.written else OPAQUE


def _sliced(name: str, call: OperatorCall) -> Effect:
    """A slice along an axis of space, or of all channels without naming their number."""
    axis = call.argument("dim") or 0
    if not isinstance(axis, int) or not _alone(call):
        return OPAQUE
    if axis % len(call.written) != 1:
        return _IDENTITY if call.reads[0] == call.written else _RESIZED
    start, end, stride = map(call.argument, ("start", "end", "step"))
    to_the_end = end is None or (isinstance(end, int) and end >= _TO_THE_END)
    return _IDENTITY if name == "slice" and start in (None, 0) and to_the_end and stride in (None, 1) else OPAQUE


def _divided(name: str, call: OperatorCall) -> Effect:
    """Equal parts of the channels, and a gate, which makes one of two."""
    axis, whole, part = call.argument("dim"), _channels(call.reads[0]), _channels(call.written)
    axis = (-1 if name == "glu" else 0) if axis is None else axis
    sizes = call.argument("split_sizes") if name == "split_with_sizes" else call.argument("split_size")
    if isinstance(axis, int) and axis % len(call.written) != 1 and name != "glu":
        return _RESIZED if _alone(call) else OPAQUE
    known = isinstance(axis, int) and len(call.reads) == 1
    equal = not isinstance(sizes, (list, tuple)) or all(size == part for size in sizes)
    fits = known and equal and 0 < part < whole and whole % part == 0
    return Effect("split", factor=whole // part) if fits else OPAQUE


def _concatenated(_: str, call: OperatorCall) -> Effect:
    """A concatenation of activations; a constant among them may have a width that follows theirs."""
    axis = call.argument("dim") or 0
    if not isinstance(axis, int) or call.tensors != len(call.reads):
        return OPAQUE
    if axis % len(call.written) != 1:
        alike = all(shape[1] == call.written[1] for shape in call.reads)
        return (_ADDED if call.different > 1 else _RESIZED) if alike else OPAQUE
    return _CONCATENATED if sum(map(_channels, call.reads)) == call.written[1] else OPAQUE


def _mixed(_: str, call: OperatorCall) -> Effect:
    groups = call.argument("groups")
    known = isinstance(groups, int) and groups > 0 and _alone(call) and _channels(call.written) % groups == 0
    return Effect("channel_shuffle", factor=groups) if known else OPAQUE


def _shuffled(name: str, call: OperatorCall) -> Effect:
    """Channels become positions, or in an unshuffle positions become channels."""
    kind, key = _SHUFFLES[name]
    factor = call.argument(key)
    if not isinstance(factor, int) or factor <= 0 or len(call.written) != 4 or len(call.reads) != 1:
        return OPAQUE
    many, few = (call.reads[0], call.written) if kind == "pixel_shuffle" else (call.written, call.reads[0])
    return Effect(kind, factor=factor) if many[1] == _channels(few) * factor * factor else OPAQUE


def _group_norm(name: str, call: OperatorCall) -> Effect:
    groups = call.argument("num_groups" if name == "group_norm" else "group")
    known = isinstance(groups, int) and groups > 0 and _channels(call.written) % groups == 0
    return Effect("identity", groups=groups) if known and _alone(call) else OPAQUE


def _alone(call: OperatorCall) -> bool:
    """Whether one activation is read, and the result has as many channels."""
    return len(call.reads) == 1 and call.reads[0][1] == call.written[1]


def _channels(shape: Shape) -> int:
    return shape[1] or 0


# Without `alias`: x[:, :64] of 64 channels is traced as one, and would still take 64 of more channels.
_KEPT = (
    "contiguous detach dropout alpha_dropout feature_dropout feature_alpha_dropout native_dropout lift_fresh "
    "lift_fresh_copy to _to_copy type_as pin_memory resolve_conj resolve_neg softmax _softmax _safe_softmax "
    "log_softmax _log_softmax"
)
_VIEWED = """
    view view_as view_copy reshape reshape_as _unsafe_view _reshape_alias _reshape_copy flatten unflatten squeeze
    unsqueeze
"""
VIEWED = frozenset(_VIEWED.split())
_MAX_POOLS = tuple(f"max_pool{axes}d{more}" for axes in (1, 2, 3) for more in ("", "_with_indices"))
_POOLS = (
    *(f"{kind}_pool{axes}d" for axes in (1, 2, 3) for kind in ("avg", "adaptive_max", "adaptive_avg")),
    *(f"_adaptive_avg_pool{axes}d" for axes in (2, 3)),
)
_UPSAMPLINGS = (
    *(f"{prefix}upsample_nearest{exact}{axes}d" for axes in (1, 2, 3)
      for prefix, exact in (("", ""), ("_", "_exact"))),
    "upsample_linear1d", "upsample_bilinear2d", "upsample_bicubic2d", "upsample_trilinear3d",
    "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa",
)  # fmt: skip
_SPATIAL = (
    *_MAX_POOLS, *_POOLS, *_UPSAMPLINGS, "fractional_max_pool2d", "fractional_max_pool3d",
    *(f"{kind}_pad{axes}d" for axes in (1, 2, 3) for kind in ("reflection", "replication")),
)  # fmt: skip
_SHUFFLES: Mapping[str, tuple[OperationKind, str]] = {
    "pixel_shuffle": ("pixel_shuffle", "upscale_factor"), "pixel_unshuffle": ("pixel_unshuffle", "downscale_factor"),
}  # fmt: skip
_MIXED = ("channel_shuffle", "native_channel_shuffle")
PARTING = frozenset(("chunk", "split", "split_with_sizes", "unbind"))  # whose results are all of one kind
_LARGER = ("max", "min")
_REDUCTIONS = ("mean", "sum", "amax", "amin", "var", "std", "linalg_vector_norm", "norm", "logsumexp")
_PRODUCTS, _LAYER_NORMS = ("linear", "addmm", "mm"), ("layer_norm", "native_layer_norm", "rms_norm")
_PADS, _GROUP_NORMS = ("pad", "constant_pad_nd"), ("group_norm", "native_group_norm")
_OF_THE_LAST_AXIS = frozenset((*_PRODUCTS, *_LAYER_NORMS))
_OF_SPACE = frozenset((*_SPATIAL, *_PADS, *_GROUP_NORMS, *_SHUFFLES, *_MIXED))  # all have the channels behind the batch
# What finds out itself where it moves channels that may be on any axis.
_PLACING = frozenset((_viewed, _moved, _reduced, _selected, _stacked, _squeezed))
_RULES: dict[str, Callable[[str, OperatorCall], Effect]] = {
    **dict.fromkeys(POINTWISE, _pointwise),
    **dict.fromkeys(_LARGER, _pointwise),
    **dict.fromkeys(_KEPT.split(), _unchanged),
    **dict.fromkeys(VIEWED, _viewed),
    **dict.fromkeys(_SPATIAL, _spatial),
    **dict.fromkeys(_REDUCTIONS, _reduced),
    **dict.fromkeys(_PRODUCTS, _multiplied),
    **dict.fromkeys(_LAYER_NORMS, _layer_norm),
    **dict.fromkeys(("permute", "transpose"), _moved),
    **dict.fromkeys(("slice", "narrow"), _sliced),
    **dict.fromkeys(_PADS, _padded),
    **dict.fromkeys(("chunk", "split", "split_with_sizes", "glu"), _divided),
    **dict.fromkeys(("select", "unbind"), _selected),
    **dict.fromkeys(("stack", "unsqueeze"), _stacked),
    "squeeze": _squeezed,
    **dict.fromkeys(("cat", "concat", "concatenate"), _concatenated),
    **dict.fromkeys(_GROUP_NORMS, _group_norm),
    **dict.fromkeys(
        ("expand", "expand_as"), lambda _, call: _RESIZED if call.reads[0][1] == call.written[1] else OPAQUE
    ),
    **dict.fromkeys(_SHUFFLES, _shuffled),
    **dict.fromkeys(_MIXED, _mixed),
}


_WORK: Mapping[str, WorkKind] = {
    name: kind
    for kind, names in dict[WorkKind, str](
        {
            "batch norm": "batch_norm native_batch_norm cudnn_batch_norm _native_batch_norm_legit "
            "_native_batch_norm_legit_no_training _batch_norm_impl_index _batch_norm_with_update _batch_norm_no_update",
            "layer norm": "layer_norm native_layer_norm rms_norm _fused_rms_norm",
            "group norm": "group_norm native_group_norm instance_norm",
            "activation": "glu",
            "add": "add sub rsub subtract",
            "multiply": "mul multiply div divide true_divide",
            "concat": "cat concat concatenate stack",
            "copy": "clone contiguous copy _to_copy to type_as _reshape_copy view_copy constant_pad_nd pad roll flip "
            "index index_select reflection_pad1d reflection_pad2d replication_pad2d im2col col2im repeat expand gather "
            "take pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle reshape flatten "
            "repeat_interleave unfold",
            "max pool": " ".join(_MAX_POOLS),
            "pool": " ".join(_POOLS),
            "resize": " ".join(("grid_sampler", "grid_sampler_2d", "grid_sampler_3d", *_UPSAMPLINGS)),
            "reduce": "mean sum var std var_mean std_mean amax amin argmax linalg_vector_norm norm prod cumsum "
            "logsumexp",
            "softmax": "softmax _softmax _safe_softmax log_softmax _log_softmax",
            "linear": "linear addmm mm",
            "product": "matmul bmm baddbmm einsum",
            "attention": "scaled_dot_product_attention _scaled_dot_product_flash_attention "
            "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention "
            "_scaled_dot_product_fused_attention_overrideable",
            "embedding": "embedding",
        }
    ).items()
    for name in names.split()
}
# What torch.autocast runs in fp32 on CUDA (AT_FORALL_FP32 and AT_FORALL_FP32_SET_OPT_DTYPE in
# torch/include/ATen/autocast_mode.h, torch 2.13), without losses.
_AUTOCAST_TO_32_BITS = """
    acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow softplus layer_norm
    native_layer_norm rms_norm group_norm cosine_similarity logsumexp prod softmax log_softmax cumprod cumsum
    linalg_vector_norm sum norm
"""
IN_32_BITS = frozenset((*_AUTOCAST_TO_32_BITS.split(), *_UPSAMPLINGS))
# Neither reads nor writes elements of activations.
_NO_KERNELS = frozenset(("empty_like", "detach", "alias", "lift_fresh", "size", "sym_size", "is_same_size"))


def runs_nothing(name: str, argument: Callable[[str], Any]) -> bool:
    """Whether an operator runs no kernel, as dropout in inference."""
    short = plain(name)
    return short in _NO_KERNELS or ("dropout" in short and argument("train") is False)


def work_of(
    name: str,
    reads: Sequence[Shape],
    written: Sequence[Shape],
    constants: Sequence[Shape],
    argument: Callable[[str], Any] = lambda _: None,
    *,
    trains: bool = False,
) -> Work | None:
    """The work of an operator that is no view; `reads` are the shapes of activations, `constants` those of the others.

    None where a size is symbolic, and where no kernel runs. `argument` is that of `OperatorCall`. `trains`: it is an
    operator of a training step.
    """
    short = plain(name)
    shapes = (*reads, *written, *constants)
    if runs_nothing(name, argument) or any(size is None for shape in shapes for size in shape):
        return None
    kind = _WORK.get(short, "activation" if short in POINTWISE or short in ("max", "min") else "unknown")
    if short in ("max", "min") and len(written) > 1:  # along an axis, with the positions of what it found
        kind, written = "reduce", written[:1]
    if kind == "batch norm" and trains and is_frozen(name, argument):
        kind = "frozen norm"
    if "dropout" in short or (kind == "multiply" and len(reads) == 1 and not any(map(elements, constants))):
        kind = "activation"
    product: tuple[int, ...] = ()
    if kind in ("linear", "product"):
        kind, product = _product(short, reads, written[0], constants, argument)
    elif kind == "attention":
        kind, product = _attention(reads, written[0], constants)
    weights = [shape for shape in constants if shape] if kind in WITH_WEIGHTS else []
    if kind in BATCH_NORMS:
        weights = weights[:2]  # the others are statistics
    return Work(
        kind=kind, op=short, reads=tuple(map(elements, reads)), writes=sum(map(elements, written)),
        weights=sum(map(elements, weights)), product=product,
        in_32_bits=short in IN_32_BITS or (kind in PROMOTED and any(constants)),
    )  # fmt: skip


def _product(
    name: str, reads: Sequence[Shape], written: Shape, constants: Sequence[Shape], argument: Callable[[str], Any]
) -> tuple[WorkKind, tuple[int, ...]]:
    """The kind and (batch, M, N, K) of a product; with a matrix of weights at its right, all rows form one matrix."""
    if name == "einsum":
        return "product", _einsum(argument("equation"), (*reads, *constants), written)
    if not written or min(map(len, reads)) < 1:
        return "unknown", ()
    columns = _known(written[-1])
    rows = elements(written) // max(columns, 1)
    left = reads[1] if name in ("addmm", "baddbmm") and len(reads) == 3 else reads[0]
    if name in ("addmm", "baddbmm") and len(reads) == 2 and any(len(shape) > 1 for shape in constants):
        left = reads[1]
    matrix = next((shape for shape in constants if len(shape) == 2), None)
    if name == "matmul" and matrix is not None and matrix[-1] != columns:  # the weights are the left matrix
        return "linear", (elements(written[:-2]), _known(matrix[0]), columns, _known(matrix[1]))
    if name in ("linear", "addmm", "mm") or matrix is not None or len(written) < 3:
        return "linear", (1, rows, columns, _known(left[-1]))
    return "product", (elements(written[:-2]), _known(written[-2]), columns, _known(left[-1]))


def _einsum(equation: Any, operands: Sequence[Shape], written: Shape) -> tuple[int, ...]:
    """(batch, M, N, K) of an einsum: letters of both operands and the result, of one and the result, of no result."""
    terms, _, result = equation.replace(" ", "").partition("->") if isinstance(equation, str) else ("", "", "")
    letters = terms.split(",")
    fits = len(letters) == 2 == len(operands) and result and "." not in terms
    if not fits or any(len(term) != len(shape) for term, shape in zip(letters, operands, strict=True)):
        return 1, elements(written), 1, max((_known(shape[-1]) for shape in operands if shape), default=1)
    sizes = {letter: _known(size) for term, shape in zip(letters, operands, strict=True)
             for letter, size in zip(term, shape, strict=True)}  # fmt: skip
    first, second = map(set, letters)
    groups = (first & second & set(result), (first - second) & set(result), (second - first) & set(result),
              (first | second) - set(result))  # fmt: skip
    return tuple(prod(sizes[letter] for letter in group) for group in groups)


def _attention(reads: Sequence[Shape], written: Shape, constants: Sequence[Shape]) -> tuple[WorkKind, tuple[int, ...]]:
    """The kind and (heads of all images, queries, keys, width); the result is as long as the queries."""
    if len(written) < 3:
        return "unknown", ()
    *heads, queries, width = map(_known, written)
    lengths = [_known(shape[-2]) for shape in (*reads, *constants) if len(shape) > 1 and shape[-1] == written[-1]]
    keys = next((length for length in lengths if length != queries), queries)
    return "attention", (prod(heads), queries, keys, width)


def _known(size: int | None) -> int:
    return size or 0
