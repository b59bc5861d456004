"""The batch sizes next to a layer's whose waves are full enough (CG 4.3, Fig. 4)."""

from __future__ import annotations

from msgspec.structs import replace

from convlint.estimate.passes import estimate_pass
from convlint.gpus.gpu import Gpu
from convlint.model.layer import ConvLayer, Pass
from convlint.model.runtime import Runtime

FULL_ENOUGH = 0.95  # wave efficiency at which a batch size is offered


def nearest_full_waves(layer: ConvLayer, which: Pass, gpu: Gpu, runtime: Runtime) -> tuple[int | None, int | None]:
    """The nearest N below and above the layer's whose waves are at least 95 % full; None where there is none.

    Found for the tile that the layer runs with, and kept only where the model still holds that to be the case.
    """
    estimate = estimate_pass(layer, which, gpu, runtime)
    if estimate is None or layer.N is None:
        return None, None
    below = above = None
    wave = gpu.sms * estimate.resident_tiles
    per_image = estimate.tiles / layer.N
    full = estimate.tiles // wave
    for waves in range(full, 0, -1):
        candidate = _check(layer, which, gpu, runtime, int(waves * wave / per_image + 1e-9))
        if candidate is not None and candidate < layer.N:
            below = candidate
            break
        if full - waves > 4:
            break
    for waves in range(full + 1, full + 6):
        candidate = _check(layer, which, gpu, runtime, int(waves * wave / per_image + 1e-9))
        if candidate is not None and candidate > layer.N:
            above = candidate
            break
    return below, above


def _check(layer: ConvLayer, which: Pass, gpu: Gpu, runtime: Runtime, n: int) -> int | None:
    if n < 1:
        return None
    estimate = estimate_pass(replace(layer, N=n), which, gpu, runtime)
    return n if estimate is not None and estimate.wave_efficiency >= FULL_ENOUGH else None
