"""Functions of frameworks and methods of tensors, by their short names."""

from __future__ import annotations

from convlint.readers.python.evaluator.values import Const, Items, Tensor, Unknown, Value
from convlint.readers.python.nn import keras, operations, reshaping
from convlint.readers.python.nn.arguments import Arguments
from convlint.readers.python.nn.flow import SOMETHING, Flow, integer
from convlint.readers.python.nn.operations import Conditions, Operation, flow_of

# The same numbers, in place or elsewhere: what a norm takes away it takes away behind them too.
_SAME = """
    contiguous to cuda cpu float half double bfloat16 type type_as requires_grad_ detach_ detach clone data
    cast pin_memory to_sparse to_dense stop_gradient astype numpy_ checkpoint_name identity
"""
_POINTWISE = """
    relu relu_ relu6 leaky_relu leaky_relu_ prelu rrelu elu elu_ selu celu gelu silu silu_ swish mish hardswish
    hardsigmoid hardtanh softplus softsign softshrink hardshrink tanhshrink threshold sigmoid sigmoid_ logsigmoid tanh
    tanh_ softmax log_softmax gumbel_softmax dropout dropout1d dropout2d dropout3d alpha_dropout feature_dropout
    feature_alpha_dropout abs exp log sqrt rsqrt square pow neg sign clamp clamp_ clip clip_ round floor ceil sin cos
    erf reciprocal group_norm layer_norm local_response_norm normalize rms_norm log1p expm1 nan_to_num masked_fill
    masked_fill_ mul_ scale
"""
_ADDED = "add add_ sub sub_ subtract maximum minimum lerp addcmul max_ where_"
_MULTIPLIED = "mul multiply div divide true_divide atan2"
_POOLED = "max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d lp_pool1d lp_pool2d"
_ADAPTIVE = """
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
    adaptive_max_pool3d
"""
_REORDERED = "roll flip expand expand_as repeat repeat_interleave rot90 flipud fliplr broadcast_to tile"
_CREATED = "randn rand zeros ones empty full"
_LIKE = "zeros_like ones_like rand_like randn_like empty_like full_like new_zeros new_ones"
_QUESTIONS = (
    "is_contiguous is_floating_point element_size numel nelement get_device storage stride data_ptr item tolist"
)


def _table() -> dict[str, Operation]:
    found: dict[str, Operation] = {}

    def put(names: str, operation: Operation) -> None:
        found.update(dict.fromkeys(names.split(), operation))

    put(_POINTWISE, operations.pointwise)
    put("instance_norm", operations.normalized)
    put(_ADDED, operations.combined)
    put(_MULTIPLIED, operations.multiplied)
    put("cat concat concatenate", operations.concatenated)
    put(_POOLED, operations.pooled)
    put(_ADAPTIVE, operations.adaptively_pooled)
    put("mean sum amax amin nanmean", operations.reduced)
    put("interpolate upsample upsample_bilinear upsample_nearest", operations.resized)
    put("view reshape view_as reshape_as", reshaping.viewed)
    put("flatten", reshaping.flattened)
    put("permute", reshaping.permuted)
    put("chunk", reshaping.chunked)
    put("split", reshaping.split)
    put("pad", reshaping.padded)
    put("pixel_shuffle", reshaping.shuffled)
    put("pixel_unshuffle", reshaping.unshuffled)
    put("unsqueeze", reshaping.unsqueezed)
    put(_REORDERED, reshaping.reordered)
    put("conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d", _weighted)
    put(_CREATED, _created)
    put(_LIKE, _created_like)
    return found


def _weighted(given: Arguments, conditions: Conditions) -> Value:
    """A convolution whose weight is a tensor: one that no record is made of."""
    read = flow_of(given.get(0, "input", "x"))
    return operations.wrote(Flow(), [read], conditions, "conv")


def _created(given: Arguments, _: Conditions) -> Value:
    sizes = given.rest(0, "size", "shape")
    return Tensor(Flow(None if not sizes else tuple(sizes), raw=True))


def _created_like(given: Arguments, _: Conditions) -> Value:
    return Tensor(Flow(flow_of(given.get(0, "input", "x")).shape, raw=True))


_OPERATIONS = _table()
_SAME_NAMES = frozenset(_SAME.split())
_QUESTION_NAMES = frozenset(_QUESTIONS.split())
# Whoever asks what a network costs on a GPU has one.
_WITH_A_GPU = frozenset({"torch.cuda.is_available", "paddle.is_compiled_with_cuda"})
_FUNCTIONS = ("torch", "torch.nn.functional", "torch.Tensor", "torch.functional", "paddle", "paddle.nn.functional")


def function(name: str, given: Arguments, conditions: Conditions) -> Value | None:
    """What a framework's function gives, by its full name; None where it reads no tensor that is known."""
    if name in _WITH_A_GPU:
        return Const(True)
    prefix, _, short = name.rpartition(".")
    if prefix not in _FUNCTIONS:
        if name.startswith(("keras.", "tensorflow.")):
            return keras.function(name, given, conditions)
        if prefix.partition(".")[0] in ("torch", "paddle") and given.tensors():
            return operations.opaque(given, conditions)
        return None
    operation = _OPERATIONS.get(short)
    if operation is not None:
        if short in _CREATED.split() or prefix.endswith("functional") or given.tensors():
            return operation(given, conditions)
        return None
    return operations.opaque(given, conditions) if given.tensors() else None


def method(tensor: Tensor, name: str, given: Arguments, conditions: Conditions) -> Value | None:
    """What a method of a tensor gives."""
    if name in _SAME_NAMES:
        return tensor
    if name in ("size", "dim", "ndimension"):
        return _size(tensor.data, name, given)
    if name in _QUESTION_NAMES:
        return SOMETHING
    whole = Arguments([tensor, *given.args], given.keywords)
    if tensor.data.last:
        return SOMETHING if name in ("get_shape", "set_shape") else operations.opaque(whole, conditions)
    operation = _OPERATIONS.get(name)
    return (operation or operations.opaque)(whole, conditions)


def _size(flow: Flow, name: str, given: Arguments) -> Value:
    if name != "size":
        return Const(len(flow.shape)) if flow.shape is not None else SOMETHING
    if flow.shape is None:
        return SOMETHING
    axis = given.get(0, "dim")
    if axis is None:
        return Items("tuple", list(flow.shape))
    number = integer(axis)
    if number is None or not -len(flow.shape) <= number < len(flow.shape):
        return SOMETHING
    return flow.shape[number]


def attribute(tensor: Tensor, name: str) -> Value | None:
    """What an attribute of a tensor is."""
    flow: Flow = tensor.data
    if name == "shape":
        shape = keras.shape_of(flow)
        return Items("tuple", list(shape)) if shape is not None else SOMETHING
    if name in ("ndim", "rank"):
        return Const(len(flow.shape)) if flow.shape is not None else SOMETHING
    if name in ("data", "real"):
        return tensor
    if name in ("device", "dtype", "is_cuda", "requires_grad", "grad", "layout", "names", "grad_fn"):
        return Unknown("call")
    return None
