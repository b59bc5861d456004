"""The memory that a network needs: weights, activations that live at one time, and what training keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from math import prod
from operator import attrgetter
from typing import Any

from msgspec import Struct

from convlint.model.errors import suggestion
from convlint.model.layer import ConvLayer, Dtype, Mode, layer_identity
from convlint.model.network import BATCH_NORMS, Edge, Operation, Work, WorkKind, gradients, leaders
from convlint.model.runtime import Runtime, framework_of

_MOST_COMPARED = 200  # later tensors that may be made of an earlier one


def alive(layers: Sequence[ConvLayer], edges: Sequence[Edge], *, copies: bool) -> list[int]:
    """Bytes while each layer runs: its input and output, and what later ones still read; or its norm's two tensors.

    `copies`: a normalisation behind a layer writes a tensor of its own, and a concatenation copies what it joins.
    """
    count = len(layers)
    outputs = [output_bytes(layer) for layer in layers]
    tensors, merged = _tensors(layers, edges)
    changes, ending = [0] * (count + 1), [0] * count
    for producer, last, size in tensors:
        changes[producer + 1] += size
        changes[last + 1] -= size
        ending[last] += size
    for index, until in enumerate(merged):
        if until > index:  # an output that waits for another branch
            changes[index + 1] += outputs[index]
            changes[until + 1] -= outputs[index]
    joined = _joined(layers, edges) if copies else {}
    alive, sizes = 0, []
    for index, layer in enumerate(layers):
        alive += changes[index]
        own = outputs[index]
        after = alive - ending[index] + 2 * own if copies and layer.norm_follows else 0
        sizes.append(max(alive + own, after, alive + joined.get(index, 0)))
    return sizes


def _joined(layers: Sequence[ConvLayer], edges: Sequence[Edge]) -> dict[int, int]:
    """The layers that read a concatenation of others' outputs, which is first copied to one place, and its bytes."""
    joined = {}
    for edge in edges:
        layer = layers[edge.consumer]
        if len(edge.producers) > 1 and (layer.C or 0) > max(layers[producer].K or 0 for producer in edge.producers):
            joined[edge.consumer] = input_bytes(layer)
    return joined


def _tensors(layers: Sequence[ConvLayer], edges: Sequence[Edge]) -> tuple[list[tuple[int, int, int]], list[int]]:
    """The tensors that layers read, as (made after layer, last read by layer, bytes); and until when each output lives.

    A tensor that is joined to a later one, by an addition or a concatenation, is alive until that one is made.
    """
    count = len(layers)
    arriving = {edge.consumer: edge for edge in edges}
    spans: dict[object, list[int]] = {}
    producers: dict[object, frozenset[int]] = {}
    merged = list(range(count))
    for index, layer in enumerate(layers):
        edge, own = arriving.get(index), input_bytes(layer)
        if edge is None:
            spans[index] = [index - 1, index, own]
            continue
        earlier = frozenset(producer for producer in edge.producers if producer < index)
        name = tensor_name(edge, own)
        span = spans.setdefault(name, [max(earlier, default=-1), index, own])
        span[1] = max(span[1], index)
        producers[name] = earlier
    by_producer: dict[int, list[object]] = {}
    for name in sorted(producers, key=lambda name: spans[name][0]):
        for producer in producers[name]:
            by_producer.setdefault(producer, []).append(name)
    latest = {name: max(own, default=-1) for name, own in producers.items()}
    for producer, names in by_producer.items():
        merged[producer] = spans[names[0]][0]
        for position, name in enumerate(names, start=1):
            if latest[name] != producer:
                continue
            for other in names[position : position + _MOST_COMPARED]:
                if spans[other][0] > spans[name][0] and producers[name] < producers[other]:
                    spans[name][1] = max(spans[name][1], spans[other][0])
                    break
    return [(producer, last, size) for producer, last, size in spans.values()], merged


def tensor_name(edge: Edge, size: int) -> object:
    """Two layers that read as much from the same producers read the same tensor."""
    return edge.source, edge.producers, size


