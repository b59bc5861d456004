"""What kind of operation each of PyTorch's operators is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from convlint.model.network import OperationKind
from convlint.readers.torch.arguments import NORM, role

# those that torch tags so (torch.Tag.pointwise), but for max and min, which also reduce, and for what networks lack
_TAGGED = """
    abs acos acosh add addcdiv addcmul angle asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor
    ceil celu clamp clamp_max clamp_min clip clone copysign cos cosh deg2rad digamma div elu eq erf erfc erfinv exp exp2
    expm1 float_power floor fmax fmin fmod frac ge gelu gt hardshrink hardsigmoid hardtanh heaviside hypot isfinite
    isinf isnan ldexp le leaky_relu lerp lgamma log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not
    logical_or logical_xor logit lt masked_fill maximum minimum mish mul nan_to_num ne neg positive pow rad2deg
    reciprocal relu relu6 remainder round rrelu rsqrt rsub selu sgn sigmoid sign silu sin sinc sinh softplus softshrink
    sqrt square sub tan tanh threshold true_divide trunc where xlogy
"""
# those that it does not tag: compositions and other spellings of them, and what fills a tensor whatever stood there
_UNTAGGED = """
    absolute arccos arccosh arcsin arcsinh arctan arctanh bernoulli copy divide empty_like fill fix floor_divide
    full_like greater greater_equal hardswish less less_equal log_sigmoid multiply negative normal normal_functional
    not_equal ones_like prelu rand_like randn_like rrelu_with_noise subtract uniform zero zeros_like _prelu_kernel
"""
TAGGED, UNTAGGED = frozenset(_TAGGED.split()), frozenset(_UNTAGGED.split())
POINTWISE = TAGGED | UNTAGGED


Shape = tuple[int | None, ...]
_TO_THE_END = 2**62  # the end of a slice that has none is the largest integer


class Kind(NamedTuple):
    """The kind of an operation, with its factor and its groups."""

    kind: OperationKind
    factor: int = 1
    groups: int = 1


OPAQUE = Kind("reshape")


class OperatorEffect(NamedTuple):
    """An operator as it runs.

    `reads`: the shapes of the activations that it reads, in order, of which `different` are different tensors; of
    its arguments, `tensors` are tensors, constants too. `written`: the shape of its (first) result. `argument` gives
    an argument by its name in the schema: None where it is absent, something without a meaning where it is not known.
    """

    reads: Sequence[Shape]
    different: int
    tensors: int
    written: Shape
    argument: Callable[[str], Any]


def kind_of(name: str, step: OperatorEffect) -> Kind:
    """The kind of an operator that is no convolution."""
    if role(name) == NORM:
        return _NORM
    rule = _RULES.get(plain(name))
    shapes = (*step.reads, step.written)
    if rule is None or any(len(shape) != len(step.written) or len(shape) not in _RANKS for shape in shapes):
        return OPAQUE
    if any(shape[1] is None for shape in shapes):
        return OPAQUE
    return rule(plain(name), step)


def plain(name: str) -> str:
    """An operator's name as the tables have it: `relu` for `aten::relu_`."""
    short = name.removeprefix("aten::")
    return short[:-1] if writes_in_place(name) else short


def writes_in_place(name: str) -> bool:
    """Whether an operator changes its first argument, by its name."""
    return name.endswith("_") and not name.endswith("__")


_RANKS = (3, 4, 5)
_NORM, _IDENTITY, _RESIZED = Kind("batchnorm"), Kind("identity"), Kind("resize")
_ADDED, _CONCATENATED = Kind("add"), Kind("concat")


def _pointwise(_: str, step: OperatorEffect) -> Kind:
    """One tensor may be spread over another: then over its D, H and W alone, or from one channel."""
    if max(_channels(shape) for shape in step.reads) != step.written[1]:
        return OPAQUE
    if step.different > 1:
        return _ADDED
    return _IDENTITY if step.reads[0] == step.written else _RESIZED


def _larger(name: str, step: OperatorEffect) -> Kind:
    """`max` of two tensors; that of one reduces."""
    return _pointwise(name, step) if step.tensors > 1 else OPAQUE


