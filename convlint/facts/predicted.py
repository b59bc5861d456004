"""What rules may ask of a prediction: times, limits, tiles and the sides of tiles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from convlint.estimate import nearest_full_waves
from convlint.facts.quantity import UNKNOWN, Quantity, Table, Type, View, number, text, truth
from convlint.files.languages import sentence
from convlint.model.estimates import PassEstimate
from convlint.model.layer import PASSES, ConvLayer, Pass

if TYPE_CHECKING:
    from convlint.facts.layer import LayerFacts


_SIZES = ("N", "C", "D", "H", "W", "K", "T", "R", "S")


class Run(Struct, frozen=True):
    """One pass of a layer, as it is predicted to run; what rules may ask of it are its attributes."""

    estimate: PassEstimate
    which: Pass
    sms: int


PASS: Table = {
    "gemm_M": number("gemm.M", attrgetter("estimate.gemm.M")),
    "gemm_N": number("gemm.N", attrgetter("estimate.gemm.N")),
    "gemm_K": number("gemm.K", attrgetter("estimate.gemm.K")),
    "tile_m": number("tile height", lambda run: run.estimate.tile[0]),
    "tile_n": number("tile width", lambda run: run.estimate.tile[1]),
    "tiles": number("tiles, split included", attrgetter("estimate.tiles")),
    "split_k": number("how often gemm.K is split", attrgetter("estimate.split_k")),
    "waves": number("tiles over SMs x resident tiles", attrgetter("estimate.waves")),
    "wave_tiles": number("tiles in one full wave", lambda run: run.sms * run.estimate.resident_tiles),
    "last_wave_tiles": number(
        "tiles in the last, partly filled wave (0: full)", attrgetter("estimate.last_wave_tiles")
    ),
    "tile_efficiency": number("useful share of the tiles", attrgetter("estimate.tile_efficiency")),
    "wave_efficiency": number("useful share of the waves", attrgetter("estimate.wave_efficiency")),
    "main_loop_steps": number("steps of gemm.K that one tile takes", attrgetter("estimate.main_loop_steps")),
    "resident_warps": number("warps on one SM", attrgetter("estimate.resident_warps")),
    "time_us": number("predicted time", attrgetter("estimate.time_us")),
    "overhead_us": number("launch and setup time", attrgetter("estimate.overhead_us")),
    "arithmetic_intensity": number("FLOPs per byte", attrgetter("estimate.arithmetic_intensity")),
    "bound_by": text("compute, memory or launch", attrgetter("estimate.bound_by")),
    "algorithm": text("implicit-gemm, winograd, fft or direct", attrgetter("estimate.algorithm")),
}
# of the passes in use, the one with the emptiest tiles and the one with the emptiest waves
_WORST: dict[str, Table] = {
    "tiles_worst": {
        **PASS,
        "pass_name": text("the compute-bound pass with the emptiest tiles", attrgetter("which")),
    },
    "waves_worst": {
        **PASS,
        "pass_name": text("of fprop and dgrad with a full wave, the one with the emptiest waves", attrgetter("which")),
    },
}
# All follow from the estimate, so that none is ever unknown, as those of a `View` may be.
for _name, _row in _WORST["tiles_worst"].items():
    setattr(Run, _name, property(_row.of))
PASS_TABLES: dict[str, Table] = {**dict.fromkeys(PASSES, PASS), **_WORST}

# What is read where no pass has the flaw in question.
_UNFLAWED = {"tile_efficiency": 1.0, "wave_efficiency": 1.0, "pass_name": "fprop"}


def _unflawed(name: str, _subject: None) -> Any:
    return _UNFLAWED.get(name, UNKNOWN)


_NO_PASS = View({name: replace(row, of=partial(_unflawed, name)) for name, row in _WORST["tiles_worst"].items()}, None)


def lacking_prediction(facts: LayerFacts) -> tuple[str, ...]:
    """What a user would have to give for the layer's time to be predicted."""
    if facts.estimate is not None:
        return ()
    return lacking_for_time(facts.layer) or (sentence("predicted time"),)


def lacking_for_time(layer: ConvLayer) -> tuple[str, ...]:
    """What nobody gave of all that a layer's time follows from."""
    sizes = missing_sizes(layer)
    return (*sizes, "dtype") if layer.dtype is None else sizes


