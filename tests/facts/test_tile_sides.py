"""What lies along the sides of a tile, how full it is, and which sizes fill it."""

from __future__ import annotations

from typing import Any

import pytest
from layer_facts import facts

from convlint.facts.predicted import PASS_TABLES, Run
from convlint.facts.quantity import View
from convlint.facts.unknown import UNKNOWN
from convlint.rulebook.vocabulary import VOCABULARY

# what lies along the columns and rows of the output matrix: (pass, transposed) -> (columns, rows)
SIDES = {
    ("fprop", False): ("K", "N"), ("fprop", True): ("K", "N"), ("dgrad", False): ("C", "N"),
    ("dgrad", True): ("C", "N"), ("wgrad", False): ("K", "C"), ("wgrad", True): ("C", "K"),
}  # fmt: skip


@pytest.mark.parametrize(("which", "transposed"), SIDES)
def test_the_sides_of_a_tile(which: Any, transposed: bool) -> None:
    op = "op: conv_transpose, " if transposed else ""
    found = facts(f"{op}N: 9, C: 1000, H: 14, W: 14, K: 72, R: 3, S: 3, padding: 1, dtype: fp16, layout: NHWC")
    assert found.estimate is not None
    run = Run(found.estimate.passes[which], which, found.context.gpu.sms)
    found["tiles_worst"] = View(PASS_TABLES["tiles_worst"], run)
    m, n = found["tiles_worst"].tile_m, found["tiles_worst"].tile_n
    columns, rows = SIDES[which, transposed]
    channels = {"C": 1000, "K": 72, "N": 9 * 14 * 14}
    assert (found["tile_columns"], found["tile_rows"]) == (columns, rows)
    sides = {columns: n, rows: m}
    assert (found["tile_C"], found["tile_K"]) == (sides.get("C", 0), sides.get("K", 0))
    for name, side in (("column", columns), ("row", rows)):
        size, length = channels[side], sides[side]
        assert found[f"tile_{name}_fill"] == pytest.approx(size / (-(-size // length) * length))
    above, below = found["tile_batch_above"], found["tile_batch_below"]
    if rows != "N":
        assert (above, below) == (0, 0)
    else:
        assert below * 196 <= 9 * 196 // m * m < (below + 1) * 196
        assert (above - 1) * 196 < -(-9 * 196 // m) * m <= above * 196


def test_tiles_are_unknown_without_a_prediction_or_where_no_pass_has_the_flaw() -> None:
    unpredicted = facts("C: 64, K: 72, R: 3, S: 3, dtype: fp16")
    tiles = [name for name in VOCABULARY if name.startswith("tile_")]
    assert len(tiles) == 8
    assert all(unpredicted[name] is UNKNOWN for name in tiles)
    assert unpredicted.needs(frozenset(tiles)) == ("N", "H", "W")
    memory_bound = facts("N: 1, C: 8, H: 4, W: 4, K: 8, R: 1, S: 1, dtype: fp16")
    assert memory_bound["tiles_worst"].tile_efficiency == 1
    assert memory_bound["tile_row_fill"] is UNKNOWN
