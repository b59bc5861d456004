"""A network: its layers, the operations between them, and what flows along its edges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from convlint.model.layer import ConvLayer, Mode, equal_without
from convlint.model.location import Span
from convlint.model.runtime import Runtime

# Each is a word of the spec as well. `identity` is anything that keeps all sizes; `resize` anything that changes D, H
# and W alone, such as pooling; `add` anything elementwise that reads several tensors; `reshape` whatever else.
OperationKind = Literal[
    "input", "conv", "identity", "batchnorm", "resize", "add", "concat", "pixel_shuffle", "pixel_unshuffle", "reshape"
]


@equal_without("path", "span")
class Operation(Struct, frozen=True, kw_only=True):
    """One step of a network; it hands on one tensor, of `C` channels and D×H×W, None where unknown.

    `inputs` index the operations before it whose tensors it reads, in order. `layer` is the convolution's index in
    `Network.layers`: several operations may run one layer; `weights` is the first layer that has the same weights,
    where another has (sizes make them two layers). `factor` is that of a pixel shuffle, for each axis;
    `groups` must divide the channels (a group normalisation's, say). `output`: its tensor leaves the network. `where`
    says for people what a `reshape` is ("aten::view at net.py:31"). `sized`: its own module is made for so many
    channels (it has a norm's weights, say); `path` and `span` are where that is constructed, if that is known and in
    the user's own code.
    """

    kind: OperationKind
    name: str = ""
    inputs: tuple[int, ...] = ()
    layer: int | None = None
    weights: int | None = None
    C: int | None = None
    D: int | None = 1
    H: int | None = None
    W: int | None = None
    dims: int = 2
    factor: int = 1
    groups: int = 1
    output: bool = False
    where: str = ""
    sized: bool = False
    path: str = ""
    span: Span | None = None


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
