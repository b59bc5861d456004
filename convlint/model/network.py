"""A network: its layers, the operations between them, and what flows along its edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import field
from msgspec.structs import replace

from convlint.model.estimates import Part
from convlint.model.layer import ConvLayer, Dtype, Mode, equal_without
from convlint.model.location import Span, WireRecord
from convlint.model.runtime import Runtime

# Each is an op of specs as well. `identity` is any operation that keeps all sizes; `resize` any that changes D, H and W
# alone, such as a pool; `add` any elementwise one on several tensors; `view` makes one vector of each map, or keeps
# it; `linear` multiplies all that it reads of an image, or of a pixel, with weights of its own; `channel_pool` makes
# one channel of all, such as their mean; `split` is one of `factor` equal parts of them; `channel_shuffle` takes one of
# each of `factor` equal parts in turn; `reshape` is any other.
OperationKind = Literal[
    "input", "conv", "identity", "batchnorm", "resize", "add", "concat", "pixel_shuffle", "pixel_unshuffle", "view",
    "linear", "channel_pool", "channel_shuffle", "split", "reshape",
]  # fmt: skip


# What an operation between convolutions does, as far as its time depends on that; `unknown` is what no reader knows. A
# `frozen norm` is a batch norm that takes stored statistics in training.
WorkKind = Literal[
    "batch norm", "frozen norm", "layer norm", "group norm", "activation", "add", "multiply", "concat", "copy",
    "max pool", "pool", "resize", "reduce", "softmax", "linear", "product", "attention", "embedding", "unknown",
]  # fmt: skip

BATCH_NORMS: Sequence[WorkKind] = ("batch norm", "frozen norm")

# Views that hand on all of what they read in parts, whose gradients are joined in one kernel. `tensor_split` and its
# kin are slices to autograd.
SPLITS = frozenset(("channelsplit", "chunk", "split", "split_with_sizes", "unbind"))

# A parameter of fp32 that is no scalar makes these fp32 under autocast, as ConvNeXt's layer scale does.
PROMOTED: frozenset[WorkKind] = frozenset(("add", "multiply"))
# What autocast runs in fp32 where a format knows no operators of PyTorch; it leaves an instance norm as it arrives.
IN_32_BITS: frozenset[WorkKind] = frozenset(("layer norm", "group norm", "softmax", "resize"))

PART_OF: Mapping[WorkKind, Part] = {
    "batch norm": "normalisation", "frozen norm": "normalisation", "layer norm": "normalisation",
    "group norm": "normalisation",
    "activation": "pointwise", "add": "pointwise", "multiply": "pointwise", "softmax": "pointwise",
    "concat": "copy", "copy": "copy", "embedding": "copy",
    "max pool": "pool", "pool": "pool", "resize": "pool", "reduce": "pool",
    "linear": "linear", "product": "linear", "attention": "attention", "unknown": "other",
}  # fmt: skip


class Work(WireRecord, frozen=True, kw_only=True, gc=False):
    """What one operation between convolutions reads and writes, in elements, and the products in it.

    `op` is the operator in the words of its format. `reads` has the elements of each of `Operation.inputs`, `writes`
    those of all results, `weights` those of parameters. `product`: (batch, M, N, K) of a matrix product; of attention
    (heads of all images, queries, keys, width). `in_32_bits`: autocast runs it so.
    """

    kind: WorkKind
    op: str
    reads: tuple[int, ...] = ()
    writes: int = 0
    weights: int = 0
    product: tuple[int, ...] = ()
    in_32_bits: bool = False


@equal_without("path", "span", "work", "part")
class Operation(WireRecord, frozen=True, kw_only=True):
    """An operation, which hands on one tensor, of `C` channels and D×H×W; None where unknown.

    `inputs` are the indices of the operations whose tensors it reads, in order. `layer` is a convolution's index in
    `Network.layers`; several operations may run one layer. `weights` is the first layer with the same weights, if they
    are shared by layers of different sizes. `factor` is that of a pixel shuffle, for each axis; `groups` (of a group
    normalisation) must divide the channels. `output`: its tensor leaves the network. `where` describes a `reshape` for
    people ("aten::view at net.py:31"). `sized`: its module is made for this number of channels, as a norm is; `path`
    and `span` are where that is constructed, if it is in the user's own code. `work` is what it costs beside the
    convolutions: None of these, and of what is no kernel (views, inputs) or is not told. `frozen`: weights that it has
    learn nothing; `detached`: no gradient goes back through it. `part`, of a view of some elements of a tensor: how
    many that has and the view hands on. No kernel makes it, but its gradient is written out in full.
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
    work: Work | None = None
    part: Work | None = None
    frozen: bool = False
    detached: bool = False

    @property
    def learns(self) -> bool:
        """Whether it has weights that learn."""
        has_weights = self.layer is not None or (self.work is not None and self.work.weights > 0)
        return has_weights and not self.frozen

    @property
    def copies_all(self) -> bool:
        """Whether it copies all of its one input, and does nothing else."""
        work = self.work
        return work is not None and work.kind == "copy" and len(self.inputs) == 1 and work.reads[0] == work.writes


