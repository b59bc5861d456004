"""Writes a network as a spec, such that reading it back gives the same layers, edges and findings.

It writes what connects the layers; `entries` has the entries themselves.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from copy import deepcopy
from math import gcd, prod
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import replace

from convlint.files.located_yaml import flow
from convlint.files.safe import clean, clean_path
from convlint.model.channels import Channels, axis_of_part, channels_of, mixed_axis, reshaping
from convlint.model.errors import InputFault
from convlint.model.grouping import grouped
from convlint.model.layer import ConvLayer
from convlint.model.network import SPLITS, Edge, Network, Operation, Work, WorkKind, gradients
from convlint.model.runtime import Runtime, Version
from convlint.readers.spec.entries import (
    NO_FIELDS,
    CannotWire,
    CannotWork,
    SpecItem,
    SpecItems,
    SpecNames,
    after,
    compact,
    entry_of,
    shared_by,
)
from convlint.readers.spec.fields import MAX_SIZE, UNKNOWN
from convlint.readers.spec.graph import ACTIVATIONS, OF_STEPS, elements_of
from convlint.readers.spec.shapes import AGAIN, Shape, normalised, written_by

if TYPE_CHECKING:
    from convlint.model.channels import Axis

Use = Literal["left out", "passed through", "written"]
_ONE_INPUT = ("identity", "batchnorm", "resize")


def keeps_channels(operation: Operation, own: Axis | None, before: Sequence[Axis | None]) -> bool:
    """Whether the channels of an operation follow from those of its inputs as its kind implies; otherwise it is opaque.

    `own` is the axis of its tensor, `before` are those of its inputs.
    """
    kind = operation.kind
    known = [axis for axis in before if axis is not None]
    if kind in _ONE_INPUT:
        return len(before) == 1 and own == before[0]
    if not before or len(known) < len(before):
        return False
    if kind == "add":
        return own in known
    if kind == "concat":
        # The lengths are compared first, because joining the parts of many long axes takes memory.
        same_length = own is not None and len(own) == sum(map(len, known))
        return same_length and own == tuple([part for axis in known for part in axis])
    if kind == "split":
        return len(known) == 1 and own == axis_of_part(known[0], operation.factor)
    if kind == "channel_shuffle":
        return len(known) == 1 and len(set(known[0])) == 1 and own == mixed_axis(known[0])
    if kind in ("pixel_shuffle", "pixel_unshuffle") and len(known) == 1 and operation.factor > 0:
        by = reshaping(operation)
        return own == tuple([(number, scale * by) for number, scale in known[0]])
    return False


def uses(operations: Sequence[Operation], channels: Channels) -> list[Use]:
    """How each operation is written to the spec.

    "left out": no rule can see it. "written": its channels are those of a layer. "passed through": it lies among opaque
    operations, so that an entry which reads it names what it was made of instead.
    """
    axes, of_layers = channels.axes, [bool(group.layers) for group in channels.groups]
    matters = [any(of_layers[group] for group, _ in axis or ()) for axis in axes]
    needed = [False] * len(operations)
    written = [operation.kind in ("input", "conv") for operation in operations]
    for number in reversed(range(len(operations))):  # backwards: what reads an operation decides on it
        operation = operations[number]
        is_conv = operation.kind == "conv"
        inputs = operation.inputs[:1] if is_conv else operation.inputs
        keeps = is_conv or keeps_channels(operation, axes[number], [axes[index] for index in inputs])
        touches = any(matters[index] for index in inputs)
        idle = keeps and operation.groups == 1 and operation.kind in (*_ONE_INPUT, "concat", "split")
        needed[number] |= is_conv or (operation.output and matters[number]) or (touches and not idle)
        written[number] |= matters[number] or touches
        for index in inputs if needed[number] else ():
            needed[index] = True
            written[index] |= keeps and written[number]
    return [
        "left out" if not is_needed else "written" if is_written else "passed through"
        for is_needed, is_written in zip(needed, written, strict=True)
    ]


READ_ON = "read by other operations"
_HANDED_OUT = "outputs"
_MOST_PASSED = 32  # tensors that may stand for one that is not written; with more, it is written after all
_AXES = ("W", "HW", "DHW")


def wired(
    network: Network, entries: Sequence[dict[str, Any]], names: SpecNames, batch: int | None
) -> tuple[list[SpecItem], bool]:
    """The items of the spec, in order, and whether they are all operations of a step, with their work.

    `entries` are convolutions, `batch` is their default N. Raises CannotWire.
    """
    first = dict.fromkeys(operation.layer for operation in network.operations if operation.layer is not None)
    if list(first) != list(range(len(network.layers))):
        raise CannotWire("the operations do not run the layers in their order")
    if network.whole:
        try:
            return _Wiring(network, entries, SpecItems(deepcopy(names), batch), states_step=True).written(), True
        except (CannotWork, CannotWire, InputFault):
            pass
    return _Wiring(network, entries, SpecItems(names, batch), states_step=False).written(), False


class _Wiring:
    """One pass over the operations; `at` has the shapes in the spec that stand for the tensor of each."""

    def __init__(
        self, network: Network, entries: Sequence[dict[str, Any]], items: SpecItems, *, states_step: bool
    ) -> None:
        self.layers, self.operations, self.entries, self.items = network.layers, network.operations, entries, items
        self.channels = channels_of(network)
        self.edges = {edge.consumer: edge for edge in network.edges}
        operations = network.operations
        self._N = network.layers[0].N or 0
        self.runs = Counter(operation.layer for operation in operations if operation.layer is not None)
        self.views, self.vectors = self._views()
        self.uses = uses(self.operations, self.channels)
        self.states_step = states_step  # the spec has all operations of a step
        self.read = {index for operation in operations for index in operation.inputs}
        norms = [number for number, operation in enumerate(operations) if operation.kind == "batchnorm"]
        self.norms = {index: norm for norm in norms for index in operations[norm].inputs}
        self.learning = self._learning()
        self.at: list[list[Shape]] = []
        self.convs: dict[int, dict[str, Any]] = {}  # the item of each layer
        self.names: dict[int, list[str]] = {}  # the names of the items that run each layer
        self.outputs: dict[str, None] = {}  # names of what leaves the network, or is read in a way a spec cannot state

    def written(self) -> list[SpecItem]:
        """All items; the last ones read what leaves the network, and what only left-out operations read."""
        items = self.items
        for number, use in enumerate(self.uses):
            operation = self.operations[number]
            if number in self.views and (self.states_step or (use == "written" and operation.kind == "view")):
                use = "passed through"
            elif self.states_step and (
                operation.kind == "input"
                or operation.work is not None
                or (operation.part is not None and (use == "written" or number in self.read))
            ):
                use = "written"
            elif self.states_step and use == "left out":
                use = "passed through"
            if use == "written":
                self.at.append([self._written(number, operation)])
            else:
                self.at.append([] if use == "left out" else self._passed(operation))
        # Layers that no norm alone reads, although no item reads them: their readers are left out, or outside.
        unread = [names[0] for index, names in self.names.items()
                  if self.layers[index].norm_follows is False and items.read.isdisjoint(names)]  # fmt: skip
        # The reader of specs takes what no entry reads for an output, except a convolution without an input.
        alone = {item["name"] for item in self.convs.values() if "input" not in item}
        read = items.read | alone | set(unread)
        items.sink(_HANDED_OUT, [name for name in self.outputs if name in read])
        items.sink(READ_ON, [name for name in unread if name not in items.read])
        for index, names in self.names.items():
            if self.layers[index].norm_follows is None and not items.read.isdisjoint(names):
                raise CannotWire("what reads some of the layers is not known")
        return items.written

    def _learning(self) -> Mapping[int | None, Mapping[str, bool]]:
        """What is stated of norms that do not learn as what they read, which the reader of specs assumes."""
        stated = defaultdict[int | None, dict[str, bool]](dict)
        arrives, frozen = gradients(self.operations), list[bool]()
        for number, operation in enumerate(self.operations):
            if operation.layer is not None:
                frozen.append(self.layers[operation.layer].frozen)
            elif _work_kind(operation) == "linear":
                frozen.append(operation.frozen)
            else:
                frozen.append(bool(operation.inputs) and all(frozen[index] for index in operation.inputs))
                if frozen[-1] and arrives[number] and operation.learns:
                    frozen[-1], stated[number] = False, {"frozen": False}
                elif not frozen[-1] and operation.frozen and operation.work is not None and operation.work.weights:
                    frozen[-1], stated[number] = True, {"frozen": True}
        return stated

    def _views(self) -> tuple[set[int], set[int]]:
        """The views that only linear layers and layer norms read; in a spec, these read the map itself.

        So do, the second, activations between a vector and its linear layers, and the copy that a view may need.
        """
        views, vectors = set[int](), set[int]()
        operations = self.operations
        readers = grouped((index, number) for number, operation in enumerate(operations) for index in operation.inputs)
        for number, reading in sorted(readers.items(), reverse=True):  # what reads an operation decides on it
            operation = operations[number]
            is_free = operation.kind in ("reshape", "view") and operation.work is None and operation.part is None
            feeds_linear = all(at in vectors or operations[at].kind == "linear" for at in reading)
            if is_free and (
                (feeds_linear and operation.kind == "view")
                or all(at in views or _work_kind(operations[at]) in _OF_CHANNELS for at in reading)
            ):
                views.add(number)
            elif feeds_linear and (operation.kind == "view" or _is_activation(operation)):
                vectors.add(number)
        return views, vectors

    def _passed(self, operation: Operation) -> list[Shape]:
        """The shapes that stand for a tensor without an item: those that stand for its inputs."""
        shapes = _distinct([shape for index in operation.inputs for shape in self.at[index]])
        return shapes if len(shapes) <= _MOST_PASSED else [self._sized(operation, "reshape", shapes)]

    def _written(self, number: int, operation: Operation) -> Shape:
        """Writes the item of an operation; returns the shape that stands for its tensor."""
        if operation.layer is not None:
            shape = self._conv(number, operation, operation.layer)
        else:
            shape = self._carrier(number, operation)
            own = operation.work.kind if self.states_step and operation.work is not None else "product"
            if self.uses[number] == "written" and operation.kind == "reshape" and own not in _OPAQUE:
                # Its word says that it keeps channels, or begins some, and layers here have them.
                shape = self._fixed(shape)
        if operation.output and operation.kind not in ("input", "reshape"):
            self.outputs[shape.source] = None
        return shape

    def _fixed(self, shape: Shape) -> Shape:
        """The shape as a view of stated sizes, which keep what it reads and hands on as wide as it is."""
        sizes = {axis: getattr(shape, axis) for axis in ("C", *_AXES[(shape.dims or 2) - 1])}
        return self._stated(f"{shape.source} view", "reshape", sizes, [shape])

    def _carrier(self, number: int, operation: Operation) -> Shape:
        """Writes the item of an operation that is no convolution, if it needs one."""
        kind, axes = operation.kind, self.channels.axes
        if kind == "input":
            return self._input(number, operation)
        inputs = [shape for index in operation.inputs for shape in self.at[index]]
        work = operation.work if self.states_step else None
        if kind == "reshape" and _work_kind(operation) == "group norm" and len(inputs) == 1:
            # Without groups it says nothing of channels, but what it does to layouts costs convolutions their time.
            return self._checked(work, self.items.put(operation.name, "groupnorm", inputs, self.learning[number]))
        if kind == "channel_pool" and len(inputs) == 1:
            return self._checked(work, self.items.put(operation.name, kind, inputs))
        keeps = keeps_channels(operation, axes[number], [axes[index] for index in operation.inputs])
        if self.states_step and kind in _ONE_INPUT:  # of tensors that were joined along an axis which no spec has
            keeps = keeps and {shape.C for shape in inputs} <= {None, operation.C}
        if keeps and (work is None or not (kind in ("add", "concat") or any(_parts_read(work, inputs)))):
            try:
                shape = self._keeping(number, operation, work, inputs)
            except InputFault:  # the network's own reader accepts sizes that do not fit together; a spec does not
                pass
            else:
                return self._resizing(operation, work, shape) if kind == "resize" else shape
        if work is not None:
            shape, sizes = self._opaque(number, work, inputs), {"C": operation.C, **_positions(operation)}
            moved = any(getattr(shape, axis) != size for axis, size in sizes.items())  # joined along no channels
            as_many = elements_of(shape) == self._N * prod(size or 0 for size in sizes.values())
            if moved and as_many and kind in ("add", "resize"):
                shape = self._stated(f"{shape.source} view", "reshape", sizes, [shape])
            return shape
        return self._sized(operation, "linear" if kind == "linear" else "reshape", inputs)

    def _keeping(self, number: int, operation: Operation, work: Work | None, inputs: list[Shape]) -> Shape:
        """Writes an operation that keeps channels, with the groups that it has over them."""
        kind, name, shape = operation.kind, operation.name, inputs[0]
        if work is not None and kind in ("identity", "batchnorm") and operation.groups == 1:
            layer = self.operations[operation.inputs[0]].layer
            if kind == "batchnorm" and layer is not None and self.layers[layer].norm_follows:
                return shape  # it stands behind its convolution already
            word, fields = _word_of(work), {**self._heads(work), **self.learning[number]}
            if work.kind == "group norm" and kind == "identity":
                fields = {"groups": 1, **fields}  # without groups its channels could not change
            elif work.kind == "group norm":
                word = "instancenorm"
                if work.op == "group_norm" and operation.C is not None:  # torch.onnx's, over a row for each group
                    word, fields = "groupnorm", {"groups": operation.C, **fields}
            return self._checked(work, self.items.put(name, word, inputs, fields))
        if kind == "split":
            fields = {"groups": operation.factor}
            if work is None:
                return self.items.put(name, "channel_split", inputs, fields)
            if work.kind != "copy":
                return self._checked(work, self.items.put(name, "glu", inputs))
            if work.writes == elements_of(inputs[0]):  # all parts at once
                copied = self._checked(work, self.items.put(f"{name} copy", "copy", inputs))
                return self.items.put(name, "channel_split", [copied], fields)
            part = self.items.put(f"{name} part", "channel_split", inputs, fields)
            return self.items.put(name, "copy", [part])
        if kind == "channel_shuffle":
            return self._checked(work, self.items.put(name, kind, inputs, {"groups": operation.factor}))
        joined = inputs if kind == "concat" else _distinct(inputs)
        if kind in ("add", "concat") and len(joined) > 1:
            shape = self.items.put(name, kind, joined)
        elif kind in ("pixel_shuffle", "pixel_unshuffle"):
            shape = self.items.put(name, kind, inputs, {"scale": operation.factor})
        if operation.groups > 1:
            shape = self.items.put(name, "groupnorm", [shape], {"groups": operation.groups, **self.learning[number]})
        return shape

    def _resizing(self, operation: Operation, work: Work | None, shape: Shape) -> Shape:
        """Writes an operation that changes no sizes but those of positions."""
        name, sizes = operation.name, _positions(operation)
        fields = _dims(len(sizes), shape.dims)
        if _work_kind(operation) == "copy":
            if more := _added(shape, sizes):
                return self.items.put(name, "pad", [shape], {**fields, "padding": more})
            if work is not None and (steps := _steps(shape, sizes)):
                return self.items.put(name, "downsample", [shape], {**fields, "scale": compact(steps)})
        is_view = operation.work is None and self.states_step
        if is_view and elements_of(shape) == elements_of(replace(shape, **{"D": 1, "H": 1, **sizes})):
            return shape  # of the same elements, which other operations read as they are
        op = _POOLS.get(work.kind, "") if work is not None else "crop" if self.states_step else ""
        return self._resized(name, shape, sizes, op)

    def _input(self, number: int, operation: Operation) -> Shape:
        """Writes an input of the network; one whose sizes are unknown, as it is no map, as a vector of its elements."""
        readers = (one for one in self.operations if self.states_step and one.work is not None and number in one.inputs)
        if operation.C is None and (reader := next(readers, None)) is not None and reader.work is not None:
            at = reader.inputs.index(number)
            operation = replace(operation, C=self._of_image(sum(reader.work.reads[at : at + 1])), H=1, W=1)
        return self._sized(operation, "input", ())

    def _of_image(self, elements: int) -> int:
        """The elements of one image. Raises CannotWork where they are not as many for each."""
        if not self._N or not elements or elements % self._N:
            raise CannotWork
        return elements // self._N

    def _heads(self, work: Work) -> dict[str, int]:
        """The key `heads` of an attention, if it has several."""
        heads = self._of_image(work.product[0]) if work.kind == "attention" else 1
        return {"heads": heads} if heads > 1 else {}

    def _checked(self, work: Work | None, shape: Shape) -> Shape:
        """The shape of the item written last. Raises CannotWork where the reader does not find the same work in it."""
        found = self.items.work
        if work is not None and (
            found is None
            or (found.kind, found.product, found.writes) != (work.kind, work.product, work.writes)
            or abs(sum(found.reads) - sum(work.reads)) > max(_ABOUT * sum(work.reads), _FEW)
        ):
            raise CannotWork
        return shape

    def _with_channels(self, shape: Shape, C: int) -> Shape:
        """The shape as a view of C channels, unless it has them."""
        if shape.C == C:
            return shape
        elements = self._of_image(elements_of(shape))
        if elements % C:
            raise CannotWork
        return self._view(shape, C, elements // C)

    def _view(self, shape: Shape, C: int, H: int = 1, name: str = "") -> Shape:
        sizes = {"C": C, "H": H, "W": 1}
        return self._stated(f"{name or shape.source} view", "reshape", sizes, [shape])

    def _opaque(self, number: int, work: Work, inputs: list[Shape]) -> Shape:
        """Writes an operation whose channels nobody follows, over views of what it reads. Raises CannotWork."""
        if not inputs or 0 in map(elements_of, inputs):
            raise CannotWork
        for at, count in enumerate(_parts_read(work, inputs)):
            if count:
                inputs[at] = self._view(inputs[at], self._of_image(count))
        operation, kind, product, shape = self.operations[number], work.kind, work.product, inputs[0]
        name = operation.name
        if kind == "copy" and number not in self.vectors:
            shape = self._sized(replace(operation, part=None), "reshape", [shape], work.writes)
            return self.items.put(name, "copy", [shape])
        if kind == "linear" and len(product) == 4:
            shape = self._linear(operation, work, shape)
        elif kind == "attention" and len(product) == 4 and len(inputs) in (1, 3):
            heads = self._heads(work)
            inputs = [self._with_channels(shape, heads.get("heads", 1) * product[3]) for shape in inputs]
            shape = self.items.put(name, "attention", inputs, heads)
        elif kind == "reduce":
            pooled = self._with_channels(shape, self._of_image(work.writes))
            if pooled is shape and operation.kind == "reshape":  # as many results as channels, which they are not
                pooled = self._fixed(shape)
            shape = self.items.put(name, "global_pool", [pooled])
        elif kind == "product":
            batch = self._of_image(product[0]) if len(product) == 4 else 0
            shape = self._sized(operation, "matmul", inputs, work.writes, {"heads": batch} if batch > 1 else {})
        elif kind in ("max pool", "pool", "resize"):
            shape = self._resized(name, shape, _positions(operation), _POOLS[kind])
        elif kind == "concat" or (
            len(inputs) > 1 and (kind in ("add", "multiply") or (kind == "activation" and 0 not in work.reads))
        ):
            if kind == "concat" and len(inputs) == 1 and elements_of(inputs[0]) == work.writes:
                return self.items.put(name, "copy", inputs)  # of one tensor, as a dense block begins
            shape = self._joined(name, work, inputs)
            if kind == "activation":  # of two tensors, such as their maximum
                work = replace(work, kind="add")
            elif kind == "concat" and len(inputs) == 1:
                work = replace(work, kind="copy")
        else:
            widths = [width for width in (work.weights // 2, work.weights) if width]
            if kind == "layer norm" and widths and shape.C not in widths:
                shape = self._with_channels(shape, widths[0])
            elif kind not in ("layer norm", "copy") and elements_of(shape) != work.writes:  # a vector with a parameter
                shape = self._view(shape, self._of_image(work.writes))
            shape = self.items.put(name, _word_of(work), [shape], self.learning[number])
        return self._checked(work, shape)

    def _linear(self, operation: Operation, work: Work, shape: Shape) -> Shape:
        """Writes a linear layer, which reads all of a map or each position of it."""
        _, rows, C, K = work.product
        of_map = rows == self._N and elements_of(shape) == rows * K
        read = shape if of_map else self._with_channels(shape, K)
        if read is shape and operation.kind == "reshape" and self.uses[operation.inputs[0]] == "written":
            read = self._fixed(shape)
        axes = _AXES[(read.dims or 2) - 1]
        sizes = {"C": C, **{axis: 1 if of_map else getattr(read, axis) for axis in axes}}
        stated = {} if work.weights > C * K else {"bias": False}
        if operation.frozen:
            stated["frozen"] = True
        return self._stated(operation.name, "linear", sizes, [read], stated=stated)

    def _joined(self, name: str, work: Work, inputs: Sequence[Shape]) -> Shape:
        """Writes a sum, a product or a concatenation of tensors, over views of them where their sizes do not fit."""
        word = work.kind if work.kind == "concat" else "mul" if work.kind == "multiply" else "add"
        if len(inputs) == 1:  # a concatenation with a parameter, as a class token is
            read, written = self._of_image(elements_of(inputs[0])), self._of_image(work.writes)
            C = gcd(read, written)
            flat = self._view(inputs[0], C, read // C, name)
            return self.items.put(name, "pad", [flat], {"padding": [0, (written - read) // C, 0, 0]})
        try:
            fits = elements_of(after({"name": name, "op": word}, inputs, None)[0]) == work.writes
        except InputFault:
            fits = False
        if not fits:
            counts = [self._of_image(elements_of(shape)) for shape in inputs]
            shared = min(counts)
            inputs = [self._with_channels(shape, count if word == "concat" else shared)
                      for shape, count in zip(inputs, counts, strict=True)]  # fmt: skip
        return self.items.put(name, word, inputs)

    def _sized(
        self, operation: Operation, op: str, inputs: Sequence[Shape], elements: int = 0,
        stated: Mapping[str, Any] = NO_FIELDS,
    ) -> Shape:  # fmt: skip
        """Writes an item that states the sizes that it hands on."""
        if op == "reshape" and not inputs:
            inputs = [self.items.nothing(_dims_of(operation))]
        elif op == "reshape" and operation.part is not None:
            op = "split" if operation.part.op in SPLITS else "slice"
        sizes = {"C": _size(operation.C), **_positions(operation)}
        if not elements:
            elements = operation.part.writes if operation.part is not None else sum(map(elements_of, inputs))
        stands = elements == self._N * prod(size or 0 for size in sizes.values())
        if self.states_step and not stands and op != "input" and len(inputs) == 1:
            sizes = {"C": self._of_image(elements), "H": 1, "W": 1}  # it has more axes, or another batch
        return self._stated(operation.name, op, sizes, inputs, operation.where, stated)

    def _stated(
        self, name: str, op: str, sizes: Mapping[str, int | None], inputs: Sequence[Shape], where: str = "",
        stated: Mapping[str, Any] = NO_FIELDS,
    ) -> Shape:  # fmt: skip
        known = {axis: size for axis, size in sizes.items() if size is not None}
        distinct = inputs if op == "matmul" else _distinct(inputs)
        dims = len(sizes) - 1  # all but C
        fields = _dims(dims, distinct[0].dims if distinct else None) | known | dict(stated)
        return self.items.put(name, op, distinct, fields, where)

    def _resized(self, name: str, shape: Shape, sizes: Mapping[str, int | None], op: str = "") -> Shape:
        """Writes an item that resizes `shape`, unless it has these sizes and `op` is no pool; returns the new shape."""
        is_same = len(sizes) == shape.dims and all(getattr(shape, axis) == size for axis, size in sizes.items())
        if is_same and op in ("", "crop"):
            return shape
        fields = _dims(len(sizes), shape.dims)
        if not op and all(size == 1 for size in sizes.values()):
            return self.items.put(name, "global_pool", [shape], fields)
        written = [UNKNOWN if size is None else size for size in sizes.values()]
        return self.items.put(name, op or "resize", [shape], {**fields, "size": compact(written)})

    def _conv(self, number: int, operation: Operation, index: int) -> Shape:
        """Writes a run of a layer, and the norm if that alone reads it; returns the shape behind both."""
        layer, runs = self.layers[index], self.names.setdefault(index, [])
        incoming = self.at[operation.inputs[0]][0] if operation.inputs else None
        source = None if incoming is None else self._fitting(layer, incoming, self.edges.get(index), again=bool(runs))
        if runs:
            read = source or self.items.nothing(layer.dims)
            name = self.items.put(layer.name, AGAIN, [read], {"weights": runs[0]}).source
        else:
            name = self._first(layer, index, source, operation.weights)
        runs.append(name)
        if source is not None and self._seems_copied(layer, self.edges.get(index), source):
            self.convs[index]["copied"] = False
        shape = replace(written_by(layer, index), source=name)
        if layer.norm_follows:
            at, word, title = self.norms.get(number), "batchnorm", f"{name} norm"
            if at is not None:
                title = self.operations[at].name
                word = "instancenorm" if _work_kind(self.operations[at]) == "group norm" else word
            shape = self.items.put(title, word, [shape], self.learning[at])
        return shape

    def _first(self, layer: ConvLayer, index: int, source: Shape | None, weights: int | None) -> str:
        """Writes the item of a layer's first run; returns its name."""
        entry = dict(self.entries[index])
        if weights is not None and weights in self.convs:
            other = self.layers[weights]
            if (layer.C, layer.K, layer.groups) == (other.C, other.K, other.groups):
                entry["weights"] = self.convs[weights]["name"]
        if source is None and None in (layer.C, layer.H, layer.W) and self.items.written:
            source = self.items.nothing(layer.dims)  # without an input it would read the item before it
        if source is not None:
            entry |= _dims(layer.dims, source.dims)
        calls = entry.pop("calls", 1)
        if calls != self.runs[index]:
            entry["calls"] = calls
        self.convs[index] = self.items.conv(index, entry, source)
        name: str = entry["name"]
        return name

    def _seems_copied(self, layer: ConvLayer, edge: Edge | None, source: Shape) -> bool:
        """Whether layouts differ along an edge on which nothing is copied; then the spec has to state that."""
        layouts = {self.layers[producer].layout for producer in source.producers} - {"auto", layer.layout}
        return layer.layout != "auto" and bool(layouts) and (edge is None or edge.copied is False)

    def _fitting(self, layer: ConvLayer, shape: Shape, edge: Edge | None, *, again: bool) -> Shape:
        """The shape that the layer reads, changed where needed so that the spec's reader sees what the network's saw.

        It must neither learn a size that was unknown, nor find a mismatch where there was none, nor miss one.
        """
        stated = layer if again or edge is None else edge
        arriving = {axis: getattr(stated, axis) for axis in ("C", *_AXES[layer.dims - 1])}
        wrong = [axis for axis, size in arriving.items() if not _fits(getattr(layer, axis), size, getattr(shape, axis))]
        same_batch = again or layer.N is not None or shape.N is None
        if not wrong and same_batch:
            return shape
        sizes = {axis: None if getattr(layer, axis) is None else size for axis, size in arriving.items()}
        C = sizes.pop("C")
        if "C" not in wrong and same_batch:
            return self._resized(f"{layer.name} input", shape, sizes)
        self.outputs[shape.source] = None
        nothing = self.items.nothing(layer.dims)
        return self._stated(f"{layer.name} input", "reshape", {"C": C, **sizes}, [nothing])


