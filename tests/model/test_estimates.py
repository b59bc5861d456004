"""Records of predictions: the tiles of a grid, and the order of what predictions rest on."""

import pytest

from convlint.model.estimates import BASES, Grid


@pytest.mark.parametrize(
    ("M", "N", "rows", "columns"),
    [(256, 128, 2, 1), (257, 128, 3, 1), (1, 1, 1, 1), (255, 129, 2, 2)],
)
def test_a_tile_that_is_partly_filled_counts(M: int, N: int, rows: int, columns: int) -> None:
    grid = Grid(batch=1, M=M, N=N, height=128, width=128)
    assert (grid.rows, grid.columns) == (rows, columns)


def test_bases_stand_from_the_best_to_the_worst() -> None:
    assert BASES == ("measured", "extrapolated", "assumed")
