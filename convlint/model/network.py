"""A network: its convolutions, what arrives at each, and what runs it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from convlint.model.equality import equal_without
from convlint.model.layer import ConvLayer, Mode
from convlint.model.location import Span
from convlint.model.runtime import Runtime


class Edge(Struct, frozen=True, kw_only=True):
    """What arrives at a convolution: the shape its producers deliver, after any pooling, concatenation and so on.

    `consumer` and `producers` index `Network.layers`; `C`, `D`, `H`, `W` are None where unknown. `source` names
    the layer or operation that the consumer is written to read from.
    """

    consumer: int
    producers: tuple[int, ...]
    source: str
    C: int | None
    H: int | None
    W: int | None
    D: int | None = 1


@equal_without("spans")
class Network(Struct, frozen=True, kw_only=True):
    """Everything that a reader found in one input."""

    path: str
    layers: tuple[ConvLayer, ...]
    edges: tuple[Edge, ...] = ()
    runtime: Runtime = field(default_factory=Runtime)
    mode: Mode | None = None
    targets: tuple[str, ...] = ()
    spans: Mapping[str, Span] = field(default_factory=dict)
    source_lines: tuple[str, ...] | None = None  # the text that locations point into, where there is one
