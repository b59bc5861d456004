"""Which convolutions a value comes from: the bookkeeping behind edges, first layers, heads and norms.

A reader walks its graph in order and tells the flow, for every operation, what it reads and writes; operations
that are not convolutions pass on what they read.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

# The nearest convolutions before a value. A long residual stream collects one per block: the latest will do.
MOST_PRODUCERS = 64


class Origin:
    """Where a value comes from.

    `producers`: indices of the nearest convolutions upstream. `learned`: a linear layer lies in between, so that
    gradients must flow back. `fault`: why the value's shape cannot be trusted. `direct`: the convolution that
    wrote this very value, with `past` the origin of everything computed from it.
    """

    __slots__ = ("direct", "fault", "learned", "past", "producers")

    def __init__(
        self, producers: tuple[int, ...] = (), *, learned: bool = False, fault: str | None = None,
        direct: Written | None = None,
    ) -> None:  # fmt: skip
        self.producers, self.learned, self.fault, self.direct = producers, learned, fault, direct
        self.past: Origin = self if direct is None else Origin(producers, learned=learned, fault=fault)


class Written(Struct):
    """What happens to the output of one convolution: the operations that read it, whether it is a head."""

    readers: list[str] = field(default_factory=list)
    head: bool = True


class Flow:
    """The convolutions met so far, in order."""

    def __init__(self) -> None:
        self.written: list[Written] = []

    def convolution(self, source: Origin | None, fault: str | None = None) -> tuple[int, Origin]:
        """A convolution that reads `source`: its index, and the origin of what it writes."""
        if source is not None:
            self.consume(source)
            fault = fault or source.fault
        index = len(self.written)
        written = Written()
        self.written.append(written)
        return index, Origin((index,), fault=fault, direct=written)

    def consume(self, source: Origin) -> None:
        """Another layer with weights reads this value, so its producers are no heads."""
        for index in source.producers:
            self.written[index].head = False

    def merge(self, origins: Iterable[Origin], fault: str | None = None, *, learned: bool = False) -> Origin:
        """The origin of a value computed from several."""
        producers: dict[int, None] = {}
        for origin in origins:
            producers.update(dict.fromkeys(origin.producers))
            learned = learned or origin.learned
            fault = fault or origin.fault
        kept = sorted(producers)
        for index in kept[:-MOST_PRODUCERS]:
            self.written[index].head = False
        return Origin(tuple(kept[-MOST_PRODUCERS:]), learned=learned, fault=fault)


def is_first(source: Origin | None) -> bool:
    """Whether a convolution reads the network's input: no layer with weights lies before it."""
    return source is None or not (source.producers or source.learned)
