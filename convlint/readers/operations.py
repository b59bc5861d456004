"""What readers of graphs record: where each value comes from, and the operations between layers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from convlint.model.layer import AXES, ConvLayer
from convlint.model.network import BATCH_NORMS, Operation, OperationKind, Work, WorkKind
from convlint.readers.bounded_json import MOST_PRODUCERS, MOST_TEXT


class ValueOrigin:
    """Where a value comes from.

    `producers`: indices of the nearest convolutions upstream. `learned`: a layer with weights other than a convolution
    lies upstream, so that gradients must flow back. `fault`: why the value's shape cannot be trusted. `direct`: the
    convolution that wrote this very value. `past`: the origin of everything that is computed from it.
    """

    __slots__ = ("direct", "fault", "learned", "past", "producers")

    def __init__(
        self, producers: tuple[int, ...] = (), *, learned: bool = False, fault: str | None = None,
        direct: ConvOutput | None = None,
    ) -> None:  # fmt: skip
        self.producers, self.learned, self.fault, self.direct = producers, learned, fault, direct
        self.past: ValueOrigin = self if direct is None else ValueOrigin(producers, learned=learned, fault=fault)


class ConvOutput(Struct):
    """The output of one convolution: the operations that read it, and whether no layer with weights does."""

    readers: list[str] = field(default_factory=list)
    head: bool = True


class ConvFlow:
    """The convolutions met so far, in order, and how values flow between them."""

    def __init__(self) -> None:
        self.written: list[ConvOutput] = []

    def convolution(self, source: ValueOrigin | None, kind: str, fault: str | None = None) -> tuple[int, ValueOrigin]:
        """Adds a convolution of this kind that reads `source`; returns its index and the origin of its output."""
        if source is not None:
            self.read((source,), kind)
            self._consume(source)
            fault = fault or source.fault
        index = len(self.written)
        written = ConvOutput()
        self.written.append(written)
        return index, ValueOrigin((index,), fault=fault, direct=written)

    def read(self, origins: Iterable[ValueOrigin], kind: str) -> list[ValueOrigin]:
        """Notes that an operation of this kind reads these values; returns the origins of what each leads to."""
        past = []
        for origin in origins:
            if origin.direct is not None:
                origin.direct.readers.append(kind)
            past.append(origin.past)
        return past

    def operation(
        self, origins: Iterable[ValueOrigin], kind: str, fault: str | None = None, *, learned: bool = False
    ) -> ValueOrigin:
        """The origin of the output of an operation of this kind, which is no convolution and reads these values.

        `learned`: it has weights, so that the producers of these values are not heads.
        """
        past = self.read(origins, kind)
        for origin in past if learned else ():
            self._consume(origin)
        return self.merge(past, fault, learned=learned)

    def _consume(self, source: ValueOrigin) -> None:
        for index in source.producers:
            self.written[index].head = False

    def merge(self, origins: Sequence[ValueOrigin], fault: str | None = None, *, learned: bool = False) -> ValueOrigin:
        """The origin of a value that is computed from several, none of which a convolution has just written."""
        if len(set(origins)) == 1 and fault is None and (origins[0].learned or not learned):
            return origins[0]
        producers: dict[int, None] = {}
        for origin in origins:
            producers.update(dict.fromkeys(origin.producers))
            learned = learned or origin.learned
            fault = fault or origin.fault
        indices = sorted(producers)
        for index in indices[:-MOST_PRODUCERS]:  # dropped, so that it is not known whether a later layer reads it
            self.written[index].head = False
        return ValueOrigin(tuple(indices[-MOST_PRODUCERS:]), learned=learned, fault=fault)


def is_first(source: ValueOrigin | None) -> bool:
    """Whether a convolution reads the network's input: no layer with weights lies before it."""
    return source is None or not (source.producers or source.learned)


Shape = tuple[int | None, ...]  # of a tensor, the batch first; None where a size is unknown
# The axis of a tensor's channels, 0 where it has none; or two, while a shuffle is under way: that of equal parts of
# them, and that in each.
ChannelPlace = int | tuple[int, int]


class Effect(Struct, frozen=True):
    """What an operator of any format does to feature maps; `axis` is that of the channels in what it writes."""

    kind: OperationKind
    axis: ChannelPlace = 1
    factor: int = 1
    groups: int = 1


# Kinds of operations that messages name by what the model calls them, since they begin an axis of channels.
NAMED: frozenset[OperationKind] = frozenset(("view", "linear", "channel_pool", "channel_shuffle", "split"))


