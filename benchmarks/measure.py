"""Times convolutions on the GPU at hand, and keeps them in the columns of `convlint measure`.

    python benchmarks/measure.py [CSV] [--device cuda|cpu] [--limit-seconds S] [--only SET ...] [--dtypes D ...]
                                 [--search off|on] [--list]

Sets: `networks` (every pass of ResNet-50, ResNeXt-50, MobileNetV2 and a 3-D U-Net, in fp16, bf16 and tf32, NHWC and
NCHW, cudnn.benchmark off and on), `grid` (N, C and K, aligned and not, in the same forms), `kinds` (first layers, patch
embeddings, groups, depthwise, one dimension, transposed, dilated and strided, likewise), `figures` (the settings of the
guide's charts, fp16), `drawn` (layers of timm's networks, drawn by lot, each in one form), `others` (likewise, all
layers of networks for segmentation, diffusion, audio and video). What the CSV has already, from the same GPU and
libraries, is not timed again: a run that was interrupted or limited goes on where it stopped.
`python benchmarks/accuracy.py CSV` holds the model against the rows.
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from msgspec.structs import replace
from network_tables import read_networks

from convlint.cli.commands.measure import TimingsFile
from convlint.estimate.sweep import FIGURES, figure_layer, passes_of
from convlint.gpus.devices import gpu_of
from convlint.gpus.gpu import Gpu, load_gpu
from convlint.measuring.session import EACH_S, Bench, NoDevice, timed
from convlint.measuring.workload import Workload, why_not, workloads
from convlint.model.layer import ConvLayer, Dtype, Layout, tensor_elements, with_output
from convlint.model.runtime import Runtime
from convlint.readers.spec.reader import read_spec

HERE = Path(__file__).resolve().parent
SPECS = (
    HERE.parent / "sample_configs" / "resnet50.yaml",
    HERE / "data" / "networks" / "resnext50_32x4d.yaml",
    HERE.parent / "sample_configs" / "mobilenetv2.yaml",
    HERE / "data" / "unet3d.yaml",
)
BATCH = {"unet3d": 1}  # of the networks; 64 for all others
DTYPES = (Dtype.fp16, Dtype.bf16, Dtype.tf32, Dtype.fp32)
LAYOUTS = ("NHWC", "NCHW")
# Of the grid: sizes on both sides of the multiples that kernels want (8, 4, 64, 256), and of full waves.
BATCHES = (1, 2, 3, 8, 32, 33, 64, 128)
CHANNELS = (3, 4, 8, 32, 60, 62, 63, 64, 65, 66, 72, 96, 128, 250, 256, 320, 512, 1000, 1024)
MAPS = ((56, 3), (14, 3), (28, 1), (7, 5))  # H = W, and R = S
# Of the draw: how many layers of each kind, and the forms that they are drawn in, each as often as it stands here.
DRAWN = {"dense": 800, "depthwise": 350, "grouped": 350}
DRAWN_BATCHES = (1, 8, 16, 32, 64, 128, 256)
OTHERS_BATCHES = (1, 1, 2, 4, 8, 16, 32)
DRAWN_DTYPES = (Dtype.bf16, Dtype.bf16, Dtype.fp16, Dtype.tf32)
DRAWN_LAYOUTS: tuple[Layout, ...] = ("NHWC", "NHWC", "NCHW")
OTHERS_LAYOUTS: tuple[Layout, ...] = ("NHWC", "NCHW")
DRAWN_SEARCHES = (False, False, True)
MOST_ELEMENTS = 1 << 30  # of x and y: a larger batch is halved

Forms = Iterator[tuple[ConvLayer, Runtime]]


def networks() -> Forms:
    """The layers of the networks, in all forms."""
    for path in SPECS:
        network, errors = read_spec(path.read_text(encoding="utf-8"), str(path))
        if network is None or errors:
            raise SystemExit(f"{path}: {errors}")
        for layer in network.layers:
            yield from _forms(replace(layer, N=BATCH.get(path.stem, 64)))


def grid() -> Forms:
    """One size varied at a time, about C = K = 256 and N = 32, and C and K together."""
    seen: set[tuple[int, int, int, int, int]] = set()
    for (size, taps), (N, C, K) in product(MAPS, _points()):
        if (key := (N, C, K, size, taps)) not in seen:
            seen.add(key)
            yield from _forms(_square("grid", N, C, size, K, taps, 1, taps // 2))


def _points() -> Iterator[tuple[int, int, int]]:
    yield from ((N, 256, 256) for N in BATCHES)
    for width in CHANNELS:
        yield from ((32, width, 256), (32, 256, width), (32, width, width))


def figures() -> Forms:
    """Every point of the guide's charts."""
    for figure in FIGURES.values():
        for chart_line, value in product(figure.lines, figure.values):
            layer = figure_layer(figure, chart_line, value)
            if (layer.N or 0) > 0 and (layer.P or 0) > 0:
                yield layer, Runtime(cudnn_benchmark=True)


