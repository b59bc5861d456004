"""Shapes of Keras layers, and references between layers, as a model's configuration states them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod

from convlint.model.layer import output_size
from convlint.readers.bounded_json import MOST_AXES, MOST_READS, MOST_SIZE, Node
from convlint.readers.operations import Shape

Rule = Callable[[Node, Sequence[Shape]], Shape | None]
CHANNELS_FIRST = "channels_first"


def output_shape(kind: str, config: Node, shapes: Sequence[Shape]) -> Shape | None:
    """The shape that a layer of class `kind` makes of these inputs; None for classes without a rule.

    Raises InputFault where the layer's config is broken, or its output has a size that no tensor can have.
    """
    rule = _RULES.get(kind)
    if rule is None or not shapes:
        return None
    shape = rule(config, shapes)
    if shape is not None and not all(size is None or 1 <= size <= MOST_SIZE for size in shape):
        raise config.fault(f"makes {text(shape)} of {' and '.join(map(text, shapes[:4]))}, which no tensor can be")
    return shape


def spatial_axes(config: Node, rank: int) -> range:
    """The axes between batch and channels, by the layer's data_format."""
    return range(2, rank) if channels_first(config) else range(1, rank - 1)


def channels_first(config: Node) -> bool:
    """Whether a layer has its channels before the axes of space."""
    given = config.get("data_format")
    return given is not None and given.value == CHANNELS_FIRST


def number(config: Node, key: str, default: int) -> int:
    """A whole number of at least 1; `default` where the config has none."""
    given = config.get(key)
    return default if given is None else given.integer()


def numbers(config: Node, key: str, count: int, default: int) -> list[int]:
    """A whole number of at least 1 for each of `count` axes; `default` where the config has none."""
    given = config.get(key)
    return [default] * count if given is None else given.integers(count)


def _same(_: Node, shapes: Sequence[Shape]) -> Shape:
    return shapes[0]


def _broadcast(_: Node, shapes: Sequence[Shape]) -> Shape | None:
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(
        None if None in sizes else max(size for size in sizes if size is not None)
        for sizes in zip(*padded, strict=True)
    )


def _concatenate(config: Node, shapes: Sequence[Shape]) -> Shape | None:
    given = config.get("axis")
    axis = -1 if given is None else given.integer(-MOST_AXES, MOST_AXES)
    rank = len(shapes[0])
    if not -rank <= axis < rank or any(len(shape) != rank for shape in shapes):
        return None
    along = [shape[axis] for shape in shapes]
    result = list(shapes[0])
    result[axis] = None if None in along else sum(size for size in along if size is not None)
    return tuple(result)


def _map(config: Node, shape: Shape, change: Callable[[int, int], int]) -> Shape:
    axes = spatial_axes(config, len(shape))
    return tuple(
        change(axis - axes.start, size) if axis in axes and size is not None else size
        for axis, size in enumerate(shape)
    )


def _over(dims: int, rule: Callable[[Node, Shape, int], Shape]) -> Rule:
    """A rule for layers with one input that has `dims` axes of space."""

    def checked(config: Node, shapes: Sequence[Shape]) -> Shape:
        if len(shapes[0]) != dims + 2:
            raise config.fault(f"is that of a layer over {dims} axes of space, but its input has {len(shapes[0])} axes")
        return rule(config, shapes[0], dims)

    return checked


