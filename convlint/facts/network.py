"""What rules may ask of the whole network, its memory included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from convlint.estimate import workspace_bytes
from convlint.estimate.host import Hosted
from convlint.estimate.memory import (
    Footprint,
    NetworkMemory,
    WorkspaceAt,
    lacking,
    lacking_state,
    parts,
)
from convlint.facts.quantity import UNKNOWN, Quantity, Table, Type, number
from convlint.files.languages import sentence
from convlint.gpus.gpu import Gpu
from convlint.model.estimates import LayerEstimate
from convlint.model.layer import ConvLayer, Dtype, Mode
from convlint.model.network import Edge, Operation, leaders
from convlint.model.runtime import Runtime
from convlint.model.text import Text, joined

if TYPE_CHECKING:
    from convlint.facts.layer import LayerFacts


class MemoryFacts:
    """The memory of a network on one GPU; of layers that make several networks, the memory of the largest.

    `needs` is what has to be known for it; while there is any, all else raises LookupError.
    """

    def __init__(
        self, layers: Sequence[ConvLayer], edges: Sequence[Edge], estimates: Sequence[LayerEstimate | None],
        gpu: Gpu, runtime: Runtime, mode: Mode, operations: Sequence[Operation] = (), training_keeps: str = "",
    ) -> None:  # fmt: skip
        """`training_keeps` names whose part in the memory of training is unknown."""
        self._layers, self._edges, self._estimates = layers, edges, estimates
        self._operations = operations
        self._unknown = (training_keeps,) if training_keeps and mode == "training" else ()
        self._gpu, self._runtime, self._mode = gpu, runtime, mode

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """What is not known but needed for the memory, in the words of rules."""
        return (*lacking(self._layers), *self._unknown) if self._layers else ("layers",)

    @cached_property
    def needs_state(self) -> tuple[str, ...]:
        """What the optimizer keeps, where that is not known: all figures are then the least that there can be."""
        return lacking_state(self._runtime, self._mode)

    @cached_property
    def _networks(self) -> list[tuple[Footprint, list[int], list[int]]]:
        """The footprint of each network, with the indices of its layers and their workspaces."""
        if self.needs:
            raise LookupError(self.needs)
        networks = []
        groups = parts(self._layers, self._edges)
        # Nobody says to which of several networks an operation belongs.
        operations = self._operations if len(groups) == 1 else ()
        for indices in groups:
            place = {index: position for position, index in enumerate(indices)}
            edges = [
                Edge(
                    consumer=place[edge.consumer], producers=tuple(place[producer] for producer in edge.producers),
                    source=edge.source, C=edge.C, H=edge.H, W=edge.W, D=edge.D,
                )
                for edge in self._edges
                if edge.consumer in place
            ]  # fmt: skip
            own = Footprint([self._layers[index] for index in indices], edges, self._runtime, self._mode, operations)
            networks.append((own, indices, [_workspace(self._estimates[index]) for index in indices]))
        return networks

    @cached_property
    def _fullest(self) -> tuple[Footprint, list[int], list[int]]:
        return max(self._networks, key=lambda network: network[0].memory(network[2]).total)

    @property
    def memory(self) -> NetworkMemory:
        """The memory at the present batch."""
        network, _, workspace = self._fullest
        return network.memory(workspace)

    @property
    def is_too_much(self) -> bool:
        """Whether the network needs more memory than the GPU has."""
        if self._gpu.memory_bytes is None or self.memory.total <= self._gpu.memory_bytes:
            return False
        # Where a larger batch fits, it is by a kernel with less workspace, which the library takes at this one too.
        return self.batch is None or (self.largest_batch or 0) < self.batch

    @cached_property
    def batch(self) -> int | None:
        """The present batch; None where the layers have several."""
        network, _, _ = self._fullest
        return network.batch if all(network.batch == layer.N for layer in network.layers) else None

    @cached_property
    def largest_batch(self) -> int | None:
        """What fits into the GPU's memory, 0 where one image is too much; None where that or the batch is unknown."""
        network, indices, _ = self._fullest
        capacity = self._gpu.memory_bytes
        if capacity is None or self.batch is None:
            return None
        return network.largest_batch(capacity, self._workspace_of(indices))

    def fits(self, now: int, batch: int) -> bool:
        """Whether the network whose batch is `now` fits at another one, as far as that is known."""
        capacity = self._gpu.memory_bytes
        if self.needs or capacity is None:
            return True
        return all(
            network.fits(batch * network.batch // now or 1, capacity, self._workspace_of(indices))
            for network, indices, _ in self._networks
            if any(now == self._layers[index].N for index in indices)
        )

    def _workspace_of(self, indices: Sequence[int]) -> WorkspaceAt:
        def at(position: int, N: int) -> int:
            layer = replace(self._layers[indices[position]], N=N)
            return workspace_bytes(layer, self._gpu, self._runtime, self._mode) or 0

        return at


def _workspace(estimate: LayerEstimate | None) -> int:
    if estimate is None:
        return 0
    return max((of_pass.workspace_bytes for of_pass in estimate.passes.values()), default=0)


_MOST_NAMED = 5
_MOST_IMAGES = 4096  # nobody asks for more images at once than that to hide a host
_HALVINGS = 4
_MOST_ASKED = 200  # layers that may stand on branches beside one: networks of stages have the nearest first


class NetworkFacts:
    """All layers of a network and their estimates; times are UNKNOWN where the time of one layer is not predicted."""

    def __init__(
        self,
        layers: Sequence[ConvLayer],
        edges: Sequence[Edge],
        estimates: Sequence[LayerEstimate | None],
        precision: Callable[[Dtype], tuple[Dtype, int, bool]],
        memory: MemoryFacts,
        on_host: Hosted | None = None,
        waits_at: Callable[[int], bool] | None = None,
    ) -> None:
        """`waits_at` says whether the GPU waits for its host at a batch."""
        self.layers, self.edges, self.precision, self.memory = layers, edges, precision, memory
        self.waits_at = waits_at
        self.on_host = on_host or Hosted(tuple(estimates), None, 0.0)
        self.priced = [(layer, estimate) for layer, estimate in zip(layers, estimates, strict=True) if estimate]
        self.time_us = sum(estimate.time_us for _, estimate in self.priced)
        self.is_predicted = bool(self.priced) and len(self.priced) == len(layers) and self.time_us > 0

    @cached_property
    def _lineage(self) -> tuple[list[int], list[int]]:
        """For each layer the bits of those that it depends on, and of those that depend on it."""
        before, after = [0] * len(self.layers), [0] * len(self.layers)
        for edge in sorted(self.edges, key=lambda edge: edge.consumer):
            for producer in edge.producers:
                before[edge.consumer] |= before[producer] | 1 << producer
        for edge in sorted(self.edges, key=lambda edge: -edge.consumer):
            for producer in edge.producers:
                after[producer] |= after[edge.consumer] | 1 << edge.consumer
        return before, after

    @cached_property
    def _places(self) -> dict[int, int]:
        return {id(layer): index for index, layer in enumerate(self.layers)}

    @cached_property
    def _parts(self) -> list[int]:
        """For each layer the bits of those that edges connect it with, however far."""
        pairs = ((producer, edge.consumer) for edge in self.edges for producer in edge.producers)
        leader, bits = leaders(len(self.layers), pairs), [0] * len(self.layers)
        for index, of in enumerate(leader):
            bits[of] |= 1 << index
        return [bits[of] for of in leader]

    def beside(self, layer: ConvLayer, most: int) -> list[str]:
        """Names of `most` layers at most on parallel branches: independent ones that share a layer before or after."""
        index = self._places.get(id(layer))
        if index is None or not self.edges:
            return []
        before, after = self._lineage
        names: list[str] = []
        others = self._parts[index] & ~(before[index] | after[index] | 1 << index)
        for _ in range(_MOST_ASKED):
            if not others or len(names) == most:
                break
            number = (others & -others).bit_length() - 1
            others &= others - 1
            if before[index] & before[number] or after[index] & after[number]:
                names.append(self.layers[number].name)
        return names

    @cached_property
    def memory_bound_us(self) -> list[tuple[float, str]]:
        """What each layer spends in memory-bound passes, and its name."""
        return [
            (layer.calls * sum(p.time_us for p in estimate.passes.values() if p.bound_by == "memory"), layer.name)
            for layer, estimate in self.priced
        ]

    def launch_us(self) -> float:
        """What all layers spend on launches and setup."""
        return sum(layer.calls * sum(p.overhead_us for p in e.passes.values()) for layer, e in self.priced)

    def batch_for_the_host(self) -> Any:
        """About the largest batch at which the GPU needs no longer than its host, as far as there is memory for it."""
        now = next((layer.N for layer in self.layers), None)
        if self.waits_at is None or not self.on_host.is_bound or self.on_host.host_us is None or not now:
            return UNKNOWN
        fits = None if self.memory.needs else self.memory.largest_batch
        most = _MOST_IMAGES if fits is None else min(fits, _MOST_IMAGES)
        low, high = now, 2 * now
        while high <= most and self.waits_at(high):
            low, high = high, 2 * high
        for _ in range(_HALVINGS):
            middle = (low + high) // 2
            if low < middle <= most and self.waits_at(middle):
                low = middle
            else:
                high = middle
        return low if low > now else UNKNOWN

    def on_tensor_cores(self) -> Any:
        """Whether some layer's compute dtype multiplies on Tensor Cores."""
        dtypes = {layer.dtype for layer in self.layers}
        if any(dtype is not None and self.precision(dtype)[2] for dtype in dtypes):
            return True
        return UNKNOWN if None in dtypes else False

    def is_unaligned(self, layer: ConvLayer) -> bool:
        """Whether C or K is no multiple of what the layer's compute dtype wants."""
        if layer.dtype is None or layer.groups > 1:
            return False
        multiple = self.precision(layer.dtype)[1]
        return any(channels is not None and channels % multiple for channels in (layer.C, layer.K))


def _timed(kind: Type, meaning: str, of: Callable[[NetworkFacts], Any]) -> Quantity:
    return Quantity(
        kind,
        meaning,
        lambda network: of(network) if network.is_predicted else UNKNOWN,
        (sentence("predicted time"),),
        gpu=True,
    )


def _lacking_memory(facts: LayerFacts) -> tuple[str, ...]:
    network = facts.context.network
    return () if network is None else network.memory.needs or network.memory.needs_state


def _memory_quantity(meaning: str, of: Callable[[MemoryFacts], Any]) -> Quantity:
    def known(network: NetworkFacts) -> Any:
        memory = network.memory
        if memory.needs or (memory.needs_state and not memory.is_too_much):  # the least decides, or nothing does
            return UNKNOWN
        value = of(memory)
        return UNKNOWN if value is None else value

    return Quantity("number", meaning, known, _lacking_memory, gpu=True)


def _ms(us: float | None) -> Any:
    return UNKNOWN if us is None else us / 1000


def _heaviest(network: NetworkFacts) -> str:
    return shortened([name for time, name in sorted(network.memory_bound_us, reverse=True) if time > 0], _MOST_NAMED)


NETWORK: Table = {
    "layers": number("convolutions in the network", lambda network: len(network.layers)),
    "time_us": _timed("number", "predicted time of one step", attrgetter("time_us")),
    "memory_bound_percent": _timed(
        "number",
        "share of the time in passes below the GPU's ridge, in percent",
        lambda network: 100 * sum(time for time, _ in network.memory_bound_us) / network.time_us,
    ),
    "launch_percent": _timed(
        "number",
        "share of the time that is launch overhead, in percent",
        lambda network: 100 * network.launch_us() / network.time_us,
    ),
    "memory_bytes": _memory_quantity(
        "what is kept at once, as far as it is known: weights, activations, workspace, ...",
        lambda facts: facts.memory.total,
    ),
    "memory_gib": _memory_quantity("memory_bytes in GiB", lambda facts: facts.memory.total / 2**30),
    "batch": _memory_quantity("N of the network", lambda facts: facts.batch),
    "largest_batch": _memory_quantity(
        "the largest N that leaves room for it on the GPU (0: none)", lambda facts: facts.largest_batch
    ),
    "host_bound": Quantity(
        "truth",
        "the GPU waits for its host, as far as the framework's host is known",
        lambda network: network.on_host.is_bound,
        gpu=True,
    ),
    "host_ms": Quantity(
        "number",
        "what the host needs to start the network's operations",
        lambda network: _ms(network.on_host.whole_host_us),
        ("runtime.framework",),
        gpu=True,
    ),
    "gpu_ms": _timed(
        "number",
        "what the GPU needs for all operations; for the convolutions, where no host is known and others are not",
        lambda network: _ms(network.on_host.whole_gpu_us),
    ),
    "step_ms": Quantity(
        "number",
        "the whole step, where all operations are known",
        lambda network: _ms(None if network.on_host.step is None else network.on_host.step.time_us),
        (sentence("all operations of the network"),),
        gpu=True,
    ),
    "compiled_step_ms": Quantity(
        "number",
        "the whole step behind torch.compile, where it runs in eager PyTorch and all operations are known",
        lambda network: _ms(None if network.on_host.compiled is None else network.on_host.compiled.time_us),
        (sentence("all operations of the network"),),
        gpu=True,
    ),
    "batch_for_the_host": Quantity(
        "number",
        "where the host is the bound, about the largest N that takes no longer",
        lambda network: network.batch_for_the_host(),
        ("runtime.framework",),
        gpu=True,
    ),
    "memory_bound_layers": _timed("text", "layers with most time in memory-bound passes", _heaviest),
    "unaligned_nhwc": Quantity(
        "truth",
        "some NHWC layer on Tensor Cores has C or K that is no multiple of alignment",
        lambda network: any(network.is_unaligned(layer) for layer in network.layers if layer.layout == "NHWC"),
        gpu=True,
    ),
    "depthwise": Quantity(
        "truth",
        "some two-dimensional layer is depthwise, with a filter of more than a point",
        lambda network: any(
            layer.depthwise and layer.dims == 2 and max(layer.R or 0, layer.S or 0) > 1 for layer in network.layers
        ),
    ),
    "on_tensor_cores": Quantity(
        "truth",
        "compute_dtype of some layer multiplies on this GPU's Tensor Cores",
        lambda network: network.on_tensor_cores(),
        lambda facts: ("dtype",) if facts["network"].on_tensor_cores is UNKNOWN else (),
        gpu=True,
    ),
}


def shortened(names: Sequence[str], most: int) -> str:
    """Names for a message: `a, b, c and 4 more`."""
    shown = joined(", ", names[:most])
    return Text("{names} and {count} more", names=shown, count=len(names) - most) if len(names) > most else shown
