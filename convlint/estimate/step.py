"""The time of a whole step: the operations between convolutions, eager or compiled, the optimizer, and the host.

A kernel between convolutions takes the time of the bytes that it moves; a product takes that of a 1x1 convolution of
the same sizes. What differs between networks is how often a tensor is read and written, and in which precision:

- Eager PyTorch runs one kernel after another. Under autocast, operations of its list run in fp32, with casts before
  them (`Work.in_32_bits`; torch/include/ATen/autocast_mode.h), and weights are cast in every step.
- torch.compile (Inductor) fuses what is pointwise into one kernel, with a reduction over the same elements in front of
  it or behind it, so that only what other kernels read is written. Convolutions, products and attention stay kernels of
  libraries. Batch normalisation is folded into nothing unless `freezing` is on, which is off by default
  (torch/_inductor/config.py).

Held against 2,583 measured steps of 457 networks (benchmarks/steps.py).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from convlint.estimate import constants as const
from convlint.estimate.board import Board, board_of, compute_dtype
from convlint.estimate.host import is_autocast, steps_host_us
from convlint.estimate.memory import OPTIMIZER_STATES, POOL_INDEX_BYTES, output_bytes
from convlint.estimate.memory import parameters as parameters_of
from convlint.estimate.norms import (
    Norm,
    batch_norm_us,
    group_norm_us,
    instance_norm_us,
    layer_norm_sums_us,
    layer_norm_us,
    norm_rows,
    stored_norm_us,
)
from convlint.estimate.passes import of_products
from convlint.estimate.price import summed_us
from convlint.estimate.products import Products
from convlint.gpus.gpu import Gpu, load_gpu
from convlint.model.estimates import OperationEstimate, Part, StepEstimate
from convlint.model.layer import ConvLayer, Dtype, Mode, mostly_nhwc
from convlint.model.network import (
    BATCH_NORMS,
    PART_OF,
    PROMOTED,
    SPLITS,
    Network,
    Operation,
    RecordedStep,
    RecordedWork,
    Work,
    WorkKind,
    gradients,
)
from convlint.model.runtime import Runtime, framework_of


class _Traffic(Struct, frozen=True):
    """How often an operation reads and writes its elements, and in how many kernels."""

    reads: int
    writes: int
    kernels: int = 1


_ONCE: Final = _Traffic(1, 1)
# Backward. Of a result its gradient is read, of an operand its gradient is written and what was kept of it is read: a
# norm reads both twice (sums first), a gate's gradient is a reduction of the product of both. An addition hands its
# gradient on.
_BACKWARD: Mapping[WorkKind, _Traffic] = {
    "batch norm": _Traffic(3, 2, 2), "layer norm": _Traffic(1, 4, 2), "group norm": _Traffic(1, 4, 3),
    "add": _Traffic(0, 0, 0), "multiply": _Traffic(1, 5, 2), "activation": _Traffic(1, 2), "softmax": _Traffic(1, 2),
    "max pool": _Traffic(2, 1),
}  # fmt: skip
# A norm's gradient takes three kernels over what it read, that of addcmul two products and two sums (norm_backward in
# FunctionsManual.cpp, addcmul in derivatives.yaml); ConvNeXtV2 has both in each block.
_BACKWARD_OF: Mapping[str, _Traffic] = {"addcmul": _Traffic(1, 6, 5), "linalg_vector_norm": _Traffic(6, 1, 3)}
# Clocks of one SM that a max pool of PyTorch takes for an element of what it reads. Fit: traces of ResNet-50's training
# on H100, PyTorch 2.11, whose pool is 3x3 at stride 2.
_OWN_MAX_POOL: Final = (0.75, 2.2)  # forward, backward
# The same for an element of GELU in 16 bits; forward, backward. Fit: ConvNeXt's training on H200, PyTorch 2.11;
# assumed from cc 8.0 on.
_GELU: Final = (0.31, 0.42)
# Share of the bandwidth on paper of what reads or writes with strides: assumed, between pointwise kernels and
# transposes.
_STRIDED: Final = 0.65
# L2 serves, of what the kernel before has written, as many bytes as of a copy (COPY_IN_L2), at so many times the speed
# of memory. Seen in networks on RTX 4090 (72 MB); RTX 3090 (6 MB) shows none of it. The speed: assumed.
_L2_SPEED: Final = 3.0
_STRIDED_KINDS: frozenset[WorkKind] = frozenset(("concat", "copy", "embedding"))
_MOST_UNPRICED: Final = 0.25  # of the bytes that are moved: a step that lacks more is none
_CAST: Final = 6  # bytes that a cast between 16 and 32 bits moves for an element
# Bytes of fp32 that an update moves for each parameter: torch.optim's `foreach` form, kernel after kernel, without
# states, with one (momentum) and with two (Adam).
_UPDATE_BYTES: Mapping[int, int] = {0: 12, 1: 32, 2: 80}
_UPDATE_KERNELS: Final = 10
_INSTANCE_NORMS: Final = ("instance_norm", "instancenorm", "InstanceNormalization")
_SIXTEEN: Final = (Dtype.fp16, Dtype.bf16)
_EIGHT: Final = (Dtype.int8, Dtype.fp8)
# These make one kernel of a convolution and what works on its output element by element (TensorRT's layer fusion; XLA's
# calls of cuDNN's fused convolutions in inference).
_COMPILERS: Final = ("tensorrt", "jax")


class Steps(Struct, frozen=True):
    """What a network's step is made of, in one setting: `layers` as they run, `convolution_us` on the GPU."""

    network: Network
    layers: Sequence[ConvLayer]
    convolution_us: float
    runtime: Runtime
    mode: Mode


