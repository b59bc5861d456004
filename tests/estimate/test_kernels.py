"""Single ways to run a pass: the bytes they move, and what untiled kernels lose."""

from __future__ import annotations

from math import isfinite, prod
from types import SimpleNamespace

import pytest
from convolutions import A100, RUNTIME, conv, fprop
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from convlint.estimate import constants as const
from convlint.estimate import estimate_layer, estimate_pass
from convlint.estimate.board import board_of
from convlint.estimate.kernels import (
    NONE,
    Priced,
    calibrated,
    depthwise_factor,
    is_quantized,
    moved_bytes,
    tile_efficiency,
    without_quantization,
    without_waves,
)
from convlint.estimate.price import Situation, cheapest
from convlint.estimate.results import problem_of
from convlint.estimate.search import Lowering, ProgramChoice, TileProgram, join
from convlint.gpus.gpu import gpu_names, load_gpu
from convlint.model.layer import PASSES, ConvLayer, Dtype, with_output
from convlint.model.runtime import Runtime


def test_fact_2_arithmetic_intensity_counts_the_weights():
    assert round(fprop(conv(K=128)).arithmetic_intensity, 1) == 383.8


def test_depthwise_is_bound_by_memory_and_loses_nothing_to_tiles():
    for which in PASSES:
        estimate = estimate_pass(conv(C=96, K=96, groups=96), which, A100, RUNTIME)
        assert estimate.algorithm == "direct"
        assert not estimate.tensor_cores
        assert (estimate.bound_by, estimate.tile) == ("memory", (1, 1))
        assert estimate.lost_to_tiles_us == estimate.lost_to_waves_us == 0
        assert estimate.unquantized_us == estimate.time_us


TEN_SMS = SimpleNamespace(sms=10)


def priced(*, useful=100, compute_us=24.0, memory_us=0.0, algorithm="implicit-gemm", fused_tiles=0, split=1, share=1.0):
    """25 tiles of 2 x 4 outputs; ten run at once, for 8 us: of three waves the last is half full."""
    lowering = Lowering(algorithm, "", 1, 1, 1, 1, useful, fused_tiles=fused_tiles, peak_share=share)
    choice = ProgramChoice(
        lowering, TileProgram(2, 4, 1, (0.0, 8.0), 0.0, 8.0, 10), split, 25, 1, compute_us, memory_us, 0
    )
    return Priced(SimpleNamespace(family=SimpleNamespace(round_us=0.0)), choice, 100.0, 5.0, NONE)


@pytest.mark.parametrize(
    ("parts", "efficiency"),
    [
        ({}, 0.5),
        ({"useful": 200}, 1.0),
        ({"useful": 50, "split": 2}, 0.5),  # each output is summed from two tiles
        ({"useful": 25 * 128 * 8, "fused_tiles": 25}, 0.25),  # whose tiles are not the program's
        ({"useful": 300}, 1.0),
        ({"algorithm": "direct"}, 1.0),
    ],
)
def test_useful_share_of_the_tiles(parts, efficiency):
    assert tile_efficiency(priced(**parts).choice) == efficiency


@pytest.mark.parametrize(
    ("parts", "quantized"),
    [
        ({}, True),
        ({"memory_us": 24.0}, True),
        ({"memory_us": 24.1}, False),
        ({"algorithm": "direct"}, False),
    ],
)
def test_what_memory_binds_or_has_no_tiles_pays_for_no_empty_ones(parts, quantized):
    one = priced(**parts)
    assert is_quantized(one) is quantized
    assert (without_quantization(one, TEN_SMS) < one.time_us) is quantized


