"""Holds NCHW against NHWC in whole networks: `python benchmarks/networks.py [CSV] [--gpu-map NAME=ID ...] [--verbose]`.

Each row is a network that was measured in both layouts: `layout_networks.csv` has it in one line with images per
second, `network_steps.csv` in two with steps (compiled ones, and those measured in one layout alone, are left out).
Predicted are its convolutions alone, so that their time must lie below the measured step, and what NHWC saves in them
should be near what it saves in the step. Exits 1 where convolutions alone are predicted to take longer than the whole
step. Pure Python, no GPU.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from metrics import spearman
from network_tables import Placed, placed, read_networks
from timings import add_gpu_map, gpu_map, known_gpus, print_gpus

from convlint.estimate import time_us
from convlint.gpus.gpu import Gpu
from convlint.model.errors import ConvlintError
from convlint.model.layer import ConvLayer, Mode
from convlint.model.runtime import Runtime
from convlint.readers import ReadOptions
from convlint.readers.spec.reader import read

DATA = Path(__file__).resolve().parent / "data"
RUNTIME = Runtime(framework="pytorch", cudnn_benchmark=True)
MODES: Mapping[str, Mode] = {
    "infer": "inference", "train": "training", "inference": "inference", "training": "training"
}  # fmt: skip
OVER = 1.1  # of the step, which no network's convolutions may take
DIFFER = 0.05  # share of the NCHW step by which layouts must differ for the sign to mean something


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One layout: the batch it ran at, and the time of a step per image."""

    batch: int
    step_us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One network in one mode on one GPU, measured in both layouts."""

    model: str
    image: int
    gpu: str
    mode: Mode
    nchw: Side
    nhwc: Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """A row with the predicted time of its convolutions per image, in us."""

    row: Row
    nchw_us: float
    nhwc_us: float

    @property
    def saving(self) -> float:
        """What NHWC is predicted to save, of the measured step in NCHW."""
        return (self.nchw_us - self.nhwc_us) / self.row.nchw.step_us

    @property
    def measured_saving(self) -> float:
        """What NHWC saves, of the measured step in NCHW."""
        return 1 - self.row.nhwc.step_us / self.row.nchw.step_us

    @property
    def shares(self) -> dict[str, float]:
        """Predicted convolutions over the measured step, by layout."""
        return {"NCHW": self.nchw_us / self.row.nchw.step_us, "NHWC": self.nhwc_us / self.row.nhwc.step_us}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """How well the saving is predicted; None where too few networks say anything."""

    n: int
    paying: int
    ratio: float | None  # predicted over measured saving, median of those that NHWC saves over 5 %
    rho: float | None  # of the relative saving
    differing: int
    signs: float | None  # share with the right sign of those whose layouts differ by over 5 %
    share: float  # of convolutions in the step, median over networks and layouts
    most: float  # the largest of those


def read_rows(path: Path) -> list[Row]:
    """The rows of a CSV of either kind; raises ConvlintError where one cannot be read."""
    rows = []
    halves: dict[tuple[str, ...], Row] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for number, record in enumerate(csv.DictReader(file), start=2):
            try:
                if "step_ms" not in record:
                    rows.append(_row(record, record["img"], *(_side(record, layout) for layout in ("nchw", "nhwc"))))
                elif record["compile"] == "0":
                    batch, step_ms = int(record["batch"]), float(record["step_ms"])
                    row = _row(record, record["img_size"], *[Side(batch=batch, step_us=1e3 * step_ms / batch)] * 2)
                    key = tuple(record[name] for name in ("model", "img_size", "gpu", "torch", "mode"))
                    twin = halves.pop(key, None)
                    if twin is None:
                        halves[key] = row
                    else:
                        nchw, nhwc = (twin, row) if record["layout"] == "NHWC" else (row, twin)
                        rows.append(replace(row, nchw=nchw.nchw, nhwc=nhwc.nhwc))
            except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
                raise ConvlintError(f"{path}:{number}: {error!r}") from error
    return rows


def _row(record: Mapping[str, str], image: str, nchw: Side, nhwc: Side) -> Row:
    mode = MODES[record["mode"]]
    return Row(model=record["model"], image=int(image), gpu=record["gpu"], mode=mode, nchw=nchw, nhwc=nhwc)


def _side(record: Mapping[str, str], layout: str) -> Side:
    batch, rate = int(record[f"batch_{layout}"]), float(record[f"img_s_{layout}"])
    if batch < 1 or not 0 < rate < float("inf"):
        raise ValueError(f"a batch of {batch} at {rate} images per second in {layout.upper()}")
    return Side(batch=batch, step_us=1e6 / rate)


def read_network(path: Path) -> tuple[Placed, ...]:
    """The layers of a spec; raises ConvlintError where it cannot be read."""
    network, errors = read(str(path), ReadOptions())
    if errors or network is None:
        raise ConvlintError(f"{path}: {errors[0].message if errors else 'no network'}")
    return tuple(map(placed, network.layers))


def networks_of(rows: Sequence[Row], folder: Path) -> dict[tuple[str, int], tuple[Placed, ...]]:
    """The layers of the rows' networks, from the tables or a folder of specs; none for what neither has."""
    found = read_networks()
    wanted = {(row.model, row.image) for row in rows} - found.keys()
    specs = {key: folder / f"{key[0]}.yaml" for key in wanted}
    return found | {key: read_network(path) for key, path in specs.items() if path.exists()}


