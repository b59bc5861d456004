"""Tables of the frameworks' layers: convolutions with their parameters, norms, pools, containers.

A canonical name lacks the internal modules of a framework: `torch.nn.Conv2d`, `keras.layers.Conv2D`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Literal, NamedTuple

FRAMEWORK_WORDS = (
    b"torch", b"paddle", b"keras", b"mxnet", b"flax", b"haiku", b"tensorflow", b"jax", b"equinox", b"mmcv", b"mmengine",
    b"tf_slim",
)  # fmt: skip
Op = Literal["conv", "conv_transpose"]
Kind = Literal[
    "module", "sequential", "list", "dict", "wrapper", "identity", "pointwise", "norm", "other norm", "pool",
    "adaptive pool", "global pool", "upsample", "pixel shuffle", "pixel unshuffle", "pad", "flatten", "opaque", "loss",
    "keras",
    "first-axis norm",  # of Keras, whose channels may stand there or behind all other axes
]  # fmt: skip
CONTAINERS = frozenset(("sequential", "list", "dict", "wrapper"))


def words(text: str) -> frozenset[str]:
    """Return the words of a text, for tables of names; # stands for 1, 2 and 3."""
    return frozenset(word.replace("#", axes) for word in text.split() for axes in "123")


class Signature(NamedTuple):
    """The parameters of a framework's convolution, in order, by the names that convlint uses for all frameworks.

    `names` maps the framework's own names to these. Positional arguments behind the first `positional` have other
    meanings in other versions of the framework, so that a call with more of them is mostly unknown.
    """

    framework: str
    op: Op
    dims: int
    parameters: tuple[str, ...]
    bias: str  # the name of the parameter that turns it on or off
    names: Mapping[str, str] = {}
    positional: int = 99
    foreign: frozenset[str] = frozenset()  # keywords of an older version, in which the others mean something else
    padding: str | int = 0  # without an argument
    depthwise: bool = False  # a filter, or `depth_multiplier` of them, for each channel of what it reads
    part: str = ""  # its name, where one layer is two convolutions

    def parameter(self, keyword: str) -> str:
        """Return the common name of a parameter."""
        return self.names.get(keyword, keyword)


class Form(NamedTuple):
    """The weight of a convolving function; `order` is that of its axes, None where its shape is never known."""

    signature: Signature
    order: Literal["out first", "in first", None]
    weight: tuple[str, ...]
    parameters: tuple[str, ...] = ()  # behind the weight, by the names that records have for them


_HEAD = "in_channels out_channels kernel_size stride padding"
_KERAS = "out_channels kernel_size stride padding {}data_format dilation groups activation use_bias input_shape"
_DEPTHWISE = "kernel_size stride padding depth_multiplier data_format dilation activation use_bias input_shape"
_SEPARABLE = "{} kernel_size stride padding data_format dilation depth_multiplier activation use_bias input_shape"
_GLUON = (
    "out_channels kernel_size stride padding {}dilation groups layout activation use_bias weight_initializer "
    "bias_initializer in_channels"
)
_KERAS_NAMES = {"filters": "out_channels", "strides": "stride", "dilation_rate": "dilation"}
# Keywords of Keras 1, whose positional arguments had other meanings
_FOREIGN = words("""
    nb_filter nb_row nb_col border_mode subsample bias filter_length dim_ordering nb_depth batch_input_shape
    subsample_length init
""")
_FLAX_NAMES = {
    "in_features": "in_channels", "out_features": "out_channels", "features": "out_channels",
    "strides": "stride", "kernel_dilation": "dilation", "feature_group_count": "groups",
}  # fmt: skip
_HAIKU = "out_channels kernel_size stride dilation padding with_bias w_init b_init data_format mask groups"
_HAIKU_NAMES = {
    "output_channels": "out_channels", "kernel_shape": "kernel_size", "rate": "dilation",
    "feature_group_count": "groups",
}  # fmt: skip


