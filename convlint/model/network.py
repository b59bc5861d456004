"""A network: its convolutions, what arrives at each, and what runs it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from convlint.model.equality import equal_without
from convlint.model.layer import ConvLayer, Mode
from convlint.model.location import Span
from convlint.model.operation import Operation
from convlint.model.runtime import Runtime


class Edge(Struct, frozen=True, kw_only=True):
    """What arrives at a convolution: the shape its producers deliver, after any pooling, concatenation and so on.

    `consumer` and `producers` index `Network.layers`; `C`, `D`, `H`, `W` are None where unknown. `source` names
    the layer or operation that the consumer is written to read from. `copied` says whether the tensor is written once
    more in another layout on the way, None where nobody knows: then it is where the layouts differ. `changed_at` is
    the operation that changes it, and its line.
    """

    consumer: int
    producers: tuple[int, ...]
    source: str
    C: int | None
    H: int | None
    W: int | None
    D: int | None = 1
    copied: bool | None = None
    changed_at: str = ""
    inherent: bool = False  # what changes it is an operator that writes NCHW whatever it reads


@equal_without("spans", "code_lines")
class Network(Struct, frozen=True, kw_only=True):
    """Everything that a reader found in one input."""

    path: str
    layers: tuple[ConvLayer, ...]
    edges: tuple[Edge, ...] = ()
    operations: tuple[Operation, ...] = ()  # in order; empty where the reader knows of no dataflow
    runtime: Runtime = field(default_factory=Runtime)
    mode: Mode | None = None
    targets: tuple[str, ...] = ()
    spans: Mapping[str, Span] = field(default_factory=dict)
    settings_path: str | None = None  # where the runtime, the mode and the targets stand, if not in `path`
    unbatched: str = ""  # the sizes of an image that its convolutions get without a batch, which is N = 1
    stored: bool = False  # read from a file that another engine than the one that wrote it may run
    weights_only: bool = False  # the file has no more than weights, so that nobody knows what arrives at a layer
    code_lines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of the user's modules, by path
    source_lines: tuple[str, ...] | None = None  # the text that locations point into, where there is one
