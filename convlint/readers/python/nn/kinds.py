"""Frameworks' own layers by what they are: convolutions with their parameters, norms, pools, containers."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from convlint.readers.python.nn import keras_names, other_names
from convlint.readers.python.nn.signatures import Signature

Kind = Literal[
    "module", "sequential", "list", "dict", "wrapper", "identity", "pointwise", "norm", "other norm", "pool",
    "adaptive pool", "global pool", "upsample", "pixel shuffle", "pixel unshuffle", "pad", "flatten", "opaque", "keras",
]  # fmt: skip
CONTAINERS = frozenset(("sequential", "list", "dict", "wrapper"))


_HEAD = ("in_channels", "out_channels", "kernel_size", "stride", "padding")
_TORCH = (*_HEAD, "dilation", "groups", "bias", "padding_mode", "device", "dtype")
_TORCH_TRANSPOSED = (
    *_HEAD, "output_padding", "groups", "bias", "dilation", "padding_mode", "device", "dtype",
)  # fmt: skip
_PADDLE = (*_HEAD, "dilation", "groups", "padding_mode", "weight_attr", "bias_attr", "data_format")
_PADDLE_TRANSPOSED = (*_HEAD, "output_padding", "dilation", "groups", "weight_attr", "bias_attr", "data_format")


def _convolutions() -> dict[str, Signature]:
    found: dict[str, Signature] = {}
    for dims in (1, 2, 3):
        for lazy in ("", "Lazy"):
            skipped = 1 if lazy else 0
            plain, transposed = _TORCH[skipped:], _TORCH_TRANSPOSED[skipped:]
            found[f"torch.nn.{lazy}Conv{dims}d"] = Signature("pytorch", "conv", dims, plain, "bias")
            found[f"torch.nn.{lazy}ConvTranspose{dims}d"] = Signature(
                "pytorch", "conv_transpose", dims, transposed, "bias"
            )
        paddle = (*_PADDLE_TRANSPOSED,)
        if dims == 1:  # where groups come before dilation
            paddle = (*_HEAD, "output_padding", "groups", "dilation", "weight_attr", "bias_attr", "data_format")
        found[f"paddle.nn.Conv{dims}D"] = Signature("paddle", "conv", dims, _PADDLE, "bias_attr")
        found[f"paddle.nn.Conv{dims}DTranspose"] = Signature("paddle", "conv_transpose", dims, paddle, "bias_attr")
    return found


# Flax's has no number of axes before it is constructed: of two is what a name alone tells.
CONVOLUTIONS = {
    **_convolutions(), **keras_names.convolutions(), **other_names.convolutions(),
    other_names.FLAX_NAME: other_names.FLAX[1],
}  # fmt: skip
FRAMEWORK_WORDS = (b"torch", b"paddle", b"keras", b"mxnet", b"flax", b"haiku")

_KINDS: dict[Kind, str] = {
    "module": "Module Layer",
    "sequential": "Sequential",
    "list": "ModuleList LayerList",
    "dict": "ModuleDict LayerDict",
    "wrapper": "DataParallel DistributedDataParallel",
    "identity": "Identity",
    "pointwise": """
        ReLU ReLU6 LeakyReLU PReLU RReLU ELU SELU CELU GELU SiLU Swish Mish Hardswish Hardsigmoid Hardtanh Softplus
        Softsign Softshrink Hardshrink Tanhshrink Threshold Sigmoid LogSigmoid Tanh Softmax Softmax2d LogSoftmax
        Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout Softmin
    """,
    "norm": """
        BatchNorm BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d
        InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d
    """,
    "other norm": "GroupNorm LayerNorm LocalResponseNorm CrossMapLRN2d RMSNorm",
    "pool": """
        MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d LPPool1d LPPool2d LPPool3d
        FractionalMaxPool2d FractionalMaxPool3d
    """,
    "adaptive pool": """
        AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d
    """,
    "upsample": "Upsample UpsamplingNearest2d UpsamplingBilinear2d",
    "pixel shuffle": "PixelShuffle",
    "pixel unshuffle": "PixelUnshuffle",
    "pad": """
        ZeroPad1d ZeroPad2d ZeroPad3d ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d
        ReplicationPad2d ReplicationPad3d ConstantPad1d ConstantPad2d ConstantPad3d CircularPad2d Pad1d Pad2d Pad3d
    """,
    "flatten": "Flatten",
    "opaque": """
        Linear LazyLinear Bilinear Embedding LSTM GRU RNN LSTMCell GRUCell MultiheadAttention Transformer
        TransformerEncoder TransformerEncoderLayer TransformerDecoder TransformerDecoderLayer Unfold Fold Unflatten
        MaxUnpool1d MaxUnpool2d MaxUnpool3d ChannelShuffle CosineSimilarity ParameterList EmbeddingBag
    """,
}
_BY_SHORT: dict[str, Kind] = {word.lower(): kind for kind, words in _KINDS.items() for word in words.split()}


@lru_cache(maxsize=4096)
def canonical(name: str) -> str:
    """A framework's name without the modules that it happens to lie in: torch.nn.modules.conv.Conv2d."""
    parts = name.split(".")
    if len(parts) > 3 and parts[1] == "nn" and parts[2] in ("modules", "layer", "parallel"):
        return ".".join((parts[0], "nn", parts[-1]))
    return keras_names.canonical(name) or other_names.canonical(name) or name


@lru_cache(maxsize=4096)
def kind_of(name: str) -> Kind | None:
    """What a framework's class is, by its canonical name; None for none that is a layer, or a convolution."""
    prefix, _, short = name.rpartition(".")
    if prefix not in ("torch.nn", "paddle.nn", "paddle"):
        return None if name in CONVOLUTIONS else keras_names.kind_of(name) or other_names.kind_of(name)
    if prefix == "paddle" and short != "DataParallel":
        return None
    return _BY_SHORT.get(short.lower())
