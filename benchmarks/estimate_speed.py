"""How long an estimate of the three passes of random layers takes: time alone, all of it, cached; us of one core."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from convlint.estimate import estimate_layer, time_us
from convlint.estimate.board import board_of
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import ConvLayer, Dtype, with_output
from convlint.model.runtime import Runtime

CASES = (("a100", "fp16"), ("t4", "fp16"), ("v100", "fp16"), ("v100", "fp32"), ("rtx-3090", "tf32"), ("h100", "bf16"))
LAYERS, REPEATS = 300, 7


def random_layers(dtype: str) -> list[ConvLayer]:
    """Layers as networks have them, each different."""
    rng = random.Random(1)
    layers = []
    for _ in range(LAYERS):
        taps, size = rng.choice((1, 3, 3, 5, 7)), rng.choice((7, 14, 28, 56))
        pad, stride = taps // 2, rng.choice((1, 1, 2))
        layer = ConvLayer(
            name="l", N=rng.randint(1, 256), C=rng.choice((3, 64, 100, 256, 512)), H=size, W=size,
            K=rng.choice((64, 100, 256, 512)), R=taps, S=taps, U=stride, V=stride, PadH=pad, PadW=pad, PadH_end=pad,
            PadW_end=pad, dtype=Dtype(dtype), layout="NHWC",
        )  # fmt: skip
        layers.append(with_output(layer))
    return layers


def main() -> int:
    """Prints the least of some repeats, so that a busy machine disturbs little."""
    for name, dtype in CASES:
        gpu, layers, runtime = load_gpu(name), random_layers(dtype), Runtime()
        alone, fresh, cached = [], [], []
        for _ in range(REPEATS):
            board_of(gpu).passes.clear()
            for estimate, times in ((time_us, alone), (estimate_layer, fresh), (estimate_layer, cached)):
                start = time.perf_counter()
                for layer in layers:
                    estimate(layer, gpu, runtime, "training")
                times.append((time.perf_counter() - start) / LAYERS * 1e6)
        print(
            f"{name:10} {dtype:5} {min(alone):6.1f} us a layer for its time, {min(fresh):6.1f} us with tiles, waves, "
            f"{min(cached):5.1f} us cached"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
