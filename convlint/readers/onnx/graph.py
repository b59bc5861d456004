"""The walk over the nodes of an ONNX graph: its convolutions, and the operations between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from convlint.model.layer import ConvLayer
from convlint.model.network import Operation, Work
from convlint.readers.onnx.channels import (
    ALIKE,
    BODIES,
    CONSTANTS,
    CONVOLUTIONS,
    DATA_INPUTS,
    ELEMENTWISE,
    RESHAPES,
    SAME,
    SIZES,
    STANDARD_DOMAINS,
    WEIGHT_INPUT,
    Given,
    GraphScope,
    Map,
    effect_of,
    kind_of_work,
)
from convlint.readers.onnx.file import text
from convlint.readers.operations import ConvFlow, ConvOutput, Effect, Operations, Shape, ValueOrigin

if TYPE_CHECKING:
    import onnx


class GraphOperations(Operations):
    """The operations of a graph that is being walked, by the names of the values that they write."""

    def __init__(self) -> None:
        super().__init__()
        self._maps: dict[str, Map] = {}
        self._made_of: dict[str, str] = {}  # a constant that a node computes -> the constant it is computed from
        self._users: dict[str, list[tuple[int, str]]] = {}  # weights -> (convolution, how it reads them)

    def start(self, graph: onnx.GraphProto, inputs: Sequence[str], scope: GraphScope) -> None:
        """Adds the graph's inputs; those that are transposed to NCHW have their channels last."""
        last = _channels_last(graph, inputs)
        for name in inputs:
            shape = scope.shape(name)
            axis = last.get(name, 1)
            number = self.add(Effect("input", axis), text(name), (), shape)
            self._maps[name] = Map(number, axis)

    def constant(self, node: onnx.NodeProto) -> None:
        """Notes a node that depends on no input of the graph."""
        for source in node.input[:1]:
            self._made_of.update(dict.fromkeys(node.output, self._made_of.get(source, source)))

    def node_convolution(self, node: onnx.NodeProto, call: int) -> None:
        """Adds a convolution, which is call number `call`."""
        label, names = _label(node), list(node.input)
        source = self._maps.get(names[0]) if names else None
        computed = [self._maps[name].operation for name in names[1:] if name in self._maps]
        if computed:
            why = f"{label}, whose weights are computed,"
            self.opaque(f"weights of {label}", why, computed)
            self.set_apart(call, why)
        if source is not None and source.axis != 1:
            self.set_apart(call, f"{label}, which takes another axis for channels,")
        for name in names[WEIGHT_INPUT[node.op_type] :][:1]:
            self._users.setdefault(self._made_of.get(name, name), []).append((call, f"{node.op_type} {name}"))
        groups = next((attribute.i for attribute in node.attribute if attribute.name == "group"), 1)
        number = self.convolution(call, None if source is None else source.operation)
        written = Map(number, 1, groups > 1 and source is not None and source.composed)
        self._maps.update(dict.fromkeys(node.output, written))

    def enter(self, node: onnx.NodeProto, body: onnx.GraphProto, scope: GraphScope) -> None:
        """Adds the inputs of the body of a Loop or Scan, which change at each turn."""
        sources = list(node.input)
        for position, formal in enumerate(body.input):
            given = self._maps.get(sources[position]) if position < len(sources) else None
            shape = scope.shape(formal.name)
            inputs = () if given is None else (given.operation,)
            number = self.opaque(text(formal.name), _label(node), inputs, shape)
            self._maps[formal.name] = Map(number, 1)

    def other(self, node: onnx.NodeProto, scope: GraphScope, *, trusted: bool) -> None:
        """Adds a node that is no convolution; its shapes count only where they are `trusted`."""
        op = node.op_type if node.domain in STANDARD_DOMAINS else ""
        if op in SIZES or not node.output:
            return
        names = list(node.input)[: DATA_INPUTS.get(op)]
        if op in BODIES:
            bodies = [attribute.g for attribute in node.attribute if attribute.HasField("g")]
            names += [value.name for body in bodies for value in body.output]
        read = [name for name in names if name in self._maps]
        if not read:
            return
        if op not in ELEMENTWISE and names[0] not in self._maps:
            op = ""  # a map is read where this operator has sizes or weights
        maps = [self._maps[name] for name in read]
        shapes = [scope.shape(name) if trusted else None for name in node.output]
        before = [scope.shape(name) if trusted else None for name in read]
        effect = effect_of(op, Given(node, maps, before, shapes[0], len(names) - len(read)))
        inputs = [operand.operation for operand in maps]
        name = text(node.name or node.output[0])
        work = None if op in BODIES else self._work(node, scope, read, before, shapes)
        if effect is None:
            for written, shape in zip(node.output, shapes, strict=True):
                number = self.opaque(name, _label(node), inputs, shape, work=work)
                work = None
                inputs = [number]  # the further outputs depend on the same inputs through the first
                self._maps[written] = Map(number, 1)
            return
        number = self.add(effect, name, inputs, shapes[0], work=work)
        written_map = Map(number, effect.axis, effect.kind == "concat" or any(operand.composed for operand in maps))
        for written in node.output if op in ALIKE else node.output[:1]:
            self._maps[written] = written_map

    def _work(
        self, node: onnx.NodeProto, scope: GraphScope, read: Sequence[str], before: Sequence[Shape | None],
        shapes: Sequence[Shape | None],
    ) -> Work | None:  # fmt: skip
        """What a node does; one that reads the same map twice, or of a foreign domain, counts as it stands."""
        kind = kind_of_work(node.op_type) if node.domain in STANDARD_DOMAINS else "unknown"
        if kind is None:
            return None
        maps = set(read)
        constants = [shape for name in node.input if name not in maps and (shape := scope.shape(name))]
        if kind == "product" and any(len(shape) == 2 for shape in constants):
            kind = "linear"
        if kind == "multiply" and len(read) == 1 and all(prod(map(_size, shape)) == 1 for shape in constants):
            kind = "activation"
        inner = None
        if node.op_type == "Gemm" and any(each.name == "transA" and each.i for each in node.attribute):
            inner = _size((before[0] or (1,))[0])
        writes = shapes[0]
        if len(shapes) > 1 and node.op_type == "Split":
            writes = before[0]
        return self.worked(kind, text(node.op_type), before, writes, constants, inner=inner)

    def graph_finished(self, outputs: Sequence[str], layers: Sequence[ConvLayer]) -> tuple[Operation, ...]:
        """All operations of the graph, whose outputs are `outputs` and whose convolutions are `layers`."""
        for name in outputs:
            if name in self._maps:
                self.hand_out(self._maps[name].operation)
        for users in self._users.values():
            calls = [call for call, _ in users]
            if len({use for _, use in users}) == 1:
                self.share(calls)
            else:  # used by two operators, or once transposed: which axis is K and which C differs
                for call in calls:
                    self.set_apart(call, f"{layers[call].name}, which shares its weights,")
        return self.finished(layers, range(len(layers)))


