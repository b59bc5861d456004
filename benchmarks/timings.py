"""Published timings as layers: reading the CSV, and what each source adds of its own."""

from __future__ import annotations

import csv
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from convlint.estimate.constants import STREAM_BANDWIDTH
from convlint.gpus.gpu import Gpu, gpu_names, load_gpu
from convlint.measuring.rows import SOURCE, header, rows_of
from convlint.measuring.rows import TimingRow as Timing
from convlint.measuring.workload import layer_of
from convlint.measuring.workload import runtime_of as measured_runtime
from convlint.model.errors import ConvlintError
from convlint.model.layer import ConvLayer, Dtype, Pass, flops, tensor_elements, with_output
from convlint.model.runtime import Runtime

DEFAULT_CSV = Path(__file__).resolve().parent / "data" / "conv_timings.csv"
# NeuSight times its layers from Python: each of its rows carries this much that is no convolution.
HARNESS_US = {"neusight": 178.0}
# cuDNN's INT8x32 kernels want their filters reordered, and reorder them in every call unless told not to
# (cudnnSetConvolutionReorderType; frameworks and TensorRT reorder them once): a kernel of its own that reads and writes
# the weights.
REORDERED_IN_EVERY_CALL = {("deepbench", "int8")}
REORDER_KERNEL_US = 1.6
# DeepBench queues repetitions; where its host cannot launch those two kernels faster, times stand at a floor: 14 of
# the 54 int8 rows of T4 lie at exactly 18 us, whatever their size. Other hosts may be faster.
HOST_FLOOR_US = {("deepbench", "int8"): 18.0}
# DeepBench pads channels itself; NC/32HW32 holds vectors of 32.
PADDED_BY_BENCHMARK = {("deepbench", "fp16"): 8, ("deepbench", "int8"): 32}


@dataclass(frozen=True, slots=True)
class Row:
    """One measured pass."""

    gpu: str
    precision: str
    which: Pass
    source: str
    layer: ConvLayer
    measured_us: float
    flops: int
    runtime: Runtime | None = None  # of rows that tell it


def resolve_gpu(name: str, given: dict[str, str]) -> Gpu:
    """The GPU that a CSV means: an id or alias, also with its maker, memory size or form factor left out or added."""
    if name in given:
        return load_gpu(given[name])
    words = [word for word in name.replace("_", "-").replace(" ", "-").split("-") if word]
    plain = [word for word in words if word.casefold() not in {"nvidia", "tesla", "geforce", "quadro"}]
    memoryless = [word for word in plain if not (word[:-2].isdigit() and word.casefold().endswith("gb"))]
    for candidate in (words, plain, memoryless, memoryless[:2], memoryless[:1]):
        try:
            return load_gpu("-".join(candidate))
        except ConvlintError:
            continue
    squeezed = "".join(plain).casefold()
    short = {gpu_id.replace("-", ""): gpu_id for gpu_id in gpu_names()}
    for matches in (str.startswith, str.__contains__):
        for flat, gpu_id in short.items():
            if len(squeezed) > 1 and (matches(flat, squeezed) or matches(squeezed, flat)):
                return load_gpu(gpu_id)
    raise ConvlintError(f"unknown GPU {name!r}: name it with --gpu-map '{name}=ID'")


def add_gpu_map(parser: ArgumentParser) -> None:
    """Adds the option that says which GPU a name in a CSV means."""
    parser.add_argument("--gpu-map", nargs="+", default=[], metavar="NAME=ID", help="what a name in the CSV means")


def gpu_map(options: Namespace) -> dict[str, str]:
    """The ids that `--gpu-map` gives, by name."""
    return dict(entry.split("=", 1) for entry in options.gpu_map if "=" in entry)


def print_gpus(gpus: Mapping[str, Gpu]) -> None:
    """One line with each name and the id that it was taken for."""
    print("GPUs:", ", ".join(f"{name} = {gpu.id}" for name, gpu in sorted(gpus.items())))


def known_gpus(names: Iterable[str], given: dict[str, str], script: str) -> dict[str, Gpu]:
    """The GPUs that names of a CSV mean; says on standard error which of them is unknown, so that its rows go."""
    gpus = {}
    for name in sorted(set(names)):
        try:
            gpus[name] = resolve_gpu(name, given)
        except ConvlintError as error:
            print(f"{script}: {error}; its rows are left out", file=sys.stderr)
    return gpus


