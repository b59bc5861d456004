"""Times single convolutions as JAX runs them on the GPU at hand.

    python benchmarks/measure_jax.py CSV [--begin N] [--limit-seconds S]

The layers are those that `measure.py --only drawn` draws, one in four in NCHW, in the columns of `convlint measure`
(`framework_version` says JAX). A time is that of a call's GPU kernels, which CUPTI tells through JAX's own extension:
XLA's copies count, the host does not. Each timed call has tensors of its own, and the cache is flushed before. Nine
runs, the median; what XLA's autotuner finds best. `python benchmarks/accuracy.py CSV` holds the model against the rows.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module
from itertools import cycle, islice
from pathlib import Path
from statistics import median, quantiles
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from measure import drawn
from msgspec.structs import replace

from convlint.model.layer import ConvLayer, Dtype

COLUMNS_OF = Path(__file__).resolve().parent / "data" / "measured_h200-sxm.csv"  # its first line says the columns
DTYPES = {Dtype.bf16: "bfloat16", Dtype.fp16: "float16", Dtype.tf32: "float32"}
ORDERS = {"NHWC": ("NHWC", "HWIO", "NHWC"), "NCHW": ("NCHW", "OIHW", "NCHW")}
RUNS, WARM, MOST_SETS = 9, 2, 16
SETS_BYTES = 200_000_000  # of all sets together: four times the cache
FLUSH_ELEMENTS = 1 << 26  # 256 MB of fp32


def layers() -> Iterator[ConvLayer]:
    """Those of the draw that have two dimensions and even padding."""
    kept = (form for form, _ in drawn() if form.dims == 2 and form.op == "conv")
    even = (form for form in kept if form.PadH == form.PadH_end and form.PadW == form.PadW_end)
    for number, form in enumerate(even):
        yield replace(form, layout="NCHW" if number % 4 == 3 else "NHWC")


def row_of(layer: ConvLayer) -> dict[str, object]:
    """The columns that say the layer."""
    sizes = {name: getattr(layer, name) for name in "NCHWKRS"}
    pairs = {
        "pad": (layer.PadH, layer.PadW), "stride": (layer.U, layer.V), "dilation": (layer.DilH, layer.DilW),
        "output_padding": (0, 0),
    }  # fmt: skip
    both = {f"{name}_{axis}": value for name, pair in pairs.items() for axis, value in zip("hw", pair, strict=True)}
    deep = {"D": 1, "T": 1, "pad_d": 0, "stride_d": 1, "dilation_d": 1, "output_padding_d": 0, "dims": 2, "op": "conv"}
    how = {"precision": str(layer.dtype), "layout": layer.layout, "arrives": layer.layout, "groups": layer.groups}
    return sizes | both | deep | how | {"residual_inputs": 0, "benchmark": 1, "deterministic": 0, "source": "jax-cupti"}


class JaxBench:
    """JAX and its device. Raises ImportError where its extension lacks CUPTI."""

    def __init__(self) -> None:
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        self.jax: Any = import_module("jax")
        self.device = self.jax.devices()[0]
        self.pools: dict[str, Any] = {}  # random values, by dtype
        ones = self.jax.numpy.ones(FLUSH_ELEMENTS, "float32")
        self.flush = partial(self.jax.jit(lambda values: values + 1).lower(ones).compile(), ones)
        self.cupti: Any = import_module("jax._src.lib.mosaic_gpu")._mosaic_gpu_ext

    def facts(self) -> dict[str, object]:
        """What the columns say of the device and the libraries."""
        kind = self.device.device_kind
        known = [f"{name}-sxm" for name in ("h100", "h200") if name in kind.casefold()]
        versions = import_module("jax._src.lib").cuda_versions
        cudnn, cuda = versions.cudnn_get_version(), versions.cuda_runtime_get_version()
        return {
            "gpu": known[0] if known else kind, "device": kind, "framework_version": f"jax {self.jax.__version__}",
            "cudnn": f"{cudnn // 10000}.{cudnn // 100 % 100}.{cudnn % 100}", "clock_mhz": "",
            "cuda": f"{cuda // 1000}.{cuda // 10 % 100}",
        }  # fmt: skip

    def passes(self, layer: ConvLayer) -> Iterator[tuple[str, Any, list[tuple[Any, Any]]]]:
        """Each pass of a layer, compiled, with the tensors of the calls; a first layer has no dgrad."""
        lax, sizes = self.jax.lax, {name: getattr(layer, name) for name in "NCHWKRS"}
        assert layer.dtype is not None
        dtype = self.jax.numpy.dtype(DTYPES[layer.dtype])
        conv = partial(
            lax.conv_general_dilated,
            window_strides=(layer.U, layer.V),
            padding=((layer.PadH, layer.PadH_end), (layer.PadW, layer.PadW_end)),
            rhs_dilation=(layer.DilH, layer.DilW),
            dimension_numbers=ORDERS[layer.layout],
            feature_group_count=layer.groups,
            precision=lax.Precision.DEFAULT,  # with which XLA lets cuDNN take TF32 for float32
        )
        window = {"I": sizes["C"] // layer.groups, "O": sizes["K"], "H": sizes["R"], "W": sizes["S"]}
        image, filters, _ = ORDERS[layer.layout]
        x = self.jax.ShapeDtypeStruct(tuple(sizes[axis] for axis in image), dtype)
        w = self.jax.ShapeDtypeStruct(tuple(window[axis] for axis in filters), dtype)
        y = self.jax.eval_shape(conv, x, w)
        transposed = self.jax.linear_transpose  # vjp of what is linear, without a primal
        functions = {
            "fprop": (conv, 0, 1),
            "dgrad": (lambda w, y: transposed(lambda x: conv(x, w), x)(y)[0], 1, 2),
            "wgrad": (lambda x, y: transposed(lambda w: conv(x, w), w)(y)[0], 0, 2),
        }
        shapes = (x, w, y)
        least = min(shapes[first].size + shapes[second].size for _, first, second in functions.values())
        number = min(MOST_SETS, max(2, -(-SETS_BYTES // (least * dtype.itemsize))))
        made = [list(self._tensors(shape, number, place)) for place, shape in enumerate(shapes)]
        for which, (function, first, second) in functions.items():
            if which != "dgrad" or sizes["C"] > 4:
                compiled = self.jax.jit(function).lower(shapes[first], shapes[second]).compile()
                yield which, compiled, list(zip(made[first], made[second], strict=True))

    def _tensors(self, shape: Any, number: int, place: int) -> Iterator[Any]:
        jax, name = self.jax, shape.dtype.name
        if name not in self.pools or self.pools[name].size < shape.size:
            self.pools[name] = None  # freed before the larger one is made
            normal = partial(jax.random.normal, shape=(max(1 << 26, shape.size) + (1 << 20),), dtype=name)
            self.pools[name] = jax.jit(normal)(jax.random.key(0))
        pool = self.pools[name]
        cut = jax.jit(lambda pool, begin: jax.lax.dynamic_slice(pool, (begin,), (shape.size,)).reshape(shape.shape))
        for each in range(number):
            yield cut(pool, (3 * each + place) * 99_991 % (pool.size - shape.size + 1))

    def timed(self, call: Any, sets: Sequence[tuple[Any, Any]]) -> list[float]:
        """The ms of each of several calls."""
        for _ in range(WARM):
            self.jax.block_until_ready(call(*sets[-1]))
        self.jax.block_until_ready(self.flush())
        return [sum(self._kernels_ms(call, each)) for each in islice(cycle(sets), RUNS)]

    def _kernels_ms(self, call: Any, tensors: tuple[Any, Any]) -> list[float]:
        self.cupti._cupti_init()
        try:
            self.jax.block_until_ready(call(*tensors))
        finally:
            kernels = [ms for _, ms in self.cupti._cupti_get_timings(True)]
        if not kernels:
            raise RuntimeError("CUPTI tells of no kernel")
        return kernels


def main(arguments: list[str] | None = None) -> int:
    """Runs the script; returns its exit code: 1 where a layer failed, which is named."""
    parser = argparse.ArgumentParser(description="Times single convolutions as JAX runs them.")
    parser.add_argument("csv", type=Path, help="rows are added to it")
    parser.add_argument("--begin", type=int, default=0, help="layers that are passed over")
    parser.add_argument("--limit-seconds", type=float, default=float("inf"))
    options = parser.parse_args(arguments)
    began, failed, bench = time.monotonic(), 0, JaxBench()
    facts, is_new = bench.facts(), not options.csv.exists()
    with COLUMNS_OF.open(encoding="utf-8") as file:
        columns = file.readline().strip().split(",")
    with options.csv.open("a", newline="", encoding="utf-8") as rows:
        writer = csv.DictWriter(rows, columns, lineterminator="\n")
        if is_new:
            writer.writeheader()
        for number, layer in enumerate(islice(layers(), options.begin, None), options.begin):
            if time.monotonic() - began > options.limit_seconds:
                print(f"stopped before layer {number}")
                break
            try:
                for which, call, sets in bench.passes(layer):
                    times = bench.timed(call, sets)
                    quarters, middle = quantiles(times, method="inclusive"), median(times)
                    spread = f"{(quarters[2] - quarters[0]) / middle:.3g}"
                    found = {"pass": which, "ms": f"{middle:.6g}", "spread": spread, "runs": len(times)}
                    writer.writerow(facts | row_of(layer) | found)
                    rows.flush()
            except Exception as error:  # whatever XLA raises: the layer is named and left out
                failed += 1
                print(f"failed: {layer}: {error!r:.300}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
