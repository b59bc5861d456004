"""The reader of Keras archives (.keras): walks the model's configuration, of which no code runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TypeAlias

from msgspec.structs import replace

from convlint.model.errors import InputFault
from convlint.model.grouping import grouped
from convlint.model.network import Network
from convlint.model.report import InputError
from convlint.readers import Outcome, Reader, ReadOptions
from convlint.readers.bounded_json import (
    MOST_BYTES,
    MOST_READS,
    MOST_SIZE,
    MOST_TEXT,
    Node,
    capped,
    parse,
    refuse_layers,
)
from convlint.readers.bounded_zip import open_zip, read_member
from convlint.readers.inputs import by_name, how_to_set, parse_shape
from convlint.readers.keras.layer import NORMS, ConvCall, build, is_convolution, is_frozen, without_copies
from convlint.readers.keras.operations import LayerTensor, ModelOperations
from convlint.readers.keras.shapes import Reference, channels_first, output_shape, references, text, unify
from convlint.readers.operations import ConvFlow, Effect, Shape, ValueOrigin

_KERAS = ("keras", "tf_keras")  # whose classes are no user's
_LEARNED = frozenset(
    {"Dense", "EinsumDense", "Embedding", "LSTM", "GRU", "SimpleRNN", "MultiHeadAttention", "Bidirectional"}
)
MOST_CALLS = 50_000  # of layers; a model that is called twice calls its layers twice
_DEEPEST = 50  # models inside each other

Call: TypeAlias = tuple[str, int]  # a layer's name, and which of its calls


class ModelWalk:
    """Collects the convolutions and all other operations of a model, in the order in which they are called."""

    def __init__(self, path: str, model: Node) -> None:
        self._path, self._model = path, model
        self._flow = ConvFlow()
        self._steps = ModelOperations(model)
        self._conv_calls: list[ConvCall] = []
        self._messages: dict[str, None] = {}
        self._batches: dict[int, int | None] = {}  # that of an operation which keeps it and is else of unknown shape
        self.unknown = ""  # the first layer whose output has an unknown shape
        self._calls = self._listed = self._reads = 0

    def network(self, inputs: Mapping[str, Shape | None]) -> tuple[Network, list[str]]:
        """The network of the model with these inputs, and what could not be understood. Raises InputFault."""
        given = [
            LayerTensor(shape, ValueOrigin(), self._steps.add(Effect("input"), name, (), shape))
            for name, shape in inputs.items()
        ]
        for value in self._walk(self._model, given):
            self._steps.hand_out(value.operation)
        layers, edges, layer_of = without_copies(self._conv_calls)
        refuse_layers(len(layers))
        calls_of_name = grouped((layer.name, call) for call, (layer, _, _) in enumerate(self._conv_calls))
        for same in calls_of_name.values():  # one layer, called several times: a name is given once in a model
            self._steps.share(same)
        operations = self._steps.finished(layers, layer_of)
        whole = bool(operations) and self._steps.whole and not self._messages
        network = Network(
            path=self._path, layers=layers, edges=edges, operations=operations, whole=whole, notes=self._steps.notes
        )
        return network.with_frozen_layers(), list(self._messages)

    def _walk(self, model: Node, inputs: list[LayerTensor], prefix: str = "", depth: int = 0) -> list[LayerTensor]:
        """The outputs of a model, or of one inside it, that is called with `inputs`. Raises InputFault."""
        if depth > _DEEPEST:
            raise InputFault(f"models are nested deeper than {_DEEPEST} levels")
        config = model.at("config")
        layers = config.at("layers").elements()
        self._listed += len(layers)  # counted apart from calls: an InputLayer is not called, but takes time
        if self._listed > 2 * MOST_CALLS + 1:
            raise self._too_many_calls()
        if any(layer.get("inbound_nodes") is not None and layer.value["inbound_nodes"] for layer in layers):
            return self._functional(config, layers, inputs, prefix, depth)
        value = inputs[0]  # a Sequential
        for layer in layers:
            if layer.at("class_name").text() != "InputLayer":
                value = self._layer(layer, [value], prefix, depth)[0]
        return [value]

    def _functional(
        self, config: Node, listed: list[Node], inputs: list[LayerTensor], prefix: str, depth: int
    ) -> list[LayerTensor]:
        """The outputs of a functional model, whose calls are made as soon as all that they read is there."""
        layers = _by_name(listed)
        values: dict[Reference, LayerTensor] = {}
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
        outputs = self._read(config.get("output_layers"))
        return [values[reference] for reference, _ in outputs if reference in values]

    def _read(self, node: Node | None) -> list[tuple[Reference, Shape | None]]:
        """The tensors that a call reads; counted again for each call of the model around it. Raises InputFault."""
        tensors, visited = references(node)
        self._reads += visited + 1
        if self._reads > MOST_READS:
            raise InputFault(f"the model's calls read more than {MOST_READS:,} tensors, the limit for one input")
        return tensors

    def _argument(
        self, values: dict[Reference, LayerTensor], reference: Reference, shape: Shape | None, prefix: str
    ) -> LayerTensor:
        value = values.get(reference) or values.get((*reference[:2], 0))
        if value is None:
            raise InputFault(f"layer {prefix + reference[0]!r} has no output {reference[2]}")
        try:
            return LayerTensor(self._known(value, shape), value.origin, value.operation)
        except ValueError as error:
            name = prefix + reference[0]
            self._messages.setdefault(f"the shapes disagree after layer {name!r}: {error}")
            return LayerTensor(None, value.origin, self._steps.opaque(name, f"layer {name}", [value.operation]))

    def _known(self, value: LayerTensor, noted: Shape | None) -> Shape | None:
        """The shape of a tensor, for which Keras noted one without a batch. Raises ValueError where they differ."""
        batch = self._batches.get(value.operation)
        if value.shape is None and noted and noted[0] is None:
            noted = (batch, *noted[1:])
        return unify(value.shape, noted)

    def _layer(self, layer: Node, given: list[LayerTensor], prefix: str, depth: int) -> list[LayerTensor]:
        """The outputs of one call of one layer. Raises InputFault."""
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
        if inside is not None and inside.is_list and given:  # a model as a layer
            origins = self._flow.read([value.origin for value in given], kind)
            inner = [value._replace(origin=origin) for value, origin in zip(given, origins, strict=True)]
            return self._walk(layer, inner, f"{name}/", depth + 1) or [self._unknown(kind, name, given)]
        wrapped = config.get("layer") if given else None
        if wrapped is not None and kind == "TimeDistributed":
            return self._each_step(wrapped, given[0], f"{name}/", depth)
        if wrapped is not None and kind == "SpectralNormalization":
            return self._layer(wrapped, given, f"{name}/", depth + 1)
        if kind == "InputLayer":
            return given or [self._unknown(kind, name, given)]
        begin = self._steps.count
        value = self._called(kind, layer, name, given)
        if is_frozen(layer):
            self._steps.freeze(begin)
        return [value]

    def _called(self, kind: str, layer: Node, name: str, given: list[LayerTensor]) -> LayerTensor:
        """The output of a layer that is no model."""
        if is_convolution(kind) and given:
            return self._convolution(kind, layer, name, given[0])
        wrapped = layer.at("config").get("layer")
        # A class of one's own may have a setting of that name, which is no layer.
        inner = wrapped.get("class_name") if wrapped is not None and wrapped.is_object else None
        what = kind if inner is None else f"{kind} of {inner.text()}"
        if "Conv" in what:
            self._messages.setdefault(f"layer {name!r}: {what} is a convolution that convlint does not know")
        elif not _is_of_keras(layer):
            self._messages.setdefault(f"layer {name!r}: {kind} is a class of its own; convolutions inside are not seen")
        return self._other(kind, layer, name, given)

    def _unknown(self, kind: str, name: str, given: list[LayerTensor]) -> LayerTensor:
        return LayerTensor(
            None, ValueOrigin(), self._steps.opaque(name, f"{kind} {name}", [value.operation for value in given])
        )

    def _other(self, kind: str, layer: Node, name: str, given: list[LayerTensor]) -> LayerTensor:
        shapes = [value.shape for value in given if value.shape is not None]
        is_known = len(shapes) == len(given) and _is_of_keras(layer)  # not a class of the same name
        shape = output_shape(kind, layer.at("config"), shapes) if is_known else None
        if shape is None and len(shapes) == len(given):
            self.unknown = self.unknown or f"what layer {name!r}, {kind}, makes"
        if shape is None and given and _is_of_keras(layer):  # whose layers and functions leave the batch where it is
            first = given[0]
            batch = self._batches.get(first.operation) if first.shape is None else (*first.shape[:1], None)[0]
            self._batches[self._steps.count] = batch
        # One that is not trainable normalises by stored statistics, which cancel no bias.
        seen = f"frozen {kind}" if kind in NORMS and is_frozen(layer) else kind
        origin = self._flow.operation([value.origin for value in given], seen, learned=kind in _LEARNED)
        return LayerTensor(shape, origin, self._steps.other(kind, layer, name, given, shape))

    def _each_step(self, layer: Node, value: LayerTensor, prefix: str, depth: int) -> list[LayerTensor]:
        """The output of a TimeDistributed layer, whose inner layer runs on batch times steps images."""
        shape = value.shape
        if shape is not None and len(shape) < 3:
            raise layer.fault(f"runs on each step of an input that has {len(shape)} axes")
        batch, steps = (None, None) if shape is None else shape[:2]
        folded = None if batch is None or steps is None else batch * steps
        if folded is not None and folded > MOST_SIZE:
            raise layer.fault(f"runs on {batch} times {steps} inputs, more than 2^31 - 1")
        images = None if shape is None else (folded, *shape[2:])
        inside = LayerTensor(images, value.origin, self._between_steps(prefix, value.operation))
        (result,) = self._layer(layer, [inside], prefix, depth + 1)[:1]
        after = None if result.shape is None or shape is None else (batch, steps, *result.shape[1:])
        return [LayerTensor(after, result.origin, self._between_steps(prefix, result.operation))]

    def _between_steps(self, prefix: str, operation: int) -> int:
        """The operation behind the folding of steps: an opaque one, as that moves channels, unless they are last."""
        if not self._steps.channels_first:
            return operation
        name = prefix.removesuffix("/")
        return self._steps.opaque(name, f"TimeDistributed {name}", [operation])

    def _convolution(self, kind: str, layer: Node, name: str, value: LayerTensor) -> LayerTensor:
        config = layer.at("config")
        built = layer.get("build_config")
        noted = built.get("input_shape") if built is not None and built.is_object else None
        shape = value.shape
        if noted is not None and noted.is_list and None in (shape or (None,)):
            try:
                shape = self._known(value, noted.shape())
            except ValueError:  # built for another call of the same layer
                shape = value.shape
        parts, out = build(kind, config, name, self._path, shape)
        for part in parts:
            index, origin = self._flow.convolution(value.origin, kind)
            self._conv_calls.append((part, value.origin, self._flow.written[index]))
            if channels_first(config) != self._steps.channels_first:
                self._steps.set_apart(index, f"{name}, which takes another axis for channels,")
            value = LayerTensor(out, origin, self._steps.convolution(index, value.operation))
        activation = config.get("activation")
        if activation is not None and activation.value != "linear":
            (origin,) = self._flow.read((value.origin,), "Activation")
            value = LayerTensor(out, origin, self._steps.activation(f"{name}/activation", value.operation, out))
        return value

    @staticmethod
    def _too_many_calls() -> InputFault:
        return InputFault(f"the model calls layers more than {MOST_CALLS:,} times, the limit for one input")


def _is_of_keras(layer: Node) -> bool:
    """Whether a layer's class is one of Keras's own."""
    module = layer.get("module")
    return layer.get("registered_name") is None if module is None else module.text().split(".")[0] in _KERAS


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


def read(path: str, options: ReadOptions) -> Outcome:
    """The convolutions of a Keras model, in call order."""
    try:
        with open_zip(path, ".keras") as archive:
            model = parse(read_member(archive, "config.json", MOST_BYTES), "config.json")
        network, messages = _read(model, path, options)
    except InputFault as fault:
        return None, (InputError(path=path, message=fault.message),)
    return network, tuple(InputError(path=path, message=message) for message in capped(messages))


def _read(model: Node, path: str, options: ReadOptions) -> tuple[Network, list[str]]:
    config = model.get("config") if model.is_object else None
    if config is None or not config.is_object or config.get("layers") is None:
        kind = model.get("class_name") if model.is_object else None
        raise InputFault(
            f"config.json lists no layers: {kind.text() if kind is not None else 'it'} is a model class of its own, "
            "whose layers only its code knows; export it to ONNX and check that file"
        )
    inputs = _inputs(model)
    shapes = _given_shapes(inputs, options)
    # The layout stays "auto" whatever data_format says: TensorFlow and XLA choose it themselves, and the file does not
    # state what will run it.
    walk = ModelWalk(path, model)
    network, messages = walk.network({name: shapes[name] for name in inputs})
    if not messages and any(
        None in (layer.N, layer.C, layer.D, layer.H, layer.W, layer.P, layer.Q) for layer in network.layers
    ):
        name = next((name for name, shape in shapes.items() if shape is None or None in shape), None)
        if name is None:
            before = walk.unknown or "a layer before them"
            messages.append(f"some convolutions have unknown sizes: {before} is not known")
        else:
            how = how_to_set(name, shapes[name] or ())
            messages.append(f"input {name!r} is {text(shapes[name])}; {how}")
    return replace(network, notes=()) if messages else network, messages  # which say what is unknown


def _inputs(model: Node) -> dict[str, Shape | None]:
    """The model's inputs and the shapes they declare."""
    config = model.at("config")
    shapes: dict[str, Shape | None] = {}
    for layer in config.at("layers").elements():
        if layer.at("class_name").text() == "InputLayer":
            inner = layer.at("config")
            declared = inner.get("batch_shape") or inner.get("batch_input_shape")
            shapes[inner.at("name").text()] = _shape(declared)
    order = [name for (name, _, _), _ in references(config.get("input_layers"))[0]]
    if order and all(name in shapes for name in order):
        return {name: shapes[name] for name in order}
    if not shapes:
        built = model.get("build_config")
        declared = built.get("input_shape") if built is not None else None
        shapes["input"] = _shape(declared or config.get("build_input_shape"))
    return shapes


def _shape(declared: Node | None) -> Shape | None:
    if declared is None or not declared.is_list or not declared.value or isinstance(declared.value[0], (list, dict)):
        return None  # not given, or several tensors in one
    return declared.shape()


def _given_shapes(inputs: dict[str, Shape | None], options: ReadOptions) -> dict[str, Shape | None]:
    """The inputs' shapes, completed by `--batch` and `--input`. Raises InputFault where these contradict the file."""
    shapes = dict(inputs)
    texts = by_name(options.inputs, list(inputs), "the model")
    for name, declared in inputs.items():
        if name in texts:
            shape: Shape = parse_shape(texts[name], options.batch).sizes
        elif options.batch is not None and declared is not None:
            shape = (options.batch, *declared[1:])
        else:
            continue
        if declared is not None and (
            len(declared) != len(shape) or any(a not in (None, b) for a, b in zip(declared, shape, strict=True))
        ):
            raise InputFault(f"input {name!r} is {text(declared)} in the file and cannot be {text(shape)}")
        shapes[name] = shape
    return shapes


READER = Reader(read=read)
