"""ONNX Runtime's quantized operators, rewritten as the standard ones that have the same shapes.

Its quantizer writes `com.microsoft.QLinearAdd` and the like, of which onnx's shape inference knows nothing; what they
compute is no concern here. Inputs and attributes are those of onnxruntime/docs/ContribOperators.md, version 1.31.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

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
