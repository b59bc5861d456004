"""Layers and functions of Keras and TensorFlow. Shapes have the channels first here, as in the whole package."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import lru_cache
from operator import mul

from convlint.files.repository import is_quiet
from convlint.readers.python.evaluator.library import LibraryCall
from convlint.readers.python.evaluator.values import Const, Instance, Items, Tensor, Value, same, text_of
from convlint.readers.python.nn import tensors
from convlint.readers.python.nn.kinds import Kind
from convlint.readers.python.nn.tensors import SOMETHING, Arguments, Conditions, Shape, TensorPath, flow_of, integer
from convlint.readers.python.project import Project
from convlint.readers.python.source_file import SourceFile, last_name

_POINTWISE = frozenset((
    "relu", "relu6", "leaky_relu", "silu", "swish", "gelu", "elu", "selu", "sigmoid", "hard_sigmoid", "hard_swish",
    "tanh", "softmax", "softplus", "softsign", "mish", "dropout", "identity", "cast", "abs", "square", "sqrt", "exp",
    "log", "sign", "negative", "clip_by_value", "stop_gradient", "lrn", "local_response_normalization", "bias_add",
))  # fmt: skip
# Functions that read no numbers of a tensor
_QUESTIONS = frozenset(("int_shape", "is_keras_tensor", "ndim", "shape", "rank", "image_data_format"))
# Functions and layers of several tensors: whether all must have one extent, as a product with a gate need not
_MERGED = {"add": True, "subtract": True, "average": True, "maximum": True, "minimum": True, "multiply": False}
_WINDOW = re.compile(r"(?:Max|Average|Avg)Pool(?:ing)?([123])D")
# Of TensorFlow 1, whose sizes are given in several ways
_KEEPS_CHANNELS = re.compile(r"(?:max|avg|average)_pool|resize(?:_|$)")
_SHUFFLES: dict[str, tensors.Operation] = {"depth_to_space": tensors.shuffled, "space_to_depth": tensors.unshuffled}
_ORDERS = {
    **dict.fromkeys(("channels_last", "NWC", "NHWC", "NDHWC"), "channels_last"),
    **dict.fromkeys(("channels_first", "NCW", "NCHW", "NCDHW"), "channels_first"),
}
_SETS_ORDER = frozenset(("set_image_data_format", "set_image_dim_ordering"))  # of all layers that name none
_OLD_ORDERS = {"th": "channels_first", "tf": "channels_last"}
# Where functions of TensorFlow stand too
_INTERNAL = re.compile(r"tensorflow\.(?:compat\.v1|python\.ops\.\w+)\.")
# Functions whose second argument is the shape of their result
_OF_SHAPE = frozenset((
    "keras.backend.reshape", "keras.ops.reshape", "tensorflow.placeholder", "tensorflow.reshape",
))  # fmt: skip
ASKS_ORDER = frozenset(("keras.backend.image_data_format", "keras.config.image_data_format"))


@lru_cache(maxsize=8)
def usual_order(file: SourceFile) -> Value:
    """Return the order of axes of layers and inputs in a file that name none."""
    usual, kept = Const("channels_last"), False
    if not _sets_order(file.content):
        return usual
    sure = {id(statement.value) for statement in file.tree.body if isinstance(statement, ast.Expr)}
    for call in sorted(file.nodes[ast.Call], key=lambda node: node.lineno):
        if last_name(call.func) in _SETS_ORDER:
            order = next(iter((*call.args, *(keyword.value for keyword in call.keywords))), None)
            name = order.value if isinstance(order, ast.Constant) else None
            known = _OLD_ORDERS.get(name, name) if isinstance(name, str) else None
            if id(call) in sure and known is not None:
                usual = Const(known)
            elif known == text_of(usual):
                kept = True
            elif not (kept and isinstance(order, ast.Name)):  # which may run, or not
                return SOMETHING  # else, a variable puts back what was set before
    return usual


def order_in_code(file: SourceFile, project: Project) -> Value:
    """Return what `image_data_format()` gives in a file: as its layers are read, and unknown if other files differ."""
    usual = usual_order(file)
    if _sets_order(file.content):
        return usual
    others = (project.file(path) for path in project.where(_sets_order) if not is_quiet(path))
    return usual if all(same(usual_order(other), usual) for other in others if other is not None) else SOMETHING


def _sets_order(content: bytes) -> bool:
    return b"set_image_d" in content


def order_of(named: Value | None) -> str:
    """Return the order of axes by `data_format`; empty if that is not known."""
    if named is None or (isinstance(named, Const) and named.value is None):
        return "channels_last"
    return _ORDERS.get(text_of(named) or "", "")


def read_as(order: str, read: TensorPath) -> TensorPath | None:
    """Return a tensor as a layer of that order reads it; None if its axes may be others than they seem.

    An input states its sizes in the order of the layer that reads it.
    """
    if read.shape is None or order == ("channels_last" if read.last else "channels_first"):
        return read
    if not order or not read.raw:
        return None
    batch, first, *others = read.shape
    shape = (batch, *others, first) if read.last else (batch, *others[-1:], first, *others[:-1])
    return TensorPath(shape, raw=True, last=not read.last)


def kind_of_norm(given: Arguments) -> Kind:
    """Return the kind of a BatchNormalization: over another axis than the channels, or frozen, it cancels no bias."""
    axis = given.get(0, "axis")
    if is_frozen(given.keywords.get("trainable")):
        return "other norm"
    if not isinstance(axis, Const) or axis.value in (-1, 3, 4):
        return "norm"
    return "first-axis norm" if axis.value == 1 else "other norm"


def kind_of_function(full: str, given: Arguments) -> Kind:
    """Return the kind of a norm that is a function of TensorFlow 1, whose default is to take its moving averages.

    Those of slim train by default, but for what an `arg_scope` sets elsewhere.
    """
    trains = given.keywords.get("training" if full.startswith("tensorflow.") else "is_training")
    if full != "tf_slim.instance_norm" and (trains is None or is_frozen(trains)):
        return "other norm"
    return kind_of_norm(Arguments(given.args[1:] if full.startswith("tensorflow.") else (), given.keywords))


def is_frozen(trains: Value | None) -> bool:
    """Whether a norm that is told so, by `trainable` or `training`, takes its moving averages.

    A default says nothing: whoever trains a network of Keras calls it with another `training`.
    """
    return isinstance(trains, Const) and trains.value in (False, 0) and not any(item.default for item in trains.stated)


def has_function(full: str) -> bool:
    """Whether it is known what a function of this canonical name returns."""
    prefix, _, short = full.rpartition(".")
    return full == "keras.Input" or (prefix == "keras.layers" and (short == "concatenate" or short in _MERGED))


def input_of(given: Arguments, order: Value) -> Tensor:
    """Return what `keras.Input` does."""
    return Tensor(_stated(given.get(0, "shape"), order_of(order)) or TensorPath(raw=True))


def shape_obtained(given: Arguments) -> Value:
    """Return the shape of the input that networks of Keras itself have: the one that is given, or that of images."""
    shape, order = given.get(0, "input_shape"), order_of(given.get(3, "data_format"))
    if not tensors.is_none(shape):
        return shape or SOMETHING
    return Items("tuple", [SOMETHING, SOMETHING, Const(3)]) if order == "channels_last" else SOMETHING


def function(full: str, given: Arguments, conditions: Conditions) -> Value | None:
    """Return the result of a function by its canonical name; None if it reads no tensor.

    Those of Keras, TensorFlow, JAX, Flax and Haiku have names in common.
    """
    full = _INTERNAL.sub("tensorflow.", full)
    short = full.rpartition(".")[2]
    if full in _OF_SHAPE:
        return _reshaped(given, _without_batch(given.get(1, "shape", "newshape")), conditions)
    if full == "keras.Model" or not given.tensors():
        return None
    first = given.first or SOMETHING
    if full == "keras.backend.int_shape" and isinstance(first, Tensor):
        return tensors.attribute(first, "shape")
    if short in _QUESTIONS:
        return SOMETHING
    if short in _POINTWISE and isinstance(given.get(0, "x", "features", "input", "inputs"), Tensor):
        return with_last(given, tensors.run(tensors.pointwise, Arguments([first], {}), conditions))
    if full.startswith("jax."):
        return _of_jax(full, given, conditions)
    if full in ("tensorflow.concat", "tensorflow.concat_v2") or short == "concatenate":
        return _side_by_side(given.get(0, "values", "inputs", "tensors") or first, given.get(1, "axis"), conditions)
    if full in ("tensorflow.pad", "tensorflow.split"):
        return (_padded if short == "pad" else _divided)(given, conditions)
    if full == "tensorflow.add_n":
        return _met(given.tensors(), conditions, added=True)
    if short in ("max_pool", "avg_pool") and full.startswith(("flax.", "haiku.")):
        strides, padding = given.get(2, "strides") or Const(1), given.get(3, "padding") or Const("valid")
        own = Arguments([given.get(1, "window_shape") or SOMETHING, strides, padding], {})
        return applied("keras.layers.MaxPool2D", own, Arguments([first], {}), conditions)
    if full.startswith(("tensorflow.", "tf_slim.")) and _KEEPS_CHANNELS.match(short):
        own = Arguments((), {name: value for name, value in given.keywords.items() if name == "data_format"})
        return applied("keras.layers.MaxPool2D", own, Arguments([first], {}), conditions)
    if short in _SHUFFLES:
        value = tensors.run(
            _SHUFFLES[short], Arguments([first, given.get(1, "block_size") or SOMETHING], {}), conditions
        )
        return with_last(given, value)
    if short in _MERGED and full.startswith(("keras.layers.", "keras.ops.", "tensorflow.")):
        return _met(given.tensors(), conditions, added=_MERGED[short])
    return tensors.opaque(given, conditions)


def _of_jax(full: str, given: Arguments, conditions: Conditions) -> Value:
    """Return the result of a function of JAX itself that reads tensors with the channels last."""
    reads, shape = given.tensors() or tensors.collect(given.args), given.get(1, "shape")
    if not all(read.last for read in reads):  # Equinox' have them first, and no batch
        return tensors.opaque(given, conditions)
    if full == "jax.numpy.concatenate":
        return _side_by_side(given.first or SOMETHING, given.get(1, "axis") or Const(0), conditions)
    if full == "jax.image.resize" and isinstance(shape, Items) and shape.complete and len(shape.items) > 1:
        batch, *sizes, channels = shape.items
        return tensors.wrote(TensorPath((batch, channels, *sizes), last=True), reads, conditions)
    return tensors.opaque(given, conditions)


def with_last(given: Arguments, value: Value) -> Value:
    """Return `value` with the axis order of the tensors it was computed from."""
    return _last(value) if any(tensor.last for tensor in given.tensors()) else value


def _last(value: Value) -> Value:
    if isinstance(value, Tensor):
        value.data.last = True
    return value


def handed_out(call: LibraryCall, conditions: Conditions) -> None:
    """Mark the outputs of a `keras.Model` as returned: no other layer reads them."""
    outputs = [*call.args[1:], *(value for name, value in call.keywords.items() if name != "inputs")]
    for tensor in tensors.collect(outputs):
        tensor.readers.append(tensors.TensorReader("returned", (), conditions))


def stated_input(given: Value | None, dims: int, order: str) -> TensorPath | None:
    """Return the input of a first layer with an `input_shape` argument; None if that does not fit."""
    tensor = _stated(given, order)
    return tensor if tensor is not None and len(tensor.shape or ()) == dims + 2 else None


def entered(own: Arguments, given: Arguments) -> Arguments:
    """Return what a layer is called with, of the size that its own `input_shape` states if nothing else does."""
    shape, first = own.keywords.get("input_shape"), given.first
    if shape is None or first is None:
        return given
    read = _sized(first, _stated(shape, order_of(own.keywords.get("data_format"))))
    return Arguments([read, *given.args[1:]], given.keywords) if given.args else given


def _stated(shape: Value | None, order: str) -> TensorPath | None:
    """Return a network input of that shape, which lacks the batch; None if it is unknown."""
    sizes = shape.items if isinstance(shape, Items) and shape.complete and order else []
    if len(sizes) < 2:
        return None
    last = order == "channels_last"
    return TensorPath((SOMETHING, *((sizes[-1], *sizes[:-1]) if last else sizes)), raw=True, last=last)


def _without_batch(shape: Value | None) -> Value | None:
    return Items("tuple", shape.items[1:], complete=shape.complete) if isinstance(shape, Items) else None


def _reshaped(given: Arguments, sizes: Value | None, conditions: Conditions) -> Value:
    """Return a tensor, or what nobody knows, in other sizes, which lack the batch and of which -1 says nothing."""
    reads, stated = given.tensors(), _stated(sizes, "channels_last")
    known = [size if (integer(size) or 0) > 0 else SOMETHING for size in (stated and stated.shape) or ()]
    raw = all(read.raw for read in reads)
    return tensors.wrote(TensorPath(tuple(known) or None, raw=raw, last=True), reads, conditions)


def begun(owner: Instance, given: Sequence[Value]) -> list[Value]:
    """Return the arguments of a Sequential's first layer, with the shape that an `Input` in front of it states."""
    args = list(given)
    stated = next(iter(owner.attributes.values()), None)
    if args and isinstance(stated, Tensor) and stated.data.shape is not None:
        args[0] = _sized(args[0], stated.data)
    return args


