"""What happens to tensors between, before and after the convolutions, as far as their channels and sizes tell."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from convlint.model.equality import equal_without
from convlint.model.location import Span

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
