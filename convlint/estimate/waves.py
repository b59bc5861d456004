"""The batch sizes next to a layer's whose waves are full enough (CG 4.3, Fig. 4)."""

from __future__ import annotations

from collections.abc import Callable

from convlint.estimate.passes import tiling
from convlint.gpus.gpu import Gpu
from convlint.model.layer import ConvLayer, Pass
from convlint.model.runtime import Runtime

FULL_ENOUGH = 0.95  # wave efficiency at which a batch size is offered
_MOST_WAVES = 5  # fewer or more than the layer has now, among which one is looked for


def nearest_full_waves(layer: ConvLayer, which: Pass, gpu: Gpu, runtime: Runtime) -> tuple[int | None, int | None]:
    """The nearest N below and above the layer's whose waves are at least 95 % full; None where there is none.

    Found for the tile that the layer runs with, and kept only where the model still holds that to be the case.
    """
    N = layer.N
    now = None if N is None else tiling(layer, which, gpu, runtime, N=N)
    if N is None or now is None:
        return None, None
    tiles, wave = now.tiles, now.wave
    full = tiles // wave

    def nearest(waves: range, counts: Callable[[int], bool]) -> int | None:
        for wanted in waves:
            n = int(wanted * wave / (tiles / N) + 1e-9)
            if n < 1 or not counts(n):
                continue
            there = tiling(layer, which, gpu, runtime, N=n)
            if there is not None and there.wave_efficiency >= FULL_ENOUGH:
                return n
        return None

    below = nearest(range(full, max(0, full - _MOST_WAVES - 1), -1), lambda n: n < N)
    above = nearest(range(full + 1, full + 1 + _MOST_WAVES), lambda n: n > N)
    return below, above