@pytest.mark.parametrize(
    ("parts", "useful", "time_us"),
    [
        ({"useful": 200}, 1.0, 96.0),  # 2.5 waves in place of three
        ({}, 1.0, 86.0),  # and half of each tile
        ({}, 0.5, 81.0),  # and half of that
        ({"share": 0.5, "compute_us": 48.0}, 1.0, 72.0),
        ({"compute_us": 16.0, "useful": 200}, 1.0, 100.0),  # never more than it takes
        ({"memory_us": 12.0}, 1.0, 100.0 - join(24.0, 12.0) + join(10.0, 12.0)),
    ],
)
def test_time_without_quantization(parts, useful, time_us):
    assert without_quantization(priced(**parts), TEN_SMS, useful) == pytest.approx(time_us)


SMALL = {"N": 2, "C": 8, "K": 16, "H": 10, "W": 12}
X, W, Y = 2 * 8 * 10 * 12, 8 * 16 * 9, 2 * 16 * 10 * 12


@pytest.mark.parametrize(
    ("sizes", "which", "elements"),
    [
        ({}, "fprop", X + W + Y),
        ({}, "dgrad", X + W + Y),
        ({"residual_inputs": 1}, "fprop", X + W + 2 * Y),
        ({"residual_inputs": 1}, "wgrad", X + W + Y),
        ({"U": 2, "V": 2, "R": 1, "S": 1}, "fprop", X / 4 + W / 9 + Y / 4),  # what the stride skips is not read
        ({"U": 2, "V": 2, "R": 1, "S": 1}, "dgrad", X + W / 9 + Y / 4),  # but all of it is written
        ({"U": 2, "V": 2}, "fprop", X + W + Y / 4),
    ],
)
def test_bytes_of_a_kernel(sizes, which, elements):
    problem = problem_of(conv(**SMALL | sizes))
    assert moved_bytes(problem, which, 8, 16) == 2 * elements


def test_padded_channels_are_moved_too():
    assert moved_bytes(problem_of(conv(**SMALL)), "fprop", 16, 16) == 2 * (2 * X + 2 * W + Y)


def test_flops_are_two_for_each_tap_channel_and_output():
    assert problem_of(conv(**SMALL)).flops == 2 * Y * 8 * 9
    assert problem_of(conv(**SMALL, groups=4)).flops == 2 * Y * 2 * 9


@pytest.mark.parametrize(("which", "factor"), [("fprop", 1.0), ("dgrad", 1.0), ("wgrad", 3.0)])
def test_a_depthwise_wgrad_reduces_over_everything_for_few_outputs(which, factor):
    assert depthwise_factor(which) == factor


@pytest.mark.parametrize("layer", [conv(), conv(N=2048, R=1, S=1), conv(layout="NCHW"), conv(C=62), conv(groups=64)])
@pytest.mark.parametrize("factor", [0.5, 1.0, 3.0])
def test_a_factor_is_on_all_of_the_time(layer, factor):
    """Of times, of what they consist of, and of what they would be without quantization."""
    board = board_of(A100)
    situation = Situation(Dtype.fp16, False, True, True, True)
    priced = cheapest(problem_of(layer), "wgrad", board, situation)
    scaled = calibrated(priced, factor)

    def parts(one):
        copied = one.copies.transposes_us + one.copies.padding_us
        ideal = without_quantization(one, board)
        return [one.time_us, one.overhead_us, ideal, one.choice.compute_us, one.choice.memory_us, copied,
                without_waves(one, board)]  # fmt: skip

    assert parts(scaled) == pytest.approx([factor * part for part in parts(priced)])


PYTORCH, TENSORRT, JAX = (Runtime(framework=name) for name in ("pytorch", "tensorrt", "jax"))
RUNTIMES = st.sampled_from([Runtime(), PYTORCH, TENSORRT, JAX])
GPUS = st.sampled_from(gpu_names()).map(load_gpu)
DTYPES = st.sampled_from([Dtype.fp32, Dtype.tf32, Dtype.fp16, Dtype.bf16, Dtype.int8, Dtype.fp64])
LAYOUTS = st.sampled_from(["NCHW", "NHWC", "auto"])


