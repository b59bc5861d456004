"""Layers of a framework that are no convolutions: what they are made with, and what they do to a tensor."""

from __future__ import annotations

from msgspec import Struct

from convlint.readers.python.evaluator.values import Const, Tensor, Value
from convlint.readers.python.nn import keras, operations, reshaping
from convlint.readers.python.nn.arguments import Arguments
from convlint.readers.python.nn.flow import Flow
from convlint.readers.python.nn.kinds import Kind
from convlint.readers.python.nn.operations import Conditions, Operation


class Layer(Struct, frozen=True, eq=False):
    """What an instance of a framework's class is, and what it was constructed with."""

    kind: Kind
    name: str  # in full
    arguments: Arguments = Arguments((), {})

    def either(self, other: object) -> Layer | None:
        """What it is where nobody knows which of the two; None where they are not of one kind."""
        alike = isinstance(other, Layer) and other.kind == self.kind and self.kind in ("norm", "pointwise")
        return Layer(self.kind, self.name) if alike else None


_APPLIED: dict[Kind, Operation] = {
    "pointwise": operations.pointwise,
    "other norm": operations.pointwise,
    "norm": operations.normalized,
    "pool": operations.pooled,
    "adaptive pool": operations.adaptively_pooled,
    "upsample": operations.resized,
    "pixel shuffle": reshaping.shuffled,
    "pixel unshuffle": reshaping.unshuffled,
    "pad": reshaping.padded,
}
_TAKES_ARGUMENTS = frozenset(
    ("pool", "adaptive pool", "upsample", "pixel shuffle", "pixel unshuffle", "pad")
)  # of those that a tensor is told as well
_ATTRIBUTES = {
    "num_features": 0, "in_features": 0, "out_features": 1, "num_groups": 0, "normalized_shape": 0, "num_channels": 1,
    "kernel_size": 0, "p": 0, "num_embeddings": 0, "embedding_dim": 1, "output_size": 0,
}  # fmt: skip


def applied(layer: Layer, given: Arguments, conditions: Conditions) -> Value:
    """What the layer writes."""
    first = given.args[0] if given.args else next(iter(given.keywords.values()), None)
    if layer.kind == "identity":
        return first if isinstance(first, Tensor) else Tensor(Flow())
    if layer.kind == "flatten":
        own = layer.arguments
        start, stop = own.get(0, "start_dim", "start_axis"), own.get(1, "end_dim", "stop_axis")
        return reshaping.flattened(
            Arguments([first or Tensor(Flow()), start or Const(1), stop or Const(-1)], {}), conditions
        )
    if layer.kind == "keras":
        return keras.applied(layer.name, layer.arguments, given, conditions)
    operation = _APPLIED.get(layer.kind)
    if operation is None:
        return operations.opaque(given, conditions)
    tensor = first if isinstance(first, Tensor) else Tensor(Flow())
    if layer.kind in _TAKES_ARGUMENTS:
        return operation(Arguments([tensor, *layer.arguments.args], layer.arguments.keywords), conditions)
    return keras.with_last(given, operation(Arguments([tensor], {}), conditions))


def attribute(layer: Layer, name: str) -> Value | None:
    """What an attribute of it is, where that is an argument."""
    if name in _ATTRIBUTES:
        return layer.arguments.get(_ATTRIBUTES[name], name)
    if name == "bias" and layer.kind in ("opaque", "norm", "other norm"):
        return Tensor(Flow())
    if name in ("weight", "running_mean", "running_var"):
        return Tensor(Flow((layer.arguments.args[0],) if layer.arguments.args else None))
    return None
