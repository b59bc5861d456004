"""Times single convolutions as JAX runs them on the GPU at hand, and keeps them in the columns of `convlint measure`.

    python benchmarks/measure_jax.py --draw LAYERS.jsonl                    # anywhere: the layers that are to be timed
    python benchmarks/measure_jax.py LAYERS.jsonl CSV --limit-seconds S     # on the GPU: needs JAX, and not convlint

A time is that of a call's GPU kernels, as CUPTI tells them through JAX's own extension (source `jax-cupti`); without
it, that of many queued calls over their number, so that the host's share counts (`jax-dispatch`). Before the timed
calls, each of which has tensors of its own, the cache is flushed. Layers that CSV has are not timed again: a run
that was limited goes on where it stopped. `CSV.kernels.jsonl` names the kernels of each pass, with their times.
"""

from __future__ import annotations

import argparse
import csv
import json
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

HERE = Path(__file__).resolve().parent
COLUMNS_OF = HERE / "data" / "measured_h200-sxm.csv"  # its first line says the columns
MOST_LAYERS = 450
DTYPES = {"bf16": "bfloat16", "fp16": "float16", "tf32": "float32"}
ORDERS = {"NHWC": ("NHWC", "HWIO", "NHWC"), "NCHW": ("NCHW", "OIHW", "NCHW")}
PLAIN = ("N", "C", "H", "W", "K", "R", "S", "groups", "precision", "layout")  # of a layer, and of a row
PAIRS = ("stride_h", "stride_w", "dilation_h", "dilation_w", "pad_h", "pad_w")
ONE_DEEP = {"op": "conv", "dims": 2, "D": 1, "T": 1, "pad_d": 0, "stride_d": 1, "dilation_d": 1, "residual_inputs": 0}
ONE_DEEP |= {f"output_padding_{axis}": 0 for axis in "dhw"} | {"benchmark": 1, "deterministic": 0}
RUNS, WARM, MOST_SETS = 9, 2, 16
SETS_BYTES = 200_000_000  # of all sets together: four times the cache
FLUSH_ELEMENTS = 1 << 26  # 256 MB of fp32
BURST_S = 0.02  # of a burst of queued calls
NAME_LENGTH = 60

Layer = dict[str, Any]
Kernels = list[tuple[str, float]]  # names and ms


def draw(path: Path) -> int:
    """Writes the first layers of `drawn()`, three of four NHWC; those alone that a row can say."""
    sys.path.insert(0, str(HERE.parent))
    from measure import drawn

    layers: list[Layer] = []
    for form, _ in drawn():
        even = form.PadH == form.PadH_end and form.PadW == form.PadW_end
        if form.op == "conv" and form.dims == 2 and even and len(layers) < MOST_LAYERS:
            layers.append(
                {name: getattr(form, name) for name in "NCHWKRS"}
                | {"pad_h": form.PadH, "pad_w": form.PadW, "pad_h_end": form.PadH_end, "pad_w_end": form.PadW_end}
                | {"stride_h": form.U, "stride_w": form.V, "dilation_h": form.DilH, "dilation_w": form.DilW}
                | {"groups": form.groups, "precision": str(form.dtype)}
                | {"layout": "NCHW" if len(layers) % 4 == 3 else "NHWC"}
            )
    path.write_text("".join(json.dumps(layer) + "\n" for layer in layers), encoding="utf-8")
    print(f"{path}: {len(layers)} layers")
    return 0


