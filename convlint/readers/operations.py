"""Operations that readers find between layers, and the channels that flow through them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from convlint.model.layer import ConvLayer
from convlint.model.network import Operation, OperationKind
from convlint.readers.bounded_json import MOST_TEXT

# The nearest convolutions before a value. A long residual stream collects one per block: the latest will do.
MOST_PRODUCERS = 64


class ValueOrigin:
    """Where a value comes from.

    `producers`: indices of the nearest convolutions upstream. `learned`: a linear layer lies in between, so that
    gradients must flow back. `fault`: why the value's shape cannot be trusted. `direct`: the convolution that
    wrote this very value, with `past` the origin of everything computed from it.
    """

    __slots__ = ("direct", "fault", "learned", "past", "producers")

    def __init__(
        self, producers: tuple[int, ...] = (), *, learned: bool = False, fault: str | None = None,
        direct: ConvOutput | None = None,
    ) -> None:  # fmt: skip
        self.producers, self.learned, self.fault, self.direct = producers, learned, fault, direct
        self.past: ValueOrigin = self if direct is None else ValueOrigin(producers, learned=learned, fault=fault)


class ConvOutput(Struct):
    """What happens to the output of one convolution: the operations that read it, whether it is a head."""

    readers: list[str] = field(default_factory=list)
    head: bool = True


class ConvFlow:
    """The convolutions met so far, in order."""

    def __init__(self) -> None:
        self.written: list[ConvOutput] = []

    def convolution(self, source: ValueOrigin | None, fault: str | None = None) -> tuple[int, ValueOrigin]:
        """A convolution that reads `source`: its index, and the origin of what it writes."""
        if source is not None:
            self.consume(source)
            fault = fault or source.fault
        index = len(self.written)
        written = ConvOutput()
        self.written.append(written)
        return index, ValueOrigin((index,), fault=fault, direct=written)

    def consume(self, source: ValueOrigin) -> None:
        """Another layer with weights reads this value, so its producers are no heads."""
        for index in source.producers:
            self.written[index].head = False

    def merge(self, origins: Iterable[ValueOrigin], fault: str | None = None, *, learned: bool = False) -> ValueOrigin:
        """The origin of a value computed from several."""
        producers: dict[int, None] = {}
        for origin in origins:
            producers.update(dict.fromkeys(origin.producers))
            learned = learned or origin.learned
            fault = fault or origin.fault
        kept = sorted(producers)
        for index in kept[:-MOST_PRODUCERS]:
            self.written[index].head = False
        return ValueOrigin(tuple(kept[-MOST_PRODUCERS:]), learned=learned, fault=fault)


def is_first(source: ValueOrigin | None) -> bool:
    """Whether a convolution reads the network's input: no layer with weights lies before it."""
    return source is None or not (source.producers or source.learned)


Sizes = tuple[int | None, ...]  # of a tensor, the batch first


class Operations:
    """The operations met so far, in order."""

    def __init__(self) -> None:
        self._found: list[Operation] = []
        self._apart: dict[int, str] = {}
        self._weights: dict[int, int] = {}  # call -> the first that has the same weights

    def add(
        self, kind: OperationKind, name: str, inputs: Sequence[int], shape: Sizes | None, axis: int, *,
        factor: int = 1, groups: int = 1, where: str = "",
    ) -> int:  # fmt: skip
        """The number of a new operation whose tensor has that shape, with its channels along `axis`."""
        self._found.append(
            Operation(
                kind=kind, name=name[:MOST_TEXT], inputs=tuple(inputs), factor=factor, groups=groups,
                where=where[:MOST_TEXT], **_sizes(shape, axis),
            )
        )  # fmt: skip
        return len(self._found) - 1

    def opaque(self, name: str, where: str, inputs: Sequence[int], shape: Sizes | None = None, axis: int = 1) -> int:
        """The number of a new operation that may do anything."""
        return self.add("reshape", name, inputs, shape, axis, where=where)

    def convolution(self, call: int, source: int | None) -> int:
        """The number of a new convolution, the reader's call of that number; `source` None: it reads nothing known."""
        self._found.append(Operation(kind="conv", inputs=() if source is None else (source,), layer=call))
        return len(self._found) - 1

    def set_apart(self, call: int, why: str) -> None:
        """What this call reads and writes shall not change; `why` begins with the layer: "conv1, whose weights ..."."""
        self._apart.setdefault(call, why[:MOST_TEXT])

    def share(self, calls: Sequence[int]) -> None:
        """These calls have the same weights, at several sizes: they have one width."""
        self._weights.update((call, calls[0]) for call in calls[1:])

    def hand_out(self, number: int) -> None:
        """The tensor of this operation leaves the network."""
        self._found[number] = replace(self._found[number], output=True)

    def finished(self, layers: Sequence[ConvLayer], layer_of: Sequence[int]) -> tuple[Operation, ...]:
        """All of them, the convolutions with the sizes of their layers; `layer_of` maps calls to these."""
        done: list[Operation] = []
        now: list[int] = []
        for operation in self._found:
            inputs = tuple([now[index] for index in operation.inputs])
            if operation.layer is None:
                done.append(replace(operation, inputs=inputs))
            else:
                done += self._convolution(replace(operation, inputs=inputs), layers, layer_of, len(done))
            now.append(len(done) - 1)
        return tuple(done)

    def _convolution(
        self, operation: Operation, layers: Sequence[ConvLayer], layer_of: Sequence[int], number: int
    ) -> list[Operation]:
        """The convolution that call is; between opaque operations where it is set apart, which nothing goes through."""
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


def one_element(before: Sizes, after: Sizes, axis: int) -> int | None:
    """Where a reshape puts the channels, which were along `axis`; None unless all other axes have one element.

    More than one channel, and their number is that of the elements of each image: they can only be in order.
    """
    C = before[axis] if axis < len(before) else None
    others = [size for position, size in enumerate(before) if position not in (0, axis)]
    wide = [position for position, size in enumerate(after) if position and size != 1]
    if C in (None, 1) or set(others) - {1} or not after or before[0] != after[0]:
        return None
    return wide[0] if len(wide) == 1 and after[wide[0]] == C and wide[0] in (1, len(after) - 1) else None


def _sizes(shape: Sizes | None, axis: int) -> dict[str, Any]:
    """C, D, H, W and `dims` of a tensor; a vector for each image is a map of one element."""
    if shape is None or not 2 <= len(shape) <= 5 or not 0 < axis < len(shape):
        return {"D": None}
    space = [size for position, size in enumerate(shape) if position not in (0, axis)]
    D, H, W = ([1] * 3 + space)[-3:]
    return {"C": shape[axis], "D": D, "H": H, "W": W, "dims": len(space) or 2}
