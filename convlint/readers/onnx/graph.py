"""Walking an ONNX graph in order, bodies of If, Loop and Scan included, and handing over each convolution."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import TYPE_CHECKING, Any

from convlint.readers.dataflow import Flow, Origin, Written
from convlint.readers.onnx.file import text
from convlint.readers.onnx.operations import Steps
from convlint.readers.onnx.operators import BODIES, CONSTANTS, CONVOLUTIONS, RESHAPES, STANDARD_DOMAINS
from convlint.readers.onnx.scope import Scope

if TYPE_CHECKING:
    import onnx

_LEARNED = frozenset({"Gemm", "MatMul", "MatMulInteger", "QLinearMatMul", "Einsum", "LSTM", "GRU", "RNN"})


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
        self.steps = Steps()
        self.sites: list[Site] = []
        self.unknown_convolutions: dict[str, str] = {}  # label -> operator that looks like one, but is not known
        self.dequantized: dict[str, str] = {}
        self._faults = faults
        self._origins: dict[str, Origin] = {}

    def start(self, graph: onnx.GraphProto, inputs: Iterable[str]) -> None:
        """Walks the main graph, whose real inputs have these names."""
        scope = Scope(graph)
        names = list(inputs)
        self._origins.update({name: Origin() for name in names})
        self.steps.start(graph, names, scope)
        self._graph(graph, scope, 1)

    def _graph(self, graph: onnx.GraphProto, scope: Scope, calls: int) -> None:
        origins, faults = self._origins, self._faults
        for node in graph.node:
            op = node.op_type
            if op in CONSTANTS:
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
            if op in CONVOLUTIONS and node.domain in STANDARD_DOMAINS:
                data = origins.get(names[0]) if names else None
                index, written = self.flow.convolution(data, fault)
                self.sites.append(Site(node, scope, data, self.flow.written[index], calls, fault))
                self.steps.convolution(node, index)
                origins.update(dict.fromkeys(node.output, written))
                continue
            if found is None and fault is None and op not in BODIES:
                if op == "DequantizeLinear":
                    self._dequantize(node)
                self.steps.constant(node)
                continue
            result = self._other(node, op, scope, calls, found, more, fault)
            self.steps.other(node, scope, trusted=result.fault is None)
            for name in node.output:
                if name not in origins or op not in BODIES:
                    origins[name] = result

    def _other(
        self, node: Any, op: str, scope: Scope, calls: int, found: Origin | None, more: list[Origin] | None,
        fault: str | None,
    ) -> Origin:  # fmt: skip
        """The origin of what a node writes that is no convolution."""
        learned = op in _LEARNED
        if op in BODIES:
            fault = fault or self._bodies(node, op, scope, calls)
        elif op in RESHAPES:
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
            inner = Scope(body, scope)
            if op != "If":
                self.steps.enter(node, body, inner)
                # what a loop carries has been through the loop: gradients flow back through it
                carried = [self._origins.get(name) or Origin() for name in node.input]
                skip = 1 if op == "Loop" else 0
                for formal, origin in zip(body.input, carried, strict=False):
                    self._origins[formal.name] = self.flow.merge((origin,), learned=True)
                for formal in body.input[skip + len(node.input) :]:
                    self._origins[formal.name] = Origin(learned=True)
            self._graph(body, inner, calls * _trips(node, op, scope))
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
