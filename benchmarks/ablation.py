"""What each term of the cost model buys: takes them out one by one and prints the loss in accuracy."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parent.parent), str(Path(__file__).resolve().parent)]

import layer_timings
import layers
import networks
from accuracy import convlint_us, predict
from metrics import clock_factors, figures, gains
from msgspec.structs import replace
from timings import DEFAULT_CSV, read_rows, resolve_gpu

from convlint.estimate import board, constants, kernels, passes, price, search

FAMILIES = ("VOLTA", "TURING", "AMPERE", "SIMT", "SIMT_VOLTA", "SIMT_TURING", "SIMT_DOUBLED")
NEVER = ("never", "never", "never")
FREE_TURING = ("idle", "never", "free")


def module(name: str, value: object) -> Callable[[], None]:
    """Sets a constant of the module."""
    return lambda: setattr(constants, name, value)


def family(names: Sequence[str] = FAMILIES, **fields: object) -> Callable[[], None]:
    """Sets fields of families."""

    def apply() -> None:
        for name in names:
            setattr(constants, name, replace(getattr(constants, name), **fields))

    return apply


def without_lowering(*tables: str) -> Callable[[], None]:
    """Takes transform-based algorithms away."""

    def apply() -> None:
        kept = price.transforms
        price.transforms = lambda *a, **k: [found for found in kept(*a, **k) if found.table not in tables]

    return apply


def lowered(**fields: object) -> Callable[[], None]:
    """Sets fields of every implicit GEMM."""

    def apply() -> None:
        kept = price.implicit_gemm
        price.implicit_gemm = lambda *a, **k: [replace(found, **fields) for found in kept(*a, **k)]

    return apply


def modern_boards() -> None:
    """Treats all GPUs as if their libraries had no fallbacks of their own; C = 8 stays tap by tap."""
    constants.MOST_FEW_CHANNELS = 4  # type: ignore[misc]
    kept = board.Board.__init__

    def init(self: board.Board, gpu: object) -> None:
        kept(self, gpu)  # type: ignore[arg-type]
        self.modern = True

    board.Board.__init__ = init  # type: ignore[assignment, method-assign]


TERMS: dict[str, Callable[[], object]] = {
    "nothing": lambda: None,
    "load latency": family(load_latency_us=1e-6),
    "resident tiles": family(most_resident=1),
    "a lone tile waits": family(lone_tile_cost=1.0),
    "libraries overlook waves": module("WAVE_FORESIGHT", 1.0),
    "operand cost": family(operand_cost=0.0),
    "start and end of rounds": family(round_us=0.0),
    "drain (CUDA cores)": family(drain=0.0),
    "partial overlap with memory": lambda: setattr(search.join, "__defaults__", (30.0,)),
    "splitting the reduction": family(split=NEVER),
    "no split in Turing's fprop": family(("TURING",), split=FREE_TURING),
    "Turing's one wgrad tile": family(("TURING",), wgrad_tiles=((128, 128), (64, 64))),
    "weight writes": family(weight_writes=(0.0, 0.0, 0.0)),
    "setup per pass and generation": family(setup_us=(7.0, 7.0, 7.0)),
    "fallbacks to CUDA cores": modern_boards,
    "Winograd, not fused": without_lowering("winograd"),
    "Winograd, fused": without_lowering("fused winograd"),
    "fused for small batches": lambda: setattr(kernels, "LEAST_BATCH_NOT_FUSED", 1),
    "FFT": without_lowering("fft"),
    "workspace of transforms": lambda: setattr(kernels, "_spilled", lambda *_: 0),
    "1x1 wgrad's loads": family(pointwise_wgrad_cost=0.0),
    "1x1 wgrad's free split": lambda: kernels._SPLITS.pop("pointwise wgrad"),
    "dgrad's own tiles": family(("SIMT", "SIMT_VOLTA", "SIMT_TURING"), dgrad_tiles=constants.SIMT.tiles),
    "zero-fill of strided dgrad": lowered(zeroed_bytes=0.0, serial_bytes=0.0, extra_kernels=0),
    "narrow dgrad kernel": module("NARROW_DGRAD_SHARE", 1e-6),
    "clock under load": lambda: vars(constants).update(TENSOR_CLOCK={}, BOARD_WATTS={}),
}


def never(name: str) -> Callable[[], None]:
    """Makes a test of `price` say no."""
    return lambda: setattr(price, name, lambda *_: False)


NEWER: dict[str, Callable[[], object]] = {
    "nothing": lambda: None,
    "transposes in whole tiles": module("TRANSPOSE_BYTES_PER_CLOCK", 1e9),
    "1x1 as a product": never("_is_product"),
    "few channels tap by tap": never("_walks_taps"),
    "several taps on Hopper": family(("HOPPER",), taps_us=0.0),
    "volumes: a kernel per group": module("VOLUME_OF_GROUP_US", 0.0),
    "volumes: slower steps": lambda: vars(constants).update(VOLUME_SHARE=1.0, PATCHES_SLOWER=(1.0, 1.0, 1.0)),
    "narrow groups in NCHW": module("NARROW_GROUP", 0),
    "gradients of groups in NHWC": lambda: vars(constants).update(OTHER_GROUPS=1e9, WIDE_GROUPS=1e9),
    "bias": lambda: setattr(passes, "with_bias", lambda priced, *_, **__: priced),
}


def print_newer() -> None:
    """What the terms buy that newer layers and whole networks led to."""
    files = [layer_timings.DATA / f"{name}.csv" for name in ("h200_layers", "conv3d_layout_pairs")]
    timed = [layer_timings.read_csv(path) for path in files]
    gpus = {name: gpu for rows in timed for name, gpu in layer_timings.gpus_of(rows, {}, "ablation.py").items()}
    steps = networks.read_rows(networks.DATA / "network_steps.csv")
    known = networks.networks_of(steps, networks.DATA / "networks")
    steps = [row for row in steps if (row.model, row.image) in known and row.gpu == "rtx-3090"]
    boards = networks.known_gpus((row.gpu for row in steps), {}, "ablation.py")
    kept = {module: dict(vars(module)) for module in (constants, price, board, passes)}
    print(f"{'':34}{'H200':>16}{'3-D layouts':>16}{'RTX 3090 inference':>20}{'training':>14}{'over':>6}")
    print(f"{'without':34}" + 2 * f"{'rho e':>8}{'factor':>8}" + f"{'rho':>12}{'sign':>8}{'rho':>7}{'sign':>8}{'1':>6}")
    for term, take_out in NEWER.items():
        take_out()
        board._BOARDS.clear()
        text = f"{term:34}"
        for rows in timed:
            line = layers.line([each for _, each in layers.predict(rows, gpus)])
            text += f"{line.rho or 0.0:8.3f}{line.factor_clocked:8.3f}"
        predicted = [networks.predict(row, known[row.model, row.image], boards[row.gpu]) for row in steps]
        for mode, width in (("inference", 12), ("training", 7)):
            result = networks.figures([each for each in predicted if each.row.mode == mode])
            text += f"{result.rho or 0.0:{width}.3f}{result.signs or 0.0:8.3f}"
        print(text + f"{len(networks.impossible(predicted)):6d}")
        for module_, before in kept.items():
            vars(module_).update(before)
    board._BOARDS.clear()


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints one line per term that is taken out."""
    parser = argparse.ArgumentParser(description="Measures what each term of the cost model buys.")
    parser.add_argument("csv", nargs="?", type=Path, default=DEFAULT_CSV)
    parser.add_argument("--newer", action="store_true", help="terms of newer layers and whole networks, a minute")
    if parser.parse_args(arguments).newer:
        print_newer()
        return 0
    rows = read_rows(parser.parse_args(arguments).csv)
    gpus = {name: resolve_gpu(name, {}) for name in {row.gpu for row in rows}}
    kept_constants = {name: getattr(constants, name) for name in dir(constants) if name.isupper()}
    kept = (
        price.transforms,
        price.implicit_gemm,
        kernels.LEAST_BATCH_NOT_FUSED,
        kernels._spilled,
        board.Board.__init__,
    )
    kept_splits = dict(kernels._SPLITS)
    print(f"{'':32}{'Tensor Cores':>30}  {'CUDA cores':>30}")
    print(f"{'without':32}" + 2 * f"{'rho e':>8}{'factor':>8}{'gain rho':>9}{'factor':>7}")
    for term, take_out in TERMS.items():
        take_out()
        board._BOARDS.clear()
        predicted, _ = predict(rows, convlint_us, gpus)
        clocks = clock_factors(predicted)
        line = f"{term:32}"
        for fp32 in (False, True):
            found = [item for item in predicted if (item.row.precision == "fp32") == fp32]
            result, gain = figures(found, clocks), gains(found)
            assert gain is not None
            line += f"{result.rho_efficiency:8.3f}{result.factor_clocked:8.3f}{gain.rho:9.3f}{gain.factor:7.3f}"
        print(line)
        for name, value in kept_constants.items():
            setattr(constants, name, value)
        price.transforms, price.implicit_gemm, kernels.LEAST_BATCH_NOT_FUSED, kernels._spilled = kept[:4]
        kernels._SPLITS.update(kept_splits)
        board.Board.__init__ = kept[4]  # type: ignore[method-assign]
        search.join.__defaults__ = (constants.OVERLAP,)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
