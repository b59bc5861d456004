"""Times whole steps of timm's networks on the GPU at hand, in the columns of `data/network_steps.csv` and three more.

    python benchmarks/time_steps.py CSV [--models M ...] [--batch N ...] [--search] [--compile] [--small]
                                        [--autocast fp16] [--trace FOLDER] [--limit-seconds S]

Each network eager, in inference and training, NCHW and NHWC, under bf16 autocast; the first ones also in fp32, with
TF32 and without. `--autocast fp16`: under fp16 autocast alone, without a scaler of the loss.
`--compile`: under torch.compile instead, in training in both layouts and in inference in NHWC; they are compiled side
by side first, in processes that leave their code in Inductor's cache, and then timed alone.
`--small`: what few images show, the pace of the host: eager and as CUDA graphs (`graphs`), or compiled, as it comes and
in the mode `reduce-overhead` (`overhead`); in autocast, as a model of 16 bits (`fp16`) and as PyTorch comes (`tf32`);
with what the kernels take together and how many they are, by PyTorch's profiler.
`--trace` records three steps of each instead, by PyTorch's profiler. cudnn.benchmark is off, as PyTorch has it, unless
`--search` is given. Steps are timed by the stopwatch, from one synchronisation to the next, on random images; the
median of some of them counts.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import multiprocessing
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
COLUMNS = (
    "model", "gpu", "torch", "compile", "mode", "layout", "amp", "batch", "img_size", "step_ms", "params_m", "gmacs",
    "macts_m", "cudnn_benchmark", "spread", "peak_mib", "kernels_ms", "kernels",
)  # fmt: skip
# One of each kind that CNN engineers train: plain, residual, grouped, depthwise, with attention of channels, dense.
MODELS = (
    "resnet50", "mobilenetv2_100", "convnext_tiny", "efficientnet_b0", "vgg16", "resnext50_32x4d", "densenet121",
    "regnety_032", "resnet18", "mobilenetv3_large_100", "efficientnetv2_rw_s", "resnet101", "seresnet50", "hrnet_w30",
    "inception_v3", "wide_resnet50_2", "dla34", "repvgg_b1", "regnetx_032", "ghostnet_130", "xception41",
    "cs3darknet_l", "res2net50_14w_8s", "ese_vovnet39b", "nf_regnet_b3", "eca_nfnet_l0", "convnext_base", "mixnet_l",
    "efficientnet_b4", "resnetv2_50", "resnet50_gn", "skresnet50", "mobilenetv4_conv_aa_large", "edgenext_base",
    "vgg16_bn", "resnet152d", "rexnet_200", "mnasnet_100", "selecsls60b", "gernet_l", "hgnetv2_b5", "lcnet_100",
    "inception_next_small", "convnextv2_tiny", "tf_efficientnetv2_b3", "resnetrs101", "coatnet_0_rw_224", "tinynet_d",
)  # fmt: skip
WARM_UP = 3
LEAST, MOST, SECONDS = 5, 30, 0.6
_IN_FP32 = 6  # of the models
_COMPILERS = 8  # at once


class Form(NamedTuple):
    """One way to run a network; `how` is the column `compile`."""

    how: str  # "0" eager, "1" torch.compile, "graphs" CUDA graphs of the eager step, "overhead" reduce-overhead
    mode: str
    layout: str
    precision: str = "bf16 autocast"

    @property
    def is_compiled(self) -> bool:
        """Whether Inductor has a share in it."""
        return self.how in ("1", "overhead")


_COMPILED = (Form("1", "training", "NHWC"), Form("1", "training", "NCHW"), Form("1", "inference", "NHWC"))
_SMALL = (
    Form("0", "inference", "NHWC"), Form("0", "inference", "NHWC", "fp16"), Form("graphs", "inference", "NHWC", "fp16"),
    Form("graphs", "inference", "NHWC"), Form("0", "training", "NHWC"), Form("0", "inference", "NCHW", "tf32"),
    Form("0", "training", "NCHW", "tf32"), Form("overhead", "inference", "NHWC", "fp16"),
    Form("1", "inference", "NHWC", "fp16"), Form("overhead", "training", "NHWC"), Form("1", "training", "NHWC"),
)  # fmt: skip


def step_of(model: Any, images: Any, labels: Any, *, training: bool, precision: str) -> Callable[[], None]:
    """One step: a forward pass, and in training a backward pass and SGD with momentum."""
    import torch

    dtype = torch.float16 if precision.startswith("fp16") else torch.bfloat16

    def context() -> Any:
        return torch.autocast("cuda", dtype) if "autocast" in precision else nullcontext()

    if not training:

        def infer() -> None:
            with torch.inference_mode(), context():
                model(images)

        return infer
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, momentum=0.9)

    def train() -> None:
        optimizer.zero_grad(set_to_none=True)
        with context():
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()

    return train


def prepared(name: str, batch: int, form: Form) -> Any:
    """A step that is ready to be timed, and the image's size."""
    import timm  # type: ignore[import-not-found, unused-ignore]
    import torch

    order = torch.channels_last if form.layout == "NHWC" else torch.contiguous_format
    dtype = torch.float16 if form.precision == "fp16" else torch.float32
    model = timm.create_model(name).to("cuda", dtype, memory_format=order).train(form.mode == "training")
    size = model.default_cfg["input_size"][-1]
    images = torch.randn(batch, 3, size, size, device="cuda", dtype=dtype).to(memory_format=order)
    labels = torch.randint(1000, (batch,), device="cuda")
    run: Any = model
    if form.is_compiled:
        run = torch.compile(model, mode="reduce-overhead" if form.how == "overhead" else None)
    step = step_of(run, images, labels, training=form.mode == "training", precision=form.precision)
    return graphed(step) if form.how == "graphs" else step, size


