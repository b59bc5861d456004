"""Loads ONNX files within bounds, without the data of large tensors, and infers the shapes of their tensors."""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import prod
from operator import add, floordiv, mod, mul, sub
from struct import iter_unpack
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, field

from convlint.files.bounded_file import file_size, open_regular
from convlint.model.errors import InputFault
from convlint.readers.inputs import by_name, parse_shape

if TYPE_CHECKING:
    import onnx

    from convlint.readers import ReadOptions


MOST_NODES = 100_000
MOST_FIELDS = 2_000_000  # of all messages of a file
SMALL_FILE = 1 << 18  # bytes; a smaller file cannot hold enough to hurt, so it is parsed as it is
LARGE_FIELD = 1 << 14  # bytes; constants that hold a shape are far smaller
LARGE_TEXT = 1 << 20  # bytes of any other field
DEEPEST = 60  # messages inside each other
_WINDOW = 1 << 24  # bytes of the mapped file that may stay in memory behind the position

# message -> field number -> message, from onnx.proto; other fields are copied unread
_FIELDS: dict[str, dict[int, str]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse_tensor"},
    "function": {7: "node"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse_tensor", 23: "sparse_tensor"},
    "sparse_tensor": {1: "tensor", 2: "tensor"},
}
_TENSOR_DATA = frozenset({4, 5, 6, 7, 9, 10, 11})
_MOST_FOLDED = 64  # numbers of a tensor that holds sizes
_MOST_ROUNDS = 100  # of inference, each with the sizes that the one before made known
_INT64 = 7  # of TensorProto.DataType
_EXTERNAL = 1  # TensorProto.data_location


def load(path: str) -> onnx.ModelProto:
    """The model in `path`, without the values of its large tensors. Raises InputFault."""
    from google.protobuf.message import DecodeError
    from onnx.onnx_pb import ModelProto

    with open_regular(path) as stream:
        size = file_size(stream)
        if size == 0:
            raise InputFault("not an ONNX model: the file is empty")
        if size <= SMALL_FILE:
            content = stream.read(SMALL_FILE)
        else:
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as view:
                content = b"".join(_Slimmer(mapped).message(view, 0, size, "model", 0))
    model = ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError:
        raise InputFault("not an ONNX model: it cannot be decoded; the file is truncated or of another kind") from None
    if not model.graph.node:
        raise InputFault("not an ONNX model: it holds no graph")
    return model


def text(value: str | bytes) -> str:
    """A string of the file, which protobuf returns as bytes where it is not UTF-8."""
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def refuse_outside_data(tensors: Any) -> None:
    """Raises InputFault where a tensor names a file outside the model's folder as its data; opens none."""
    for tensor in tensors:
        if tensor.data_location != _EXTERNAL:
            continue
        for entry in tensor.external_data:
            location = text(entry.value).replace("\\", "/")
            if entry.key == "location" and (location.startswith("/") or ":" in location or ".." in location.split("/")):
                raise InputFault(
                    f"tensor {tensor.name!r} keeps its data in {entry.value!r}, outside the model's folder: refused"
                )


class _Slimmer:
    """Copies a serialized message without the data of large tensors, and counts nodes and fields.

    protobuf would read all weights of a model into memory, of which only the shapes are needed.
    """

    def __init__(self, mapped: mmap.mmap) -> None:
        self.nodes = 0
        self.fields = 0
        self._mapped = mapped
        self._let_go = 0  # bytes of the file whose memory was released

    def message(self, view: memoryview, start: int, end: int, kind: str, depth: int) -> list[bytes]:
        """A message without its large data, serialized, in parts. Raises InputFault."""
        if depth > DEEPEST:
            raise InputFault(f"the graph nests deeper than {DEEPEST} levels")
        children = _FIELDS.get(kind, {})
        pieces: list[bytes] = []
        for number, head, body, after in self._walk(view, start, end):
            child = children.get(number)
            if body is None:
                pieces.append(bytes(view[head:after]))
            elif child is not None:
                self.nodes += child == "node"
                if self.nodes > MOST_NODES:
                    raise InputFault(
                        f"the graph has more than {MOST_NODES:,} nodes; no network that convlint can judge has"
                    )
                parts = self.message(view, body, after, child, depth + 1)
                pieces += [_varint(number << 3 | 2), _varint(sum(map(len, parts))), *parts]
            elif after - body <= (LARGE_FIELD if kind == "tensor" and number in _TENSOR_DATA else LARGE_TEXT):
                pieces.append(bytes(view[head:after]))
        return [b"".join(pieces)]

    def _walk(self, view: memoryview, start: int, end: int) -> Iterator[tuple[int, int, int | None, int]]:
        """The fields of a message: number, start of the tag, start of the body if that is length-delimited, end."""
        position = start
        while position < end:
            self.fields += 1
            if self.fields > MOST_FIELDS:
                raise InputFault("the graph has more parts than any network that convlint can judge")
            tag, body = _read_varint(view, position, end)
            wire = tag & 7
            content: int | None = None
            if wire == 2:
                length, content = _read_varint(view, body, end)
                after = content + length
            elif wire == 0:
                _, after = _read_varint(view, body, end)
            elif wire in (1, 5):
                after = body + (8 if wire == 1 else 4)
            else:
                raise InputFault("not an ONNX model: it cannot be decoded")
            if after > end:
                raise InputFault("not an ONNX model: it ends too early; the file is truncated or of another kind")
            yield tag >> 3, position, content, after
            position = after
            if position - self._let_go > _WINDOW:
                behind = self._let_go, position // mmap.PAGESIZE * mmap.PAGESIZE
                self._let_go = behind[1]
                if hasattr(self._mapped, "madvise"):
                    self._mapped.madvise(mmap.MADV_DONTNEED, behind[0], behind[1] - behind[0])


def _read_varint(view: memoryview, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while position < end and shift < 70:
        byte = view[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise InputFault("not an ONNX model: it cannot be decoded; the file is truncated or of another kind")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


# onnx's message for the failure of one node: "(op_type:Conv, node name: conv1): [ShapeInferenceError] Inferred ..."
_NODE_FAULT = re.compile(r"\(op_type:(?P<op>[^,)]*)(?:, node name: (?P<node>.*?))?\): \[\w+\] (?P<reason>[^\n]*)")


class Inferred(Struct, frozen=True, kw_only=True):
    """The model with all shapes that could be inferred; `faults` has why inference fails, by the node's name.

    `measured`: numbers that nodes compute as shares of a size -> the value whose size that is.
    """

    model: onnx.ModelProto
    faults: Mapping[str, str] = field(default_factory=dict)
    measured: Mapping[str, str] = field(default_factory=dict)


def real_inputs(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """The graph's inputs without the initializers, which old files list among them."""
    weights = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in weights]


def set_input_sizes(graph: onnx.GraphProto, options: ReadOptions) -> None:
    """Sets the sizes of the graph's inputs to those of `--batch` and `--input`. Raises InputFault."""
    if options.batch is None and not options.inputs:
        return
    inputs = {value.name: value for value in real_inputs(graph)}
    if not inputs:
        raise InputFault("the graph has no input, so --batch and --input have nothing to set")
    texts = by_name(options.inputs, list(inputs), "the graph")
    symbols: dict[str, int] = {}
    if options.batch is not None:
        _set_batch([value for name, value in inputs.items() if name not in texts], options.batch, symbols)
    for name, text in texts.items():
        _set_sizes(inputs[name], text, options.batch, symbols)
    for value in inputs.values():  # axes with the same symbol have the same size
        for axis in value.type.tensor_type.shape.dim:
            if axis.dim_param in symbols:
                axis.dim_value = symbols[axis.dim_param]
    del graph.value_info[:]  # the shapes that hold for the old sizes
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")


def _set_batch(values: list[onnx.ValueInfoProto], batch: int, symbols: dict[str, int]) -> None:
    """Sets open first axes; if those of images are fixed, the first fixed one and those of other inputs equal to it."""
    fixed: int | None = None
    every = [axes for value in values if (axes := value.type.tensor_type.shape.dim)]
    is_open = any(axes[0].dim_param or not axes[0].HasField("dim_value") for axes in every if len(axes) > 2)
    for axes in every:
        if axes[0].dim_param:
            symbols[axes[0].dim_param] = batch
        elif not axes[0].HasField("dim_value"):
            axes[0].dim_value = batch
        elif not is_open and len(axes) > 1 and fixed in (None, axes[0].dim_value):  # a vector has no batch
            fixed = axes[0].dim_value
            axes[0].dim_value = batch


def _set_sizes(value: onnx.ValueInfoProto, text: str, batch: int | None, symbols: dict[str, int]) -> None:
    sizes = parse_shape(text, batch).sizes
    shape = value.type.tensor_type.shape
    if len(shape.dim) != len(sizes):
        if value.type.tensor_type.HasField("shape"):
            raise InputFault(f"input {value.name!r} has {len(shape.dim)} axes, --input gives it {len(sizes)}")
        for _ in sizes:
            shape.dim.add()
    for axis, size in zip(shape.dim, sizes, strict=True):
        if axis.dim_param:
            symbols[axis.dim_param] = size
        axis.dim_value = size


def infer(model: onnx.ModelProto) -> Inferred:
    """The model with the shapes that onnx can infer, after inlining local functions. Raises InputFault."""
    from onnx.onnx_cpp2py_export import checker, inliner, shape_inference
    from onnx.onnx_pb import ModelProto

    def inferred(*, strict: bool) -> onnx.ModelProto:
        check_type, data_prop = False, True
        content = shape_inference.infer_shapes(model.SerializeToString(), check_type, strict, data_prop)
        return ModelProto.FromString(content)

    if model.functions:
        _refuse_runaway_functions(model)
        try:
            model = ModelProto.FromString(inliner.inline_local_functions(model.SerializeToString(), False))
        except (RuntimeError, ValueError, checker.ValidationError) as error:
            raise InputFault(f"its local functions cannot be inlined: {_first_line(error)}") from None
    failures = (shape_inference.InferenceError, RuntimeError, ValueError)
    measured = _measured(model.graph)
    with suppress(*failures):
        result, own = inferred(strict=True), list(model.graph.value_info)
        for _ in range(_MOST_ROUNDS):
            if not _fold_sizes(result.graph):
                break
            del result.graph.value_info[:]  # what was unknown would stay so
            result.graph.value_info.extend(own)
            model = result
            result = inferred(strict=True)
        return Inferred(model=result, measured=measured)
    # onnx gives up at an operator whose domain the model does not import, where it could leave its output unknown.
    listed = {entry.domain for entry in model.opset_import}
    for domain in {node.domain for node in all_nodes(model.graph)} - listed - {"", "ai.onnx"}:
        model.opset_import.add(domain=domain, version=1)
    for node in all_nodes(model.graph):  # names, so that the next message says which node fails
        if not node.name and node.output:
            node.name = f"to {node.output[0]}"
    try:
        try:
            return Inferred(model=inferred(strict=True))
        except failures as error:
            result = [match for match in _NODE_FAULT.finditer(str(error)) if match["node"]]
            if not result:
                raise
        faults = {match["node"]: f"{match['op']} {match['node']!r}: {match['reason']}" for match in result}
        return Inferred(model=inferred(strict=False), faults=faults)
    except failures as error:
        raise InputFault(f"shape inference fails: {_first_line(error)}") from None


# of a size or a share of it these compute a share of it
_SHARES = frozenset(("Add", "Cast", "Concat", "Div", "Gather", "Identity", "Mul", "Reshape", "Squeeze", "Unsqueeze"))


def _measured(graph: onnx.GraphProto) -> Mapping[str, str]:
    """The numbers that are shares of a size; `torch.chunk` is exported as slices up to such ones, rounded up."""
    measured: dict[str, str] = {}
    for node in graph.node:
        first = node.input[0] if node.input else ""
        source = first if node.op_type == "Shape" else measured.get(first) if node.op_type in _SHARES else None
        if source is not None:
            measured.update(dict.fromkeys(node.output, source))
    return measured


def _fold_sizes(graph: onnx.GraphProto) -> bool:
    """Replaces values computed from known shapes by constants if shapes are unknown; returns whether any was replaced.

    Shape inference of onnx takes the ends of a slice and of a padding from constants alone. `torch.chunk` is exported
    as slices up to a quotient of a size, `F.pad` with ends that are turned around. Call again after another inference:
    sizes behind these are known only then.
    """
    from onnx.onnx_pb import AttributeProto, TensorProto

    types = {value.name: value.type.tensor_type for value in (*graph.input, *graph.value_info)}
    if all(of.HasField("shape") and all(axis.dim_value for axis in of.shape.dim) for of in types.values()):
        return False
    known = {tensor.name: numbers for tensor in graph.initializer if (numbers := integers(tensor)) is not None}
    folded = False
    for node in graph.node:
        values = _integers_of(node, types, known) if node.output else None
        of = types.get(node.output[0]) if values is not None else None
        if values is None or of is None or of.elem_type != _INT64 or len(values) > _MOST_FOLDED:
            continue
        axes = of.shape.dim
        dims = [axis.dim_value for axis in axes]
        stated = of.HasField("shape") and all(axis.HasField("dim_value") for axis in axes)
        if not stated or len(dims) > 2 or len(values) != prod(dims):
            continue
        known[node.output[0]] = _Integers(values, dims)
        if node.op_type != "Constant":
            result = TensorProto(data_type=_INT64, dims=dims, int64_data=values)
            node.op_type, folded = "Constant", True
            del node.input[:], node.attribute[:]
            node.attribute.append(AttributeProto(name="value", type=AttributeProto.TENSOR, t=result))
    return folded


class _Integers(NamedTuple):
    """A scalar, a vector or a matrix of int64; `values` row by row."""

    values: list[int]
    dims: list[int]


def integers(tensor: onnx.TensorProto) -> _Integers | None:
    """The values of a small matrix, vector or scalar of int64; None for any other tensor."""
    count = prod(tensor.dims)
    if tensor.data_type != _INT64 or len(tensor.dims) > 2 or not 0 < count <= _MOST_FOLDED:
        return None
    raw = tensor.raw_data
    values = list(tensor.int64_data) if len(raw) != 8 * count else [value for (value,) in iter_unpack("<q", raw)]
    return _Integers(values, list(tensor.dims)) if len(values) == count else None


def _integers_of(node: onnx.NodeProto, types: Mapping[str, Any], known: Mapping[str, _Integers]) -> list[int] | None:
    """The integers that a node computes of shapes and constants; None for other nodes, and where they are unknown."""
    op, attributes = node.op_type, {attribute.name: attribute for attribute in node.attribute}
    stored = integers(attributes["value"].t) if "value" in attributes else None
    if op == "Constant":
        return None if stored is None else stored.values
    if op == "Shape":
        of = types.get(next(iter(node.input), ""))
        start, end = (attributes[name].i if name in attributes else None for name in ("start", "end"))
        sizes = [axis.dim_value for axis in of.shape.dim][start:end] if of is not None else []
        return sizes if sizes and all(sizes) else None
    inputs = [numbers for name in node.input if (numbers := known.get(name)) is not None]
    if not inputs or len(inputs) != len(node.input):
        return None
    source, first, others = inputs[0], inputs[0].values, [numbers.values for numbers in inputs[1:]]
    is_cast = op == "Cast" and "to" in attributes and attributes["to"].i == _INT64
    if is_cast or op in ("Unsqueeze", "Squeeze", "Identity", "Reshape"):
        return first
    if op == "Slice":
        return _sliced(source, others)
    if op == "Transpose" and len(source.dims) == 2:
        turns = "perm" not in attributes or list(attributes["perm"].ints) == [1, 0]
        return [value for at in range(source.dims[1]) for value in first[at :: source.dims[1]]] if turns else None
    if op == "ConstantOfShape":
        fits = stored is not None and len(source.dims) == 1 and min(first) >= 0 and prod(first) <= _MOST_FOLDED
        return stored.values[:1] * prod(first) if stored is not None and fits else None
    if any(len(numbers.dims) > 1 for numbers in inputs):
        return None
    if op == "Concat":
        fits = sum(map(len, others), len(first)) <= _MOST_FOLDED
        return [value for values in (first, *others) for value in values] if fits else None
    if len(others) != 1:
        return None
    (second,) = others
    if op == "Gather":
        return [first[i] for i in second] if all(-len(first) <= i < len(first) for i in second) else None
    apply = _ARITHMETIC.get(op)
    count = max(len(first), len(second))
    if apply is None or not {len(first), len(second)} <= {1, count}:
        return None
    # onnx rounds towards zero, Python down, and what the sign of a remainder is depends on an attribute
    if op in ("Div", "Mod") and not all(a >= 0 < b for a in first for b in second):
        return None
    return [apply(first[i % len(first)], second[i % len(second)]) for i in range(count)]


def _sliced(source: _Integers, ends: Sequence[list[int]]) -> list[int] | None:
    """The part of `source` between starts and ends, along given axes and in given steps; None where these do not fit.

    Python's ranges wrap and clamp as ONNX does.
    """
    rank = len(source.dims)
    if not rank or len(ends) < 2:
        return None
    starts, stops = ends[:2]
    axes = ends[2] if len(ends) > 2 else list(range(len(starts)))
    steps = ends[3] if len(ends) > 3 else [1] * len(starts)
    if not len(starts) == len(stops) == len(axes) == len(steps) or 0 in steps:
        return None
    taken = [range(size) for size in source.dims]
    for start, stop, axis, step in zip(starts, stops, axes, steps, strict=True):
        if not -rank <= axis < rank:
            return None
        taken[axis] = taken[axis][start:stop:step]
    if rank == 1:
        return [source.values[i] for i in taken[0]]
    return [source.values[row * source.dims[1] + column] for row in taken[0] for column in taken[1]]


_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {"Add": add, "Sub": sub, "Mul": mul, "Div": floordiv, "Mod": mod}


def all_nodes(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph or a function, and of the bodies inside them."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from all_nodes(attribute.g)
            for body in attribute.graphs:
                yield from all_nodes(body)


def out_of_order(graph: onnx.GraphProto) -> str | None:
    """A message on the order of the nodes: a cycle, or a value that nothing writes; None where there is neither."""
    written = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer} | {""}
    written |= {tensor.values.name for tensor in graph.sparse_initializer}
    later = {name for node in graph.node for name in node.output}
    for node in graph.node:
        for name in node.input:
            if name in written:
                continue
            label = node.name or node.op_type
            if name in later:
                return f"node {label!r} reads {name!r} before it is written: the graph is cyclic or not in order"
            return f"node {label!r} reads {name!r}, which nothing writes"
        written.update(node.output)
    return None


def _refuse_runaway_functions(model: onnx.ModelProto) -> None:
    """Raises InputFault where local functions call themselves, or become more than MOST_NODES when inlined."""
    bodies: dict[tuple[str, str], Any] = {(body.domain, body.name): body for body in model.functions}
    cost: dict[tuple[str, str], int] = {}
    open_calls: set[tuple[str, str]] = set()

    def nodes_after_inlining(body: Any) -> int:
        keys = [(node.domain, node.op_type) for node in all_nodes(body)]
        return len(keys) + sum(size_of(key) for key in keys if key in bodies)

    def size_of(key: tuple[str, str]) -> int:
        if key in open_calls:
            raise InputFault(f"local function {key[1]!r} calls itself")
        if key not in cost:
            open_calls.add(key)
            if len(open_calls) > 100:
                raise InputFault("local functions call each other more than 100 deep")
            cost[key] = nodes_after_inlining(bodies[key])
            open_calls.discard(key)
        return cost[key]

    if nodes_after_inlining(model.graph) > MOST_NODES:
        raise InputFault(f"inlining its local functions gives more than {MOST_NODES:,} nodes")


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return (text[0] if text else type(error).__name__)[:300]
