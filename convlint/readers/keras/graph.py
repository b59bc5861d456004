"""Walking a Keras model's configuration in call order: sequential, functional, nested and shared layers."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TypeAlias

from convlint.errors import InputFault
from convlint.model.network import Network
from convlint.readers.dataflow import Flow, Origin
from convlint.readers.keras.calls import Found, read_by, without_copies
from convlint.readers.keras.layer import build, is_convolution
from convlint.readers.keras.operations import Steps, Tensor
from convlint.readers.keras.references import Reference, references
from convlint.readers.keras.shapes import Shape, output_shape, unify
from convlint.readers.untrusted.json_tree import Node
from convlint.readers.untrusted.limits import MOST_READS, MOST_SIZE, MOST_TEXT, refuse_layers

_LEARNED = frozenset(
    {"Dense", "EinsumDense", "Embedding", "LSTM", "GRU", "SimpleRNN", "MultiHeadAttention", "Bidirectional"}
)
MOST_CALLS = 50_000  # of layers; a model that is called twice calls its layers twice
_DEEPEST = 50

Call: TypeAlias = tuple[str, int]  # layer, which of its calls


class Value:
    """A tensor between layers: its shape, where it comes from, and the operation that makes it."""

    __slots__ = ("operation", "origin", "shape")

    def __init__(self, shape: Shape | None, origin: Origin, operation: int) -> None:
        self.shape, self.origin, self.operation = shape, origin, operation


class Walk:
    """Collects the convolutions of a model, and all other operations, in call order."""

    def __init__(self, path: str, model: Node) -> None:
        self._path, self._model = path, model
        self._flow = Flow()
        self._steps = Steps(model)
        self._found: list[Found] = []
        self._messages: dict[str, None] = {}
        self._calls = self._listed = self._reads = 0

    def network(self, inputs: Mapping[str, Shape | None]) -> tuple[Network, list[str]]:
        """The network of the model with these inputs, and what could not be understood. Raises InputFault."""
        given = [Value(shape, Origin(), self._steps.input(name, shape)) for name, shape in inputs.items()]
        outputs = [value.operation for value in self._walk(self._model, given)]
        layers, edges, layer_of = without_copies(self._found)
        refuse_layers(len(layers))
        operations = self._steps.finished(outputs, layers, [layer.name for layer, _, _ in self._found], layer_of)
        return Network(path=self._path, layers=layers, edges=edges, operations=operations), list(self._messages)

    def _walk(self, model: Node, inputs: list[Value], prefix: str = "", depth: int = 0) -> list[Value]:
        """Walks a model that is called with `inputs`; its outputs."""
        if depth > _DEEPEST:
            raise InputFault(f"models are nested deeper than {_DEEPEST} levels")
        config = model.at("config")
        layers = config.at("layers").elements()
        self._listed += len(layers)  # a model of inputs alone calls nothing, but is looked through at each call
        if self._listed > 2 * MOST_CALLS + 1:
            raise self._too_many_calls()
        if any(layer.get("inbound_nodes") is not None and layer.value["inbound_nodes"] for layer in layers):
            return self._functional(config, layers, inputs, prefix, depth)
        value = inputs[0]
        for layer in layers:
            if layer.at("class_name").text() != "InputLayer":
                value = self._layer(layer, [value], prefix, depth)[0]
        return [value]

    def _functional(
        self, config: Node, listed: list[Node], inputs: list[Value], prefix: str, depth: int
    ) -> list[Value]:
        layers = _by_name(listed)
        values: dict[Reference, Value] = {}
        names = [reference[0] for reference, _ in self._read(config.get("input_layers"))] or [
            name for name, layer in layers.items() if layer.at("class_name").text() == "InputLayer"
        ]
        for name, value in zip(names, inputs, strict=False):
            values[(name, 0, 0)] = value
        waiting: dict[Call, int] = {}
        readers: dict[Call, list[Call]] = {}
        arguments: dict[Call, list[tuple[Reference, Shape | None]]] = {}
        ready: deque[Call] = deque()
        for name, layer in layers.items():
            nodes = layer.get("inbound_nodes")
            for index, node in enumerate([] if nodes is None else nodes.elements(MOST_CALLS)):
                call = (name, index)
                arguments[call] = self._read(node)
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
        stuck = next((name for (name, _), count in waiting.items() if count), None)
        if stuck is not None:
            raise InputFault(f"the graph is cyclic or incomplete: layer {prefix + stuck!r} waits for its input")
        wanted = self._read(config.get("output_layers"))
        return [values[reference] for reference, _ in wanted if reference in values]

    def _read(self, node: Node | None) -> list[tuple[Reference, Shape | None]]:
        """The tensors that a call reads, counted: a model that is called often is read as often."""
        found, visited = references(node)
        self._reads += visited + 1
        if self._reads > MOST_READS:
            raise InputFault(f"the model's calls read more than {MOST_READS:,} tensors, the limit for one input")
        return found

    def _argument(
        self, values: dict[Reference, Value], reference: Reference, shape: Shape | None, prefix: str
    ) -> Value:
        value = values.get(reference) or values.get((*reference[:2], 0))
        if value is None:
            raise InputFault(f"layer {prefix + reference[0]!r} has no output {reference[2]}")
        try:
            return Value(unify(value.shape, shape), value.origin, value.operation)
        except ValueError as error:
            name = prefix + reference[0]
            self._messages.setdefault(f"the shapes disagree after layer {name!r}: {error}")
            return Value(None, value.origin, self._steps.opaque(name, f"layer {name}", [value.operation]))

    def _layer(self, layer: Node, given: list[Value], prefix: str, depth: int) -> list[Value]:
        """One call of one layer."""
        self._calls += 1
        if self._calls > MOST_CALLS:
            raise self._too_many_calls()
        if depth > _DEEPEST:
            raise InputFault(f"models are nested deeper than {_DEEPEST} levels")
        kind, config = layer.at("class_name").text(), layer.at("config")
        name = prefix + (_name(layer) or kind)
        if len(name) > MOST_TEXT:
            raise layer.fault(f"is nested so deep that its name is longer than {MOST_TEXT} characters")
        inside = config.get("layers")
        if inside is not None and inside.is_list and given:
            for value in given:
                read_by(value.origin, kind)
            inner = [Value(value.shape, value.origin.past, value.operation) for value in given]
            return self._walk(layer, inner, f"{name}/", depth + 1) or [self._unknown(kind, name, given)]
        if kind == "TimeDistributed" and given and given[0].shape is not None and config.get("layer") is not None:
            return self._each_step(config.at("layer"), given[0], given[0].shape, f"{name}/", depth)
        if is_convolution(kind) and given:
            return [self._convolution(kind, layer, name, given[0])]
        if kind == "InputLayer":
            return given or [self._unknown(kind, name, given)]
        module = layer.get("module")
        if "Conv" in kind:
            self._messages.setdefault(f"layer {name!r}: {kind} is a convolution that convlint does not know")
        elif module is not None and not module.text().startswith("keras"):
            self._messages.setdefault(f"layer {name!r}: {kind} is a class of its own; convolutions inside are not seen")
        return [self._other(kind, layer, name, given)]

    def _unknown(self, kind: str, name: str, given: list[Value]) -> Value:
        return Value(None, Origin(), self._steps.opaque(name, f"{kind} {name}", [value.operation for value in given]))

    def _other(self, kind: str, layer: Node, name: str, given: list[Value]) -> Value:
        learned = kind in _LEARNED
        for value in given:
            read_by(value.origin, kind)
            if learned:
                self._flow.consume(value.origin)
        shapes = [value.shape for value in given if value.shape is not None]
        shape = output_shape(kind, layer.at("config"), shapes) if len(shapes) == len(given) else None
        operation = self._steps.other(kind, layer, name, [Tensor(each.operation, each.shape) for each in given], shape)
        return Value(shape, self._flow.merge([value.origin.past for value in given], learned=learned), operation)

    def _each_step(self, layer: Node, value: Value, shape: Shape, prefix: str, depth: int) -> list[Value]:
        """TimeDistributed: the layer runs on batch times steps."""
        if len(shape) < 3:
            raise layer.fault(f"runs on each step of an input that has {len(shape)} axes")
        batch, steps, *rest = shape
        folded = None if batch is None or steps is None else batch * steps
        if folded is not None and folded > MOST_SIZE:
            raise layer.fault(f"runs on {batch} times {steps} inputs, more than 2^31 - 1")
        inside = Value((folded, *rest), value.origin, self._between_steps(prefix, value.operation))
        (result,) = self._layer(layer, [inside], prefix, depth + 1)[:1]
        after = None if result.shape is None else (batch, steps, *result.shape[1:])
        return [Value(after, result.origin, self._between_steps(prefix, result.operation))]

    def _between_steps(self, prefix: str, operation: int) -> int:
        """What a layer at each step reads or makes: its channels stay where they are if they are last."""
        name = prefix.removesuffix("/")
        return (
            self._steps.opaque(name, f"TimeDistributed {name}", [operation])
            if self._steps.channels_first
            else operation
        )

    def _convolution(self, kind: str, layer: Node, name: str, value: Value) -> Value:
        config = layer.at("config")
        built = layer.get("build_config")
        noted = built.get("input_shape") if built is not None and built.is_object else None
        shape = value.shape
        if noted is not None and noted.is_list and None in (shape or (None,)):
            try:
                shape = unify(shape, noted.shape())
            except ValueError:  # built for another call of the same layer
                shape = value.shape
        parts, out = build(kind, config, name, self._path, shape)
        for part in parts:
            read_by(value.origin, kind)
            index, origin = self._flow.convolution(value.origin)
            self._found.append((part, value.origin, self._flow.written[index]))
            value = Value(out, origin, self._steps.convolution(index, name, config, value.operation))
        activation = config.get("activation")
        if activation is not None and activation.value != "linear":
            read_by(value.origin, "Activation")
            value = Value(out, value.origin.past, self._steps.activation(name, value.operation, out))
        return value

    @staticmethod
    def _too_many_calls() -> InputFault:
        return InputFault(f"the model calls layers more than {MOST_CALLS:,} times, the limit for one input")


def _name(layer: Node) -> str:
    """The name of a layer; empty where it has none."""
    given = layer.get("name") or layer.at("config").get("name")
    return "" if given is None else given.text()


def _by_name(listed: list[Node]) -> dict[str, Node]:
    layers: dict[str, Node] = {}
    for layer in listed:
        name = _name(layer)
        if not name or name in layers:
            raise layer.fault(f"has the name {name!r} of another layer" if name else "has no name")
        layers[name] = layer
    return layers
