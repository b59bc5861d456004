"""A Keras convolution layer as `ConvLayer`s, and the calls of equal ones joined."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from convlint.model.grouping import grouped
from convlint.model.layer import ConvLayer, Dtype, same_padding, with_output
from convlint.model.network import Edge, unique_name
from convlint.readers.bounded_json import MOST_SIZE, Node
from convlint.readers.keras.shapes import number, numbers, spatial_axes, text
from convlint.readers.operations import ConvOutput, Shape, ValueOrigin, axis_fields, is_first

_KIND = re.compile(r"(Depthwise|Separable)?Conv(?:olution)?([123])D(Transpose)?")
_DTYPES = {
    "float64": Dtype.fp64, "float32": Dtype.fp32, "float16": Dtype.fp16, "bfloat16": Dtype.bf16,
    "mixed_float16": Dtype.fp16, "mixed_bfloat16": Dtype.bf16,
}  # fmt: skip
NORMS = frozenset({"BatchNormalization"})


def is_convolution(kind: str) -> bool:
    """Whether a Keras class is a convolution that `build` reads."""
    return _KIND.fullmatch(kind) is not None


def build(kind: str, config: Node, name: str, path: str, shape: Shape | None) -> tuple[tuple[ConvLayer, ...], Shape]:
    """The layer's convolutions, two for a separable one, and the shape that it writes. Raises InputFault."""
    match = _KIND.fullmatch(kind)
    assert match is not None
    special, dims, transposed = match[1], int(match[2]), match[3] is not None
    shape = shape if shape is not None else (None,) * (dims + 2)
    if len(shape) != dims + 2:
        raise config.fault(f"is that of a {kind}, but its input has {len(shape)} axes")
    space = spatial_axes(config, dims + 2)
    channel_axis = 1 if space.start == 2 else dims + 1
    C = shape[channel_axis]
    use_bias = config.get("use_bias")
    bias = use_bias is None or use_bias.boolean()
    common: dict[str, Any] = {"path": path, "dims": dims, "N": shape[0], "dtype": _dtype(config), "node": name}
    axes = _axes(config, [shape[axis] for axis in space], transposed)
    K: int | None
    if special is None:
        K = config.at("filters").integer()
        groups = number(config, "groups", 1)
        if K % groups or (C is not None and C % groups):
            raise config.fault(f"asks for {groups} groups, which cannot share {K} filters and {text((C,))} channels")
        op: Any = "conv_transpose" if transposed else "conv"
        layers = [ConvLayer(name=name, op=op, C=C, K=K, groups=groups, bias=bias, **axes, **common)]
    else:
        K = None if C is None else C * number(config, "depth_multiplier", 1)
        separable = special == "Separable"
        label = f"{name}/depthwise" if separable else name
        layers = [ConvLayer(name=label, C=C, K=K, groups=C or 1, bias=bias and not separable, **axes, **common)]
    layers = [with_output(layer) for layer in layers]
    if special == "Separable":
        first = layers[0]
        K = config.at("filters").integer()
        point = ConvLayer(
            name=f"{name}/pointwise", C=first.K, K=K, D=_size(first.Z), H=_size(first.P), W=_size(first.Q),
            R=1, S=1, bias=bias, **common,
        )  # fmt: skip
        layers.append(with_output(point))
    last = layers[-1]
    for layer in layers:  # factors within their bounds may still make a product that no tensor can have
        for letter in "KZPQ":
            size = getattr(layer, letter)
            if size is not None and size > MOST_SIZE:
                raise config.fault(f"makes an output whose {letter} is {size}, larger than 2^31 - 1")
    out: list[int | None] = list(shape)
    out[channel_axis] = last.K
    for axis, size in zip(space, (last.Z, last.P, last.Q)[3 - dims :], strict=True):
        out[axis] = _size(size)
    return tuple(layers), tuple(out)


def _size(size: int | None) -> int | None:
    """An output's size for the layers after it: None for one below 1, which a rule reports for this layer alone."""
    return None if size is None or size < 1 else size


