"""Which batch to advise: one plan for the whole network, and only where an image then takes less time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from typing import NamedTuple

from convlint.engine.hits import Hit, Price
from convlint.estimate import LayerEstimate
from convlint.model.layer import ConvLayer

_ADVICE_GAIN = 0.005  # of the network's time per image: what another batch must gain to be advised
_BATCHES_TRIED = 6  # on each side
_MOST_KINDS = 400  # kinds of layers on which every batch is tried
_SAMPLE = 100  # of a network with more: every n-th of them, from the longest to the shortest


class BatchPlan(NamedTuple):
    """The batches worth it, one on each side at most, that to take first; and the time of an image, in us."""

    batches: tuple[int, ...]
    now_us: float
    best_us: float


class Batches:
    """The network's time per image as a function of N.

    `time_us(index, N)` predicts one layer; `fits(now, N)` says whether there is memory for layers of `now` at N. Where
    the GPU `waits` for its host, only more than one image is advised: tiles and waves are not what an image waits for.
    """

    def __init__(
        self,
        layers: Sequence[ConvLayer],
        estimates: Sequence[LayerEstimate | None],
        time_us: Callable[[int, int], float | None],
        fits: Callable[[int, int], bool] | None = None,
        *,
        waits: bool = False,
    ) -> None:
        self.layers, self.estimates, self.time_us, self.fits, self.waits = layers, estimates, time_us, fits, waits
        self._network_us: dict[tuple[int, int], float] = {}
        self._samples: dict[int, Sequence[tuple[int, float]]] = {}

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

    def settled(self, hits: Iterable[Hit]) -> list[Hit]:
        """The hits, those on N with the one plan for their batch, and the severity that its gain leaves them."""
        hits = list(hits)
        wanted: dict[int, Counter[int]] = {}
        for hit in hits:
            now = self._now(hit)
            if now is not None:
                votes = wanted.setdefault(now, Counter())
                votes.update(int(changes["N"]) for changes in (hit.sets[0], hit.other) if "N" in changes)
        plans = {
            now: self.plan(now, [N for N, _ in sorted(votes.items(), key=lambda item: (-item[1], item[0]))])
            for now, votes in wanted.items()
        }
        return [hit if (now := self._now(hit)) is None else self._with(hit, now, plans[now]) for hit in hits]

    def _now(self, hit: Hit) -> int | None:
        """The present batch, where another one is what the hit asks for."""
        return self.layers[hit.indices[0]].N if hit.indices and hit.sets_batch else None

    def _with(self, hit: Hit, now: int, plan: BatchPlan) -> Hit:
        best = plan.batches
        own = {changes.get("N") for changes in (hit.sets[0], hit.other)}
        if hit.rule.loss != "wave":  # what fills its tiles may be another batch
            best = tuple(takewhile(own.__contains__, best))
        change_us = self.us_per_image(now, best[0]) - plan.now_us if best else None
        return hit._replace(
            severity="error" if hit.severity == "error" else "info",
            sets=({"N": best[0]} if best else {},),
            other={"N": best[1]} if len(best) > 1 else {},
            price=Price(capacity_us=hit.price.capacity_us, change_us=change_us),
        )

    def said_once(self, hits: Iterable[Hit]) -> list[Hit]:
        """The hits with one for each batch: of those that ask for another, or would, that on most layers."""
        hits = list(hits)
        loudest: dict[int, Hit] = {}
        for hit in hits:
            now = self._now(hit)
            if now is not None:
                first = loudest.setdefault(now, hit)
                if (bool(hit.sets[0]), len(hit.indices)) > (bool(first.sets[0]), len(first.indices)):
                    loudest[now] = hit
        return [
            hit for hit in hits if hit.severity == "error" or (now := self._now(hit)) is None or hit is loudest[now]
        ]

    def plan(self, now: int, wanted: Sequence[int]) -> BatchPlan:
        """Of the batches `wanted`, the most wanted first, and of round ones near, those at which an image takes less.

        A network has one batch: what matters is the time per image of all layers that share it.
        """
        if self.waits and now > 1:
            present = self.us_per_image(now, now)
            return BatchPlan((), present, present)
        most = 2 * now if now > 1 else max(wanted, default=1)  # more is another way to work; but one image is none
        below = [N for N in wanted if now / 2 <= N < now]
        above = [N for N in wanted if now < N <= most]
        if wanted and len(self._by_batch.get(now, ())) <= _MOST_KINDS:
            above += [N for step in (8, 16, 32, 64) if now < (N := now // step * step + step) <= most]
        present = self.us_per_image(now, now)
        best = []
        for side in (below, above):
            tried = sorted(dict.fromkeys(side[:_BATCHES_TRIED]), reverse=True)
            tried = [N for N in tried if self.fits is None or self.fits(now, N)]
            N = min(tried, key=lambda N: self.us_per_image(now, N), default=now)
            if now != N and self.us_per_image(now, N) < present * (1 - _ADVICE_GAIN):
                best.append(N)
        best.sort(key=lambda N: (now > N, abs(N - now)))  # a lower one takes work away
        return BatchPlan(tuple(best), present, min((self.us_per_image(now, N) for N in best), default=present))

    def us_per_image(self, now: int, N: int) -> float:
        """Of all layers whose batch is `now`, at batch `N`, as far as it is known; in us."""
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
