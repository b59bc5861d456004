"""The calls of Keras layers as operations on feature maps.

All maps of a model are taken to have their channels where its layers' `data_format` puts them; what is doubtful is
opaque. Layers as in keras.io/api/layers, and the functions of keras.ops that Keras 3 records as if they were layers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from convlint.model.layer import ConvLayer
from convlint.model.network import Operation, OperationKind
from convlint.readers.bounded_json import MOST_AXES, Node
from convlint.readers.keras.layer import NORMS
from convlint.readers.keras.shapes import Shape
from convlint.readers.operations import Operations, one_element

_FIRST = "channels_first"
_OPS = "keras.src.ops"  # the module of a function that Keras 3 records; some have the name of another layer
_SAME = (
    "Activation ActivityRegularization AlphaDropout Dropout ELU GaussianDropout GaussianNoise Identity "
    "LayerNormalization LayerScale LeakyReLU Normalization PReLU RMSNormalization RandomBrightness RandomContrast "
    "RandomFlip RandomRotation RandomTranslation RandomZoom ReLU Rescaling Softmax SpatialDropout1D SpatialDropout2D "
    "SpatialDropout3D ThresholdedReLU UnitNormalization"
)
_SAME_OPS = (
    "Abs Absolute Cast Celu Clip Elu Erf Exp Gelu HardShrink HardSigmoid HardSilu HardTanh LeakyRelu Log LogSigmoid "
    "LogSoftmax Negative Relu Relu6 Rsqrt Selu Sigmoid Silu SoftShrink Softmax Softplus Softsign Sqrt Square "
    "Squareplus StopGradient Tanh TanhShrink"
)
_ADD = frozenset({"Add", "Average", "Maximum", "Minimum", "Multiply", "Subtract"})
_ADD_OPS = frozenset(
    {"Add", "Divide", "Maximum", "Minimum", "Multiply", "Power", "Subtract", "TrueDivide", "Where"}
)  # fmt: skip
_POOLS = ("Max", "Average", "GlobalMax", "GlobalAverage", "AdaptiveMax", "AdaptiveAverage")


class CallTensor(NamedTuple):
    """What a call reads: the operation that made it, and its shape."""

    operation: int
    shape: Shape | None


class LayerEffect(NamedTuple):
    """What a layer does."""

    kind: OperationKind
    groups: int = 1


class ModelOperations:
    """Grows as the model is walked. `channels_first`: where the model's maps have their channels."""

    def __init__(self, model: Node) -> None:
        self.channels_first = _mentions_channels_first(model.value)
        self._operations = Operations()

    def axis(self, shape: Shape | None) -> int:
        """The axis of a map's channels."""
        return 1 if self.channels_first or shape is None else len(shape) - 1

    def input(self, name: str, shape: Shape | None) -> int:
        """An input of the network."""
        return self._operations.add("input", name, (), shape, self.axis(shape))

    def opaque(self, name: str, where: str, inputs: Sequence[int], shape: Shape | None = None) -> int:
        """What may do anything."""
        return self._operations.opaque(name, where, inputs, shape, self.axis(shape))

    def convolution(self, call: int, name: str, config: Node, source: int) -> int:
        """A convolution, the call of that number."""
        if _is_first(config) != self.channels_first:
            self._operations.set_apart(call, f"{name}, which takes another axis for channels,")
        return self._operations.convolution(call, source)

    def activation(self, name: str, source: int, shape: Shape | None) -> int:
        """The activation within a convolution layer."""
        return self._operations.add("identity", f"{name}/activation", (source,), shape, self.axis(shape))

    def other(self, kind: str, layer: Node, name: str, given: Sequence[CallTensor], shape: Shape | None) -> int:
        """A call of a layer of class `kind` that is no convolution and makes a tensor of that shape."""
        inputs = [each.operation for each in given]
        step = self._step(kind, layer, given, shape) if given else None
        if step is None:
            return self.opaque(name, f"{kind} {name}", inputs, shape)
        return self._operations.add(step.kind, name, inputs, shape, self.axis(shape), groups=step.groups)

    def _step(self, kind: str, layer: Node, given: Sequence[CallTensor], after: Shape | None) -> LayerEffect | None:
        module, config = layer.get("module"), layer.at("config")
        where = "keras" if module is None else module.text()
        if not where.startswith("keras"):
            return None
        ops = where.startswith(_OPS)
        before = given[0].shape
        if kind in (_ADD_OPS if ops else _ADD):
            ranks = {None if each.shape is None else len(each.shape) for each in given}
            if None in ranks or len(ranks) > 1:
                return None
            return LayerEffect(
                "add" if len(given) > 1 else "identity"
            )  # the rest is numbers, which follow from the code
        if kind == "Concatenate":
            known = before is not None and len(given) > 1
            return LayerEffect("concat") if known and _along(config, before) == [self.axis(before)] else None
        rule = (_RULES_OF_OPS if ops else _RULES).get(kind)
        return None if rule is None or len(given) > 1 else rule(self, config, before, after)

    def finished(
        self, outputs: Sequence[int], layers: Sequence[ConvLayer], calls: Sequence[str], layer_of: Sequence[int]
    ) -> tuple[Operation, ...]:
        """All operations of the model, which hands these out; each call of a convolution has a name and a layer."""
        for number in outputs:
            self._operations.hand_out(number)
        of_name: dict[str, list[int]] = {}
        for call, name in enumerate(calls):
            of_name.setdefault(name, []).append(call)
        for same in of_name.values():
            self._operations.share(same)
        return self._operations.finished(layers, layer_of)


