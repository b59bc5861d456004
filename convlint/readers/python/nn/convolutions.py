"""A framework's convolution: its arguments bound to parameters, its attributes, and what it writes."""

from __future__ import annotations

from convlint.model.geometry import output_size, transposed_output_size
from convlint.readers.python.evaluator.library import Call
from convlint.readers.python.evaluator.values import Const, Instance, Items, Tensor, Unknown, Value
from convlint.readers.python.nn.flow import SOMETHING, Flow, Reader, Shape, Space, integer, unknown_sizes
from convlint.readers.python.nn.recording import Convolution, Recording, Use
from convlint.readers.python.nn.signatures import Signature

ABSENT: dict[str, Value] = {
    "stride": Const(1), "padding": Const(0), "dilation": Const(1), "groups": Const(1), "output_padding": Const(0),
    "bias": Const(True), "bias_attr": Const(None), "use_bias": Const(True), "with_bias": Const(True),
}  # fmt: skip

_NONE_IS_ABSENT = frozenset(("stride", "dilation", "output_padding"))


def bound(signature: Signature, call: Call) -> dict[str, Value]:
    """The call's arguments by their parameters; what may be among unknown ones is unknown, what is not is absent."""
    found: dict[str, Value] = dict(zip(signature.parameters, call.args, strict=False))
    for keyword, value in call.keywords.items():
        name = signature.parameter(keyword)
        if name in signature.parameters:
            found[name] = value
    if len(call.args) > signature.positional or signature.foreign.intersection(call.keywords):
        found = {name: value for name, value in found.items() if name == "out_channels"}
        exact = False
    else:
        exact = call.exact
    if not exact:
        for name in signature.parameters:
            found.setdefault(name, Unknown("parameter"))
    return found


def argument(layer: Convolution, name: str) -> Value:
    """The argument, or what the framework takes where there is none."""
    value = layer.arguments.get(name)
    if value is None:
        stated = layer.signature.defaults.get(name)
        return Const(stated) if stated is not None else ABSENT.get(name, SOMETHING)
    if name in _NONE_IS_ABSENT and value.__class__ is Const and value.value is None:
        return ABSENT[name]
    return value


def activated(layer: Convolution) -> bool | None:
    """Whether an activation is a part of the layer; None where nobody knows."""
    value = layer.arguments.get("activation")
    if value is None or "activation" not in layer.signature.parameters:
        return False
    if isinstance(value, Const):
        return value.value not in (None, "linear")
    return None if isinstance(value, Unknown) else True


def channels_of(layer: Convolution, read: Flow) -> Value:
    """The channels of what a layer reads that is told no number of them; its axes may be others than ours."""
    order = layer.arguments.get("data_format")
    if order is None or (isinstance(order, Const) and order.value in (None, "channels_last")):
        return read.channels
    return SOMETHING


def per_axis(value: Value, dims: int) -> tuple[Value, ...]:
    """One value for each spatial axis, from the forms that frameworks take."""
    if value.__class__ is Items:
        items = value.items if value.complete else []
        if len(items) == 1:
            return tuple(items * dims)
        return tuple(items) if len(items) == dims else unknown_sizes(dims)
    return (value,) * dims


def attribute(layer: Convolution, name: str) -> Value | None:
    """What an attribute of a convolution is."""
    if name in ("in_channels", "out_channels", "groups"):
        return argument(layer, name)
    if name in ("_in_channels", "_out_channels", "_groups"):
        return argument(layer, name[1:])
    if name in ("kernel_size", "stride", "dilation", "padding", "output_padding"):
        value = argument(layer, name)
        if value.__class__ is Const and value.value.__class__ is str:
            return value
        return Items("tuple", list(per_axis(value, layer.signature.dims)))
    if name == "padding_mode":
        return layer.arguments.get(name, Const("zeros"))
    if name == "weight":
        return Tensor(Flow(_weight_shape(layer)))
    if name == "bias":
        value = argument(layer, layer.signature.bias)
        if value.__class__ is Const:
            return Const(None) if value.value is False else Tensor(Flow((argument(layer, "out_channels"),)))
        return Unknown("parameter")
    return None


