"""How long the layers of a network take on the GPU at other widths; what it costs in parameters and FLOPs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import gcd, prod
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
MISALIGNED_US = 1e9  # longer than any step: a layer whose channels get worse for Tensor Cores is no choice
NARROWING = 1.5  # so that of two widths as near to today's, that with more channels is taken if both serve as well
VECTOR = 8  # channels of 16 bits that Tensor Cores load at once (CG 4.4.3)


def added(channels: int, times: Fraction | int) -> int:
    """What `channels` more of a group make in a layer's C; widths of groups are such that it is a whole number."""
    return channels * times.numerator // times.denominator


class Cost(NamedTuple):
    """Of one layer, or of several: time on the GPU in us, parameters, and FLOPs of one forward pass."""

    time_us: float
    parameters: int
    flops: int


class Bounds(NamedTuple):
    """What a plan does not do, however much faster a layer gets.

    No C and no K of a layer is a worse multiple of a vector than today. What widens a group beyond `needed`, which the
    Tensor Cores want, has to save more us than it adds parameters and FLOPs, a parameter counted as `parameters` us and
    a FLOP as `flops`. What makes a layer narrower has to save `NARROWING` times as large a share of its time as of its
    work.
    """

    needed: Mapping[int, int]
    parameters: float
    flops: float


class Prices:
    """The layers of one network in one setting, each with the layouts that it may have."""

    def __init__(
        self, layers: Sequence[ConvLayer], alternatives: Mapping[int, str], channels: Channels,
        gpu: Gpu, runtime: Runtime, mode: Mode, bounds: Bounds | None = None,
    ) -> None:  # fmt: skip
        """`layers` are those of the network as they run. Within `bounds`, what breaks them is priced as slower."""
        self.layers, self.alternatives, self.channels = layers, alternatives, channels
        self._gpu, self._runtime, self._mode = gpu, runtime, mode
        self.reads: tuple[dict[int, Fraction], ...] = tuple({} for _ in layers)  # of each layer, what makes up its C
        for number, group in enumerate(channels.groups):
            for reader in group.readers:
                self.reads[reader.layer][number] = reader.times
        self._bounds = bounds
        self._needed = [self.sizes(index, bounds.needed) for index in range(len(layers))] if bounds else []
        kinds: dict[object, int] = {}
        self._kind = [
            kinds.setdefault((layer_identity(layer), alternatives.get(index), *self._needed[index : index + 1]), index)
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
            time = self._time_us(layer)
            if index in self.alternatives:
                time = min(time, self._time_us(self._other(index, layer)))
            known = Cost(time, parameters([layer]) or 0, layer.calls * (flops(layer) or 0))
            if self._bounds is not None:
                known = known._replace(time_us=time + self._toll(self._bounds, index, (C, K), known))
            self._known[key] = known
        return known

    def _toll(self, bounds: Bounds, index: int, sizes: tuple[int, int], cost: Cost) -> float:
        if self.is_misaligned(index, *sizes):
            return MISALIGNED_US
        layer, toll = self.layers[index], 0.0
        now = layer.C or 0, layer.K or 0
        if sizes[0] < now[0] or sizes[1] < now[1]:
            ratios = [min(1.0, size / own) for size, own in zip(sizes, now, strict=True)]
            kept = ratios[0] if layer.depthwise else prod(ratios)
            toll += NARROWING * (1 - kept) * self.cost(index, *now).time_us
        needed = tuple(map(min, sizes, self._needed[index]))
        if needed != sizes:
            enough = self.sized(index, *needed)
            more = cost.parameters - (parameters([enough]) or 0), cost.flops - layer.calls * (flops(enough) or 0)
            toll += max(rate * added for rate, added in zip((bounds.parameters, bounds.flops), more, strict=True))
        return toll

    def is_misaligned(self, index: int, C: int, K: int) -> bool:
        """Whether either is a worse multiple of a vector than it was."""
        layer = self.layers[index]
        return any(gcd(new, VECTOR) < gcd(old or 0, VECTOR) for old, new in ((layer.C, C), (layer.K, K)))

    def sized(self, index: int, C: int, K: int) -> ConvLayer:
        """The layer with these channels."""
        layer = self.layers[index]
        return replace(layer, C=C, K=K, groups=C if layer.depthwise else layer.groups)

    def prefers_alternative(self, index: int, C: int, K: int) -> bool:
        """Whether its own layout is the faster one at these widths, rather than the network's."""
        layer = self.sized(index, C, K)
        return self._time_us(self._other(index, layer)) < self._time_us(layer)

    def _other(self, index: int, layer: ConvLayer) -> ConvLayer:
        return replace(layer, layout=self.alternatives.get(index, layer.layout))

    def _time_us(self, layer: ConvLayer) -> float:
        time = time_us(layer, self._gpu, self._runtime, self._mode)
        return UNPREDICTABLE if time is None else time
