"""The output matrix of a pass under its tiles, to scale: what of them is useful, and what is computed for nothing."""

from __future__ import annotations

from msgspec import Struct

from convlint.estimate import Grid, PassEstimate
from convlint.model.layer import Pass
from convlint.reporters.page.shapes import Box, Label, Line, Panel, zigzag

MOST_TILES = 24  # along one side of the drawing
_TILES_OF_A_PART = 12  # where that is too many
_LEAST_OF_A_PART = 2
_LETTERS = 7.0  # width of one, about
_MOST_SLENDER, _SLENDER = 4, 2  # a longer side is cut, to so many times the other one


class Useful(Struct, frozen=True, kw_only=True):
    """The useful part of one product, in elements: `M` x `N`. `spread`: what is not lies in all rows of tiles alike."""

    M: float
    N: float
    spread: bool


def useful_part(estimate: PassEstimate, grid: Grid, which: Pass) -> Useful:
    """Of the area that the grid covers, the share that the estimate calls useful.

    Columns beyond gemm.N are channels that kernels pad. Rows are missing in all tiles alike where phases of a stride or
    blocks of positions are not full; those of wgrad are channels too, with the padded ones last.
    """
    area = estimate.tile_efficiency * grid.rows * grid.height * grid.columns * grid.width
    columns = float(min(estimate.gemm.N, grid.N))
    if area > columns * grid.M:  # the model counts padded channels as results
        columns = area / grid.M
    return Useful(M=area / columns, N=columns, spread=which != "wgrad")


def shown_tiles(grid: Grid) -> tuple[int, int]:
    """How many rows and columns of tiles are drawn: all, or the last ones."""
    rows, columns = grid.rows, grid.columns
    return (
        _shown(rows, grid.height, min(columns, _TILES_OF_A_PART) * grid.width),
        _shown(columns, grid.width, min(rows, _TILES_OF_A_PART) * grid.height),
    )


def _shown(count: int, side: int, across: int) -> int:
    if count <= MOST_TILES and count * side <= _MOST_SLENDER * across:
        return count
    return min(count, _TILES_OF_A_PART, max(_LEAST_OF_A_PART, _SLENDER * across // side))


def grid_panel(estimate: PassEstimate, grid: Grid, which: Pass, side: float) -> Panel:
    """The grid of one product in a square of `side` units."""
    rows, columns = shown_tiles(grid)
    scale = side / max(rows * grid.height, columns * grid.width)
    high, wide = grid.height * scale, grid.width * scale
    width, height = columns * wide, rows * high
    across = Box(kind="wasted", x=0.0, y=0.0, width=width, height=height)
    edges: list[Line] = [((0.0, row * high), (width, row * high)) for row in range(rows + 1)]
    edges += [((column * wide, 0.0), (column * wide, height)) for column in range(columns + 1)]
    cuts = [zigzag(0.0, 0.0, width, upright=False)] if rows < grid.rows else []
    cuts += [zigzag(0.0, 0.0, height, upright=True)] if columns < grid.columns else []
    down = f"M {grid.M:,}"
    bottom = max(height, len(down) * _LETTERS)
    return Panel(
        boxes=(across, *_filled(useful_part(estimate, grid, which), grid, rows, columns, scale)),
        labels=(
            Label(text=f"N {grid.N:,}", x=0.0, y=-5.0),
            Label(text=down, x=-6.0, y=bottom, upright=True),
        ),
        edges=tuple(edges),
        cuts=tuple(cuts),
        bottom=bottom,
        right=max(width, len(f"N {grid.N:,}") * _LETTERS),
    )


def _filled(useful: Useful, grid: Grid, rows: int, columns: int, scale: float) -> list[Box]:
    """The useful parts of what is drawn: one box, or one for each row of tiles."""
    hidden = (grid.rows - rows) * grid.height
    width = (useful.N - (grid.columns - columns) * grid.width) * scale
    full = useful.M >= grid.M * (1 - 1e-9)
    if full or not useful.spread:
        parts = [(0.0, useful.M - hidden)]
    else:
        share = useful.M / grid.M
        starts = range(0, rows * grid.height, grid.height)
        parts = [(float(start), share * min(grid.height, grid.M - hidden - start)) for start in starts]
    return [
        Box(kind="tile", x=0.0, y=start * scale, width=width, height=height * scale)
        for start, height in parts
        if width > 0 and height > 0
    ]
