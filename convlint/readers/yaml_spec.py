"""Reader of the YAML (or JSON) spec: text to a network of located layers, or to every error in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from convlint.errors import InputFault, shown, suggestion
from convlint.model import ConvLayer, Edge, Mode, Network, Span
from convlint.readers import ReadOptions
from convlint.located_yaml import Value, fault, parse, read_text
from convlint.readers.spec_fields import Fields, choice, read_fields, word
from convlint.readers.spec_layer import conv_layer, conv_op, dims_of
from convlint.readers.spec_runtime import runtime_of
from convlint.readers.spec_shapes import Shape, carried, carrier_of
from convlint.report import InputError

TOP_KEYS = ("version", "target", "mode", "runtime", "defaults", "layers", "name", "description")
MODES: Mapping[str, str] = {
    "training": "training", "train": "training",
    "inference": "inference", "infer": "inference", "eval": "inference",
}  # fmt: skip


def read(path: str, options: ReadOptions) -> tuple[Network | None, tuple[InputError, ...]]:
    """The network that the spec at `path` ("-": standard input) describes, and everything wrong with it."""
    try:
        return read_spec(read_text(path), "<stdin>" if path == "-" else path, options)
    except InputFault as error:
        shown_path = "<stdin>" if path == "-" else path
        return None, (InputError(path=shown_path, message=error.message, line=error.line, column=error.column),)


def read_spec(
    text: str, path: str, options: ReadOptions | None = None
) -> tuple[Network | None, tuple[InputError, ...]]:
    """The network in the text of a spec. Raises InputFault only where the text is no YAML at all."""
    document = parse(text)
    if document is None:
        raise InputFault("is empty: a spec needs version: 1 and layers:", line=1, column=1)
    return _Spec(path, options or ReadOptions()).read(document, text)


def read_fragment(document: Value, path: str) -> tuple[Network | None, tuple[InputError, ...]]:
    """A spec whose layers may leave out what a rule's example does not care about: K, the filter, any size."""
    return _Spec(path, ReadOptions(), complete=False).read(document, "")


