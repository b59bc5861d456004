"""Facts of NVIDIA's guides that estimates must get right, and cases at the edges of GPUs, dtypes and layers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from convlint.estimate import compute_dtype, estimate_layer, estimate_pass, grade, nearest_full_waves, time_us
from convlint.gpus.gpu import gpu_names, load_gpu
from convlint.model.gemm import gemm
from convlint.model.layer import PASSES, ConvLayer, Dtype, with_output
from convlint.model.runtime import Runtime
from convlint.model.version import Version

RUNTIME = Runtime()
A100 = load_gpu("a100")


def conv(**changes):
    sizes = {"N": 256, "C": 64, "H": 56, "W": 56, "K": 64, "R": 3, "S": 3, "dtype": Dtype.fp16, "layout": "NHWC"}
    sizes |= changes
    pad_h, pad_w = sizes.pop("pad", (sizes["R"] // 2, sizes["S"] // 2))
    return with_output(ConvLayer(name="l", PadH=pad_h, PadH_end=pad_h, PadW=pad_w, PadW_end=pad_w, **sizes))


def fprop(layer, gpu=A100, runtime=RUNTIME):
    return estimate_pass(layer, "fprop", gpu, runtime)


def fig4(n):
    return conv(N=n, C=4096, H=16, W=16, K=256)


def test_fact_2_arithmetic_intensity_counts_the_weights():
    assert round(fprop(conv(K=128)).arithmetic_intensity, 1) == 383.8


@pytest.mark.parametrize("which", PASSES)
def test_fact_3_the_gemm_is_table_2s(which):
    layer = conv(C=100, K=30, R=5, S=3)
    assert estimate_pass(layer, which, A100, RUNTIME).gemm == gemm(layer, which)


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


@pytest.mark.parametrize("which", PASSES)
def test_fact_5_figure_13_runs_near_250_tflops(which):
    layer = conv(C=1024, H=64, W=64, K=1024)
    for gpu in (A100, load_gpu("a100-80gb-sxm")):
        assert 235 <= estimate_pass(layer, which, gpu, RUNTIME).tflops <= 265
    assert estimate_layer(layer, A100, RUNTIME, "training").grade == "A"


@pytest.mark.parametrize("dilation", [2, 3])
def test_fact_6_dilation_changes_nothing(dilation):
    dense = conv()
    dilated = with_output(
        replace(
            dense, DilH=dilation, DilW=dilation, **dict.fromkeys(("PadH", "PadW", "PadH_end", "PadW_end"), dilation)
        )
    )
    assert (dilated.P, dilated.Q) == (dense.P, dense.Q)
    for which in PASSES:
        assert estimate_pass(dilated, which, A100, RUNTIME) == estimate_pass(dense, which, A100, RUNTIME)


def test_fact_7_wgrad_tiles_c_whatever_the_filter():
    for taps in (1, 3, 5, 7):
        estimate = estimate_pass(conv(C=32, K=256, R=taps, S=taps), "wgrad", A100, RUNTIME)
        assert estimate.tile[0] >= 64
        assert estimate.tile_efficiency == pytest.approx(32 / estimate.tile[0])


def test_fact_8_equal_npq_is_equal_time_up_to_the_halo():
    """Fig. 5; sizes without padding differ by their halo alone."""
    times = [
        fprop(conv(N=n, H=size, W=size, R=1, S=1, C=512, K=512)).time_us for n, size in ((256, 16), (64, 32), (16, 64))
    ]
    assert max(times) == pytest.approx(min(times), rel=1e-9)
    times = [
        fprop(conv(N=n, H=size, W=size, pad=(0, 0), C=512, K=512)).time_us
        for n, size in ((256, 18), (64, 34), (16, 66))
    ]
    assert max(times) / min(times) < 1.02


def test_fact_8_stride_matters_to_dgrad_alone():
    """Figs. 11 and 12: equal P and Q from H, W, U and V that differ."""
    plain, strided = conv(C=256, K=256, H=28, W=28), conv(C=256, K=256, H=56, W=56, U=2, V=2)
    assert (plain.P, plain.Q) == (strided.P, strided.Q)
    ratio = {
        which: estimate_pass(strided, which, A100, RUNTIME).time_us / estimate_pass(plain, which, A100, RUNTIME).time_us
        for which in PASSES
    }
    assert ratio["fprop"] < 1.15
    assert ratio["wgrad"] < 1.15
    assert ratio["dgrad"] > 1.3


def test_fact_10_first_layers_run_best_with_4_or_multiples_of_8():
    """Fig. 8: between them, more channels cost the next good size's time or more."""
    times = {c: fprop(conv(C=c, H=224, W=224, K=64, R=7, S=7, U=2, V=2, first=True)).time_us for c in range(1, 17)}
    rates = {c: c / time for c, time in times.items()}
    for c in range(1, 17):
        better = next(good for good in (4, 8, 16) if good >= c)
        assert times[c] >= times[better]
        if c != better:
            assert rates[c] < rates[better]
    assert times[4] < 0.8 * times[8]