class RecordedWork(WireRecord, frozen=True, kw_only=True, gc=False):
    """What the operators called `op` do with arguments of one size, and what they took in a step of a trace.

    `us` and `kernels` are of a step, of all `calls`; `moved` bytes and `flops` of one call. `gemm`: (M, N, K) of a
    single matrix product. `elements`: those that a max pool reads. `dtype` is that of a product, or of a batch norm in
    training. `strided`: it copies. Without `moved` nothing tells what it does. `predicted_us` is the model's on the GPU
    that it ran on, None where there is none.
    """

    part: Part
    op: str = ""
    us: float = 0.0
    kernels: float = 0.0
    calls: float = 0.0
    moved: int = 0
    flops: int = 0
    gemm: tuple[int, ...] = ()
    elements: int = 0
    dtype: Dtype | None = None
    strided: bool = False
    predicted_us: float | None = None


_NEARLY_ALL = 0.95  # of a part's time


class RecordedStep(WireRecord, frozen=True, kw_only=True):
    """A step of a trace: `works` beside and in its convolutions, and how many operations start kernels, forward.

    `dtypes` are those that the layers had, in their order; `in_nhwc`: most of them were. `span_us` is how long a marked
    step took on the host while it was recorded, which takes time itself; 0 where none is marked. Of another `mode` than
    its own it tells nothing.
    """

    works: tuple[RecordedWork, ...]
    operations: float
    mode: Mode
    gpu: str = ""  # that it ran on, or one like it; empty where none is known
    dtypes: tuple[Dtype | None, ...] = ()
    in_nhwc: bool = False
    span_us: float = 0.0

    @property
    def parts(self) -> dict[Part, float]:
        """The measured time of its kernels by part, in us."""
        parts: dict[Part, float] = {}
        for work in self.works:
            parts[work.part] = parts.get(work.part, 0.0) + work.us
        return parts

    @property
    def predicted(self) -> dict[Part, float]:
        """The predicted time by part, in us, of parts where nearly all of the measured time has a prediction."""
        predicted: dict[Part, float] = {}
        measured: dict[Part, float] = {}
        for work in self.works:
            if work.predicted_us is not None:
                predicted[work.part] = predicted.get(work.part, 0.0) + work.predicted_us
                measured[work.part] = measured.get(work.part, 0.0) + work.us
        for part, us in self.parts.items():
            if measured.get(part, 0.0) < _NEARLY_ALL * us:
                predicted.pop(part, None)
        return predicted