def missing_sizes(layer: ConvLayer) -> tuple[str, ...]:
    """The sizes that nobody gave, of those that a time follows from."""
    return tuple(size for size in _SIZES if getattr(layer, size) is None)


def predicted(kind: Type, meaning: str, of: Callable[[LayerFacts], Any]) -> Quantity:
    """A quantity that follows from the estimate."""
    return Quantity(kind, meaning, of, lacking_prediction, gpu=True)


def of_pass(facts: LayerFacts, which: Pass) -> Any:
    """The pass, or UNKNOWN where it is not run or not predicted."""
    estimate = facts.estimate.passes.get(which) if facts.estimate else None
    return UNKNOWN if estimate is None else Run(estimate, which, facts.context.gpu.sms)


def worst_tiles(facts: LayerFacts) -> Any:
    """The pass with the emptiest tiles among those whose tiles take longer than their bytes; else one without flaws."""
    return _worst(
        facts, "tile_efficiency", lambda _, estimate: estimate.computes_longer and estimate.bound_by != "launch"
    )


def worst_waves(facts: LayerFacts) -> Any:
    """Of fprop and dgrad, whose tiles follow N, the one with the emptiest waves among those of one wave or more."""
    return _worst(facts, "wave_efficiency", lambda which, estimate: which != "wgrad" and estimate.waves >= 1)


def _worst(facts: LayerFacts, efficiency: str, counts: Callable[[Pass, PassEstimate], bool]) -> Any:
    if facts.estimate is None:
        return UNKNOWN
    passes = [(which, estimate) for which, estimate in facts.estimate.passes.items() if counts(which, estimate)]
    if not passes:
        return _NO_PASS
    which, worst = min(passes, key=lambda entry: float(getattr(entry[1], efficiency)))
    return Run(worst, which, facts.context.gpu.sms)


def full_waves(facts: LayerFacts) -> Any:
    """The nearest smaller and larger N with full waves in the pass that loses most to waves; 0: none."""
    worst = facts["waves_worst"]
    if worst is UNKNOWN:
        return UNKNOWN, UNKNOWN
    below, above = nearest_full_waves(facts.layer, worst.pass_name, facts.context.gpu, facts.context.runtime)
    return below or 0, above or 0