def depthwise(C=128, multiplier=1, **changes):
    sizes = {"N": 64, "H": 56, "W": 56, "R": 3, "S": 3, "dtype": Dtype.fp32, "layout": "NCHW", "groups": C}
    sizes |= {"C": C, "K": C * multiplier} | changes
    pad_h, pad_w = sizes["R"] // 2, sizes["S"] // 2
    return with_output(ConvLayer(name="l", PadH=pad_h, PadH_end=pad_h, PadW=pad_w, PadW_end=pad_w, **sizes))


def us(layer, gpu, which="fprop", runtime=PYTORCH):
    return estimate_pass(layer, which, load_gpu(gpu) if isinstance(gpu, str) else gpu, runtime).time_us


def bytes_per_second(layer, gpu, runtime=PYTORCH):
    """One read, one write."""
    elements = layer.N * layer.C * (layer.H * layer.W + layer.P * layer.Q)
    return elements * layer.dtype.bytes / us(layer, gpu, runtime=runtime) * 1e6


@given(
    sizes=st.fixed_dictionaries({
        "N": st.integers(1, 130), "C": st.integers(2, 600), "H": st.integers(7, 130), "W": st.integers(7, 130),
        "R": st.sampled_from([1, 3, 4, 5, 7]), "S": st.sampled_from([1, 3, 4, 5, 7]), "U": st.integers(1, 3),
        "V": st.integers(1, 3), "multiplier": st.sampled_from([1, 1, 2]), "dtype": DTYPES, "layout": LAYOUTS,
    }),
    grows=st.sampled_from(["N", "C", "H", "W"]), by=st.integers(1, 40), gpu=GPUS, runtime=RUNTIMES,
    which=st.sampled_from(PASSES),
)  # fmt: skip
@settings(max_examples=600, deadline=None)
def test_more_never_takes_less(sizes, grows, by, gpu, runtime, which):
    small = estimate_pass(depthwise(**sizes), which, gpu, runtime)
    large = estimate_pass(depthwise(**sizes | {grows: sizes[grows] + by}), which, gpu, runtime)
    assert (small is None) == (large is None)
    if small is None or large is None or (runtime.framework != "tensorrt" and grows == "C" and sizes["C"] < 32):
        return  # cuDNN takes over from PyTorch's kernel at 32 channels
    assert 0 < small.time_us <= large.time_us * (1 + 1e-9)


ANY = st.sampled_from([1, 2, 3, 31, 2**15, 2**31 - 1, 2**31])


@given(n=ANY, c=ANY.filter(lambda c: c > 1), h=ANY, w=ANY, taps=ANY, stride=ANY, gpu=GPUS, dtype=DTYPES,
       which=st.sampled_from(PASSES), runtime=RUNTIMES)  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_any_size_has_a_time(n, c, h, w, taps, stride, gpu, dtype, which, runtime):
    layer = depthwise(C=c, N=n, H=h, W=w, R=taps, S=taps, U=stride, V=stride, dtype=dtype)
    estimate = estimate_pass(layer, which, gpu, runtime)
    assert estimate is None or (isfinite(estimate.time_us) and 0 < estimate.unquantized_us <= estimate.time_us)


@pytest.mark.parametrize(("gpu", "least", "most"), [("h100", 640, 900), ("h100-pcie", 520, 760)])
def test_h100_moves_a_quarter_of_its_bandwidth_in_fp32(gpu, least, most):
    assert least <= bytes_per_second(depthwise(), gpu) * 1e-9 <= most


@pytest.mark.parametrize("gpu", ["l4", "l40s"])
def test_gpus_with_little_bandwidth_per_sm_come_near_it(gpu):
    assert 0.55 <= bytes_per_second(depthwise(N=128), gpu) / load_gpu(gpu).dram_bytes_per_s <= 0.8


