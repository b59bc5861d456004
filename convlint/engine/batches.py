"""Which batch to advise: one for the whole network, and only where an image then takes less time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from convlint.engine.hits import Hit
from convlint.engine.severity import by_batch
from convlint.estimate import LayerEstimate
from convlint.model.layer import ConvLayer

_ADVICE_GAIN = 0.005  # of the network's time per image: what another batch must gain to be advised
_BATCHES_TRIED = 6  # on each side
_MOST_KINDS = 400  # kinds of layers on which every batch is tried
_SAMPLE = 100  # of a network with more: every n-th of them, from the longest to the shortest


def sets_batch(hit: Hit) -> bool:
    """Whether the fix is another batch, which is the whole network's."""
    return bool(hit.sets) and set(hit.sets[0]) == {"N"}


class Batches:
    """The network's time per image as a function of N; `time_us(index, N)` predicts one layer."""

    def __init__(
        self,
        layers: Sequence[ConvLayer],
        estimates: Sequence[LayerEstimate | None],
        time_us: Callable[[int, int], float | None],
    ) -> None:
        self.layers, self.estimates, self.time_us = layers, estimates, time_us
        self._network_us: dict[tuple[int, int], float] = {}
        self._samples: dict[int, Sequence[tuple[int, float]]] = {}

    def kinds(self, hit: Hit) -> Mapping[int, int]:
        """Of the layers that share the hit's batch, one of each kind and how many are like it."""
        N = self.layers[hit.indices[0]].N
        return {} if N is None else self._by_batch.get(N, {})

    @cached_property
    def _by_batch(self) -> Mapping[int, Mapping[int, int]]:
        """Kinds by their present batch: a spec may hold layers of several networks. Equal passes share estimates."""
        first: dict[tuple[int, ...], int] = {}
        count: dict[int, dict[int, int]] = {}
        for index, (layer, estimate) in enumerate(zip(self.layers, self.estimates, strict=True)):
            if layer.N is not None:
                key = (index,) if estimate is None else (layer.calls, *map(id, estimate.passes.values()))
                kind = first.setdefault(key, index)
                same = count.setdefault(layer.N, {})
                same[kind] = same.get(kind, 0) + 1
        return count

    def settled(self, hit: Hit) -> Hit:
        """Of the batches that the rule wants, and of round ones near them, those at which an image takes less time.

        A network has one batch: what matters is the time per image of all of it. Advice that does not lower that is
        none.
        """
        now = self.layers[hit.indices[0]].N if hit.indices else None
        if now is None or not (hit.batches or (hit.sets and set(hit.sets[0]) == {"N"})):
            return hit
        wanted = [int(N) for N in (hit.batches or (hit.sets[0]["N"], hit.other.get("N", now)))]
        most = 2 * now if now > 1 else max(wanted)  # more is another way to work, not advice; but one image is none
        below = [N for N in wanted if now / 2 <= N < now]
        above = [N for N in wanted if now < N <= most]
        if len(self._by_batch[now]) <= _MOST_KINDS:
            above += [N for step in (8, 16, 32, 64) if now < (N := now // step * step + step) <= most]

        def us_per_image(N: int) -> float:
            return self._us_per_image(now, N)

        present = us_per_image(now)
        best = []
        for side in (below, above):
            N = min(sorted(dict.fromkeys(side[:_BATCHES_TRIED]), reverse=True), key=us_per_image, default=now)
            if now != N and us_per_image(N) < present * (1 - _ADVICE_GAIN):
                best.append(N)
        best.sort(key=lambda N: abs(N - now))
        return hit._replace(
            severity=by_batch(hit.severity, present, min(map(us_per_image, best), default=present)),
            loss=None,
            sets=({"N": best[0]} if best else {},) * len(hit.indices),
            other={"N": best[1]} if len(best) > 1 else {},
        )

    def _us_per_image(self, now: int, N: int) -> float:
        """Of all layers whose batch is `now`, at batch `N`, as far as it is known."""
        key = now, N
        if key not in self._network_us:
            self._network_us[key] = sum(weight * (self.time_us(index, N) or 0.0) for index, weight in self._tried(now))
        return self._network_us[key] / N

    def _tried(self, now: int) -> Sequence[tuple[int, float]]:
        """The kinds on which other batches are tried, and how many layers each stands for.

        Long layers gain less from another batch than short ones, so that a sample has both; each of its layers stands
        for the time of those that were left out beside it.
        """
        if now not in self._samples:
            kinds = list(self._by_batch[now].items())
            if len(kinds) > _MOST_KINDS:
                kinds.sort(key=lambda kind: -kind[1] * self._present_us(kind[0]))
                size = len(kinds) / _SAMPLE
                groups = [kinds[int(n * size) : int((n + 1) * size)] for n in range(_SAMPLE)]
                self._samples[now] = [self._standing_for(group) for group in groups]
            else:
                self._samples[now] = kinds
        return self._samples[now]

    def _standing_for(self, kinds: Sequence[tuple[int, int]]) -> tuple[int, float]:
        """The one in the middle, weighted so that it takes as long as all of them do now."""
        index, times = kinds[len(kinds) // 2]
        present = self._present_us(index)
        whole = sum(count * self._present_us(each) for each, count in kinds)
        return index, whole / present if present else times

    def _present_us(self, index: int) -> float:
        estimate = self.estimates[index]
        return estimate.time_us if estimate else 0.0
