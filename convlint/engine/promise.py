"""What B makes of the time of every layer, and so of the network: what the check of the changed network will say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from convlint.engine.joint import Settled
from convlint.engine.levers import Advice
from convlint.engine.networks import host_of
from convlint.engine.optimum import Optimum, Search
from convlint.engine.timing import NOTHING, Changes
from convlint.estimate import LayerEstimate
from convlint.estimate.host import Hosted, hosted
from convlint.report import LayerTimes


class Promise(NamedTuple):
    """B of a network on one target, how it was found, and the hits with what they earn in it."""

    optimum: Optimum
    search: Search
    advice: Advice
    settled: Settled
    estimates: Sequence[LayerEstimate | None]  # as things are, on the network's host

    def times(self, on_host: Hosted) -> list[LayerTimes | None]:
        """Of each layer now, after all advice, and in the ideal; on the network's host, where it sets the pace."""
        best, timing = self.optimum, self.search.timing
        changes = self.advice.changes(best.levers)
        written = {key: lever for key, lever in best.levers.items() if "copies_input" not in lever.changes}
        after, fixed = changes, changes if len(written) == len(best.levers) else self.advice.changes(written)
        if on_host.host_us is not None:
            return self._on_host(on_host, after, fixed)
        now = timing.times(timing.now)
        found: list[LayerTimes | None] = []
        for index, time_us in enumerate(now):
            then_us = timing.time_us(best.setting, index, after.get(index, NOTHING))
            ideal_us = self._ideal_us(index, after.get(index, NOTHING))
            fixed_us = timing.time_us(best.setting, index, fixed.get(index, NOTHING))
            known = time_us is not None and then_us is not None and ideal_us is not None
            found.append(
                LayerTimes(time_us=time_us, after_us=then_us, ideal_us=ideal_us, after_fix_us=fixed_us)
                if known and time_us is not None and then_us is not None and ideal_us is not None
                else None
            )
        return found

    def _ideal_us(self, index: int, changes: Changes) -> float | None:
        best, timing = self.optimum, self.search.timing
        estimate = self.estimates[index]
        same = best.setting.number == timing.now.number and best.setting.running[index] == timing.now.running[index]
        if estimate is not None and same and not changes:
            return estimate.unquantized_us
        return timing.ideal_us(best.setting, index, changes)

    def _on_host(
        self, on_host: Hosted, after: Mapping[int, Changes], fixed: Mapping[int, Changes]
    ) -> list[LayerTimes | None]:  # fmt: skip
        """The same where the host is known: the GPU may wait for it now, after the advice, or both."""
        found: list[LayerTimes | None] = []
        ends = self._hosted(after), self._hosted(fixed)
        for now, then, written in zip(on_host.estimates, *ends, strict=True):
            if now is None or then is None or written is None:
                found.append(None)
                continue
            ideal_us = min(then.unquantized_us, then.time_us)
            found.append(
                LayerTimes(time_us=now.time_us, after_us=then.time_us, ideal_us=ideal_us, after_fix_us=written.time_us)
            )
        return found

    def _hosted(self, changes: Mapping[int, Changes]) -> tuple[LayerEstimate | None, ...]:
        best, timing = self.optimum, self.search.timing
        numbers = range(len(best.setting.running))
        estimates = [timing.estimate(best.setting, index, changes.get(index, NOTHING)) for index in numbers]
        layers = [timing.layer(best.setting, index, changes.get(index, NOTHING)) for index in numbers]
        return hosted(layers, estimates, host_of(timing.network, timing.gpu)).estimates