def graphed(step: Callable[[], None]) -> Callable[[], None]:
    """The step as one CUDA graph."""
    import torch

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    def replay() -> None:
        graph.replay()

    return replay


def kernels_of(step: Callable[[], None]) -> tuple[float, float]:
    """What the kernels of a step take together in ms, and how many they are."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    runs = 3
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(runs):
            step()
        torch.cuda.synchronize()
    found = [each for each in profiler.key_averages() if each.self_device_time_total]
    return sum(each.self_device_time_total for each in found) / runs / 1e3, sum(each.count for each in found) / runs


def timed(step: Callable[[], None]) -> tuple[float, float]:
    """The median of a step in ms, and the width of its middle half over it."""
    import torch

    for _ in range(WARM_UP):
        step()
    found: list[float] = []
    begin = time.perf_counter()
    while len(found) < LEAST or (len(found) < MOST and time.perf_counter() - begin < SECONDS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        found.append(1e3 * (time.perf_counter() - start))
    found.sort()
    middle = median(found)
    return middle, (found[3 * len(found) // 4] - found[len(found) // 4]) / middle


def row_of(name: str, batch: int, form: Form, *, profiled: bool = False) -> dict[str, object]:
    """Builds a network and times it. Raises what PyTorch raises."""
    import torch

    torch.backends.cudnn.allow_tf32 = form.precision != "fp32"  # products stay in fp32, as PyTorch has it
    torch.cuda.reset_peak_memory_stats()
    step, size = prepared(name, batch, form)
    step_ms, spread = timed(step)
    row = {
        "model": name, "gpu": torch.cuda.get_device_name(), "torch": torch.__version__.partition("+")[0],
        "compile": form.how, "mode": form.mode, "layout": form.layout, "amp": form.precision, "batch": batch,
        "img_size": size, "step_ms": f"{step_ms:.4g}", "cudnn_benchmark": int(torch.backends.cudnn.benchmark),
        "spread": f"{spread:.2g}", "peak_mib": torch.cuda.max_memory_allocated() >> 20,
    }  # fmt: skip
    if profiled:
        kernels_ms, kernels = kernels_of(step)
        row |= {"kernels_ms": f"{kernels_ms:.4g}", "kernels": round(kernels)}
    return row


Rows = Iterator[dict[str, object]]


def eager(models: Sequence[str], batches: Sequence[int], autocast: str) -> Rows:
    """The rows of networks as PyTorch runs them."""
    for place, (name, batch) in enumerate(product(models, batches)):
        also = ("tf32", "fp32") if place < _IN_FP32 and autocast == "bf16" else ()
        precisions = (f"{autocast} autocast", *also)
        for precision, mode, layout in product(precisions, ("inference", "training"), ("NCHW", "NHWC")):
            yield from _rows([(name, batch, Form("0", mode, layout, precision))])


def _rows(forms: Iterable[tuple[str, int, Form]], *, profiled: bool = False) -> Rows:
    """The rows of some forms; one that fails is named and left out."""
    import torch

    for name, batch, form in forms:
        if form.is_compiled:
            torch.compiler.reset()
        try:
            yield row_of(name, batch, form, profiled=profiled)
        except RuntimeError as error:
            print(f"{name} {form}: {error}"[:200], file=sys.stderr)
        torch.cuda.empty_cache()


def _compile(what: tuple[str, int, Form]) -> str:
    """Runs one step in this process, so that Inductor keeps its code; what went wrong."""
    name, batch, form = what
    try:
        step, _ = prepared(name, batch, form)
        step()
    except Exception as error:  # whatever compilers raise: the network is named, and timed all the same
        return f"{name} {form}: {error!r}"[:300]
    return ""


def compiled(forms: Sequence[tuple[str, int, Form]], *, profiled: bool = False) -> Rows:
    """The rows of compiled networks."""
    # Kernels' configurations are chosen by timing them: by this process, when it is alone, not beside others.
    os.environ |= {"TORCHINDUCTOR_AUTOTUNE_LOCAL_CACHE": "0", "TORCHINDUCTOR_COMPILE_THREADS": "2"}
    begin = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(_COMPILERS, maxtasksperchild=1) as pool:
        for error in pool.imap_unordered(_compile, forms):
            if error:
                print(error, file=sys.stderr)
    print(f"compiled in {time.perf_counter() - begin:.0f} s", file=sys.stderr)
    yield from _rows(forms, profiled=profiled)


def small(models: Sequence[str], batches: Sequence[int], *, by_inductor: bool) -> Rows:
    """What few images show; training and compiled networks with the largest batch alone."""
    most = max(batches)
    forms = [
        (name, batch, form)
        for name, form, batch in product(models, _SMALL, batches)
        if form.is_compiled == by_inductor and (batch == most or (form.mode == "inference" and not form.is_compiled))
    ]
    yield from compiled(forms, profiled=True) if by_inductor else _rows(forms, profiled=True)


def trace(models: Sequence[str], batch: int, folder: Path, autocast: str) -> None:
    """Records three steps of training, in each layout, as compressed traces."""
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule

    for name in models:
        for layout in ("NCHW", "NHWC"):
            step, _ = prepared(name, batch, Form("0", "training", layout, f"{autocast} autocast"))
            with profile(
                activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True,
                schedule=schedule(wait=1, warmup=2, active=3),
            ) as profiler:  # fmt: skip
                for _ in range(6):
                    step()
                    torch.cuda.synchronize()
                    profiler.step()
            path = folder / f"{name}-{layout.lower()}.json"
            profiler.export_chrome_trace(str(path))
            with path.open("rb") as plain, gzip.open(f"{path}.gz", "wb") as packed:
                shutil.copyfileobj(plain, packed)
            path.unlink()
            torch.cuda.empty_cache()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the script."""
    parser = argparse.ArgumentParser(description="Times whole steps of timm's networks on the GPU at hand.")
    parser.add_argument("csv", type=Path)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--batch", type=int, nargs="+", default=(128,))
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--autocast", choices=("bf16", "fp16"), default="bf16")
    parser.add_argument("--trace", type=Path)
    parser.add_argument("--limit-seconds", type=float, default=1e9)
    options = parser.parse_args(argv)
    if options.trace is not None:
        trace(options.models, options.batch[0], options.trace, options.autocast)
        return 0
    import torch

    begin = time.perf_counter()
    torch.backends.cudnn.benchmark = options.search
    is_new = not options.csv.exists()
    with options.csv.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        if options.small:
            rows = small(options.models, options.batch, by_inductor=options.compile)
        elif options.compile:
            rows = compiled(list(product(options.models, options.batch, _COMPILED)))
        else:
            rows = eager(options.models, options.batch, options.autocast)
        for row in rows:
            writer.writerow(row)
            file.flush()
            if time.perf_counter() - begin > options.limit_seconds:
                break
    return 0


if __name__ == "__main__":
    sys.exit(main())
