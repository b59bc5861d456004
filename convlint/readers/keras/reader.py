"""Reading .keras archives: config.json tells layers and shapes; neither Keras nor the weights are needed."""

from __future__ import annotations

from convlint.errors import InputFault
from convlint.model.network import Network
from convlint.readers import Reader, ReadOptions
from convlint.readers.input_shapes import by_name, parse_shape
from convlint.readers.keras.graph import Walk
from convlint.readers.keras.references import references
from convlint.readers.keras.shapes import Shape, text
from convlint.readers.untrusted.bounded_json import MOST_BYTES, parse
from convlint.readers.untrusted.bounded_zip import open_zip, read_member
from convlint.readers.untrusted.json_tree import Node
from convlint.readers.untrusted.limits import capped
from convlint.report import InputError


def read(path: str, options: ReadOptions) -> tuple[Network | None, tuple[InputError, ...]]:
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
    given = _given_shapes(inputs, options)
    # TensorFlow and XLA choose the layout themselves and the file does not say what will run it, so the layout
    # stays "auto" whatever data_format says
    network, messages = Walk(path, model).network({name: given[name] for name in inputs})
    if not messages and any(
        None in (layer.N, layer.C, layer.D, layer.H, layer.W, layer.P, layer.Q) for layer in network.layers
    ):
        name = next((name for name, shape in given.items() if shape is None or None in shape), None)
        if name is None:
            messages.append("some convolutions have unknown sizes: a layer before them is not known")
        else:
            messages.append(
                f"input {name!r} is {text(given[name])}; set it with --batch N or --input {name}=8x224x224x3"
            )
    return network, messages


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
    """The inputs' shapes with what `--batch` and `--input` say. Raises InputFault where that contradicts the file."""
    shapes = dict(inputs)
    named = by_name(options.inputs, list(inputs))
    for name in named:
        if name not in inputs:
            raise InputFault(f"the model has no input {name!r}; it has {', '.join(map(repr, list(inputs)[:8]))}")
    for name, declared in inputs.items():
        if name in named:
            wanted: Shape = parse_shape(named[name], options.batch).sizes
        elif options.batch is not None and declared is not None:
            wanted = (options.batch, *declared[1:])
        else:
            continue
        if declared is not None and (
            len(declared) != len(wanted)
            or any(a not in (None, b) for a, b in zip(declared, wanted, strict=True))
        ):  # fmt: skip
            raise InputFault(f"input {name!r} is {text(declared)} in the file and cannot be {text(wanted)}")
        shapes[name] = wanted
    return shapes


READER = Reader(read=read)
