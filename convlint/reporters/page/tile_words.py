"""What the drawing of tiles and waves shows, in words; every number is the estimate's."""

from __future__ import annotations

from convlint.estimate import Grid, PassEstimate
from convlint.model.layer import Pass
from convlint.reporters.page.tile_grid import shown_tiles, useful_part
from convlint.reporters.page.wave_slots import wave_of
from convlint.reporters.words import plural


def tiles_in_words(estimate: PassEstimate, grid: Grid, which: Pass) -> str:
    """The matrix, its tiles, and how much of them is computed for nothing."""
    useful = useful_part(estimate, grid, which)
    M = f"M={grid.M:,}{_channels(useful.M, grid.M) if which == 'wgrad' else ''}"
    N = f"N={grid.N:,}{_channels(useful.N, grid.N)}"
    batch = f"{grid.batch:,} x " if grid.batch > 1 else ""
    split = f" x {estimate.split_k} (gemm.K is split)" if estimate.split_k > 1 else ""
    several = "" if grid.batch == 1 else f" each of {grid.batch:,} {_products(estimate, grid, which)}:"
    text = (
        f"{which}:{several} {M} x {N} in tiles of {grid.height}x{grid.width}: "
        f"{batch}{grid.rows:,} x {grid.columns:,}{split} = {_count(estimate.tiles, 'tile')}, "
        f"{_share(1 - estimate.tile_efficiency, 'none')} of their area is padding."
    )
    return text + _left_out(grid)


def waves_in_words(estimate: PassEstimate) -> str:
    """How the tiles are dealt over the SMs."""
    wave = wave_of(estimate)
    resident = estimate.resident_tiles
    last = estimate.last_wave_tiles / wave if estimate.last_wave_tiles else 1.0
    filled = "all full" if last == 1.0 else f"the last one {_share(last, 'not')} full"
    if estimate.tiles < wave:
        filled = f"{_share(last, 'not')} of one"
    each = plural(resident, "tile")
    return (
        f"{_count(estimate.tiles, 'tile')} on {wave // resident:,} SMs x {each}: {estimate.waves:,.2f} waves, {filled}."
    )


def _channels(useful: float, whole: int) -> str:
    """Of a side that is channels: how many of them are the layer's."""
    return "" if round(useful) >= whole else f" ({round(useful):,} without padded channels)"


def _products(estimate: PassEstimate, grid: Grid, which: Pass) -> str:
    """What there is one product for."""
    groups = estimate.gemm.batch
    if estimate.algorithm != "implicit-gemm":
        return "points of the transform"
    others = "taps" if which == "wgrad" else "phases of the stride"
    if grid.batch == groups:
        return "groups"
    return others if groups == 1 else f"groups and {others}"


def _left_out(grid: Grid) -> str:
    rows, columns = shown_tiles(grid)
    parts = [f"{rows} rows"] if rows < grid.rows else []
    parts += [f"{columns} columns"] if columns < grid.columns else []
    return f" Drawn are the last {' and '.join(parts)} of tiles." if parts else ""


def _count(count: int, noun: str) -> str:
    return plural(count, noun) if count < 1000 else f"{count:,} {noun}s"


def _share(share: float, nothing: str) -> str:
    """A share in whole percent, which neither hides a little nor rounds up to everything."""
    if share <= 0:
        return nothing
    if share < 0.01:
        return "under 1 %"
    return f"{min(99.0, 100 * share):.0f} %" if share < 1 else "100 %"