def test_gradients_of_pytorchs_own_kernel_cost_more_than_fprop():
    """One report has dgrad at 2.7 and wgrad at 11.9 times fprop, for MobileNet's layers; steps that were published of
    whole networks leave wgrad less than half of that (tests/test_published_steps.py)."""
    shapes = [(32, 112, 1), (64, 112, 2), (128, 56, 1), (128, 56, 2), (256, 28, 1), (256, 28, 2)]
    shapes += [(512, 14, 1)] * 5 + [(512, 14, 2), (1024, 7, 1)]
    layers = [depthwise(C=C, N=32, H=H, W=H, U=U, V=U) for C, H, U in shapes]
    fprop, dgrad, wgrad = (sum(us(layer, "a100", which) for layer in layers) for which in PASSES)
    assert 1.8 <= dgrad / fprop <= 3.5
    assert 3 <= wgrad / fprop <= 6


def test_pytorchs_own_kernel_runs_what_cudnn_is_not_asked_for():
    for gpu in ("a100", "h100"):
        for dtype in (Dtype.fp32, Dtype.bf16):
            assert us(depthwise(dtype=dtype), gpu) > us(depthwise(dtype=dtype, layout="NHWC"), gpu)
        half = depthwise(dtype=Dtype.fp16)
        assert us(half, gpu) == us(replace(half, layout="NHWC"), gpu) < us(replace(half, dtype=Dtype.bf16), gpu)
        narrow = depthwise(C=31, dtype=Dtype.fp16)
        assert us(narrow, gpu) > us(replace(narrow, layout="NHWC"), gpu)
        assert us(depthwise(), gpu, runtime=Runtime()) == us(depthwise(), gpu)


def test_filters_that_are_not_compiled_in_take_longer():
    assert us(depthwise(R=3, S=1), "h100") > 0.9 * us(depthwise(), "h100")
    assert us(depthwise(R=5, S=3), "h100") > 1.5 * us(depthwise(), "h100")


@pytest.mark.parametrize(
    ("sizes", "measured"),
    # V100, TensorRT (lightweight-neural-architecture-search), us
    [
        ({"N": 64, "C": 1280, "H": 50, "W": 50, "dtype": Dtype.fp32}, 2812.11),
        ({"N": 128, "C": 1024, "H": 16, "W": 16, "R": 5, "S": 5, "dtype": Dtype.fp32}, 1691.8),
        ({"N": 64, "C": 160, "H": 206, "W": 206, "U": 2, "V": 2, "dtype": Dtype.fp32}, 3870.4),
        ({"N": 64, "C": 48, "H": 164, "W": 164, "dtype": Dtype.fp16}, 540.5),
        ({"N": 32, "C": 384, "H": 56, "W": 56, "R": 7, "S": 7, "dtype": Dtype.fp16}, 1339.9),
        ({"N": 64, "C": 96, "H": 214, "W": 214, "R": 5, "S": 5, "U": 2, "V": 2, "dtype": Dtype.fp16}, 2587.8),
        ({"N": 128, "C": 48, "H": 214, "W": 214, "dtype": Dtype.int8}, 4275.7),
        ({"N": 32, "C": 1536, "H": 74, "W": 74, "U": 2, "V": 2, "dtype": Dtype.int8}, 2637.8),
    ],
)
def test_tensorrt_on_v100(sizes, measured):
    assert us(depthwise(layout="auto", **sizes), "v100", runtime=TENSORRT) == pytest.approx(measured, rel=0.25)


def test_v100_has_no_int8_kernel():
    layer = depthwise(layout="auto")
    assert us(replace(layer, dtype=Dtype.int8), "v100", runtime=TENSORRT) == us(layer, "v100", runtime=TENSORRT)
    assert us(replace(layer, dtype=Dtype.int8), "t4", runtime=TENSORRT) < us(layer, "t4", runtime=TENSORRT)


def test_strided_depthwise_on_v100_beats_dense_layers_of_many_channels_alone():
    """TensorRT, fp16: 3x3 at stride 2 takes about as long as a dense layer of 64 channels."""
    ratios = []
    for C in (32, 128, 256):
        layer = depthwise(C=C, U=2, V=2, dtype=Dtype.fp16, layout="auto")
        dense = with_output(replace(layer, groups=1))
        ratios.append(us(layer, "v100", runtime=TENSORRT) / us(dense, "v100", runtime=TENSORRT))
    assert ratios[0] > 1.0
    assert ratios[-1] < 0.75
    assert ratios == sorted(ratios, reverse=True)