@pytest.mark.parametrize("which", ["fprop", "wgrad"])
@pytest.mark.parametrize("gpu", ["a100", "h100"])
def test_first_layers_of_few_channels_take_several_taps_at_once(which, gpu):
    """Time follows the channels, without a jump behind C = 4; V100 and T4 take a step per tap (public timings)."""
    layers = {c: conv(C=c, H=224, W=224, K=64, R=7, S=7, U=2, V=2, first=True) for c in (4, 8, 16)}
    times = {c: estimate_pass(layer, which, load_gpu(gpu), RUNTIME).time_us for c, layer in layers.items()}
    assert times[4] < times[8] < 2 * times[4]
    assert times[8] < times[16] < 2 * times[8]
    assert fprop(layers[8], load_gpu("v100")).main_loop_steps == 49


FIRST = {"N": 256, "H": 224, "W": 224, "K": 64, "R": 7, "S": 7, "U": 2, "V": 2, "first": True}


@pytest.mark.parametrize("gpu", ["v100", "t4", "a100", "rtx-3090", "h100", "b200"])
@pytest.mark.parametrize("which", ["fprop", "wgrad"])
def test_four_channels_beat_three_and_eight_wherever_there_are_tensor_cores(gpu, which):
    """First-layer kernels exist since Volta; three channels are copied into four."""
    three, four, eight = (estimate_pass(conv(C=c, **FIRST), which, load_gpu(gpu), RUNTIME) for c in (3, 4, 8))
    assert four.time_us < eight.time_us
    assert three.time_us > four.time_us
    assert three.padding_us > 0 == four.padding_us


@pytest.mark.parametrize("gpu", ["v100", "t4", "a100", "h100", "l4"])
@pytest.mark.parametrize("which", ["fprop", "wgrad"])
def test_tensor_cores_are_not_used_where_cuda_cores_are_faster(gpu, which):
    """The stem of an image network and layers of odd widths; dtype alone must not make them slower."""
    for layer in (conv(C=3, **FIRST), conv(C=32, K=32, R=5, S=10, N=16, U=2, V=2), conv(C=24, K=24, N=1, H=14, W=14)):
        fp16 = estimate_pass(layer, which, load_gpu(gpu), RUNTIME)
        fp32 = estimate_pass(replace(layer, dtype=Dtype.fp32), which, load_gpu(gpu), Runtime(tf32=False))
        assert fp16.time_us <= fp32.time_us


@pytest.mark.parametrize("which", PASSES)
def test_a_library_that_pads_is_never_slower_than_one_that_refuses(which):
    for c, n in ((3, 64), (3, 1), (5, 32), (62, 64), (100, 8)):
        layer = conv(N=n, C=c, H=112, W=112, R=7, S=7, U=2, V=2)
        for gpu in (load_gpu("v100"), load_gpu("t4"), A100):
            old = estimate_pass(layer, which, gpu, Runtime(cudnn=Version("7.5.0")))
            assert not old.tensor_cores
            assert old.tflops * 1e12 < gpu.peak_flops["fp32"]
            assert old.time_us >= estimate_pass(layer, which, gpu, Runtime(cudnn=Version("8.9.0"))).time_us


def test_old_libraries_run_depthwise_layers_and_tf32_without_tensor_cores():
    old = Runtime(cudnn=Version("7.5.0"))
    depthwise = conv(C=96, K=96, groups=96)
    assert fprop(depthwise, runtime=old).time_us == fprop(depthwise).time_us
    odd = conv(C=62, K=127, dtype=Dtype.fp32)
    assert not fprop(odd, runtime=old).tensor_cores
    assert fprop(odd, runtime=old).time_us > fprop(odd).time_us