class _Spec:
    """One pass over a spec; `errors` grows, `layers` and `edges` are what could be read."""

    def __init__(self, path: str, options: ReadOptions, *, complete: bool = True) -> None:
        self.path = path
        self.options = options
        self.complete = complete
        self.errors: list[InputError] = []
        self.layers: list[ConvLayer] = []
        self.edges: list[Edge] = []
        self.shapes: dict[str, Shape] = {}  # what each named operation hands on
        self.places: dict[str, Span] = {}  # where each name was given
        self.readers: dict[str, list[str]] = {}  # operation -> kinds of the operations that read it
        self.previous: Shape | None = None
        self.default_values: Mapping[str, Value] = {}
        self.default_fields: dict[int, Fields] = {}

    def fail(self, error: InputFault) -> None:
        self.errors.append(InputError(path=self.path, message=error.message, line=error.line, column=error.column))

    def read(self, document: Value, text: str) -> tuple[Network | None, tuple[InputError, ...]]:
        if not isinstance(document.data, dict):
            raise fault(f"a spec is a mapping with version: and layers:, not {document.kind}", document.span)
        top: dict[str, Value] = {}
        for key, value in document.data.items():
            name = {"targets": "target", "gpu": "target"}.get(key, key)
            if name in TOP_KEYS:
                top[name] = value
            elif not key.startswith("x-"):  # room for anchors, as in other YAML formats
                self.fail(fault(f"unknown key {shown(key)!r}{suggestion(key, TOP_KEYS)}", value.key_span))
        mode: Mode | None = None
        targets: tuple[str, ...] = ()
        runtime, runtime_errors = runtime_of(top.get("runtime"))
        for error in runtime_errors:
            self.fail(error)
        try:
            self._version(top.get("version"), document)
        except InputFault as error:
            self.fail(error)
        try:
            if "mode" in top:
                mode = "training" if choice("mode", top["mode"], MODES) == "training" else "inference"
        except InputFault as error:
            self.fail(error)
        try:
            targets = self._targets(top.get("target"))
        except InputFault as error:
            self.fail(error)
        self._defaults(top.get("defaults"))
        self._layers(top.get("layers"), document)
        network = Network(
            path=self.path,
            layers=self._with_roles(),
            edges=tuple(self.edges),
            runtime=runtime,
            mode=mode,
            targets=targets,
            spans={key: value.span for key, value in top.items() if key in ("target", "mode", "runtime")},
            source_lines=tuple(text.split("\n")),
        )
        return network, tuple(self.errors)

    def _version(self, value: Value | None, document: Value) -> None:
        if value is None:
            raise fault("version is missing; write version: 1", document.span)
        if value.data != "1":
            raise fault(
                f"version must be 1, not {shown(value.data) if isinstance(value.data, str) else value.kind}", value.span
            )

    def _targets(self, value: Value | None) -> tuple[str, ...]:
        if value is None:
            return ()
        items = value.data if isinstance(value.data, list) else [value]
        return tuple(dict.fromkeys(word("target", item) for item in items))

    def _defaults(self, value: Value | None) -> None:
        if value is None or value.is_null:
            return
        if not isinstance(value.data, dict):
            self.fail(fault(f"defaults must be a mapping, not {value.kind}", value.span))
            return
        allowed = {}
        for key, item in value.data.items():
            if key in ("name", "input", "inputs", "from", "op", "type"):
                self.fail(fault(f"{key} cannot be a default", item.key_span or item.span))
            else:
                allowed[key] = item
        self.default_values = allowed
        self.default_fields[2] = read_fields(allowed, 2, self.fail, where="defaults")

    def _default(self, dims: int) -> Fields | None:
        """The defaults as a layer of `dims` dimensions reads them; their errors were reported once already."""
        if dims not in self.default_fields and self.default_values:
            self.default_fields[dims] = read_fields(self.default_values, dims, lambda _: None, where="defaults")
        return self.default_fields.get(dims)

    def _layers(self, value: Value | None, document: Value) -> None:
        if value is None:
            self.fail(fault("layers is missing: nothing to check", document.span))
        elif not isinstance(value.data, list):
            self.fail(fault(f"layers must be a list, not {value.kind}", value.span))
        else:
            for number, item in enumerate(value.data, start=1):
                try:
                    self._item(item, number)
                except InputFault as error:
                    self.fail(error)
                    self.previous = Shape(source=f"layer {number}")  # unknown from here, rather than wrong

    def _item(self, item: Value, number: int) -> None:
        if not isinstance(item.data, dict):
            raise fault(f"layer {number} must be a mapping, not {item.kind}", item.span)
        mapping: dict[str, Value] = item.data
        op = mapping.get("op") or mapping.get("type")
        op_text = word("op", op) if op is not None else "conv"
        conv = conv_op(op_text)
        errors = len(self.errors)
        dims = dims_of(mapping, op_text)
        fields = read_fields(mapping, dims, self.fail, where="a layer")
        fields.spans["layer"] = item.span
        name = fields.values.get("name", f"layer{number}")
        inputs = self._inputs(mapping, fields)
        for source in inputs:
            self.readers.setdefault(source.source, []).append("conv" if conv else op_text)
        if len(self.errors) > errors:
            shape = Shape(source=name)
        elif conv is None:
            assert op is not None
            kind, _ = carrier_of(op_text, op)
            if "N" not in fields.values and (default := self._default(2)) is not None and kind == "declared":
                fields.values["N"] = default.values.get("N")
            shape = carried(kind, name, inputs, fields, mapping)
            if kind == "batchnorm" and inputs:
                self.readers[inputs[0].source][-1] = "batchnorm"
        else:
            shape = self._conv(name, conv, dims, fields, inputs, item)
        self._remember(name, shape, fields.spans.get("name", item.span))
        self.previous = shape

    def _conv(
        self, name: str, conv: tuple[str, bool], dims: int, fields: Fields, inputs: list[Shape], item: Value
    ) -> Shape:
        if len(inputs) > 1:
            raise fault(f"{name}: a convolution reads one tensor; join its inputs with op: concat or add", item.span)
        incoming = inputs[0] if inputs else None
        layer = conv_layer(
            name,
            self.path,
            conv,
            dims,
            fields,
            self._default(dims),
            incoming,
            batch=self.options.batch,
            complete=self.complete,
        )
        index = len(self.layers)
        self.layers.append(layer)
        if incoming is not None:
            self.edges.append(
                Edge(
                    consumer=index,
                    producers=incoming.producers,
                    source=incoming.source,
                    C=incoming.C,
                    D=incoming.D,
                    H=incoming.H,
                    W=incoming.W,
                )
            )
        return Shape(source=name, producers=(index,), N=layer.N, C=layer.K, D=layer.Z, H=layer.P, W=layer.Q)

    def _inputs(self, mapping: Mapping[str, Value], fields: Fields) -> list[Shape]:
        """What this operation reads: the named ones, or the one before unless it gives C, H and W itself."""
        value = mapping.get("inputs") or mapping.get("input") or mapping.get("from")
        if value is not None:
            items = value.data if isinstance(value.data, list) else [value]
            return [self._named(item) for item in items]
        values = fields.values
        op = mapping.get("op") or mapping.get("type")
        if op is not None and conv_op(str(op.data)) is None:
            return [] if op.data == "input" or self.previous is None else [self.previous]
        if self.previous is None or all(letter in values for letter in "CHW"):
            return []
        return [self.previous]

    def _named(self, item: Value) -> Shape:
        name = word("input", item)
        shape = self.shapes.get(name)
        if shape is None:
            raise fault(
                f"input: no layer before this one is named {shown(name)!r}{suggestion(name, self.shapes)}", item.span
            )
        return shape

    def _remember(self, name: str, shape: Shape, span: Span) -> None:
        if name in self.shapes:
            self.fail(fault(f"name {shown(name)!r} was given on line {self.places[name][0]} already", span))
            return
        self.shapes[name] = shape
        self.places[name] = span

    def _with_roles(self) -> tuple[ConvLayer, ...]:
        """Marks what only the whole graph shows: first layers, heads, and whose output is normalised."""
        feeds = {index for edge in self.edges for index in edge.producers}
        fed = {edge.consumer: edge for edge in self.edges}
        inputs = {name for name, shape in self.shapes.items() if shape.from_input and not shape.producers}
        result = []
        for index, layer in enumerate(self.layers):
            edge = fed.get(index)
            stated = layer.spans
            first, head = layer.first, layer.head
            if "first" not in stated:
                if edge is None:
                    # Standing alone says nothing about where its input comes from; image channels or a graph do.
                    first = index in feeds or (layer.C is not None and layer.C <= 4)
                else:
                    first = not edge.producers and edge.source in inputs
            if "head" not in stated:
                head = edge is not None and bool(edge.producers) and index not in feeds
            consumers = self.readers.get(layer.name, [])
            norm = consumers == ["batchnorm"] if consumers else None
            if (first, head, norm) != (layer.first, layer.head, layer.norm_follows):
                layer = replace(layer, first=first, head=head, norm_follows=norm)
            result.append(layer)
        return tuple(result)
