"""What the networks of one input keep on one GPU, and which batches leave room for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from msgspec.structs import replace

from convlint.estimate import LayerEstimate, workspace_bytes
from convlint.estimate.memory import Footprint, Memory, WorkspaceAt, lacking, lacking_state, parts
from convlint.gpus.gpu import Gpu
from convlint.model.layer import ConvLayer, Mode
from convlint.model.network import Edge
from convlint.model.runtime import Runtime


class Held:
    """The memory of a network on one GPU; where its layers make several networks, that of the fullest.

    `needs` is what has to be known for it; while there is any, all else raises LookupError.
    """

    def __init__(
        self, layers: Sequence[ConvLayer], edges: Sequence[Edge], estimates: Sequence[LayerEstimate | None],
        gpu: Gpu, runtime: Runtime, mode: Mode,
    ) -> None:  # fmt: skip
        self._layers, self._edges, self._estimates = layers, edges, estimates
        self._gpu, self._runtime, self._mode = gpu, runtime, mode

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """In the words of rules."""
        return lacking(self._layers) if self._layers else ("layers",)

    @cached_property
    def needs_state(self) -> tuple[str, ...]:
        """What the optimizer keeps, where that is not known: all figures are then the least that there can be."""
        return lacking_state(self._runtime, self._mode)

    @cached_property
    def _networks(self) -> list[tuple[Footprint, list[int], list[int]]]:
        """Each with its layers and their workspace."""
        if self.needs:
            raise LookupError(self.needs)
        networks = []
        for indices in parts(self._layers, self._edges):
            place = {index: position for position, index in enumerate(indices)}
            edges = [
                Edge(
                    consumer=place[edge.consumer], producers=tuple(place[producer] for producer in edge.producers),
                    source=edge.source, C=edge.C, H=edge.H, W=edge.W, D=edge.D,
                )
                for edge in self._edges
                if edge.consumer in place
            ]  # fmt: skip
            own = Footprint([self._layers[index] for index in indices], edges, self._runtime, self._mode)
            networks.append((own, indices, [_workspace(self._estimates[index]) for index in indices]))
        return networks

    @cached_property
    def _fullest(self) -> tuple[Footprint, list[int], list[int]]:
        return max(self._networks, key=lambda network: network[0].memory(network[2]).total)

    @property
    def memory(self) -> Memory:
        """At the present batch."""
        network, _, workspace = self._fullest
        return network.memory(workspace)

    @property
    def is_too_much(self) -> bool:
        """Whether it is more than the GPU has."""
        return self._gpu.memory_bytes is not None and self.memory.total > self._gpu.memory_bytes

    @cached_property
    def batch(self) -> int | None:
        """The present one; None where its layers have several."""
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
    return max((one.workspace_bytes for one in estimate.passes.values()), default=0)
