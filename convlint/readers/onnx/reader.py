"""The reader of ONNX models: rewrites quantized operators to standard ones, walks the graph, and builds layers."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any

from convlint.model.errors import InputFault
from convlint.model.layer import AXES, ConvLayer, Dtype, output_size, same_padding, transposed_output_size
from convlint.model.network import Edge, Network, unique_name
from convlint.model.report import InputError
from convlint.readers import Outcome, Reader, ReadOptions
from convlint.readers.bounded_json import refuse_layers
from convlint.readers.children.parser import TOO_MUCH_MEMORY
from convlint.readers.inputs import how_to_set
from convlint.readers.onnx.file import (
    infer,
    load,
    out_of_order,
    real_inputs,
    refuse_outside_data,
    set_input_sizes,
    text,
)
from convlint.readers.onnx.graph import GraphConv, GraphScope, GraphWalk
from convlint.readers.onnx.kinds import BODIES, NORMS, WEIGHT_INPUT
from convlint.readers.operations import Shape, is_first

if TYPE_CHECKING:
    import onnx


DOMAIN = "com.microsoft"  # of the operators that ONNX Runtime adds when it quantizes
_TO_NCHW, _TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)
# ONNX Runtime's operator -> the standard one, and which of the inputs that one takes
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
    """Replaces ONNX Runtime's operators by standard ones, in place, also in bodies; names and outputs stay.

    Shape inference of onnx does not know them, and neither does `effect_of`.
    """
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
    places: Sequence[int]
    if node.op_type == "QLinearConcat":
        node.op_type, places = "Concat", range(2, len(inputs), 3)
    elif node.op_type == "QLinearReduceMean":
        node.op_type, places = "ReduceMean", range(min(1, len(inputs)))
        if "axes" in attributes:  # an input since opset 18
            inputs.insert(1, _constant(graph, list(attributes["axes"].ints), node))
            places = range(2)
    elif node.op_type in _STANDARD:
        is_last = node.op_type == "NhwcMaxPool" or (last is not None and last.i == 1)
        node.op_type, positions = _STANDARD[node.op_type]
        places = [position for position in positions if position < len(inputs)]
        if is_last and inputs and node.output:
            yield from _between_transposes(node, inputs, places)
            return
    else:
        yield node
        return
    _become(node, [inputs[position] for position in places])
    yield node


def _become(node: onnx.NodeProto, inputs: list[str]) -> None:
    """Completes the rewriting of a node that has got its new type."""
    node.domain = ""
    del node.input[:]
    node.input.extend(inputs)
    # The standard operators do not have these attributes.
    remaining = [attribute for attribute in node.attribute if attribute.name not in ("channels_last", "opset", "alpha")]
    if node.op_type == "ReduceMean":
        remaining = [attribute for attribute in remaining if attribute.name != "axes"]
    del node.attribute[:]
    node.attribute.extend(remaining)


def _between_transposes(node: onnx.NodeProto, inputs: list[str], places: Sequence[int]) -> Iterator[onnx.NodeProto]:
    """The node in NCHW, between two transposes of its NHWC tensors."""
    written, before, after = node.output[0], f"{node.output[0]} to NCHW", f"{node.output[0]} in NCHW"
    yield _transpose(inputs[0], before, _TO_NCHW)
    _become(node, [before, *(inputs[position] for position in places[1:])])
    node.output[0] = after
    yield node
    yield _transpose(after, written, _TO_NHWC)


def _transpose(source: str, target: str, axes: Sequence[int]) -> onnx.NodeProto:
    from onnx.onnx_pb import AttributeProto, NodeProto

    perm = AttributeProto(name="perm", type=AttributeProto.INTS, ints=axes)
    return NodeProto(op_type="Transpose", input=[source], output=[target], attribute=[perm])


def _constant(graph: onnx.GraphProto, values: list[int], node: onnx.NodeProto) -> str:
    from onnx.onnx_pb import TensorProto

    name = f"{next(iter(node.output), '')} axes"
    graph.initializer.add(name=name, data_type=TensorProto.INT64, dims=[len(values)], int64_data=values)
    return name


def load_parser() -> None:
    """Imports the parts of onnx that models are read with, if it is installed; for a process that does nothing else.

    The whole package imports numpy and takes four times as long.
    """
    module_spec = find_spec("onnx")
    if module_spec is not None and "onnx" not in sys.modules:
        sys.modules["onnx"] = module_from_spec(module_spec)  # not executed, unlike what is imported from it
        with suppress(Exception):  # `read` reports it
            import onnx.onnx_cpp2py_export
            import onnx.onnx_pb  # noqa: F401


def read(path: str, options: ReadOptions) -> Outcome:
    """The convolutions of an ONNX model, in graph order, and what could not be resolved."""
    try:
        import onnx.onnx_cpp2py_export
        import onnx.onnx_pb  # noqa: F401
        from google.protobuf.message import Error as ProtobufError
    except Exception as error:  # a protobuf that does not suit raises errors of its own
        said = "".join(str(error).splitlines()[:1])
        what = ": pip install onnx" if find_spec("onnx") is None else f", which cannot be imported: {said}"
        return None, (InputError(path=path, message=f"reading ONNX needs the onnx package{what}"),)
    try:
        network, messages = _read(path, options)
    except InputFault as fault:
        return None, (InputError(path=path, message=fault.message),)
    except (ProtobufError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        return None, (InputError(path=path, message=f"not a sound ONNX model: {error}"),)
    except MemoryError:  # the child process that reads for `check` bounds it
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
    walk = GraphWalk(inferred.faults, inferred.measured)
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
        name = unique_name(text(site.node.name or (site.node.output[0] if site.node.output else "Conv")), names)
        layer, wrong = _layer(
            site, name=name, path=path, first=is_first(site.source), dequantized=walk.dequantized, trusted=fault is None
        )
        layers.append(layer)
        if wrong is not None:
            messages.append(wrong)
        if site.source is not None and site.source.producers:
            edges.append(_edge(index, site.source.producers, site.node.input[0], layer, site.scope, fault is None))
    if untrusted:  # the first fault alone, because later ones mostly follow from it
        hint = "; the graph may hold for another --batch or --input only" if options.batch or options.inputs else ""
        count = _convolutions(sum(untrusted.values()))
        messages.append(f"the shapes disagree: {next(iter(untrusted))}{hint}; left without sizes: {count}")
    for label, op in walk.unknown_convolutions.items():
        messages.append(f"node {label!r}: {op} looks like a convolution, but is not one that convlint knows")
    if not untrusted:
        messages += _unresolved(graph, inputs, layers)
    operations = walk.steps.graph_finished([value.name for value in graph.output], layers)
    # What a body runs several times, or one of two branches, is no single step.
    bodies = any(node.op_type in BODIES for node in graph.node)
    network = Network(
        path=path, layers=tuple(layers), edges=tuple(edges), operations=operations, mode="inference",
        whole=bool(operations) and walk.steps.whole and not messages and not bodies,
        notes=() if messages else walk.steps.notes,  # else they say what is unknown
    )  # fmt: skip
    return network, messages


def _edge(
    index: int, producers: tuple[int, ...], source: str, layer: ConvLayer, scope: GraphScope, trusted: bool
) -> Edge:
    shape = scope.shape(source) if trusted else None
    channels = shape[1] if shape is not None and len(shape) > 1 else None
    return Edge(consumer=index, producers=producers, source=source, C=channels, H=layer.H, W=layer.W, D=layer.D)


def _unresolved(graph: Any, inputs: list[Any], layers: list[ConvLayer]) -> list[str]:
    """A message on why sizes are unknown and how to give them, if any is: the first cause that applies."""
    unknown = sum(None in (layer.N, layer.C, layer.D, layer.H, layer.W, layer.K, layer.P, layer.Q) for layer in layers)
    if not unknown:
        return []
    disorder = out_of_order(graph)
    if disorder is not None:
        return [disorder]
    summary = f"left without sizes: {_convolutions(unknown)}"
    for value in inputs:
        axes = value.type.tensor_type.shape.dim
        if not axes and value.type.tensor_type.HasField("shape"):
            continue
        if not axes or not all(axis.dim_value for axis in axes):
            shape = "x".join(str(axis.dim_value or text(axis.dim_param) or "?") for axis in axes) or "of unknown rank"
            how = how_to_set(value.name, [axis.dim_value or None for axis in axes])
            return [f"{summary}; input {value.name!r} is {shape}; {how}"]
    scope = GraphScope(graph)
    for node in graph.node:
        known = [scope.shape(name) for name in node.input if name]
        out = scope.shape(node.output[0]) if node.output else ()
        if (out is None or None in out) and all(shape is not None and None not in shape for shape in known):
            label = f"{text(node.domain)}.{text(node.op_type)}" if node.domain else text(node.op_type)
            return [f"{summary}; shape inference stops at {label} {node.name or node.output[0]!r}"]
    return [f"{summary}; shape inference does not reach them"]


def _convolutions(count: int) -> str:
    return "1 convolution" if count == 1 else f"{count} convolutions"


# onnx.TensorProto.DataType
_DTYPES = {  # uint8 multiplies as fast as int8
    1: Dtype.fp32, 10: Dtype.fp16, 16: Dtype.bf16, 11: Dtype.fp64, 2: Dtype.int8, 3: Dtype.int8,
    17: Dtype.fp8, 18: Dtype.fp8, 19: Dtype.fp8, 20: Dtype.fp8,
}  # fmt: skip
_QUANTIZED = frozenset({2, 3, 17, 18, 19, 20})
_INTEGER = frozenset({"ConvInteger", "QLinearConv"})
_BIAS_INPUT = {"Conv": 2, "ConvTranspose": 2, "QLinearConv": 8}


def _layer(
    site: GraphConv, *, name: str, path: str, first: bool, dequantized: dict[str, str], trusted: bool
) -> tuple[ConvLayer, str | None]:
    """The layer of a convolution node, and what is wrong with it, if anything; sizes are unknown unless `trusted`."""
    node, scope = site.node, site.scope
    if not node.input or not node.output:
        return _bare(site, name, path), f"{node.op_type} {name!r} reads or writes nothing"
    op, inputs = node.op_type, list(node.input)
    attributes = {attribute.name: attribute for attribute in node.attribute}
    at = WEIGHT_INPUT[op]
    weight_name = inputs[at] if at < len(inputs) else ""
    weight = scope.shape(weight_name) if weight_name else None
    data: Shape | None = scope.shape(inputs[0]) if trusted else None
    rank = len(weight or data or ()) - 2
    if not 1 <= rank <= 3:
        if not trusted and weight is None:
            rank = 2  # nothing is known of it; most are images
        else:
            return _bare(site, name, path), f"{op} {name!r}: only 1-D, 2-D and 3-D convolutions are known"
    if weight is not None and data is not None and len(weight) != len(data):
        return _bare(site, name, path), f"{op} {name!r}: its input has {len(data)} axes, its weights {len(weight)}"
    groups = attributes["group"].i if "group" in attributes else 1
    if groups < 1:
        return _bare(site, name, path), f"{op} {name!r}: group is {groups}"
    transposed = op == "ConvTranspose"
    channels, filters = (weight[0], weight[1]) if weight else (None, None)
    if transposed:
        C, K = channels, _times(filters, groups)
    else:
        C, K = _times(filters, groups), channels
    fault = None
    if data is not None:
        if C is not None and data[1] is not None and data[1] != C:
            fault = f"{op} {name!r}: its input has {data[1]} channels, its weights and {groups} groups want {C}"
        C = C or data[1]
    axes = _axes(attributes, rank, weight, data, scope.shape(node.output[0]) if trusted else None, transposed)
    if isinstance(axes, str):
        return _bare(site, name, path), f"{op} {name!r}: {axes}"
    sizes, wrong = axes
    bias_at = _BIAS_INPUT.get(op)
    readers = site.readers.readers
    layer = ConvLayer(
        name=name, path=path, op="conv_transpose" if transposed else "conv", dims=rank, N=data[0] if data else None,
        C=C, K=K, groups=groups, dtype=_dtype(op, inputs, weight_name, scope, dequantized),
        node=text(weight_name if scope.is_kept(weight_name) else node.name) or None,
        bias=None if bias_at is None else len(inputs) > bias_at and inputs[bias_at] != "",
        norm_follows=len(readers) == 1 and readers[0] in NORMS, first=first, head=site.readers.head, calls=site.calls,
        operator=op if op in _INTEGER else "",
        **sizes,
    )  # fmt: skip
    return layer, fault or (wrong and f"{op} {name!r}: {wrong}")


def _bare(site: GraphConv, name: str, path: str) -> ConvLayer:
    """A layer without sizes, for a node that contradicts itself."""
    return ConvLayer(name=name, path=path, node=text(site.node.name) or None, D=None, Z=None, T=None)


def _times(size: int | None, factor: int) -> int | None:
    return None if size is None else size * factor


def _ints(attributes: dict[str, Any], name: str, default: list[int]) -> list[int]:
    return list(attributes[name].ints) if name in attributes else default


def _axes(
    attributes: dict[str, Any], rank: int, weight: Shape | None, data: Shape | None, out: Shape | None,
    transposed: bool,
) -> tuple[dict[str, Any], str | None] | str:  # fmt: skip
    """The fields of the axes of space, and how the graph contradicts them; a message alone where none can be had."""
    kernel: list[int | None] = list(weight[2:]) if weight else [None] * rank
    declared = _ints(attributes, "kernel_shape", [])
    strides = _ints(attributes, "strides", [1] * rank)
    dilations = _ints(attributes, "dilations", [1] * rank)
    pads = _ints(attributes, "pads", [0] * 2 * rank)
    extra = _ints(attributes, "output_padding", [0] * rank)
    output_shape = _ints(attributes, "output_shape", [])[-rank:]
    auto = attributes["auto_pad"].s.decode("ascii", "replace") if "auto_pad" in attributes else "NOTSET"
    if (
        len(declared) not in (0, rank) or len(strides) != rank or len(dilations) != rank or len(pads) != 2 * rank
        or len(extra) != rank or len(output_shape) not in (0, rank) or min(*strides, *dilations) < 1
    ):  # fmt: skip
        return "its strides, dilations, pads and kernel_shape do not fit its weights"
    fields: dict[str, Any] = {}
    wrong: str | None = None
    for i in range(rank):
        taps = kernel[i] if kernel[i] is not None or not declared else declared[i]
        if declared and taps != declared[i]:
            wrong = f"kernel_shape is {declared}, but its weights are {'x'.join(map(str, weight or ()))}"
        size = data[2 + i] if data else None
        begin: int | None = pads[i]
        end: int | None = pads[rank + i]
        if auto == "VALID":
            begin = end = 0
        elif auto.startswith("SAME") and not transposed:
            both = same_padding(size, stride=strides[i], dilation=dilations[i], taps=taps) if taps else None
            begin, end = both if both else (None, None)
            if auto == "SAME_LOWER":  # the odd element comes first
                begin, end = end, begin
        elif output_shape or auto.startswith("SAME"):  # transposed: the padding follows from the output's size
            target = output_shape[i] if output_shape else _times(size, strides[i])
            begin = end = None
            if target is not None and size is not None and taps is not None:
                total = strides[i] * (size - 1) + extra[i] + dilations[i] * (taps - 1) + 1 - target
                if total < 0:  # the wanted output is larger than the taps reach: the rest is output padding
                    extra[i], total = extra[i] - total, 0
                begin, end = total // 2, total - total // 2
                if auto != "SAME_UPPER":
                    begin, end = end, begin
        result = out[2 + i] if out is not None and len(out) == rank + 2 else None
        computed: int | None = None
        if size is not None and taps is not None and begin is not None and end is not None:
            if transposed:
                computed = transposed_output_size(
                    size, stride=strides[i], pad=begin + end, dilation=dilations[i], taps=taps, output_padding=extra[i]
                )
            else:
                computed = output_size(size, stride=strides[i], pad=begin + end, dilation=dilations[i], taps=taps)
            if result is not None and computed != result:
                wrong = f"its output is {computed} long by the formula, but {result} by the graph"
        values = (
            size, result if computed is None else computed, taps, strides[i], begin, end, dilations[i], extra[i],
        )  # fmt: skip
        fields.update(zip(AXES[3 - rank + i], values, strict=True))
    if rank == 1:  # as ConvLayer has 1-D convolutions
        fields.update(H=1, P=1, R=1)
    return fields, wrong


def _dtype(
    op: str, inputs: list[str], weight_name: str, scope: GraphScope, dequantized: dict[str, str]
) -> Dtype | None:
    """The type that is multiplied: the quantized one where both operands come straight from DequantizeLinear.

    Runtimes fuse such a DequantizeLinear into the convolution.
    """
    data_type = scope.element_type(inputs[0])
    if op in ("Conv", "ConvTranspose") and inputs[0] in dequantized and weight_name in dequantized:
        types = scope.element_type(dequantized[inputs[0]]), scope.element_type(dequantized[weight_name])
        if types[0] in _QUANTIZED and types[1] in _QUANTIZED:
            data_type = types[0]
    return _DTYPES.get(data_type)


READER = Reader(read=read, load_parser=load_parser)
