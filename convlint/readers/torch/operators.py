"""Which of torch's operators are convolutions, normalisations and layers with weights; by schema name.

Plain data: reading an exported program needs it without torch being installed.
"""

from __future__ import annotations

_ONE_TO_THREE = ("1d", "2d", "3d")
# operator -> position of stride, padding, dilation, transposed (or what it always is), output padding, groups
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
# operators whose result may look into their first argument: what is later written into it is written there
_VIEWS = """
    _reshape_alias adjoint alias as_strided broadcast_to chunk contiguous detach diagonal dsplit expand expand_as
    flatten hsplit lift_fresh moveaxis movedim narrow permute pin_memory positive ravel real reshape reshape_as
    resolve_conj resolve_neg select slice split split_with_sizes squeeze swapaxes swapdims t tensor_split to transpose
    unbind unflatten unfold unsqueeze view view_as view_as_complex view_as_real vsplit
"""
VIEWS = frozenset(f"aten::{name}" for name in _VIEWS.split())
NORM = "norm"


def role(name: str) -> str | None:
    """What an operator is for our purposes: convolution, norm, learned, unknown (looks like a convolution) or None."""
    if name in CONVOLUTIONS:
        return "convolution"
    if name in NORMS:
        return NORM
    if name in LEARNED:
        return "learned"
    return "unknown" if "conv" in name.partition("::")[2] else None
