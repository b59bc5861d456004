"""The fastest program for a GEMM: tiles that fit, splits, and rounds of resident tiles."""

from functools import partial

import pytest
from convolutions import A100, FIRST, RUNTIME, conv, fprop

from convlint.estimate import constants as const
from convlint.estimate import estimate_pass
from convlint.estimate.results import problem_of
from convlint.estimate.search import Lowering, _splits, fastest, implicit_gemm, join, padded_channels, programs
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import Dtype


def test_fact_7_wgrad_tiles_c_whatever_the_filter():
    for taps in (1, 3, 5, 7):
        estimate = estimate_pass(conv(C=32, K=256, R=taps, S=taps), "wgrad", A100, RUNTIME)
        assert estimate.tile[0] >= 64
        assert estimate.tile_efficiency == pytest.approx(32 / estimate.tile[0])


@pytest.mark.parametrize("which", ["fprop", "wgrad"])
@pytest.mark.parametrize("gpu", ["a100", "h100"])
def test_first_layers_of_few_channels_take_several_taps_at_once(which, gpu):
    """Time follows the channels; V100 and T4 take a step per tap (public timings).

    On H100 8 channels take 2.5 times as long as 4 forward (121 and 308 us at N = 64), elsewhere there is no jump.
    """
    layers = {c: conv(C=c, H=224, W=224, K=64, R=7, S=7, U=2, V=2, first=True) for c in (4, 8, 16)}
    times = {c: estimate_pass(layer, which, load_gpu(gpu), RUNTIME).time_us for c, layer in layers.items()}
    jump = 3 if gpu == "h100" and which == "fprop" else 2
    assert times[4] < times[8] < jump * times[4]
    assert times[8] < times[16] < 2 * times[8]
    assert fprop(layers[8], load_gpu("v100")).main_loop_steps == 49


def test_groups_split_the_gemm():
    whole, grouped = fprop(conv(C=512, K=512, H=28, W=28)), fprop(conv(C=512, K=512, H=28, W=28, groups=4))
    assert grouped.gemm.batch == 4
    assert grouped.flops * 4 == whole.flops
    assert whole.time_us / 4 < grouped.time_us < whole.time_us


def test_main_loop_steps_follow_the_reduction():
    assert fprop(conv(C=64, K=256, R=1, S=1)).main_loop_steps == 2
    assert fprop(conv(C=512, K=256)).main_loop_steps == 144


@pytest.mark.parametrize(
    ("sizes", "few", "channels"),
    [
        ({"C": 3, "K": 64}, True, (4, 64)), ({"C": 4, "K": 64}, True, (4, 64)), ({"C": 5, "K": 65}, True, (8, 72)),
        ({"C": 3, "K": 64}, False, (8, 64)), ({"C": 62, "K": 60, "groups": 2}, True, (32, 32)),
        ({"C": 8, "K": 8, "groups": 2}, True, (4, 8)),
    ],
)  # fmt: skip
def test_channels_are_padded_for_each_group(sizes, few, channels):
    assert padded_channels(problem_of(conv(**sizes)), 8, few) == channels


LAYER = {"N": 2, "C": 40, "K": 72, "H": 12, "W": 12}


def lowered(which, *, tensor=True, few_channels=0, c=40, k=72, family=const.VOLTA, **sizes):
    problem = problem_of(conv(**LAYER | {"C": c, "K": k} | sizes))
    return implicit_gemm(problem, which, family, c, k, tensor=tensor, few_channels=few_channels)