@pytest.mark.parametrize("gpu", ["v100", "k80", "p100", "m40"])
def test_winograd_and_fft_are_nchw_kernels(gpu):
    """pytorch#44943: channels_last fp32 is slower where no Tensor Core works."""
    for taps in (3, 5, 7):
        layer = conv(dtype=Dtype.fp32, R=taps, S=taps, C=128, K=128)
        for which in PASSES:
            nchw, nhwc, auto = (
                estimate_pass(replace(layer, layout=layout), which, load_gpu(gpu), Runtime(tf32=False))
                for layout in ("NCHW", "NHWC", "auto")
            )
            assert nhwc.algorithm == "implicit-gemm"
            assert nchw.time_us == auto.time_us <= nhwc.time_us
        nchw, nhwc = (
            estimate_layer(replace(layer, layout=layout), load_gpu(gpu), Runtime(tf32=False), "training")
            for layout in ("NCHW", "NHWC")
        )
        assert nchw.time_us < nhwc.time_us


@pytest.mark.parametrize("which", PASSES)
def test_fact_11_nchw_costs_transposes(which):
    ratios = []
    for taps in (1, 3):
        nchw, nhwc = (
            estimate_pass(conv(R=taps, S=taps, layout=layout), which, A100, RUNTIME) for layout in ("NCHW", "NHWC")
        )
        assert nchw.transposes_us > 0 == nhwc.transposes_us
        ratios.append(nchw.time_us / nhwc.time_us)
    assert ratios[0] > ratios[1] > 1


def test_auto_layout_is_the_best():
    for gpu in (A100, load_gpu("k80")):
        for dtype in (Dtype.fp16, Dtype.fp32):
            best = min(fprop(conv(layout=layout, dtype=dtype), gpu).time_us for layout in ("NCHW", "NHWC"))
            assert fprop(conv(layout="auto", dtype=dtype), gpu).time_us == best


@pytest.mark.parametrize(
    ("dtype", "gpu", "tf32", "expected"),
    [
        ("fp32", "a100", True, "tf32"), ("fp32", "a100", False, "fp32"), ("fp32", "t4", True, "fp32"),
        ("tf32", "a100", False, "tf32"), ("tf32", "t4", True, "fp32"), ("tf32", "v100", True, "fp32"),
        ("fp16", "v100", True, "fp16"), ("fp16", "k80", True, "fp32"), ("fp16", "p4", True, "fp32"),
        ("fp16", "p100", True, "fp16"), ("bf16", "a100", True, "bf16"), ("int8", "t4", True, "int8"),
    ],
)  # fmt: skip
def test_compute_dtype(dtype, gpu, tf32, expected):
    assert compute_dtype(Dtype(dtype), load_gpu(gpu), Runtime(tf32=tf32)) == expected


@pytest.mark.parametrize(
    ("dtype", "gpu", "tensor_cores"),
    [
        ("bf16", "v100", None), ("bf16", "t4", None), ("bf16", "a100", True), ("fp8", "a100", None),
        ("fp8", "l4", True),
        ("fp8", "h100", True), ("int8", "k80", None), ("int8", "p100", None), ("int8", "p4", False),
        ("int8", "v100", False), ("int8", "t4", True), ("fp16", "gtx-1660-ti", False), ("fp32", "k80", False),
        ("fp64", "a100", False), ("tf32", "t4", False), ("tf32", "orin", True), ("bf16", "orin", True),
    ],
)  # fmt: skip
def test_what_runs_where(dtype, gpu, tensor_cores):
    estimate = fprop(conv(dtype=Dtype(dtype), C=128, K=128), load_gpu(gpu))
    assert (None if estimate is None else estimate.tensor_cores) == tensor_cores
    layer = estimate_layer(conv(dtype=Dtype(dtype), C=128, K=128), load_gpu(gpu), RUNTIME, "inference")
    assert (layer is None) == (tensor_cores is None)


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


def test_misaligned_channels_are_padded_or_refused_by_version():
    odd, even = conv(C=62, K=128), conv(C=64, K=128)
    padded, aligned = fprop(odd), fprop(even)
    assert padded.tensor_cores
    assert padded.padding_us > 0 == aligned.padding_us
    assert padded.time_us == pytest.approx(aligned.time_us + padded.padding_us)
    old = Runtime(cudnn=Version("7.6.2"))
    refused = fprop(odd, load_gpu("v100"), old)
    assert not refused.tensor_cores
    assert refused.time_us > 2 * fprop(odd, load_gpu("v100")).time_us
    assert fprop(even, load_gpu("v100"), old).tensor_cores
    assert fprop(replace(odd, layout="NCHW"), load_gpu("v100"), old).tensor_cores
    assert fprop(odd, A100, Runtime(framework="tensorrt")).padding_us == 0