def input_bytes(layer: ConvLayer) -> int:
    """Bytes of the layer's input, whose sizes are all known."""
    return prod((layer.N or 0, layer.C or 0, layer.D or 0, layer.H or 0, layer.W or 0, _bytes(layer)))


def output_bytes(layer: ConvLayer) -> int:
    """Bytes of the layer's output, whose sizes are all known."""
    return prod((layer.N or 0, layer.K or 0, layer.Z or 0, layer.P or 0, layer.Q or 0, _bytes(layer)))


def _bytes(layer: ConvLayer) -> int:
    return layer.dtype.bytes if layer.dtype is not None else 0


# Tensors of a parameter's size that an optimizer keeps for it: torch.optim's sources, by the names of their states.
OPTIMIZER_STATES: Mapping[str, int] = {
    "none": 0,
    "sgd": 0,
    "momentum": 1,  # SGD's momentum_buffer
    "rmsprop": 1,  # square_avg
    "adagrad": 1,  # sum
    "asgd": 1,  # ax
    "lion": 1,  # exp_avg (lion-pytorch)
    "adam": 2,  # exp_avg, exp_avg_sq
    "adamw": 2,
    "nadam": 2,
    "radam": 2,
    "adamax": 2,  # exp_avg, exp_inf
    "adadelta": 2,  # square_avg, acc_delta
    "rprop": 2,  # prev, step_size
    "lamb": 2,  # pytorch-lamb
}
_NORMS: frozenset[WorkKind] = frozenset(("group norm", "layer norm", *BATCH_NORMS))  # keep what they read
# What else keeps what it reads or writes for its gradient in eager PyTorch (torch.autograd.graph.saved_tensors_hooks on
# each operator). Those that keep another tensor in place, as leaky_relu does, are left out.
_KEEP_READ: frozenset[WorkKind] = _NORMS | {"linear", "attention", "max pool"}
_KEEP_OTHERS: frozenset[WorkKind] = frozenset(("multiply", "product"))  # the gradient of one operand takes the other
_KEEP_READ_OPS = frozenset(
    ("silu", "swish", "gelu", "mish", "hardswish", "relu6", "hardtanh", "softplus", "avg_pool2d")
)
_KEEP_WRITTEN_OPS = frozenset(("relu", "sigmoid", "tanh", "softmax", "scaled_dot_product_attention"))
POOL_INDEX_BYTES = 8  # max pools write where each maximum was, an int64 (ATen/native/cuda/DilatedMaxPool2d.cu)
_SIXTEEN_BITS = (Dtype.fp16, Dtype.bf16)
_FOLDS_NORMS = ("tensorrt", "jax", "onnxruntime")  # in inference no tensor stands before the norm
_MOST_WATCHED = 8  # layers that join those whose workspace is followed to other batches
_MOST_WORKSPACE = 64  # times a layer's tensors: more than any algorithm takes
_LEAST_ROOM = 1 << 30  # bytes, for partial sums, which grow with the weights
_SIZES = ("N", "C", "D", "H", "W", "K", "Z", "P", "Q", "T", "R", "S", "dtype")


WorkspaceAt = Callable[[int, int], int]  # (layer, N) -> bytes


