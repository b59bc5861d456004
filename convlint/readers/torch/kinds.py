"""The effect of each of PyTorch's operators on feature maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from convlint.readers.operations import Effect, Shape
from convlint.readers.torch.arguments import NORM, role

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
    are; `tensors`: how many arguments are tensors, with constants. `written`: the shape of its first result.
    `argument` returns an argument by its name in the schema: None where it is absent, and an object of another type
    where its value is not known.
    """

    reads: Sequence[Shape]
    different: int
    tensors: int
    written: Shape
    argument: Callable[[str], Any]


def effect_of(name: str, call: OperatorCall) -> Effect:
    """The effect of an operator that is no convolution."""
    if role(name) == NORM:
        return _NORM
    rule = _RULES.get(plain(name))
    shapes = (*call.reads, call.written)
    if rule is None or any(len(shape) != len(call.written) or len(shape) not in _RANKS for shape in shapes):
        return OPAQUE
    if any(shape[1] is None for shape in shapes):
        return OPAQUE
    return rule(plain(name), call)


def plain(name: str) -> str:
    """An operator's name as the tables have it: `relu` for `aten::relu_`."""
    short = name.removeprefix("aten::")
    return short[:-1] if writes_in_place(name) else short


def writes_in_place(name: str) -> bool:
    """Whether an operator changes its first argument, by its name."""
    return name.endswith("_") and not name.endswith("__")


_RANKS = (3, 4, 5)
_NORM, _IDENTITY, _RESIZED = Effect("batchnorm"), Effect("identity"), Effect("resize")
_ADDED, _CONCATENATED = Effect("add"), Effect("concat")


def _pointwise(_: str, call: OperatorCall) -> Effect:
    """One tensor may be broadcast to another, but no operand may have more channels than the result."""
    if max(_channels(shape) for shape in call.reads) != call.written[1]:
        return OPAQUE
    if call.different > 1:
        return _ADDED
    return _IDENTITY if call.reads[0] == call.written else _RESIZED


def _larger(name: str, call: OperatorCall) -> Effect:
    """`max` and `min` of two tensors are pointwise; those of one tensor reduce."""
    return _pointwise(name, call) if call.tensors > 1 else OPAQUE


def _kept(_: str, call: OperatorCall) -> Effect:
    return _IDENTITY if _alone(call) and call.reads[0] == call.written else OPAQUE


def _viewed(_: str, call: OperatorCall) -> Effect:
    """A view keeps the order of elements, so that each stays in its place where no size changes."""
    return _IDENTITY if _alone(call) and call.reads[0] == call.written and None not in call.written else OPAQUE


def _spatial(name: str, call: OperatorCall) -> Effect:
    """Pooling and interpolation, whose names have the number of axes of space."""
    return _RESIZED if _alone(call) and f"{len(call.written) - 2}d" in name else OPAQUE


def _expanded(_: str, call: OperatorCall) -> Effect:
    return _RESIZED if _alone(call) else OPAQUE


def _padded(_: str, call: OperatorCall) -> Effect:
    """Padding that spares batch and channels: two numbers for each axis, from the last one on."""
    widths = call.argument("pad")
    known = isinstance(widths, (list, tuple)) and len(widths) <= 2 * (len(call.written) - 2)
    return _RESIZED if known and _alone(call) else OPAQUE


def _reduced(_: str, call: OperatorCall) -> Effect:
    """A reduction over axes other than the channels, which keeps its axes."""
    axes, rank = call.argument("dim"), len(call.written)
    axes = [axes] if isinstance(axes, int) else axes
    if call.argument("keepdim") is not True or not isinstance(axes, (list, tuple)) or not axes:
        return OPAQUE
    spatial = all(isinstance(axis, int) and axis % rank != 1 for axis in axes)
    return _RESIZED if spatial and _alone(call) else OPAQUE