def kinds() -> Forms:
    """Layers that are no plain ones of networks: one line for each kind, its sizes varied."""
    sizes = [(64, 3, 224, 64, 7, 2), (64, 4, 224, 64, 7, 2), (64, 8, 224, 64, 7, 2), (64, 3, 224, 32, 3, 2)]
    sizes += [(64, 1, 256, 64, 3, 1), (64, 3, 256, 64, 3, 1), (64, 3, 224, 768, 16, 16), (64, 3, 224, 96, 4, 4)]
    sizes += [(64, 96, 56, 192, 2, 2), (64, 384, 14, 768, 2, 2), (64, 64, 56, 128, 3, 2), (64, 256, 56, 512, 1, 2)]
    sizes += [(64, 64, 256, 3, 3, 1), (64, 64, 256, 21, 1, 1), (16, 1024, 1, 4096, 1, 1), (1, 256, 56, 256, 3, 1)]
    for N, C, size, K, taps, stride in sizes:
        yield from _forms(_square("kind", N, C, size, K, taps, stride, 0 if taps == stride else taps // 2))
    for width, size, taps in product((32, 96, 256, 768), (56, 14), (3, 5, 7)):
        for stride in (1, 2):
            yield from _forms(replace(_square("dw", 64, width, size, width, taps, stride, taps // 2), groups=width))
    for width, size, groups in product((128, 256, 512), (28, 14), (2, 8, 32, 64)):
        yield from _forms(replace(_square("grouped", 64, width, size, width, 3, 1, 1), groups=groups))
    for C, K, length, taps in ((80, 512, 3000, 3), (512, 512, 3000, 3), (256, 256, 800, 9), (64, 64, 16000, 7)):
        line = ConvLayer(name="1-D", dims=1, N=16, C=C, H=1, W=length, K=K, R=1, S=taps, PadH=0, PadH_end=0)
        yield from _forms(replace(line, PadW=taps // 2, PadW_end=taps // 2))
    for C, K, size, taps, pad in ((512, 256, 28, 2, 0), (256, 128, 56, 4, 1), (64, 32, 112, 4, 1), (100, 50, 56, 2, 0)):
        yield from _forms(replace(_square("up", 16, C, size, K, taps, 2, pad), op="conv_transpose"))
    for width, dilation in ((256, 2), (512, 4)):
        yield from _forms(
            replace(_square("dilated", 32, width, 28, width, 3, 1, dilation), DilH=dilation, DilW=dilation)
        )


def drawn() -> Forms:
    """Layers of timm's networks, in an order of no meaning, so that a run that is cut short is a fair sample too."""
    lot = random.Random(0)
    kinds: dict[str, list[ConvLayer]] = {kind: [] for kind in DRAWN}
    for layer in dict.fromkeys(
        replace(each.layer, calls=1) for network in read_networks().values() for each in network
    ):
        kinds["dense" if layer.groups == 1 else "depthwise" if layer.groups == layer.C else "grouped"].append(layer)
    layers = [layer for kind, several in kinds.items() for layer in lot.sample(several, DRAWN[kind])]
    yield from _by_lot(lot, layers, DRAWN_BATCHES, DRAWN_LAYOUTS)


def others() -> Forms:
    """All layers of `data/other_layers.csv` (`export_others.py`), in an order of no meaning."""
    with (HERE / "data" / "other_layers.csv").open(newline="", encoding="utf-8") as file:
        layers = [_layer_of(record) for record in csv.DictReader(file)]
    yield from _by_lot(random.Random(0), layers, OTHERS_BATCHES, OTHERS_LAYOUTS)


def _layer_of(record: dict[str, str]) -> ConvLayer:
    op = record["op"]
    sizes = {name: int(size) for name, size in record.items() if name not in ("network", "op", "bias")}
    ends = {f"{name}_end": sizes[name] for name in ("PadD", "PadH", "PadW")}
    return ConvLayer(name=record["network"], op="conv" if op == "conv" else "conv_transpose", **sizes, **ends)  # type: ignore[arg-type]


def _by_lot(lot: random.Random, layers: list[ConvLayer], batches: Sequence[int], layouts: Sequence[Layout]) -> Forms:
    """Each layer in one form."""
    lot.shuffle(layers)
    for layer in layers:
        N, dtype, layout = lot.choice(batches), lot.choice(DRAWN_DTYPES), lot.choice(layouts)
        form = with_output(replace(layer, N=N, dtype=dtype, layout=layout, copies_input=False))
        x, _, y = tensor_elements(replace(form, N=1)) or (0, 0, 0)
        while N > 1 and N * (x + y) > MOST_ELEMENTS:
            N //= 2
        yield replace(form, N=N), Runtime(cudnn_benchmark=lot.choice(DRAWN_SEARCHES), tf32=True)


def _square(name: str, N: int, C: int, size: int, K: int, taps: int, stride: int, pad: int) -> ConvLayer:
    return ConvLayer(
        name=name, N=N, C=C, H=size, W=size, K=K, R=taps, S=taps, U=stride, V=stride, PadH=pad, PadH_end=pad, PadW=pad,
        PadW_end=pad,
    )  # fmt: skip


SETS: dict[str, Callable[[], Forms]] = {
    "networks": networks,
    "grid": grid,
    "kinds": kinds,
    "figures": figures,
    "drawn": drawn,
    "others": others,
}


def _forms(layer: ConvLayer) -> Forms:
    for dtype, layout, benchmark in product(DTYPES, LAYOUTS, (False, True)):
        form = with_output(replace(layer, dtype=dtype, layout=layout, copies_input=False))
        yield form, Runtime(cudnn_benchmark=benchmark, tf32=dtype != Dtype.fp32)


def wanted(
    sets: Iterable[str], gpu: Gpu, dtypes: Collection[str] = DTYPES, searches: Collection[bool] = (False, True)
) -> list[Workload]:
    """All that is to be timed, each once."""
    found: dict[Workload, None] = {}
    for name in sets:
        for layer, runtime in SETS[name]():
            if not why_not(layer) and layer.dtype in dtypes and runtime.cudnn_benchmark in searches:
                for which in passes_of([layer], "training"):
                    found |= dict.fromkeys(workloads(layer, which, gpu, runtime))
    return list(found)


def main(arguments: list[str] | None = None) -> int:
    """Runs the script; returns its exit code: 1 where something could not be timed."""
    parser = argparse.ArgumentParser(description="Times convolutions on the GPU at hand.")
    parser.add_argument("csv", nargs="?", type=Path, help="default: data/measured_GPU.csv beside this script")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--limit-seconds", type=float)
    parser.add_argument("--seconds", type=float, default=EACH_S, help="for each, once it is warm")
    parser.add_argument("--only", nargs="+", choices=tuple(SETS), default=tuple(SETS))
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES)
    parser.add_argument("--search", choices=("off", "on"), help="only these forms; default: both")
    parser.add_argument("--list", action="store_true", help="say how much there is to time, and time nothing")
    options = parser.parse_args(arguments)
    searches = (False, True) if options.search is None else (options.search == "on",)
    if options.list:
        for name in options.only:
            print(f"{name}: {len(wanted([name], load_gpu('h200'), options.dtypes, searches))} timings")
        return 0
    try:
        with Bench(options.device) as bench:
            gpu = gpu_of(bench.device)
            name = gpu.id if gpu is not None else bench.device.kind
            path: Path = options.csv or HERE / "data" / f"measured_{name}.csv"
            several = wanted(options.only, gpu or load_gpu("a100"), options.dtypes, searches)
            return _timed(bench, several, name, path, options.limit_seconds, options.seconds)
    except NoDevice as error:
        print(f"measure.py: {error}", file=sys.stderr)
        return 1


def _timed(bench: Bench, several: list[Workload], name: str, path: Path, limit_s: float | None, each_s: float) -> int:
    kept = TimingsFile(str(path))
    kept.settle()
    known = kept.known(bench.device, frozenset(several))
    found = timed(several, bench, name, known, kept.add, limit_s=limit_s, each_s=each_s)
    left = len(several) - len(found.rows) - len(found.failed)
    print(f"{path}: {len(found.rows) - len(known)} new timings, {len(known)} were there, {left} not begun")
    for workload, reason in found.failed.items():
        print(f"  failed: {workload}: {reason}", file=sys.stderr)
    return 1 if found.failed else 0


if __name__ == "__main__":
    sys.exit(main())