def _kept(_: str, step: OperatorEffect) -> Kind:
    return _IDENTITY if _alone(step) and step.reads[0] == step.written else OPAQUE


def _viewed(_: str, step: OperatorEffect) -> Kind:
    """Elements in the same order, at the same places where no size changes."""
    return _IDENTITY if _alone(step) and step.reads[0] == step.written and None not in step.written else OPAQUE


def _spatial(name: str, step: OperatorEffect) -> Kind:
    """Pooling and interpolation name the number of their axes."""
    return _RESIZED if _alone(step) and f"{len(step.written) - 2}d" in name else OPAQUE


def _expanded(_: str, step: OperatorEffect) -> Kind:
    return _RESIZED if _alone(step) else OPAQUE


def _padded(_: str, step: OperatorEffect) -> Kind:
    """Padding is given from the last axis on, two numbers for each."""
    widths = step.argument("pad")
    known = isinstance(widths, (list, tuple)) and len(widths) <= 2 * (len(step.written) - 2)
    return _RESIZED if known and _alone(step) else OPAQUE


def _reduced(_: str, step: OperatorEffect) -> Kind:
    """One number of each channel, at the place of all."""
    axes, rank = step.argument("dim"), len(step.written)
    axes = [axes] if isinstance(axes, int) else axes
    if step.argument("keepdim") is not True or not isinstance(axes, (list, tuple)) or not axes:
        return OPAQUE
    spatial = all(isinstance(axis, int) and axis % rank != 1 for axis in axes)
    return _RESIZED if spatial and _alone(step) else OPAQUE


def _sliced(name: str, step: OperatorEffect) -> Kind:
    """A part of H, say, or all of the channels by a slice that names no number."""
    axis = step.argument("dim") or 0
    if not isinstance(axis, int) or not _alone(step):
        return OPAQUE
    if axis % len(step.written) != 1:
        return _IDENTITY if step.reads[0] == step.written else _RESIZED
    start, end, stride = (step.argument(each) for each in ("start", "end", "step"))
    whole = end is None or (isinstance(end, int) and end >= _TO_THE_END)
    return _IDENTITY if name == "slice" and start in (None, 0) and whole and stride in (None, 1) else OPAQUE


def _concatenated(_: str, step: OperatorEffect) -> Kind:
    """What is constant may have been made as wide as it is because the rest is: then nobody knows."""
    axis = step.argument("dim") or 0
    known = isinstance(axis, int) and axis % len(step.written) == 1 and step.tensors == len(step.reads)
    return _CONCATENATED if known and sum(map(_channels, step.reads)) == step.written[1] else OPAQUE


def _shuffled(_: str, step: OperatorEffect) -> Kind:
    factor = step.argument("upscale_factor")
    squared = factor * factor if isinstance(factor, int) and factor > 0 else 0
    fits = len(step.written) == 4 and len(step.reads) == 1 and step.reads[0][1] == _channels(step.written) * squared
    return Kind("pixel_shuffle", factor=factor) if squared and fits else OPAQUE


def _unshuffled(_: str, step: OperatorEffect) -> Kind:
    factor = step.argument("downscale_factor")
    squared = factor * factor if isinstance(factor, int) and factor > 0 else 0
    fits = len(step.written) == 4 and len(step.reads) == 1 and _channels(step.reads[0]) * squared == step.written[1]
    return Kind("pixel_unshuffle", factor=factor) if squared and fits else OPAQUE


def _group_norm(name: str, step: OperatorEffect) -> Kind:
    groups = step.argument("num_groups" if name == "group_norm" else "group")
    known = isinstance(groups, int) and groups > 0 and _channels(step.written) % groups == 0
    return Kind("identity", groups=groups) if known and _alone(step) else OPAQUE


def _alone(step: OperatorEffect) -> bool:
    """Whether one activation is read, and its channels are as many as before."""
    return len(step.reads) == 1 and step.reads[0][1] == step.written[1]


def _channels(shape: Shape) -> int:
    return shape[1] or 0


# Not `alias`: x[:, :64] of 64 channels arrives as one, and would still be 64 channels where there are more.
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
_RULES: dict[str, Callable[[str, OperatorEffect], Kind]] = {
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
