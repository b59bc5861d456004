"""What lies along the columns and rows of the emptiest tiles, how full they are, and which sizes fill them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from convlint.engine.quantity import Quantity, or_unknown

if TYPE_CHECKING:
    from convlint.engine.facts import LayerFacts


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


TILE_SIDES: Mapping[str, Quantity] = {
    "tile_columns": or_unknown(_columns),
    "tile_rows": or_unknown(_rows),
    "tile_column_fill": or_unknown(_column_fill),
    "tile_row_fill": or_unknown(_row_fill),
    "tile_C": or_unknown(lambda facts: _side(facts, "C")),
    "tile_K": or_unknown(lambda facts: _side(facts, "K")),
    "tile_batch_above": or_unknown(lambda facts: _batch(facts, above=True)),
    "tile_batch_below": or_unknown(lambda facts: _batch(facts, above=False)),
}
