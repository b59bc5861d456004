"""What a network takes with some of a plan's levers pulled and others not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from convlint.engine.changes import with_settings
from convlint.engine.check import Target
from convlint.engine.networks import as_laid_out
from convlint.estimate import time_us
from convlint.model.channels import Channels
from convlint.model.layer import ConvLayer, Mode
from convlint.model.network import Network
from convlint.model.runtime import Runtime
from convlint.planning.levers import Lever
from convlint.planning.prices import MISALIGNED_US, UNPREDICTABLE, Prices
from convlint.planning.settings import changed

GRAPHS = "runtime.cuda_graphs"
LEAST_SHARE = 0.01


class Subsets:
    """Times of `layers`, those that have one, by the numbers of the `levers` pulled; far too long if they misalign it.

    `host_us` is what the host needs for all of them, where it is known; recorded as a graph, they need none.
    """

    def __init__(
        self, network: Network, channels: Channels, levers: Sequence[Lever], layers: Iterable[int],
        target: Target, mode: Mode, host_us: float | None = None,
    ) -> None:  # fmt: skip
        self.levers, self.host_us = levers, host_us
        self._network, self._gpu, self._mode = network, target.gpu, mode
        self._prices = Prices(as_laid_out(network), {}, channels, target.gpu, network.runtime, mode)
        self._known = sorted(layers)
        self._is_known = frozenset(self._known)
        self._of_runtime = frozenset(number for number, lever in enumerate(levers) if lever.of_runtime)
        self._recording = [
            number
            for number, lever in enumerate(levers)
            if lever.choice is not None and (lever.choice.name, lever.choice.value) == (GRAPHS, True)
        ]
        self._touching: list[list[int]] = [[] for _ in network.layers]
        for number, lever in enumerate(levers):
            for index in lever.layers:
                self._touching[index].append(number)
        self._runtimes: dict[frozenset[int], Runtime] = {}
        self._times: dict[tuple[int, frozenset[int]], float] = {}

    def touched(self, numbers: Iterable[int]) -> Sequence[int]:
        """The layers whose time depends on these levers."""
        numbers = list(numbers)
        if not self._of_runtime.isdisjoint(numbers):
            return self._known
        found = {index for number in numbers for index in self.levers[number].layers}
        return sorted(found & self._is_known)

    def gpu_us(self, pulled: Set[int], layers: Iterable[int] | None = None) -> float:
        """What the GPU needs for these layers, or for all of them."""
        of_runtime = frozenset(number for number in self._of_runtime if number in pulled)
        return sum(self._layer_us(index, pulled, of_runtime) for index in (self._known if layers is None else layers))

    def least_us(self, numbers: Iterable[int], pulled: Set[int]) -> float:
        """What levers on channels have to save to be worth it: a share of what their layers take."""
        numbers = list(numbers)
        if not numbers or any(self.levers[number].group is None for number in numbers):
            return 0.0
        return LEAST_SHARE * self.gpu_us(pulled, self.touched(numbers))

    def step_us(self, gpu_us: float, pulled: Set[int]) -> float:
        """How long a step takes of which the GPU needs `gpu_us`: at the pace of the host, where that is slower."""
        if self.host_us is None or any(number in pulled for number in self._recording):
            return gpu_us
        return max(gpu_us, self.host_us)

    def _layer_us(self, index: int, pulled: Set[int], of_runtime: frozenset[int]) -> float:
        key = index, of_runtime.union([number for number in self._touching[index] if number in pulled])
        known = self._times.get(key)
        if known is None:
            if of_runtime not in self._runtimes:
                choices = [self.levers[number].choice for number in sorted(of_runtime)]
                changes = {choice.name: choice.value for choice in choices if choice is not None}
                self._runtimes[of_runtime] = with_settings(self._network.runtime, changes)
            layer = self.layer(index, pulled)
            time = time_us(layer, self._gpu, self._runtimes[of_runtime], self._mode)
            known = UNPREDICTABLE if time is None else time
            if self._prices.is_misaligned(index, layer.C or 0, layer.K or 0):
                known += MISALIGNED_US
            self._times[key] = known
        return known

    def layer(self, index: int, pulled: Set[int]) -> ConvLayer:
        """One layer as it then runs."""
        mine = [self.levers[number] for number in self._touching[index] if number in pulled]
        widths = {lever.group: lever.width for lever in mine if lever.group is not None}
        layer = self._prices.layers[index]
        if widths:
            layer = self._prices.sized(index, *self._prices.sizes(index, widths))
        for lever in mine:
            if lever.choice is not None:
                layer = changed(layer, {lever.choice.name: lever.choice.value})
        return layer
