"""The walk over an ONNX graph: its convolutions, and the operations between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from convlint.model.layer import ConvLayer
from convlint.model.network import IN_32_BITS, Operation, Work, WorkKind
from convlint.readers.onnx.file import integers, text
from convlint.readers.onnx.kinds import (
    ALIKE,
    BODIES,
    CONSTANTS,
    CONVOLUTIONS,
    DATA_INPUTS,
    ELEMENTWISE,
    POOLS,
    REDUCTIONS,
    RESHAPES,
    SAME,
    SIZES,
    STANDARD_DOMAINS,
    WEIGHT_INPUT,
    Given,
    Map,
    effect_of,
)
from convlint.readers.operations import (
    NAMED,
    ConvFlow,
    ConvOutput,
    Effect,
    Operations,
    Shape,
    ValueOrigin,
    past_convolution,
    sizes_of,
)

if TYPE_CHECKING:
    import onnx


# Hand on what they read, without a kernel.
_VIEWS = RESHAPES | {"Dropout", "Identity"}
_WORK: Mapping[str, WorkKind] = {
    "BatchNormalization": "batch norm", "InstanceNormalization": "group norm", "GroupNormalization": "group norm",
    **dict.fromkeys(("LayerNormalization", "RMSNormalization", "MeanVarianceNormalization", "LRN"), "layer norm"),
    **dict.fromkeys(("Add", "Sub", "Sum"), "add"), **dict.fromkeys(("Mul", "Div"), "multiply"), "Concat": "concat",
    **dict.fromkeys(("Softmax", "LogSoftmax"), "softmax"), "Gemm": "linear", "MatMul": "product",
    **dict.fromkeys(("Resize", "Upsample", "GridSample"), "resize"), **dict.fromkeys(POOLS, "pool"),
    "MaxPool": "max pool",
    **dict.fromkeys(REDUCTIONS, "reduce"), **dict.fromkeys(("ArgMax", "ArgMin", "TopK", "CumSum"), "reduce"),
    **dict.fromkeys(
        ("Cast", "DepthToSpace", "Expand", "Gather", "GatherElements", "GatherND", "Pad", "ScatterND", "Slice",
         "SpaceToDepth", "Split", "Tile", "Transpose"), "copy",
    ),
}  # fmt: skip


class _Composite(NamedTuple):
    """What several nodes compute of one tensor in one kernel: those among them, how many at most, and what is last."""

    kind: WorkKind
    op: str
    nodes: Counter[str]
    most: int
    ends: str
    read: int = 1  # tensors that the last one reads, at least


# One kernel in PyTorch, which exporters take apart, and in ONNX Runtime again: GeluFusion, FastGeluFusion,
# QuickGeluFusion (of `x * sigmoid(x)` too) and LayerNormFusion (of means over the last axis), all on by default
# (onnxruntime/core/optimizer).
_COMPOSITES = (
    _Composite("activation", "silu", Counter(Sigmoid=1, Mul=1), 3, "Mul", 2),
    _Composite("activation", "gelu", Counter(Erf=1, Mul=1), 5, "Mul"),
    _Composite("activation", "gelu", Counter(Tanh=1, Add=2, Mul=3), 9, "Mul"),
    _Composite("layer norm", "layer_norm", Counter(ReduceMean=2, Sqrt=1, Div=1), 7, "Div"),
    _Composite("layer norm", "layer_norm", Counter(ReduceMean=2, Sqrt=1, Div=1, Mul=1, Add=2), 9, "Add"),
)
_ENDS = frozenset({"Add", "Div", "Mul"})
_COMPOSED = _ENDS | {"Erf", "Pow", "ReduceMean", "Sigmoid", "Sqrt", "Sub", "Tanh"}
_MOST_COMPOSED = max(composite.most for composite in _COMPOSITES)


class GraphScope:
    """What is known of the values of one graph: shapes, element types, stored tensors.

    A value that the graph does not have is looked up in the graph around it, as ONNX scopes names.
    """

    __slots__ = ("outer", "tensors", "values")

    def __init__(self, graph: onnx.GraphProto, outer: GraphScope | None = None) -> None:
        self.values: dict[str, Any] = {value.name: value for value in graph.value_info}
        for declared in (graph.input, graph.output):
            self.values.update({value.name: value for value in declared})
        self.tensors: dict[str, Any] = {tensor.name: tensor for tensor in graph.initializer}
        self.outer = outer

    def shape(self, name: str) -> Shape | None:
        """The sizes of a value, each None where unknown; None where the rank is unknown too."""
        tensor = self.tensors.get(name)
        if tensor is not None:
            return tuple([size if size > 0 else None for size in tensor.dims])
        value = self.values.get(name)
        if value is None:
            return self.outer.shape(name) if self.outer is not None else None
        kind = value.type.tensor_type
        if not kind.HasField("shape"):
            return None
        # protobuf reads 0 from an axis without a value, and from a symbolic one
        return tuple([size if (size := axis.dim_value) > 0 else None for axis in kind.shape.dim])

    def element_type(self, name: str) -> int:
        """The onnx.TensorProto.DataType of a value; 0 where unknown."""
        tensor = self.tensors.get(name)
        if tensor is not None:
            return int(tensor.data_type)
        value = self.values.get(name)
        if value is None:
            return self.outer.element_type(name) if self.outer is not None else 0
        return int(value.type.tensor_type.elem_type)

    def is_kept(self, name: str) -> bool:
        """Whether a name is that of a tensor stored in the main graph, so that it is the same for all nodes."""
        if self.outer is None:
            return name in self.tensors
        return name not in self.tensors and name not in self.values and self.outer.is_kept(name)

    def tensor(self, name: str) -> Any:
        """The stored tensor of that name, or None."""
        tensor = self.tensors.get(name)
        return self.outer.tensor(name) if tensor is None and self.outer is not None else tensor


class GraphOperations(Operations):
    """The operations of a graph that is being walked, by the names of the values that they write."""

    def __init__(self, measured: Mapping[str, str]) -> None:
        """`measured`: numbers that are shares of a size -> the value whose size that is."""
        super().__init__()
        self._measured = measured
        self._maps: dict[str, Map] = {}
        self._stored: dict[str, onnx.TensorProto] = {}  # what nodes hold
        self._made_of: dict[str, str] = {}  # a constant that a node computes -> the constant it is computed from
        self._users: dict[str, list[tuple[int, str]]] = {}  # weights -> (convolution, how it reads them)
        self._row_means: set[int] = set()  # operations: means over the last axis
        self._biases: set[int] = set()  # operations: additions of a row that is stored
        # Reshapes to fewer channels: torch.onnx writes GroupNorm as an instance norm over one row for each group.
        self._rows_of_groups: dict[int, Shape] = {}  # with the shape that each read

    def start(self, graph: onnx.GraphProto, inputs: Sequence[str], scope: GraphScope) -> None:
        """Adds the graph's inputs; those that are transposed to NCHW have their channels last."""
        last = _channels_last(graph, inputs)
        for name in inputs:
            shape = scope.shape(name)
            axis = last.get(name, 1)
            number = self.add(Effect("input", axis), text(name), (), shape)
            self._maps[name] = Map(number, axis)

    def stored(self, node: onnx.NodeProto) -> None:
        """Notes a node that holds a tensor."""
        for attribute in node.attribute:
            if attribute.name == "value" and node.op_type == "Constant":
                self._stored.update(dict.fromkeys(node.output, attribute.t))

    def constant(self, node: onnx.NodeProto) -> None:
        """Notes a node that depends on no input of the graph."""
        for source in node.input[:1]:
            self._made_of.update(dict.fromkeys(node.output, self._made_of.get(source, source)))

    def node_convolution(self, node: onnx.NodeProto, call: int, scope: GraphScope) -> None:
        """Adds a convolution, which is call number `call`.

        Where it has the channels as an axis of space whose size it keeps, they go past it.
        """
        label, names = _label(node), list(node.input)
        source = self._maps.get(names[0]) if names else None
        for name in names[WEIGHT_INPUT[node.op_type] :][:1]:
            self._users.setdefault(self._made_of.get(name, name), []).append((call, f"{node.op_type} {name}"))
        computed = [self._maps[name].operation for name in names[1:] if name in self._maps]
        if computed:
            why = f"{label}, whose weights are computed,"
            self.opaque(f"weights of {label}", why, computed)
            self.set_apart(call, why)
        if source is not None and source.place != 1:
            why = f"{label}, which takes another axis for channels,"
            before, after = scope.shape(names[0]), scope.shape(next(iter(node.output), ""))
            strides = next((list(each.ints) for each in node.attribute if each.name == "strides"), [1, 1, 1])
            place = past_convolution(source.place, before, after, strides)
            if place and not computed and not source.made_up:
                pool = self.add(Effect("channel_pool"), f"input of {label}", (source.operation,), before, why)
                number = self.opaque(f"output of {label}", why, (self.convolution(call, pool),), (None, 1))
                inputs = (source.operation, number)
                number = self.add(Effect("resize", place), f"past {label}", inputs, after, why)
                self._maps.update(dict.fromkeys(node.output, Map(number, place)))
                return
            self.set_apart(call, why)
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
            self._maps[formal.name] = Map(number, 1, made_up=True)

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
        measured = any(self._measured.get(end) == names[0] for end in names[2:3])
        along = self._along(node, scope) if op in REDUCTIONS else ()
        effect = effect_of(op, Given(node, maps, before, shapes[0], len(names) - len(read), measured, along))
        made_up = all(operand.made_up for operand in maps)
        if effect is not None and ((effect.kind == "split" and len(set(shapes)) > 1) or (made_up and effect.axis != 1)):
            effect = None
        if op == "Reshape" and self._ends_group_norm(maps[0], shapes[0]):
            effect = Effect("identity")
        inputs = [operand.operation for operand in maps]
        name = text(node.name or node.output[0])
        work = None if op in BODIES else self._work(node, scope, read, before, shapes)
        if op == "ReduceMean" and shapes[0] and before[0] and shapes[0][:-1] == before[0][:-1]:
            self._row_means.add(len(self._met))
        stored = [scope.shape(name) for name in names if name not in self._maps]
        if op == "Add" and len(stored) == 1 and stored[0] and shapes[0] and _is_row(stored[0], shapes[0][-1]):
            self._biases.add(len(self._met))
        if op == "Reshape" and before[0] and shapes[0] and _size((*shapes[0], 0)[1]) < _size((*before[0], 0)[1]):
            self._rows_of_groups[len(self._met)] = before[0] if maps[0].place == 1 and len(shapes[0]) == 3 else ()
        weights = names if effect is None else names[1:2] if effect.kind == "linear" else ()
        for constant in () if op in RESHAPES else weights:
            if constant not in self._maps:
                self.multiplied.setdefault(self._made_of.get(constant, constant), []).append(self.count)
        if effect is None:
            for written, shape in zip(node.output, shapes, strict=True):
                number = self.opaque(name, _label(node), inputs, shape, work=work)
                work = None
                inputs = [number]  # the further outputs depend on the same inputs through the first
                self._maps[written] = Map(number, 1, made_up=True)
            return
        where = _label(node) if effect.kind in NAMED else ""
        number = self.add(effect, name, inputs, shapes[0], where, work=work)
        made_up = made_up and effect.kind != "linear"
        composed = effect.kind == "concat" or any(operand.composed for operand in maps)
        written_map = Map(number, effect.axis, composed, made_up)
        if op == "Split":
            for part, shape in zip(node.output[1:], shapes[1:], strict=True):
                self._maps[part] = written_map._replace(operation=self.add(effect, name, inputs, shape, where))
        for written in node.output if op in ALIKE else node.output[:1]:
            self._maps[written] = written_map

    def _along(self, node: onnx.NodeProto, scope: GraphScope) -> Sequence[int]:
        """The axes that a reduction names in an attribute, or in a small tensor that is stored; () where in none."""
        named = next((attribute.ints for attribute in node.attribute if attribute.name == "axes"), ())
        name = next(iter(node.input[1:]), "")
        tensor = scope.tensor(name) or self._stored.get(name)
        numbers = None if tensor is None else integers(tensor)
        return named or (() if numbers is None else numbers.values)

    def _ends_group_norm(self, source: Map, shape: Shape | None) -> bool:
        """Whether a reshape undoes the one before an instance norm of groups; that norm then is of the channels."""
        norm = self._met[source.operation]
        groups = norm.C if norm.work is not None and norm.work.op == "group_norm" else None
        if not shape or not groups or self._rows_of_groups.get(norm.inputs[0]) != shape or (shape[1] or 1) % groups:
            return False
        for at, parts in ((norm.inputs[0], 1), (source.operation, groups)):
            self._met[at] = replace(self._met[at], kind="identity", groups=parts, where="", **sizes_of(shape, 1))
        return True

    def _work(
        self, node: onnx.NodeProto, scope: GraphScope, read: Sequence[str], before: Sequence[Shape | None],
        shapes: Sequence[Shape | None],
    ) -> Work | None:  # fmt: skip
        """The work of a node: a map that it reads twice counts twice; in a foreign domain its kind is unknown."""
        op = node.op_type if node.domain in STANDARD_DOMAINS else ""
        if op in _VIEWS:
            return None
        kind = _WORK.get(op, "activation" if op in SAME or op in ELEMENTWISE else "unknown")
        maps = set(read)
        constants = [shape for name in node.input if name not in maps and (shape := scope.shape(name))]
        if kind == "product" and any(len(shape) == 2 for shape in constants):
            kind = "linear"
        if kind == "multiply" and len(read) == 1 and all(prod(map(_size, shape)) == 1 for shape in constants):
            kind = "activation"
        inner = None
        if node.op_type == "Gemm" and any(attribute.name == "transA" and attribute.i for attribute in node.attribute):
            inner = _size((before[0] or (1,))[0])
        writes = shapes[0]
        if len(shapes) > 1 and node.op_type == "Split":
            writes = before[0]
        name = text(node.op_type)
        if op == "InstanceNormalization" and self._maps[read[0]].operation in self._rows_of_groups:
            name = "group_norm"
        product = _attention(node, before) if op == "Attention" else ()
        if product:
            kind = "attention"
        factor = kind == "multiply" and len(read) == 1  # of each channel, a parameter in fp32
        in_32_bits = factor or (kind in IN_32_BITS and name not in ("InstanceNormalization", "GridSample"))
        work = replace(self.worked(kind, name, before, writes, constants, inner=inner), in_32_bits=in_32_bits)
        return replace(work, product=product) if work.kind == "attention" else work

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
        self.share_matrices()
        self._join_composites()
        return self.finished(layers, range(len(layers)))

    def _join_composites(self) -> None:
        """Leaves of each composite its last node, which has the work of one kernel and reads the tensor that all do.

        A row that is added to a product with stored weights is the bias of a linear layer.
        """
        readers: list[list[int]] = [[] for _ in self._met]
        for number, operation in enumerate(self._met):
            for source in set(operation.inputs):
                readers[source].append(number)
        joined = set[int]()
        for last in reversed(range(len(self._met))):
            if last in joined:
                continue
            first = self._met[last].inputs[0] if last in self._biases else last
            work, product = self._met[last].work, self._met[first].work
            if work is not None and product is not None and product.kind == "linear" and readers[first] == [last]:
                row = product.product[2]
                self._met[last] = replace(
                    self._met[first],
                    output=self._met[last].output,
                    work=replace(product, weights=product.weights + row),
                )
                joined.add(first)
                continue
            composite, works = self._composite(last, readers)
            if composite is None:
                continue
            elements = max(max(work.reads) for work in works.values())
            means = [work for work in works.values() if work.op == "ReduceMean"]
            row = means[0].reads[0] // max(1, means[0].writes) if means else 0
            parts = [self._met[number] for number in works]
            (source,) = {index for part in parts for index in part.inputs} - works.keys()
            opaque = next((part for part in parts if part.kind == "reshape"), None)
            self._met[last] = replace(
                self._met[last], kind="identity" if opaque is None else "reshape", inputs=(source,),
                where="" if opaque is None else opaque.where,
                work=Work(kind=composite.kind, op=composite.op, reads=(elements,), writes=elements,
                          weights=2 * row if composite.ends == "Add" else 0,
                          in_32_bits=composite.kind in IN_32_BITS),
            )  # fmt: skip
            joined |= works.keys() - {last}
        kept = [number for number in range(len(self._met)) if number not in joined]
        now = {number: index for index, number in enumerate(kept)}
        self._met = [
            replace(self._met[number], inputs=tuple([now[index] for index in self._met[number].inputs]))
            for number in kept
        ]

    def _composite(self, last: int, readers: Sequence[Sequence[int]]) -> tuple[_Composite | None, Mapping[int, Work]]:
        """The composite that ends with an operation, if one does, and its works; only the last is read by others."""
        works: dict[int, Work] = {}
        names, sources = Counter[str](), {last}
        while sources and len(works) < _MOST_COMPOSED:
            latest = max(sources)
            work = self._met[latest].work
            if work is None or work.kind == "unknown" or work.op not in (_COMPOSED if works else _ENDS):
                break
            if work.op == "ReduceMean" and latest not in self._row_means:
                break
            if works and (self._met[latest].output or any(number not in works for number in readers[latest])):
                break
            works[latest] = work
            names[work.op] += 1
            sources = sources.union(self._met[latest].inputs) - works.keys()
            if len(sources) > 1:
                continue
            read = len(self._met[last].inputs)
            for composite in _COMPOSITES:
                if (
                    composite.nodes <= names and len(works) <= composite.most
                    and composite.nodes["ReduceMean"] == names["ReduceMean"]
                    and works[last].op == composite.ends and composite.read <= read
                    and (composite.ends != "Add" or read == 1)  # a shift; else the tensor is added to its norm
                ):  # fmt: skip
                    return composite, works
        return None, works


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