@pytest.mark.parametrize("dtype", [Dtype.fp32, Dtype.fp16])
def test_what_an_estimate_says_of_itself_adds_up(dtype):
    layer = depthwise(dtype=dtype)
    estimate = estimate_pass(layer, "fprop", load_gpu("a100"), PYTORCH)
    assert (estimate.algorithm, estimate.tensor_cores, estimate.tile) == ("direct", False, (1, 1))
    assert estimate.transposes_us == estimate.padding_us == 0
    assert estimate.flops == 2 * prod((layer.N, layer.K, layer.P, layer.Q, 9))
    assert estimate.unquantized_us == estimate.time_us
    assert estimate_layer(layer, load_gpu("a100"), PYTORCH, "inference").unquantized_us == estimate.time_us


def test_pytorch_asks_cudnn_for_no_dilated_depthwise_layer_in_nchw():
    sizes = {"C": 960, "N": 8, "H": 33, "W": 33, "dtype": Dtype.fp16}
    plain = depthwise(**sizes)
    wide = dict.fromkeys(("PadH", "PadW", "PadH_end", "PadW_end", "DilH", "DilW"), 12)
    dilated = with_output(replace(plain, **wide))
    assert (dilated.P, dilated.Q) == (plain.P, plain.Q)
    assert us(dilated, "a100", "wgrad") > 3 * us(plain, "a100", "wgrad")
    for layout, runtime in (("NHWC", PYTORCH), ("NCHW", JAX)):  # cuDNN's kernels in both
        times = [us(replace(layer, layout=layout), "a100", "wgrad", runtime) for layer in (plain, dilated)]
        assert times[0] == times[1]


VOLUME = {"dims": 3, "D": 16, "T": 3, "H": 64, "W": 64, "N": 4, "PadD": 1, "layout": "NCHW"}


def is_direct(sizes, which="fprop", gpu=A100, runtime=RUNTIME):
    return estimate_pass(conv(**sizes), which, gpu, runtime).algorithm == "direct"


ODD = {"groups": 4, "C": 96, "K": 96, "dtype": Dtype.fp16}  # 24 channels a group, as RegNetY has
STRIDED = {"groups": 4, "C": 32, "K": 64, "U": 2, "V": 2, "dtype": Dtype.fp32}


@pytest.mark.parametrize(
    ("sizes", "which", "direct"),
    [
        (STRIDED, "dgrad", True),
        (STRIDED, "fprop", False),
        ({**STRIDED, "U": 1, "V": 1}, "dgrad", False),
        ({**STRIDED, "C": 132, "K": 132}, "dgrad", False),  # 33 channels a group
        ({**STRIDED, "dtype": Dtype.fp16}, "dgrad", False),
        ({**VOLUME, "C": 3, "dtype": Dtype.fp32}, "fprop", True),
        ({**VOLUME, "C": 3, "K": 3, "dtype": Dtype.fp32}, "wgrad", False),
        ({**VOLUME, "C": 4, "dtype": Dtype.fp32}, "fprop", False),
        ({**VOLUME, "C": 3, "dtype": Dtype.fp16}, "fprop", False),
        ({**VOLUME, "C": 3, "T": 1, "R": 1, "S": 1, "dtype": Dtype.fp32}, "fprop", False),
        ({**VOLUME, "C": 3, "layout": "NHWC", "dtype": Dtype.fp32}, "fprop", False),
        (ODD, "fprop", True),
        ({**ODD, "C": 128, "K": 128}, "fprop", False),
        ({**ODD, "C": 192, "K": 192}, "fprop", True),  # 48
        ({**ODD, "C": 224, "K": 224}, "fprop", False),  # 56: wider than what was timed
        ({**ODD, "layout": "NCHW"}, "fprop", False),
        ({**ODD, "layout": "auto"}, "fprop", False),  # the framework's choice
    ],
)
def test_which_passes(sizes, which, direct):
    assert is_direct(sizes, which) is direct