def _axes(config: Node, sizes: list[int | None], transposed: bool) -> dict[str, Any]:
    """The fields of a ConvLayer that belong to its axes of space."""
    dims = len(sizes)
    taps = config.at("kernel_size").integers(dims)
    strides = numbers(config, "strides", dims, 1)
    dilations = numbers(config, "dilation_rate", dims, 1)
    given = config.get("padding")
    padding = "valid" if given is None else given.text()
    if padding not in (("same", "valid") if transposed else ("same", "valid", "causal")):
        assert given is not None
        raise given.must_be("same or valid")
    declared = config.get("output_padding") if transposed else None
    extra = declared.integers(dims, 0) if declared is not None else [0] * dims
    begin: list[int | None] = [0] * dims
    end: list[int | None] = [0] * dims
    for i in range(dims):
        extent = dilations[i] * (taps[i] - 1) + 1
        if transposed:
            output_padding = None if declared is None else extra[i]
            begin[i], end[i], extra[i] = _transposed_padding(padding, extent, strides[i], output_padding, taps[i])
        elif padding == "same":
            both = same_padding(sizes[i], stride=strides[i], dilation=dilations[i], taps=taps[i])
            begin[i], end[i] = both or (None, None)
        elif padding == "causal":  # all of it before the first step, so that no step reads a later one
            begin[i] = extent - 1
    return axis_fields(sizes, taps, strides, begin, end, dilations, extra)


def _transposed_padding(padding: str, extent: int, stride: int, extra: int | None, taps: int) -> tuple[int, int, int]:
    """Padding at the beginning and the end, and output padding, such that the output is input size times stride."""
    if padding == "same" and extra is not None:
        return taps // 2, taps // 2, extra
    if padding == "same":
        total = extent - stride
        return (total // 2, total - total // 2, 0) if total >= 0 else (0, 0, -total)
    return 0, 0, extra if extra is not None else max(stride - extent, 0)


def _dtype(config: Node) -> Dtype | None:
    given = config.get("dtype")
    if given is not None and given.is_object:
        given = given.get("config", "name")
    if given is None:
        return None
    policy = given.text()
    quantized, _, source = policy.partition("_from_")  # such as int8_from_mixed_bfloat16
    if source:
        return {"int8": Dtype.int8, "float8": Dtype.fp8}.get(quantized)
    return _DTYPES.get(policy)


# One call of a convolution: the layer, where its input comes from, and its output.
ConvCall = tuple[ConvLayer, ValueOrigin, ConvOutput]


def without_copies(calls: Sequence[ConvCall]) -> tuple[tuple[ConvLayer, ...], tuple[Edge, ...], tuple[int, ...]]:
    """The layers, one for all calls of the same sizes, their edges, and the layer of each call."""
    groups = grouped((layer, position) for position, (layer, _, _) in enumerate(calls))
    layer_of = {position: index for index, positions in enumerate(groups.values()) for position in positions}
    layers: list[ConvLayer] = []
    edges: list[Edge] = []
    used_names: dict[str, int] = {}
    names = [unique_name(layer.name, used_names) for layer in groups]
    for index, (layer, positions) in enumerate(groups.items()):
        sources = [calls[position][1] for position in positions]
        written = [calls[position][2] for position in positions]
        layers.append(
            replace(
                layer, name=names[index], calls=len(positions),
                first=all(map(is_first, sources)), head=all(output.head for output in written),
                norm_follows=all(len(output.readers) == 1 and output.readers[0] in NORMS for output in written),
            )
        )  # fmt: skip
        before = dict.fromkeys(layer_of[position] for source in sources for position in source.producers)
        before.pop(index, None)  # a layer that reads its own output, called in a chain
        if before:
            edges.append(
                Edge(consumer=index, producers=tuple(before), source=names[next(reversed(before))],
                     C=layer.C, H=layer.H, W=layer.W, D=layer.D)
            )  # fmt: skip
    return tuple(layers), tuple(edges), tuple([layer_of[position] for position in range(len(calls))])


def is_frozen(layer: Node) -> bool:
    """Whether its weights learn nothing."""
    trainable = layer.get("config", "trainable")
    return trainable is not None and trainable.value is False
