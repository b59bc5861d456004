"""The calls of Keras layers as operations on feature maps.

All maps of a model are taken to have their channels where `data_format` of its layers puts them; doubtful calls are
opaque. Layers are those of keras.io/api/layers, and the functions of keras.ops that Keras 3 records like layers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from convlint.model.network import Work, WorkKind
from convlint.readers.bounded_json import MOST_AXES, Node
from convlint.readers.keras.layer import NORMS, is_frozen
from convlint.readers.keras.shapes import CHANNELS_FIRST, SAME, SAME_OPS, channels_first
from convlint.readers.operations import NAMED, Effect, Operations, Shape, ValueOrigin, flattens, reshaped

_OPS = "keras.src.ops"  # the module of recorded functions; told apart from layers, as some share a name with one
_ADD = frozenset({"Add", "Average", "Maximum", "Minimum", "Multiply", "Subtract"})
_ADD_OPS = frozenset(["Add", "Divide", "Maximum", "Minimum", "Multiply", "Power", "Subtract", "TrueDivide", "Where"])
_POOLS = ("Max", "Average", "GlobalMax", "GlobalAverage", "AdaptiveMax", "AdaptiveAverage")


class LayerTensor(NamedTuple):
    """A tensor between layers: its shape, where it comes from, and the operation that makes it."""

    shape: Shape | None
    origin: ValueOrigin
    operation: int


class ModelOperations(Operations):
    """The operations of a model that is being walked. `channels_first`: channels come before the axes of space."""

    def __init__(self, model: Node) -> None:
        super().__init__()
        self.channels_first = _mentions_channels_first(model.value)

    def axis(self, shape: Shape | None) -> int:
        """The axis of a map's channels."""
        return 1 if self.channels_first or shape is None else len(shape) - 1

    def add(
        self, effect: Effect, name: str, inputs: Sequence[int], shape: Shape | None, where: str = "",
        work: Work | None = None,
    ) -> int:  # fmt: skip
        """Adds an operation whose channels are where the model's maps have them; returns its number."""
        return super().add(replace(effect, axis=self.axis(shape)), name, inputs, shape, where, work)

    def activation(self, name: str, source: int, shape: Shape | None) -> int:
        """Adds the activation that a layer has in itself; returns its number."""
        work = self.worked("activation", "Activation", [shape], shape)
        return self.add(Effect("identity"), name, (source,), shape, work=work)

    def other(self, kind: str, layer: Node, name: str, given: Sequence[LayerTensor], shape: Shape | None) -> int:
        """Adds a call of a layer of `kind`, no convolution, that makes a tensor of `shape`; returns its number."""
        inputs = [tensor.operation for tensor in given]
        effect = self._effect(kind, layer, given, shape) if given else None
        work = self._work(kind, layer, given, shape) if given else None
        if effect is None:
            return self.opaque(name, f"{kind} {name}", inputs, shape, work=work)
        if effect.kind == "linear":
            self.multiplied.setdefault(name, []).append(self.count)  # a layer that is called again has its weights
        where = f"{kind} {name}" if effect.kind in NAMED else ""
        return self.add(effect, name, inputs, shape, where, work=work)

    def _work(self, kind: str, layer: Node, given: Sequence[LayerTensor], after: Shape | None) -> Work | None:
        """The work of a call; None for views, and for layers that run in training alone."""
        module = layer.get("module")
        known = kind if module is None or module.text().startswith("keras") else ""
        if known in _NO_WORK:
            return None
        same = known in SAME or known in SAME_OPS or known in _ADD or known in _ADD_OPS
        done = _WORK.get(known, "activation" if same else "unknown")
        if done == "batch norm" and is_frozen(layer):
            done = "frozen norm"
        before = [tensor.shape for tensor in given]
        constants: list[Shape] = []
        axis = self.axis(before[0])
        channels = None if before[0] is None or axis >= len(before[0]) else before[0][axis]
        if done == "linear" and before[0] and after:
            constants = [(before[0][-1], after[-1])]
        elif done.endswith("norm"):
            constants = [(channels,), (channels,)]
        return self.worked(done, kind, before, after, constants)

    def _effect(self, kind: str, layer: Node, given: Sequence[LayerTensor], after: Shape | None) -> Effect | None:
        """The effect of a call on its maps; None where it may do anything."""
        module, config = layer.get("module"), layer.at("config")
        where = "keras" if module is None else module.text()
        if not where.startswith("keras"):  # a class of the user's, whatever its name
            return None
        ops = where.startswith(_OPS)
        before = given[0].shape
        if kind in (_ADD_OPS if ops else _ADD):
            ranks = {None if tensor.shape is None else len(tensor.shape) for tensor in given}
            if None in ranks or len(ranks) > 1:
                return None
            # Other operands are numbers in the code, which stay as they are whatever the width.
            return Effect("add" if len(given) > 1 else "identity")
        if kind == "Concatenate":
            known = before is not None and len(given) > 1
            return Effect("concat") if known and _along(config, before) == [self.axis(before)] else None
        rule = (_RULES_OF_OPS if ops else _RULES).get(kind)
        return None if rule is None or len(given) > 1 else rule(self, config, before, after)