def step_of(steps: Steps, gpu: Gpu) -> StepEstimate | None:
    """The estimate of a step; None where operations are unknown, a layer has no dtype, or too much has no price."""
    network, layers = steps.network, steps.layers
    if network.recorded is not None:
        return _recorded_step(steps, network.recorded, gpu)
    if not network.whole or any(layer.dtype is None for layer in layers):
        return None
    walk = _Walk(steps, gpu)
    framework = framework_of(steps.runtime)
    if framework in _COMPILERS or (framework == "pytorch" and steps.runtime.compile):
        walk.compiled(folds=framework in _COMPILERS)
    else:
        walk.eager()
    estimate = walk.finished()
    return estimate if estimate.unpriced_share <= _MOST_UNPRICED else None


def _recorded_step(steps: Steps, recorded: RecordedStep, gpu: Gpu) -> StepEstimate | None:
    """The step of a trace: each operator takes its measured time, times the predicted ratio of its times now and then.

    The ratio is that of another GPU, batch, or dtype of products; where nothing is predicted, that of bandwidths. None
    with torch.compile switched on or off since: a trace does not say which operator reads what.
    """
    network = steps.network
    if not recorded.gpu or steps.mode != recorded.mode:
        return None
    if bool(steps.runtime.compile) != bool(network.runtime.compile):
        return None
    as_recorded = replace(steps, layers=network.layers, runtime=network.runtime)
    before, after = _Walk(as_recorded, load_gpu(recorded.gpu)), _Walk(steps, gpu)
    pairs = zip(recorded.dtypes, steps.layers, strict=False)
    dtypes = {old: new.dtype for old, new in pairs if old != new.dtype and new.dtype is not None}
    parts: dict[Part, float] = defaultdict(float)
    unpriced = []
    for number, work in enumerate(recorded.works):
        if work.part == "convolution":
            continue
        was = before.recorded(work, {}, in_nhwc=recorded.in_nhwc)
        now = after.recorded(work, dtypes, in_nhwc=mostly_nhwc(steps.layers))
        if was is None or now is None:
            unpriced.append(number)
            was, now = before.us_per_byte, after.us_per_byte * (1.0 if work.part == "optimizer" else after.images)
        parts[work.part] += work.us * now / was
    parts["convolution"] = steps.convolution_us
    launched = round(recorded.operations)
    host = steps_host_us(gpu, steps.runtime, launched, launched if steps.mode == "training" else 0)
    if host is not None and recorded.span_us:  # recording only slows the host down
        host = min(host, recorded.span_us)
    total = sum(recorded.parts.values())
    share = sum(recorded.works[number].us for number in unpriced) / total if total and recorded.gpu != gpu.id else 0.0
    return StepEstimate(
        parts=dict(parts), host_us=host, unpriced=tuple(unpriced) if share else (), unpriced_share=share
    )


def predicted_step(steps: Steps, recorded: RecordedStep, gpu: Gpu) -> RecordedStep:
    """The step of a trace with the predicted times of its operators on `gpu`; convolutions get none here."""
    walk = _Walk(steps, gpu)
    works = [replace(work, predicted_us=walk.recorded(work, {}, in_nhwc=recorded.in_nhwc)) for work in recorded.works]
    return replace(recorded, works=tuple(works))


