"""What the drawing of tiles and waves shows, in words; every number is the estimate's."""

from __future__ import annotations

from convlint.estimate import Grid, PassEstimate
from convlint.files.languages.saying import is_english, say, sentence
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
    split = say(" x {count} (gemm.K is split)", count=estimate.split_k) if estimate.split_k > 1 else ""
    several = ""
    if grid.batch > 1:
        several = say(_products(estimate, grid, which), count=grid.batch)
    text = say(
        "{which}:{several} {M} x {N} in tiles of {tile}: {product} = {tiles}, {share} of their area is padding.",
        which=which,
        several=several,
        M=M,
        N=N,
        tile=f"{grid.height}x{grid.width}",
        product=f"{batch}{grid.rows:,} x {grid.columns:,}{split}",
        tiles=_count(estimate.tiles, "tile"),
        share=_share(1 - estimate.tile_efficiency, say("none")),
    )
    return text + _left_out(grid)


def waves_in_words(estimate: PassEstimate) -> str:
    """How the tiles are dealt over the SMs."""
    wave = wave_of(estimate)
    resident = estimate.resident_tiles
    last = estimate.last_wave_tiles / wave if estimate.last_wave_tiles else 1.0
    filled = say("all full")
    if last != 1.0:
        filled = say("the last one {share} full", share=_share(last, say("not")))
    if estimate.tiles < wave:
        filled = say("{share} of one", share=_share(last, say("not")))
    return say(
        "{tiles} on {SMs:,} SMs x {each}: {waves:,.2f} waves, {filled}.",
        tiles=_count(estimate.tiles, "tile"),
        SMs=wave // resident,
        each=plural(resident, "tile"),
        waves=estimate.waves,
        filled=filled,
    )


def _channels(useful: float, whole: int) -> str:
    """Of a side that is channels: how many of them are the layer's."""
    return "" if round(useful) >= whole else say(" ({count:,} without padded channels)", count=round(useful))


def _products(estimate: PassEstimate, grid: Grid, which: Pass) -> str:
    """What there is one product for."""
    groups = estimate.gemm.batch
    if estimate.algorithm != "implicit-gemm":
        return sentence(" each of {count:,} points of the transform:")
    if grid.batch == groups:
        return sentence(" each of {count:,} groups:")
    if which == "wgrad":
        return sentence(" each of {count:,} taps:") if groups == 1 else sentence(" each of {count:,} groups and taps:")
    if groups == 1:
        return sentence(" each of {count:,} phases of the stride:")
    return sentence(" each of {count:,} groups and phases of the stride:")


def _left_out(grid: Grid) -> str:
    rows, columns = shown_tiles(grid)
    parts = [say("{count} rows", count=rows)] if rows < grid.rows else []
    parts += [say("{count} columns", count=columns)] if columns < grid.columns else []
    return say(" Drawn are the last {parts} of tiles.", parts=say(" and ").join(parts)) if parts else ""


def _count(count: int, noun: str) -> str:
    return plural(count, noun) if count < 1000 or not is_english() else f"{count:,} {noun}s"


def _share(share: float, nothing: str) -> str:
    """A share in whole percent, which neither hides a little nor rounds up to everything."""
    if share <= 0:
        return nothing
    if share < 0.01:
        return say("under 1 %")
    return f"{min(99.0, 100 * share):.0f} %" if share < 1 else "100 %"
