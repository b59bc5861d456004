"""Operators that compute each element of their result from the elements at its place: by name, plain data.

Names are those of the schema without `aten::` and without the underscore of variants that write in place. What is not
here is opaque, so that a name too few costs a finding, and a name too many makes a wrong one.
"""

from __future__ import annotations

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
