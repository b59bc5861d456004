"""What Keras's layers and functions do to tensors. Shapes have channels first here, as all here do."""

from __future__ import annotations

import re
from collections.abc import Sequence

from convlint.readers.python.evaluator.library import Call
from convlint.readers.python.evaluator.values import Const, Instance, Items, Tensor, Value
from convlint.readers.python.nn import operations
from convlint.readers.python.nn.arguments import Arguments, collect, is_true, numbers
from convlint.readers.python.nn.flow import SOMETHING, Flow, Reader, Shape, Space, integer, unknown_sizes
from convlint.readers.python.nn.kinds import Kind
from convlint.readers.python.nn.operations import Conditions, wrote

_POINTWISE = frozenset((
    "relu", "relu6", "leaky_relu", "silu", "swish", "gelu", "elu", "selu", "sigmoid", "hard_sigmoid", "hard_swish",
    "tanh", "softmax", "softplus", "softsign", "mish", "dropout", "identity",
))  # fmt: skip
_QUESTIONS = frozenset(("int_shape", "is_keras_tensor", "ndim", "shape", "rank", "image_data_format"))
_MERGED = {"add": True, "subtract": True, "average": True, "maximum": True, "minimum": True, "multiply": False}
_WINDOW = re.compile(r"(?:Max|Average|Avg)Pool(?:ing)?([123])D")
_CHANNELS_LAST = ("channels_last", None)


def kind_of_norm(given: Arguments) -> Kind:
    """A norm over another axis than that of the channels takes no mean of each channel away."""
    axis = given.get(0, "axis")
    return "norm" if not isinstance(axis, Const) or axis.value in (-1, 3, 4) else "other norm"


def function(full: str, given: Arguments, conditions: Conditions) -> Value | None:
    """What a function of Keras or TensorFlow gives, by its canonical name; None where it reads no tensor."""
    if full in ("keras.Input", "keras.layers.Input"):
        return _input(given)
    short = full.rpartition(".")[2]
    if full.partition(".")[0] not in ("keras", "tensorflow") or not given.tensors():
        return None
    if short in _QUESTIONS:
        return SOMETHING
    if full == "keras.Model":
        return None
    if short in _POINTWISE and isinstance(given.get(0, "x", "features", "input"), Tensor):
        return with_last(given, operations.pointwise(Arguments([_first(given)], {}), conditions))
    if full in ("tensorflow.concat", "tensorflow.concat_v2") or short == "concatenate":
        return _side_by_side(_first(given), given.get(1, "axis"), conditions)
    if short in _MERGED and full.startswith(("keras.layers.", "keras.ops.", "tensorflow.")):
        return _met(given.tensors(), conditions, added=_MERGED[short])
    return operations.opaque(given, conditions)


def _first(given: Arguments) -> Value:
    return given.args[0] if given.args else next(iter(given.keywords.values()), SOMETHING)


def with_last(given: Arguments, value: Value) -> Value:
    """`value`, computed from these, with its framework's order of axes."""
    if isinstance(value, Tensor) and any(each.last for each in given.tensors()):
        value.data.last = True
    return value


def shape_of(flow: Flow) -> Shape | None:
    """The shape as the framework gives it."""
    if flow.shape is None or not flow.last or len(flow.shape) < 3:
        return flow.shape
    return (flow.shape[0], *flow.shape[2:], flow.shape[1])


def handed_out(call: Call, conditions: Conditions) -> None:
    """The outputs of a model are no other layer's."""
    found: list[Flow] = []
    collect([*call.args[1:], *(value for name, value in call.keywords.items() if name != "inputs")], found)
    for each in found:
        each.readers.append(Reader("returned", (), conditions))


def stated_input(given: Value | None, dims: int) -> Flow | None:
    """What a first layer reads that was told its `input_shape`."""
    sizes = given.items if isinstance(given, Items) and given.complete else []
    if len(sizes) != dims + 1:
        return None
    found = Flow((SOMETHING, sizes[-1], *sizes[:-1]), raw=True)
    found.last = True
    return found


def _input(given: Arguments) -> Value:
    shape = given.get(0, "shape")
    sizes = shape.items if isinstance(shape, Items) and shape.complete else []
    if len(sizes) < 2:
        return Tensor(Flow(raw=True))
    found = stated_input(shape, len(sizes) - 1) or Flow(raw=True)
    return Tensor(found)


def begun(owner: Instance, given: Sequence[Value]) -> list[Value]:
    """What the first layer of a Sequential reads: where nobody knows its size, what the Input in front of it states."""
    args = list(given)
    stated = next(iter(owner.attributes.values()), None)
    if args and isinstance(stated, Tensor) and stated.data.shape is not None:
        args[0] = _sized(args[0], stated.data)
    return args


