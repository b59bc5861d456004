"""An ONNX model read: convolutions, quantized ones too, and the operations between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from convlint.errors import InputFault
from convlint.model.layer import ConvLayer
from convlint.model.network import Edge, Network
from convlint.model.report import InputError
from convlint.readers import Reader, ReadOptions
from convlint.readers.bounded_json import refuse_layers
from convlint.readers.children.parser import TOO_MUCH_MEMORY
from convlint.readers.onnx.channels import GraphScope
from convlint.readers.onnx.file import (
    infer,
    load,
    out_of_order,
    real_inputs,
    refuse_outside_data,
    set_input_sizes,
    text,
)
from convlint.readers.onnx.graph import GraphWalk
from convlint.readers.onnx.layer import build_layer
from convlint.readers.operations import is_first

if TYPE_CHECKING:
    import onnx


DOMAIN = "com.microsoft"
_TO_NCHW, _TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)
# operator -> the standard one, and which of its inputs that one takes
_STANDARD: dict[str, tuple[str, tuple[int, ...]]] = {
    "QLinearAdd": ("Add", (0, 3)),
    "QLinearMul": ("Mul", (0, 3)),
    "QLinearAveragePool": ("AveragePool", (0,)),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", (0,)),
    "NhwcMaxPool": ("MaxPool", (0,)),
    "QLinearLeakyRelu": ("Identity", (0,)),
    "QLinearSigmoid": ("Identity", (0,)),
    "QLinearSoftmax": ("Identity", (0,)),
    "QLinearWhere": ("Where", (0, 1, 4)),
    "QGemm": ("Gemm", (0, 3)),
    "MatMulIntegerToFloat": ("MatMul", (0, 1)),
    "DynamicQuantizeMatMul": ("MatMul", (0, 1)),
    "QuantizeLinear": ("QuantizeLinear", (0, 1, 2)),
    "DequantizeLinear": ("DequantizeLinear", (0, 1, 2)),
    "QLinearConv": ("QLinearConv", (0, 1, 2, 3, 4, 5, 6, 7, 8)),
}


def standardise(graph: onnx.GraphProto) -> None:
    """Rewrites the graph's nodes, and those of the bodies inside it, in place; names and outputs stay."""
    if not any(node.domain == DOMAIN for node in graph.node):
        bodies = [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]
        for body in bodies:
            standardise(body)
        return
    nodes = [new for node in graph.node for new in _rewritten(node, graph)]
    del graph.node[:]
    graph.node.extend(nodes)


def _rewritten(node: onnx.NodeProto, graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            standardise(attribute.g)
    if node.domain != DOMAIN:
        yield node
        return
    inputs = list(node.input)
    attributes = {attribute.name: attribute for attribute in node.attribute}
    last = attributes.get("channels_last")
    taken: Sequence[int]
    if node.op_type == "QLinearConcat":
        node.op_type, taken = "Concat", range(2, len(inputs), 3)
    elif node.op_type == "QLinearReduceMean":
        node.op_type, taken = "ReduceMean", range(min(1, len(inputs)))
        if "axes" in attributes:
            inputs.insert(1, _constant(graph, list(attributes["axes"].ints), node))
            taken = range(2)
    elif node.op_type in _STANDARD:
        is_last = node.op_type == "NhwcMaxPool" or (last is not None and last.i == 1)
        node.op_type, positions = _STANDARD[node.op_type]
        taken = [position for position in positions if position < len(inputs)]
        if is_last and inputs and node.output:
            yield from _between_transposes(node, inputs, taken)
            return
    else:
        yield node
        return
    _become(node, [inputs[position] for position in taken])
    yield node


def _become(node: onnx.NodeProto, inputs: list[str]) -> None:
    """Makes a node the standard operator of its new type."""
    node.domain = ""
    del node.input[:]
    node.input.extend(inputs)
    kept = [attribute for attribute in node.attribute if attribute.name not in ("channels_last", "opset", "alpha")]
    if node.op_type == "ReduceMean":
        kept = [attribute for attribute in kept if attribute.name != "axes"]
    del node.attribute[:]
    node.attribute.extend(kept)


def _between_transposes(node: onnx.NodeProto, inputs: list[str], taken: Sequence[int]) -> Iterator[onnx.NodeProto]:
    """The node in NCHW, which its tensors are turned into and back from."""
    from onnx import helper

    written, before, after = node.output[0], f"{node.output[0]} to NCHW", f"{node.output[0]} in NCHW"
    yield helper.make_node("Transpose", [inputs[0]], [before], perm=_TO_NCHW)
    _become(node, [before, *(inputs[position] for position in taken[1:])])
    node.output[0] = after
    yield node
    yield helper.make_node("Transpose", [after], [written], perm=_TO_NHWC)


def _constant(graph: onnx.GraphProto, values: list[int], node: onnx.NodeProto) -> str:
    from onnx import TensorProto, helper

    name = f"{next(iter(node.output), '')} axes"
    graph.initializer.append(helper.make_tensor(name, TensorProto.INT64, [len(values)], values))
    return name


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
    walk = GraphWalk(inferred.faults)
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


def _edge(
    index: int, producers: tuple[int, ...], source: str, layer: ConvLayer, scope: GraphScope, trusted: bool
) -> Edge:
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
    scope = GraphScope(graph)
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