def _sized(value: Value, stated: TensorPath | None) -> Value:
    """Return the network's input, with the stated shape if it has none."""
    read = flow_of(value)
    return value if stated is None or read.shape is not None or not read.raw else \
        Tensor(TensorPath(stated.shape, raw=True, last=stated.last))  # fmt: skip


def each_step(read: TensorPath) -> Shape | None:
    """Return the shape of a tensor without the axis of time, which stands behind the batch."""
    shape = read.shape
    if shape is None or len(shape) < 4:
        return None
    at = 2 if read.last else 1  # the channels are the second here, wherever they stand
    return (*shape[:at], *shape[at + 1 :])


def all_steps(written: TensorPath, read: TensorPath) -> Shape | None:
    """Return the shape of what a layer wrote for each step, with the axis of time; both have the channels last."""
    shape, steps = written.shape, read.shape
    if shape is None or steps is None or len(shape) < 2 or len(steps) < 4:
        return None
    return (*shape[:2], steps[2], *shape[2:])


def of_shape(flow: TensorPath, shape: Shape | None) -> Tensor:
    """Return the same tensor seen with another shape: its readers are those of both."""
    view = TensorPath(shape, raw=flow.raw)
    view.readers = flow.readers
    return Tensor(view)


def applied(name: str, own: Arguments, given: Arguments, conditions: Conditions) -> Value:
    """Return the output of the layer with that name."""
    short, first = name.rpartition(".")[2], given.first or SOMETHING
    if short == "InputLayer":
        batch_shape = own.get(9, "batch_shape", "batch_input_shape")
        shape = own.get(0, "input_shape", "shape")
        if isinstance(batch_shape, Items) and batch_shape.complete:
            shape = Items("tuple", batch_shape.items[1:])
        return _sized(first, _stated(shape, order_of(own.keywords.get("data_format"))))
    if short == "Concatenate":
        return _side_by_side(first, own.get(0, "axis"), conditions)
    if short == "Reshape":
        return _reshaped(given, own.get(0, "target_shape"), conditions)
    if short == "Embedding":  # of a line of words
        width = own.get(1, "output_dim") or SOMETHING
        return tensors.wrote(
            TensorPath((SOMETHING, width, SOMETHING), last=True), given.tensors(), conditions, "opaque"
        )
    if short.lower() in _MERGED:
        return _met(given.tensors(), conditions, added=_MERGED[short.lower()])
    read, order = flow_of(first), order_of(own.keywords.get("data_format"))
    seen = read_as(order, read)
    head = seen.shape[:2] if seen is not None and seen.shape is not None and len(seen.shape) > 2 else None
    known, space = [integer(size) for size in (seen.sizes if seen and head else None) or ()], tensors.Space()
    sizes, raw = tensors.unknown_sizes(len(known)), read.raw
    # Nobody pools what is 1x1 already.
    if short.startswith("Global") or _WINDOW.fullmatch(short):
        read.space.says(False)
    if short.startswith("Global"):
        head, sizes = head if tensors.is_true(own.keywords.get("keepdims")) is False else None, ()
        space, raw = tensors.Space(True), False
    elif _WINDOW.fullmatch(short):
        sizes = _pooled(known, own)
    elif short.startswith("UpSampling"):
        sizes = tensors.sized(mul, known, tensors.numbers(own.get(0, "size") or Const(2), len(known)))
    elif short.startswith("ZeroPadding"):
        border = tensors.numbers(own.get(0, "padding") or Const(1), len(known))
        sizes = tensors.sized(lambda size, by: size + 2 * by, known, border)
    written, last = None if head is None else (*head, *sizes), order != "channels_first"
    return tensors.wrote(TensorPath(written, space=space, raw=raw, last=last), [read], conditions)


