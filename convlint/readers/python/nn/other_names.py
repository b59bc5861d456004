"""The convolutions of Gluon, Flax and Haiku: what they are constructed with, and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from convlint.readers.python.nn.signatures import Signature

if TYPE_CHECKING:
    from convlint.readers.python.nn.kinds import Kind

_GLUON = (
    "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "layout", "activation", "use_bias",
    "weight_initializer", "bias_initializer", "in_channels",
)  # fmt: skip
_GLUON_TRANSPOSED = (*_GLUON[:4], "output_padding", *_GLUON[4:])
_GLUON_NAMES = {"channels": "out_channels", "strides": "stride"}
_FLAX = (
    "out_channels", "kernel_size", "stride", "padding", "input_dilation", "dilation", "groups", "use_bias",
)  # fmt: skip
_FLAX_NAMES = {
    "features": "out_channels", "strides": "stride", "kernel_dilation": "dilation", "feature_group_count": "groups",
}  # fmt: skip
_HAIKU = ("out_channels", "kernel_size", "stride", "dilation", "padding", "with_bias", "w_init", "b_init",
          "data_format", "mask", "groups")  # fmt: skip
_HAIKU_NAMES = {
    "output_channels": "out_channels", "kernel_shape": "kernel_size", "rate": "dilation",
    "feature_group_count": "groups",
}  # fmt: skip


def convolutions() -> dict[str, Signature]:
    """The convolutions, by their canonical names."""
    found: dict[str, Signature] = {}
    for dims in (1, 2, 3):
        found[f"mxnet.gluon.nn.Conv{dims}D"] = Signature(
            "mxnet", "conv", dims, _GLUON, "use_bias", _GLUON_NAMES, 6
        )  # fmt: skip
        found[f"mxnet.gluon.nn.Conv{dims}DTranspose"] = Signature(
            "mxnet", "conv_transpose", dims, _GLUON_TRANSPOSED, "use_bias", _GLUON_NAMES, 7
        )
        found[f"haiku.Conv{dims}D"] = Signature(
            "haiku", "conv", dims, _HAIKU, "with_bias", _HAIKU_NAMES, 5, defaults={"padding": "same"}
        )
    return found


# Flax's own says its axes by the length of `kernel_size`.
FLAX = tuple(
    Signature("flax", "conv", dims, _FLAX, "use_bias", _FLAX_NAMES, 4, defaults={"padding": "same"})
    for dims in (1, 2, 3)
)
FLAX_NAME = "flax.linen.Conv"

_GLUON_KINDS: dict[Kind, str] = {
    "module": "Block HybridBlock",
    "sequential": "Sequential HybridSequential",
    "pointwise": "Activation LeakyReLU PReLU ELU SELU GELU Swish SiLU Dropout",
    "norm": "BatchNorm InstanceNorm SyncBatchNorm",
    "other norm": "LayerNorm GroupNorm",
    "opaque": """
        Dense Flatten Lambda HybridLambda Embedding MaxPool1D MaxPool2D MaxPool3D AvgPool1D AvgPool2D AvgPool3D
        GlobalMaxPool2D GlobalAvgPool2D
    """,
}
_BY_SHORT: dict[str, Kind] = {word: kind for kind, words in _GLUON_KINDS.items() for word in words.split()}


def canonical(name: str) -> str | None:
    """The name without the modules that it happens to lie in; None for what is of none of these."""
    head, _, rest = name.partition(".")
    short = rest.rpartition(".")[2]
    if head == "mxnet" and "gluon." in rest:
        if rest.startswith(("gluon.nn.", "gluon.contrib.nn.")) or short in ("Block", "HybridBlock"):
            return f"mxnet.gluon.nn.{short}"
    elif head == "haiku" and rest:
        return f"haiku.{short}"
    elif head == "flax" and rest.startswith("linen."):
        return f"flax.linen.{short}"
    return None


def kind_of(name: str) -> Kind | None:
    """What a class is, by its canonical name."""
    prefix, _, short = name.rpartition(".")
    return _BY_SHORT.get(short) if prefix == "mxnet.gluon.nn" else None
