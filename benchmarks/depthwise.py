"""Holds PyTorch's own depthwise kernels against cuDNN's: `python benchmarks/depthwise.py [--gpu GPU ...]`.

Prints the geometric mean, the least and the most of the time in NCHW (PyTorch's kernels) over that in NHWC (cuDNN's) in
bf16, predicted, beside what pytorch/pytorch#91735 published, which are both gradients as one. Pure Python, no GPU.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from itertools import product
from math import exp, log
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from convlint.estimate.passes import pass_time_us
from convlint.gpus.gpu import Gpu, load_gpu
from convlint.model.errors import ConvlintError
from convlint.model.layer import ConvLayer, Dtype, Pass, with_output
from convlint.model.runtime import Runtime

RUNTIME = Runtime(framework="pytorch")
BATCHES, CHANNELS, MAPS = (1, 2, 4, 8, 16, 32, 64, 128), (32, 64, 128, 256, 512, 1024), (7, 14, 28, 56, 112)
GRID = tuple(product(BATCHES, CHANNELS, MAPS, (1, 3, 5), (1, 2)))
BACKWARD: tuple[Pass, ...] = ("dgrad", "wgrad")
# Passes, and the published geometric mean, least and most of a GPU.
ROWS: dict[str, tuple[tuple[Pass, ...], dict[str, tuple[float, float, float]]]] = {
    "forward": (("fprop",), {"a100": (1.227, 0.641, 3.902), "rtx-a6000": (1.216, 0.672, 3.686)}),
    "backward": (BACKWARD, {"a100": (1.297, 0.698, 5.755), "rtx-a6000": (1.234, 0.693, 4.538)}),
    "dgrad": (("dgrad",), {}),
    "wgrad": (("wgrad",), {}),
}


def ratios(gpu: Gpu, passes: Iterable[Pass]) -> list[float]:
    """Predicted time in NCHW over that in NHWC, for each layer of the grid."""
    found = []
    for N, C, H, R, U in GRID:
        pad = R // 2
        layers = (
            ConvLayer(
                name="row", N=N, C=C, H=H, W=H, K=C, R=R, S=R, U=U, V=U, PadH=pad, PadH_end=pad, PadW=pad,
                PadW_end=pad, groups=C, dtype=Dtype.bf16, layout=layout,
            ) for layout in ("NCHW", "NHWC")
        )  # fmt: skip
        nchw, nhwc = (
            sum(pass_time_us(with_output(layer), which, gpu, RUNTIME) or 0.0 for which in passes) for layer in layers
        )
        found.append(nchw / nhwc)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """One line for each GPU and pass; 2 for a GPU that is not known."""
    parser = argparse.ArgumentParser(description="Predicted ratios of depthwise kernels beside published ones.")
    parser.add_argument("--gpu", nargs="+", default=["a100", "rtx-a6000"])
    print(
        f"{'NCHW over NHWC':20}{'predicted: mean':>16}{'least':>7}{'most':>7}{'published':>11}{'least':>7}{'most':>7}"
    )
    for name in parser.parse_args(arguments).gpu:
        try:
            gpu = load_gpu(name)
        except ConvlintError as error:
            print(f"depthwise.py: {error}", file=sys.stderr)
            return 2
        for title, (passes, published) in ROWS.items():
            each = ratios(gpu, passes)
            figures = exp(sum(map(log, each)) / len(each)), min(each), max(each), *published.get(name, ())
            texts = (f"{figure:{width}.2f}" for figure, width in zip(figures, (16, 7, 7, 11, 7, 7), strict=False))
            print(f"{f'{name} {title}':20}" + "".join(texts))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