def layers_us(
    layers: Sequence[Placed], side: Side, gpu: Gpu, mode: Mode, *, channels_last: bool
) -> list[tuple[ConvLayer, float]]:
    """The layers at one side's batch, each with its predicted time per image."""
    timed = []
    for each in layers:
        layer = each.laid_out(side.batch, channels_last=channels_last)
        time = time_us(layer, gpu, RUNTIME, mode)
        if time is None:
            raise ConvlintError(f"{layer.name} cannot be estimated on {gpu.id}")
        timed.append((layer, time / side.batch))
    return timed


def predict(row: Row, layers: Sequence[Placed], gpu: Gpu) -> Predicted:
    """The row with what the model under test says."""
    nchw, nhwc = (
        sum(time for _, time in layers_us(layers, side, gpu, row.mode, channels_last=side is row.nhwc))
        for side in (row.nchw, row.nhwc)
    )
    return Predicted(row=row, nchw_us=nchw, nhwc_us=nhwc)


def figures(rows: Sequence[Predicted]) -> Figures:
    """All figures of some rows."""
    ratios = [each.saving / each.measured_saving for each in rows if each.measured_saving > DIFFER]
    signs = [(each.saving > 0) == (each.measured_saving > 0) for each in rows if abs(each.measured_saving) > DIFFER]
    shares = [share for each in rows for share in each.shares.values()]
    return Figures(
        n=len(rows), paying=len(ratios), ratio=median(ratios) if ratios else None,
        rho=spearman([each.measured_saving for each in rows], [each.saving for each in rows]),
        differing=len(signs), signs=sum(signs) / len(signs) if signs else None,
        share=median(shares), most=max(shares),
    )  # fmt: skip