def test_depthwise_is_bound_by_memory_and_loses_nothing_to_tiles():
    for which in PASSES:
        estimate = estimate_pass(conv(C=96, K=96, groups=96), which, A100, RUNTIME)
        assert estimate.algorithm == "direct"
        assert not estimate.tensor_cores
        assert (estimate.bound_by, estimate.tile) == ("memory", (1, 1))
        assert estimate.lost_to_tiles_us == estimate.lost_to_waves_us == 0
    layer = conv(C=96, K=96, groups=96)
    assert estimate_layer(layer, A100, RUNTIME, "inference").grade == "A"
    slow = estimate_pass(layer, "wgrad", A100, RUNTIME)
    assert slow.attainable_us < 0.5 * slow.time_us
    assert estimate_layer(layer, A100, RUNTIME, "training").grade > "A"


def test_groups_split_the_gemm():
    whole, grouped = fprop(conv(C=512, K=512, H=28, W=28)), fprop(conv(C=512, K=512, H=28, W=28, groups=4))
    assert grouped.gemm.batch == 4
    assert grouped.flops * 4 == whole.flops
    assert whole.time_us / 4 < grouped.time_us < whole.time_us


def test_one_dimension_is_a_row_and_three_add_depth():
    line = conv(N=64, H=1, W=4096, R=1, S=5, C=256, K=256)
    assert fprop(replace(line, dims=1)).time_us == fprop(line).time_us
    flat = conv(N=32, C=128, K=128, H=28, W=28)
    deep = with_output(replace(flat, dims=3, N=4, D=8, T=1))
    for which in PASSES:
        one, two = estimate_pass(flat, which, A100, RUNTIME), estimate_pass(deep, which, A100, RUNTIME)
        assert one.time_us == pytest.approx(two.time_us)
    cube = with_output(replace(deep, T=3, PadD=1, PadD_end=1))
    assert fprop(cube).flops == 3 * fprop(deep).flops


def test_tile_loss_vanishes_where_memory_binds_and_counts_where_compute_does():
    wasteful = conv(C=512, K=72, H=28, W=28)
    estimate = fprop(wasteful)
    assert estimate.bound_by == "compute"
    assert estimate.tile_efficiency < 0.75
    assert 0.1 * estimate.time_us < estimate.lost_to_tiles_us < 0.5 * estimate.time_us
    streaming = fprop(conv(C=64, K=72, R=1, S=1))
    assert streaming.bound_by == "memory"
    assert streaming.lost_to_tiles_us == 0


def test_few_tiles_leave_sms_idle_and_a_larger_batch_fills_them():
    one, many = (fprop(conv(N=n, C=256, K=256, H=14, W=14)) for n in (1, 64))
    assert one.tiles < A100.sms
    assert one.lost_to_waves_us > 0
    assert one.tflops < 0.3 * many.tflops


def test_tiny_layers_are_bound_by_the_launch():
    estimate = fprop(conv(N=1, C=64, K=64, H=7, W=7, R=1, S=1))
    assert estimate.bound_by == "launch"
    assert estimate.overhead_us > 0.5 * estimate.time_us


def test_main_loop_steps_follow_the_reduction():
    assert fprop(conv(C=64, K=256, R=1, S=1)).main_loop_steps == 2
    assert fprop(conv(C=512, K=256)).main_loop_steps == 144


def test_strided_dgrad_costs_more_than_fprop():
    layer = estimate_layer(conv(C=512, K=512, R=1, S=1, U=2, V=2), A100, RUNTIME, "training")
    assert layer.passes["dgrad"].time_us > 1.5 * layer.passes["fprop"].time_us


def test_kepler_holds_the_tiles_that_its_registers_hold():
    layer = conv(dtype=Dtype.fp32, R=1, S=1, C=512, K=512)
    gk104, gk110, gk210 = (fprop(layer, load_gpu(name)) for name in ("gtx-680", "k40", "k80"))
    assert gk104.tile[0] * gk104.tile[1] <= 32 * 256  # 63 registers a thread hold no 64 sums
    assert gk110.resident_tiles * gk110.tile[0] * gk110.tile[1] <= 32768
    assert gk210.resident_tiles * gk210.tile[0] * gk210.tile[1] > 32768  # GK210 has twice the registers
    small = fprop(conv(N=1, dtype=Dtype.fp32, H=7, W=7, R=1, S=1), load_gpu("k40"))
    assert small.resident_warps < gk110.resident_warps