def read_rows(path: Path) -> list[Row]:
    """The rows of a CSV; raises ConvlintError where one cannot be read."""
    rows = []
    with path.open(newline="", encoding="utf-8") as file:
        if file.readline() == header():
            return [_measured(row) for row in rows_of(path.read_text(encoding="utf-8"))]
        file.seek(0)
        for number, record in enumerate(csv.DictReader(file), start=2):
            try:
                rows.append(_row(record))
            except (KeyError, ValueError) as error:
                raise ConvlintError(f"{path}:{number}: {error!r}") from error
    return rows


def _measured(row: Timing) -> Row:
    """A row of `convlint measure`: it tells all that the layer's time depends on."""
    work, layer = row.workload, layer_of(row.workload)
    count = flops(layer)
    if count is None:
        raise ConvlintError(f"sizes are missing: {work}")
    runtime = measured_runtime(work)
    if row.framework_version.startswith("jax "):  # `measure_jax.py`
        runtime = replace(runtime, framework="jax", cudnn_benchmark=None)
    return Row(row.gpu, work.precision.value, work.which, SOURCE, layer, row.timing.us, count, runtime)


def _row(record: dict[str, str]) -> Row:
    precision, source = record["precision"], record["source"]
    multiple = PADDED_BY_BENCHMARK.get((source.partition(":")[0], precision), 1) if record["layout"] != "NCHW" else 1
    raw = _layer(record, 1)
    count = flops(raw)
    if count is None:
        raise ValueError("sizes are missing")
    which = record["pass"]
    if which not in ("fprop", "dgrad", "wgrad"):
        raise ValueError(f"pass {which!r}")
    return Row(record["gpu"], precision, which, source, _layer(record, multiple), float(record["ms"]) * 1e3, count)  # type: ignore[arg-type]


def _whole(text: str) -> int:
    value = float(text)
    if value != int(value):
        raise ValueError(f"not a whole number: {text!r}")
    return int(value)


def _layer(record: dict[str, str], multiple: int) -> ConvLayer:
    number = {key: _whole(record[key]) for key in ("N", "C", "H", "W", "K", "R", "S", "pad_h", "pad_w")}
    pad_h, pad_w = number["pad_h"], number["pad_w"]
    return with_output(
        ConvLayer(
            name="row", N=number["N"], C=-(-number["C"] // multiple) * multiple, H=number["H"], W=number["W"],
            K=-(-number["K"] // multiple) * multiple, R=number["R"], S=number["S"], U=_whole(record["stride_h"]),
            V=_whole(record["stride_w"]), PadH=pad_h, PadW=pad_w, PadH_end=pad_h, PadW_end=pad_w,
            dtype=Dtype(record["precision"]), layout="NCHW" if record["layout"] == "NCHW" else "NHWC",
            groups=_whole(record.get("groups") or "1"), residual_inputs=_whole(record.get("residual_inputs") or "0"),
        )
    )  # fmt: skip


def runtime_of(row: Row) -> Runtime:
    """The runtime of a row: TensorRT for its engines, cuDNN else; fp32 means fp32."""
    if row.runtime is not None:
        return row.runtime
    framework = "tensorrt" if row.source.startswith("trt") else None
    return Runtime(tf32=row.precision == "tf32", framework=framework)


def with_harness(row: Row, gpu: Gpu, time_us: float) -> float:
    """What the row's source would have measured for a pass of that time."""
    origin = row.source.partition(":")[0]
    if (origin, row.precision) in REORDERED_IN_EVERY_CALL:
        elements = tensor_elements(row.layer)
        assert elements is not None
        bytes_ = 2 * elements[1] * Dtype(row.precision).bytes
        time_us += REORDER_KERNEL_US + bytes_ / (STREAM_BANDWIDTH * gpu.dram_bytes_per_s) * 1e6
    floor = HOST_FLOOR_US.get((origin, row.precision), 0.0)
    joined: float = (time_us**8 + floor**8) ** (1 / 8)
    return joined + HARNESS_US.get(origin, 0.0)
