"""How long the layers of a network take on the GPU at other widths; what it costs in parameters and FLOPs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from msgspec.structs import replace

from convlint.estimate import time_us
from convlint.estimate.memory import parameters
from convlint.gpus.gpu import Gpu
from convlint.model.channels import Channels
from convlint.model.gemm import flops
from convlint.model.layer import ConvLayer, Mode, layer_identity
from convlint.model.runtime import Runtime

UNPREDICTABLE = float("inf")


def added(channels: int, times: Fraction | int) -> int:
    """What `channels` more of a group make in a layer's C; widths of groups are such that it is a whole number."""
    return channels * times.numerator // times.denominator


class Cost(NamedTuple):
    """Of one layer, or of several: time on the GPU in us, parameters, and FLOPs of one forward pass."""

    time_us: float
    parameters: int
    flops: int


class Prices:
    """The layers of one network in one setting, each with the layouts that it may have."""

    def __init__(
        self, layers: Sequence[ConvLayer], alternatives: Mapping[int, str], channels: Channels,
        gpu: Gpu, runtime: Runtime, mode: Mode,
    ) -> None:  # fmt: skip
        """`layers` are those of the network as they run."""
        self.layers, self.alternatives, self.channels = layers, alternatives, channels
        self._gpu, self._runtime, self._mode = gpu, runtime, mode
        self.reads: tuple[dict[int, Fraction], ...] = tuple({} for _ in layers)  # of each layer, what makes up its C
        for number, group in enumerate(channels.groups):
            for reader in group.readers:
                self.reads[reader.layer][number] = reader.times
        kinds: dict[object, int] = {}
        self._kind = [
            kinds.setdefault((layer_identity(layer), alternatives.get(index)), index)
            for index, layer in enumerate(layers)
        ]  # layers of one kind take as long at the same widths
        self._known: dict[tuple[int, int, int], Cost] = {}

    def sizes(self, index: int, widths: Mapping[int, int]) -> tuple[int, int]:
        """(C, K) of a layer once the groups that `widths` names have those widths. Its own have to be known."""
        C, groups = self.layers[index].C or 0, self.channels.groups
        for number, times in self.reads[index].items():
            if number in widths:
                C += added(widths[number] - groups[number].width, times)
        return C, self.K(index, C, widths)

    def K(self, index: int, C: int, widths: Mapping[int, int]) -> int:
        """What a layer of `C` channels writes: a depthwise one writes as many of each as today."""
        layer = self.layers[index]
        if layer.depthwise:
            return (layer.K or 0) // (layer.C or 1) * C
        written = self.channels.written.get(index)
        return (layer.K or 0) if written is None else widths.get(written, layer.K or 0)

    def cost(self, index: int, C: int, K: int) -> Cost:
        """Of all calls of a layer of these channels, in the best of its layouts."""
        key = self._kind[index], C, K
        known = self._known.get(key)
        if known is None:
            layer = self.sized(index, C, K)
            time = min(self._time_us(layer), self._time_us(self._other(index, layer)))
            known = Cost(time, parameters([layer]) or 0, layer.calls * (flops(layer) or 0))
            self._known[key] = known
        return known

    def sized(self, index: int, C: int, K: int) -> ConvLayer:
        """The layer with these channels."""
        layer = self.layers[index]
        return replace(layer, C=C, K=K, groups=C if layer.depthwise else layer.groups)

    def prefers_alternative(self, index: int, C: int, K: int) -> bool:
        """Whether its own layout is the faster one at these widths, rather than the network's."""
        layer = self.sized(index, C, K)
        return self._time_us(self._other(index, layer)) < self._time_us(layer)

    def _other(self, index: int, layer: ConvLayer) -> ConvLayer:
        layout = self.alternatives.get(index)
        return layer if layout is None else replace(layer, layout=layout)

    def _time_us(self, layer: ConvLayer) -> float:
        time = time_us(layer, self._gpu, self._runtime, self._mode)
        return UNPREDICTABLE if time is None else time