def _channels_last(graph: onnx.GraphProto, inputs: Sequence[str]) -> dict[str, int]:
    """For each input that a Transpose turns from NHWC into NCHW, its last axis."""
    comes_from = {name: name for name in inputs}
    last_axes: dict[str, int] = {}
    for node in graph.node:
        source = next((comes_from[name] for name in node.input if name in comes_from), None)
        if source is None:
            continue
        if node.op_type in SAME or node.op_type in ELEMENTWISE:
            comes_from.update(dict.fromkeys(node.output, source))
        elif node.op_type == "Transpose":
            order = next((list(attribute.ints) for attribute in node.attribute if attribute.name == "perm"), [])
            last = len(order) - 1
            if last > 1 and order == [0, last, *range(1, last)]:
                last_axes.setdefault(source, last)
    return last_axes


def _size(size: int | None) -> int:
    return size or 1


def _label(node: onnx.NodeProto) -> str:
    op = f"{text(node.domain)}.{text(node.op_type)}" if node.domain else text(node.op_type)
    return f"{op} {text(node.name or next(iter(node.output), ''))}".strip()


_LEARNED = frozenset({"Gemm", "MatMul", "MatMulInteger", "QLinearMatMul", "Einsum", "LSTM", "GRU", "RNN"})


class GraphConv(NamedTuple):
    """A convolution and its place in the graph; `calls` is how often loops run it."""

    node: Any
    scope: GraphScope
    source: ValueOrigin | None
    readers: ConvOutput
    calls: int
    fault: str | None


