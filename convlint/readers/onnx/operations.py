"""The nodes of an ONNX graph as operations on feature maps.

Of every tensor that depends on the graph's inputs it is known which axis its channels are: 1 for a convolution's, and
a Transpose may move it. What is doubtful is opaque; what depends on no input is a constant, and no operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from convlint.model.layer import ConvLayer
from convlint.model.operation import Operation
from convlint.readers.onnx.channels import Given, Map, step_of
from convlint.readers.onnx.file import text
from convlint.readers.onnx.operators import (
    ALIKE,
    BODIES,
    DATA_INPUTS,
    ELEMENTWISE,
    SAME,
    SIZES,
    STANDARD_DOMAINS,
    WEIGHT_INPUT,
)
from convlint.readers.onnx.scope import Scope
from convlint.readers.operations import Operations

if TYPE_CHECKING:
    import onnx


class Steps:
    """Grows as the graph is walked."""

    def __init__(self) -> None:
        self._operations = Operations()
        self._maps: dict[str, Map] = {}
        self._made_of: dict[str, str] = {}  # a constant that a node computes -> the one it is computed of
        self._users: dict[str, list[tuple[int, str]]] = {}  # weights -> the convolutions that read them, and how

    def start(self, graph: onnx.GraphProto, inputs: Sequence[str], scope: Scope) -> None:
        """The graph's inputs. One that is turned into NCHW has its channels last."""
        last = _channels_last(graph, inputs)
        for name in inputs:
            shape = scope.shape(name)
            axis = last.get(name, 1)
            number = self._operations.add("input", text(name), (), shape, axis)
            self._maps[name] = Map(number, axis)

    def constant(self, node: onnx.NodeProto) -> None:
        """A node that depends on no input."""
        for source in node.input[:1]:
            self._made_of.update(dict.fromkeys(node.output, self._made_of.get(source, source)))

    def convolution(self, node: onnx.NodeProto, call: int) -> None:
        """A convolution, the one of that number."""
        label, names = _label(node), list(node.input)
        source = self._maps.get(names[0]) if names else None
        computed = [self._maps[name].operation for name in names[1:] if name in self._maps]
        if computed:
            why = f"{label}, whose weights are computed,"
            self._operations.opaque(f"weights of {label}", why, computed)
            self._operations.set_apart(call, why)
        if source is not None and source.axis != 1:
            self._operations.set_apart(call, f"{label}, which takes another axis for channels,")
        for name in names[WEIGHT_INPUT[node.op_type] :][:1]:
            self._users.setdefault(self._made_of.get(name, name), []).append((call, f"{node.op_type} {name}"))
        groups = next((attribute.i for attribute in node.attribute if attribute.name == "group"), 1)
        number = self._operations.convolution(call, None if source is None else source.operation)
        written = Map(number, 1, groups > 1 and source is not None and source.composed)
        self._maps.update(dict.fromkeys(node.output, written))

    def enter(self, node: onnx.NodeProto, body: onnx.GraphProto, scope: Scope) -> None:
        """What the body of a Loop or Scan is given at each turn."""
        sources = list(node.input)
        for position, formal in enumerate(body.input):
            given = self._maps.get(sources[position]) if position < len(sources) else None
            shape = scope.shape(formal.name)
            inputs = () if given is None else (given.operation,)
            number = self._operations.opaque(text(formal.name), _label(node), inputs, shape)
            self._maps[formal.name] = Map(number, 1)

    def other(self, node: onnx.NodeProto, scope: Scope, *, trusted: bool) -> None:
        """A node that is no convolution. The shapes around it say nothing unless they are `trusted`."""
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
            op = ""  # a map stands where its size or its weights should
        maps = [self._maps[name] for name in read]
        shapes = [scope.shape(name) if trusted else None for name in node.output]
        before = [scope.shape(name) if trusted else None for name in read]
        step = step_of(op, Given(node, maps, before, shapes[0], len(names) - len(read)))
        inputs = [each.operation for each in maps]
        name = text(node.name or node.output[0])
        if step is None:
            for written, shape in zip(node.output, shapes, strict=True):
                number = self._operations.opaque(name, _label(node), inputs, shape)
                inputs = [number]  # once is enough for what the node reads
                self._maps[written] = Map(number, 1)
            return
        kind, axis, factor, groups = step
        number = self._operations.add(kind, name, inputs, shapes[0], axis, factor=factor, groups=groups)
        written_map = Map(number, axis, kind == "concat" or any(each.composed for each in maps))
        for written in node.output if op in ALIKE else node.output[:1]:
            self._maps[written] = written_map

    def finished(self, outputs: Sequence[str], layers: Sequence[ConvLayer]) -> tuple[Operation, ...]:
        """All operations of the graph, which hands these outputs out and has these convolutions."""
        for name in outputs:
            if name in self._maps:
                self._operations.hand_out(self._maps[name].operation)
        for users in self._users.values():
            calls = [call for call, _ in users]
            if len({use for _, use in users}) == 1:
                self._operations.share(calls)
            else:  # as another operator or turned round: which axis is which is not said
                for call in calls:
                    self._operations.set_apart(call, f"{layers[call].name}, which shares its weights,")
        return self._operations.finished(layers, range(len(layers)))


def _channels_last(graph: onnx.GraphProto, inputs: Sequence[str]) -> dict[str, int]:
    """The last axis of those inputs that a Transpose turns from NHWC into NCHW."""
    comes_from = {name: name for name in inputs}
    found: dict[str, int] = {}
    for node in graph.node:
        source = next((comes_from[name] for name in node.input if name in comes_from), None)
        if source is None:
            continue
        if node.op_type in SAME or node.op_type in ELEMENTWISE:
            comes_from.update(dict.fromkeys(node.output, source))
        elif node.op_type == "Transpose":
            order = next((list(each.ints) for each in node.attribute if each.name == "perm"), [])
            last = len(order) - 1
            if last > 1 and order == [0, last, *range(1, last)]:
                found.setdefault(source, last)
    return found


def _label(node: onnx.NodeProto) -> str:
    op = f"{text(node.domain)}.{text(node.op_type)}" if node.domain else text(node.op_type)
    return f"{op} {text(node.name or next(iter(node.output), ''))}".strip()
