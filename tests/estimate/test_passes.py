"""Facts of NVIDIA's guides that estimates must get right, and cases at the edges of GPUs, dtypes and layers."""

import pytest
from calibrated import calibration
from checkout import ROOT
from convolutions import A100, FIRST, RUNTIME, conv, fig4, fprop
from msgspec.structs import replace

from convlint.estimate import estimate_layer, estimate_pass, nearest_full_waves, time_us, unquantized_us
from convlint.estimate.board import board_of
from convlint.estimate.passes import pass_time_us, timed_as
from convlint.gpus.gpu import Group, gpu_names, load_gpu
from convlint.model.layer import PASSES, Dtype, gemm


@pytest.mark.parametrize("which", PASSES)
def test_fact_3_the_gemm_is_table_2s(which):
    layer = conv(C=100, K=30, R=5, S=3)
    assert estimate_pass(layer, which, A100, RUNTIME).gemm == gemm(layer, which)


@pytest.mark.parametrize("which", PASSES)
def test_fact_5_figure_13_runs_near_250_tflops(which):
    layer = conv(C=1024, H=64, W=64, K=1024)
    for gpu in (A100, load_gpu("a100-80gb-sxm")):
        assert 235 <= estimate_pass(layer, which, gpu, RUNTIME).tflops <= 265
    whole = estimate_layer(layer, A100, RUNTIME, "training")
    assert 0.99 < whole.unquantized_us / whole.time_us <= 1


def test_fact_8_equal_npq_is_equal_time_without_a_halo():
    """Fig. 5, which `test_sweep.py` holds to 2 % for filters that have a halo."""
    layers = [conv(N=n, H=size, W=size, R=1, S=1, C=512, K=512) for n, size in ((256, 16), (64, 32), (16, 64))]
    times = [fprop(layer).time_us for layer in layers]
    assert max(times) == pytest.approx(min(times), rel=1e-9)


@pytest.mark.parametrize("gpu", gpu_names())
@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
def test_every_gpu_predicts_resnets_layers(gpu, dtype):
    for layer in (
        conv(N=8, C=3, H=224, W=224, K=64, R=7, S=7, U=2, V=2, first=True), conv(N=8), conv(N=8, R=1, S=1, K=256),
        conv(N=8, C=512, K=512, H=7, W=7), conv(N=8, C=256, K=512, R=1, S=1, U=2, V=2),
    ):  # fmt: skip
        estimate = estimate_layer(replace(layer, dtype=Dtype(dtype)), load_gpu(gpu), RUNTIME, "training")
        assert set(estimate.passes) == {"fprop", "wgrad"} | (set() if layer.first else {"dgrad"})
        assert 1 < estimate.time_us < 1e7


def test_faster_gpus_are_predicted_faster():
    layer = conv(C=512, K=512, H=28, W=28)
    order = [
        fprop(layer, load_gpu(name)).time_us for name in ("k80", "m40", "p100", "t4", "v100", "a100", "h100", "b200")
    ]
    assert order == sorted(order, reverse=True)


def test_tile_loss_vanishes_where_memory_binds_and_counts_where_compute_does():
    wasteful = conv(C=512, K=72, H=28, W=28)  # tiles of 32 columns hold 72 filters best
    estimate = fprop(wasteful)
    assert estimate.bound_by == "compute"
    assert estimate.tile_efficiency == 0.75
    assert 0.1 * estimate.time_us < estimate.lost_to_tiles_us < 0.5 * estimate.time_us
    streaming = fprop(conv(C=64, K=72, R=1, S=1))
    assert streaming.bound_by == "memory"
    assert streaming.lost_to_tiles_us == 0


def test_tiny_layers_are_bound_by_the_launch():
    estimate = fprop(conv(N=1, C=64, K=64, H=7, W=7, R=1, S=1))
    assert estimate.bound_by == "launch"
    assert estimate.overhead_us > 0.5 * estimate.time_us


def test_strided_dgrad_costs_more_than_fprop():
    layer = estimate_layer(conv(C=512, K=512, R=1, S=1, U=2, V=2), A100, RUNTIME, "training")
    assert layer.passes["dgrad"].time_us > 1.5 * layer.passes["fprop"].time_us


