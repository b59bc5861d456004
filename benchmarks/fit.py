"""Fits the constants of the cost model to measured times: `python benchmarks/fit.py [CSV] [--set tensor|simt]`.

Coordinate descent on few constants, each of them shared by all GPUs of a generation (never one per row or GPU), with
the loss averaged over (gpu, precision, pass) so that long lists do not outweigh short ones. `--leave-out GPU` and
`--leave-out GPU/PRECISION` fit on the rest and report the loss on what was left out. Prints the constants; nothing is
written: `convlint/estimate/constants.py` is edited by hand, with the source beside each number. Pure Python.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from statistics import fmean

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parent.parent), str(Path(__file__).resolve().parent)]

from accuracy import convlint_us, predict
from metrics import Predicted, gain_pairs
from msgspec.structs import replace
from timings import DEFAULT_CSV, Row, read_rows, resolve_gpu

from convlint.estimate import board, constants
from convlint.gpus.gpu import Gpu

TENSOR = ("VOLTA", "TURING", "AMPERE")
SIMT = ("SIMT", "SIMT_VOLTA", "SIMT_TURING")
GAIN_WEIGHT = 0.5  # of the gain's error in the loss, against that of the times


@dataclass(frozen=True, slots=True)
class Constant:
    """One number that several families share: a field of `Family`, one item of a tuple there, or a module constant."""

    name: str
    families: tuple[str, ...] = ()
    item: int | None = None

    def get(self) -> float:
        """Its present value."""
        holder = getattr(constants, self.families[0]) if self.families else constants
        value = getattr(holder, self.name)
        return float(value if self.item is None else value[self.item])

    def set(self, value: float) -> None:
        """Sets it everywhere and forgets all estimates."""
        board._BOARDS.clear()
        if not self.families:
            setattr(constants, self.name, value)
            return
        for family_name in self.families:
            family = getattr(constants, family_name)
            new: object = value
            if self.item is not None:
                items = list(getattr(family, self.name))
                items[self.item] = value
                new = tuple(items)
            setattr(constants, family_name, replace(family, **{self.name: new}))

    def __str__(self) -> str:
        place = "+".join(self.families) or "all"
        return f"{place}.{self.name}" + ("" if self.item is None else f"[{self.item}]")


SETS: dict[str, tuple[Constant, ...]] = {
    "tensor": (
        Constant("operand_cost", TENSOR),
        Constant("round_us", TENSOR),
        Constant("extra_kernel_us", TENSOR),
        Constant("sustained", ("VOLTA", "TURING")),
        Constant("sustained", ("AMPERE",)),
        Constant("load_latency_us", ("VOLTA", "TURING")),
        Constant("load_latency_us", ("AMPERE",)),
        *(Constant("setup_us", ("VOLTA", "AMPERE"), item) for item in range(3)),
        *(Constant("setup_us", ("TURING",), item) for item in range(3)),
        Constant("weight_writes", ("TURING",), 2),
    ),
    "simt": (
        Constant("operand_cost", SIMT),
        Constant("round_us", SIMT),
        Constant("extra_kernel_us", SIMT),
        Constant("sustained", SIMT),
        Constant("load_latency_us", SIMT),
        Constant("drain", SIMT),
        *(Constant("setup_us", ("SIMT", "SIMT_VOLTA"), item) for item in range(2)),
        Constant("setup_us", ("SIMT",), 2),
        Constant("setup_us", ("SIMT_VOLTA",), 2),
        *(Constant("setup_us", ("SIMT_TURING",), item) for item in range(3)),
        Constant("weight_writes", ("SIMT", "SIMT_TURING"), 2),
    ),
}


def in_set(row: Row, name: str) -> bool:
    """Whether a row runs on the units whose constants the set holds."""
    return (row.precision == "fp32") == (name == "simt")


def loss(rows: Sequence[Row], gpus: dict[str, Gpu]) -> float:
    """Mean over (gpu, precision, pass) of the mean absolute log error, plus the weighted one of the gains."""
    predicted, _ = predict(rows, convlint_us, gpus)
    groups: dict[tuple[str, str, str], list[Predicted]] = defaultdict(list)
    for item in predicted:
        groups[item.row.gpu, item.row.precision, item.row.which].append(item)
    times = fmean(fmean(min(abs(item.error), 1.0) for item in group) for group in groups.values())
    pairs = gain_pairs(predicted)
    gains = fmean(min(abs(measured - expected), 0.5) for measured, expected in pairs) if pairs else 0.0
    return times + GAIN_WEIGHT * gains


def fit(rows: Sequence[Row], gpus: dict[str, Gpu], chosen: Sequence[Constant], *, rounds: int = 4) -> float:
    """Coordinate descent by ever smaller factors; returns the loss reached."""
    best = loss(rows, gpus)
    for factor in [1.3, 1.15, 1.07, 1.03][:rounds]:
        improved = True
        while improved:
            improved = False
            for constant in chosen:
                value = constant.get()
                for candidate in (value * factor, value / factor):
                    constant.set(candidate)
                    reached = loss(rows, gpus)
                    if reached < best * 0.9995:
                        best, value, improved = reached, candidate, True
                constant.set(value)
    return best


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script."""
    parser = argparse.ArgumentParser(description="Fits the cost model's constants.")
    parser.add_argument("csv", nargs="?", type=Path, default=DEFAULT_CSV)
    parser.add_argument("--set", choices=sorted(SETS), default="tensor", dest="name")
    parser.add_argument("--leave-out", action="append", default=[], metavar="GPU[/PRECISION]")
    parser.add_argument("--rounds", type=int, default=4, help="how fine: 1 to 4")
    options = parser.parse_args(arguments)
    rows = [row for row in read_rows(options.csv) if in_set(row, options.name)]
    gpus = {name: resolve_gpu(name, {}) for name in {row.gpu for row in rows}}
    left = [row for row in rows if row.gpu in options.leave_out or f"{row.gpu}/{row.precision}" in options.leave_out]
    used = [row for row in rows if row not in left]
    print(
        f"{len(used)} rows; loss before {loss(used, gpus):.4f}" + (f", left out {loss(left, gpus):.4f}" if left else "")
    )
    reached = fit(used, gpus, SETS[options.name], rounds=options.rounds)
    print(
        f"loss after {reached:.4f}"
        + (f", left out {loss(left, gpus):.4f}" if left else "")
        + f" (1.0 is a factor e = {exp(1):.2f})"
    )
    for constant in SETS[options.name]:
        print(f"  {constant!s:45} {constant.get():.4g}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
