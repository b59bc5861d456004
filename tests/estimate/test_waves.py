"""Waves of tiles: how full the last one is, what it costs, and the batch sizes beside it."""

from __future__ import annotations

import pytest
from convolutions import A100, RUNTIME, conv, fig4, fprop

from convlint.estimate import nearest_full_waves


@pytest.mark.parametrize(
    ("n", "tiles", "last", "efficiency"),
    [(54, 216, 0, 1.0), (55, 220, 4, 220 / 432), (81, 324, 108, 0.75), (108, 432, 0, 1.0)],
)
def test_fact_4_waves_of_figure_4(n, tiles, last, efficiency):
    estimate = fprop(fig4(n))
    assert estimate.tile == (128, 128)
    assert estimate.resident_tiles == 2
    assert (estimate.tiles, estimate.last_wave_tiles) == (tiles, last)
    assert estimate.waves == tiles / 216
    assert estimate.wave_efficiency == pytest.approx(efficiency)


def test_fact_4_a_wave_for_four_tiles_is_priced_and_both_neighbours_offered():
    full, over = fprop(fig4(54)), fprop(fig4(55))
    assert full.lost_to_waves_us == pytest.approx(0, abs=1e-6)
    assert over.lost_to_waves_us > 0.25 * over.time_us
    assert over.tflops < 0.75 * full.tflops
    assert nearest_full_waves(fig4(55), "fprop", A100, RUNTIME) == (54, 108)
    assert nearest_full_waves(fig4(81), "fprop", A100, RUNTIME) == (54, 108)


def test_a_wave_for_three_tiles_costs_what_it_adds():
    """17x17 maps with K = 384: 861 tiles at N = 127, 867 at N = 128, of which three need a fifth wave."""
    before, after = (fprop(conv(N=n, C=256, H=17, W=17, K=384)) for n in (127, 128))
    assert (before.tiles, after.tiles, after.last_wave_tiles) == (861, 867, 3)
    assert after.time_us > 1.1 * before.time_us
    assert after.lost_to_waves_us - before.lost_to_waves_us == pytest.approx(after.time_us - before.time_us, rel=0.1)


@pytest.mark.parametrize(
    ("per_image", "n", "offered"),
    [
        (41, 13, (None, 21)),  # N=5 and N=10 fill 94.9 % of their waves
        (103, 13, (12, 14)),  # N=12 fills 95.4 %
        (219, 11, (None, 15)),  # the fifth wave above is the last that is looked at
        (219, 10, (None, None)),
        (469, 8, (5, 9)),
        (562, 6, (3, 7)),  # the fifth wave below too
    ],
)
def test_a_batch_is_offered_where_a_wave_nearby_is_full_enough(per_image, n, offered):
    layer = conv(N=n, C=512, H=8, W=16, K=128 * per_image)
    estimate = fprop(layer)
    assert (estimate.tile, estimate.tiles) == ((128, 128), n * per_image)
    assert nearest_full_waves(layer, "fprop", A100, RUNTIME) == offered


def test_without_a_time_no_batch_is_offered():
    assert nearest_full_waves(conv(N=None), "fprop", A100, RUNTIME) == (None, None)