class NetworkMemory(Struct, frozen=True, kw_only=True):
    """Bytes that one network keeps at one moment, its fullest.

    In training `activations` are those kept for the backward pass; in inference, those alive at once.
    """

    weights: int
    gradients: int
    optimizer: int
    activations: int
    workspace: int

    @property
    def total(self) -> int:
        """The sum of them all."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.workspace


def parameters(layers: Sequence[ConvLayer]) -> int | None:
    """Weights and biases of the layers, those that share a module once; None where a size is unknown."""
    seen: set[object] = set()
    total = 0
    for layer in layers:
        own = _weights(layer)
        if own is None:
            return None
        key = (layer.path, layer.node, layer.op, layer.K, layer.groups, own)
        if layer.node is None or key not in seen:
            seen.add(key)
            total += own
    return total


def _weights(layer: ConvLayer) -> int | None:
    C, K, T, R, S = layer.C, layer.K, layer.T, layer.R, layer.S
    if C is None or K is None or T is None or R is None or S is None:
        return None
    # Calls of equal sizes that a trace does not tell apart mostly are layers of their own.
    layers = layer.calls if layer.measured is not None and layer.measured.alike else 1
    return layers * (C // layer.groups * K * T * R * S + (K if layer.bias else 0))


def linear_weights(operations: Sequence[Operation], *, trained: bool = False) -> int:
    """Elements of the weights of linear layers; of those that learn alone where `trained`.

    Where a convolution runs several times, linear layers of one size may be one as well, and count as one.
    """
    layers = [operation.layer for operation in operations if operation.layer is not None]
    sizes = [
        (work.product[2:], work.weights)
        for operation in operations
        if (work := operation.work) is not None and work.kind == "linear" and not (trained and operation.frozen)
    ]
    return sum(weights for _, weights in (sizes if len(set(layers)) == len(layers) else set(sizes)))


def parts(layers: Sequence[ConvLayer], edges: Sequence[Edge]) -> list[list[int]]:
    """The networks that the layers belong to: what edges connect, directly or at one batch, is one.

    Layers that stand alone are one where most of them read as many channels as the one before writes; a list of
    layers that have nothing to do with each other shares no memory.
    """
    pairs = [(producer, edge.consumer) for edge in edges for producer in edge.producers]
    connected = {edge.consumer for edge in edges} | {producer for producer, _ in pairs}
    same_batch: dict[int | None, tuple[list[int], list[int]]] = {}
    for index, layer in enumerate(layers):
        same_batch.setdefault(layer.N, ([], []))[index not in connected].append(index)
    for together, alone in same_batch.values():
        agreeing = sum(layers[index].K == layers[next_].C for index, next_ in pairwise(alone))
        for index in [*together, *(alone if 2 * agreeing >= len(alone) - 1 else ())]:
            pairs.append((index, together[0] if together else alone[0]))
    networks: dict[int, list[int]] = {}
    for index, of in enumerate(leaders(len(layers), pairs)):
        networks.setdefault(of, []).append(index)
    return list(networks.values())


def lacking(layers: Sequence[ConvLayer]) -> tuple[str, ...]:
    """The names of the sizes that are unknown in some layer; with any, the memory is unknown too."""
    return tuple(name for name in _SIZES if _is_lacking(name, list(map(attrgetter(name), layers))))


def _is_lacking(name: str, sizes: Sequence[Any]) -> bool:
    return None in sizes or (name in "ZPQ" and min(sizes, default=1) < 1)  # a filter over its input writes nothing


def lacking_state(runtime: Runtime, mode: Mode) -> tuple[str, ...]:
    """What is unknown of the optimizer's state; memory then counts as with an optimizer that keeps nothing."""
    optimizer = runtime.optimizer
    if mode != "training" or optimizer is None or optimizer in OPTIMIZER_STATES:
        return ()
    near = suggestion(optimizer, OPTIMIZER_STATES) or f"; known are {', '.join(OPTIMIZER_STATES)}"
    return (f"the state of optimizer {optimizer}{near}",)


def kept_beside(operations: Sequence[Operation], layers: Sequence[ConvLayer], runtime: Runtime, mode: Mode) -> int:
    """Bytes that operations beside the convolutions keep for their gradients, of tensors that no convolution keeps.

    In eager PyTorch, and where no framework is named, all that is known; else what norms read.
    """
    if mode != "training":
        return 0
    eager = framework_of(runtime) in (None, "pytorch") and not runtime.compile
    bytes_each = min((_bytes(layer) for layer in layers), default=0)
    roots: list[int] = []  # of each operation's tensor the operation that made it, behind views
    arrives = gradients(operations)
    counted: set[int] = set()  # with the layers: what they read, and what they write for a norm alone
    for number, operation in enumerate(operations):
        is_view = operation.work is None and operation.kind not in ("input", "conv") and bool(operation.inputs)
        roots.append(roots[operation.inputs[0]] if is_view else number)
        if operation.kind == "conv" and arrives[number] and (operation.learns or _keeps_of_frozen(runtime)):
            counted.update(roots[source] for source in operation.inputs[:1])
        if operation.layer is not None and layers[operation.layer].norm_follows and arrives[number]:
            counted.add(number)
    kept: dict[int, int] = {}
    indices = 0
    for number, operation in enumerate(operations):
        work = operation.work
        if work is None or not arrives[number] or not (eager or work.kind in _NORMS):
            continue
        size = 4 if runtime.mixed_precision and work.in_32_bits else bytes_each
        tensors = _kept_of_reads(operation, work, arrives)
        if work.op in _KEEP_WRITTEN_OPS:
            tensors.append((number, work.writes))
        if work.kind == "max pool":
            indices += POOL_INDEX_BYTES * work.writes
        for source, count in tensors:
            if (root := roots[source]) not in counted:
                kept[root] = max(kept.get(root, 0), count * size)
    return sum(kept.values()) + indices