def _work_kind(operation: Operation) -> WorkKind | None:
    return None if operation.work is None else operation.work.kind


def _is_activation(operation: Operation) -> bool:
    return operation.kind == "identity" and operation.groups == 1 and _work_kind(operation) in (None, "activation")


_ABOUT = 0.01  # of the elements that an operation reads: a parameter of it is not counted
_FEW = 65_536  # elements, which take no time beside the launch
_OF_CHANNELS: frozenset[WorkKind] = frozenset(("linear", "layer norm", "attention", "reduce"))
# Whose items keep no channels; what reads a mean over positions is a classifier.
_OPAQUE: frozenset[WorkKind] = frozenset(("product", "group norm", "copy", "reduce"))
_POOLS: Mapping[WorkKind, str] = {"max pool": "maxpool", "pool": "avgpool", "resize": "resize"}
_WORDS: Mapping[WorkKind, str] = {
    "batch norm": "norm", "frozen norm": "frozen_batchnorm", "layer norm": "layernorm", "group norm": "groupnorm",
    "softmax": "softmax", "add": "add", "attention": "attention", "copy": "copy",
}  # fmt: skip


def _parts_read(work: Work, inputs: Sequence[Shape]) -> list[int]:
    """The elements that an operation reads of each of its inputs, where that is a part of it; 0 otherwise."""
    if len(work.reads) != len(inputs) or work.kind == "attention":
        return []
    return [count if count != elements_of(shape) else 0 for count, shape in zip(work.reads, inputs, strict=True)]