IMAGES = {**VOLUME, "C": 3, "dtype": Dtype.fp32}


@pytest.mark.parametrize(
    ("sizes", "gpu", "framework", "direct"),
    [
        (ODD, "a100", None, True), (ODD, "rtx-4090", None, True), (ODD, "a100", "pytorch", True),
        (ODD, "v100", None, False), (ODD, "h100", None, False),  # not timed before cc 8.0, and libraries moved on
        (ODD, "a100", "tensorrt", False), (ODD, "a100", "tensorflow", False),
        (IMAGES, "k80", None, False), (IMAGES, "v100", None, False), (IMAGES, "p100", None, False),  # not timed
    ],
)  # fmt: skip
def test_where_odd_groups_and_volumes_are_slow(sizes, gpu, framework, direct):
    assert is_direct(sizes, gpu=load_gpu(gpu), runtime=Runtime(framework=framework)) is direct


def test_gradients_of_odd_groups_are_slowest():
    fprop, dgrad, wgrad = (estimate_pass(conv(**ODD), which, A100, RUNTIME).time_us for which in PASSES)
    assert min(dgrad, wgrad) > 3 * fprop


@pytest.mark.parametrize("gpu", ["a100", "t4", "k80"])
def test_flops_per_clock_and_sm(gpu):
    board = board_of(load_gpu(gpu))
    found = estimate_pass(conv(**STRIDED, N=64), "dgrad", board.gpu, RUNTIME)
    rate = found.flops / (found.time_us - found.overhead_us) * 1e6 / (board.sms * board.clock_hz)
    assert rate == pytest.approx(const.GROUPED_DIRECT, rel=0.02)


@pytest.mark.parametrize(
    ("gpu", "measured_us"), [("a100", 5370), ("h100-pcie", 1790), ("rtx-a6000", 8100), ("t4", 71300), ("a10", 11500)]
)
def test_a_volume_of_three_channels_takes_what_it_was_measured_to(gpu, measured_us):
    """KernelBench, N 16, 64x64x64, 64 filters of 3x3x3, fp32 tensors in NCDHW."""
    sizes = {
        "dims": 3, "N": 16, "C": 3, "D": 64, "H": 64, "W": 64, "K": 64, "T": 3, "pad": (0, 0),
    }  # fmt: skip
    found = estimate_pass(conv(**sizes, dtype=Dtype.fp32, layout="NCHW"), "fprop", load_gpu(gpu), RUNTIME)
    assert measured_us / 1.4 < found.time_us < measured_us * 1.4


@pytest.mark.parametrize(("benchmark", "direct"), [(False, True), (True, False), (None, False)])
def test_alexnets_first_layer_is_slow_where_heuristics_pick(benchmark, direct):
    """KernelBench: 14.8 ms on RTX A6000, 2.97 ms on H100 PCIe at N = 256; smaller filters were timed to be faster."""
    runtime = Runtime(framework="pytorch", cudnn_benchmark=benchmark)
    sizes = {"N": 256, "C": 3, "K": 96, "H": 224, "W": 224, "R": 11, "S": 11, "U": 4, "V": 4, "pad": (2, 2)}
    layer = {**sizes, "layout": "NCHW", "dtype": Dtype.fp32}
    assert is_direct(layer, runtime=runtime) is direct
    assert not is_direct({**layer, "R": 7, "S": 7}, runtime=runtime)
    if direct:
        for gpu, measured_us in (("rtx-a6000", 14800), ("h100-pcie", 2965)):
            found = estimate_pass(conv(**layer), "fprop", load_gpu(gpu), runtime)
            assert measured_us / 1.6 < found.time_us < measured_us * 1.6