def _pooled(known: Sequence[int | None], own: Arguments) -> Shape:
    # Without strides, a Keras pool moves by the size of its window.
    taps, stride = tensors.numbers(own.get(0, "pool_size") or Const(2), len(known)), own.get(1, "strides")
    steps = [step or None for step in (taps if tensors.is_none(stride) else tensors.numbers(stride, len(known)))]
    padding = own.get(2, "padding") or Const("valid")
    mode = str(padding.value).lower() if isinstance(padding, Const) else ""
    if mode not in ("same", "valid"):
        return tensors.unknown_sizes(len(known))
    return tensors.sized(lambda size, tap, step: -(-size // step) if mode == "same" else (size - tap) // step + 1,
                 known, taps, steps)  # fmt: skip


def _side_by_side(value: Value, axis: Value | None, conditions: Conditions) -> Value:
    """Return the concatenation of tensors, mostly of their channels."""
    reads = tensors.collect([value])
    rank = next((len(read.shape) for read in reads if read.shape is not None), None)
    at = -1 if axis is None else integer(axis)
    # Of tensors with the channels last that axis is the last one, which is the second here.
    are_last, are_first = all(read.last for read in reads), not any(read.last for read in reads)
    if rank is not None and ((are_last and at in (-1, rank - 1)) or (are_first and at == 1)):
        return with_last(Arguments([value], {}), tensors.concatenated(Arguments([value, Const(1)], {}), conditions))
    return tensors.wrote(TensorPath(last=True), reads, conditions)


def _padded(given: Arguments, conditions: Conditions) -> Value:
    """Return a tensor with padded borders; of padded channels nothing is known."""
    read, borders = flow_of(given.get(0, "tensor", "x")), given.get(1, "paddings")
    rank, pairs = len(read.shape or ()), borders.items if isinstance(borders, Items) and borders.complete else []
    shape = None
    if rank > 1 and len(pairs) == rank and tensors.numbers(pairs[-1 if read.last else 1], 2) == [0, 0]:
        shape = read.with_sizes(tensors.unknown_sizes(rank - 2))
    return tensors.wrote(TensorPath(shape, raw=read.raw, last=read.last), [read], conditions)


def _divided(given: Arguments, conditions: Conditions) -> Value:
    """Split a tensor, mostly its channels, into a number of equal parts, or into parts of given sizes."""
    first, sizes, axis = given.get(0, "value") or SOMETHING, given.get(1, "num_or_size_splits"), given.get(2, "axis")
    read, at = flow_of(first), integer(axis or Const(0))
    rank = len(read.shape or ())
    if not rank or at not in ((-1, rank - 1) if read.last else (1,)):
        return tensors.opaque(given, conditions)
    divide = tensors.split if isinstance(sizes, Items) else tensors.chunked
    parts = divide(Arguments([first, sizes or SOMETHING, Const(1)], {}), conditions)
    for part in tensors.collect([parts]):
        part.last = read.last
    return parts


def _met(reads: Sequence[TensorPath], conditions: Conditions, *, added: bool) -> Value:
    """Return the sum or product of tensors."""
    if len(reads) < 2:
        return tensors.wrote(TensorPath(last=True), reads, conditions)
    result: Value = Tensor(reads[0])
    for read in reads[1:]:
        result = tensors.combined(Arguments([result, Tensor(read)], {}), conditions, added=added)
    return _last(result) if any(read.last for read in reads) else result