def _sliced(name: str, call: OperatorCall) -> Effect:
    """A slice along an axis of space, or of all channels without naming their number."""
    axis = call.argument("dim") or 0
    if not isinstance(axis, int) or not _alone(call):
        return OPAQUE
    if axis % len(call.written) != 1:
        return _IDENTITY if call.reads[0] == call.written else _RESIZED
    start, end, stride = map(call.argument, ("start", "end", "step"))
    whole = end is None or (isinstance(end, int) and end >= _TO_THE_END)
    return _IDENTITY if name == "slice" and start in (None, 0) and whole and stride in (None, 1) else OPAQUE


def _concatenated(_: str, call: OperatorCall) -> Effect:
    """A concatenation of activations; a constant among them may have a width that follows theirs."""
    axis = call.argument("dim") or 0
    known = isinstance(axis, int) and axis % len(call.written) == 1 and call.tensors == len(call.reads)
    return _CONCATENATED if known and sum(map(_channels, call.reads)) == call.written[1] else OPAQUE


def _shuffled(_: str, call: OperatorCall) -> Effect:
    factor = call.argument("upscale_factor")
    squared = factor * factor if isinstance(factor, int) and factor > 0 else 0
    fits = len(call.written) == 4 and len(call.reads) == 1 and call.reads[0][1] == _channels(call.written) * squared
    return Effect("pixel_shuffle", factor=factor) if squared and fits else OPAQUE


def _unshuffled(_: str, call: OperatorCall) -> Effect:
    factor = call.argument("downscale_factor")
    squared = factor * factor if isinstance(factor, int) and factor > 0 else 0
    fits = len(call.written) == 4 and len(call.reads) == 1 and _channels(call.reads[0]) * squared == call.written[1]
    return Effect("pixel_unshuffle", factor=factor) if squared and fits else OPAQUE


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
    "lift_fresh_copy to _to_copy type_as pin_memory resolve_conj resolve_neg"
)
_VIEWED = """
    view view_as view_copy reshape reshape_as _unsafe_view _reshape_alias _reshape_copy flatten unflatten squeeze
    expand_as
"""
VIEWED = frozenset(_VIEWED.split())
_SPATIAL = (
    *(f"{kind}_pool{axes}d" for axes in (1, 2, 3) for kind in ("max", "avg", "adaptive_max", "adaptive_avg")),
    *(f"max_pool{axes}d_with_indices" for axes in (1, 2, 3)),
    *(f"_adaptive_avg_pool{axes}d" for axes in (2, 3)), "fractional_max_pool2d", "fractional_max_pool3d",
    *(f"{prefix}upsample_nearest{exact}{axes}d" for axes in (1, 2, 3)
      for prefix, exact in (("", ""), ("_", "_exact"))),
    "upsample_linear1d", "upsample_bilinear2d", "upsample_bicubic2d", "upsample_trilinear3d",
    "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa",
    *(f"{kind}_pad{axes}d" for axes in (1, 2, 3) for kind in ("reflection", "replication")),
)  # fmt: skip
_RULES: dict[str, Callable[[str, OperatorCall], Effect]] = {
    **dict.fromkeys(POINTWISE, _pointwise),
    **dict.fromkeys(("max", "min"), _larger),
    **dict.fromkeys(_KEPT.split(), _kept),
    **dict.fromkeys(VIEWED, _viewed),
    **dict.fromkeys(_SPATIAL, _spatial),
    **dict.fromkeys(("mean", "sum", "amax", "amin"), _reduced),
    **dict.fromkeys(("slice", "narrow"), _sliced),
    **dict.fromkeys(("pad", "constant_pad_nd"), _padded),
    **dict.fromkeys(("cat", "concat", "concatenate"), _concatenated),
    **dict.fromkeys(("group_norm", "native_group_norm"), _group_norm),
    "expand": _expanded,
    "pixel_shuffle": _shuffled,
    "pixel_unshuffle": _unshuffled,
}
