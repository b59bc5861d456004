"""Reading .keras archives: config.json tells layers and shapes; neither Keras nor the weights are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from convlint.errors import InputFault
from convlint.model import Network
from convlint.readers.bounded_json import MOST_BYTES, entry, parse
from convlint.readers.bounded_zip import open_zip, read_member
from convlint.readers.input_shapes import by_name, parse_shape
from convlint.readers.keras_graph import Value, Walk
from convlint.readers.keras_shapes import Shape, text
from convlint.report import InputError

if TYPE_CHECKING:
    from convlint.readers import ReadOptions


def read(path: str, options: ReadOptions) -> tuple[Network | None, tuple[InputError, ...]]:
    """The convolutions of a Keras model, in call order."""
    try:
        with open_zip(path, ".keras") as archive:
            model = parse(read_member(archive, "config.json", MOST_BYTES), "config.json")
        network, messages = _read(model, path, options)
    except InputFault as fault:
        return None, (InputError(path=path, message=fault.message),)
    except (TypeError, KeyError, AttributeError, IndexError, ValueError, RecursionError):
        return None, (InputError(path=path, message="config.json holds no Keras model that convlint understands"),)
    return network, tuple(InputError(path=path, message=message) for message in messages)


def _read(model: Any, path: str, options: ReadOptions) -> tuple[Network, list[str]]:
    if not isinstance(entry(model, "config", "layers"), list):
        kind = entry(model, "class_name")
        raise InputFault(
            f"config.json lists no layers: {kind if isinstance(kind, str) else 'it'} is a model class of its own, "
            "whose layers only its code knows; export it to ONNX and check that file"
        )
    inputs = _inputs(model)
    given = _given_shapes(inputs, options)
    walk = Walk(path)
    walk.model(model, [Value.of_input(given[name]) for name in inputs])
    layers, edges, messages = walk.result()
    if not messages and any(
        None in (layer.N, layer.C, layer.D, layer.H, layer.W, layer.P, layer.Q) for layer in layers
    ):
        name = next((name for name, shape in given.items() if shape is None or None in shape), None)
        if name is None:
            messages.append("some convolutions have unknown sizes: a layer before them is not known")
        else:
            messages.append(
                f"input {name!r} is {text(given[name])}; set it with --batch N or --input {name}=8x224x224x3"
            )
    # TensorFlow and XLA choose the layout themselves and the file does not say what will run it, so the layout
    # stays "auto" whatever data_format says
    return Network(path=path, layers=layers, edges=edges), messages


def _inputs(model: Any) -> dict[str, Shape | None]:
    """The model's inputs and the shapes they declare."""
    config = model["config"]
    shapes: dict[str, Shape | None] = {}
    for layer in config["layers"]:
        if layer["class_name"] == "InputLayer":
            declared = layer["config"].get("batch_shape") or layer["config"].get("batch_input_shape")
            shapes[layer["config"]["name"]] = _shape(declared)
    order = config.get("input_layers")
    if isinstance(order, list) and order:
        flat = [order] if isinstance(order[0], str) else [name for name in order if isinstance(name, list)]
        if isinstance(order[0], str) or all(name[0] in shapes for name in flat):
            return {name[0]: shapes[name[0]] for name in flat}
    if not shapes:
        declared = entry(model, "build_config", "input_shape") or config.get("build_input_shape")
        shapes["input"] = _shape(declared)
    return shapes


def _shape(declared: Any) -> Shape | None:
    if not isinstance(declared, list) or not declared:
        return None
    if not all(size is None or (type(size) is int and 0 < size < 2**31) for size in declared):
        raise InputFault(f"the input's shape is {declared!r}"[:200])
    return tuple(declared)


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
