"""Walking a Keras model's configuration in call order: sequential, functional, nested and shared layers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from convlint.errors import InputFault
from convlint.model import ConvLayer, Edge
from convlint.readers.bounded_json import entry
from convlint.readers.dataflow import Flow, Origin, Written, is_first
from convlint.readers.keras_layer import NORMS, build, is_convolution
from convlint.readers.keras_shapes import Shape, output_shape, unify

_LEARNED = frozenset(
    {"Dense", "EinsumDense", "Embedding", "LSTM", "GRU", "SimpleRNN", "MultiHeadAttention", "Bidirectional"}
)
_MOST_CALLS = 100_000
_DEEPEST = 50

Reference = tuple[str, int, int]  # layer, which of its calls, which of its outputs


class Value:
    """A tensor between layers: its shape and where it comes from."""

    __slots__ = ("origin", "shape")

    def __init__(self, shape: Shape | None, origin: Origin) -> None:
        self.shape, self.origin = shape, origin

    @classmethod
    def of_input(cls, shape: Shape | None) -> Value:
        """An input of the network."""
        return cls(shape, Origin())


class Walk:
    """Collects the convolutions of a model, in call order."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._flow = Flow()
        self._found: list[tuple[ConvLayer, Value, Written]] = []
        self._messages: dict[str, None] = {}
        self._calls = 0

    def model(self, model: Any, inputs: list[Value], prefix: str = "", depth: int = 0) -> list[Value]:
        """Walks a model that is called with `inputs`; its outputs. Raises InputFault."""
        if depth > _DEEPEST:
            raise InputFault(f"models are nested deeper than {_DEEPEST} levels")
        config = model["config"]
        if any(layer.get("inbound_nodes") for layer in config["layers"]):
            return self._functional(config, inputs, prefix, depth)
        value = inputs[0]
        for layer in config["layers"]:
            if layer["class_name"] != "InputLayer":
                value = self._layer(layer, [value], prefix, depth)[0]
        return [value]

    def _functional(self, config: Any, inputs: list[Value], prefix: str, depth: int) -> list[Value]:
        layers = {layer.get("name") or layer["config"]["name"]: layer for layer in config["layers"]}
        values: dict[Reference, Value] = {}
        wanted = list(_references(config.get("input_layers")))
        names = [reference[0] for reference, _ in wanted] or [
            name for name, layer in layers.items() if layer["class_name"] == "InputLayer"
        ]
        for name, value in zip(names, inputs, strict=False):
            values[(name, 0, 0)] = value
        waiting: dict[tuple[str, int], int] = {}
        readers: dict[tuple[str, int], list[tuple[str, int]]] = {}
        arguments: dict[tuple[str, int], list[tuple[Reference, Shape | None]]] = {}
        ready: deque[tuple[str, int]] = deque()
        for name, layer in layers.items():
            for index, node in enumerate(layer.get("inbound_nodes") or []):
                call = (name, index)
                arguments[call] = list(_references(node))
                before = {(reference[0], reference[1]) for reference, _ in arguments[call]}
                before = {source for source in before if (*source, 0) not in values}
                waiting[call] = len(before)
                for source in before:
                    readers.setdefault(source, []).append(call)
                if not before and (name, index, 0) not in values:
                    ready.append(call)
        while ready:
            call = ready.popleft()
            given = [self._argument(values, reference, shape, prefix) for reference, shape in arguments[call]]
            for position, value in enumerate(self._layer(layers[call[0]], given, prefix, depth)):
                values[(*call, position)] = value
            for reader in readers.get(call, ()):
                waiting[reader] -= 1
                if not waiting[reader]:
                    ready.append(reader)
        stuck = [name for (name, _), count in waiting.items() if count]
        if stuck:
            raise InputFault(f"the graph is cyclic or incomplete: layer {prefix + stuck[0]!r} waits for its input")
        return [values[reference] for reference, _ in _references(config.get("output_layers")) if reference in values]

    def _argument(
        self, values: dict[Reference, Value], reference: Reference, shape: Shape | None, prefix: str
    ) -> Value:
        value = values.get(reference) or values.get((*reference[:2], 0))
        if value is None:
            raise InputFault(f"layer {prefix + reference[0]!r} has no output {reference[2]}")
        try:
            return Value(unify(value.shape, shape), value.origin)
        except ValueError as error:
            self._messages.setdefault(f"the shapes disagree after layer {prefix + reference[0]!r}: {error}")
            return Value(None, value.origin)

    def _layer(self, layer: Any, given: list[Value], prefix: str, depth: int) -> list[Value]:
        """One call of one layer."""
        self._calls += 1
        if self._calls > _MOST_CALLS:
            raise InputFault(f"the model calls layers more than {_MOST_CALLS:,} times")
        kind, config = layer["class_name"], layer["config"]
        name = prefix + str(layer.get("name") or config.get("name") or kind)
        if isinstance(entry(config, "layers"), list) and given:
            for value in given:
                _read_by(value.origin, kind)
            inner = [Value(value.shape, value.origin.past) for value in given]
            return self.model(layer, inner, f"{name}/", depth + 1) or [Value(None, Origin())]
        if kind == "TimeDistributed" and given and given[0].shape is not None and isinstance(config.get("layer"), dict):
            return self._each_step(config["layer"], given[0], f"{name}/", depth)
        if is_convolution(kind) and given:
            return [self._convolution(kind, layer, name, given[0])]
        if kind == "InputLayer":
            return given or [Value(None, Origin())]
        if "Conv" in kind:
            self._messages.setdefault(f"layer {name!r}: {kind} is a convolution that convlint does not know")
        elif not str(layer.get("module") or "keras").startswith("keras"):
            self._messages.setdefault(f"layer {name!r}: {kind} is a class of its own; convolutions inside are not seen")
        return [self._other(kind, config, given)]

    def _other(self, kind: str, config: Any, given: list[Value]) -> Value:
        learned = kind in _LEARNED
        for value in given:
            _read_by(value.origin, kind)
            if learned:
                self._flow.consume(value.origin)
        shapes = [value.shape for value in given]
        shape = None if None in shapes else output_shape(kind, config, [shape for shape in shapes if shape is not None])
        return Value(shape, self._flow.merge([value.origin.past for value in given], learned=learned))

    def _each_step(self, layer: Any, value: Value, prefix: str, depth: int) -> list[Value]:
        """TimeDistributed: the layer runs on batch times steps."""
        assert value.shape is not None
        batch, steps, *rest = value.shape
        folded = None if batch is None or steps is None else batch * steps
        (result,) = self._layer(layer, [Value((folded, *rest), value.origin)], prefix, depth + 1)[:1]
        shape = None if result.shape is None else (batch, steps, *result.shape[1:])
        return [Value(shape, result.origin)]

    def _convolution(self, kind: str, layer: Any, name: str, value: Value) -> Value:
        config = layer["config"]
        built = entry(layer, "build_config", "input_shape")
        shape = value.shape
        usable = isinstance(built, list) and all(size is None or type(size) is int for size in built)
        if usable and None in (shape or (None,)):
            try:
                shape = unify(shape, tuple(built))
            except ValueError:  # built for another call of the same layer
                shape = value.shape
        try:
            parts, out = build(kind, config, name, self._path, shape)
        except (ValueError, KeyError, TypeError) as error:
            raise InputFault(f"layer {name!r}: {kind}: {error}") from None
        for part in parts:
            _read_by(value.origin, kind)
            index, origin = self._flow.convolution(value.origin)
            self._found.append((part, value, self._flow.written[index]))
            value = Value(out, origin)
        if config.get("activation") not in (None, "linear"):
            _read_by(value.origin, "Activation")
            value = Value(out, value.origin.past)
        return value

    def result(self) -> tuple[tuple[ConvLayer, ...], tuple[Edge, ...], list[str]]:
        """The layers, one for all calls of the same sizes; their edges; what could not be understood."""
        groups: dict[ConvLayer, list[int]] = {}
        for position, (layer, _, _) in enumerate(self._found):
            groups.setdefault(layer, []).append(position)
        layer_of = {position: index for index, positions in enumerate(groups.values()) for position in positions}
        layers: list[ConvLayer] = []
        edges: list[Edge] = []
        taken: dict[str, int] = {}
        for index, (layer, positions) in enumerate(groups.items()):
            sources = [self._found[position][1].origin for position in positions]
            written = [self._found[position][2] for position in positions]
            taken[layer.name] = count = taken.get(layer.name, 0) + 1
            layers.append(
                replace(
                    layer, name=layer.name if count == 1 else f"{layer.name}#{count}", calls=len(positions),
                    first=all(map(is_first, sources)), head=all(each.head for each in written),
                    norm_follows=all(len(each.readers) == 1 and each.readers[0] in NORMS for each in written),
                )
            )  # fmt: skip
            before = dict.fromkeys(layer_of[position] for source in sources for position in source.producers)
            before.pop(index, None)
            if before:
                edges.append(
                    Edge(consumer=index, producers=tuple(before), source=list(groups)[next(reversed(before))].name,
                         C=layer.C, H=layer.H, W=layer.W, D=layer.D)
                )  # fmt: skip
        return tuple(layers), tuple(edges), list(self._messages)


def _read_by(origin: Origin, kind: str) -> None:
    if origin.direct is not None:
        origin.direct.readers.append(kind)


def _references(node: Any) -> Iterator[tuple[Reference, Shape | None]]:
    """The tensors that a serialized call reads, with the shapes that Keras noted; both spellings of Keras 2 and 3."""
    if isinstance(node, dict):
        history = entry(node, "config", "keras_history")
        if node.get("class_name") == "__keras_tensor__" and isinstance(history, list) and len(history) == 3:
            shape = entry(node, "config", "shape")
            known = isinstance(shape, list) and all(size is None or type(size) is int for size in shape)
            yield (str(history[0]), int(history[1]), int(history[2])), tuple(shape) if known else None
            return
        for inner in node.values():
            yield from _references(inner)
    elif isinstance(node, list):
        if len(node) in (3, 4) and isinstance(node[0], str) and type(node[1]) is int and type(node[2]) is int:
            yield (node[0], node[1], node[2]), None
            return
        for inner in node:
            yield from _references(inner)
