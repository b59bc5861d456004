"""Groups of channels: which layers have to change their widths together, and which widths cannot change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd, lcm
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from convlint.model.layer import ConvLayer
from convlint.model.network import Network, Operation, Work
from convlint.model.text import Text

if TYPE_CHECKING:
    from fractions import Fraction

    Scale = int | Fraction  # how many channels each channel of a group makes somewhere (after a pixel shuffle: 1/4)
    Part = tuple[int, Scale]  # a group, and its scale
    Axis = tuple[Part, ...]  # the channels of a tensor, as the groups that they come from, in order

THE_INPUT = Text("it is the network's input")


class GroupReader(Struct, frozen=True):
    """A layer that reads a group; each channel of the group makes `times` channels of the layer's C."""

    layer: int
    times: Scale


class ChannelGroup(Struct, frozen=True, kw_only=True):
    """Channels of several tensors whose number is the same everywhere, so that it can only change everywhere.

    `writers` are the layers with this number as K, or so many times it as `Channels.times` says; `readers` those with
    it in their C; `depthwise` are the readers whose K and groups follow their C. `inputs` and `linear` are operations:
    the network's inputs with these channels, and the linear layers that read or write them. A new width has to be a
    multiple of `multiple_of`. `fixed` has the reasons why it cannot change at all; empty where it can.
    """

    width: int
    writers: tuple[int, ...] = ()
    readers: tuple[GroupReader, ...] = ()
    depthwise: tuple[int, ...] = ()
    inputs: tuple[int, ...] = ()
    linear: tuple[int, ...] = ()
    multiple_of: int = 1
    fixed: tuple[Text, ...] = ()

    @property
    def layers(self) -> tuple[int, ...]:
        """All layers that change with it, in order."""
        return tuple(sorted({*self.writers, *(reader.layer for reader in self.readers)}))

    @property
    def only_input(self) -> bool:
        """Whether being the network's input is all that fixes it: an input can be padded with zeros."""
        return self.fixed == (THE_INPUT,)


