"""Walking an ONNX graph in order, bodies of If, Loop and Scan included, and handing over each convolution."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import TYPE_CHECKING, Any

from convlint.readers.dataflow import Flow, Origin, Written
from convlint.readers.onnx.file import text

if TYPE_CHECKING:
    import onnx

CONVOLUTIONS = frozenset({"Conv", "ConvTranspose", "ConvInteger", "QLinearConv"})
NORMS = frozenset({"BatchNormalization", "InstanceNormalization"})
_STANDARD_DOMAINS = frozenset({"", "ai.onnx"})
_LEARNED = frozenset({"Gemm", "MatMul", "MatMulInteger", "QLinearMatMul", "Einsum", "LSTM", "GRU", "RNN"})
_CONSTANTS = frozenset({"Constant", "ConstantOfShape"})
_BODIES = frozenset({"If", "Loop", "Scan"})
_RESHAPES = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze"})

Shape = tuple[int | None, ...]


class Scope:
    """What is known of the values of one graph: shapes, element types, stored tensors. Looks outward if need be."""

    __slots__ = ("outer", "tensors", "values")

    def __init__(self, graph: onnx.GraphProto, outer: Scope | None = None) -> None:
        self.values: dict[str, Any] = {value.name: value for value in graph.value_info}
        for declared in (graph.input, graph.output):
            self.values.update({value.name: value for value in declared})
        self.tensors: dict[str, Any] = {tensor.name: tensor for tensor in graph.initializer}
        self.outer = outer

    def shape(self, name: str) -> Shape | None:
        """Sizes of a value, None where unknown; None where even the rank is."""
        tensor = self.tensors.get(name)
        if tensor is not None:
            return tuple([size if size > 0 else None for size in tensor.dims])
        value = self.values.get(name)
        if value is None:
            return self.outer.shape(name) if self.outer is not None else None
        kind = value.type.tensor_type
        if not kind.HasField("shape"):
            return None
        # an axis without a value reads as 0, and so does a symbolic one
        return tuple([size if (size := axis.dim_value) > 0 else None for axis in kind.shape.dim])

    def element_type(self, name: str) -> int:
        """onnx.TensorProto.DataType of a value; 0 where unknown."""
        tensor = self.tensors.get(name)
        if tensor is not None:
            return int(tensor.data_type)
        value = self.values.get(name)
        if value is None:
            return self.outer.element_type(name) if self.outer is not None else 0
        return int(value.type.tensor_type.elem_type)

    def tensor(self, name: str) -> Any:
        """The stored tensor of that name, or None."""
        found = self.tensors.get(name)
        return self.outer.tensor(name) if found is None and self.outer is not None else found


class Site:
    """A convolution where it stands in the graph."""

    __slots__ = ("calls", "fault", "node", "readers", "scope", "source")

    def __init__(
        self, node: Any, scope: Scope, source: Origin | None, readers: Written, calls: int, fault: str | None
    ) -> None:  # fmt: skip
        self.node, self.scope, self.source, self.readers = node, scope, source, readers
        self.calls, self.fault = calls, fault


class Walk:
    """One pass over the nodes. `dequantized` maps the output of DequantizeLinear to its quantized input."""

    def __init__(self, faults: Mapping[str, str]) -> None:
        self.flow = Flow()
        self.sites: list[Site] = []
        self.unknown_convolutions: dict[str, str] = {}  # label -> operator that looks like one, but is not known
        self.dequantized: dict[str, str] = {}
        self._faults = faults
        self._origins: dict[str, Origin] = {}

    def start(self, graph: onnx.GraphProto, inputs: Iterable[str]) -> None:
        """Walks the main graph, whose real inputs have these names."""
        for name in inputs:
            self._origins[name] = Origin()
        self._graph(graph, Scope(graph), 1)

    def _graph(self, graph: onnx.GraphProto, scope: Scope, calls: int) -> None:
        origins, faults = self._origins, self._faults
        for node in graph.node:
            op = node.op_type
            if op in _CONSTANTS:
                continue
            names = node.input[:]
            found: Origin | None = None
            more: list[Origin] | None = None
            for name in names:
                origin = origins.get(name)
                if origin is None:
                    continue
                if origin.direct is not None:
                    origin.direct.readers.append(op)
                    if op not in CONVOLUTIONS:
                        origin = origin.past
                if found is None:
                    found = origin
                elif origin is not found:
                    more = [*(more or ()), origin]
            fault = faults.get(node.name) if faults else None
            if op in CONVOLUTIONS and node.domain in _STANDARD_DOMAINS:
                data = origins.get(names[0]) if names else None
                index, written = self.flow.convolution(data, fault)
                self.sites.append(Site(node, scope, data, self.flow.written[index], calls, fault))
                origins.update(dict.fromkeys(node.output, written))
                continue
            if found is None and fault is None and op not in _BODIES:
                if op == "DequantizeLinear":
                    self._dequantize(node)
                continue  # a constant
            result = self._other(node, op, scope, calls, found, more, fault)
            for name in node.output:
                if name not in origins or op not in _BODIES:
                    origins[name] = result

    def _other(
        self, node: Any, op: str, scope: Scope, calls: int, found: Origin | None, more: list[Origin] | None,
        fault: str | None,
    ) -> Origin:  # fmt: skip
        """The origin of what a node writes that is no convolution."""
        learned = op in _LEARNED
        if op in _BODIES:
            fault = fault or self._bodies(node, op, scope, calls)
        elif op in _RESHAPES:
            fault = fault or _count_fault(node, scope)
        elif op == "DequantizeLinear":
            self._dequantize(node)
        elif "Conv" in text(op):
            kind = f"{text(node.domain)}.{text(op)}" if node.domain else text(op)
            self.unknown_convolutions[text(node.name or next(iter(node.output), op))] = kind
        if learned:
            for origin in (found, *(more or ())):
                if origin is not None:
                    self.flow.consume(origin)
        if found is None:
            return Origin(fault=fault)
        if more is None and fault is None and (not learned or found.learned):
            return found
        return self.flow.merge((found, *(more or ())), fault, learned=learned)

    def _dequantize(self, node: Any) -> None:
        if node.input and node.output:
            self.dequantized[node.output[0]] = node.input[0]

    def _bodies(self, node: Any, op: str, scope: Scope, calls: int) -> str | None:
        """Walks the bodies of a control-flow node and gives its outputs their origins."""
        outputs: list[list[Origin]] = [[] for _ in node.output]
        for attribute in node.attribute:
            if not attribute.HasField("g"):
                continue
            body = attribute.g
            if op != "If":
                # what a loop carries has been through the loop: gradients flow back through it
                carried = [self._origins.get(name) or Origin() for name in node.input]
                skip = 1 if op == "Loop" else 0
                for formal, origin in zip(body.input, carried, strict=False):
                    self._origins[formal.name] = self.flow.merge((origin,), learned=True)
                for formal in body.input[skip + len(node.input) :]:
                    self._origins[formal.name] = Origin(learned=True)
            self._graph(body, Scope(body, scope), calls * _trips(node, op, scope))
            results = body.output[1:] if op == "Loop" else body.output
            for position, value in enumerate(results[: len(outputs)]):
                written = self._origins.get(value.name)
                if written is not None:
                    outputs[position].append(written.past)
        for name, origins in zip(node.output, outputs, strict=True):
            self._origins[name] = self.flow.merge(origins)
        return None


def _trips(node: Any, op: str, scope: Scope) -> int:
    """How often a body runs: the constant count of a Loop, the scanned length of a Scan; 1 where unknown."""
    if op == "Loop" and node.input and node.input[0]:
        tensor = scope.tensor(node.input[0])
        if tensor is not None and tensor.data_type == 7:  # INT64
            values = tensor.int64_data or [int.from_bytes(tensor.raw_data[:8], "little", signed=True)]
            return values[0] if 1 <= values[0] < 2**31 else 1
    if op == "Scan" and node.input:
        shape = scope.shape(node.input[-1])
        return (shape[0] or 1) if shape else 1
    return 1


def _count_fault(node: Any, scope: Scope) -> str | None:
    """Why a reshape cannot hold: the input and the output differ in their number of elements."""
    if not node.input or not node.output:
        return None
    before, after = scope.shape(node.input[0]), scope.shape(node.output[0])
    if before is None or after is None or None in before or None in after:
        return None
    if prod(before) == prod(after):  # type: ignore[arg-type]
        return None
    shapes = ["x".join(map(str, shape)) for shape in (before, after)]
    return f"{node.op_type} {node.name or node.output[0]!r} makes {shapes[1]} of {shapes[0]}: the element counts differ"