class Operations:
    """The operations met so far, in order."""

    def __init__(self) -> None:
        self._worked = self._sizeless = 0  # operations that do something; those of unknown size
        self._met: list[Operation] = []
        self._apart: dict[int, str] = {}  # call -> why its channels cannot change
        self._weights: dict[int, int] = {}  # call -> the first call with the same weights
        self.multiplied: dict[str, list[int]] = {}  # the name of a constant -> what multiplies with it, or is opaque

    def add(
        self, effect: Effect, name: str, inputs: Sequence[int], shape: Shape | None, where: str = "",
        work: Work | None = None,
    ) -> int:  # fmt: skip
        """Adds an operation whose tensor has that shape; returns its number."""
        self._met.append(
            Operation(
                kind=effect.kind, name=name[:MOST_TEXT], inputs=tuple(inputs), factor=effect.factor,
                groups=effect.groups, where=where[:MOST_TEXT], work=work, **sizes_of(shape, effect.axis),
            )
        )  # fmt: skip
        return len(self._met) - 1

    @property
    def whole(self) -> bool:
        """Whether the work of nearly all operations is known; the rest is not priced."""
        return MOST_SIZELESS * self._worked >= self._sizeless

    @property
    def notes(self) -> tuple[str, ...]:
        """A note that the time of a step is unknown, where the sizes of too many operations are."""
        if self.whole:
            return ()
        works = [operation.work for operation in self._met if operation.work is not None]
        operators = dict.fromkeys(work.op for work in works if work.kind == "unknown" and not work.writes)
        shown = ", ".join(list(operators)[:_NAMED])
        return (f"step unknown: {self._sizeless} of {self._worked} operations have unknown sizes ({shown})",)

    def opaque(
        self, name: str, where: str, inputs: Sequence[int], shape: Shape | None = None, work: Work | None = None
    ) -> int:
        """Adds an operation that may do anything; returns its number."""
        return self.add(Effect("reshape"), name, inputs, shape, where, work)

    def worked(
        self, kind: WorkKind, op: str, reads: Sequence[Shape | None], writes: Shape | None,
        constants: Sequence[Shape] = (), *, inner: int | None = None,
    ) -> Work:  # fmt: skip
        """The work of an operation, from the shapes of its maps, its result and its constants.

        `inner`: the number of elements that a product sums over. An operation of unknown size is not priced.
        """
        self._worked += 1
        ranks = _LEAST_RANK.get(kind, 0)
        small = writes is not None and min([len(writes), *(len(shape or ()) for shape in reads[:1])]) < ranks
        if writes is None or small or any(shape is None or None in shape for shape in (*reads, writes)):
            self._sizeless += 1
            return Work(kind="unknown", op=op[:MOST_TEXT], reads=(0,) * len(reads))
        own = constants[:2] if kind in BATCH_NORMS else constants  # ONNX has running statistics behind them
        weights = sum(map(elements, own)) if kind in WITH_WEIGHTS else 0
        product: tuple[int, ...] = ()
        if kind in ("linear", "product"):
            columns, rows = writes[-1] or 1, elements(writes) // (writes[-1] or 1)
            K = inner if inner is not None else (reads[0] or (1,))[-1] or 1
            batch = elements(writes[:-2]) if kind == "product" else 1
            left = next((shape for shape in constants if len(shape) == 2 and shape[-1] != columns), None)
            if kind == "linear" and inner is None and left is not None and left[0] == writes[-2 % len(writes)]:
                batch, K = elements(writes[:-2]), left[1] or 1  # the weights are the left matrix
            product = (batch, rows // max(batch, 1), columns, K)
        return Work(
            kind=kind, op=op[:MOST_TEXT], reads=tuple([elements(shape or ()) for shape in reads]),
            writes=elements(writes), weights=weights, product=product,
        )  # fmt: skip

    def convolution(self, call: int, source: int | None) -> int:
        """Adds the convolution of call number `call`; returns its number. `source` None: an unknown input."""
        self._met.append(Operation(kind="conv", inputs=() if source is None else (source,), layer=call))
        return len(self._met) - 1

    def set_apart(self, call: int, why: str) -> None:
        """Fixes the channels that this call reads and writes; `why` begins with the layer: "conv1, whose ..."."""
        self._apart.setdefault(call, why[:MOST_TEXT])

    @property
    def count(self) -> int:
        """How many operations there are so far."""
        return len(self._met)

    def freeze(self, begin: int) -> None:
        """Notes that the weights of all operations from number `begin` on learn nothing."""
        self._met[begin:] = [replace(operation, frozen=True) for operation in self._met[begin:]]

    def share(self, calls: Sequence[int]) -> None:
        """Notes that these calls have the same weights, and so the same widths, whatever the sizes of their maps."""
        self._weights.update((call, calls[0]) for call in calls[1:])

    def hand_out(self, number: int) -> None:
        """Notes that the tensor of this operation leaves the network."""
        self._met[number] = replace(self._met[number], output=True)

    def share_matrices(self) -> None:
        """Makes linear layers that have the same weights opaque, so that nothing behind or before them changes."""
        self._met, self.multiplied = with_shared_weights(self._met, self.multiplied.values()), {}

    def finished(self, layers: Sequence[ConvLayer], layer_of: Sequence[int]) -> tuple[Operation, ...]:
        """All operations, the convolutions with the sizes of their layers; `layer_of` maps calls to layers."""
        done: list[Operation] = []
        now: list[int] = []  # the new number of each operation: a call that is set apart becomes three
        self.share_matrices()
        for operation in self._met:
            inputs = tuple([now[index] for index in operation.inputs])
            if operation.layer is None:
                done.append(replace(operation, inputs=inputs))
            else:
                done += self._convolution(replace(operation, inputs=inputs), layers, layer_of, len(done))
            now.append(len(done) - 1)
        return tuple(with_whole_shuffles(done))

    def _convolution(
        self, operation: Operation, layers: Sequence[ConvLayer], layer_of: Sequence[int], number: int
    ) -> list[Operation]:
        """The operation of a call; if it is set apart, between opaque ones, which pass on no change of width."""
        assert operation.layer is not None
        why = self._apart.get(operation.layer, "")
        index = layer_of[operation.layer]
        layer = layers[index]
        name = layer.name[:MOST_TEXT]
        result: list[Operation] = []
        inputs = operation.inputs
        if why or not inputs:
            where = why or f"the input of {name}"
            result.append(
                Operation(kind="reshape", name=f"input of {name}", inputs=inputs, C=layer.C, D=layer.D, H=layer.H,
                          W=layer.W, dims=layer.dims, where=where[:MOST_TEXT])
            )  # fmt: skip
            inputs = (number,)
        first = layer_of[self._weights.get(operation.layer, operation.layer)]
        written: dict[str, Any] = {"C": layer.K, "D": layer.Z, "H": layer.P, "W": layer.Q, "dims": layer.dims}
        result.append(
            replace(
                operation,
                name=name,
                inputs=inputs,
                layer=index,
                weights=None if first == index else first,
                output=operation.output and not why,
                **written,
            )
        )
        if why:
            result.append(
                Operation(kind="reshape", name=f"output of {name}", inputs=(number + 1,), output=operation.output,
                          where=why, **written)
            )  # fmt: skip
        return result


# Of all operations. A classifier behind a reshape that is made for another batch is one; with many, no step is known.
MOST_SIZELESS = 0.05
_NAMED = 4  # operators that a note names
_LEAST_RANK: Mapping[WorkKind, int] = {"linear": 1, "product": 2}  # of what they read and write
# Operations that have parameters of their own.
WITH_WEIGHTS: frozenset[WorkKind] = frozenset((*BATCH_NORMS, "layer norm", "group norm", "linear", "embedding"))


def with_shared_weights(operations: Sequence[Operation], sharing: Iterable[Sequence[int]]) -> list[Operation]:
    """The operations; linear layers whose weights others read too are opaque. `sharing` has the readers of each."""
    result = list(operations)
    for numbers in sharing:
        for number in numbers if len(numbers) > 1 else ():
            result[number] = replace(result[number], kind="reshape")
    return result


def with_whole_shuffles(operations: Sequence[Operation]) -> list[Operation]:
    """The operations; a shuffle of channels does the copy that one of its steps makes, where it makes none itself."""
    result = list(operations)
    for number, operation in enumerate(operations):
        if operation.kind == "channel_shuffle" and operation.work is None:
            step = operation.inputs[0]
            while result[step].kind == "identity" and result[step].work is None:
                step = result[step].inputs[0]
            if result[step].copies_all and result[step].kind == "identity":
                result[number] = replace(operation, work=result[step].work)
                result[step] = replace(result[step], work=None)
    return result


def flattens(before: Shape, after: Shape) -> bool:
    """Whether a reshape makes one vector of all elements of each image."""
    return len(after) == 2 and before[0] == after[0] and None not in before[1:] and after[1] == elements(before[1:])


def elements(shape: Shape) -> int:
    """The number of elements of a tensor; an unknown size counts as 0."""
    return prod([size or 0 for size in shape])


def axis_fields(
    sizes: Sequence[int | None], taps: Sequence[int | None], strides: Sequence[int], begin: Sequence[int | None],
    end: Sequence[int | None], dilations: Sequence[int], output_padding: Sequence[int],
) -> dict[str, Any]:  # fmt: skip
    """The fields of a ConvLayer that belong to its 1 to 3 axes of space; each argument has a value for every axis.

    `begin` and `end` are the padding; `with_output` computes the sizes of the output.
    """
    dims = len(taps)
    fields: dict[str, Any] = {"H": 1, "R": 1} if dims == 1 else {}
    columns = (sizes, (None,) * dims, taps, strides, begin, end, dilations, output_padding)
    for names, values in zip(AXES[3 - dims :], zip(*columns, strict=True), strict=True):
        fields.update(zip(names, values, strict=True))
    return fields


def reshaped(before: Shape, after: Shape, axis: int) -> int | None:
    """The axis to which a reshape moves the channels from `axis`; None where it may take them apart.

    It keeps them behind the batch or on the last axis, or adds and removes axes of one element alone. One channel has
    to be the only axis of one element: any other may stand in its place.
    """
    if before == after and None not in before[1:]:
        return axis
    if before[axis : axis + 1] == (1,) and not before[1:].count(1) == after[1:].count(1) == 1:
        return None
    for past in (1,) if axis == 1 else (len(after) - 1,) if axis == len(before) - 1 else ():
        known = len(before) > axis and len(after) > past and None not in (*before[1:], *after[1:])
        if known and before[0] == after[0] and before[axis] == after[past]:
            return past
    wide, then = ([at for at, size in enumerate(shape) if size != 1] for shape in (before, after))
    sizes, left = [before[at] for at in wide], [after[at] for at in then]
    if axis not in wide or sizes != left or None in sizes[1:]:
        return None
    return then[wide.index(axis)] or None


def past_convolution(place: ChannelPlace, before: Shape | None, after: Shape | None, strides: Sequence[int]) -> int:
    """The axis of space along which a convolution reads the channels and keeps their number; 0 if there is none."""
    if not isinstance(place, int) or before is None or after is None or place - 2 not in range(len(strides)):
        return 0
    sizes = {*before[place : place + 1], *after[place : place + 1]}
    return place if strides[place - 2] == 1 and len(sizes) == 1 and sizes.isdisjoint((None, 1)) else 0


def sizes_of(shape: Shape | None, axis: ChannelPlace) -> dict[str, Any]:
    """C, D, H, W and `dims` of a tensor; a vector for each image counts as a map of one element."""
    if shape is None or not all(0 < each < len(shape) for each in axes_of(axis)):
        return {"D": None}
    _, C, *space = channels_second(shape, axis)
    if len(space) > 3:
        return {"D": None}
    D, H, W = ([1] * 3 + space)[-3:]
    return {"C": C, "D": D, "H": H, "W": W, "dims": len(space) or 2}


def axes_of(place: ChannelPlace) -> tuple[int, ...]:
    """The axes that have the channels."""
    return (place,) if isinstance(place, int) else place


def channels_second(shape: Shape, place: ChannelPlace) -> Shape:
    """The sizes with that of the channels, which are at `place`, behind the batch."""
    if place == 1:
        return shape
    places = axes_of(place)
    sizes = [shape[axis] for axis in places]
    known = [size for size in sizes if size is not None]
    others = [size for axis, size in enumerate(shape) if axis and axis not in places]
    return (shape[0], prod(known) if len(known) == len(sizes) else None, *others)


def parted(before: Shape, after: Shape) -> Effect | None:
    """The effect of a reshape that divides the channels behind the batch in equal parts; None of any other."""
    if len(after) < 3 or None in (*before, *after) or after[0] != before[0] or 1 in after[1:3]:
        return None
    whole = channels_second(after, (1, 2))
    return Effect("identity" if whole == before else "resize", (1, 2)) if whole[1] == before[1] else None


def moved_by(place: ChannelPlace, order: Sequence[int]) -> ChannelPlace | None:
    """Where a permutation puts the channels.

    Those on two axes may change places behind the batch. None where they come first, or the axes are not known.
    """
    if sorted(order) != list(range(len(order))):
        return None
    if isinstance(place, int):
        return order.index(place) or None
    others = [axis for axis in range(len(order)) if axis not in place]
    first, second = map(order.index, place)
    kept = [axis for axis in order if axis not in place] == others
    return (first, second) if kept and {first, second} == {1, 2} else None


def joined_again(before: Shape, place: tuple[int, int], after: Shape) -> Effect | None:
    """The effect of a reshape that joins two axes of channels behind the batch; None of any other.

    Of the two sizes the smaller one is taken for the number of parts, which stays as it is whatever the channels do.
    """
    whole = channels_second(before, place)
    if None in (*whole, *after) or after[:2] != whole[:2]:
        return None
    if place == (1, 2):
        return Effect("identity" if after == whole else "resize")
    return Effect("channel_shuffle", factor=min(before[1] or 0, before[2] or 0))