@pytest.mark.parametrize(
    ("which", "options", "expected"),
    [
        # (batch, M, N, steps) of each lowering; a step of Volta's holds 32 channels of one tap, one of CUDA cores 8
        ("fprop", {}, [(1, 288, 72, 9 * 2)]),
        ("fprop", {"tensor": False, "family": const.SIMT}, [(1, 288, 72, 45)]),
        ("fprop", {"c": 8, "few_channels": 8}, [(1, 288, 72, 3), (1, 288, 72, 9)]),  # one row, or tap by tap
        ("fprop", {"c": 8, "few_channels": 7}, [(1, 288, 72, 9)]),
        ("fprop", {"c": 24, "few_channels": 32}, [(1, 288, 72, 9)]),  # 24 divides no step
        ("dgrad", {}, [(1, 288, 40, 9 * 3)]),
        ("dgrad", {"tensor": False, "family": const.SIMT}, [(1, 288, 40, 81)]),
        ("dgrad", {"U": 2, "V": 2}, [(4, 72, 40, 4 * 3)]),  # four phases of up to 2x2 taps
        ("dgrad", {"U": 2, "V": 2, "R": 1, "S": 1}, [(1, 72, 40, 3)]),  # three phases own no tap
        ("dgrad", {"U": 2, "V": 2, "R": 1, "S": 1, "tensor": False, "family": const.SIMT}, [(2, 72, 40, 9)]),
        ("wgrad", {}, [(9, 40, 72, 9)]),
        ("wgrad", {"c": 8, "few_channels": 8}, [(9, 8, 72, 9), (1, 72, 72, 9)]),
        ("wgrad", {"tensor": False, "family": const.SIMT}, [(9, 40, 72, 36), (1, 360, 72, 36)]),
        ("wgrad", {"R": 1, "S": 1}, [(1, 40, 72, 9)]),
    ],
)
def test_implicit_gemms(which, options, expected):
    found = lowered(which, **options)
    assert [(one.batch, one.M, one.N, one.steps) for one in found] == expected


@pytest.mark.parametrize(
    ("options", "kernels", "zeroed", "serial"),
    [
        ({"U": 2, "V": 2}, 0, 0, 0),
        ({"U": 2, "V": 2, "R": 1, "S": 1}, 1, 2 * 2 * 12 * 12 * 40, 0),
        ({"U": 2, "V": 2, "R": 1, "S": 1, "tensor": False, "family": const.SIMT}, 1, 0, 2 * 2 * 12 * 12 * 40),
    ],
)
def test_what_no_tap_writes_is_zeroed_before(options, kernels, zeroed, serial):
    (found,) = lowered("dgrad", **options)
    assert (found.extra_kernels, found.zeroed_bytes, found.serial_bytes) == (kernels, zeroed, serial)


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
        ("idle", 40, 100, [2, 4, 8]),  # to fill 80 SMs once, twice, four times
        ("idle", 79, 100, [2, 4]),
        ("idle", 10, 8, [2]),  # a part keeps four steps
        ("idle", 10, 7, []),
        ("free", 40, 100, [2, 4, 8, 16, 25]),
        ("free", 80, 100, [2, 4, 8, 16]),
        ("free", 160, 100, [2, 4, 8]),
        ("free", 1, 100, [25]),
        ("one", 40, 100, [2, 3]),
        ("one", 1, 100, [24, 25]),
        ("one", 80, 100, [2]),
        ("one", 81, 100, []),
    ],
)
def test_how_often_a_reduction_may_be_split(rule, unsplit, steps, splits):
    assert _splits(rule, unsplit, steps // const.LEAST_STEPS_PER_SPLIT, 80) == splits


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


@pytest.mark.parametrize(("M", "N", "tile"), [(64, 8192, (64, 128)), (8192, 64, (128, 64)), (64, 64, (128, 64))])
def test_a_tile_lies_the_way_that_needs_fewer_of_them(M, N, tile):
    tiles = ((128, 64), (64, 128))
    table = programs(tiles, const.VOLTA, peak=125e12, sms=80, registers=65_536, thread_registers=255)
    lowering = Lowering("implicit-gemm", "fprop", 1, M, N, 36, M * N)
    found = fastest(lowering, table, "never", const.VOLTA, sms=80, bytes_us=0.0, us_per_byte=0.0)
    assert (found.program.tm, found.program.tn) == tile
    assert found.tiles == max(M, N) // 128 or found.tiles == 1


def test_nothing_is_chosen_above_the_time_that_is_asked_for():
    table = programs(const.VOLTA.tiles, const.VOLTA, peak=125e12, sms=80, registers=65_536, thread_registers=255)
    lowering = Lowering("implicit-gemm", "fprop", 1, 4096, 256, 36, 4096 * 256)
    ask = partial(fastest, lowering, table, "never", const.VOLTA, sms=80, bytes_us=1.0, us_per_byte=1e-6)
    best = ask()
    assert best.split == 1
    assert best.kernels == 0
    assert ask(below_us=1.01 * join(best.compute_us, best.memory_us)) == best
    assert ask(below_us=0.99 * best.compute_us) is None
