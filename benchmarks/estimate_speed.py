"""How long an estimate of the three passes of random layers takes; us of one core.

The time alone, with every search for tiles made anew and with those of like products known, as they mostly are within a
network and between a layer and its fixes; all of an estimate; all of it, cached.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from convlint.estimate import estimate_layer, time_us
from convlint.estimate.board import board_of, compute_dtype
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import ConvLayer, Dtype, with_output
from convlint.model.runtime import Runtime

CASES = (
    ("a100", "fp16", "NHWC"), ("t4", "fp16", "NHWC"), ("t4", "fp16", "NCHW"), ("v100", "fp16", "NHWC"),
    ("v100", "fp16", "NCHW"), ("v100", "fp32", "NHWC"), ("rtx-3090", "tf32", "NHWC"), ("h100", "bf16", "NHWC"),
    ("h100", "bf16", "NCHW"),
)  # fmt: skip
LAYERS, REPEATS = 300, 7


def random_layers(dtype: str, layout: str) -> list[ConvLayer]:
    """Layers as networks have them, each different."""
    rng = random.Random(1)
    layers = []
    for _ in range(LAYERS):
        taps, size = rng.choice((1, 3, 3, 5, 7)), rng.choice((7, 14, 28, 56))
        pad, stride = taps // 2, rng.choice((1, 1, 2))
        layer = ConvLayer(
            name="l", N=rng.randint(1, 256), C=rng.choice((3, 64, 100, 256, 512)), H=size, W=size,
            K=rng.choice((64, 100, 256, 512)), R=taps, S=taps, U=stride, V=stride, PadH=pad, PadW=pad, PadH_end=pad,
            PadW_end=pad, dtype=Dtype(dtype), layout=layout,
        )  # fmt: skip
        layers.append(with_output(layer))
    return layers


def main() -> int:
    """Prints the least of some repeats, so that a busy machine disturbs little."""
    for name, dtype, layout in CASES:
        gpu, layers, runtime = load_gpu(name), random_layers(dtype, layout), Runtime()
        board = board_of(gpu)
        units = [unit for unit in board.units(compute_dtype(Dtype(dtype), gpu, runtime), False) if unit is not None]
        anew, alone, fresh, cached = [], [], [], []
        for _ in range(REPEATS):
            for unit in units:
                unit.searched.clear()
            runs = (time_us, anew), (time_us, alone), (estimate_layer, fresh), (estimate_layer, cached)
            for estimate, times in runs:
                if times is not cached:
                    board.passes.clear()
                    board.of_layer.clear()
                start = time.perf_counter()
                for layer in layers:
                    estimate(layer, gpu, runtime, "training")
                times.append((time.perf_counter() - start) / LAYERS * 1e6)
        print(
            f"{name:10} {dtype:5} {layout} {min(anew):6.1f} us a layer for its time, {min(alone):6.1f} with searches "
            f"known, {min(fresh):6.1f} with tiles and waves too, {min(cached):5.1f} cached"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