def _of(dims: int) -> Iterator[tuple[str, Signature]]:
    """Yield the convolutions with `dims` axes by canonical name; transposed ones order their parameters otherwise."""
    for torch, paddle, extra in (
        ("dilation groups bias", "dilation groups padding_mode", ""),
        ("output_padding groups bias dilation", "output_padding groups dilation" if dims == 1
         else "output_padding dilation groups", "output_padding "),
    ):  # fmt: skip
        transposed = extra != ""
        kind: Op = "conv_transpose" if transposed else "conv"
        words = f"{_HEAD} {torch} padding_mode device dtype".split()
        name = f"ConvTranspose{dims}d" if transposed else f"Conv{dims}d"
        yield f"torch.nn.{name}", Signature("pytorch", kind, dims, (*words,), "bias")
        yield f"torch.nn.Lazy{name}", Signature("pytorch", kind, dims, (*words[1:],), "bias")
        name = f"Conv{dims}DTranspose" if transposed else f"Conv{dims}D"
        words = f"{_HEAD} {paddle} weight_attr bias_attr data_format".split()
        # Some code keeps PyTorch's name of the bias, which Paddle refuses; it means no bias.
        yield f"paddle.nn.{name}", Signature("paddle", kind, dims, (*words,), "bias_attr", {"bias": "bias_attr"})
        # Transposed ones of Keras got `output_padding` before what follows in some versions, behind it in others.
        words, positional = _KERAS.format(extra).split(), 4 if transposed else 6
        keras = Signature("keras", kind, dims, (*words,), "use_bias", _KERAS_NAMES, positional, _FOREIGN)
        yield f"keras.layers.{name}", keras
        # By its old name, as many numbers in a row as the filter has axes are that filter in Keras 1.
        old = keras if transposed or dims == 1 else keras._replace(positional=dims)
        yield f"keras.layers.{name.replace('Conv', 'Convolution')}", old
        if not transposed and dims < 3:  # what stands behind `data_format` differs between versions
            words = _DEPTHWISE.split()
            own = Signature("keras", kind, dims, (*words,), "use_bias", _KERAS_NAMES, 5, _FOREIGN, depthwise=True)
            yield f"keras.layers.Depthwise{name}", own
        words, positional = _GLUON.format(extra).split(), 7 if transposed else 6
        names = {"channels": "out_channels", "strides": "stride"}
        yield f"mxnet.gluon.nn.{name}", Signature("mxnet", kind, dims, (*words,), "use_bias", names, positional)
    haiku = Signature("haiku", "conv", dims, (*_HAIKU.split(),), "with_bias", _HAIKU_NAMES, 5, padding="same")
    yield f"haiku.Conv{dims}D", haiku


def _equinox(op: Op, dims: int, *head: str) -> Signature:
    words = (*head, *_HEAD.split(), *(["output_padding"] if op == "conv_transpose" else []), "dilation", "groups")
    return Signature("equinox", op, dims, (*words, "use_bias", "padding_mode", "dtype"), "use_bias")


_FLAX: tuple[tuple[str, Op, tuple[str, ...]], ...] = (
    ("Conv", "conv", ("input_dilation", "dilation", "groups")), ("ConvTranspose", "conv_transpose", ("dilation",)),
)  # fmt: skip
_EQUINOX: tuple[tuple[str, Op], ...] = (("Conv", "conv"), ("ConvTranspose", "conv_transpose"))
# Layers whose name does not tell how many axes they have, by that number
OF_AXES = {
    **{
        f"equinox.nn.{name}": tuple(_equinox(op, dims, "num_spatial_dims") for dims in (1, 2, 3))
        for name, op in _EQUINOX
    },
    **{
        f"flax.{module}.{name}": tuple(
            Signature(
                "flax", op, dims, (*head, "out_channels", "kernel_size", "stride", "padding", *more, "use_bias"),
                "use_bias", _FLAX_NAMES, 4, padding="same",
            )
            for dims in (1, 2, 3)
        )
        for module, head in (("linen", ()), ("nnx", ("in_channels",)))
        for name, op, more in _FLAX
    },
}  # fmt: skip
# Modules of TensorFlow 1 whose functions make a layer and apply it to their first argument, by canonical name
_TF1 = {
    "tensorflow.layers": "tensorflow.layers", "tensorflow.compat.v1.layers": "tensorflow.layers",
    "tensorflow.contrib.slim": "tf_slim", "tensorflow.contrib.layers": "tf_slim", "tf_slim": "tf_slim",
}  # fmt: skip
_SLIM_NAMES = {"num_outputs": "out_channels", "rate": "dilation", "activation_fn": "activation"}


