"""The layers of a spec in order: what each operation reads, and the shapes that it hands on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from convlint.errors import shown, suggestion
from convlint.files.located_yaml import Value, fault
from convlint.model.layer import ConvLayer
from convlint.model.location import Span
from convlint.model.network import Edge
from convlint.model.operation import Operation
from convlint.readers.spec.defaults import Defaults
from convlint.readers.spec.errors import SpecErrors
from convlint.readers.spec.fields import CANONICAL, Fields, read_fields
from convlint.readers.spec.layer import conv_layer, conv_op, dims_of, written_by
from convlint.readers.spec.operations import Operations
from convlint.readers.spec.repeats import Repeats
from convlint.readers.spec.roles import with_roles
from convlint.readers.spec.shapes import AGAIN, Shape, carried, carrier_of, factor_of, latest
from convlint.readers.spec.values import word
from convlint.readers.untrusted.limits import MOST_LAYERS, MOST_READS

MAX_OPERATIONS = 30_000  # convolutions and what stands between them
MAX_INPUTS = 256  # of one operation
_MOST_SUGGESTED = 200  # names among which the nearest is looked for


class _Operation(NamedTuple):
    """What `op` says: its text, what it does to shapes, or (op of the model, depthwise) for a convolution."""

    text: str
    carrier: str
    conv: tuple[str, bool] | None


class SpecGraph:
    """One pass over the layers of a spec; `layers` and `edges` are what could be read."""

    def __init__(self, errors: SpecErrors, defaults: Defaults, *, batch: int | None, complete: bool) -> None:
        self.errors, self.defaults, self.batch, self.complete = errors, defaults, batch, complete
        self.layers: list[ConvLayer] = []
        self.edges: list[Edge] = []
        self.repeats = Repeats()
        self.wiring = Operations()
        self.shapes: dict[str, Shape] = {}  # what each named operation hands on
        self.places: dict[str, Span] = {}  # where each name was given
        self.readers: dict[str, list[str]] = {}  # operation -> kinds of the operations that read it
        self.feeding: set[int] = set()  # layers that feed others in more places than edges keep
        self.reads = 0
        self.previous: Shape | None = None

    def finished(self) -> tuple[ConvLayer, ...]:
        """The layers, with what only the whole graph shows of them."""
        layers = with_roles(self.layers, self.edges, self.shapes, self.readers, self.feeding, self.repeats.names)
        first = self.repeats.weights
        return tuple(
            [
                replace(layer, node=layers[first[index]].name) if index in first else layer
                for index, layer in enumerate(layers)
            ]
        )

    def operations(self) -> tuple[Operation, ...]:
        """The items as operations, in their order."""
        return self.wiring.finished(self.readers)

    def read(self, value: Value | None, document: Value) -> None:
        """Reads the list of layers."""
        if value is None:
            self.errors.fail(fault("layers is missing: nothing to check", document.span))
        elif not isinstance(value.data, list):
            self.errors.fail(fault(f"layers must be a list, not {value.kind}", value.span))
        elif len(value.data) > MAX_OPERATIONS:
            self.errors.fail(fault(f"layers: more than {MAX_OPERATIONS:,}, the limit for a spec", value.span))
        elif sum(map(_is_conv, value.data)) > MOST_LAYERS:
            self.errors.fail(
                fault(f"layers: more than {MOST_LAYERS:,} convolutions, the limit for one input", value.span)
            )
        else:
            given = {_stated_name(item) for item in value.data}
            for number, item in enumerate(value.data, start=1):
                name = _stated_name(item) or f"layer{number}"
                while _stated_name(item) is None and name in given:
                    name += "_"
                self._item(item, number, name)

    def _item(self, item: Value, number: int, name: str) -> None:
        """Reads one operation; what cannot be read hands on an unknown shape, rather than a wrong one."""
        shape = Shape(source=name)
        known = len(self.wiring.noted)
        if isinstance(item.data, dict):
            shape = self.errors.attempt(lambda: self._operation(item, name), shape)
        else:
            self.errors.fail(fault(f"layer {number} must be a mapping, not {item.kind}", item.span))
        if len(self.wiring.noted) == known:
            self.wiring.unread(name)
        if name in self.shapes:
            self.errors.fail(
                fault(f"name {shown(name)!r} was given on line {self.places[name][0]} already", _name_span(item))
            )
        else:
            self.shapes[name], self.places[name] = shape, _name_span(item)
        self.previous = shape

    def _operation(self, item: Value, name: str) -> Shape:
        mapping: Mapping[str, Value] = item.data
        errors = len(self.errors.found)
        op = self.errors.attempt(lambda: _operation(mapping), _Operation("conv", "", None))
        stated = self.errors.attempt(lambda: dims_of(mapping, op.text), None)
        inputs = self._inputs(mapping, op, stated)
        arriving = inputs[0].dims if inputs else None
        dims = stated or arriving or self.defaults.dims or 2
        fields = read_fields(mapping, dims, self.errors.fail, where="a layer")
        fields.spans["layer"] = item.span
        for source in inputs:
            self.readers.setdefault(source.source, []).append(op.carrier)
        if len(self.errors.found) > errors:
            return Shape(source=name)
        if op.conv is not None:
            shape = self._conv(name, op.conv, dims, fields, inputs)
            of, index = mapping.get("weights"), shape.producers[0]
            share = partial(self.repeats.share, name, index=index, layers=self.layers)
            weights = None if of is None else self.errors.attempt(lambda: share(of), None)
            self.wiring.note("conv", op.text, shape, inputs, fields.values, weights=weights)
            return shape
        if op.carrier == AGAIN:
            shape = self.repeats.run(
                name, mapping.get("weights"), inputs, fields.spans["layer"], self.layers, self.edges
            )
            self.feeding.update(producer for incoming in inputs for producer in incoming.producers)
            self.wiring.note("conv", op.text, shape, inputs, fields.values)
            return shape
        if "N" not in fields.values and op.carrier in ("input", "declared"):
            fields.values["N"] = self.defaults.of(dims).values.get("N")
        shape, dropped = latest(carried(op.carrier, name, inputs, fields, mapping, dims))
        self.feeding.update(dropped)
        self.wiring.note(op.carrier, op.text, shape, inputs, fields.values, factor_of(op.carrier, mapping))
        return shape

    def _conv(self, name: str, conv: tuple[str, bool], dims: int, fields: Fields, inputs: list[Shape]) -> Shape:
        if len(inputs) > 1:
            problem = "a convolution reads one tensor; join its inputs with op: concat or add"
            raise fault(f"{name}: {problem}", fields.spans["layer"])
        incoming = inputs[0] if inputs else None
        defaults = self.defaults.of(dims)
        layer = conv_layer(
            name, self.errors.path, conv, dims, fields, defaults, incoming, batch=self.batch, complete=self.complete
        )
        index = len(self.layers)
        self.layers.append(layer)
        if incoming is not None:
            self.edges.append(
                Edge(consumer=index, producers=incoming.producers, source=incoming.source, C=incoming.C, D=incoming.D,
                     H=incoming.H, W=incoming.W, copied=fields.values.get("copied"))
            )  # fmt: skip
        shape = written_by(layer, index)
        self.repeats.first(name, index, shape, edge=len(self.edges) - 1 if incoming is not None else None)
        return shape

    def _inputs(self, mapping: Mapping[str, Value], op: _Operation, dims: int | None) -> list[Shape]:
        """What this operation reads: the named ones, or the one before unless it gives all its sizes itself."""
        keys = [key for key in ("inputs", "input", "from") if key in mapping]
        if keys:
            value = mapping[keys[0]]
            for key in keys[1:]:
                self.errors.fail(fault(f"{key} says again what {keys[0]} says", mapping[key].span))
            items = value.data if isinstance(value.data, list) else [value]
            self.reads += len(items)
            if not items or len(items) > MAX_INPUTS or self.reads > MOST_READS:
                what = "names no layer" if not items else "names too many layers"
                self.errors.fail(fault(f"{keys[0]}: {what}", value.span))
                return []
            found = [self.errors.attempt(lambda item=item: self._named(item), None) for item in items]  # type: ignore[misc]
            return [shape for shape in found if shape is not None]
        previous = self.previous
        if previous is None or op.carrier == "input":
            return []
        if op.conv is None:
            return [previous]
        given = {CANONICAL.get(key) for key in (*mapping, *self.defaults.values)}
        one_dimensional = (dims or previous.dims or self.defaults.dims) == 1
        return [] if given.issuperset("CW" if one_dimensional else "CHW") else [previous]

    def _named(self, item: Value) -> Shape:
        name = word("input", item)
        shape = self.shapes.get(name)
        if shape is None:
            hint = suggestion(name, self.shapes) if len(self.shapes) <= _MOST_SUGGESTED else ""
            raise fault(f"input: no layer before this one is named {shown(name)!r}{hint}", item.span)
        return shape


def _operation(mapping: Mapping[str, Value]) -> _Operation:
    keys = [key for key in ("op", "type") if key in mapping]
    if not keys:
        return _Operation("conv", "conv", ("conv", False))
    if len(keys) > 1:
        raise fault(f"{keys[1]} says again what {keys[0]} says", mapping[keys[1]].span)
    text = word(keys[0], mapping[keys[0]])
    conv = conv_op(text)
    return _Operation(text, "conv" if conv else carrier_of(text, mapping[keys[0]]), conv)


def _is_conv(item: Value) -> bool:
    """Whether this is a convolution, as far as its op tells; anything that is no operation at all counts as one."""
    if not isinstance(item.data, dict):
        return True
    op = item.data.get("op") or item.data.get("type")
    return op is None or not isinstance(op.data, str) or conv_op(op.data) is not None


def _stated_name(item: Value) -> str | None:
    value = item.data.get("name") if isinstance(item.data, dict) else None
    return value.data if value is not None and isinstance(value.data, str) and value.data else None


def _name_span(item: Value) -> Span:
    return item.data["name"].span if _stated_name(item) is not None else item.span