class Bench:
    """JAX and its device."""

    def __init__(self) -> None:
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        self.jax: Any = import_module("jax")
        self.device = self.jax.devices()[0]
        self.pools: dict[str, Any] = {}  # random values, by dtype
        ones = self.jax.numpy.ones(FLUSH_ELEMENTS, "float32")
        self.flush = partial(self.jax.jit(lambda values: values + 1).lower(ones).compile(), ones)
        self.cupti: Any = None
        self.probe()

    def probe(self) -> None:
        """Takes CUPTI if it tells of a kernel, and else says that it does not."""
        try:
            self.cupti = import_module("jax._src.lib.mosaic_gpu")._mosaic_gpu_ext
            if not self._kernels(self.flush, [()]):
                raise RuntimeError("it tells of no kernel")
        except Exception as error:
            self.cupti = None
            print(f"no CUPTI, so that the host's share is timed too: {error!r}", file=sys.stderr)

    def facts(self) -> dict[str, object]:
        """What the columns say of the device and the libraries."""
        kind = self.device.device_kind
        known = [f"{name}-sxm" for name in ("h100", "h200") if name in kind.casefold()]
        versions = getattr(import_module("jax._src.lib"), "cuda_versions", None)
        cudnn = versions.cudnn_get_version() if versions else 0
        cuda = versions.cuda_runtime_get_version() if versions else 0
        return {
            "gpu": known[0] if known else kind, "device": kind, "framework_version": f"jax {self.jax.__version__}",
            "cudnn": f"{cudnn // 10000}.{cudnn // 100 % 100}.{cudnn % 100}" if cudnn else "",
            "cuda": f"{cuda // 1000}.{cuda // 10 % 100}" if cuda else "", "clock_mhz": "",
        }  # fmt: skip

    def passes(self, layer: Layer) -> Iterator[tuple[str, Any, list[tuple[Any, Any]]]]:
        """Each pass of a layer, compiled, with the tensors of the calls; a first layer has no dgrad."""
        lax, dtype = self.jax.lax, self.jax.numpy.dtype(DTYPES[layer["precision"]])
        conv = partial(
            lax.conv_general_dilated,
            window_strides=(layer["stride_h"], layer["stride_w"]),
            padding=((layer["pad_h"], layer["pad_h_end"]), (layer["pad_w"], layer["pad_w_end"])),
            rhs_dilation=(layer["dilation_h"], layer["dilation_w"]),
            dimension_numbers=ORDERS[layer["layout"]],
            feature_group_count=layer["groups"],
            precision=lax.Precision.DEFAULT,  # with which XLA lets cuDNN take TF32 for float32
        )
        sizes = {name: layer[name] for name in "NCHW"} | {"I": layer["C"] // layer["groups"], "O": layer["K"]}
        image, filters, _ = ORDERS[layer["layout"]]
        window = sizes | {"H": layer["R"], "W": layer["S"]}
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
            if which != "dgrad" or layer["C"] > 4:
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

    def timed(self, call: Any, sets: Sequence[tuple[Any, Any]]) -> tuple[list[float], Kernels]:
        """The ms of each of several calls, and the kernels of one call."""
        for _ in range(WARM):
            began = time.perf_counter()
            self.jax.block_until_ready(call(*sets[-1]))
            took = time.perf_counter() - began
        self.jax.block_until_ready(self.flush())
        rotated = cycle(sets)
        if self.cupti is None:
            number = max(1, int(BURST_S / took))
            return [self._burst(call, list(islice(rotated, number))) for _ in range(RUNS)], []
        runs = list(islice(rotated, RUNS))
        kernels = self._kernels(call, runs)
        size, rest = divmod(len(kernels), RUNS)
        calls = [kernels[begin : begin + size] for begin in range(0, len(kernels), max(1, size))]
        if rest or any([name for name, _ in each] != [name for name, _ in calls[0]] for each in calls):
            calls = [self._kernels(call, [run]) for run in runs]
        if not all(calls):
            raise RuntimeError("CUPTI tells of no kernel")
        alike = all(len(each) == len(calls[0]) for each in calls)
        middle = [median(times) for times in zip(*([ms for _, ms in each] for each in calls), strict=alike)]
        names = [name[:NAME_LENGTH] for name, _ in calls[0]]
        return [sum(ms for _, ms in each) for each in calls], list(zip(names, middle, strict=alike))

    def _kernels(self, call: Any, sets: Sequence[Sequence[Any]]) -> Kernels:
        self.cupti._cupti_init()
        try:
            for each in sets:
                result = call(*each)  # the last one kept: it ends last
            self.jax.block_until_ready(result)
        finally:
            kernels: Kernels = self.cupti._cupti_get_timings(True)
        return kernels

    def _burst(self, call: Any, sets: Sequence[tuple[Any, Any]]) -> float:
        began = time.perf_counter()
        for each in sets:
            result = call(*each)
        self.jax.block_until_ready(result)
        return (time.perf_counter() - began) / len(sets) * 1e3


def measure(layers: Sequence[Layer], path: Path, limit_s: float) -> int:
    """Times every pass of the layers; returns the exit code: 1 where a layer failed."""
    began, failed, number = time.monotonic(), 0, 0
    bench = Bench()
    facts = bench.facts()
    with COLUMNS_OF.open(encoding="utf-8") as file:
        columns = file.readline().strip().split(",")
    begun = path.exists() and path.stat().st_size > 0
    named = Path(f"{path}.kernels.jsonl")
    known = named.read_text(encoding="utf-8").splitlines() if begun and named.exists() else []
    done = {json.dumps(json.loads(line)["layer"]) for line in known}
    with path.open("a", newline="", encoding="utf-8") as rows, named.open("a", encoding="utf-8") as names:
        writer = csv.DictWriter(rows, columns, lineterminator="\n")
        if not begun:
            writer.writeheader()
        for number, layer in enumerate(layers, 1):
            if json.dumps(layer) in done:
                continue
            if time.monotonic() - began > limit_s:
                number -= 1
                break
            try:
                for which, call, sets in bench.passes(layer):
                    times, kernels = bench.timed(call, sets)
                    quarters, middle = quantiles(times, method="inclusive"), median(times)
                    sizes = {name: layer[name] for name in (*PLAIN, *PAIRS)}
                    row = facts | ONE_DEEP | sizes | {"arrives": layer["layout"], "pass": which, "runs": len(times)}
                    row |= {"ms": f"{middle:.6g}", "spread": f"{(quarters[2] - quarters[0]) / middle:.3g}"}
                    writer.writerow(row | {"source": "jax-cupti" if bench.cupti else "jax-dispatch"})
                    joined = ";".join(dict.fromkeys(name for name, _ in kernels))
                    entry = {"layer": layer, "pass": which, "kernels": joined, "each": kernels}
                    names.write(json.dumps(entry) + "\n")
                    rows.flush()
                    names.flush()
            except Exception as error:
                failed += 1
                print(f"failed: {layer}: {error!r:.500}", file=sys.stderr)
                if bench.cupti:
                    bench.probe()
    print(f"{path}: {number} of {len(layers)} layers seen, {failed} failed, {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


def main(arguments: list[str] | None = None) -> int:
    """Runs the script; returns its exit code."""
    parser = argparse.ArgumentParser(description="Times single convolutions as JAX runs them.")
    parser.add_argument("layers", type=Path)
    parser.add_argument("csv", type=Path, nargs="?", help="rows are added to it; not with --draw")
    parser.add_argument("--draw", action="store_true", help="write the file of layers, and time nothing")
    parser.add_argument("--limit-seconds", type=float, default=float("inf"))
    options = parser.parse_args(arguments)
    if options.draw:
        return draw(options.layers)
    if options.csv is None:
        parser.error("CSV is missing")
    lines = options.layers.read_text(encoding="utf-8").splitlines()
    return measure([json.loads(line) for line in lines], options.csv, options.limit_seconds)


if __name__ == "__main__":
    sys.exit(main())