def _of_tf1(dims: int) -> Iterator[tuple[str, Signature]]:
    """Yield the functions of TensorFlow 1 that convolve `dims` axes, by canonical name."""
    head = "inputs out_channels kernel_size stride padding data_format"
    behind = "activation normalizer_fn normalizer_params weights_initializer weights_regularizer biases_initializer"
    forms: tuple[tuple[Op, str, str], ...] = (
        ("conv", "conv{}d", "dilation "), ("conv_transpose", "conv{}d_transpose", ""),
    )  # fmt: skip
    for op, name, extra in forms:
        parameters = (*f"{head} {extra}activation use_bias".split(),)
        own = Signature("keras", op, dims, parameters, "use_bias", _KERAS_NAMES)
        yield f"tensorflow.layers.{name.format(dims)}", own
        parameters = (*f"{head} {extra}{behind}".split(),)
        slim = Signature("tensorflow", op, dims, parameters, "biases_initializer", _SLIM_NAMES)
        yield f"tf_slim.{name.format(dims)}", slim
        yield f"tf_slim.{name.format(dims).replace('conv', 'convolution')}", slim


_OF_TF1 = dict(pair for dims in (1, 2, 3) for pair in _of_tf1(dims))
CONVOLUTIONS = {
    **dict(pair for dims in (1, 2, 3) for pair in _of(dims)), **_OF_TF1,
    **{f"equinox.nn.{name}{dims}d": _equinox(op, dims) for name, op in _EQUINOX for dims in (1, 2, 3)},
    **{name: of_axes[1] for name, of_axes in OF_AXES.items()},  # two of them, unless told otherwise
}  # fmt: skip
# Layers that are two convolutions: each channel by itself, then all of them at each point
SEPARABLE = {
    name.format(dims): (
        Signature(
            "keras", "conv", dims, (*f"{head}{_SEPARABLE.format('filters')}".split(),), "use_bias",
            {"strides": "stride", "dilation_rate": "dilation"}, 7, _FOREIGN, depthwise=True, part="depthwise",
        ),
        Signature(
            "keras", "conv", dims, (*f"{head}{_SEPARABLE.format('out_channels')}".split(),), "use_bias", _KERAS_NAMES,
            7, _FOREIGN, part="pointwise",
        ),
    )
    for name, head in (
        ("keras.layers.SeparableConv{}D", ""), ("keras.layers.SeparableConvolution{}D", ""),
        ("tensorflow.layers.separable_conv{}d", "inputs "),
    ) for dims in (1, 2)
}  # fmt: skip
# Convolutions of libraries with their norm and activation: mmcv/cnn/bricks/conv_module.py, torchvision/ops/misc.py,
# timm/layers/conv_bn_act.py, monai/networks/blocks/convolutions.py
_WITH_NORM = {
    "mmcv.ConvModule": (2, f"{_HEAD} dilation groups bias conv_cfg norm activation inplace with_spectral_norm "
                        "padding_mode order"),
    **{f"torchvision.{name}": (dims, f"{_HEAD} groups norm activation dilation inplace bias") for name, dims in (
        ("Conv2dNormActivation", 2), ("Conv3dNormActivation", 3), ("ConvNormActivation", 2)
    )},
    **dict.fromkeys(("timm.ConvNormAct", "timm.ConvBnAct", "timm.ConvNormActAa"), (
        2, f"{_HEAD} dilation groups bias apply_norm norm aa_layer conv_kwargs"
    )),
    "monai.Convolution": (2, "spatial_dims in_channels out_channels stride kernel_size adn_ordering activation norm "
                             "dropout dropout_dim dilation groups bias conv_only is_transposed padding output_padding"),
}  # fmt: skip
_NORM_NAMES = {
    "norm_cfg": "norm", "norm_layer": "norm", "act_cfg": "activation", "activation_layer": "activation",
    "act": "activation", "strides": "stride", "dimensions": "spatial_dims",
}  # fmt: skip
# Arguments behind these have other meanings in other versions.
_POSITIONAL = {"timm": 8, "monai": 5}
WITH_NORM = {
    name: Signature(
        "pytorch", "conv", dims, (*words.split(),), "bias", _NORM_NAMES, _POSITIONAL.get(name.partition(".")[0], 99)
    )
    for name, (dims, words) in _WITH_NORM.items()
}
COMPOSITES = frozenset((*SEPARABLE, *WITH_NORM))
_NORMS_OF_TF1: dict[str, Kind] = {
    "tensorflow.layers.batch_normalization": "norm", "tf_slim.batch_norm": "norm", "tf_slim.instance_norm": "norm",
    "tf_slim.layer_norm": "other norm", "tf_slim.group_norm": "other norm",
}  # fmt: skip
# Functions that make a layer and apply it to their first argument
APPLYING = frozenset((*_OF_TF1, *_NORMS_OF_TF1, *(name for name in SEPARABLE if name.startswith("tensorflow."))))
BUILD_CONVOLUTIONS = frozenset(("mmcv.build_conv_layer", "timm.create_conv2d"))
BUILDERS = BUILD_CONVOLUTIONS | {"mmcv.build_norm_layer"}
# Modules of PyTorch under names of libraries, by the package and their own name
_MODULES_OF_LIBRARIES = frozenset((
    "pytorch_lightning.LightningModule", "lightning.LightningModule", "mmengine.BaseModule", "mmengine.BaseModel",
    "mmcv.BaseModule", "transformers.PreTrainedModel", "diffusers.ModelMixin", "composer.ComposerModel",
    "torch.jit.ScriptModule",
))  # fmt: skip
# PyTorch's layers in mmcv.cnn, which take empty batches too
_WRAPPED_BY_MMCV = words("Conv2d Conv3d ConvTranspose2d ConvTranspose3d Linear MaxPool2d MaxPool3d")
_CONTAINERS: tuple[tuple[str, Kind], ...] = (
    ("Sequential", "sequential"), ("ModuleList", "list"), ("ModuleDict", "dict"),
)  # fmt: skip
_CONTAINERS_OF_LIBRARIES: dict[str, Kind] = {
    f"{library}.{name}": kind for library in ("mmcv", "mmengine") for name, kind in _CONTAINERS
}
_LIBRARIES = frozenset(name.partition(".")[0] for name in (*_MODULES_OF_LIBRARIES, *_WITH_NORM)) - {"torch"}
# Elsewhere in these libraries other layers have such names.
_ONLY_IN = {"timm": ("timm.layers.", "timm.models.layers."), "monai": ("monai.networks.blocks.",)}