def _keeps_of_frozen(runtime: Runtime) -> bool:
    """Whether convolutions without wgrad keep what they read; with dgrad, which takes their weights alone.

    PyTorch's do: one operator computes both gradients (convolution_backward; torch.autograd.graph.saved_tensors_hooks).
    """
    return framework_of(runtime) in (None, "pytorch")


def _kept_of_reads(operation: Operation, work: Work, arrives: Sequence[bool]) -> list[tuple[int, int]]:
    """Of what an operation reads, the tensors that it keeps, as (operation that writes it, elements)."""
    reads = list(zip(operation.inputs, work.reads, strict=False))
    if work.kind == "linear" and operation.frozen:  # the gradient of what it reads takes the weights alone
        return []
    if work.kind in _KEEP_READ or work.op in _KEEP_READ_OPS:
        return reads
    if work.kind not in _KEEP_OTHERS:
        return []
    return [
        read for at, read in enumerate(reads)
        if operation.learns or any(arrives[other] for other, _ in reads[:at] + reads[at + 1 :])
    ]  # fmt: skip


class Footprint:
    """The memory of one network whose sizes are all known, as a function of its batch."""

    def __init__(
        self, layers: Sequence[ConvLayer], edges: Sequence[Edge], runtime: Runtime, mode: Mode,
        operations: Sequence[Operation] = (),
    ) -> None:  # fmt: skip
        """`edges` and `operations` index `layers`.

        An optimizer of which nothing is known counts as one without state.
        """
        self.layers, self.edges, self.mode = layers, edges, mode
        self.batch = layers[0].N or 1
        self._copies = mode == "inference" and not (
            framework_of(runtime) in _FOLDS_NORMS or framework_of(runtime) is None or runtime.compile
        )
        self._keeps_of_frozen = _keeps_of_frozen(runtime)
        mixed = mode == "training" and bool(runtime.mixed_precision)
        self._kept_bytes = kept_beside(operations, layers, runtime, mode)
        states = OPTIMIZER_STATES.get(runtime.optimizer or "none", 0) if mode == "training" else 0
        self.weights = self.gradients = self.optimizer = 0
        by_dtype: dict[Dtype, list[ConvLayer]] = {}
        for layer in layers:
            by_dtype.setdefault(layer.dtype or Dtype.fp32, []).append(layer)
        narrowest = min(by_dtype, key=lambda dtype: dtype.bytes)
        for dtype, same in by_dtype.items():
            count = parameters(same) or 0
            trained = parameters([layer for layer in same if not layer.frozen]) or 0
            if dtype == narrowest:
                count += linear_weights(operations)
                trained += linear_weights(operations, trained=True)
            master_bytes = 4 if mixed and dtype in _SIXTEEN_BITS else dtype.bytes  # the optimizer works on fp32 masters
            self.weights += count * (master_bytes + (dtype.bytes if master_bytes != dtype.bytes else 0))
            self.gradients += trained * master_bytes if mode == "training" else 0
            self.optimizer += trained * master_bytes * states

    def memory(self, workspace: Sequence[int], batch: int | None = None) -> NetworkMemory:
        """At `batch` (the present one where none is given), with the workspace of each layer there; bytes."""
        live = self.live_bytes
        if batch is not None:
            live = [size * batch // self.batch for size in live]
        if self.mode == "training":  # all is kept until the backward pass begins
            activations, most = live[0], max(workspace)
        else:
            _, activations, most = max((own + extra, own, extra) for own, extra in zip(live, workspace, strict=True))
        return NetworkMemory(
            weights=self.weights, gradients=self.gradients, optimizer=self.optimizer, activations=activations,
            workspace=most,
        )  # fmt: skip

    def fits(self, batch: int, capacity: int, workspace_at: WorkspaceAt) -> bool:
        """Whether its memory at `batch` is at most `capacity` bytes; workspace is asked for where it matters."""
        least = self.memory([0] * len(self.layers), batch).total
        if least > capacity:
            return False
        if least + _MOST_WORKSPACE * self._largest_tensor * batch // self.batch + _LEAST_ROOM <= capacity:
            return True
        return self._fits(batch, capacity, range(len(self.layers)), workspace_at)

    def largest_batch(self, capacity: int, workspace_at: WorkspaceAt) -> int:
        """The largest batch that fits into `capacity` bytes; 0 where one image is too many.

        Only the layers whose workspace is largest are followed; those that turn out to be larger there join them.
        """
        room = max(0, capacity - self.weights - self.gradients - self.optimizer)
        watched: set[int] = set()
        largest = room * self.batch // max(1, *self.live_bytes)
        while largest:
            live = [size * largest // self.batch for size in self.live_bytes] if self.mode == "inference" else None
            sizes = self._workspaces(largest, range(len(self.layers)), workspace_at)
            if self.memory(sizes, largest).total <= capacity:
                return largest
            fullest = sorted(range(len(sizes)), key=lambda index: -sizes[index] - (live[index] if live else 0))
            watched.update(fullest[:_MOST_WATCHED])
            low, high = 0, largest
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if self._fits(middle, capacity, watched, workspace_at) else (low, middle)
            largest = low
        return 0

    def _fits(self, batch: int, capacity: int, indices: Iterable[int], workspace_at: WorkspaceAt) -> bool:
        return self.memory(self._workspaces(batch, indices, workspace_at), batch).total <= capacity

    def _workspaces(self, batch: int, indices: Iterable[int], workspace_at: WorkspaceAt) -> list[int]:
        """The workspaces of these layers at `batch`, 0 for all others; that of equal layers is computed once."""
        sizes, known = [0] * len(self.layers), dict[int, int]()
        for index in indices:
            kind = self._kinds[index]
            if kind not in known:
                known[kind] = workspace_at(index, (self.layers[index].N or 1) * batch // self.batch or 1)
            sizes[index] = known[kind]
        return sizes

    @cached_property
    def _kinds(self) -> list[int]:
        """For each layer the first that is like it."""
        first: dict[object, int] = {}
        return [first.setdefault(layer_identity(layer), index) for index, layer in enumerate(self.layers)]

    @cached_property
    def _largest_tensor(self) -> int:
        """Bytes of the largest input with its output, at the present batch."""
        return max(input_bytes(layer) + output_bytes(layer) for layer in self.layers)

    @cached_property
    def live_bytes(self) -> list[int]:
        """Bytes of activations at the present batch: in training all that are kept; else those alive at each layer."""
        if self.mode == "inference":
            return alive(self.layers, self.edges, copies=self._copies)
        kept = self._reread()
        if any(layer.frozen for layer in self.layers):  # forward more may be alive than is kept
            kept = max(kept, *alive(self.layers, self.edges, copies=True))
        return [kept]

    def _reread(self) -> int:
        """The inputs that convolutions and normalisations read again in the backward pass, each one once."""
        arriving = {edge.consumer: edge for edge in self.edges}
        tensors: dict[object, int] = {}
        norms = self._kept_bytes
        for index, layer in enumerate(self.layers):
            edge = arriving.get(index)
            handed_on = self._keeps_of_frozen and not (layer.first or layer.no_dgrad)
            own = input_bytes(layer) if handed_on or not layer.frozen else 0
            shared = edge is not None and layer.calls == 1
            if own:
                tensors[tensor_name(edge, own) if edge is not None and shared else index] = own * layer.calls
            if layer.norm_follows and not (layer.frozen and (layer.first or layer.no_dgrad)):
                norms += output_bytes(layer) * layer.calls
        return sum(tensors.values()) + norms
