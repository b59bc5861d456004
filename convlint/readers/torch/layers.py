"""From the convolutions that torch dispatched to layers in the guide's letters, one per module, calls counted."""

from __future__ import annotations

import linecache
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from msgspec import Struct

from convlint.model.geometry import same_padding
from convlint.model.layer import ConvLayer, Dtype, Layout, with_output
from convlint.model.location import Span
from convlint.model.network import Edge
from convlint.readers.dataflow import Origin, Written, is_first
from convlint.readers.torch.operators import NORM
from convlint.readers.torch.places import relative

DTYPES = {
    "torch.float64": Dtype.fp64, "torch.float32": Dtype.fp32, "torch.float16": Dtype.fp16,
    "torch.bfloat16": Dtype.bf16, "torch.float8_e4m3fn": Dtype.fp8, "torch.float8_e5m2": Dtype.fp8,
    "torch.float8_e4m3fnuz": Dtype.fp8, "torch.float8_e5m2fnuz": Dtype.fp8,
    "torch.int8": Dtype.int8, "torch.uint8": Dtype.int8, "torch.qint8": Dtype.int8, "torch.quint8": Dtype.int8,
}  # fmt: skip


class Call(Struct, kw_only=True):
    """One convolution as torch's operators see it; sizes are None where they are symbolic.

    `owner`: the qualified name of the module that calls it; `modular`: that module is itself a convolution.
    `identity`: equal for calls that share their weights. `place`: (file, line) to point at.
    """

    arrives: tuple[int | None, ...]
    weight: tuple[int, ...]
    output: tuple[int | None, ...]
    bias: bool
    stride: Any
    padding: Any
    dilation: Any
    transposed: bool
    output_padding: Any
    groups: int
    dtype: Dtype | None
    nhwc: bool
    owner: str | None
    modular: bool
    identity: Hashable
    place: tuple[str, int] | None
    source: Origin | None
    written: Written


def network_of(
    calls: Sequence[Call], unknown: Iterable[str], path: str
) -> tuple[tuple[ConvLayer, ...], tuple[Edge, ...], list[str]]:
    """The layers and edges of a forward pass, and what could not be understood."""
    messages = [f"{name} looks like a convolution, but is not one that convlint knows" for name in unknown]
    groups: dict[Any, list[int]] = {}
    for position, call in enumerate(calls):
        groups.setdefault(_identity(call), []).append(position)
    layer_of = {position: index for index, positions in enumerate(groups.values()) for position in positions}
    taken: dict[str, int] = {}
    layers: list[ConvLayer] = []
    sources: dict[int, tuple[int, ...]] = {}
    for index, positions in enumerate(groups.values()):
        same = [calls[position] for position in positions]
        layer, wrong = _layer(same, taken, path)
        layers.append(layer)
        if wrong is not None:
            messages.append(wrong)
        before = dict.fromkeys(
            layer_of[position] for call in same if call.source is not None for position in call.source.producers
        )
        before.pop(index, None)  # a layer that reads its own output is called in a loop
        if before:
            sources[index] = tuple(before)
    edges = [
        Edge(
            consumer=index, producers=producers, source=layers[producers[-1]].name,
            C=layers[index].C, H=layers[index].H, W=layers[index].W, D=layers[index].D,
        )
        for index, producers in sources.items()
    ]  # fmt: skip
    return tuple(layers), tuple(edges), messages


def _identity(call: Call) -> Any:
    """What makes two calls the same layer: the same weights (or line, where weights are computed) and sizes."""
    return (
        call.identity, call.arrives, call.weight, str(call.stride), str(call.padding), str(call.dilation), call.groups,
        call.dtype, call.nhwc,
    )  # fmt: skip


def _layer(calls: list[Call], taken: dict[str, int], path: str) -> tuple[ConvLayer, str | None]:
    call = calls[0]
    dims = len(call.weight) - 2
    name = call.owner or ""
    if not call.modular:  # torch.nn.functional
        name += f"{'.' if name else ''}conv{'_transpose' if call.transposed else ''}{dims}d"
    name = _unique(name, taken)
    arrives = call.arrives if len(call.arrives) == dims + 2 else (1, *call.arrives)  # an input without batch axis
    output = call.output if len(call.output) == dims + 2 else (1, *call.output)
    fields: dict[str, Any] = {}
    strides, dilations = _each(call.stride, dims), _each(call.dilation, dims)
    extra = _each(call.output_padding, dims)
    for i in range(dims):
        letter = 3 - dims + i
        taps = call.weight[2 + i]
        begin, end = _padding(call.padding, i, dims, arrives[2 + i], dilations[i], taps)
        axis = "DHW"[letter]
        fields[axis] = arrives[2 + i]
        fields["TRS"[letter]] = taps
        fields[("StrideD", "U", "V")[letter]] = strides[i]
        fields[f"Pad{axis}"], fields[f"Pad{axis}_end"] = begin, end
        fields[f"Dil{axis}"] = dilations[i]
        fields[f"OutPad{axis}"] = extra[i]
    if dims == 1:
        fields.update(H=1, R=1)
    C, K = (call.weight[0], call.weight[1] * call.groups) if call.transposed else (arrives[1], call.weight[0])
    # A tensor of one channel, or of maps of 1x1, lies in memory the same in both layouts.
    either = arrives[1] == 1 or all(size == 1 for size in arrives[2:])
    layout: Layout = "NHWC" if call.nhwc else "auto" if either else "NCHW"
    where, spans = _place(call, path)
    layer = with_output(
        ConvLayer(
            name=name, path=where, spans=spans, node=call.owner or None,
            op="conv_transpose" if call.transposed else "conv", dims=dims, N=arrives[0], C=C, K=K,
            groups=call.groups, dtype=call.dtype, layout=layout, bias=call.bias,
            calls=len(calls),
            first=all(is_first(each.source) for each in calls), head=all(each.written.head for each in calls),
            norm_follows=all(each.written.readers == [NORM] for each in calls), **fields,
        )
    )  # fmt: skip
    for size, computed in zip(output[2:], (layer.Z, layer.P, layer.Q)[3 - dims :], strict=True):
        if size is not None and computed is not None and size != computed:
            return layer, f"layer {name!r}: torch gives an output of {output[2:]}, the formula {computed}"
    return layer, None


def _each(value: Any, dims: int) -> list[int]:
    """One number per axis, from the forms torch takes; raises nothing that torch has let pass."""
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return [int(entry) for entry in (values * dims if len(values) == 1 else values)]


def _padding(padding: Any, axis: int, dims: int, size: int | None, dilation: int, taps: int) -> tuple[int, int]:
    if padding == "valid":
        return 0, 0
    if padding == "same":  # torch allows it with stride 1 only, and puts the odd element at the end
        return same_padding(size, stride=1, dilation=dilation, taps=taps) or (0, 0)
    pad = _each(padding, dims)[axis]
    return pad, pad


def _place(call: Call, path: str) -> tuple[str, dict[str, Span]]:
    if call.place is None:
        return path, {}
    file, line = call.place
    text = linecache.getline(file, line).rstrip()
    start = len(text) - len(text.lstrip()) + 1
    return relative(file), {"layer": (line, start, line, max(len(text), start) + 1)}


def _unique(name: str, taken: dict[str, int]) -> str:
    """The name with the first free number behind it; `taken` holds the last number given to each name."""
    count = taken.get(name, 0)
    free = name
    while free in taken:
        count += 1
        free = f"{name}#{count}"
    taken[name] = max(count, 1)
    taken.setdefault(free, 1)
    return free