def _sized(value: Value, stated: Flow) -> Value:
    read = operations.flow_of(value)
    if read.shape is not None or not read.raw:
        return value
    found = Flow(stated.shape, raw=True)
    found.last = True
    return Tensor(found)


def _of_input_layer(value: Value, own: Arguments) -> Value:
    whole = own.get(9, "batch_shape", "batch_input_shape")
    shape = own.get(0, "input_shape", "shape")
    if isinstance(whole, Items) and whole.complete:
        shape = Items("tuple", whole.items[1:])
    sizes = shape.items if isinstance(shape, Items) and shape.complete else []
    stated = stated_input(shape, len(sizes) - 1) if len(sizes) > 1 else None
    return value if stated is None else _sized(value, stated)


def applied(name: str, own: Arguments, given: Arguments, conditions: Conditions) -> Value:
    """What a layer of that name writes."""
    short = name.rpartition(".")[2]
    first = _first(given)
    if short == "InputLayer":
        return _of_input_layer(first, own)
    if short == "Concatenate":
        return _side_by_side(first, own.get(0, "axis"), conditions)
    if short.lower() in _MERGED:
        return _met(given.tensors(), conditions, added=_MERGED[short.lower()])
    read = operations.flow_of(first)
    window = _WINDOW.fullmatch(short)
    order = own.keywords.get("data_format")
    plain = order is None or (isinstance(order, Const) and order.value in _CHANNELS_LAST)
    head = read.shape[:2] if read.shape is not None and len(read.shape) > 2 and plain else None
    if short.startswith("Global"):
        read.space.says(False)
        out = Flow(head if is_true(own.keywords.get("keepdims")) is False else None, space=Space(True))
        return _last(wrote(out, [read], conditions, "pool"))
    sizes = read.sizes if head is not None else None
    if window is not None:
        read.space.says(False)
        out = Flow(None if head is None else (*head, *_pooled(sizes or (), own)), space=Space(), raw=read.raw)
        return _last(wrote(out, [read], conditions, "pool"))
    found: Shape = unknown_sizes(len(sizes or ()))
    if short.startswith("UpSampling") and sizes is not None:
        times = numbers(own.get(0, "size") or Const(2), len(sizes))
        known = [integer(size) for size in sizes]
        found = tuple(SOMETHING if size is None or by is None else Const(size * by)
                      for size, by in zip(known, times, strict=True))  # fmt: skip
    elif short.startswith("ZeroPadding") and sizes is not None:
        border = numbers(own.get(0, "padding") or Const(1), len(sizes))
        known = [integer(size) for size in sizes]
        found = tuple(SOMETHING if size is None or by is None else Const(size + 2 * by)
                      for size, by in zip(known, border, strict=True))  # fmt: skip
    kind = "pad" if short.startswith("ZeroPadding") else "other"
    return _last(wrote(Flow(None if head is None else (*head, *found), raw=read.raw), [read], conditions, kind))


def _pooled(sizes: Shape, own: Arguments) -> Shape:
    taps = numbers(own.get(0, "pool_size") or Const(2), len(sizes))
    stride = own.get(1, "strides")
    none = stride is None or (isinstance(stride, Const) and stride.value is None)
    steps = taps if none else numbers(stride, len(sizes))
    padding = own.get(2, "padding") or Const("valid")
    mode = str(padding.value).lower() if isinstance(padding, Const) else ""
    found: list[Value] = []
    for size, tap, step in zip(map(integer, sizes), taps, steps, strict=True):
        if size is None or not tap or not step or mode not in ("same", "valid"):
            found.append(SOMETHING)
        else:
            found.append(Const(-(-size // step) if mode == "same" else (size - tap) // step + 1))
    return tuple(found)


def _side_by_side(tensors: Value, axis: Value | None, conditions: Conditions) -> Value:
    """Tensors joined, mostly their channels."""
    reads: list[Flow] = []
    collect([tensors], reads)
    rank = next((len(each.shape) for each in reads if each.shape is not None), None)
    at = -1 if axis is None else integer(axis)
    if at is not None and rank is not None and at in (-1, rank - 1) and all(each.last for each in reads):
        return _last(operations.concatenated(Arguments([tensors, Const(1)], {}), conditions))
    return _last(wrote(Flow(), reads, conditions))


def _met(reads: Sequence[Flow], conditions: Conditions, *, added: bool) -> Value:
    """Tensors added or multiplied, one after the other."""
    found: Value = Tensor(reads[0]) if reads else SOMETHING
    for each in reads[1:]:
        found = operations.combined(Arguments([found, Tensor(each)], {}), conditions, added=added)
    if len(reads) < 2:
        return _last(wrote(Flow(), reads, conditions))
    return _last(found)


def _last(value: Value) -> Value:
    if isinstance(value, Tensor):
        value.data.last = True
    return value