def _forms(dims: int) -> Iterator[tuple[str, Form]]:
    """Yield the convolving functions by full name, with the parameters that the frameworks document."""
    parameters = (*f"{_HEAD} dilation output_padding groups bias".split(),)

    def signature(framework: str, op: Op = "conv") -> Signature:
        return Signature(framework, op, dims, parameters, "bias", positional=0)

    plain = ("bias", "stride", "padding", "dilation", "groups")
    transposed = ("bias", "stride", "padding", "output_padding", "groups", "dilation")
    for framework, prefix, name in (
        ("pytorch", "torch", "conv_transpose{}d"), ("pytorch", "torch.nn.functional", "conv_transpose{}d"),
        ("paddle", "paddle.nn.functional", "conv{}d_transpose"),
    ):  # fmt: skip
        yield f"{prefix}.conv{dims}d", Form(signature(framework), "out first", ("weight",), plain)
        form = Form(signature(framework, "conv_transpose"), "in first", ("weight",), transposed)
        yield f"{prefix}.{name.format(dims)}", form
    for prefix in ("tensorflow.nn", "tensorflow.compat.v1.nn"):
        filters = ("filters", "filter")
        yield f"{prefix}.conv{dims}d", Form(signature("tensorflow"), None, filters)
        yield f"{prefix}.conv{dims}d_transpose", Form(signature("tensorflow", "conv_transpose"), None, filters)
    if dims == 2:
        yield "tensorflow.nn.depthwise_conv2d", Form(signature("tensorflow"), None, ("filter",))
        for name in ("conv", "conv_general_dilated", "conv_with_general_padding", "conv_transpose"):
            yield f"jax.lax.{name}", Form(signature("jax"), None, ("rhs",))