@pytest.mark.parametrize(
    ("sizes", "gpu", "name"),
    [
        ({}, "a100", "fp16_tensor_fp32acc"),
        ({}, "p4", "fp32"),  # which has neither Tensor Cores nor fast fp16
        ({"dtype": Dtype.tf32}, "a100", "tf32_tensor"),
        ({"dtype": Dtype.fp64}, "t4", "fp64"),
        ({"C": 96, "K": 96, "groups": 96}, "a100", "fp16_tensor_fp32acc"),  # also where CUDA cores run it
    ],
)
def test_the_share_of_the_peak_is_that_of_the_best_unit_for_the_dtype(sizes, gpu, name):
    estimate = fprop(conv(**sizes), load_gpu(gpu))
    assert estimate.peak_share == pytest.approx(estimate.tflops * 1e12 / load_gpu(gpu).peak_flops[name])


@pytest.mark.parametrize("sizes", [{"C": 512, "K": 72, "H": 28, "W": 28}, {"C": 96, "K": 96, "groups": 96}, {"N": 55}])
@pytest.mark.parametrize("mode", ["training", "inference"])
def test_the_time_without_quantization_alone_is_that_of_the_whole_estimate(sizes, mode):
    layer = conv(**sizes, calls=2)
    whole = estimate_layer(layer, A100, RUNTIME, mode)
    assert unquantized_us(layer, A100, RUNTIME, mode) == whole.unquantized_us
    assert unquantized_us(conv(**sizes), A100, RUNTIME, mode) == pytest.approx(whole.unquantized_us / 2)


def test_work_that_is_not_useful_counts_less():
    layer = conv(C=512, K=72, H=28, W=28)
    times = [unquantized_us(layer, A100, RUNTIME, "training", useful) for useful in (1.0, 0.9, 0.5)]
    assert times == sorted(times, reverse=True)
    assert times[0] > 1.05 * times[1] > 1.05 * times[2]
    streaming = conv(C=96, K=96, groups=96)
    assert unquantized_us(streaming, A100, RUNTIME, "training", 0.5) == time_us(streaming, A100, RUNTIME, "training")
    assert unquantized_us(replace(layer, H=None), A100, RUNTIME, "training") is None


def test_memory_stays_bounded(monkeypatch):
    """A new board, so that no other test's estimates count."""
    gpu = replace(A100, id="bounded")
    monkeypatch.setattr("convlint.estimate.passes._MOST_CACHED", 3)
    for n in range(1, 9):
        estimate_pass(conv(N=n), "fprop", gpu, RUNTIME)
        time_us(conv(N=100 + n), gpu, RUNTIME, "inference")
        assert len(board_of(gpu).passes) <= 3
    assert estimate_pass(conv(N=8), "fprop", gpu, RUNTIME) is estimate_pass(conv(N=8), "fprop", gpu, RUNTIME)


# one layer for each kind of kernel that the model has a constant for
LAYERS = {
    "3x3": {},
    "1x1": {"C": 512, "K": 512, "H": 28, "W": 28, "R": 1, "S": 1},
    "1x1, stride 2": {"C": 256, "K": 512, "R": 1, "S": 1, "U": 2, "V": 2},
    "first": {"C": 3, **FIRST},
    "3x3 NCHW": {"layout": "NCHW"},
    "3x3 fp32 NCHW": {"dtype": Dtype.fp32, "layout": "NCHW"},
    "3x3, few images": {"dtype": Dtype.fp32, "layout": "NCHW", "N": 8},
    "5x5 fp32 NCHW": {"dtype": Dtype.fp32, "layout": "NCHW", "R": 5, "S": 5},
    "padded channels": {"C": 62, "K": 60},
    "depthwise": {"C": 96, "K": 96, "groups": 96},
    "many taps": {"N": 64, "C": 8, "K": 16, "H": 120, "W": 120, "R": 5, "S": 20, "U": 2, "V": 2},
    "to 4 channels": {"C": 4, "K": 64, "R": 1, "S": 1, "U": 2, "V": 2},
    "one image": {"N": 1, "C": 256, "K": 256, "H": 14, "W": 14},
    "fourth of a wave": {"N": 55, "C": 4096, "H": 16, "W": 16, "K": 256},
    "int8": {"C": 512, "K": 512, "H": 28, "W": 28, "dtype": Dtype.int8},
}
GPUS = ("k80", "titan-xp", "v100", "t4", "rtx-3090", "a100", "h100", "b200")