def impossible(rows: Sequence[Predicted]) -> list[str]:
    """Every network, mode and layout whose convolutions are predicted to take the whole step or more."""
    return [
        f"{each.row.model} at {each.row.image}, {each.row.mode} on {each.row.gpu}, {layout}: {share:.2f}"
        for each in rows for layout, share in each.shares.items() if share >= 1
    ]  # fmt: skip


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def print_figures(rows: Sequence[Predicted]) -> None:
    """One line per GPU and mode."""
    groups: dict[str, list[Predicted]] = defaultdict(list)
    for each in rows:
        groups[f"{each.row.gpu} {each.row.mode}"].append(each)
    print("saving of NHWC over NCHW; `pred/meas`: median where it saves over 5 %; `sign`: where layouts differ by that")
    print(f"{'':24}{'n':>4} {'pred/meas':>10} {'of':>4} {'rho':>6} {'sign':>6} {'of':>4}   conv/step: median   most")
    for title, found in groups.items():
        f = figures(found)
        print(
            f"{title:24}{f.n:4d} {_text(f.ratio):>10} {f.paying:4d} {_text(f.rho):>6} {_text(f.signs):>6} "
            f"{f.differing:4d} {f.share:19.2f} {f.most:6.2f}"
        )
    print(f"\n{'convolutions over the step':36}{'n':>4} {'median':>7} {'over 1':>7} {'over 1.1':>9} {'most':>6}")
    for title, found in groups.items():
        for layout in ("NCHW", "NHWC"):
            shares = [each.shares[layout] for each in found]
            over = [sum(share > bound for share in shares) for bound in (1, OVER)]
            print(
                f"{title + ', ' + layout:36}{len(shares):4d} {median(shares):7.2f} {over[0]:7d} {over[1]:9d} "
                f"{max(shares):6.2f}"
            )


def print_networks(rows: Sequence[Predicted]) -> None:
    """One line per row: us per image."""
    print(f"\nus per image{'':24}{'convolutions, predicted':>27}{'step, measured':>17}{'saving':>16}{'conv/step':>14}")
    print(f"{'':36}{'NCHW':>18} {'NHWC':>8} {'NCHW':>8} {'NHWC':>8} {'pred':>8} {'meas':>7} {'NCHW':>7} {'NHWC':>6}")
    for each in rows:
        row, shares = each.row, each.shares
        print(
            f"{row.model:24}{row.mode:12}{each.nchw_us:18.0f} {each.nhwc_us:8.0f} {row.nchw.step_us:8.0f} "
            f"{row.nhwc.step_us:8.0f} {each.nchw_us - each.nhwc_us:8.0f} "
            f"{row.nchw.step_us - row.nhwc.step_us:7.0f} {shares['NCHW']:7.2f} {shares['NHWC']:6.2f}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script; 0, 1 where convolutions exceed a step, or 2 for a file or GPU that cannot be used."""
    parser = argparse.ArgumentParser(description="Measures the predicted price of NCHW against whole networks.")
    parser.add_argument("csv", nargs="?", type=Path, default=DATA / "layout_networks.csv")
    parser.add_argument("--networks", type=Path, default=DATA / "networks", help="folder of a spec for each network")
    add_gpu_map(parser)
    parser.add_argument("--verbose", action="store_true", help="a line for each network")
    options = parser.parse_args(arguments)
    given = gpu_map(options)
    try:
        rows = read_rows(options.csv)
        gpus = known_gpus((row.gpu for row in rows), given, "networks.py")
        rows = [row for row in rows if row.gpu in gpus]
        if not rows:
            raise ConvlintError(f"{options.csv} holds no rows to predict")
        networks = networks_of(rows, options.networks)
        unknown = sorted({row.model for row in rows if (row.model, row.image) not in networks})
        rows = [row for row in rows if (row.model, row.image) in networks]
        if not rows:
            raise ConvlintError(f"no layers are known of {', '.join(unknown)}")
        predicted = [predict(row, networks[row.model, row.image], gpus[row.gpu]) for row in rows]
    except (ConvlintError, OSError) as error:
        print(f"networks.py: {error}", file=sys.stderr)
        return 2
    if unknown:
        print(f"networks.py: no layers are known of {', '.join(unknown)}; left out", file=sys.stderr)
    print_gpus(gpus)
    print_figures(predicted)
    if options.verbose:
        print_networks(predicted)
    beyond = impossible(predicted)
    for line in beyond:
        print(f"convolutions take longer than the whole step: {line}")
    return 1 if beyond else 0


if __name__ == "__main__":
    raise SystemExit(main())