class GraphWalk:
    """One pass over the nodes. `dequantized` maps the output of DequantizeLinear to its quantized input."""

    def __init__(self, faults: Mapping[str, str]) -> None:
        self.flow = ConvFlow()
        self.steps = GraphOperations()
        self.sites: list[GraphConv] = []
        self.unknown_convolutions: dict[str, str] = {}  # label -> an operator that is named like one
        self.dequantized: dict[str, str] = {}
        self._faults = faults
        self._origins: dict[str, ValueOrigin] = {}

    def start(self, graph: onnx.GraphProto, inputs: Iterable[str]) -> None:
        """Walks the main graph, whose real inputs have these names."""
        scope = GraphScope(graph)
        names = list(inputs)
        self._origins.update({name: ValueOrigin() for name in names})
        self.steps.start(graph, names, scope)
        self._graph(graph, scope, 1)

    def _graph(self, graph: onnx.GraphProto, scope: GraphScope, calls: int) -> None:
        origins, faults = self._origins, self._faults
        for node in graph.node:
            op = node.op_type
            if op in CONSTANTS:
                continue
            names = node.input[:]
            fault = faults.get(node.name) if faults else None
            if op in CONVOLUTIONS and node.domain in STANDARD_DOMAINS:
                data = origins.get(names[0]) if names else None
                self.flow.read([origins[name] for name in names[1:] if name in origins], op)
                index, written = self.flow.convolution(data, op, fault)
                self.sites.append(GraphConv(node, scope, data, self.flow.written[index], calls, fault))
                self.steps.node_convolution(node, index)
                origins.update(dict.fromkeys(node.output, written))
                continue
            read = [origins[name] for name in names if name in origins]
            if not read and fault is None and op not in BODIES:
                if op == "DequantizeLinear":
                    self._dequantize(node)
                self.steps.constant(node)
                continue
            result = self._other(node, op, scope, calls, read, fault)
            self.steps.other(node, scope, trusted=result.fault is None)
            for name in node.output:
                if name not in origins or op not in BODIES:  # `_bodies` has set the outputs of the others
                    origins[name] = result

    def _other(
        self, node: Any, op: str, scope: GraphScope, calls: int, read: Sequence[ValueOrigin], fault: str | None
    ) -> ValueOrigin:
        """The origin of what a node writes that is no convolution; `read` are those of what it reads."""
        if op in BODIES:
            fault = fault or self._bodies(node, op, scope, calls)
        elif op in RESHAPES:
            fault = fault or _count_fault(node, scope)
        elif op == "DequantizeLinear":
            self._dequantize(node)
        elif "Conv" in text(op):
            kind = f"{text(node.domain)}.{text(op)}" if node.domain else text(op)
            self.unknown_convolutions[text(node.name or next(iter(node.output), op))] = kind
        return self.flow.operation(read, op, fault, learned=bool(read) and op in _LEARNED)

    def _dequantize(self, node: Any) -> None:
        if node.input and node.output:
            self.dequantized[node.output[0]] = node.input[0]

    def _bodies(self, node: Any, op: str, scope: GraphScope, calls: int) -> str | None:
        """Walks the bodies of a control-flow node and gives its outputs their origins."""
        outputs: list[list[ValueOrigin]] = [[] for _ in node.output]
        for attribute in node.attribute:
            if not attribute.HasField("g"):
                continue
            body = attribute.g
            inner = GraphScope(body, scope)
            if op != "If":
                self.steps.enter(node, body, inner)
                # what a loop carries has been through its layers, so that gradients flow back through it
                carried = [self._origins.get(name) or ValueOrigin() for name in node.input]
                skip = 1 if op == "Loop" else 0
                for formal, origin in zip(body.input, carried, strict=False):
                    self._origins[formal.name] = self.flow.merge((origin.past,), learned=True)
                for formal in body.input[skip + len(node.input) :]:
                    self._origins[formal.name] = ValueOrigin(learned=True)
            self._graph(body, inner, calls * _trips(node, op, scope))
            results = body.output[1:] if op == "Loop" else body.output  # a Loop's first is whether to go on
            for position, value in enumerate(results[: len(outputs)]):
                written = self._origins.get(value.name)
                if written is not None:
                    outputs[position].append(written.past)
        for name, origins in zip(node.output, outputs, strict=True):
            self._origins[name] = self.flow.merge(origins)
        return None


def _trips(node: Any, op: str, scope: GraphScope) -> int:
    """How often a body runs: the constant count of a Loop, or the length that a Scan scans; 1 where unknown."""
    if op == "Loop" and node.input and node.input[0]:
        tensor = scope.tensor(node.input[0])
        if tensor is not None and tensor.data_type == 7:  # INT64
            # The number is stored in one of the two fields.
            values = tensor.int64_data or [int.from_bytes(tensor.raw_data[:8], "little", signed=True)]
            return values[0] if 1 <= values[0] < 2**31 else 1
    if op == "Scan" and node.input:
        shape = scope.shape(node.input[-1])
        return (shape[0] or 1) if shape else 1
    return 1


def _count_fault(node: Any, scope: GraphScope) -> str | None:
    """Why a reshape is wrong: its input and its output have different numbers of elements; None where it is not."""
    if not node.input or not node.output:
        return None
    before, after = scope.shape(node.input[0]), scope.shape(node.output[0])
    if before is None or after is None or None in before or None in after:
        return None
    if prod(before) == prod(after):  # type: ignore[arg-type]
        return None
    shapes = ["x".join(map(str, shape)) for shape in (before, after)]
    return f"{node.op_type} {node.name or node.output[0]!r} makes {shapes[1]} of {shapes[0]}: the element counts differ"
