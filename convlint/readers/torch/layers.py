"""From the convolutions that torch dispatched to layers in the guide's letters, one per module, calls counted."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from msgspec import Struct

from convlint.model.geometry import same_padding
from convlint.model.layer import ConvLayer, Dtype, Layout, with_output
from convlint.model.location import Span
from convlint.model.network import Edge
from convlint.readers.dataflow import Origin, Written, is_first
from convlint.readers.torch.memory_format import Change
from convlint.readers.torch.operators import NORM
from convlint.readers.torch.places import Sites, line_of, shown

DTYPES = {
    "torch.float64": Dtype.fp64, "torch.float32": Dtype.fp32, "torch.float16": Dtype.fp16,
    "torch.bfloat16": Dtype.bf16, "torch.float8_e4m3fn": Dtype.fp8, "torch.float8_e5m2": Dtype.fp8,
    "torch.float8_e4m3fnuz": Dtype.fp8, "torch.float8_e5m2fnuz": Dtype.fp8,
    "torch.int8": Dtype.int8, "torch.uint8": Dtype.int8, "torch.qint8": Dtype.int8, "torch.quint8": Dtype.int8,
}  # fmt: skip


class Call(Struct, kw_only=True):
    """One convolution as torch's operators see it; sizes are None where they are symbolic.

    `owner`: the qualified name of the module that calls it; `modular`: that module is itself a convolution.
    `copies`: it runs in another layout than its input arrives in; `copied`: its input is written once more in another
    layout, by it or on the way, where that is known, and `changed` is what does so.
    `identity`: equal for calls that share their weights. `place`: the code to point at.
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
    copies: bool = False
    copied: bool | None = None
    changed: Change | None = None
    owner: str | None
    modular: bool
    identity: Hashable
    place: Sites | None
    source: Origin | None
    written: Written


def network_of(
    calls: Sequence[Call], unknown: Iterable[str], path: str, *, entry: bool = False
) -> tuple[tuple[ConvLayer, ...], tuple[Edge, ...], list[str]]:
    """The layers and edges of a forward pass, and what could not be understood.

    `entry`: an entry of the config names the model; what no line of the project builds stands there.
    """
    messages = [f"{name} looks like a convolution, but is not one that convlint knows" for name in unknown]
    layer_of = layers_of_calls(calls)
    groups: list[list[int]] = [[] for _ in set(layer_of)]
    for position, index in enumerate(layer_of):
        groups[index].append(position)
    taken: dict[str, int] = {}
    layers: list[ConvLayer] = []
    sources: dict[int, tuple[int, ...]] = {}
    copied: dict[int, tuple[bool | None, str, bool]] = {}
    for index, positions in enumerate(groups):
        same = [calls[position] for position in positions]
        layer, wrong = _layer(same, taken, path, entry=entry)
        layers.append(layer)
        if wrong is not None:
            messages.append(wrong)
        before = dict.fromkeys(
            layer_of[position] for call in same if call.source is not None for position in call.source.producers
        )
        before.pop(index, None)  # a layer that reads its own output is called in a loop
        if before:
            sources[index] = tuple(before)
            copied[index] = _copied(same)
    edges = [
        Edge(
            consumer=index, producers=producers, source=layers[producers[-1]].name,
            C=layers[index].C, H=layers[index].H, W=layers[index].W, D=layers[index].D,
            copied=copied[index][0], changed_at=copied[index][1], inherent=copied[index][2],
        )
        for index, producers in sources.items()
    ]  # fmt: skip
    return tuple(layers), tuple(edges), messages


def unbatched(calls: Sequence[Call], axes: Iterable[int]) -> str:
    """The sizes of the first image that a convolution gets without a batch; empty where none does.

    `axes` are how many the inputs of the network have: what has another number was made inside.
    """
    given = set(axes)
    for call in calls:
        if len(call.arrives) < len(call.weight) and len(call.arrives) in given and None not in call.arrives:
            return "x".join(map(str, call.arrives))
    return ""


def layers_of_calls(calls: Sequence[Call]) -> list[int]:
    """For each call, the index of its layer: layers are numbered by their first calls."""
    numbers: dict[Any, int] = {}
    return [numbers.setdefault(_identity(call), len(numbers)) for call in calls]


def _copied(calls: Sequence[Call]) -> tuple[bool | None, str, bool]:
    """Whether a call reads a tensor that is copied into another layout; what changes it, and whether it must."""
    known = [call for call in calls if call.copied is not None]
    changes = (call.changed for call in known if call.copied)
    change = next((each for each in changes if each is not None), None)
    at = "" if change is None else f"{change.what} at {line_of(change.place)}"
    return (any(call.copied for call in known) if known else None), at, change is not None and change.inherent


def _identity(call: Call) -> Any:
    """What makes two calls the same layer: the same weights (or line, where weights are computed) and sizes."""
    return (
        call.identity, call.arrives, call.weight, str(call.stride), str(call.padding), str(call.dilation), call.groups,
        call.dtype, call.nhwc, call.copies,
    )  # fmt: skip


def _layer(calls: list[Call], taken: dict[str, int], path: str, *, entry: bool) -> tuple[ConvLayer, str | None]:
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
    where, spans, library = _place(call, path, entry=entry)
    layer = with_output(
        ConvLayer(
            name=name, path=where, spans=spans, library=library, node=call.owner or None,
            op="conv_transpose" if call.transposed else "conv", dims=dims, N=arrives[0], C=C, K=K,
            groups=call.groups, dtype=call.dtype, layout=layout, bias=call.bias,
            calls=len(calls), copies_input=call.copies,
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


def _place(call: Call, path: str, *, entry: bool) -> tuple[str, dict[str, Span], str]:
    """Path and span of the user's own line, of nothing for the config's entry, or of the library; its line behind."""
    if call.place is None:
        return path, {}, ""
    innermost, own = call.place
    if own is None:
        return (path, {}, line_of(innermost)) if entry else (shown(innermost.file), {"layer": innermost[1:]}, "")
    return shown(own.file), {"layer": own[1:]}, "" if own.file == innermost.file else line_of(innermost)


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