def test_predicted_times_are_those_of_the_snapshot(same_as_before):
    """Whatever changes a prediction changes this file: `make snapshots` writes it anew, its diff says what moved."""
    lines = [f"{'us':18}{'pass':6}" + "".join(f"{name:>11}" for name in GPUS)]
    for name, sizes in LAYERS.items():
        for which in PASSES:
            found = [estimate_pass(conv(**sizes), which, load_gpu(gpu), RUNTIME) for gpu in GPUS]
            if any(found):
                times = ["-" if one is None else f"{one.time_us:.2f}" for one in found]
                lines.append(f"{name:18}{which:6}" + "".join(f"{time:>11}" for time in times))
    same_as_before(ROOT / "tests" / "estimate" / "snapshots" / "times.txt", "\n".join([*lines, ""]))


def grouped(which="fprop", kind="dense", dtype=Dtype.fp16, factor=2.0):
    return (Group(kind=kind, dtype=dtype, which=which, rows=9, spread=0.1, factor=factor),)


def test_a_pass_alone_takes_as_long_as_described():
    for layer in (conv(), conv(N=1), conv(op="conv_transpose", U=2, V=2), conv(copies_input=True), conv(C=62)):
        for which in PASSES:
            assert pass_time_us(layer, which, A100, RUNTIME) == estimate_pass(layer, which, A100, RUNTIME).time_us
    assert pass_time_us(conv(N=None), "fprop", A100, RUNTIME) is None
    assert pass_time_us(conv(dtype=Dtype.int8), "wgrad", A100, RUNTIME) is None
    assert pass_time_us(conv(dtype=Dtype.bf16), "fprop", load_gpu("v100"), RUNTIME) is None


def test_what_arrives_in_another_layout_is_copied_and_its_gradient_too():
    """PyTorch copies an input into NHWC in wgrad again; a copy into NCHW is its user's, and is kept."""
    for layout, again in (("NHWC", True), ("NCHW", False)):
        for op in ("conv", "conv_transpose"):
            plain, behind = (
                estimate_layer(conv(op=op, layout=layout, copies_input=copies), A100, RUNTIME, "training").passes
                for copies in (False, True)
            )
            added = {which: behind[which].time_us - plain[which].time_us for which in PASSES}
            assert added["dgrad"] == pytest.approx(added["fprop"])
            assert added["wgrad"] == pytest.approx(added["fprop"] if again else 0.0)
            assert behind["dgrad"].transposes_us > plain["dgrad"].transposes_us


def test_what_a_pass_is_timed_as():
    turned = conv(op="conv_transpose", U=2, V=2)
    assert timed_as(turned, "fprop", A100, RUNTIME) == ("dense", Dtype.fp16, "dgrad")
    assert timed_as(conv(dtype=Dtype.fp32, groups=64), "wgrad", A100, RUNTIME) == ("depthwise", Dtype.tf32, "wgrad")
    assert timed_as(conv(N=None), "fprop", A100, RUNTIME) is None


def test_the_factor_of_a_group_is_on_its_passes_alone():
    measured = replace(A100, calibration=calibration(A100, groups=grouped()))
    plain, there = (estimate_layer(conv(), gpu, RUNTIME, "training").passes for gpu in (A100, measured))
    assert there["fprop"].time_us == pytest.approx(2 * plain["fprop"].time_us)
    assert (there["dgrad"], there["wgrad"]) == (plain["dgrad"], plain["wgrad"])
    assert fprop(conv(dtype=Dtype.fp32), measured) == fprop(conv(dtype=Dtype.fp32))
    assert fprop(conv(groups=64), measured) == fprop(conv(groups=64))
    turned = conv(op="conv_transpose")
    assert estimate_pass(turned, "fprop", measured, RUNTIME) == estimate_pass(turned, "fprop", A100, RUNTIME)
    assert estimate_pass(turned, "dgrad", measured, RUNTIME) != estimate_pass(turned, "dgrad", A100, RUNTIME)


def test_all_ways_to_ask_agree_on_a_calibrated_gpu():
    there = replace(A100, calibration=calibration(A100, tensor_clock=0.7, launch_us=9.0, groups=grouped("wgrad")))
    for layer in (conv(), conv(C=62, calls=3), conv(layout="NCHW"), conv(first=True)):
        whole = estimate_layer(layer, there, RUNTIME, "training")
        assert time_us(layer, there, RUNTIME, "training") == pytest.approx(whole.time_us)
        assert unquantized_us(layer, there, RUNTIME, "training") == pytest.approx(whole.unquantized_us)
        assert whole.unquantized_us <= whole.time_us


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