def _added(shape: Shape, sizes: Mapping[str, int | None]) -> list[int]:
    """The elements that a padding adds before and behind each axis; empty where an axis shrinks, or is unknown.

    Which side it is on changes no size.
    """
    more = []
    for axis, size in sizes.items():
        before = getattr(shape, axis)
        if before is None or size is None or size < before:
            return []
        more.append(size - before)
    return [side for extra in more for side in (extra // 2, extra - extra // 2)] if any(more) else []


def _steps(shape: Shape, sizes: Mapping[str, int | None]) -> list[int]:
    """The stride along each axis of a slice that leaves elements of these sizes; empty where there is none."""
    pairs = [(getattr(shape, axis), size) for axis, size in sizes.items()]
    steps = [before // size for before, size in pairs if before and size and size <= before]
    fits = len(steps) == len(pairs) and all(
        before // step == size for (before, size), step in zip(pairs, steps, strict=True)
    )
    return steps if fits else []


def _word_of(work: Work) -> str:
    """The op in a spec for work that keeps all sizes."""
    own = normalised(work.op)[0]
    if work.kind == "multiply":  # by a learned factor of each channel, or by one number
        return "scale" if work.in_32_bits else "mul"
    return own if work.kind == "activation" and own in ACTIVATIONS else _WORDS.get(work.kind, "activation")


def _fits(own: int | None, expected: int | None, arriving: int | None) -> bool:
    """Whether a size that arrives in the spec agrees with the layer's `own` as the network's, `expected`, does."""
    if own is None or expected not in (None, own):
        return arriving == (None if own is None else expected)
    return arriving in (None, own)


def _distinct(shapes: Sequence[Shape]) -> list[Shape]:
    return list({shape.source: shape for shape in shapes}.values())


def _dims_of(operation: Operation) -> int:
    return min(max(operation.dims, 1), 3)  # a spec knows no others


def _positions(operation: Operation) -> dict[str, int | None]:
    """The sizes of an operation's tensor along its axes of space."""
    return {axis: _size(getattr(operation, axis)) for axis in _AXES[_dims_of(operation) - 1]}


def _size(size: int | None) -> int | None:
    """The size, or None where a spec cannot hold it."""
    return size if size is not None and 1 <= size <= MAX_SIZE else None


def _dims(dims: int, arriving: int | None) -> dict[str, int]:
    """The key `dims`, where it has to be stated because it is not that of the input, or not 2."""
    return {} if dims == (arriving or 2) else {"dims": dims}


_NORMALISED = "read by batch normalisation alone"
_LONGEST_COMMENT = 100


def spec_text(network: Network) -> str:
    """The network as the YAML text of a spec."""
    names, layer_names = _names(network.layers)
    entries = [entry_of(layer, name) for layer, name in zip(network.layers, layer_names, strict=True)]
    defaults = shared_by(entries)
    lines = ["version: 1"]
    if network.targets:
        lines.append(f"target: {flow(list(network.targets))}")
    if network.mode is not None:
        lines.append(f"mode: {network.mode}")
    runtime = _runtime(network.runtime)
    if runtime:
        lines.append(f"runtime: {flow(runtime)}")
    if defaults:
        lines.append(f"defaults: {flow(defaults)}")
    if not entries:
        return "\n".join([*lines, "layers: []", ""])
    remarks = []
    items: list[SpecItem] = []
    states_step = False
    try:
        if network.operations:
            items, states_step = wired(network, entries, names, defaults.get("N"))
    except CannotWire as reason:
        remarks.append(f"# What connects the layers is left out: {reason}.")
        names, _ = _names(network.layers)
    if not items:
        items = _alone(network, entries, names)
    copying = sum(layer.copies_input for layer in network.layers)
    if copying:
        what = f"{copying} layers copy" if copying > 1 else "one layer copies"
        remarks.append(f"# Left out, with its time and its CL402: {what} what arrives into the layout that it runs in.")
    ops = {item.mapping.get("op") for item in items}
    # Group norms are written for the channels that they tie, and would say that all of a step is there.
    if not states_step and (network.whole or "groupnorm" in ops):
        lines.append("whole_step: false  # operations that a spec cannot state are left out")
    elif states_step and not any(normalised(op)[0] in OF_STEPS for op in ops if op is not None):
        lines.append("whole_step: true")
    lines.append("layers:")
    lines += [f"  - {flow(item.mapping)}{_comment(item, network)}" for item in items]
    return "\n".join([*remarks, *lines, ""])


def _names(layers: Sequence[ConvLayer]) -> tuple[SpecNames, list[str]]:
    """The names of a spec, which has those of the layers, and the name of each layer."""
    names = SpecNames()
    return names, [names.give(layer.name, f"layer{number}") for number, layer in enumerate(layers, start=1)]


def _alone(network: Network, entries: Sequence[dict[str, Any]], names: SpecNames) -> list[SpecItem]:
    """The layers without edges. Sinks read those of which it is known whether a norm follows, to state that."""
    items = SpecItems(names, None)
    for index, (layer, entry) in enumerate(zip(network.layers, entries, strict=True)):
        stated = None not in (layer.C, layer.H, layer.W)  # otherwise it would read the layer before it
        items.conv(index, entry, None if stated else items.nothing(layer.dims))
    for op, title, follows in (("batchnorm", _NORMALISED, True), ("identity", READ_ON, False)):
        read = [entry["name"] for layer, entry in zip(network.layers, entries, strict=True)
                if layer.norm_follows is follows]  # fmt: skip
        items.sink(title, read, op)
    return items.written


def _comment(item: SpecItem, network: Network) -> str:
    """A comment with the layer's place in the user's code, or with the operation that a reshape stands for."""
    if item.layer is None:
        return f"  # {clean(item.where)[:_LONGEST_COMMENT]}" if item.where.isprintable() and item.where else ""
    place = network.layers[item.layer].locate()
    if place.line is None or place.path == network.path or not place.path.isprintable():
        return ""
    return f"  # {clean_path(place.path)}:{place.line}"


def _runtime(runtime: Runtime) -> Mapping[str, Any]:
    """The settings that differ from the default."""
    usual = Runtime()
    changed = {
        name: value
        for name in runtime.__struct_fields__
        if name != "spans" and (value := getattr(runtime, name)) is not None and value != getattr(usual, name)
    }
    return {name: str(value) if isinstance(value, Version) else value for name, value in changed.items()}