def test_transposed_layers_take_the_roles_of_their_mirror():
    generator = with_output(
        ConvLayer(name="up", op="conv_transpose", N=64, C=512, H=8, W=8, K=256, R=4, S=4, U=2, V=2, PadH=1, PadW=1,
                  PadH_end=1, PadW_end=1, dtype=Dtype.fp16, layout="NHWC")
    )  # fmt: skip
    assert (generator.P, generator.Q) == (16, 16)
    layer = estimate_layer(generator, A100, RUNTIME, "training")
    assert layer.passes["fprop"].flops == 2 * 64 * 8 * 8 * 512 * 256 * 16
    assert layer.passes["fprop"].gemm == gemm(generator, "fprop")


def test_geforce_accumulates_at_half_rate_except_in_tensorrt():
    layer = conv(C=512, K=512, H=28, W=28)
    ratio = (
        fprop(layer, load_gpu("rtx-3090")).time_us
        / fprop(layer, load_gpu("rtx-3090"), Runtime(framework="tensorrt")).time_us
    )
    assert 1.5 < ratio < 2.1
    board = load_gpu("a100")
    assert fprop(layer, board).time_us / fprop(layer, board, Runtime(framework="tensorrt")).time_us < 1.05


def test_a_changed_gpu_of_the_same_id_is_not_mistaken():
    layer = conv(C=512, K=512, H=28, W=28)
    before = fprop(layer)
    halved = replace(A100, sms=54)
    assert fprop(layer, halved) != before
    assert fprop(layer) == before


@pytest.mark.parametrize("mode", ["training", "inference"])
def test_int8_has_no_gradients(mode):
    layer = conv(dtype=Dtype.int8)
    estimate = estimate_layer(layer, A100, RUNTIME, mode)
    assert list(estimate.passes) == ["fprop"]
    assert estimate.time_us == time_us(layer, A100, RUNTIME, mode) == fprop(layer).time_us
    assert estimate_pass(layer, "wgrad", A100, RUNTIME) is None


@pytest.mark.parametrize("gpu", ["h100", "b200"])
def test_few_filters_run_in_narrow_tiles_since_hopper(gpu):
    """ResNet-50's layers of 64 channels leave no tile half empty."""
    for layer in (conv(), conv(C=256, R=1, S=1), conv(N=32), conv(C=3, **FIRST)):
        estimate = fprop(layer, load_gpu(gpu))
        assert estimate.tile[1] == 64
        assert estimate.tile_efficiency > 0.95


def test_a_wave_for_three_tiles_costs_what_it_adds():
    """17x17 maps with K = 384: 861 tiles at N = 127, 867 at N = 128, of which three need a fifth wave."""
    before, after = (fprop(conv(N=n, C=256, H=17, W=17, K=384)) for n in (127, 128))
    assert (before.tiles, after.tiles, after.last_wave_tiles) == (861, 867, 3)
    assert after.time_us > 1.1 * before.time_us
    assert after.lost_to_waves_us - before.lost_to_waves_us == pytest.approx(after.time_us - before.time_us, rel=0.1)


def test_layer_time_sums_the_passes_times_the_calls():
    layer = conv(calls=3)
    estimate = estimate_layer(layer, A100, RUNTIME, "training")
    assert estimate.time_us == pytest.approx(3 * sum(each.time_us for each in estimate.passes.values()))
    assert list(estimate_layer(layer, A100, RUNTIME, "inference").passes) == ["fprop"]
    assert list(estimate_layer(replace(layer, first=True), A100, RUNTIME, "training").passes) == ["fprop", "wgrad"]


@pytest.mark.parametrize(
    ("ratio", "letter"), [(1, "A"), (0.9, "A"), (0.89, "B"), (0.75, "B"), (0.6, "C"), (0.4, "D"), (0.39, "F")]
)
def test_grades(ratio, letter):
    assert grade(ratio) == letter


@pytest.mark.parametrize("name", ["N", "C", "H", "W", "K", "R", "S", "P", "Q", "D", "T", "Z", "dtype"])
def test_unknown_sizes_give_no_estimate(name):
    assert fprop(replace(conv(), **{name: None})) is None


@pytest.mark.parametrize("change", [{"P": 0}, {"C": 0}, {"K": -1}, {"groups": 5}, {"U": 0}])
def test_invalid_layers_give_no_estimate(change):
    assert fprop(replace(conv(), **change)) is None
