"""What Keras layers do to shapes: enough of them to carry sizes from one convolution to the next.

A shape is a tuple in the layer's own order of axes, the batch first; None stands for an unknown size. Where a layer
is not known here, the shapes that Keras itself wrote into the file are used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from convlint.model import output_size

Shape = tuple[int | None, ...]
Rule = Callable[[Mapping[str, Any], Sequence[Shape]], Shape | None]


def output_shape(kind: str, config: Mapping[str, Any], shapes: Sequence[Shape]) -> Shape | None:
    """The shape that a layer of class `kind` makes of these inputs, or None where that is not known here."""
    if not shapes:
        return None
    rule = _RULES.get(kind)
    return rule(config, shapes) if rule is not None else None


def spatial_axes(config: Mapping[str, Any], rank: int) -> range:
    """The axes between batch and channels, by the layer's data_format."""
    return range(2, rank) if config.get("data_format") == "channels_first" else range(1, rank - 1)


def each(value: Any, dims: int) -> list[int]:
    """One number per axis. Raises ValueError where the file holds something else."""
    values = list(value) if isinstance(value, (list, tuple)) else [value] * dims
    if len(values) != dims or not all(type(number) is int and 0 <= number < 2**31 for number in values):
        raise ValueError(f"{value!r} does not give {dims} sizes")
    return values


def _same(_: Mapping[str, Any], shapes: Sequence[Shape]) -> Shape:
    return shapes[0]


def _broadcast(_: Mapping[str, Any], shapes: Sequence[Shape]) -> Shape | None:
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(
        None if None in sizes else max(size for size in sizes if size is not None)
        for sizes in zip(*padded, strict=True)
    )


def _concatenate(config: Mapping[str, Any], shapes: Sequence[Shape]) -> Shape | None:
    axis = config.get("axis", -1)
    rank = len(shapes[0])
    if type(axis) is not int or not -rank <= axis < rank or any(len(shape) != rank for shape in shapes):
        return None
    along = [shape[axis] for shape in shapes]
    result = list(shapes[0])
    result[axis] = None if None in along else sum(size for size in along if size is not None)
    return tuple(result)


def _map(config: Mapping[str, Any], shape: Shape, change: Callable[[int, int], int]) -> Shape:
    axes = spatial_axes(config, len(shape))
    return tuple(
        change(axis - axes.start, size) if axis in axes and size is not None else size
        for axis, size in enumerate(shape)
    )


def _pool(config: Mapping[str, Any], shapes: Sequence[Shape]) -> Shape:
    dims = len(shapes[0]) - 2
    taps = each(config["pool_size"], dims)
    strides = taps if config.get("strides") is None else each(config["strides"], dims)
    if config.get("padding") == "same":
        return _map(config, shapes[0], lambda i, size: -(-size // max(strides[i], 1)))
    return _map(
        config, shapes[0], lambda i, size: output_size(size, stride=max(strides[i], 1), pad=0, dilation=1, taps=taps[i])
    )


def _global_pool(config: Mapping[str, Any], shapes: Sequence[Shape]) -> Shape:
    axes = spatial_axes(config, len(shapes[0]))
    if config.get("keepdims"):
        return tuple(1 if axis in axes else size for axis, size in enumerate(shapes[0]))
    return tuple(size for axis, size in enumerate(shapes[0]) if axis not in axes)


def _upsample(config: Mapping[str, Any], shapes: Sequence[Shape]) -> Shape:
    factors = each(config["size"], len(shapes[0]) - 2)
    return _map(config, shapes[0], lambda i, size: size * factors[i])


def _margins(value: Any, dims: int) -> list[int]:
    pairs = value if isinstance(value, (list, tuple)) else [value] * dims
    if dims == 1 and len(pairs) == 2:
        return [sum(each(pairs, 2))]
    return [sum(each(pair, 2)) for pair in pairs]


def _pad(config: Mapping[str, Any], shapes: Sequence[Shape]) -> Shape:
    margins = _margins(config["padding"], len(shapes[0]) - 2)
    return _map(config, shapes[0], lambda i, size: size + margins[i])


def _crop(config: Mapping[str, Any], shapes: Sequence[Shape]) -> Shape:
    margins = _margins(config["cropping"], len(shapes[0]) - 2)
    return _map(config, shapes[0], lambda i, size: size - margins[i])


def _dense(config: Mapping[str, Any], shapes: Sequence[Shape]) -> Shape:
    return (*shapes[0][:-1], each(config["units"], 1)[0])


def _flatten(_: Mapping[str, Any], shapes: Sequence[Shape]) -> Shape:
    inner = shapes[0][1:]
    return (shapes[0][0], None if None in inner else prod(size for size in inner if size is not None))


def _reshape(config: Mapping[str, Any], shapes: Sequence[Shape]) -> Shape:
    target = list(config["target_shape"])
    inner = shapes[0][1:]
    known = prod(size for size in target if size != -1)
    total = None if None in inner else prod(size for size in inner if size is not None)
    filled = [(total // known if total is not None and known else None) if size == -1 else size for size in target]
    return (shapes[0][0], *filled)


def _resize(config: Mapping[str, Any], shapes: Sequence[Shape]) -> Shape:
    sizes = each(config["height"], 1) + each(config["width"], 1)
    return _map(config, shapes[0], lambda i, _: sizes[i])


_SAME = (
    "Activation ActivityRegularization AlphaDropout BatchNormalization Dropout ELU GaussianDropout GaussianNoise "
    "GroupNormalization Identity LayerNormalization LayerScale LeakyReLU Normalization PReLU ReLU RMSNormalization "
    "Rescaling Softmax SpatialDropout1D SpatialDropout2D SpatialDropout3D SpectralNormalization ThresholdedReLU "
    "UnitNormalization RandomFlip RandomRotation RandomZoom RandomContrast RandomBrightness RandomTranslation"
)
_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(_SAME.split(), _same),
    **dict.fromkeys(("Add", "Average", "Maximum", "Minimum", "Multiply", "Subtract"), _broadcast),
    **{f"{kind}Pooling{n}D": _pool for kind in ("Max", "Average") for n in (1, 2, 3)},
    **{f"Global{kind}Pooling{n}D": _global_pool for kind in ("Max", "Average") for n in (1, 2, 3)},
    **{f"UpSampling{n}D": _upsample for n in (1, 2, 3)},
    **{f"ZeroPadding{n}D": _pad for n in (1, 2, 3)},
    **{f"Cropping{n}D": _crop for n in (1, 2, 3)},
    "Concatenate": _concatenate,
    "Dense": _dense,
    "Flatten": _flatten,
    "Reshape": _reshape,
    "Resizing": _resize,
}


def unify(first: Shape | None, second: Shape | None) -> Shape | None:
    """What two sources say of one shape together. Raises ValueError where they contradict each other."""
    if first is None or second is None:
        return first if second is None else second
    if len(first) != len(second) or any(
        a is not None and b is not None and a != b for a, b in zip(first, second, strict=True)
    ):
        raise ValueError(f"{text(first)} is not {text(second)}")
    return tuple(b if a is None else a for a, b in zip(first, second, strict=True))


def text(shape: Shape | None) -> str:
    """A shape as people write it, `?` for what is unknown."""
    return "unknown" if shape is None else "x".join("?" if size is None else str(size) for size in shape)
