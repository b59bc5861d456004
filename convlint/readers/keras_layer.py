"""One Keras convolution layer as layers in the guide's letters; a separable one is two."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from convlint.model import ConvLayer, Dtype, same_padding, with_output
from convlint.readers.keras_shapes import Shape, each, spatial_axes

_KIND = re.compile(r"(Depthwise|Separable)?Conv(?:olution)?([123])D(Transpose)?")
_DTYPES = {
    "float64": Dtype.fp64, "float32": Dtype.fp32, "float16": Dtype.fp16, "bfloat16": Dtype.bf16,
    "mixed_float16": Dtype.fp16, "mixed_bfloat16": Dtype.bf16,
}  # fmt: skip
NORMS = frozenset({"BatchNormalization"})


def is_convolution(kind: str) -> bool:
    """Whether a Keras class is a convolution that is understood here."""
    return _KIND.fullmatch(kind) is not None


def build(
    kind: str, config: Mapping[str, Any], name: str, path: str, shape: Shape | None
) -> tuple[tuple[ConvLayer, ...], Shape]:
    """The layer's convolutions and the shape it writes. Raises ValueError or KeyError where its config is broken."""
    match = _KIND.fullmatch(kind)
    assert match is not None
    special, dims, transposed = match[1], int(match[2]), match[3] is not None
    shape = shape if shape is not None else (None,) * (dims + 2)
    if len(shape) != dims + 2:
        raise ValueError(f"its input has {len(shape)} axes")
    channel_axis = 1 if config.get("data_format") == "channels_first" else dims + 1
    C = shape[channel_axis]
    taps = each(config["kernel_size"], dims)
    strides = each(config.get("strides", 1), dims)
    dilations = each(config.get("dilation_rate", 1), dims)
    if not all((*taps, *strides, *dilations)):
        raise ValueError("a kernel size, stride or dilation is 0")
    sizes = [shape[axis] for axis in spatial_axes(config, dims + 2)]
    bias = bool(config.get("use_bias", True))
    common: dict[str, Any] = {"path": path, "dims": dims, "N": shape[0], "dtype": _dtype(config), "node": name}
    axes = _axes(config, sizes, taps, strides, dilations, transposed)
    K: int | None
    if special is None:
        K = each(config["filters"], 1)[0]
        groups = each(config.get("groups") or 1, 1)[0]
        op: Any = "conv_transpose" if transposed else "conv"
        layers = [ConvLayer(name=name, op=op, C=C, K=K, groups=groups, bias=bias, **axes, **common)]
    else:
        K = None if C is None else C * each(config.get("depth_multiplier", 1), 1)[0]
        separable = special == "Separable"
        label = f"{name}/depthwise" if separable else name
        layers = [ConvLayer(name=label, C=C, K=K, groups=C or 1, bias=bias and not separable, **axes, **common)]
    layers = [with_output(layer) for layer in layers]
    if special == "Separable":
        first = layers[0]
        K = each(config["filters"], 1)[0]
        point = ConvLayer(
            name=f"{name}/pointwise", C=first.K, K=K, D=first.Z, H=first.P, W=first.Q, R=1, S=1, bias=bias, **common
        )
        layers.append(with_output(point))
    last = layers[-1]
    out: list[int | None] = list(shape)
    out[channel_axis] = last.K
    for axis, size in zip(spatial_axes(config, dims + 2), (last.Z, last.P, last.Q)[3 - dims :], strict=True):
        out[axis] = size
    return tuple(layers), tuple(out)


def _axes(
    config: Mapping[str, Any], sizes: list[int | None], taps: list[int], strides: list[int], dilations: list[int],
    transposed: bool,
) -> dict[str, Any]:  # fmt: skip
    dims = len(taps)
    padding = config.get("padding", "valid")
    wanted = config.get("output_padding")
    extra = each(wanted, dims) if wanted is not None and transposed else [0] * dims
    fields: dict[str, Any] = {"H": 1, "R": 1} if dims == 1 else {}
    for i in range(dims):
        extent = dilations[i] * (taps[i] - 1) + 1
        begin: int | None = 0
        end: int | None = 0
        if transposed:
            asked = None if wanted is None else extra[i]
            begin, end, extra[i] = _transposed_padding(padding, extent, strides[i], asked, taps[i])
        elif padding == "same":
            both = same_padding(sizes[i], stride=strides[i], dilation=dilations[i], taps=taps[i])
            begin, end = both if both is not None else (None, None)
        elif padding == "causal":  # reads the past only
            begin = extent - 1
        elif padding != "valid":
            raise ValueError(f"padding is {padding!r}")
        letter = 3 - dims + i
        axis = "DHW"[letter]
        fields[axis] = sizes[i]
        fields["TRS"[letter]] = taps[i]
        fields[("StrideD", "U", "V")[letter]] = strides[i]
        fields[f"Pad{axis}"], fields[f"Pad{axis}_end"] = begin, end
        fields[f"Dil{axis}"] = dilations[i]
        fields[f"OutPad{axis}"] = extra[i]
    return fields


def _transposed_padding(padding: str, extent: int, stride: int, extra: int | None, taps: int) -> tuple[int, int, int]:
    """Begin, end and output padding; by default Keras makes the output a whole multiple of the input."""
    if padding == "same" and extra is not None:
        return taps // 2, taps // 2, extra
    if padding == "same":
        total = extent - stride
        return (total // 2, total - total // 2, 0) if total >= 0 else (0, 0, -total)
    if padding != "valid":
        raise ValueError(f"padding is {padding!r}")
    return 0, 0, extra if extra is not None else max(stride - extent, 0)


def _dtype(config: Mapping[str, Any]) -> Dtype | None:
    policy = config.get("dtype")
    if isinstance(policy, Mapping):
        inner = policy.get("config")
        policy = inner.get("name") if isinstance(inner, Mapping) else None
    if not isinstance(policy, str):
        return None
    quantized, _, source = policy.partition("_from_")
    if source:
        return {"int8": Dtype.int8, "float8": Dtype.fp8}.get(quantized)
    return _DTYPES.get(policy)