def _batch_to_fill(facts: LayerFacts) -> Any:
    """The smallest N at which fprop and dgrad have a tile for every SM, with the splits that they run with now."""
    if facts["fprop"] is UNKNOWN or facts["N"] is UNKNOWN:
        return UNKNOWN
    batch, sms = facts["N"], facts.context.gpu.sms
    for which in ("fprop", "dgrad"):
        view = facts[which]
        if view is not UNKNOWN and view.tiles < sms:
            columns = facts.layer.groups * view.split_k * -(-view.gemm_N // view.tile_n)
            rows = -(-sms // columns)
            batch = max(batch, (rows - 1) * view.tile_m * facts["N"] // view.gemm_M + 1)
    return batch


def _wgrad_per_tap(facts: LayerFacts) -> bool:
    """Whether wgrad's tiles are those of one GEMM per tap, C high (CG 4.4.2); where it is not predicted, they are."""
    view, layer = facts["wgrad"], facts.layer
    if view is UNKNOWN or layer.C is None or layer.K is None:
        return True
    rows = -(-(layer.C // layer.groups) // view.tile_m)
    columns = -(-(layer.K // layer.groups) // view.tile_n)
    taps = (layer.T or 1) * (layer.R or 1) * (layer.S or 1)
    return bool(view.tiles == taps * layer.groups * rows * columns * view.split_k)


def _tile(facts: LayerFacts) -> Any:
    worst = facts["tiles_worst"]
    return UNKNOWN if worst.tile_m is UNKNOWN else f"{worst.tile_m}x{worst.tile_n}"


def _layer_percent(facts: LayerFacts) -> Any:
    total = facts.context.time_us
    return UNKNOWN if facts.estimate is None or not total else 100 * facts.estimate.time_us / total


_MOST_BESIDE = 3  # layers named


def _beside(facts: LayerFacts) -> list[str]:
    network = facts.context.network
    return [] if network is None else network.beside(facts.layer, _MOST_BESIDE + 1)


def _named_beside(facts: LayerFacts) -> str:
    names = _beside(facts)
    return ", ".join(names[:_MOST_BESIDE]) + (" and others" if len(names) > _MOST_BESIDE else "")


PREDICTED: Table = {
    "has_branches": truth("the edges show layers on other branches", lambda facts: bool(_beside(facts))),
    "on_branches": text("layers on other branches, which neither feed this one nor read it", _named_beside),
    "has_dgrad": Quantity(
        "truth", "dgrad is run and its time predicted", lambda facts: facts["dgrad"] is not UNKNOWN, gpu=True
    ),
    "has_wgrad": Quantity(
        "truth", "wgrad is run and its time predicted", lambda facts: facts["wgrad"] is not UNKNOWN, gpu=True
    ),
    "wgrad_per_tap": Quantity(
        "truth", "wgrad is tiled once for each filter tap, or not predicted", _wgrad_per_tap, gpu=True
    ),
    "tile": predicted("text", "tile of tiles_worst, such as 128x128", _tile),
    "batch_below": predicted(
        "number", "nearest smaller N whose waves are full (0: none)", lambda facts: facts["full waves"][0]
    ),
    "batch_above": predicted(
        "number", "nearest larger N whose waves are full (0: none)", lambda facts: facts["full waves"][1]
    ),
    "batch_to_fill": predicted(
        "number",
        "smallest N, from the present one on, at which fprop and dgrad have a tile for every SM",
        _batch_to_fill,
    ),
    "layer_percent": predicted("number", "the layer's share of the network's time, in percent", _layer_percent),
}


def _columns(facts: LayerFacts) -> str:
    """gemm.N is K in fprop and C in dgrad; wgrad is K wide, in a transposed convolution C."""
    which = facts["tiles_worst"].pass_name
    return "K" if which == "fprop" or (which == "wgrad" and not facts["transposed"]) else "C"


def _rows(facts: LayerFacts) -> str:
    """gemm.M is positions times N in fprop and dgrad; wgrad is C high, in a transposed convolution K."""
    if facts["tiles_worst"].pass_name != "wgrad":
        return "N"
    return "K" if facts["transposed"] else "C"


def _fill(size: int, side: int) -> float:
    return size / (-(-size // side) * side)


def _row_fill(facts: LayerFacts) -> float:
    rows, worst = _rows(facts), facts["tiles_worst"]
    return _fill(worst.gemm_M if rows == "N" else facts[f"{rows}_group"], worst.tile_m)


def _side(facts: LayerFacts, channels: str) -> int:
    worst = facts["tiles_worst"]
    if _columns(facts) == channels:
        return int(worst.tile_n)
    return int(worst.tile_m) if _rows(facts) == channels else 0


def _batch(facts: LayerFacts, *, above: bool) -> int:
    worst = facts["tiles_worst"]
    per_image = worst.gemm_M // facts["N"]
    if _rows(facts) != "N" or per_image == 0:
        return 0
    if above:
        return int(-(-(-(-worst.gemm_M // worst.tile_m) * worst.tile_m) // per_image))
    return int(worst.gemm_M // worst.tile_m * worst.tile_m // per_image)


def _column_fill(facts: LayerFacts) -> Any:
    worst = facts["tiles_worst"]
    return _fill(worst.gemm_N, worst.tile_n)


TILE_SIDES: Table = {
    "tile_columns": predicted("text", "what lies along the columns of tiles_worst's output: C or K", _columns),
    "tile_rows": predicted("text", "what lies along its rows: N with the positions, or C or K in wgrad", _rows),
    "tile_column_fill": predicted("number", "useful share of the width of tiles_worst's tiles", _column_fill),
    "tile_row_fill": predicted("number", "useful share of the height of tiles_worst's tiles", _row_fill),
    "tile_C": predicted(
        "number", "side of tiles_worst's tiles along C (0: they do not cover C)", partial(_side, channels="C")
    ),
    "tile_K": predicted(
        "number", "side of tiles_worst's tiles along K (0: they do not cover K)", partial(_side, channels="K")
    ),
    "tile_batch_above": predicted(
        "number",
        "smallest N that fills the rows of tiles that tiles_worst has (0: its rows are channels)",
        partial(_batch, above=True),
    ),
    "tile_batch_below": predicted(
        "number",
        "largest N that leaves tiles_worst no partly filled row of tiles (0: none)",
        partial(_batch, above=False),
    ),
}
