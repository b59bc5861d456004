"""The constants are possible numbers: what `benchmarks/fit.py` fits must stay within what hardware can do."""

from typing import get_args

import pytest

from convlint.estimate import constants
from convlint.estimate.constants import Family, Split
from convlint.gpus.gpu import gpu_names

FAMILIES = {name: value for name, value in vars(constants).items() if isinstance(value, Family)}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_of_kernels(name: str) -> None:
    family = FAMILIES[name]
    for tiles in (family.tiles, family.dgrad_tiles, family.wgrad_tiles, family.fft_tiles):
        assert tiles
        assert len(set(tiles)) == len(tiles)
        for tm, tn in tiles:
            assert tm % 32 == tn % 32 == 0
            assert 2 * tm * tn <= 65_536  # sums and operands share the registers of an SM
    assert family.granule % family.alignment == 0
    assert 0 < family.sustained <= 1
    assert family.lone_tile_cost >= 1
    assert 1 <= family.most_resident <= 4
    assert min(family.operand_cost, family.operand_rate, family.load_latency_us, family.round_us) > 0
    assert min(family.pointwise_wgrad_cost, family.drain, family.extra_kernel_us, *family.weight_writes) >= 0
    assert all(1 < setup < 20 for setup in family.setup_us)
    assert set(family.split) <= set(get_args(Split))


def test_the_likeliest_tile_comes_first() -> None:
    """The guide's tile for Volta and Ampere; one of the largest since Hopper."""
    assert {FAMILIES[name].tiles[0] for name in ("VOLTA", "TURING", "AMPERE")} == {(128, 128)}
    assert {FAMILIES[name].tiles[0] for name in ("HOPPER", "BLACKWELL")} == {(256, 128)}


def test_shares_are_shares() -> None:
    shares = ("STREAM_BANDWIDTH", "COPY_BANDWIDTH", "DIRECT_SHARE", "STRIDED_POINTWISE_SHARE", "NARROW_DGRAD_SHARE",
              "ACCUMULATORS_PER_REGISTER", "WAVE_FORESIGHT", "INT8_LATENCY")  # fmt: skip
    assert all(0 < getattr(constants, name) < 1 for name in shares)
    assert constants.COPY_BANDWIDTH < constants.STREAM_BANDWIDTH
    assert min(constants.OVERLAP, constants.LATENCY_OVERLAP, constants.GROUPED_WGRAD) > 1


def test_boards_are_known_gpus() -> None:
    assert {*constants.BOARD_WATTS, *constants.TENSOR_CLOCK} <= set(gpu_names())
    assert all(0 < share <= 1 for share in constants.TENSOR_CLOCK.values())
