"""The fastest program for a GEMM: tiles that fit, splits, and rounds of resident tiles."""

from __future__ import annotations

from functools import partial

import pytest
from convolutions import A100, FIRST, conv, fprop

from convlint.estimate import constants as const
from convlint.estimate.lowering import Lowering
from convlint.estimate.search import _splits, fastest, join, programs
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import Dtype


def test_few_tiles_leave_sms_idle_and_a_larger_batch_fills_them():
    one, many = (fprop(conv(N=n, C=256, K=256, H=14, W=14)) for n in (1, 64))
    assert one.tiles < A100.sms
    assert one.lost_to_waves_us > 0
    assert one.tflops < 0.3 * many.tflops


def test_kepler_holds_the_tiles_that_its_registers_hold():
    layer = conv(dtype=Dtype.fp32, R=1, S=1, C=512, K=512)
    gk104, gk110, gk210 = (fprop(layer, load_gpu(name)) for name in ("gtx-680", "k40", "k80"))
    assert gk104.tile[0] * gk104.tile[1] <= 32 * 256  # 63 registers a thread hold no 64 sums
    assert gk110.resident_tiles * gk110.tile[0] * gk110.tile[1] <= 32768
    assert gk210.resident_tiles * gk210.tile[0] * gk210.tile[1] > 32768  # GK210 has twice the registers
    small = fprop(conv(N=1, dtype=Dtype.fp32, H=7, W=7, R=1, S=1), load_gpu("k40"))
    assert small.resident_warps < gk110.resident_warps


@pytest.mark.parametrize("gpu", ["h100", "b200"])
def test_few_filters_run_in_narrow_tiles_since_hopper(gpu):
    """ResNet-50's layers of 64 channels leave no tile half empty."""
    for layer in (conv(), conv(C=256, R=1, S=1), conv(N=32), conv(C=3, **FIRST)):
        estimate = fprop(layer, load_gpu(gpu))
        assert estimate.tile[1] == 64
        assert estimate.tile_efficiency > 0.95


@pytest.mark.parametrize(
    ("rule", "unsplit", "steps", "splits"),
    [
        ("idle", 40, 100, {1, 2, 4, 8}),  # to fill 80 SMs once, twice, four times
        ("idle", 79, 100, {1, 2, 4}),
        ("idle", 10, 8, {1, 2}),  # a part keeps four steps
        ("idle", 10, 7, {1}),
        ("free", 40, 100, {1, 2, 4, 8, 16, 25}),
        ("free", 80, 100, {1, 2, 4, 8, 16}),
        ("free", 160, 100, {1, 2, 4, 8}),
        ("free", 1, 100, {1, 25}),
        ("one", 40, 100, {1, 2, 3}),
        ("one", 1, 100, {1, 24, 25}),
        ("one", 80, 100, {1, 2}),
        ("one", 81, 100, {1}),
    ],
)
def test_how_often_a_reduction_may_be_split(rule, unsplit, steps, splits):
    assert set(_splits(rule, unsplit, steps // const.LEAST_STEPS_PER_SPLIT, 80)) == splits


@pytest.mark.parametrize(("columns", "split"), [(79, True), (80, False)])
def test_where_no_sm_idles_nothing_is_split_to_fill_them(columns, split):
    table = programs(((128, 128),), const.VOLTA, peak=125e12, sms=80, registers=65_536, thread_registers=255)
    lowering = Lowering("implicit-gemm", "fprop", 1, 128, 128 * columns, 4000, 1)
    found = fastest(lowering, table, "idle", const.VOLTA, sms=80, bytes_us=0.0, us_per_byte=0.0)
    assert (found.split > 1) is split


@pytest.mark.parametrize(
    ("compute_us", "memory_us", "total_us"),
    [(10.0, 0.0, 10.0), (0.0, 0.0, 0.0), (10.0, 10.0, 10 * 2 ** (1 / 1.7)), (3.0, 8.0, 8.8564)],
)
def test_compute_and_memory_overlap_in_part(compute_us, memory_us, total_us):
    assert join(compute_us, memory_us) == join(memory_us, compute_us) == pytest.approx(total_us, rel=1e-4)


@pytest.mark.parametrize(
    ("tile", "registers", "thread_registers", "resident"),
    [
        ((128, 128), 65_536, 255, 2),
        ((64, 64), 65_536, 255, 4),  # no more than kernels are built for
        ((256, 128), 65_536, 255, 1),
        ((256, 128), 32_768, 255, 1),  # there is always one
        ((128, 128), 131_072, 255, 4),
        ((128, 128), 65_536, 95, 2),
        ((128, 128), 65_536, 94, None),  # 64 sums a thread and 31 registers for all else
    ],
)
def test_how_many_tiles_an_sm_holds(tile, registers, thread_registers, resident):
    table = programs((tile,), const.VOLTA, peak=312e12, sms=108, registers=registers, thread_registers=thread_registers)
    assert [program.resident for program in table] == ([] if resident is None else [resident])
    for program in table:
        assert len(program.rounds_us) == resident + 1
        assert sorted(program.rounds_us) == list(program.rounds_us)


def test_nothing_is_chosen_above_the_time_that_is_asked_for():
    table = programs(const.VOLTA.tiles, const.VOLTA, peak=125e12, sms=80, registers=65_536, thread_registers=255)
    lowering = Lowering("implicit-gemm", "fprop", 1, 4096, 256, 36, 4096 * 256)
    ask = partial(fastest, lowering, table, "never", const.VOLTA, sms=80, bytes_us=1.0, us_per_byte=1e-6)
    best = ask()
    assert best.split == 1
    assert best.kernels == 0
    assert ask(below_us=1.01 * join(best.compute_us, best.memory_us)) == best
    assert ask(below_us=0.99 * best.compute_us) is None