Rule = Callable[[ModelOperations, Node, Shape | None, Shape | None], LayerEffect | None]


def _is_first(config: Node) -> bool:
    given = config.get("data_format")
    return given is not None and given.value == _FIRST


def _mentions_channels_first(value: Any) -> bool:
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict):
            if inner.get("data_format") == _FIRST:
                return True
            waiting += inner.values()
        elif isinstance(inner, list):
            waiting += inner
    return False


def _along(config: Node, shape: Shape | None) -> list[int] | None:
    """The axes that a layer works along, counted from the front; by default the last one. None where nobody knows."""
    given = config.get("axis")
    value = -1 if given is None else given.value
    axes = value if isinstance(value, list) else [value]
    if shape is None or len(axes) > MOST_AXES or not all(type(axis) is int for axis in axes):
        return None
    return sorted(axis + len(shape) if axis < 0 else axis for axis in axes)


def _spatial(steps: ModelOperations, config: Node, _: Shape | None, __: Shape | None) -> LayerEffect | None:
    return LayerEffect("resize") if _is_first(config) == steps.channels_first else None


def _group_norm(steps: ModelOperations, config: Node, before: Shape | None, _: Shape | None) -> LayerEffect | None:
    given = config.get("groups")
    groups = 32 if given is None else given.value
    if before is None or _along(config, before) != [steps.axis(before)]:
        return None
    return LayerEffect("identity", groups) if type(groups) is int and groups > 0 else None


def _reshape(steps: ModelOperations, _: Node, before: Shape | None, after: Shape | None) -> LayerEffect | None:
    if before is None or after is None or len(after) < 3:
        return None
    return LayerEffect("identity") if one_element(before, after, steps.axis(before)) == steps.axis(after) else None


def _reduction(steps: ModelOperations, config: Node, before: Shape | None, _: Shape | None) -> LayerEffect | None:
    if before is None or config.get("axis") is None:
        return None
    space = [axis for axis in range(1, len(before)) if axis != steps.axis(before)]
    return LayerEffect("resize") if _along(config, before) == space else None


_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(_SAME.split(), lambda *_: LayerEffect("identity")),
    **dict.fromkeys(NORMS, lambda *_: LayerEffect("batchnorm")),
    **{f"{kind}Pooling{n}D": _spatial for kind in _POOLS for n in (1, 2, 3)},
    **{f"{kind}{n}D": _spatial for kind in ("UpSampling", "ZeroPadding", "Cropping") for n in (1, 2, 3)},
    **dict.fromkeys(("Resizing", "CenterCrop", "RandomCrop"), _spatial),
    "GroupNormalization": _group_norm,
    "Reshape": _reshape,
}
_RULES_OF_OPS: Mapping[str, Rule] = {
    **dict.fromkeys(_SAME_OPS.split(), lambda *_: LayerEffect("identity")),
    **dict.fromkeys(("Max", "Mean", "Min", "Sum"), _reduction),
}
