"""What the cost model predicts, as rules read it."""

from typing import Any

import pytest
from layer_facts import facts

from convlint.facts.predicted import PASS_TABLES, Run
from convlint.facts.quantity import UNKNOWN, View
from convlint.rulebook.file import VOCABULARY

WIDE = "N: 32, C: 256, H: 28, W: 28, K: 256, kernel_size: 3, padding: 1, dtype: fp16, layout: NHWC, first: false"
TINY = "N: 1, C: 8, H: 4, W: 4, K: 8, R: 1, S: 1, dtype: fp16, layout: NHWC, first: false"


def test_a_pass_is_read_as_it_is_estimated() -> None:
    found = facts(WIDE)
    fprop, seen = found.estimate.passes["fprop"], found["fprop"]
    assert (seen.gemm_M, seen.gemm_N, seen.gemm_K) == (32 * 28 * 28, 256, 256 * 9)
    assert (seen.tile_m, seen.tile_n) == fprop.tile
    assert seen.wave_tiles == 108 * fprop.resident_tiles
    assert seen.waves == pytest.approx(seen.tiles / seen.wave_tiles)
    assert (seen.bound_by, seen.algorithm) == ("compute", "implicit-gemm")
    assert found["has_dgrad"] is found["has_wgrad"] is True


def test_passes_that_are_not_run_are_unknown() -> None:
    found = facts(WIDE, mode="inference")
    assert found["dgrad"] is found["wgrad"] is UNKNOWN
    assert found["has_dgrad"] is found["has_wgrad"] is False
    assert found["wgrad_per_tap"] is True  # it would be


def test_the_emptiest_tiles_are_those_of_a_compute_bound_pass() -> None:
    found = facts(WIDE.replace("K: 256", "K: 264"))
    least = min(p.tile_efficiency for p in found.estimate.passes.values() if p.bound_by == "compute")
    assert found["tiles_worst"].tile_efficiency == least < 1
    assert found["tile"] == f"{found['tiles_worst'].tile_m}x{found['tiles_worst'].tile_n}"


def test_where_no_pass_has_the_flaw_nothing_is_empty() -> None:
    found = facts(TINY)
    assert (found["tiles_worst"].tile_efficiency, found["waves_worst"].wave_efficiency) == (1.0, 1.0)
    assert found["tiles_worst"].pass_name == "fprop"
    assert found["tile"] is found["tiles_worst"].tiles is UNKNOWN


def test_the_emptiest_waves_are_of_a_pass_whose_tiles_follow_the_batch() -> None:
    found = facts(WIDE.replace("N: 32", "N: 9"))
    assert found["waves_worst"].pass_name in ("fprop", "dgrad")
    assert found["waves_worst"].waves >= 1


def test_batches_beside_the_layers_have_full_waves() -> None:
    found = facts(WIDE.replace("N: 32", "N: 9"))
    assert found["waves_worst"].wave_efficiency < 0.95
    assert found["batch_below"] < 9 < found["batch_above"]
    there = facts(WIDE.replace("N: 32", f"N: {found['batch_above']}"))[found["waves_worst"].pass_name]
    assert there.wave_efficiency >= 0.95


def test_the_smallest_batch_with_a_tile_for_every_sm() -> None:
    one = WIDE.replace("N: 32", "N: 1").replace("H: 28, W: 28", "H: 14, W: 14")
    wanted = facts(one, mode="inference")["batch_to_fill"]
    assert wanted > 1
    view = facts(one, mode="inference")["fprop"]
    rows = -(-108 // (view.split_k * -(-view.gemm_N // view.tile_n)))
    assert (wanted - 1) * 14 * 14 <= (rows - 1) * view.tile_m < wanted * 14 * 14 + 14 * 14
    assert facts(WIDE)["batch_to_fill"] == 32


def test_wgrad_of_few_channels_is_one_gemm_over_all_taps() -> None:
    stem = "N: 128, C: 4, H: 224, W: 224, K: 64, R: 7, S: 7, stride: 2, padding: 3, dtype: fp16, layout: NHWC"
    assert facts(stem)["wgrad_per_tap"] is False
    assert facts(WIDE)["wgrad_per_tap"] is True


BRANCH = "K: 64, kernel_size: 1, input: stem"
STEM = "name: stem, C: 16, H: 28, W: 28, K: 16, kernel_size: 1"


@pytest.mark.parametrize(
    ("layers", "names"),
    [
        ([STEM, f"name: a, {BRANCH}"], ""),
        ([STEM, f"name: a, {BRANCH}", f"name: b, {BRANCH}"], "a"),
        ([STEM, *(f"name: {name}, {BRANCH}" for name in "abcd")], "a, b, c"),
        ([STEM, *(f"name: {name}, {BRANCH}" for name in "abcde")], "a, b, c and others"),
        ([STEM, f"name: a, {BRANCH}", "name: b, K: 64, kernel_size: 1"], ""),  # one feeds the other
        ([STEM, f"name: a, {BRANCH}", f"name: b, {BRANCH}", "name: c, input: b, K: 8, kernel_size: 1"], "a"),
        # two networks in one file have nothing to do with each other
        ([STEM, f"name: a, {BRANCH}", STEM.replace("stem", "two"), "name: b, K: 8, kernel_size: 1, input: two"], ""),
        ([STEM], ""),
    ],
)
def test_layers_on_other_branches(layers: list[str], names: str) -> None:
    found = facts(*layers)
    assert (found["has_branches"], found["on_branches"]) == (bool(names), names)


def test_without_a_prediction_all_is_unknown() -> None:
    found = facts("C: 64, K: 64, R: 3, S: 3")
    for name in ("fprop", "tiles_worst", "waves_worst", "tile", "batch_below", "batch_to_fill", "layer_percent"):
        assert found[name] is UNKNOWN, name


# what lies along the columns and rows of the output matrix: (pass, transposed) -> (columns, rows)
SIDES = {
    ("fprop", False): ("K", "N"), ("fprop", True): ("K", "N"), ("dgrad", False): ("C", "N"),
    ("dgrad", True): ("C", "N"), ("wgrad", False): ("K", "C"), ("wgrad", True): ("C", "K"),
}  # fmt: skip


@pytest.mark.parametrize(("which", "transposed"), SIDES)
def test_the_sides_of_a_tile(which: Any, transposed: bool) -> None:
    op = "op: conv_transpose, " if transposed else ""
    found = facts(f"{op}N: 9, C: 1000, H: 14, W: 14, K: 72, R: 3, S: 3, padding: 1, dtype: fp16, layout: NHWC")
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