class Edge(WireRecord, frozen=True, kw_only=True):
    """The tensor that arrives at a convolution from its producers, after any pooling, concatenation and so on.

    `consumer` and `producers` are indices in `Network.layers`; `C`, `D`, `H`, `W` are None where unknown. `source` is
    the name of the layer or operation that the consumer reads. `copied`: whether the tensor is copied into another
    layout on the way; where that is None, it is taken to be if the layouts differ. `changed_at` is the operation that
    changes the layout, and its line.
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
    inherent: bool = False  # the operator that changes the layout writes NCHW whatever it reads


def gradients(operations: Sequence[Operation]) -> list[bool]:
    """Whether a gradient arrives at each operation's tensor.

    It does where weights of it or before it learn, and something behind it hands the gradient on.
    """
    pairs = zip(operations, _learned_before(operations), strict=True)
    arrives = [(operation.learns or before) and not operation.detached for operation, before in pairs]
    if any(operation.detached for operation in operations):
        awaited = {source for operation in operations for source in operation.inputs}  # until a reader hands one on
        for number in reversed(range(len(operations))):
            operation = operations[number]
            arrives[number] = arrives[number] and (number not in awaited or operation.output)
            if arrives[number]:
                awaited.difference_update(operation.inputs)
    return arrives


def _lead_to_results(operations: Sequence[Operation]) -> list[bool]:
    """Whether the tensor of each operation has a part in what the network returns; all where that is unknown."""
    leads = [operation.output for operation in operations]
    if not any(leads):
        return [True] * len(operations)
    for number in reversed(range(len(operations))):
        if leads[number]:
            for source in operations[number].inputs:
                leads[source] = True
    return leads


def _learned_before(operations: Sequence[Operation]) -> list[bool]:
    """Whether weights before each operation learn, with nothing between that stops their gradient.

    A convolution whose input is unknown is taken to stand behind all that comes before it.
    """
    before: list[bool] = []
    learned = False  # by any operation so far
    for operation in operations:
        sources = [operations[source].learns or before[source] for source in operation.inputs
                   if not operations[source].detached]  # fmt: skip
        unfed = operation.layer is not None and not operation.inputs
        before.append(learned if unfed else any(sources))
        learned = learned or operation.learns
    return before


def leaders(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """For each of `count` numbers the one that stands for all that `pairs` connect it with, also over others."""
    leader = list(range(count))

    def of(number: int) -> int:
        while leader[number] != number:  # halves the path, so that the next search is shorter
            leader[number] = number = leader[leader[number]]
        return number

    for number, other in pairs:
        leader[of(number)] = of(other)
    return [of(number) for number in range(count)]


def unique_name(name: str, taken: dict[str, int]) -> str:
    """The name, with the first free number if it is taken; `taken` has the last number given to each name."""
    count, free = taken.get(name, 0), name
    while free in taken:  # by a layer that was given a number, or that has one of its own
        count += 1
        free = f"{name}#{count}"
    taken[name] = max(count, 1)
    taken.setdefault(free, 1)
    return free


@equal_without("spans", "code_lines")
class Network(WireRecord, frozen=True, kw_only=True):
    """Everything that a reader found in one input."""

    path: str
    layers: tuple[ConvLayer, ...]
    edges: tuple[Edge, ...] = ()
    operations: tuple[Operation, ...] = ()  # in order; empty where the reader records none
    whole: bool = False  # `operations` have the work of everything that a step runs
    runtime: Runtime = field(default_factory=Runtime)
    mode: Mode | None = None
    targets: tuple[str, ...] = ()
    spans: Mapping[str, Span] = field(default_factory=dict)
    settings_path: str | None = None  # the file with the runtime, the mode and the targets, if that is not `path`
    unbatched: str = ""  # the sizes of an image that arrives without a batch, which counts as N = 1
    stored: bool = False  # read from a file, which another engine than the one that wrote it may run
    weights_only: bool = False  # read from a file with weights alone, so that the inputs of layers are unknown
    code_lines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of the user's modules, by path
    origins: Mapping[str, str] = field(default_factory=dict)  # of versions that nobody stated: uv.lock:1203
    # What lock files pin and could not be taken, where a trace differs from it, what of a module is not priced
    notes: tuple[str, ...] = ()
    training_keeps: str = ""  # whose part in the memory of training is unknown
    rigid_view: str = ""  # the line of a `.view()` that refuses tensors in channels_last, if there is one
    recorded: RecordedStep | None = None  # what a trace tells of a step beside `layers`
    source_lines: tuple[str, ...] | None = None  # the text that locations point into, if there is one

    def with_used_heads(self) -> Network:
        """The network with no head that leads to no result of it, as the last sum of a WaveNet's residuals."""
        leads = zip(self.operations, _lead_to_results(self.operations), strict=True)
        used = {operation.layer for operation, leading in leads if leading}
        if not self.operations or not any(layer.head and index not in used for index, layer in enumerate(self.layers)):
            return self
        layers = [replace(layer, head=layer.head and index in used) for index, layer in enumerate(self.layers)]
        return replace(self, layers=tuple(layers))

    def with_frozen_layers(self) -> Network:
        """The network with layers that say which gradients nobody computes; as if all learned where nothing does."""
        if not any(operation.frozen or operation.detached for operation in self.operations):
            return self
        arrives = gradients(self.operations)
        if not any(arrives):
            learning = [replace(operation, frozen=False, detached=False) for operation in self.operations]
            return replace(self, operations=tuple(learning))
        ways = zip(self.operations, _learned_before(self.operations), arrives, strict=True)
        reached = [(operation, before) for operation, before, gradient in ways if gradient]
        trained = {operation.layer for operation, _ in reached if operation.learns}  # layers with wgrad
        passed = {operation.layer for operation, before in reached if before}  # with dgrad
        layers = [
            replace(layer, frozen=index not in trained, no_dgrad=not layer.first and index not in passed)
            for index, layer in enumerate(self.layers)
        ]
        return replace(self, layers=tuple(layers))

    @property
    def tells_step(self) -> bool:
        """Whether the time of a whole step can be told, from its operations or a trace."""
        return self.whole or self.recorded is not None