FUNCTIONAL = dict(pair for dims in (1, 2, 3) for pair in _forms(dims))

_TORCH_KINDS: dict[Kind, str] = {  # of Paddle too; whatever the case of the letters
    "module": "Module Layer",
    "sequential": "Sequential",
    "list": "ModuleList LayerList",
    "dict": "ModuleDict LayerDict",
    "wrapper": "DataParallel DistributedDataParallel",
    "identity": "Identity",
    "pointwise": """
        ReLU ReLU6 LeakyReLU PReLU RReLU ELU SELU CELU GELU SiLU Swish Mish Hardswish Hardsigmoid Hardtanh Softplus
        Softsign Softshrink Hardshrink Tanhshrink Threshold Sigmoid LogSigmoid Tanh Softmax Softmax2d LogSoftmax
        Dropout Dropout#d AlphaDropout FeatureAlphaDropout Softmin
    """,
    "norm": "BatchNorm BatchNorm#d SyncBatchNorm LazyBatchNorm#d InstanceNorm#d LazyInstanceNorm#d",
    "other norm": "GroupNorm LayerNorm LocalResponseNorm CrossMapLRN2d RMSNorm",
    "pool": "MaxPool#d AvgPool#d LPPool#d FractionalMaxPool2d FractionalMaxPool3d",
    "adaptive pool": "AdaptiveAvgPool#d AdaptiveMaxPool#d",
    "upsample": "Upsample UpsamplingNearest2d UpsamplingBilinear2d",
    "pixel shuffle": "PixelShuffle",
    "pixel unshuffle": "PixelUnshuffle",
    "pad": "ZeroPad#d ReflectionPad#d ReplicationPad#d ConstantPad#d CircularPad2d Pad#d",
    "flatten": "Flatten",
    "opaque": """
        Linear LazyLinear Bilinear Embedding LSTM GRU RNN LSTMCell GRUCell MultiheadAttention Transformer
        TransformerEncoder TransformerEncoderLayer TransformerDecoder TransformerDecoderLayer Unfold Fold Unflatten
        MaxUnpool#d ChannelShuffle CosineSimilarity ParameterList EmbeddingBag
    """,
    "loss": """
        L1Loss MSELoss CrossEntropyLoss NLLLoss NLLLoss2d PoissonNLLLoss GaussianNLLLoss KLDivLoss BCELoss
        BCEWithLogitsLoss SmoothL1Loss HuberLoss SoftMarginLoss MultiLabelSoftMarginLoss MultiLabelMarginLoss
    """,
}
_KERAS_KINDS: dict[Kind, str] = {
    "module": "Model Layer",
    "sequential": "Sequential",
    "wrapper": "TimeDistributed",
    "pointwise": """
        Activation ReLU LeakyReLU PReLU ELU ThresholdedReLU Softmax Dropout SpatialDropout#D GaussianNoise
        GaussianDropout AlphaDropout ActivityRegularization Rescaling Normalization RandomFlip RandomRotation RandomZoom
        RandomTranslation RandomContrast RandomBrightness RandomShear
    """,
    "norm": "BatchNormalization SyncBatchNormalization",
    "other norm": "LayerNormalization GroupNormalization UnitNormalization",
    "keras": """
        InputLayer MaxPooling#D AveragePooling#D MaxPool#D AvgPool#D GlobalAveragePooling#D GlobalMaxPooling#D
        GlobalAvgPool2D GlobalMaxPool2D Add Subtract Multiply Average Maximum Minimum Concatenate ZeroPadding#D
        UpSampling#D Cropping1D Cropping2D Resizing CenterCrop RandomCrop Reshape Embedding
    """,
    "opaque": """
        SpectralNormalization Dense Flatten Permute RepeatVector LSTM GRU SimpleRNN Bidirectional
        ConvLSTM2D MultiHeadAttention Attention Dot Lambda LocallyConnected1D LocallyConnected2D Masking
        EinsumDense
    """,
}
_GLUON_KINDS: dict[Kind, str] = {
    "module": "Block HybridBlock",
    "sequential": "Sequential HybridSequential",
    "pointwise": "Activation LeakyReLU PReLU ELU SELU GELU Swish SiLU Dropout",
    "norm": "BatchNorm InstanceNorm SyncBatchNorm",
    "other norm": "LayerNorm GroupNorm",
    "opaque": "Dense Flatten Lambda HybridLambda Embedding MaxPool#D AvgPool#D GlobalMaxPool2D GlobalAvgPool2D",
}
_JAX_KINDS: dict[Kind, str] = {  # of Haiku and of Flax' linen and nnx; what they have besides is unknown
    "module": "Module",
    "sequential": "Sequential",
    "pointwise": "Dropout PReLU",
    "norm": "BatchNorm InstanceNorm",
    "other norm": "GroupNorm LayerNorm RMSNorm",
    "opaque": """
        Dense DenseGeneral Linear LinearGeneral Einsum Embed SelfAttention MultiHeadDotProductAttention
        MultiHeadAttention Flatten
    """,
}
_MODELS = frozenset(("Model", "Sequential"))  # of Keras itself, not of its layers


