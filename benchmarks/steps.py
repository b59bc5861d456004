"""Holds whole steps against measured ones: `python benchmarks/steps.py [CSV] [--half fit|held] [--families]`.

Each row of `data/network_steps.csv` is a network in one layout, eager or compiled, in inference or training, with the
time of a step. Networks are built by PyTorch and timm, as `export_networks.py` says, read as `convlint check` reads
them, and kept in `build/steps/`, so that only the first run needs either. Those that cannot be built are named and left
out.

Per table (GPU, mode, layout, compiled or not): the bias (geometric mean of predicted over measured), the factor after
one clock for the table and without; beside it the same of a fit by three numbers on the same rows: multiply-adds,
activations and a constant; where a profiler timed the kernels, bias and factor of what they take together (predicted
with the way from one kernel to the next). Then what torch.compile and NHWC gain per image. The inference tables come
from a benchmark that ran layer and group norms in 16 bits under autocast (timm's `--fast-norm`), which PyTorch itself
does not: their networks with such norms say so, by a factor of 1.5.

A CSV may also name the framework of each row (with TensorRT, `torch` is its version) and the
optimizer that was timed; else it is PyTorch, and SGD with momentum.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from math import exp, log
from pathlib import Path
from statistics import fmean, median

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from metrics import spearman
from msgspec.structs import replace

from convlint.engine.timing import as_laid_out
from convlint.estimate import time_us
from convlint.estimate.step import Steps, step_of
from convlint.gpus.gpu import Gpu, load_gpu
from convlint.model.estimates import StepEstimate
from convlint.model.layer import Mode
from convlint.model.network import Network
from convlint.model.runtime import Runtime, Version
from convlint.readers import ReadOptions
from convlint.readers.children.wire import decode, encode

DATA = Path(__file__).resolve().parent / "data"
BUILT = Path(__file__).resolve().parent.parent / "build" / "steps"
# Measured as other networks than timm builds today: with InplaceABN, a library's own kernel, until its commit a08e5aed.
_CHANGED = ("tresnet_", "1.12")


def autocast_of(precision: str) -> str | None:
    """The dtype of autocast; None without."""
    return precision.partition(" ")[0] if precision.endswith("autocast") else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One measured step."""

    model: str
    image: int
    gpu: str
    torch: str
    how: str  # as in `time_steps.py`
    mode: Mode
    layout: str
    batch: int
    step_us: float
    gmacs: float
    activations: float
    precision: str = "fp16 autocast"
    searched: bool = True
    kernels_us: float | None = None  # of all kernels together, by a profiler
    framework: str = "pytorch"
    optimizer: str = "momentum"

    @property
    def compiled(self) -> bool:
        """Whether by torch.compile."""
        return self.how in ("1", "overhead")

    @property
    def table(self) -> str:
        """The rows that ran on one machine with one library."""
        how = {"0": self.layout, "1": "compiled"}.get(self.how, self.how)
        precision = "" if self.precision == "fp16 autocast" else f", {self.precision}"
        images = "" if self.kernels_us is None else f", N = {self.batch}"
        library = "TensorRT" if self.framework == "tensorrt" else "PyTorch"
        return f"{self.gpu} {self.mode} {how}{precision}{images}, {library} {self.torch}".rstrip()

    @property
    def runtime(self) -> Runtime:
        """What it ran in."""
        return Runtime(
            framework=self.framework, optimizer=self.optimizer, compile=self.compiled or None,
            cuda_graphs=self.how in ("graphs", "overhead") or None,
            framework_version=Version(self.torch) if self.torch else None, cudnn_benchmark=self.searched,
            mixed_precision=autocast_of(self.precision) is not None, tf32=self.precision != "fp32",
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPrediction:
    """A row with what the model says of it."""

    row: StepRow
    step: StepEstimate

    @property
    def error(self) -> float:
        """Logarithm of predicted over measured."""
        return log(self.step.time_us / self.row.step_us)

    @property
    def image_us(self) -> float:
        """Predicted, per image."""
        return self.step.time_us / self.row.batch


def read_rows(path: Path) -> list[StepRow]:
    """The rows of a CSV; multiply-adds and activations of a model are those of any of its rows."""
    with path.open(newline="", encoding="utf-8") as file:
        records = list(csv.DictReader(file))
    sizes = {(r["model"], r["img_size"]): (float(r["gmacs"]), float(r["macts_m"])) for r in records if r["gmacs"]}
    return [
        StepRow(
            model=r["model"], image=int(r["img_size"]), gpu=r["gpu"], torch=r["torch"], how=r["compile"],
            mode="training" if r["mode"] == "training" else "inference", layout=r["layout"], batch=int(r["batch"]),
            step_us=1e3 * float(r["step_ms"]), gmacs=sizes.get((r["model"], r["img_size"]), (0.0, 0.0))[0],
            activations=sizes.get((r["model"], r["img_size"]), (0.0, 0.0))[1], precision=r["amp"],
            searched=r.get("cudnn_benchmark") != "0",
            kernels_us=1e3 * float(r["kernels_ms"]) if r.get("kernels_ms") else None,
            framework=r.get("framework") or "pytorch", optimizer=r.get("optimizer") or "momentum",
        )
        for r in records
    ]  # fmt: skip


def network_of(model: str, image: int, precision: str, *, channels_last: bool) -> Network | None:
    """A timm model as convlint reads it with one image, kept in `build/steps/`; None where there is none."""
    autocast, is_half = autocast_of(precision), precision == "fp16"
    how = "-half" if is_half else "" if autocast == "fp16" else f"-{autocast or 'fp32'}"
    kept = BUILT / f"{model}-{image}{'-nhwc' if channels_last else ''}{how}.json"
    if not kept.exists():
        from export_networks import Torchvision

        from convlint.readers.torch.module import READER

        if find_spec("torchvision") is None and not any(isinstance(each, Torchvision) for each in sys.meta_path):
            sys.meta_path.append(Torchvision())
        suffix = ":channels_last" if channels_last else ""
        options = ReadOptions(
            inputs={"": f"1x3x{image}x{image}:{'fp16' if is_half else 'fp32'}{suffix}"}, channels_last=channels_last,
            autocast=autocast, roots=(str(Path(__file__).resolve().parent),) if is_half else (),
        )  # fmt: skip
        try:
            outcome = READER.read(f"{'halved' if is_half else 'timm.models'}:{model}", options)
            if outcome[1]:
                raise RuntimeError("; ".join(error.message for error in outcome[1]))
        except Exception as error:
            print(f"{model} at {image}: {error!r}"[:200], file=sys.stderr)
            return None
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(encode(outcome))
    return decode(kept.read_bytes())[0]


def with_fast_norms(network: Network) -> Network:
    """Layer and group norms in 16 bits, as timm's `fast_norm` has them."""
    operations = [
        replace(operation, work=replace(operation.work, in_32_bits=False))
        if operation.work is not None and operation.work.kind in ("layer norm", "group norm")
        else operation
        for operation in network.operations
    ]
    return replace(network, operations=tuple(operations))


def predict(row: StepRow, network: Network, gpu: Gpu) -> StepPrediction:
    """What the model says of a row."""
    runtime = row.runtime
    layers = tuple(replace(layer, N=row.batch) for layer in network.layers)
    running = as_laid_out(replace(network, layers=layers, runtime=runtime), row.mode)
    convolution_us = sum(time_us(layer, gpu, runtime, row.mode) or 0.0 for layer in running)
    step = step_of(Steps(network, running, convolution_us, runtime, row.mode), gpu)
    assert step is not None
    return StepPrediction(row=row, step=step)


def factor(errors: Sequence[float], *, clock: bool) -> float:
    """The geometric mean of the error; after one clock for all of them."""
    centre = fmean(errors) if clock else 0.0
    return exp(fmean(abs(error - centre) for error in errors))


def three_numbers(rows: Sequence[StepRow]) -> list[float]:
    """The errors of the best fit by multiply-adds, activations and a constant per step, none of them negative."""
    features = [(row.gmacs * row.batch, row.activations * row.batch, 1.0) for row in rows]
    scaled = [[value / row.step_us for value in own] for own, row in zip(features, rows, strict=True)]
    weights = [1.0 / max(fmean(own[place] for own in scaled), 1e-30) / 3 for place in range(3)]
    for _ in range(5000):  # multiplicative updates keep them positive
        sums = [sum(w * v for w, v in zip(weights, own, strict=True)) for own in scaled]
        for place in range(3):
            above = sum(own[place] for own in scaled)
            below = sum(own[place] * total for own, total in zip(scaled, sums, strict=True))
            weights[place] *= above / below
    return [log(sum(w * v for w, v in zip(weights, own, strict=True))) for own in scaled]


def is_held(model: str) -> bool:
    """Whether a network belongs to the half on which nothing was tuned; those of one family share the letter's fate."""
    return sha256(model.encode()).digest()[0] % 2 == 1


def gains(name: str, before: Mapping[object, StepPrediction], after: Mapping[object, StepPrediction]) -> None:
    """Prints what one way gains over another, per image."""
    pairs = [(before[key], after[key]) for key in before.keys() & after.keys()]
    if len(pairs) < 3:
        return
    measured = [a.row.step_us / a.row.batch / (b.row.step_us / b.row.batch) for a, b in pairs]
    predicted = [a.image_us / b.image_us for a, b in pairs]
    errors = [log(p / m) for p, m in zip(predicted, measured, strict=True)]
    constant = median(measured)
    print(
        f"{name:44} {len(pairs):5d}  {constant:6.2f}  {median(predicted):6.2f}  {spearman(measured, predicted):5.2f}"
        f"  {factor(errors, clock=False):6.3f}  {factor([log(constant / m) for m in measured], clock=False):6.3f}"
    )


def keyed(rows: Sequence[StepPrediction], wanted: Callable[[StepRow], bool]) -> dict[object, StepPrediction]:
    """The rows of some table by network and image."""
    return {(each.row.model, each.row.image, each.row.precision): each for each in rows if wanted(each.row)}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the script."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("csv", nargs="?", type=Path, default=DATA / "network_steps.csv")
    parser.add_argument("--half", choices=("fit", "held"))
    parser.add_argument("--families", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="each row")
    arguments = parser.parse_args(argv)
    rows = read_rows(arguments.csv)
    if arguments.half:
        rows = [row for row in rows if is_held(row.model) == (arguments.half == "held")]
    found: list[StepPrediction] = []
    networks: dict[tuple[str, int, str, bool], Network | None] = {}
    missing: dict[str, None] = {}
    for row in sorted(rows, key=lambda row: (row.model, row.image)):
        key = row.model, row.image, row.precision, row.layout == "NHWC"
        if key not in networks:
            networks[key] = network_of(row.model, row.image, row.precision, channels_last=key[3])
        network = networks[key]
        is_changed = row.model.startswith(_CHANGED[0]) and row.torch == _CHANGED[1]
        if network is None or not network.whole or is_changed:
            missing[row.model] = None
            continue
        if row.mode == "inference" and row.precision == "fp16 autocast":
            network = with_fast_norms(network)
        found.append(predict(row, network, load_gpu(row.gpu)))
    if missing:
        print(f"left out: {', '.join(missing)}", file=sys.stderr)
    tables: dict[str, list[StepPrediction]] = defaultdict(list)
    for each in found:
        tables[each.row.table].append(each)
    print(
        "                                                           with one   without     three\n"
        "table                                            n   bias     clock   a clock   numbers  convolutions  kernels"
    )
    for name, members in sorted(tables.items()):
        errors = [each.error for each in members]
        sized = [each.row for each in members if each.row.gmacs]
        fitted = f"{factor(three_numbers(sized), clock=True):8.3f}" if sized else "       -"
        share = median(each.step.parts["convolution"] / each.step.time_us for each in members)
        kernels = [log(sum(each.step.parts.values()) / us) for each in members if (us := each.row.kernels_us)]
        of_kernels = f"{exp(fmean(kernels)):14.2f} {factor(kernels, clock=False):6.3f}" if kernels else ""
        print(
            f"{name:44} {len(members):5d}  {exp(fmean(errors)):5.2f}  {factor(errors, clock=True):8.3f}"
            f"  {factor(errors, clock=False):8.3f}  {fitted}  {share:8.2f}{of_kernels}"
        )
    print("\nper image                                        n  measured, predicted   rho  factor  constant")
    for gpu in sorted({row.gpu for row in rows}):
        eager = keyed(
            found,
            lambda row, gpu=gpu: (
                row.gpu == gpu and row.mode == "inference" and row.layout == "NCHW" and not row.compiled
            ),
        )
        compiled = keyed(found, lambda row, gpu=gpu: row.gpu == gpu and row.compiled)
        gains(f"torch.compile, {gpu} inference", eager, compiled)
        for mode in ("inference", "training"):
            sides = [
                keyed(
                    found,
                    lambda row, gpu=gpu, mode=mode, layout=layout: (
                        row.gpu == gpu and row.mode == mode and row.layout == layout and not row.compiled
                    ),
                )
                for layout in ("NCHW", "NHWC")
            ]
            gains(f"NHWC, {gpu} {mode}", *sides)
    if arguments.families:
        print_families(found)
    if arguments.verbose:
        for each in found:
            parts = ", ".join(f"{part} {us / 1e3:.1f}" for part, us in each.step.parts.items())
            print(
                f"{each.row.model} at {each.row.image}, {each.row.table}: {exp(each.error):.2f} of "
                f"{each.row.step_us / 1e3:.1f} ms ({parts})"
            )
    return 0


def print_families(found: Sequence[StepPrediction]) -> None:
    """The bias of each family of at least three networks, by table."""
    tables = sorted({each.row.table for each in found})
    families: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for each in found:
        family = each.row.model.removeprefix("tf_").partition("_")[0].rstrip("0123456789")
        families[family][each.row.table].append(each.error)
    print("\nfamily             " + "  ".join(tables))
    for family, by_table in sorted(families.items()):
        if max(map(len, by_table.values())) >= 3:
            print(
                f"{family:18} "
                + "  ".join(
                    f"{exp(fmean(by_table[table])):{len(table)}.2f}" if table in by_table else " " * len(table)
                    for table in tables
                )
            )


if __name__ == "__main__":
    raise SystemExit(main())
