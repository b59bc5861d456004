"""Reading ONNX models: the graph's convolutions with the shapes that onnx infers; nothing is run, no weight loaded."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from convlint.errors import InputFault
from convlint.model.layer import ConvLayer
from convlint.model.network import Edge, Network
from convlint.readers import Reader, ReadOptions
from convlint.readers.children.limits import TOO_MUCH_MEMORY
from convlint.readers.dataflow import is_first
from convlint.readers.onnx.file import load, refuse_outside_data, text
from convlint.readers.onnx.graph import Walk
from convlint.readers.onnx.layer import build_layer
from convlint.readers.onnx.quantized import standardise
from convlint.readers.onnx.scope import Scope
from convlint.readers.onnx.shapes import infer, out_of_order, real_inputs, set_input_sizes
from convlint.readers.untrusted.limits import refuse_layers
from convlint.report import InputError


def load_parser() -> None:
    """Imports all that reading needs, as far as it is installed."""
    with suppress(ImportError):
        import onnx.inliner
        import onnx.shape_inference  # noqa: F401


def read(path: str, options: ReadOptions) -> tuple[Network | None, tuple[InputError, ...]]:
    """The convolutions of an ONNX model, in graph order, and everything that could not be resolved."""
    try:
        import onnx  # noqa: F401
        from google.protobuf.message import Error as ProtobufError
    except ImportError:
        return None, (InputError(path=path, message="reading ONNX needs the onnx package: pip install onnx"),)
    try:
        network, messages = _read(path, options)
    except InputFault as fault:
        return None, (InputError(path=path, message=fault.message),)
    except (ProtobufError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        return None, (InputError(path=path, message=f"not a sound ONNX model: {error}"),)
    except MemoryError:  # where something bounds it, as the child that reads for `check` does
        return None, (InputError(path=path, message=TOO_MUCH_MEMORY),)
    return network, tuple(InputError(path=path, message=message) for message in messages)


def _read(path: str, options: ReadOptions) -> tuple[Network, list[str]]:
    model = load(path)
    refuse_outside_data(model.graph.initializer)
    standardise(model.graph)
    set_input_sizes(model.graph, options)
    inferred = infer(model)
    graph = inferred.model.graph
    inputs = real_inputs(graph)
    walk = Walk(inferred.faults)
    walk.start(graph, [value.name for value in inputs])
    refuse_layers(len(walk.sites))  # before anything is built of them
    messages: list[str] = []
    layers: list[ConvLayer] = []
    edges: list[Edge] = []
    names: dict[str, int] = {}
    untrusted: dict[str, int] = {}
    for index, site in enumerate(walk.sites):
        fault = site.fault or (site.source.fault if site.source is not None else None)
        if fault is not None:
            untrusted[fault] = untrusted.get(fault, 0) + 1
        name = _unique(text(site.node.name or (site.node.output[0] if site.node.output else "Conv")), names)
        layer, wrong = build_layer(
            site, name=name, path=path, first=is_first(site.source), dequantized=walk.dequantized, trusted=fault is None
        )
        layers.append(layer)
        if wrong is not None:
            messages.append(wrong)
        if site.source is not None and site.source.producers:
            edges.append(_edge(index, site.source.producers, site.node.input[0], layer, site.scope, fault is None))
    if untrusted:  # the first fault; those behind it mostly follow from it
        hint = "; the graph may hold for another --batch or --input only" if options.batch or options.inputs else ""
        count = _convolutions(sum(untrusted.values()))
        messages.append(f"the shapes disagree: {next(iter(untrusted))}{hint}; left without sizes: {count}")
    for label, op in walk.unknown_convolutions.items():
        messages.append(f"node {label!r}: {op} looks like a convolution, but is not one that convlint knows")
    if not untrusted:
        messages += _unresolved(graph, inputs, layers)
    operations = walk.steps.finished([value.name for value in graph.output], layers)
    network = Network(path=path, layers=tuple(layers), edges=tuple(edges), operations=operations, mode="inference")
    return network, messages


def _unique(name: str, taken: dict[str, int]) -> str:
    count = taken.get(name, 0) + 1
    taken[name] = count
    return name if count == 1 else _unique(f"{name}#{count}", taken)


def _edge(index: int, producers: tuple[int, ...], source: str, layer: ConvLayer, scope: Scope, trusted: bool) -> Edge:
    shape = scope.shape(source) if trusted else None
    channels = shape[1] if shape is not None and len(shape) > 1 else None
    return Edge(consumer=index, producers=producers, source=source, C=channels, H=layer.H, W=layer.W, D=layer.D)


def _unresolved(graph: Any, inputs: list[Any], layers: list[ConvLayer]) -> list[str]:
    """One message that says why sizes stayed unknown and how to give them; none where all are known."""
    unknown = sum(None in (layer.N, layer.C, layer.D, layer.H, layer.W, layer.K, layer.P, layer.Q) for layer in layers)
    if not unknown:
        return []
    disorder = out_of_order(graph)
    if disorder is not None:
        return [disorder]
    for value in inputs:
        axes = value.type.tensor_type.shape.dim
        if not axes and value.type.tensor_type.HasField("shape"):
            continue
        if not axes or not all(axis.dim_value for axis in axes):
            shape = "x".join(str(axis.dim_value or text(axis.dim_param) or "?") for axis in axes) or "of unknown rank"
            return [
                f"left without sizes: {_convolutions(unknown)}; input {value.name!r} is {shape}; "
                f"set it with --batch N or --input {value.name}=Nx3x224x224"
            ]
    scope = Scope(graph)
    for node in graph.node:
        known = [scope.shape(name) for name in node.input if name]
        out = scope.shape(node.output[0]) if node.output else ()
        if (out is None or None in out) and all(shape is not None and None not in shape for shape in known):
            label = f"{text(node.domain)}.{text(node.op_type)}" if node.domain else text(node.op_type)
            return [
                f"left without sizes: {_convolutions(unknown)}; "
                f"shape inference stops at {label} {node.name or node.output[0]!r}"
            ]
    return [f"left without sizes: {_convolutions(unknown)}; shape inference does not reach them"]


def _convolutions(count: int) -> str:
    return "1 convolution" if count == 1 else f"{count} convolutions"


READER = Reader(read=read, load_parser=load_parser)