class _Walk:
    """One pass over the operations of a step."""

    def __init__(self, steps: Steps, gpu: Gpu) -> None:
        self.steps, self.gpu = steps, gpu
        self.board: Board = board_of(gpu)
        self.operations = steps.network.operations
        self.training = steps.mode == "training"
        self.autocast = is_autocast(steps.layers, steps.runtime, steps.mode)
        self.us_per_byte = 1e6 / (gpu.dram_bytes_per_s * self.board.factors.bandwidth * const.STREAMED)
        self.strided_us_per_byte = self.us_per_byte * const.STREAMED / _STRIDED
        self.parts: dict[Part, float] = defaultdict(float)
        self.parts["convolution"] = steps.convolution_us
        self.estimates: list[OperationEstimate | None] = [None] * len(self.operations)
        self.bytes_of: list[int] = []  # of an element of each operation's tensor
        self.in_nhwc: list[bool] = []  # its order
        self.images, self.scale = _scales(steps.network, steps.layers)
        self.own = framework_of(steps.runtime) in (None, "pytorch")
        self.products = Products(gpu, self.board, of_products(steps.runtime), self.us_per_byte)
        self.sixteen = next((layer.dtype for layer in steps.layers if layer.dtype in _SIXTEEN), None)
        self.launched = self.launched_back = 0  # operations forward, and those of them that have a way back
        self.arrives = gradients(self.operations) if self.training else [False] * len(self.operations)
        self.unpriced: list[int] = []
        self.moved = self.moved_unpriced = 0

    # -- elements

    def reads(self, number: int, work: Work) -> list[int]:
        """The elements that an operation reads of each of its inputs."""
        inputs = self.operations[number].inputs
        return [round(count * self.scale[index]) for count, index in zip(work.reads, inputs, strict=False)]

    def writes(self, number: int, work: Work) -> int:
        """The elements that an operation writes."""
        return round(work.writes * self.scale[number])

    # -- eager

    def eager(self) -> None:
        """One kernel after another."""
        readers = self._readers()
        turned = self._turned()
        for number, operation in enumerate(self.operations):
            work = operation.work
            arriving = [self.bytes_of[index] for index in operation.inputs]
            first = operation.inputs[0] if operation.inputs else None
            if operation.layer is None:
                self.in_nhwc.append(first is not None and self.in_nhwc[first])
            else:
                self.in_nhwc.append(self._is_priced_in_nhwc(self.steps.layers[operation.layer]))
            if operation.layer is not None:
                self.bytes_of.append((self.steps.layers[operation.layer].dtype or Dtype.fp32).bytes)
                self._convolution(number, operation)
            elif work is None:
                self.bytes_of.append(max(arriving, default=4 if self.autocast else self._stored))
                if operation.part is not None and self.arrives[number] and self.own:
                    self._part(number, operation.part)
            elif work.kind == "unknown":
                self.bytes_of.append(max(arriving, default=4))
                self._not_priced(number, work)
            elif number in turned:
                self.bytes_of.append(self._size(work, arriving))
                self._launch(number)
            else:
                self.bytes_of.append(self._size(work, arriving))
                self._kernel(number, work, arriving)
            if self.arrives[number] and readers[number] > 1:
                self._add_gradients(number, readers[number] - 1)
        self._update()

    def _is_priced_in_nhwc(self, layer: ConvLayer) -> bool:
        """Whether it is in NHWC, or in no stated layout, of which Tensor Cores' times are those of NHWC."""
        compute = compute_dtype(layer.dtype or Dtype.fp32, self.gpu, self.steps.runtime)
        return layer.layout == "NHWC" or (layer.layout == "auto" and self.board.units(compute, False)[0] is not None)

    def _readers(self) -> Counter[int]:
        """How many gradients of each tensor have to be summed up: one of each reader, one of all parts of a split."""
        parts = [each for each in self.operations if each.part is not None and each.part.op in SPLITS]
        readers = Counter({index for part in parts for index in part.inputs})
        for operation in self.operations:
            if operation.part is None or operation.part.op not in SPLITS:
                readers.update(set(operation.inputs))
        return readers

    def _turned(self) -> set[int]:
        """The copies into another layout whose time is part of that of the convolutions behind them."""
        network, copies = self.steps.network, set[int]()
        copied = {edge.consumer for edge in network.edges if edge.copied}
        for operation in self.operations:
            number = operation.layer
            if number is None or number not in copied or not self.steps.layers[number].copies_input:
                continue
            if network.layers[number].copies_input:  # it copies itself what arrives
                continue
            source, read = operation, _arriving(network.layers[number])
            while source.inputs:
                at = source.inputs[0]
                source = self.operations[at]
                if source.layer is not None:
                    break
                if source.copies_all:
                    if source.work is not None and source.work.writes == read:  # else it is another tensor's
                        copies.add(at)
                    break
        return copies

    def _size(self, work: Work, arriving: Sequence[int]) -> int:
        """Bytes of the elements in which an operation runs: as autocast has it, else as they arrive."""
        if self.autocast and work.kind in _PRODUCTS:
            return 2
        return 4 if self.autocast and work.in_32_bits else max(arriving, default=self._stored)

    def _kernel(self, number: int, work: Work, arriving: Sequence[int]) -> None:
        """Adds the kernels of an operation; `arriving`: the bytes of an element of each input."""
        self._launch(number)
        back = self.arrives[number]
        reads, writes, size = self.reads(number, work), self.writes(number, work), self.bytes_of[number]
        time = moved = kernels = 0.0
        if self.autocast and (work.kind in _PRODUCTS or work.in_32_bits):
            wrong = sum(count for count, bytes_ in zip(reads, arriving, strict=False) if bytes_ != size)
            passes = 2 if back else 1
            if work.kind in PROMOTED:  # whose kernel reads what arrives; autograd casts its gradient back
                passes -= 1
            if wrong and passes:
                moved, kernels = wrong * _CAST, passes
                time = passes * (moved * self.us_per_byte + const.KERNEL_US)
        if work.kind in _PRODUCTS:
            product_us, flops = self._product(number, work, sum(reads) + writes, size)
            frozen = self.operations[number].frozen and work.weights > 0
            if self.autocast and work.weights:
                time += self._cast_weights(work.weights, back=back and not frozen)
                kernels += 1
            passes = 1 if not back else 2 if frozen else 3
            if back and not frozen and self.own and not self.steps.runtime.compile and _has_bias(work):
                time += max(writes * size * self.us_per_byte, summed_us(writes, self.board)) + const.KERNEL_US
                moved, kernels = moved + writes * size, kernels + 1
            moved += passes * (sum(reads) + writes + work.weights) * size
            self._note(number, PART_OF[work.kind], time + product_us, moved, passes * flops, kernels + passes)
            return
        for forward in (True, False) if back else (True,):
            traffic = self._traffic(number, work, reads, forward=forward)
            bytes_ = (traffic.reads * sum(reads) + traffic.writes * writes) * size
            if work.kind == "max pool" and self.own:
                bytes_ += POOL_INDEX_BYTES * writes
            rate = self.strided_us_per_byte if work.kind in _STRIDED_KINDS else self.us_per_byte
            fresh = self._latest(number, reads) if forward else min(traffic.writes, 1) * writes
            streamed_us = (bytes_ - self._held(fresh * size)) * rate
            if (work.kind in BATCH_NORMS or work.kind == "group norm") and self.own:
                streamed_us = max(streamed_us, self._norm_us(number, work, size, forward=forward))
            timed = self.own and self.board.modern
            if work.kind == "layer norm" and timed and self.gpu.compute_capability >= "9.0" and work.weights > 1:
                streamed_us += self._layer_norm_us(number, work, sum(reads) * size, forward=forward)
            if work.op == "gelu" and size == 2 and timed:
                streamed_us = max(streamed_us, _GELU[not forward] * writes / self.board.clocks_per_us)
            if work.kind == "max pool" and self.own:
                streamed_us = max(streamed_us, _OWN_MAX_POOL[not forward] * sum(reads) / self.board.clocks_per_us)
            time += streamed_us + traffic.kernels * const.KERNEL_US
            moved, kernels = moved + bytes_, kernels + traffic.kernels
        self._note(number, PART_OF[work.kind], time, moved, 0, kernels)

    def _norm_us(self, number: int, work: Work, size: int, *, forward: bool) -> float:
        """The least time of a batch norm, a group norm or an instance norm in PyTorch."""
        operation = self.operations[number]
        elements = self.writes(number, work)
        positions = (operation.D or 1) * (operation.H or 0) * (operation.W or 0)
        if work.kind == "group norm" and work.op not in _INSTANCE_NORMS:
            share = (operation.C or 0) * positions / operation.groups if operation.groups > 1 else 0.0
            groups = work.writes * self.images / share if share else 0.0  # however many channels a change makes
            return group_norm_us(elements, groups, size, self.board, forward=forward)
        norm = Norm(
            elements=elements, positions=positions, size=size, in_nhwc=self.in_nhwc[number], learns=operation.learns,
            # cuDNN wants weights, in fp32 (ATen/native/Normalization.cpp); InstanceNorm has none by default.
            by_cudnn=(size != 2 or (self.sixteen != Dtype.bf16 and self.autocast))
            and (work.weights > 0 or work.kind in BATCH_NORMS),
        )  # fmt: skip
        if work.kind not in BATCH_NORMS:
            return instance_norm_us(norm, self.board, forward=forward)
        if not self.training or work.kind == "frozen norm":
            return stored_norm_us(norm, self.board, forward=forward)
        channels = operation.C or work.weights // 2
        channel = work.writes * self.images / channels if channels else 0.0  # however many a change makes of them
        return batch_norm_us(norm, channel, self.board, forward=forward)

    def _layer_norm_us(self, number: int, work: Work, bytes_: int, *, forward: bool) -> float:
        """What a layer norm takes in PyTorch beside the bytes that it moves; `bytes_`: those of what it reads."""
        rows = norm_rows(work, self.images)
        us = layer_norm_us(rows, self.board, forward=forward)
        if not forward and self.operations[number].learns:
            version = self.steps.runtime.framework_version
            us += layer_norm_sums_us(rows, 2 * bytes_ * self.us_per_byte, version, self.board)
        return us

    def _latest(self, number: int, reads: Sequence[int]) -> int:
        """The elements of the latest tensor that an operation reads, which the kernel before it has written."""
        inputs = self.operations[number].inputs
        return max(zip(inputs, reads, strict=False), default=(0, 0))[1]

    def _held(self, fresh: int) -> float:
        """Bytes of memory traffic that L2 saves; `fresh`: the bytes that were written just before."""
        capacity = const.COPY_IN_L2 * self.board.l2_bytes if self.board.modern else 0.0
        return min(fresh, capacity) * (1 - 1 / _L2_SPEED)

    def _traffic(self, number: int, work: Work, reads: Sequence[int], *, forward: bool) -> _Traffic:
        kind = work.kind
        if forward:
            # Statistics take a pass of their own where they run over more than a row.
            taken = kind == "group norm" or (kind == "batch norm" and self.training)
            return _Traffic(2, 1, 2) if taken else _ONCE
        if kind == "multiply" and len(reads) > 1 and len(set(reads)) == 1:
            return _Traffic(1, 4, 2)  # no gradient has to be summed up over what was broadcast
        if kind == "frozen norm" and self.operations[number].learns:
            return _Traffic(2, 2, 2)  # the sums for its weights read both first
        return _BACKWARD_OF.get(work.op) or _BACKWARD.get(kind, _ONCE)

    def _launch(self, number: int) -> None:
        """Counts an operation that the host starts."""
        self.launched += 1
        self.launched_back += self.arrives[number]

    def _convolution(self, number: int, operation: Operation, cast: Collection[int] = ()) -> None:
        """Adds the copy of a part that it reads; under autocast, casts of its weights and of inputs not `cast` yet."""
        layer = self.steps.layers[operation.layer or 0]
        self._launch(number)
        for index in operation.inputs if self.own else ():
            # cuDNN gets a dense tensor; the gradient of weights another, of what was kept. A cast or a copy into
            # another layout makes one anyway.
            dense = layer.copies_input or self.bytes_of[index] != self.bytes_of[number]
            if not dense and self._has_gaps(index, layer):
                moved, passes = 2 * _arriving(layer) * self.bytes_of[index], 2 if self._learns(layer) else 1
                self.parts["copy"] += passes * (moved * self._rate(layer.layout == "NHWC") + const.KERNEL_US)
        if not self.autocast or layer.dtype not in _SIXTEEN:
            return
        weights = (layer.K or 0) * ((layer.C or 0) // layer.groups) * (layer.T or 1) * (layer.R or 1) * (layer.S or 1)
        self.parts["copy"] += self._cast_weights(weights, back=self._learns(layer))
        arriving = [index for index in operation.inputs if self.bytes_of[index] > 2 and index not in cast]
        if arriving:
            count = _arriving(layer)
            passes = 2 if self.training and not (layer.first or layer.no_dgrad) else 1
            self.parts["copy"] += passes * (count * _CAST * self.us_per_byte + const.KERNEL_US)

    def _learns(self, layer: ConvLayer) -> bool:
        return self.training and not layer.frozen

    def _cast_weights(self, count: int, *, back: bool) -> float:
        """The time to cast weights from fp32 to 16 bits, and their gradients `back`."""
        return (2 if back else 1) * (count * _CAST * self.us_per_byte + const.KERNEL_US)

    def _add_gradients(self, number: int, times: int) -> None:
        """Adds the sums of gradients of a tensor that several operations read."""
        operation = self.operations[number]
        while (work := operation.work or operation.part) is None and operation.layer is None:
            number = operation.inputs[0]  # of which it is a view
            operation = self.operations[number]
        if work is None:
            size = output_bytes(self.steps.layers[operation.layer or 0])
        else:
            size = self.writes(number, work) * self.bytes_of[number]
        self.parts["pointwise"] += times * (3 * size * self.us_per_byte + const.KERNEL_US)

    def _has_gaps(self, number: int, layer: ConvLayer) -> bool:
        """Whether the tensor that a layer reads is a view of a part of another that lies there with gaps."""
        order = ("D", "H", "W", "C") if layer.layout == "NHWC" else ("C", "D", "H", "W")
        while (view := self.operations[number]).work is None and view.layer is None and view.inputs:
            number = view.inputs[0]
            times = layer.N or 1  # that the axes before the one of which it is a part make it start anew
            for axis in order if view.part is not None else ():
                size = getattr(view, axis)
                if size != getattr(self.operations[number], axis):
                    if times > 1:
                        return True
                    break
                times *= size or 1
        return False

    def _rate(self, in_nhwc: bool) -> float:
        """The us of a byte of some channels that are copied: in NCHW they lie together."""
        return self.strided_us_per_byte if in_nhwc else self.us_per_byte

    def _part(self, number: int, part: Work) -> None:
        """Adds the gradient of a view of a part: a copy into zeros (slice_backward), or with the others into one."""
        size, count = self.bytes_of[number], self.writes(number, part)
        whole = sum(self.reads(number, part))
        us = 2 * count * size * self._rate(self.in_nhwc[number])
        if part.op in SPLITS:
            us += const.KERNEL_US * count / whole
        else:
            us += whole * size * self.us_per_byte + 2 * const.KERNEL_US
        self.parts["copy"] += us

    # -- products

    def _product(self, number: int, work: Work, elements: int, size: int) -> tuple[float, int]:
        """(time of all passes, FLOPs of a forward pass) of a matrix product or of attention."""
        operation, back = self.operations[number], self.arrives[number]
        batch, M, N, K = work.product if len(work.product) == 4 else (1, 0, 0, 0)
        if batch == 1:
            M = round(M * self.images)
        else:
            batch = round(batch * self.images)
        dtype = self._multiplied(2 if work.kind == "attention" and size == 1 else size)
        if work.kind == "linear" and batch == 1 and M and N and K:
            mode: Mode = "training" if back else "inference"
            time = self.products.linear_us(M, N, K, dtype, mode, frozen=operation.frozen)
            if time is not None:
                return time, 2 * M * N * K
        flops = (4 if work.kind == "attention" else 2) * batch * M * N * K
        least = elements * size * self.us_per_byte
        if work.kind == "attention":
            ways = (True, False) if back else (True,)
            passes = [self.products.attention_us(batch, M, N, K, dtype, forward=forward) for forward in ways]
            least_us = [least, 2 * least]  # gradients are read and written beside it
            return sum(map(max, passes, least_us)) + const.KERNEL_US, flops
        further = 0.0 if not back else 1.0 if operation.frozen and work.weights else 2.0
        return (1 + further) * max(self.products.batched_us(flops, dtype), least) + const.KERNEL_US, flops

    def _multiplied(self, size: int) -> Dtype:
        """The dtype of products of elements of `size` bytes: of one byte, 8 bits where the GPU has units, else 16."""
        if size == 1:
            eight = next((layer.dtype for layer in self.steps.layers if layer.dtype in _EIGHT), None)
            if eight is not None and self.board.units(compute_dtype(eight, self.gpu, self.products.runtime), False)[0]:
                return eight
        return self.sixteen or Dtype.fp16 if size <= 2 else Dtype.fp32

    @cached_property
    def _stored(self) -> int:
        """Bytes of an element where nothing arrives: those of the layers."""
        return max((layer.dtype.bytes for layer in self.steps.layers if layer.dtype is not None), default=4)

    # -- recorded

    def recorded(self, work: RecordedWork, dtypes: Mapping[Dtype | None, Dtype], *, in_nhwc: bool) -> float | None:
        """The predicted time of operators of a trace in a step; None where it is unknown.

        Products and batch norms run in what `dtypes` has for their dtype; `in_nhwc` is the layout of the latter.
        """
        if not work.moved or work.part == "convolution" or (work.flops and work.dtype is None):
            return None
        images = 1.0 if work.part == "optimizer" else self.images
        moved, launches = work.moved * images, work.kernels / work.calls
        rate = self.strided_us_per_byte if work.strided else self.us_per_byte
        us = (moved - self._held(round(moved / 2))) * rate
        if work.flops:
            us = max(us, self._multiplied_us(work, dtypes.get(work.dtype, work.dtype or Dtype.fp32)))
        elif work.part == "normalisation" and dtypes.get(work.dtype, work.dtype) == Dtype.bf16:
            forward = not work.op.endswith("backward")
            elements = moved / ((3 if forward else 5) * Dtype.bf16.bytes)  # `moved` counts so many passes
            norm = Norm(elements=elements, positions=0, size=2, in_nhwc=in_nhwc, learns=True, by_cudnn=False)
            stored = forward and not self.training
            us = max(us, stored_norm_us(norm, self.board, forward=True) if stored
                     else batch_norm_us(norm, 0.0, self.board, forward=forward))  # fmt: skip
        elif work.elements:
            clocks = _OWN_MAX_POOL[work.op.endswith("backward")] * work.elements * images
            us = max(us, clocks / self.board.clocks_per_us)
        return work.calls * (us + launches * const.KERNEL_US)

    def _multiplied_us(self, work: RecordedWork, dtype: Dtype) -> float:
        if work.gemm:
            M, N, K = work.gemm
            time = self.products.linear_us(round(M * self.images), N, K, dtype, "inference")
            if time is not None:
                return time
        return self.products.batched_us(work.flops * self.images, dtype)

    # -- compiled

    def compiled(self, *, folds: bool) -> None:
        """Kernels of libraries, and between them what is fused; `folds`: what follows a convolution is a part of it."""
        _Fusion(self, folds=folds).run()
        self._update()

    # -- the end

    def _update(self) -> None:
        """The optimizer's update of all parameters, where one is named."""
        states = OPTIMIZER_STATES.get(self.steps.runtime.optimizer or "none", 0)
        if not self.training or self.steps.runtime.optimizer in (None, "none"):
            return
        works = [operation.work for operation in self.operations if operation.learns and operation.layer is None]
        own = sum(work.weights for work in works if work is not None)
        count = own + (parameters_of([layer for layer in self.steps.layers if not layer.frozen]) or 0)
        if not count:
            return
        moved = count * _UPDATE_BYTES[min(states, 2)]
        self.parts["optimizer"] += moved * self.us_per_byte + _UPDATE_KERNELS * const.KERNEL_US

    def finished(self) -> StepEstimate:
        """The estimate of the step."""
        runtime = replace(self.steps.runtime, mixed_precision=True) if self.autocast else self.steps.runtime
        host = steps_host_us(self.gpu, runtime, self.launched, self.launched_back)
        share = self.moved_unpriced / (self.moved + self.moved_unpriced) if self.moved_unpriced else 0.0
        return StepEstimate(
            parts=dict(self.parts), host_us=host, operations=tuple(self.estimates), unpriced=tuple(self.unpriced),
            unpriced_share=share, autocast_assumed=self.autocast and self.steps.runtime.mixed_precision is None,
        )  # fmt: skip

    def _note(self, number: int, part: Part, time: float, moved: float, flops: int, kernels: float) -> None:
        self.parts[part] += time
        self.moved += int(moved)
        self.estimates[number] = OperationEstimate(part, time, int(moved), flops, int(kernels))

    def _not_priced(self, number: int, work: Work) -> None:
        self.unpriced.append(number)
        self._launch(number)
        self.moved_unpriced += (sum(work.reads) + work.writes) * self._stored


_PRODUCTS: frozenset[WorkKind] = frozenset(("linear", "product", "attention"))
# Sums over positions of NHWC, and what is written into a part of a tensor. Fit: compiled networks on RTX 4090, whose
# squeeze-and-excite blocks gain less from fusing than others.
_STRIDED_WHEN_FUSED: frozenset[WorkKind] = frozenset(("reduce", "concat"))
# A SiLU whose sum over positions is taken, as squeeze-and-excite does, moves more than a ReLU there: on RTX 4090, in 16
# bits, as much as if a kernel wrote it in 32, the sum read that, and so did what multiplies it. Fit, on the half of the
# networks that constants may be set on; SiLU without a sum, and other activations with one, take the time of their
# bytes.
_SUMMED_SILU_BYTES: Final = 8
_SILU: Final = frozenset(("silu", "swish"))
# Bytes that Inductor's sums over positions read per clock and SM; clocks for a row of a layer norm and an element of
# GELU, forward and backward. Fit: training on H200, PyTorch 2.11 (ResNet-50, MobileNetV2; ConvNeXt). Elsewhere assumed.
_REDUCED_PER_CLOCK: Final = 9.0
_FUSED_LAYER_NORM_ROW: Final = (140.0, 280.0)
_FUSED_GELU: Final = (0.40, 0.74)
# The same for an element of a group norm: forward in bf16 on H100 (pull request 182907), backward by the bytes of both.
_FUSED_GROUP_NORM: Final = (1.9, 3.2)
_HANDS_ON: frozenset[WorkKind] = frozenset(("add", "multiply", "activation", "copy", "concat"))  # the type that arrives
_FOLDED: frozenset[WorkKind] = frozenset(("activation", "add", "multiply", *BATCH_NORMS))
_REDUCTIONS: frozenset[WorkKind] = frozenset(("reduce", "softmax", "layer norm", "group norm"))


class _Fused:
    """A kernel of Inductor's: the work of each operation in it, over `elements`; `closed` where nothing can follow."""

    __slots__ = ("closed", "elements", "works")

    def __init__(self, elements: int, number: int, work: Work) -> None:
        self.elements, self.works, self.closed = elements, {number: work}, work.kind in ("reduce", "concat")


class _Fusion:
    """The kernels that Inductor makes of the operations.

    An operation joins the kernel of the latest that it reads, if both run over as many elements; behind a library's
    kernel a new one begins. So no kernel needs what comes after it. Casts disappear in the kernels around them.
    """

    def __init__(self, walk: _Walk, *, folds: bool) -> None:
        self.walk, self.folds = walk, folds
        self.source: list[int] = []  # what each operation's tensor is, behind views and copies
        self.inputs: list[list[int]] = []  # the sources that each operation reads; none of views and copies
        self.kernel_of: dict[int, int] = {}
        self.kernels: list[_Fused] = []

    def run(self) -> None:
        """Adds all kernels."""
        walk = self.walk
        size = 2 if walk.sixteen is not None else walk._stored
        for number, operation in enumerate(walk.operations):
            sources = [self.source[index] for index in operation.inputs]
            work = operation.work
            promoted = walk.autocast and work is not None and work.kind in PROMOTED and work.in_32_bits
            handed_on = work is None or work.kind in _HANDS_ON
            wider = [walk.bytes_of[index] for index in operation.inputs if operation.layer is None and handed_on]
            walk.bytes_of.append(4 if promoted else max(wider, default=size))
            seen = operation.layer is None and operation.kind != "input" and work is None
            alias = bool(sources) and (seen or operation.copies_all)
            self.source.append(sources[0] if alias else number)
            self.inputs.append([] if alias else sources)
            if operation.layer is not None:
                walk._convolution(number, operation, [i for i in operation.inputs if self.source[i] in self.kernel_of])
            elif work is None or alias:
                continue
            elif work.kind == "unknown":
                walk._not_priced(number, work)
            elif work.kind in _PRODUCTS:
                walk._kernel(number, work, [size] * len(operation.inputs))
            else:
                walk._launch(number)
                self._place(number, work, sources)
        self._priced()

    def _place(self, number: int, work: Work, sources: Sequence[int]) -> None:
        """Puts an operation into the kernel of the latest one that it reads, or into a new one."""
        reads = self.walk.reads(number, work)
        elements = max(reads, default=0) if work.kind in _REDUCTIONS else self.walk.writes(number, work)
        normalises = work.kind == "batch norm" and self.walk.training
        latest = self.kernel_of.get(max(sources, default=-1))
        if latest is not None and not normalises and work.kind != "concat":
            kernel = self.kernels[latest]
            if kernel.elements == elements and not kernel.closed:
                kernel.works[number] = work
                kernel.closed = work.kind in ("reduce", "group norm")
                self.kernel_of[number] = latest
                return
        self.kernel_of[number] = len(self.kernels)
        self.kernels.append(_Fused(elements, number, work))

    def _is_folded(self, kernel: _Fused) -> bool:
        """Whether a compiler makes the kernel a part of a convolution: in inference, if it works element by element."""
        return self.folds and not self.walk.training and all(work.kind in _FOLDED for work in kernel.works.values())

    def _priced(self) -> None:
        walk = self.walk
        readers: dict[int, set[int]] = {}  # the kernels that read each operation; below 0 those of libraries
        for number, sources in enumerate(self.inputs):
            for source in sources:
                readers.setdefault(source, set()).add(self.kernel_of.get(number, -1 - number))
        for place, kernel in enumerate(self.kernels):
            read, written, again, shared = self._traffic(place, kernel, readers)
            folded = self._is_folded(kernel) and any(walk.operations[source].layer is not None for source in read)
            if folded:
                written = 0  # the convolution writes it in the place of its own output, and reads what is added
                read = {source: n for source, n in read.items() if walk.operations[source].layer is None}
            moved = sum(read.values()) + again + written
            works = list(kernel.works.values())
            sums_silu = works[-1].kind == "reduce" and any(work.op in _SILU for work in works)
            if sums_silu and walk.sixteen is not None and not self.folds:
                moved += _SUMMED_SILU_BYTES * kernel.elements
            kernels = 0 if folded else 2 if again else 1
            back = any(walk.arrives[number] for number in kernel.works)
            if back:  # gradients of what was written are read, and of what was read written, beside it
                moved += written + 2 * sum(read.values()) + 2 * again + shared
                kernels *= 2
                again *= 3
            for number, work in kernel.works.items():
                walk.estimates[number] = OperationEstimate(PART_OF[work.kind], 0.0, 0, 0, 0)
            if not moved:
                continue
            named, heaviest = next(iter(kernel.works)), max(works, key=_weight)
            if folded:  # what it is for is the addition
                named, heaviest = max(kernel.works.items(), key=lambda item: len(item[1].reads))
            strided = any(work.kind in _STRIDED_WHEN_FUSED for work in works)
            fresh = read[max(read)] if read else 0
            saved = walk._held(fresh) + (walk._held(written) if back else 0)
            time = (moved - saved) * (walk.strided_us_per_byte if strided else walk.us_per_byte)
            if not self.folds:
                time += again * max(0.0, 1 / (_REDUCED_PER_CLOCK * walk.board.clocks_per_us) - walk.us_per_byte)
                time = max(time, self._clocks(kernel, back=back) / walk.board.clocks_per_us)
            time += kernels * const.KERNEL_US
            walk._note(named, PART_OF[heaviest.kind], time, moved, 0, kernels)

    def _traffic(
        self, place: int, kernel: _Fused, readers: Mapping[int, set[int]]
    ) -> tuple[dict[int, int], int, int, int]:
        """(bytes of each tensor that it reads, bytes written, read for statistics first, moved to add up gradients)."""
        walk, size_of = self.walk, self.walk.bytes_of
        read: dict[int, int] = {}
        written = again = shared = 0
        for number, work in kernel.works.items():
            counts = zip(self.inputs[number], walk.reads(number, work), strict=False)
            arriving = [(source, count * size_of[source]) for source, count in counts]
            for source, bytes_ in arriving:
                # What Inductor makes itself it writes into its place in a concatenation.
                in_place = work.kind == "concat" and source in self.kernel_of
                if not in_place and self.kernel_of.get(source) != place:
                    read[source] = max(read.get(source, 0), bytes_)
            others = readers.get(number, {-2}) - {place}
            if work.kind == "concat":
                written += sum(read.values())
            elif walk.operations[number].output or others:
                size = size_of[number]
                if walk.autocast and size > 2 and number in readers:  # libraries read a copy in 16 bits
                    size = size * (walk.operations[number].output or max(others) >= 0) + 2 * (min(others) < 0)
                made = walk.writes(number, work) * size
                written += made
                # Gradients are added up: all but one are read once more, and their sum is written.
                if len(others) > 1 and not self.folds:
                    shared += len(others) * made
            if work.kind == "group norm" or (work.kind == "batch norm" and walk.training):
                again += sum(bytes_ for _, bytes_ in arriving)  # statistics first, in a kernel of their own
        return read, written, again, shared

    def _clocks(self, kernel: _Fused, *, back: bool) -> float:
        """Clocks of all SMs together that Inductor's kernel needs, `back` included, however fast memory is."""
        walk, clocks = self.walk, 0.0
        for number, work in kernel.works.items():
            if work.kind == "layer norm" and work.weights > 1:
                clocks += sum(_FUSED_LAYER_NORM_ROW[: 1 + back]) * norm_rows(work, walk.images)
            elif work.kind == "group norm" and work.op not in _INSTANCE_NORMS:
                clocks += sum(_FUSED_GROUP_NORM[: 1 + back]) * walk.writes(number, work)
            elif work.op == "gelu":
                clocks += sum(_FUSED_GELU[: 1 + back]) * walk.writes(number, work)
        return clocks


def _arriving(layer: ConvLayer) -> int:
    """The elements of a convolution's input; 0 where a size is unknown."""
    return (layer.N or 0) * (layer.C or 0) * (layer.D or 1) * (layer.H or 0) * (layer.W or 0)


def _has_bias(work: Work) -> bool:
    """Whether a product has weights beyond its matrix."""
    return len(work.product) == 4 and work.kind == "linear" and work.weights > work.product[2] * work.product[3]


def _weight(work: Work) -> int:
    """The elements that it moves, four times for norms: the heaviest work names a fused kernel."""
    return (sum(work.reads) + work.writes) * (4 if PART_OF[work.kind] == "normalisation" else 1)


def _scales(network: Network, layers: Sequence[ConvLayer]) -> tuple[float, list[float]]:
    """The factors on the batch and on each operation's elements where layers differ from the network's.

    A tensor grows with the convolution that it comes from, one made of several with the one that grows most.
    """
    pairs = list(zip(layers, network.layers, strict=True))
    images = next(((now.N or 1) / (before.N or 1) for now, before in pairs), 1.0)
    if images == 1 and all(now.K == before.K for now, before in pairs):
        return images, [1.0] * len(network.operations)
    scales: list[float] = []
    for operation in network.operations:
        if operation.layer is not None:
            now, before = pairs[operation.layer]
            scales.append(images * (now.K or 1) / (before.K or 1))
        elif operation.kind == "concat" and operation.work is not None and any(operation.work.reads):
            reads = operation.work.reads
            parts = zip(reads, operation.inputs, strict=True)
            scales.append(sum(count * scales[index] for count, index in parts) / sum(reads))
        else:
            scales.append(max((scales[index] for index in operation.inputs), default=images))
    return images, scales
