"""What lies along the columns and rows of the emptiest tiles, how full they are, and which sizes fill them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from convlint.facts.predicted import predicted
from convlint.facts.quantity import Table

if TYPE_CHECKING:
    from convlint.facts.layer import LayerFacts


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
