"""Times whole steps of timm's networks on the GPU at hand, in the columns of `data/network_steps.csv` and three more.

    python benchmarks/time_steps.py CSV [--models M ...] [--batch N] [--search] [--compile] [--trace FOLDER]
                                        [--limit-seconds S]

Each network eager, in inference and training, NCHW and NHWC, under bf16 autocast; the first ones also in fp32, with
TF32 and without. `--compile`: under torch.compile instead, in training in both layouts and in inference in NHWC; they
are compiled side by side first, in processes that leave their code in Inductor's cache, and then timed alone.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
COLUMNS = (
    "model", "gpu", "torch", "compile", "mode", "layout", "amp", "batch", "img_size", "step_ms", "params_m", "gmacs",
    "macts_m", "cudnn_benchmark", "spread", "peak_mib",
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
_COMPILED = (("training", "NHWC"), ("training", "NCHW"), ("inference", "NHWC"))
_COMPILERS = 8  # at once


def step_of(model: Any, images: Any, labels: Any, *, training: bool, autocast: bool) -> Callable[[], None]:
    """One step: a forward pass, and in training a backward pass and SGD with momentum."""
    import torch

    def context() -> Any:
        return torch.autocast("cuda", torch.bfloat16) if autocast else nullcontext()

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


def prepared(name: str, batch: int, layout: str, *, training: bool, autocast: bool, compiled: bool = False) -> Any:
    """A step that is ready to be timed, and the image's size."""
    import timm  # type: ignore[import-not-found, unused-ignore]
    import torch

    order = torch.channels_last if layout == "NHWC" else torch.contiguous_format
    model = timm.create_model(name).to("cuda", memory_format=order).train(training)
    size = model.default_cfg["input_size"][-1]
    images = torch.randn(batch, 3, size, size, device="cuda").to(memory_format=order)
    labels = torch.randint(1000, (batch,), device="cuda")
    run = torch.compile(model) if compiled else model
    return step_of(run, images, labels, training=training, autocast=autocast), size


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


def row_of(
    name: str, batch: int, layout: str, mode: str, precision: str, *, compiled: bool = False
) -> dict[str, object]:
    """Builds a network and times it. Raises what PyTorch raises."""
    import torch

    torch.backends.cudnn.allow_tf32 = precision != "fp32"  # products stay in fp32, as PyTorch has it
    torch.cuda.reset_peak_memory_stats()
    step, size = prepared(
        name, batch, layout, training=mode == "training", autocast="autocast" in precision, compiled=compiled
    )
    step_ms, spread = timed(step)
    return {
        "model": name, "gpu": torch.cuda.get_device_name(), "torch": torch.__version__.partition("+")[0],
        "compile": int(compiled), "mode": mode, "layout": layout, "amp": precision, "batch": batch, "img_size": size,
        "step_ms": f"{step_ms:.4g}", "cudnn_benchmark": int(torch.backends.cudnn.benchmark), "spread": f"{spread:.2g}",
        "peak_mib": torch.cuda.max_memory_allocated() >> 20,
    }  # fmt: skip


def eager(models: Sequence[str], batch: int) -> Iterator[dict[str, object]]:
    """The rows of networks as PyTorch runs them; one that fails is named and left out."""
    import torch

    for place, name in enumerate(models):
        precisions = ("bf16 autocast", "tf32", "fp32") if place < _IN_FP32 else ("bf16 autocast",)
        for precision in precisions:
            for mode in ("inference", "training"):
                for layout in ("NCHW", "NHWC"):
                    try:
                        yield row_of(name, batch, layout, mode, precision)
                    except RuntimeError as error:
                        print(f"{name} {mode} {layout} {precision}: {error}"[:200], file=sys.stderr)
                    torch.cuda.empty_cache()


def _compile(form: tuple[str, int, str, str]) -> str:
    """Runs one step in this process, so that Inductor keeps its code; what went wrong."""
    name, batch, mode, layout = form
    try:
        step, _ = prepared(name, batch, layout, training=mode == "training", autocast=True, compiled=True)
        step()
    except Exception as error:  # whatever compilers raise: the network is named, and timed all the same
        return f"{name} {mode} {layout}: {error!r}"[:300]
    return ""


def compiled(models: Sequence[str], batch: int) -> Iterator[dict[str, object]]:
    """The rows of compiled networks."""
    import torch

    # Kernels' configurations are chosen by timing them: by this process, when it is alone, not beside others.
    os.environ |= {"TORCHINDUCTOR_AUTOTUNE_LOCAL_CACHE": "0", "TORCHINDUCTOR_COMPILE_THREADS": "2"}
    forms = [(name, batch, mode, layout) for mode, layout in _COMPILED for name in models]
    begin = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(_COMPILERS, maxtasksperchild=1) as pool:
        for error in pool.imap_unordered(_compile, forms):
            if error:
                print(error, file=sys.stderr)
    print(f"compiled in {time.perf_counter() - begin:.0f} s", file=sys.stderr)
    for name, _, mode, layout in forms:
        torch.compiler.reset()
        try:
            yield row_of(name, batch, layout, mode, "bf16 autocast", compiled=True)
        except RuntimeError as error:
            print(f"{name} {mode} {layout}: {error}"[:200], file=sys.stderr)
        torch.cuda.empty_cache()


def trace(models: Sequence[str], batch: int, folder: Path) -> None:
    """Records three steps of training, in each layout, as compressed traces."""
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule

    for name in models:
        for layout in ("NCHW", "NHWC"):
            step, _ = prepared(name, batch, layout, training=True, autocast=True)
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
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--trace", type=Path)
    parser.add_argument("--limit-seconds", type=float, default=1e9)
    options = parser.parse_args(argv)
    if options.trace is not None:
        trace(options.models, options.batch, options.trace)
        return 0
    import torch

    begin = time.perf_counter()
    torch.backends.cudnn.benchmark = options.search
    is_new = not options.csv.exists()
    with options.csv.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        for row in (compiled if options.compile else eager)(options.models, options.batch):
            writer.writerow(row)
            file.flush()
            if time.perf_counter() - begin > options.limit_seconds:
                break
    return 0


if __name__ == "__main__":
    sys.exit(main())