def _by_name(prefix: str, kinds: Mapping[Kind, str]) -> dict[str, Kind]:
    return {f"{prefix}.{word}": kind for kind, text in kinds.items() for word in words(text)}


_KINDS: dict[str, Kind] = {
    **{name.lower(): kind for name, kind in _by_name("torch.nn", _TORCH_KINDS).items()},
    **{name.lower(): kind for name, kind in _by_name("paddle.nn", _TORCH_KINDS).items()},
    **_by_name("mxnet.gluon.nn", _GLUON_KINDS),
    **_by_name("flax.linen", _JAX_KINDS), **_by_name("flax.nnx", _JAX_KINDS), **_by_name("haiku", _JAX_KINDS),
    "equinox.Module": "module", "keras.Model": "module",
    "paddle.DataParallel": "wrapper", "keras.Sequential": "sequential",
    **_NORMS_OF_TF1, **dict.fromkeys(COMPOSITES, "sequential"), **dict.fromkeys(_MODULES_OF_LIBRARIES, "module"),
    **_CONTAINERS_OF_LIBRARIES,
    **{name: kind for name, kind in _by_name("keras.layers", _KERAS_KINDS).items() if name[13:] not in _MODELS},
}  # fmt: skip


@lru_cache(maxsize=4096)
def canonical(name: str) -> str:
    """Return the canonical name of something in a framework; any other name unchanged."""
    parts = name.split(".")
    head, short = parts[0], parts[-1]
    if (module := _TF1.get(name.rpartition(".")[0])) is not None:
        return f"{module}.{short}"
    if len(parts) > 3 and parts[1] == "nn" and parts[2] in ("modules", "layer", "parallel"):
        return f"{head}.nn.{short}"
    if head == "mxnet" and "gluon" in parts[1:-1]:
        ours = parts[1:3] == ["gluon", "nn"] or parts[1:4] == ["gluon", "contrib", "nn"]
        return f"mxnet.gluon.nn.{short}" if ours or short in ("Block", "HybridBlock") else name
    if len(parts) > 1 and (head == "haiku" or head in _LIBRARIES) and name.startswith(_ONLY_IN.get(head, head)):
        return f"torch.nn.{short}" if head == "mmcv" and short in _WRAPPED_BY_MMCV else f"{head}.{short}"
    if head == "flax" and parts[1:2] in (["linen"], ["nnx"]) and len(parts) > 2:
        return f"flax.{parts[1]}.{short}"
    at = parts[:4].index("keras") if head == "tensorflow" and "keras" in parts[:4] else 0
    if (at == 0 and head not in ("keras", "tf_keras")) or at == len(parts) - 1:
        return name
    if short in (*_MODELS, "Input"):
        return f"keras.{short}"
    return f"keras.layers.{short}" if "layers" in parts[at + 1 : -1] else ".".join(("keras", *parts[at + 1 :]))


@lru_cache(maxsize=4096)
def kind_of(name: str) -> Kind | None:
    """Return the kind of a framework's class by its canonical name; None for convolutions and for other classes."""
    prefix = name.rpartition(".")[0]
    return _KINDS.get(name.lower() if prefix in ("torch.nn", "paddle.nn") else name)