def _is_row(shape: Shape, last: int | None) -> bool:
    """Whether a tensor has one number for each element of the `last` axis, of more than one."""
    return shape[-1:] == (last,) and prod(map(_size, shape)) == _size(last) > 1


def _attention(node: onnx.NodeProto, before: Sequence[Shape | None]) -> tuple[int, ...]:
    """(heads of all images, queries, keys, width) of an Attention node; () where an operand is no known map."""
    heads = next((attribute.i for attribute in node.attribute if attribute.name == "q_num_heads"), 0)
    queries, keys = (*before, None, None)[:2]
    if len(before) < 3 or queries is None or keys is None:
        return ()
    if len(queries) == 3 and heads > 0:  # the width holds all heads
        return (_size(queries[0]) * heads, _size(queries[1]), _size(keys[1]), _size(queries[2]) // heads)
    if len(queries) == len(keys) == 4:
        return (_size(queries[0]) * _size(queries[1]), _size(queries[2]), _size(keys[2]), _size(queries[3]))
    return ()


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


# What runtimes do before a dequantization instead of behind it: it changes no number, or picks the largest
_COMMUTING = RESHAPES | {"Identity", "Transpose", "MaxPool"}


class GraphWalk:
    """One pass over the nodes. `dequantized` maps the output of DequantizeLinear to its quantized input."""

    def __init__(self, faults: Mapping[str, str], measured: Mapping[str, str]) -> None:
        self.flow = ConvFlow()
        self.steps = GraphOperations(measured)
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
                self.steps.stored(node)
                continue
            names = node.input[:]
            fault = faults.get(node.name) if faults else None
            if op in CONVOLUTIONS and node.domain in STANDARD_DOMAINS:
                data = origins.get(names[0]) if names else None
                self.flow.read([origins[name] for name in names[1:] if name in origins], op)
                index, written = self.flow.convolution(data, op, fault)
                self.sites.append(GraphConv(node, scope, data, self.flow.written[index], calls, fault))
                self.steps.node_convolution(node, index, scope)
                origins.update(dict.fromkeys(node.output, written))
                continue
            read = [origins[name] for name in names if name in origins]
            if not read and fault is None and op not in BODIES:
                self._dequantize(node, op)
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
        """The origin of the outputs of a node that is no convolution; `read` are the origins of its inputs."""
        self._dequantize(node, op)
        if op in BODIES:
            if not fault:
                self._bodies(node, op, scope, calls)
        elif op in RESHAPES:
            fault = fault or _count_fault(node, scope)
        elif "Conv" in text(op):
            kind = f"{text(node.domain)}.{text(op)}" if node.domain else text(op)
            self.unknown_convolutions[text(node.name or next(iter(node.output), op))] = kind
        return self.flow.operation(read, op, fault, learned=bool(read) and op in _LEARNED)

    def _dequantize(self, node: Any, op: str) -> None:
        if not node.input or not node.output:
            return
        if op == "DequantizeLinear":
            self.dequantized[node.output[0]] = node.input[0]
        elif op in _COMMUTING and node.input[0] in self.dequantized:
            self.dequantized[node.output[0]] = self.dequantized[node.input[0]]

    def _bodies(self, node: Any, op: str, scope: GraphScope, calls: int) -> None:
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
