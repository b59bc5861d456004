"""Keras's layers by what they are, under the many names of its package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from convlint.readers.python.nn.signatures import Signature

if TYPE_CHECKING:
    from convlint.readers.python.nn.kinds import Kind

_PACKAGES = frozenset(("keras", "tf_keras"))
_OF_THE_PACKAGE = frozenset(("Model", "Sequential", "Input"))
_NAMES = {
    "filters": "out_channels", "strides": "stride", "dilation_rate": "dilation",
}  # fmt: skip
_MORE = ("data_format", "dilation", "groups", "activation", "use_bias", "input_shape")
_HEAD = ("out_channels", "kernel_size", "stride", "padding")
# Of the first Keras, whose positional arguments were others
_FOREIGN = frozenset(
    ("nb_filter", "nb_row", "nb_col", "border_mode", "subsample", "bias", "filter_length", "dim_ordering",
     "nb_depth", "batch_input_shape", "subsample_length", "init")
)  # fmt: skip


def convolutions() -> dict[str, Signature]:
    """The convolutions, by their canonical names."""
    found: dict[str, Signature] = {}
    for dims in (1, 2, 3):
        plain = Signature("keras", "conv", dims, (*_HEAD, *_MORE), "use_bias", _NAMES, 6, _FOREIGN)
        # Transposed ones got `output_padding` before what follows in some versions, behind it in others.
        transposed = Signature(
            "keras", "conv_transpose", dims, (*_HEAD, "output_padding", *_MORE), "use_bias", _NAMES, 4, _FOREIGN
        )
        for word in ("Conv", "Convolution"):
            found[f"keras.layers.{word}{dims}D"] = plain
            found[f"keras.layers.{word}{dims}DTranspose"] = transposed
    return found


_KINDS: dict[Kind, str] = {
    "module": "Model Layer",
    "sequential": "Sequential",
    "pointwise": """
        Activation ReLU LeakyReLU PReLU ELU ThresholdedReLU Softmax Dropout SpatialDropout1D SpatialDropout2D
        SpatialDropout3D GaussianNoise GaussianDropout AlphaDropout ActivityRegularization Rescaling
    """,
    "norm": "BatchNormalization SyncBatchNormalization",
    "other norm": "LayerNormalization GroupNormalization UnitNormalization",
    "keras": """
        InputLayer
        MaxPooling1D MaxPooling2D MaxPooling3D AveragePooling1D AveragePooling2D AveragePooling3D
        MaxPool1D MaxPool2D MaxPool3D AvgPool1D AvgPool2D AvgPool3D
        GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D
        GlobalMaxPooling1D GlobalMaxPooling2D GlobalMaxPooling3D GlobalAvgPool2D GlobalMaxPool2D
        Add Subtract Multiply Average Maximum Minimum Concatenate
        ZeroPadding1D ZeroPadding2D ZeroPadding3D UpSampling1D UpSampling2D UpSampling3D Cropping1D Cropping2D
    """,
    "opaque": """
        SpectralNormalization Dense Flatten Reshape Permute RepeatVector Embedding LSTM GRU SimpleRNN Bidirectional
        TimeDistributed SeparableConv1D SeparableConv2D SeparableConvolution2D DepthwiseConv1D DepthwiseConv2D
        ConvLSTM2D MultiHeadAttention Attention Dot Lambda LocallyConnected1D LocallyConnected2D Masking EinsumDense
        Normalization Resizing CenterCrop RandomFlip RandomRotation RandomZoom RandomCrop RandomContrast
        RandomTranslation
    """,
}
_BY_SHORT: dict[str, Kind] = {word: kind for kind, words in _KINDS.items() for word in words.split()}
_MODELS = frozenset(("Model", "Sequential"))


def canonical(name: str) -> str | None:
    """`keras.layers.X` and `keras.X` for all names of that; None for what is no name of Keras."""
    parts = name.split(".")
    at = 0 if parts[0] in _PACKAGES else next((i for i, part in enumerate(parts[:4]) if part == "keras"), -1)
    if at < 0 or (at > 0 and parts[0] != "tensorflow") or at == len(parts) - 1:
        return None
    rest = parts[at + 1 :]
    if rest[-1] in _OF_THE_PACKAGE:
        return f"keras.{rest[-1]}"
    if "layers" in rest[:-1]:
        return f"keras.layers.{rest[-1]}"
    return ".".join(("keras", *rest))


def kind_of(name: str) -> Kind | None:
    """What a class of Keras is, by its canonical name."""
    prefix, _, short = name.rpartition(".")
    if prefix == "keras":
        return _BY_SHORT[short] if short in _MODELS else None
    return _BY_SHORT.get(short) if prefix == "keras.layers" and short not in _MODELS else None