def _pool(config: Node, shape: Shape, dims: int) -> Shape:
    taps = config.at("pool_size").integers(dims)
    strides = taps if config.get("strides") is None else config.at("strides").integers(dims)  # Keras's default
    padding = config.get("padding")
    if padding is not None and padding.value == "same":
        return _map(config, shape, lambda i, size: -(-size // strides[i]))
    return _map(config, shape, lambda i, size: output_size(size, stride=strides[i], pad=0, dilation=1, taps=taps[i]))


def _global_pool(config: Node, shape: Shape, _: int) -> Shape:
    axes = spatial_axes(config, len(shape))
    keep = config.get("keepdims")
    if keep is not None and keep.boolean():
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def _upsample(config: Node, shape: Shape, dims: int) -> Shape:
    factors = config.at("size").integers(dims)
    return _map(config, shape, lambda i, size: size * factors[i])


def _margins(given: Node, dims: int) -> list[int]:
    """How much is added to or taken off each axis, from one number, one for each axis, or a pair for each."""
    if not given.is_list:
        return [2 * given.integer(0)] * dims  # on both sides
    sides = given.elements()
    if dims == 1 and len(sides) == 2:
        return [sum(given.integers(2, 0))]
    if len(sides) != dims:
        raise given.fault(f"must be one number or {dims}, not {len(sides)}")
    return [sum(side.integers(2, 0)) for side in sides]


def _pad(config: Node, shape: Shape, dims: int, key: str = "padding", sign: int = 1) -> Shape:
    margins = _margins(config.at(key), dims)
    return _map(config, shape, lambda i, size: size + sign * margins[i])


def _resize(config: Node, shape: Shape, _: int) -> Shape:
    sizes = config.at("height").integer(), config.at("width").integer()
    axes = spatial_axes(config, len(shape))
    return tuple(sizes[axis - axes.start] if axis in axes else size for axis, size in enumerate(shape))


def _dense(config: Node, shapes: Sequence[Shape]) -> Shape:
    return (*shapes[0][:-1], config.at("units").integer())


def _flatten(_: Node, shapes: Sequence[Shape]) -> Shape:
    return (shapes[0][0], _elements(shapes[0][1:])) if shapes[0] else (None, 1)


def _elements(shape: Shape) -> int | None:
    known = [size for size in shape if size is not None]
    return prod(known) if len(known) == len(shape) else None


def _reshape(config: Node, shapes: Sequence[Shape]) -> Shape | None:
    """The sizes that are asked for: by a layer without the batch, which it keeps, by keras.ops.reshape with it."""
    shape = shapes[0]
    asked = config.get("newshape") or config.at("target_shape")
    if not asked.is_list:
        return None
    kept = () if config.get("newshape") is not None else shape[:1] or (None,)
    target = [None if size.value in (-1, None) else size.integer() for size in asked.elements(MOST_AXES)]
    total = _elements(shape[len(kept) :])
    known = prod(size for size in target if size is not None)
    free = target.count(None)  # at most one is filled in; with more, or an unknown total, they stay unknown
    if total is not None and (total != known if not free else free == 1 and total % known):
        raise asked.fault(f"cannot hold the {total} elements of {text(shape)}")
    filled = total // known if total is not None and free == 1 else None
    return (*kept, *(filled if size is None else size for size in target))


def _permute(config: Node, shapes: Sequence[Shape]) -> Shape | None:
    """The axes of a Permute layer, which keeps the batch and counts from 1, or of keras.ops.transpose."""
    shape, dims, axes = shapes[0], config.get("dims"), config.get("axes")
    if dims is not None:
        order = [0, *(axis.integer() for axis in dims.elements(MOST_AXES))]
    elif axes is not None and axes.is_list:
        order = [axis.integer(-len(shape), len(shape) - 1) % len(shape) for axis in axes.elements(MOST_AXES)]
    else:
        order = list(reversed(range(len(shape))))
    return tuple([shape[axis] for axis in order]) if sorted(order) == list(range(len(shape))) else None


def _embed(config: Node, shapes: Sequence[Shape]) -> Shape:
    return (*shapes[0], config.at("output_dim").integer())


def _repeat(config: Node, shapes: Sequence[Shape]) -> Shape:
    return (*shapes[0][:1], config.at("n").integer(), *shapes[0][1:])


def _reduce(config: Node, shapes: Sequence[Shape]) -> Shape:
    """What keras.ops.mean and its kin leave: of all axes, of one, or of several."""
    shape, given, keeps = shapes[0], config.get("axis"), config.get("keepdims")
    if given is None or given.value is None:
        axes = list(range(len(shape)))
    else:
        asked = given.elements(MOST_AXES) if given.is_list else [given]
        axes = [axis.integer(-len(shape), len(shape) - 1) % len(shape) for axis in asked] if shape else []
    if keeps is not None and keeps.value is True:
        return tuple([1 if axis in axes else size for axis, size in enumerate(shape)])
    return tuple([size for axis, size in enumerate(shape) if axis not in axes])


def _recur(config: Node, shapes: Sequence[Shape]) -> Shape:
    every = config.get("return_sequences")
    return (*shapes[0][: 1 if every is None or every.value is not True else 2], config.at("units").integer())


_SAME = (
    "Activation ActivityRegularization AlphaDropout Dropout ELU GaussianDropout GaussianNoise Identity "
    "LayerNormalization LayerScale LeakyReLU Normalization PReLU RMSNormalization RandomBrightness RandomContrast "
    "RandomFlip RandomRotation RandomTranslation RandomZoom ReLU Rescaling Softmax SpatialDropout1D SpatialDropout2D "
    "SpatialDropout3D ThresholdedReLU UnitNormalization"
)
# Layers whose maps keep their size, and whose channels may have any number; norms of channels keep sizes as well.
SAME = frozenset(_SAME.split())
_SAME_OPS = (
    "Abs Absolute Cast Celu Clip Elu Erf Exp Gelu HardShrink HardSigmoid HardSilu HardTanh LeakyRelu Log LogSigmoid "
    "LogSoftmax Negative Relu Relu6 Rsqrt Selu Sigmoid Silu SoftShrink Softmax Softplus Softsign Sqrt Square "
    "Squareplus StopGradient Tanh TanhShrink"
)
# Functions of keras.ops that do the same.
SAME_OPS = frozenset(_SAME_OPS.split())
_RULES: Mapping[str, Rule] = {
    **dict.fromkeys((*SAME, *SAME_OPS, "BatchNormalization", "GroupNormalization"), _same),
    **dict.fromkeys(("Add", "Average", "Maximum", "Minimum", "Multiply", "Subtract"), _broadcast),
    **dict.fromkeys(("Divide", "Power", "TrueDivide", "Where"), _broadcast),
    **dict.fromkeys(("Max", "Mean", "Min", "Sum"), _reduce),
    **{f"{kind}Pooling{n}D": _over(n, _pool) for kind in ("Max", "Average") for n in (1, 2, 3)},
    **{f"Global{kind}Pooling{n}D": _over(n, _global_pool) for kind in ("Max", "Average") for n in (1, 2, 3)},
    **{f"UpSampling{n}D": _over(n, _upsample) for n in (1, 2, 3)},
    **{f"ZeroPadding{n}D": _over(n, _pad) for n in (1, 2, 3)},
    **{f"Cropping{n}D": _over(n, partial(_pad, key="cropping", sign=-1)) for n in (1, 2, 3)},
    "Concatenate": _concatenate,
    "Dense": _dense,
    "Embedding": _embed,
    "Flatten": _flatten,
    **dict.fromkeys(("GRU", "LSTM", "SimpleRNN"), _recur),
    **dict.fromkeys(("Permute", "Transpose"), _permute),
    "RepeatVector": _repeat,
    "Reshape": _reshape,
    "Resizing": _over(2, _resize),
}


def unify(first: Shape | None, second: Shape | None) -> Shape | None:
    """A shape from two sources, each of which may know sizes of it. Raises ValueError where they differ."""
    if first is None or second is None:
        return first if second is None else second
    if len(first) != len(second) or any(
        a is not None and b is not None and a != b for a, b in zip(first, second, strict=True)
    ):
        raise ValueError(f"{text(first)} is not {text(second)}")
    return tuple(b if a is None else a for a, b in zip(first, second, strict=True))


def text(shape: Shape | None) -> str:
    """A shape as people write it, with `?` for an unknown size."""
    return "unknown" if shape is None else "x".join("?" if size is None else str(size) for size in shape)


DEEPEST = 100  # levels of lists and objects in the arguments of one call
_MOST_CALLS = 2**31  # of one layer; a larger number is no position

Reference = tuple[str, int, int]  # layer, which of its calls, which of its outputs


def references(node: Node | None) -> tuple[list[tuple[Reference, Shape | None]], int]:
    """The tensors that a call reads, with the shapes that Keras noted, and how many values were looked at.

    Reads the spelling of Keras 2, `["conv1", 0, 0]`, and that of Keras 3, `__keras_tensor__`. Raises InputFault.
    """
    tensors: list[tuple[Reference, Shape | None]] = []
    waiting = [] if node is None else [(node, 0)]
    visited = 0
    while waiting:
        inner, depth = waiting.pop()
        visited += 1
        if visited > MOST_READS or depth > DEEPEST:
            assert node is not None
            raise node.fault(f"holds more than {MOST_READS:,} values, or nests deeper than {DEEPEST} levels")
        if inner.is_object:
            if inner.value.get("class_name") == "__keras_tensor__":
                tensors.append(_tensor(inner))
            else:
                # Reversed, because the last of `waiting` is looked at next.
                waiting += [(value, depth + 1) for _, value in reversed(list(inner.items())) if _may_hold(value)]
        elif _is_reference(inner.value):
            tensors.append((_reference(inner), None))
        elif inner.is_list:
            waiting += [(value, depth + 1) for value in reversed(inner.elements()) if _may_hold(value)]
    return tensors, visited


def _may_hold(node: Node) -> bool:
    return isinstance(node.value, (dict, list))


def _is_reference(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) in (3, 4)
        and isinstance(value[0], str)
        and type(value[1]) is int
        and type(value[2]) is int
    )


def _reference(node: Node) -> Reference:
    """A layer, which of its calls, and which of its outputs."""
    elements = node.elements(4)
    if len(elements) < 3:
        raise node.must_be("a layer, its call and its output")
    return elements[0].text(), elements[1].integer(0, _MOST_CALLS), elements[2].integer(0, _MOST_CALLS)


def _tensor(node: Node) -> tuple[Reference, Shape | None]:
    config = node.at("config")
    shape = config.get("shape")
    return _reference(config.at("keras_history")), shape.shape() if shape is not None else None