_WORK: Mapping[str, WorkKind] = {
    "BatchNormalization": "batch norm", "GroupNormalization": "group norm", "Dense": "linear", "EinsumDense": "unknown",
    **dict.fromkeys(("LayerNormalization", "RMSNormalization", "UnitNormalization", "Normalization"), "layer norm"),
    **dict.fromkeys(("Add", "Subtract", "Average"), "add"), **dict.fromkeys(("Multiply", "Divide"), "multiply"),
    "Concatenate": "concat", "Softmax": "softmax", "Embedding": "embedding",
    **dict.fromkeys(("Max", "Mean", "Min", "Sum"), "reduce"),
    **{f"MaxPooling{n}D": "max pool" for n in (1, 2, 3)}, **{f"AveragePooling{n}D": "pool" for n in (1, 2, 3)},
    **{f"Global{kind}Pooling{n}D": "reduce" for kind in ("Max", "Average") for n in (1, 2, 3)},
    **{f"UpSampling{n}D": "resize" for n in (1, 2, 3)}, "Resizing": "resize",
    **{f"{kind}{n}D": "copy" for kind in ("ZeroPadding", "Cropping") for n in (1, 2, 3)}, "Permute": "copy",
    **dict.fromkeys(("CenterCrop", "RandomCrop", "RepeatVector"), "copy"),
}  # fmt: skip
# Neither run in inference nor move anything; training's dropout is one pass more, as an activation.
_NO_WORK = frozenset(
    ("ActivityRegularization", "AlphaDropout", "Dropout", "Flatten", "GaussianDropout", "GaussianNoise", "Identity",
     "InputLayer", "Reshape", "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "StopGradient", "RandomFlip",
     "RandomRotation", "RandomTranslation", "RandomZoom", "RandomBrightness", "RandomContrast")
)  # fmt: skip


Rule = Callable[[ModelOperations, Node, Shape | None, Shape | None], Effect | None]


def _mentions_channels_first(value: Any) -> bool:
    """Whether any layer in a model's configuration has its channels first."""
    waiting = [value]  # a list rather than recursion, which a deep document would exhaust
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict):
            if inner.get("data_format") == CHANNELS_FIRST:
                return True
            waiting += inner.values()
        elif isinstance(inner, list):
            waiting += inner
    return False


def _along(config: Node, shape: Shape | None) -> list[int] | None:
    """The axes that a layer works along, counted from the front; by default the last one. None where unknown."""
    given = config.get("axis")
    value = -1 if given is None else given.value
    axes = value if isinstance(value, list) else [value]
    if shape is None or len(axes) > MOST_AXES or not all(type(axis) is int for axis in axes):
        return None
    return sorted(axis + len(shape) if axis < 0 else axis for axis in axes)


def _spatial(steps: ModelOperations, config: Node, _: Shape | None, __: Shape | None) -> Effect | None:
    return Effect("resize") if channels_first(config) == steps.channels_first else None


def _group_norm(steps: ModelOperations, config: Node, before: Shape | None, _: Shape | None) -> Effect | None:
    given = config.get("groups")
    groups = 32 if given is None else given.value  # Keras's own default
    if before is None or _along(config, before) != [steps.axis(before)]:
        return None
    return Effect("identity", groups=groups) if type(groups) is int and groups > 0 else None


def _reshape(steps: ModelOperations, _: Node, before: Shape | None, after: Shape | None) -> Effect | None:
    if before is None or after is None or len(after) < 3:
        return None
    return Effect("resize") if reshaped(before, after, steps.axis(before)) == steps.axis(after) else None


def _flatten(_: ModelOperations, __: Node, before: Shape | None, after: Shape | None) -> Effect | None:
    return None if before is None or after is None or not flattens(before, after) else Effect("view")


def _dense(steps: ModelOperations, _: Node, before: Shape | None, after: Shape | None) -> Effect | None:
    """A product with the last axis, whose channels it reads if they are there."""
    known = before is not None and after is not None and steps.axis(before) == len(before) - 1
    return Effect("linear") if known else None


def _reduction(steps: ModelOperations, config: Node, before: Shape | None, after: Shape | None) -> Effect | None:
    if before is None or after is None or config.get("axis") is None:  # without an axis it reduces all that there is
        return None
    reduced, channels = _along(config, before), steps.axis(before)
    if reduced == [channels] and len(after) == len(before):
        return Effect("channel_pool")
    return Effect("resize") if reduced == [axis for axis in range(1, len(before)) if axis != channels] else None


_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(SAME, lambda *_: Effect("identity")),
    **dict.fromkeys(NORMS, lambda *_: Effect("batchnorm")),
    **{f"{kind}Pooling{n}D": _spatial for kind in _POOLS for n in (1, 2, 3)},
    **{f"{kind}{n}D": _spatial for kind in ("UpSampling", "ZeroPadding", "Cropping") for n in (1, 2, 3)},
    **dict.fromkeys(("Resizing", "CenterCrop", "RandomCrop"), _spatial),
    "GroupNormalization": _group_norm,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Dense": _dense,
}
_RULES_OF_OPS: Mapping[str, Rule] = {
    **dict.fromkeys(SAME_OPS, lambda *_: Effect("identity")),
    **dict.fromkeys(("Max", "Mean", "Min", "Sum"), _reduction),
}