def _weight_shape(layer: Convolution) -> Shape:
    C, K = argument(layer, "in_channels"), argument(layer, "out_channels")
    groups = integer(argument(layer, "groups"))
    first, second = (K, C) if layer.signature.op == "conv" else (C, K)
    inner = integer(second)
    if groups is None or inner is None:
        second = SOMETHING
    elif groups > 1:
        second = Const(inner // groups)
    return (first, second, *per_axis(argument(layer, "kernel_size"), layer.signature.dims))


def convolve(
    recording: Recording, instance: Instance, layer: Convolution, tensor: Flow, conditions: tuple[str, ...]
) -> Flow:
    """The convolution is run on a tensor: what it writes."""
    dims = layer.signature.dims
    C, stated = argument(layer, "in_channels"), integer(tensor.channels)
    wanted = integer(C)
    # The network's input goes into a layer of that many channels; what else a root is called with, it is not.
    trusted = stated == wanted if tensor.raw else stated is None or wanted is None or stated == wanted
    if "in_channels" not in layer.signature.parameters:
        trusted = channels_of(layer, tensor) is not SOMETHING
    taps = [integer(each) for each in per_axis(argument(layer, "kernel_size"), dims)]
    sizes = tensor.sizes if trusted and id(layer) not in recording.resized else None
    batch = tensor.shape[0] if trusted and tensor.shape is not None else SOMETHING
    steps = [integer(each) for each in per_axis(argument(layer, "stride"), dims)]
    known = sizes is not None and len(sizes) == dims and any(size is not SOMETHING for size in sizes)
    written = _sizes(layer, sizes, taps, steps) if sizes is not None and known else unknown_sizes(dims)
    pointwise = all(each == 1 for each in taps)
    spread = any(each is not None and each > 1 for each in taps)
    if spread:
        tensor.space.says(False)
    if pointwise:
        space = tensor.space if all(each == 1 for each in steps) else Space(tensor.space.points)
    else:
        space = Space(False if spread and _padded(layer, taps) else None)
    out = Flow((batch, argument(layer, "out_channels"), *written), space=space)
    use = Use((recording.run, id(instance)), tensor, out, conditions)
    recording.uses.setdefault(id(layer), []).append(use)
    out.last = layer.signature.framework == "keras"
    tensor.readers.append(Reader("conv", (out,), conditions))
    within = activated(layer)
    if within is False:
        return out
    after = Flow(out.shape, space=out.space)
    after.last = out.last
    out.readers.append(Reader("other" if within else "unknown", (after,), conditions))
    return after


def _padded(layer: Convolution, taps: list[int | None]) -> bool:
    """Whether the padding keeps a map a map: a filter as large as the map itself has none."""
    padding = argument(layer, "padding")
    if padding.__class__ is Const and padding.value == 0:
        return max(each or 0 for each in taps) <= 3
    return True


def _sizes(layer: Convolution, sizes: Shape, taps: list[int | None], steps: list[int | None]) -> Shape:
    dims = layer.signature.dims
    padding = argument(layer, "padding")
    mode = padding.value if isinstance(padding, Const) and isinstance(padding.value, str) else None
    pads = [integer(each) for each in per_axis(padding, dims)]
    spread = [integer(each) for each in per_axis(argument(layer, "dilation"), dims)]
    extra = [integer(each) for each in per_axis(argument(layer, "output_padding"), dims)]
    return tuple(
        _size(layer.signature.op, integer(size), taps[axis], steps[axis], pads[axis], spread[axis], extra[axis], mode)
        for axis, size in enumerate(sizes)
    )


def _size(
    op: str, size: int | None, taps: int | None, stride: int | None, pad: int | None, dilation: int | None,
    extra: int | None, mode: str | None,
) -> Value:  # fmt: skip
    if mode is not None and mode.lower() == "valid":
        pad = 0
    elif mode is not None and mode.lower() == "same":
        if size is None or not stride:
            return SOMETHING
        return Const(size * stride if op == "conv_transpose" else -(-size // stride))
    if size is None or taps is None or not stride or pad is None or dilation is None or extra is None:
        return SOMETHING
    if op == "conv_transpose":
        found = transposed_output_size(
            size, stride=stride, pad=2 * pad, dilation=dilation, taps=taps, output_padding=extra
        )
    else:
        found = output_size(size, stride=stride, pad=2 * pad, dilation=dilation, taps=taps)
    return Const(found) if found > 0 else SOMETHING