class Channels(Struct, frozen=True, kw_only=True):
    """The groups of channels of a network, and the groups in the tensor of each operation (None: unknown)."""

    groups: tuple[ChannelGroup, ...]
    axes: tuple[Axis | None, ...]
    written: Mapping[int, int]  # layer -> the group that its K is, or is a multiple or a part of
    times: Mapping[int, Scale]  # layer -> how many channels of K each of that group makes, where that is not one
    read: Mapping[int, Axis]  # layer -> the groups in its C
    parts: Mapping[int, Mapping[int, Scale]]  # `read` added up: layer -> group -> channels in C for each one

    def changes(self, layers: Sequence[ConvLayer], widths: Mapping[int, int]) -> dict[int, dict[str, int]]:
        """The new C, K and groups of each layer that changes when the groups in `widths` get these widths."""
        changed = {index for number in widths for index in self.groups[number].layers}
        return {index: self.changes_of(index, layers[index], widths) for index in sorted(changed)}

    def changes_of(self, index: int, layer: ConvLayer, widths: Mapping[int, int]) -> dict[str, int]:
        """The new C, K and groups of one layer."""
        result = {}
        if self.written.get(index) in widths:
            result["K"] = int(widths[self.written[index]] * self.times.get(index, 1))
        parts = self.parts.get(index, {})
        # The search for widths asks this very often: go through the smaller of the two mappings.
        fewer, more = (widths, parts) if len(widths) < len(parts) else (parts, widths)
        changed = [number for number in fewer if number in more]
        if changed and layer.C is not None:
            added = sum((widths[number] - self.groups[number].width) * parts[number] for number in changed)
            result["C"] = C = layer.C + int(added)
            if layer.depthwise and layer.C and layer.K:
                result |= {"K": layer.K // layer.C * C, "groups": C}
        return result

    def widened(self, network: Network, widths: Mapping[int, int]) -> Network:
        """The network with the groups in `widths` that wide; its channels are grouped as before."""
        changes = self.changes(network.layers, widths)
        layers = tuple(
            replace(layer, **changes[index]) if index in changes else layer
            for index, layer in enumerate(network.layers)
        )
        edges = tuple(
            replace(edge, C=layers[edge.consumer].C)
            if edge.C is not None and edge.C == network.layers[edge.consumer].C
            else edge
            for edge in network.edges
        )
        operations: list[Operation] = []
        scales: list[float] = []
        for operation, axis in zip(network.operations, self.axes, strict=True):
            C = operation.C if axis is None else _width(axis, self.groups, widths)
            scales.append(C / operation.C if C and operation.C else 1.0)
            work = operation.work
            if work is not None and any(scales[index] != 1 for index in (*operation.inputs, -1)):
                work = _scaled(work, [scales[index] for index in operation.inputs], scales[-1])
            part = operation.part
            if part is not None and scales[-1] != 1:
                part = _scaled(part, [scales[index] for index in operation.inputs], scales[-1])
            operations.append(replace(operation, C=C, work=work, part=part))
        return replace(network, layers=layers, edges=edges, operations=tuple(operations))


def _scaled(work: Work, reads: Sequence[float], writes: float) -> Work:
    """The work on so many times the elements of each input and of the result."""
    read = tuple(round(count * scale) for count, scale in zip(work.reads, reads, strict=False))
    weights, product = round(work.weights * writes), work.product
    if work.kind == "linear" and len(product) == 4:  # of a weight for each pair, and a bias
        batch, M, N, K = product
        product = (batch, M, round(N * writes), round(K * reads[0]))
        weights = product[2] * product[3] + round((work.weights - N * K) * writes)
    return replace(work, reads=read, writes=round(work.writes * writes), weights=weights, product=product)


def reshaping(operation: Operation) -> Scale:
    """How many channels a pixel shuffle or unshuffle makes of one."""
    if operation.kind == "pixel_unshuffle":
        return operation.factor**2
    from fractions import Fraction  # which loads decimal: few networks have one

    return Fraction(1, operation.factor**2)


def axis_of_part(axis: Axis, count: int) -> Axis:
    """The channels of one of `count` equal parts of a tensor: its own groups, or so much of all of them."""
    size = len(axis) // count
    if size and axis == axis[:size] * count:
        return axis[:size]
    from fractions import Fraction

    return tuple((number, scale * Fraction(1, count)) for number, scale in axis)


def mixed_axis(axis: Axis) -> Axis:
    """The channels of parts of one width, in any order."""
    (number, scale), *_ = axis
    return ((number, scale * len(axis)),)


def least_width(alignment: int, scale: Scale) -> int:
    """The least width of which `scale` makes a multiple of `alignment`."""
    parts = alignment * scale.denominator
    return parts // gcd(parts, scale.numerator)


def _width(axis: Axis, groups: Sequence[ChannelGroup], widths: Mapping[int, int]) -> int:
    return int(sum(widths.get(number, groups[number].width) * scale for number, scale in axis))


# A network that concatenates all that came before has axes with very many parts. An axis beyond these limits is opaque.
MOST_PARTS = 4096  # of one axis
MOST_PARTS_OF_ALL = 100_000  # of all axes together; DenseNet-201 has 6,148
MOST_REASONS = 3  # kept for one axis


def channels_of(network: Network) -> Channels:
    """The groups of channels of a network; none where its reader does not record operations."""
    walk = _Walk(network)
    for number, operation in enumerate(network.operations):
        axis = walk.operation(number, operation)
        if operation.output and axis is not None:
            walk.fix(axis, Text("the network hands it out"))
        walk.axes.append(axis)
    return walk.result()


class _Walk:
    """One pass over the operations, with segments for groups: a new one for each width that begins, later united.

    The segments are a union-find structure; those of one set become a group in `result`.
    """

    def __init__(self, network: Network) -> None:
        self.layers = network.layers
        self.axes: list[Axis | None] = []
        self.width: list[int] = []
        self.parent: list[int] = []
        self.ratio: list[Scale] = []  # how many channels of a segment there are for each of its parent
        self.reasons: list[tuple[int, Text]] = []
        self.fixed: dict[int, tuple[Axis, set[Text]]] = {}  # by the id of an axis, which is kept alive with it
        self.divisors: list[tuple[int, int]] = []
        self.inputs: list[tuple[int, int]] = []
        self.linear: list[tuple[int, int]] = []
        self.written: dict[int, Axis] = {}
        self.read: dict[int, Axis] = {}
        self.parts = 0

    def operation(self, number: int, operation: Operation) -> Axis | None:
        """The axis of the tensor that an operation hands on; None where its channels are unknown."""
        kind = operation.kind
        axes = [self.axes[index] for index in operation.inputs]
        if kind == "input":
            begun = self._fresh(operation.C)
            if begun is not None:
                self.inputs.append((begun[0][0], number))
            return self._fixed(begun, THE_INPUT)
        if kind == "conv" and operation.layer is not None:
            begun = self._conv(operation.layer, axes[0] if axes else self._alone(operation.layer))
            if operation.weights is not None:
                self._tie(operation.weights, operation.layer)
            return begun
        known = [axis for axis in axes if axis is not None]
        if kind == "linear" and known:
            return self._linear(number, operation, known[0])
        if kind == "channel_pool" and known:  # of any number of channels
            return self._fixed(self._fresh(operation.C), Text("{name} makes it", name=_named(operation)))
        if axes and len(known) == len(axes) and kind != "reshape":
            axis = self._kept(operation, known)
            self.parts += 0 if axis is None else len(axis)
            if axis is not None and len(axis) <= MOST_PARTS and self.parts <= MOST_PARTS_OF_ALL:
                return axis
        return self._opaque(operation, known)

    def _kept(self, operation: Operation, axes: list[Axis]) -> Axis | None:
        """The axis of an operation that hands on the channels of its inputs; None where it has to be opaque."""
        kind, C = operation.kind, operation.C
        if len(axes) > 1 and kind not in ("add", "concat", "resize"):  # a resize may take the sizes of another tensor
            return None
        if kind == "concat":
            joined = tuple(part for axis in axes for part in axis)
            return joined if C in (None, self._of(joined)) else None
        if kind in ("pixel_shuffle", "pixel_unshuffle", "split"):
            if kind == "split":
                scaled = self._divided(axes[0], operation)
            else:
                by = reshaping(operation)
                scaled = tuple((number, scale * by) for number, scale in axes[0])
            is_whole = all((self.width[number] * scale).denominator == 1 for number, scale in scaled)
            return scaled if is_whole else None
        if kind == "channel_shuffle":
            return self._shuffled(axes[0], operation)
        if kind == "view":
            times, more = divmod(C or 0, self._of(axes[0]))
            return tuple((number, scale * times) for number, scale in axes[0]) if times and not more else None
        widest = max(map(self._of, axes))
        if C not in (None, widest):
            return None
        wide = [axis for axis in axes if self._of(axis) == widest]
        for axis in axes:
            if self._of(axis) != widest:  # one channel for all
                self.fix(axis, Text("{name} spreads it over other channels", name=_named(operation)))
        for axis in wide[1:]:
            self._equal(wide[0], axis, _named(operation))
        if operation.groups > 1:
            self._divisible(wide[0], operation.groups, _named(operation))
        return wide[0]

    def _divided(self, axis: Axis, operation: Operation) -> Axis:
        """The axis of one of several equal parts; where each is a tensor of its own, all of these have one width."""
        count = operation.factor
        size = len(axis) // count
        parts = [axis[at : at + size] for at in range(0, size * count, size or 1)] if len(axis) % count == 0 else []
        sizes = [self._sizes(part) for part in parts]
        if not parts or sizes != sizes[:1] * count:
            return axis_of_part(axis, count)
        for part in parts[1:]:
            self._equal(parts[0], part, _named(operation))
        return parts[0]

    def _shuffled(self, axis: Axis, operation: Operation) -> Axis | None:
        """The axis of channels taken in turn from equal parts, which all have one width, and are mixed from then on."""
        sizes = self._sizes(axis)
        if sizes != sizes[:1] * len(sizes):
            return None
        for part in axis[1:]:
            self._equal(axis[:1], (part,), _named(operation))
        mixed = mixed_axis(axis)
        self._divisible(mixed, operation.factor, _named(operation))
        return mixed

    def _opaque(self, operation: Operation, axes: list[Axis]) -> Axis | None:
        """A new axis, for an operation that may do anything; it and the inputs cannot change."""
        reason = Text("{name} depends on it", name=_named(operation))
        for axis in axes:
            self.fix(axis, reason)
        return self._fixed(self._fresh(operation.C), Text("{name} makes it", name=_named(operation)))

    def _linear(self, number: int, operation: Operation, axis: Axis) -> Axis | None:
        """The axis of a linear layer's output, which is its own, as that of a convolution is."""
        begun = self._fresh(operation.C)
        self.linear += [(segment, number) for segment, _ in (*axis, *(begun or ()))]
        for width in (axis, begun) if operation.frozen else ():
            self._fixed(width, Text("{name} is frozen, with weights of this width", name=_named(operation)))
        return begun

    def _alone(self, index: int) -> Axis | None:
        """The axis that a layer without a recorded input reads."""
        if index in self.read:
            return self.read[index]
        axis = self._fresh(self.layers[index].C)
        return self._fixed(axis, THE_INPUT) if self.layers[index].first else axis

    def _conv(self, index: int, axis: Axis | None) -> Axis | None:
        """The axis of a convolution's output: that of its input if it is depthwise, else one of its own."""
        layer = self.layers[index]
        if axis is not None and self._of(axis) != layer.C:
            self.fix(axis, Text("{name} does not fit it", name=layer.name))
            axis = None
        if axis is not None and index in self.read:
            self._equal(self.read[index], axis, layer.name)
        elif axis is not None:
            self.read[index] = axis
        stays = Text("{name} is frozen, with weights of this width", name=layer.name) if layer.frozen else None
        if stays is not None and axis is not None and not layer.first:  # an input may be filled up with zeros
            self.fix(axis, stays)
        if layer.depthwise and layer.C and layer.K is not None and layer.K % layer.C == 0:
            if axis is None:
                return self._fixed(
                    self._fresh(layer.K), Text("{name} reads channels that are not known", name=layer.name)
                )
            if layer.head:
                self.fix(axis, Text("{name} is a head: the task fixes it", name=layer.name))
            times = layer.K // layer.C
            return tuple((number, scale * times) for number, scale in axis)
        if layer.groups > 1 and axis is not None:
            self._divisible(axis, layer.groups, layer.name)
        if index not in self.written:
            begun = self._fresh(layer.K)
            if begun is None:
                return None
            self.written[index] = begun
            if layer.groups > 1:
                self._divisible(begun, layer.groups, layer.name)
            if layer.head:
                self.fix(begun, Text("{name} is a head: the task fixes it", name=layer.name))
            if stays is not None:
                self.fix(begun, stays)
        return self.written[index]

    def _tie(self, first: int, other: int) -> None:
        """Makes two layers with the same weights read the same number of channels, and write the same."""
        for axes in (self.read, self.written):
            if first in axes and other in axes:
                self._equal(axes[first], axes[other], self.layers[other].name)
            elif first in axes or other in axes:
                axis = axes[first if first in axes else other]
                self.fix(axis, Text("{name} has the same weights", name=self.layers[other].name))

    def _divisible(self, axis: Axis, groups: int, name: str) -> None:
        """Makes every part of an axis a multiple of `groups`, so that their sum is one."""
        for number, scale in axis:
            if self.width[number] * scale % groups:
                self.fix(axis, Text("{name} has {groups} groups across it", name=name, groups=groups))
                return
        for number, scale in axis:
            self.divisors.append((number, least_width(groups, scale)))

    def _fresh(self, width: int | None) -> Axis | None:
        if width is None:
            return None
        self.width.append(width)
        self.parent.append(len(self.parent))
        self.ratio.append(1)
        return ((len(self.parent) - 1, 1),)

    def _fixed(self, axis: Axis | None, reason: Text) -> Axis | None:
        if axis is not None:
            self.fix(axis, reason)
        return axis

    def fix(self, axis: Axis, reason: Text) -> None:
        """Notes that no part of an axis can change, with up to MOST_REASONS reasons."""
        reasons = self.fixed.setdefault(id(axis), (axis, set()))[1]
        if len(reasons) < MOST_REASONS and reason not in reasons:
            reasons.add(reason)
            self.reasons += [(number, reason) for number in {number: None for number, _ in axis}]

    def _equal(self, known: Axis, other: Axis, name: str) -> None:
        """Unites the parts of two axes, one by one; if these do not match, neither axis can change."""
        if known is other or self._sizes(known) == self._sizes(other):
            for (first, times), (second, others) in zip(known, other, strict=True):
                self._unite(first, times, second, others)
        else:
            for axis in (known, other):
                self.fix(axis, Text("{name} joins it with channels that are composed in another way", name=name))

    def _sizes(self, axis: Axis) -> list[Scale]:
        """How many channels each part of an axis has."""
        return [self.width[number] * scale for number, scale in axis]

    def _unite(self, first: int, times: Scale, second: int, others: Scale) -> None:
        """Unites two segments, so many channels of each of which are the same."""
        root, other = self.find(first), self.find(second)
        if root == other:
            return
        mine, theirs = times * self.ratio_of(first), others * self.ratio_of(second)
        self.parent[other] = root
        if mine != theirs:
            from fractions import Fraction

            self.ratio[other] = Fraction(mine) / Fraction(theirs)

    def _of(self, axis: Axis) -> int:
        return int(sum(self.width[number] * scale for number, scale in axis))

    def find(self, number: int) -> int:
        """The representative of the segments that are united with this one."""
        while (parent := self.parent[number]) != number:  # halves the path, so that the next search is shorter
            self.ratio[number] *= self.ratio[parent]
            self.parent[number] = number = self.parent[parent]
        return number

    def ratio_of(self, number: int) -> Scale:
        """How many channels of a segment there are for each of its representative."""
        ratio: Scale = 1
        while self.parent[number] != number:
            ratio *= self.ratio[number]
            number = self.parent[number]
        return ratio.numerator if ratio.denominator == 1 else ratio

    def result(self) -> Channels:
        """The groups, in the order in which they begin."""
        number_of: dict[int, int] = {}
        for segment in range(len(self.parent)):
            number_of.setdefault(self.find(segment), len(number_of))
        own = [number_of[self.find(segment)] for segment in range(len(self.parent))]
        ratios = [self.ratio_of(segment) for segment in range(len(self.parent))]

        def grouped(axis: Axis) -> Axis:
            return tuple([(own[segment], scale * ratios[segment]) for segment, scale in axis])

        count = len(number_of)
        written = {layer: own[axis[0][0]] for layer, axis in self.written.items()}
        times = {layer: by for layer, axis in self.written.items() if (by := ratios[axis[0][0]]) != 1}
        read = {layer: grouped(axis) for layer, axis in self.read.items()}
        writers: list[list[int]] = [[] for _ in range(count)]
        for layer, group in written.items():
            writers[group].append(layer)
        readers: list[dict[int, Scale]] = [{} for _ in range(count)]
        for layer, axis in read.items():
            for group, scale in axis:
                readers[group][layer] = readers[group].get(layer, 0) + scale
        multiple = [1] * count
        for segment, divisor in self.divisors:
            multiple[own[segment]] = lcm(multiple[own[segment]], least_width(divisor, ratios[segment]))
        for layer, by in times.items():
            multiple[written[layer]] = lcm(multiple[written[layer]], by.denominator)
        axes = tuple(None if axis is None else grouped(axis) for axis in self.axes)
        for known in (*axes, *read.values()):
            for group, scale in known or ():
                multiple[group] = lcm(multiple[group], scale.denominator)
        reasons: list[dict[Text, None]] = [{} for _ in range(count)]
        for segment, reason in self.reasons:
            reasons[own[segment]][reason] = None
        inputs, linear = ([list[int]() for _ in range(count)] for _ in range(2))
        for numbers, begun in ((inputs, self.inputs), (linear, self.linear)):
            for segment, operation in begun:
                numbers[own[segment]].append(operation)
        groups = tuple(
            ChannelGroup(
                width=self.width[root],
                writers=tuple(sorted(writers[group])),
                readers=tuple(GroupReader(*item) for item in sorted(readers[group].items())),
                depthwise=tuple(sorted(layer for layer in readers[group] if self._follows(layer))),
                inputs=tuple(inputs[group]),
                linear=tuple(dict.fromkeys(linear[group])),
                multiple_of=multiple[group],
                fixed=tuple(reasons[group]),
            )
            for root, group in number_of.items()
        )
        parts: dict[int, dict[int, Scale]] = {}
        for group, of_layers in enumerate(readers):
            for layer, by in of_layers.items():
                parts.setdefault(layer, {})[group] = by.numerator if by.denominator == 1 else by
        return Channels(groups=groups, axes=axes, written=written, times=times, read=read, parts=parts)

    def _follows(self, index: int) -> bool:
        layer = self.layers[index]
        return layer.depthwise and bool(layer.C) and layer.K is not None and layer.K % (layer.C or 1) == 0


def _named(operation: Operation) -> str:
    return operation.where or f"{operation.kind} {operation.name}".strip()
