"""Single ways to run a pass: the bytes they move, and what untiled kernels lose."""

from types import SimpleNamespace

import pytest
from convolutions import A100, RUNTIME, conv, fprop
from msgspec.structs import replace

from convlint.estimate import constants as const
from convlint.estimate import estimate_layer, estimate_pass
from convlint.estimate.board import board_of
from convlint.estimate.kernels import (
    NONE,
    Priced,
    calibrated,
    copies,
    is_quantized,
    moved_bytes,
    tile_efficiency,
    transforms,
    without_quantization,
    without_waves,
)
from convlint.estimate.price import Situation, cheapest
from convlint.estimate.results import problem_of
from convlint.estimate.search import Lowering, ProgramChoice, TileProgram, join
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import PASSES, Dtype, with_output
from convlint.model.runtime import Runtime, Version


def test_fact_2_arithmetic_intensity_counts_the_weights():
    assert round(fprop(conv(K=128)).arithmetic_intensity, 1) == 383.8


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
        ({**STRIDED, "dtype": Dtype.fp16}, "dgrad", True),  # 8 and 16 channels a group
        ({**VOLUME, "C": 3, "dtype": Dtype.fp32}, "fprop", True),
        ({**VOLUME, "C": 3, "K": 3, "dtype": Dtype.fp32}, "wgrad", False),
        ({**VOLUME, "C": 4, "dtype": Dtype.fp32}, "fprop", False),
        ({**VOLUME, "C": 3, "dtype": Dtype.fp16}, "fprop", False),
        ({**VOLUME, "C": 3, "T": 1, "R": 1, "S": 1, "dtype": Dtype.fp32}, "fprop", False),
        ({**VOLUME, "C": 3, "layout": "NHWC", "dtype": Dtype.fp32}, "fprop", False),
        (ODD, "fprop", False),
        (ODD, "dgrad", True),
        (ODD, "wgrad", True),
        ({**ODD, "C": 448, "K": 448}, "wgrad", True),  # 112, as RegNetX-12 has
        ({**ODD, "C": 128, "K": 128}, "wgrad", True),  # 32, but of 4 groups
        ({**ODD, "groups": 32, "C": 512, "K": 512}, "wgrad", False),  # 16, as ResNeXt has
        ({**ODD, "groups": 24, "C": 192, "K": 192}, "wgrad", False),  # 8, as RegNetZ has
        ({**ODD, "groups": 64, "C": 512, "K": 1024}, "wgrad", True),  # 8 to 16, as SENet-154 has
        ({**ODD, "layout": "NCHW"}, "wgrad", False),
        ({**ODD, "layout": "auto"}, "wgrad", False),  # the framework's choice
    ],
)
def test_which_passes(sizes, which, direct):
    assert is_direct(sizes, which) is direct


def test_odd_groups_take_as_long_in_the_layout_that_a_compiler_picks():
    """Inductor runs RegNetY in NHWC, whose groups of 24 channels have no fast kernel."""
    compiled = replace(RUNTIME, compile=True)
    picked, stated = (
        estimate_pass(conv(**{**ODD, "layout": layout}), "fprop", A100, compiled) for layout in ("auto", "NHWC")
    )
    assert picked.time_us == stated.time_us


IMAGES = {**VOLUME, "C": 3, "dtype": Dtype.fp32}


@pytest.mark.parametrize(
    ("sizes", "gpu", "framework", "direct"),
    [
        (ODD, "a100", None, True), (ODD, "rtx-4090", None, True), (ODD, "a100", "pytorch", True),
        (ODD, "v100", None, False),  # not timed before cc 8.0
        (ODD, "h100", None, False),  # which widens them
        (ODD, "a100", "tensorrt", False), (ODD, "a100", "tensorflow", False),
        (IMAGES, "k80", None, False), (IMAGES, "v100", None, False), (IMAGES, "p100", None, False),  # not timed
    ],
)  # fmt: skip
def test_where_groups_and_volumes_are_slow(sizes, gpu, framework, direct):
    which = "dgrad" if sizes is ODD else "fprop"
    assert is_direct(sizes, which, gpu=load_gpu(gpu), runtime=Runtime(framework=framework)) is direct


@pytest.mark.parametrize("which", PASSES)
@pytest.mark.parametrize(
    ("sizes", "gpu", "framework", "widened"),
    [
        (ODD, "h200", None, PASSES), (ODD, "h200", "tensorrt", ()), (ODD, "a100", None, ("fprop",)),
        (ODD, "rtx-5090", None, ("fprop",)), (ODD, "v100", None, ()), (ODD, "a100", "tensorflow", ()),
        ({**ODD, "layout": "NCHW"}, "h200", None, ()), ({**ODD, "C": 128, "K": 128}, "h200", None, ()),
        ({**ODD, "C": 128, "K": 256}, "h200", None, PASSES), ({**ODD, "groups": 1}, "h200", None, ()),
        ({**ODD, "C": 128, "K": 256}, "rtx-4090", None, ("fprop",)), ({**ODD, "C": 544}, "a100", None, ()),
    ],
)  # fmt: skip
def test_groups_that_are_no_power_of_two_are_widened(sizes, gpu, framework, widened, which):
    """A profile of RegNetY on H200 spent half of its step in tensorTransformGeneric; 32 to 32 channels had none."""
    board = load_gpu(gpu)
    found = estimate_pass(conv(**sizes), which, board, Runtime(framework=framework))
    elements = conv(**sizes).N * (56 * 56 * (sizes["C"] + sizes["K"]))
    least_us = 28 + elements * 1.5 / (board.sms * board.boost_clock_hz * 1e-6)
    assert (found.padding_us > least_us) is (which in widened)
    assert found.tensor_cores or gpu != "h200"


@pytest.mark.parametrize(("gpu", "slow"), [("a100", 1.8), ("rtx-4090", 1.8), ("rtx-5090", 1.1), ("t4", None)])
@pytest.mark.parametrize("which", PASSES)
def test_pairs_in_nhwc_are_slow(gpu, slow, which):
    """DLA-46-X-C, the same on four GPUs and by two versions of PyTorch; with 4 to 4 ResNeXts are as fast as others."""
    board, pair = load_gpu(gpu), {"C": 64, "K": 64, "groups": 32, "dtype": Dtype.fp16}
    found = estimate_pass(conv(**pair), which, board, RUNTIME)
    rate = found.flops / found.time_us / (board.sms * board.boost_clock_hz * 1e-6)
    assert rate == pytest.approx(slow, rel=0.2) if slow else rate > 4
    for other in ({**pair, "groups": 16}, {**pair, "layout": "NCHW"}, {**pair, "dtype": Dtype.fp32}):
        assert estimate_pass(conv(**other), which, board, RUNTIME).time_us < found.time_us or not slow


def test_gradients_of_narrow_groups_need_a_multiple_of_32_channels():
    """RegNetX-200MF has 3 to 46 groups of 8, and trains as slowly as wider ones; RegNetZ's have multiples of 4."""
    slow, fast = (
        sum(
            estimate_pass(conv(**sizes, dtype=Dtype.fp16), which, A100, RUNTIME).time_us for which in ("dgrad", "wgrad")
        )
        for sizes in ({"C": 56, "K": 56, "groups": 7}, {"C": 64, "K": 64, "groups": 8})
    )
    assert slow > 1.2 * fast


H200_LAYERS = [  # N, C, H, K, R, stride, groups, dtype, layout, cudnn.benchmark: us of fprop, dgrad and wgrad
    ((16, 384, 64, 384, 3, 1, 48, "bf16", "NHWC", False), (93, 100, 70)),  # groups of 8
    ((256, 320, 28, 320, 3, 2, 20, "bf16", "NHWC", True), (46, 207, 55)),  # of 16, strided
    ((32, 768, 52, 768, 3, 2, 6, "bf16", "NHWC", False), (66, 435, 69)),  # of 128
    ((64, 216, 72, 216, 3, 2, 9, "bf16", "NHWC", False), (939, 1273, 966)),  # of 24, which are widened
    ((128, 408, 28, 408, 3, 2, 17, "tf32", "NHWC", False), (595, 1751, 713)),
    ((256, 64, 28, 64, 3, 1, 32, "fp16", "NHWC", False), (943, 439, 673)),  # pairs
    ((8, 128, 56, 256, 3, 1, 64, "bf16", "NHWC", False), (83, None, 102)),  # 2 to 4
    ((64, 1024, 22, 512, 1, 1, 1, "bf16", "NCHW", False), (142, 181, 156)),  # 484 positions fill no 16 bytes
    ((1, 192, 18, 104, 1, 1, 1, "fp16", "NCHW", False), (5, 4, 7)),  # but a single image
    ((256, 32, 48, 128, 3, 1, 1, "bf16", "NHWC", True), (89, 178, 153)),  # half a step, and half of a tile
    ((256, 56, 28, 56, 3, 1, 1, "bf16", "NHWC", True), (55, 54, 75)),
    ((64, 64, 72, 64, 3, 1, 1, "fp16", "NHWC", True), (64, 57, 63)),
    ((256, 288, 14, 288, 5, 2, 288, "bf16", "NHWC", False), (None, None, 42)),  # depthwise
    ((256, 83, 38, 40, 1, 1, 1, "bf16", "NHWC", False), (74, 76, None)),  # misaligned
    ((32, 3, 224, 48, 3, 2, 1, "fp16", "NCHW", False), (106, None, None)),
]


@pytest.mark.parametrize(("layer", "times"), H200_LAYERS)
def test_layers_that_were_timed_on_an_h200(layer, times):
    """`measured_h200-sxm.csv`, one of each kind; within 1.7 times."""
    N, C, H, K, R, stride, groups, dtype, layout, searched = layer
    one = conv(N=N, C=C, H=H, W=H, K=K, R=R, S=R, pad=(R // 2, R // 2), U=stride, V=stride, groups=groups,
               dtype=Dtype(dtype), layout=layout)  # fmt: skip
    for which, measured in zip(PASSES, times, strict=True):
        if measured is not None:
            found = estimate_pass(one, which, load_gpu("h200"), Runtime(framework="pytorch", cudnn_benchmark=searched))
            assert measured / 1.7 < found.time_us < 1.7 * measured, which


def test_a_larger_batch_of_a_depthwise_gradient_takes_no_less():
    """Heuristics picked a bad kernel at N = 64 and 128, and good ones at 1 and 256; which is not predicted."""
    sizes = {"C": 480, "K": 480, "groups": 480, "H": 14, "W": 14, "R": 5, "S": 5, "pad": (2, 2), "U": 2, "V": 2}
    found = [
        estimate_pass(conv(N=N, dtype=Dtype.bf16, layout="NHWC", **sizes), "wgrad", load_gpu("h200"), RUNTIME)
        for N in range(32, 300, 16)
    ]
    times = [each.time_us for each in found]
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("changes", "gpu", "cudnn", "slow"),
    [
        ({}, "v100", "7.6.3", True), ({}, "t4", "7.6.5", True), ({}, "v100", "8.0.2", False), ({}, "v100", None, False),
        ({"layout": "NCHW"}, "v100", "7.6.3", False), ({"dtype": Dtype.fp32}, "v100", "7.6.3", False),
        ({"C": 1024, "K": 1024}, "v100", "7.6.3", False), ({}, "gtx-1080-ti", "7.6.3", False),
    ],
)  # fmt: skip
def test_wide_groups_in_nhwc_were_slow_before_cudnn_8(changes, gpu, cudnn, slow):
    """47.3 ms forward and 97.0 of wgrad on V100 with cuDNN 7.6.3, 4.11 both in NCHW (pytorch/pytorch#34977)."""
    sizes = {"N": 100, "C": 2048, "K": 2048, "H": 14, "W": 14, "U": 2, "V": 2, "groups": 32, "dtype": Dtype.fp16}
    layer = conv(**(sizes | {"layout": "NHWC"} | changes))
    runtime = Runtime(framework="pytorch", cudnn=None if cudnn is None else Version(cudnn))
    times = [estimate_pass(layer, which, load_gpu(gpu), runtime).time_us for which in PASSES]
    if slow and gpu == "v100":
        assert (times[0], times[2]) == pytest.approx((47_300, 97_000), rel=0.1)
    assert (min(times) > 20_000) == slow


def test_gradients_of_odd_groups_are_slowest():
    fprop, dgrad, wgrad = (estimate_pass(conv(**ODD), which, A100, RUNTIME).time_us for which in PASSES)
    assert min(dgrad, wgrad) > 3 * fprop


@pytest.mark.parametrize("gpu", ["t4", "k80"])
def test_flops_per_clock_and_sm(gpu):
    """From cc 8.0 on all positions of so small groups take less."""
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


BIG_CACHE, NO_CACHE = 10**12, 0


def lowered(which="fprop", l2_bytes=BIG_CACHE, **sizes):
    layer = conv(**{"N": 32, "C": 128, "K": 96, "dtype": Dtype.fp32, "H": 28, "W": 28} | sizes)
    board = SimpleNamespace(l2_bytes=l2_bytes, gpu=A100)
    return transforms(problem_of(layer), which, const.SIMT, board, searched=True)


def kinds(which="fprop", **sizes):
    return {lowering.table for lowering in lowered(which, **sizes)}


@pytest.mark.parametrize(
    ("sizes", "which", "expected"),
    [
        ({"R": 3, "S": 3}, "fprop", {"winograd", "fused winograd"}),
        ({"R": 3, "S": 3}, "dgrad", {"winograd", "fused winograd"}),
        ({"R": 3, "S": 3}, "wgrad", {"winograd"}),
        ({"R": 3, "S": 3, "N": 12}, "fprop", {"winograd", "fused winograd"}),
        ({"R": 3, "S": 3, "N": 11}, "fprop", {"fused winograd"}),  # small batches keep to the fused kernel
        ({"R": 3, "S": 3, "N": 1}, "wgrad", {"winograd"}),
        ({"R": 5, "S": 5, "N": 1}, "fprop", {"winograd", "fft"}),
        ({"R": 3, "S": 3, "DilH": 2, "DilW": 2}, "fprop", set()),
        ({"R": 5, "S": 5, "DilW": 2}, "wgrad", set()),
        ({"R": 3, "S": 5}, "fprop", set()),
        ({"R": 5, "S": 3}, "fprop", {"fft"}),
        ({"R": 4, "S": 4}, "fprop", set()),
        ({"R": 9, "S": 9}, "fprop", {"fft"}),
        ({"R": 10, "S": 10}, "fprop", set()),
        ({"R": 7, "S": 31, "W": 64}, "fprop", {"fft"}),
        ({"R": 7, "S": 32, "W": 64}, "fprop", set()),
        ({"R": 3, "S": 3, "U": 2}, "fprop", set()),
        ({"R": 3, "S": 3, "V": 2}, "fprop", set()),
        ({"R": 3, "S": 3, "groups": 2}, "fprop", set()),
        ({"R": 1, "S": 1}, "fprop", set()),
    ],
)
def test_where_a_transform_applies(sizes, which, expected):
    assert kinds(which, **sizes) == expected


@pytest.mark.parametrize(
    ("which", "gemm"),
    [("fprop", (32 * 49, 96, 16)), ("dgrad", (32 * 49, 128, 12)), ("wgrad", (128, 96, 32 * 49 // 8))],
)
def test_winograd_is_a_product_for_each_of_36_points(which, gemm):
    """28x28 outputs make 7x7 tiles of 4x4; a step takes 8 channels."""
    (found,) = (one for one in lowered(which) if one.table == "winograd")
    assert (found.batch, found.M, found.N, found.steps) == (36, *gemm)
    assert found.extra_kernels == 3


def test_what_l2_cannot_hold_is_written_and_read():
    small, large = (
        next(one for one in lowered(l2_bytes=size) if one.table == "winograd").serial_bytes
        for size in (BIG_CACHE, NO_CACHE)
    )
    tensors = 4 * (32 * 128 * 28 * 28 + 32 * 96 * 28 * 28)
    tiles = 32 * 49
    assert small == tensors
    assert large == tensors + 144 * (1.5 * tiles * 128 + 3 * 128 * 96 + 1.5 * tiles * 96)


@pytest.mark.parametrize(("benchmark", "algorithm"), [(True, "fft"), (None, "fft"), (False, "implicit-gemm")])
def test_fft_is_found_by_a_search(benchmark, algorithm):
    """Without a word on it, the best is taken to be found."""
    layer = conv(N=64, C=256, K=256, H=28, W=28, R=9, S=9, layout="NCHW", dtype=Dtype.fp32)
    runtime = Runtime(tf32=False, framework="pytorch", cudnn_benchmark=benchmark)
    assert estimate_pass(layer, "fprop", load_gpu("v100"), runtime).algorithm == algorithm


def test_a_smaller_batch_takes_no_longer_where_there_is_no_fused_kernel():
    """Kepler: below twelve images the kernel with a workspace is not given up for implicit GEMM."""
    k80 = load_gpu("k80")
    times = [
        estimate_layer(conv(N=N, C=320, K=320, H=64, W=64, dtype=Dtype.fp32, layout="NCHW"), k80, Runtime(), "training")
        for N in (4, 8, 12, 16)
    ]
    assert all(times)
    each = [estimate.time_us for estimate in times if estimate is not None]
    assert each == sorted(each)


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


def test_misaligned_channels_are_padded_or_refused_by_version():
    odd, even = conv(C=62, K=128), conv(C=64, K=128)
    padded, aligned = fprop(odd, load_gpu("v100")), fprop(even, load_gpu("v100"))
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


SMALL_COPIES = {"N": 2, "C": 6, "K": 16, "H": 10, "W": 12}
PIXELS = 2 * 10 * 12


@pytest.mark.parametrize(
    ("gpu", "layout", "which", "c", "pads", "transposes", "padding"),
    [
        # (elements read and written, kernels) of each cause
        ("v100", "NHWC", "fprop", 6, True, (0, 0), (0, 0)),
        ("v100", "NHWC", "fprop", 8, True, (0, 0), (PIXELS * 14 + 9 * 16 * 14, 2)),
        ("v100", "NHWC", "fprop", 8, False, (0, 0), (0, 0)),  # an engine has its tensors padded already
        ("v100", "NCHW", "fprop", 6, True, (PIXELS * 12 + PIXELS * 32, 2), (0, 0)),
        ("v100", "NCHW", "wgrad", 6, True, (PIXELS * 12 + PIXELS * 32, 2), (0, 0)),
        ("v100", "NCHW", "dgrad", 6, True, (PIXELS * 12 + PIXELS * 32 + 9 * 16 * 12, 3), (0, 0)),
        ("v100", "NCHW", "fprop", 8, True, (PIXELS * 14 + PIXELS * 32, 2), (9 * 16 * 14, 1)),
        ("v100", "NCHW", "fprop", 8, False, (PIXELS * 14 + PIXELS * 32, 2), (0, 0)),
        ("a100", "NHWC", "fprop", 8, True, (0, 0), (PIXELS * 6 + 9 * 16 * 6, 2)),  # L2 holds what is written
    ],
)
def test_what_is_copied(gpu, layout, which, c, pads, transposes, padding):
    problem, board = problem_of(conv(**SMALL_COPIES, layout=layout)), board_of(load_gpu(gpu))
    found = copies(problem, which, c, 16, pads=pads, board=board)
    kernel_us = 5.0 if gpu == "v100" else 2.0
    expected = [
        2 * elements * board.copy_us_per_byte + kernel_us * kernels for elements, kernels in (transposes, padding)
    ]
    assert [found.transposes_us, found.padding_us] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("gpu", "sizes", "dtype", "us"),
    [
        # traces of PyTorch's profiler: AlexNet on A100, x and weights of three layers; a ViT's patch embedding on H100
        ("a100", {"N": 128, "C": 192, "K": 384, "H": 13, "W": 13}, "tf32", 27 + 10),
        ("a100", {"N": 128, "C": 384, "K": 256, "H": 13, "W": 13}, "tf32", 53 + 13),
        ("a100", {"N": 128, "C": 256, "K": 256, "H": 13, "W": 13}, "tf32", 24 + 10),
        ("h100", {"N": 4, "C": 3, "K": 768, "H": 224, "W": 224, "R": 16, "S": 16, "U": 16, "V": 16}, "bf16", 23.1),
    ],
)
def test_transposes_take_what_traces_say(gpu, sizes, dtype, us):
    layer = conv(**sizes, dtype=Dtype(dtype), layout="NCHW")
    if layer.R == 16:
        layer = with_output(replace(layer, PadH=0, PadW=0, PadH_end=0, PadW_end=0))
    assert fprop(layer, load_gpu(gpu), Runtime()).transposes_us == pytest.approx(us, rel=0.2)


def test_a_transpose_moves_whole_tiles_of_one_image():
    """Three channels take as long as 32, and 33 as 64."""
    board = board_of(A100)
    times = [
        copies(problem_of(conv(N=16, C=c, K=64, H=64, W=64, layout="NCHW")), "fprop", c, 64, pads=True, board=board)
        for c in (3, 32, 33, 64)
    ]
    three, narrow, more, wide = (each.transposes_us for each in times)
    assert three == pytest.approx(narrow, rel=0.01)
    assert more == pytest.approx(wide, rel=0.01)
    assert more > 1.5 * narrow
    layer = conv(N=64, C=256, K=256, H=64, W=64, layout="NCHW")
    times = {}
    for gpu in ("a100", "h100"):
        times[gpu] = [fprop(replace(layer, dtype=dtype), load_gpu(gpu)) for dtype in (Dtype.fp16, Dtype.tf32)]
    half, twice = times["a100"]
    assert twice.transposes_us == pytest.approx(2 * half.transposes_us, rel=0.05)
    half, twice = times["h100"]  # whose transposes of 16 bits move fewer bytes at once
    assert 1.5 * half.transposes_us < twice.transposes_us < 1.8 * half.transposes_us


@pytest.mark.parametrize(
    ("gpu", "sizes", "transposed"),
    [
        ("a100", {"dtype": Dtype.fp32}, False),
        ("a100", {"dtype": Dtype.fp16}, True),
        ("h100", {"dtype": Dtype.fp16}, False),
        ("h100", {"dtype": Dtype.bf16, "U": 2, "V": 2}, True),  # traces of ResNet-50
        ("a100", {"dtype": Dtype.fp32, "U": 2, "V": 2}, True),
        ("h100", {"dtype": Dtype.fp16, "PadD": 1}, True),
        ("h100", {"dtype": Dtype.fp16, "R": 3, "S": 3}, True),
        ("h100", {"dtype": Dtype.fp16, "groups": 2}, True),
        ("v100", {"dtype": Dtype.fp16}, True),
    ],
)
def test_a_1x1_may_be_a_product_as_it_stands(gpu, sizes, transposed):
    layer = conv(**{"N": 64, "C": 256, "K": 256, "H": 56, "W": 56, "R": 1, "S": 1, "layout": "NCHW"} | sizes)
    found = fprop(layer, load_gpu(gpu), Runtime(tf32=True))
    assert found.tensor_cores
    assert (found.transposes_us > 0) is transposed


def test_positions_align_the_loads_of_such_a_product():
    """512 to 2048 channels at 7x7 take twice the time of 512 to 128 at 28x28 on H200: rows of 49 elements."""
    times = [
        fprop(conv(N=1, C=512, K=2048, H=h, W=h, R=1, S=1, layout="NCHW"), load_gpu("h200")).time_us for h in (7, 8)
    ]
    assert times[0] > 1.2 * times[1]


@pytest.mark.parametrize(
    ("N", "C", "K", "size", "dtype", "us", "turned"),
    [
        (8, 1680, 302, 7, Dtype.fp16, 28.3, True), (8, 1404, 257, 14, Dtype.fp16, 28.5, False),
        (128, 624, 128, 14, Dtype.bf16, 27.5, False), (256, 24, 24, 190, Dtype.fp16, 646.5, False),
        (256, 2048, 512, 7, Dtype.bf16, None, True),
    ],
)  # fmt: skip
def test_such_a_product_with_narrow_loads_competes_with_turning_it(N, C, K, size, dtype, us, turned):
    """Fprop on H200; where turned, as ResNet-50's are."""
    layer = conv(N=N, C=C, K=K, H=size, W=size, R=1, S=1, layout="NCHW", dtype=dtype)
    found = fprop(layer, load_gpu("h200"))
    assert (found.transposes_us > 0) is turned
    assert us is None or found.time_us == pytest.approx(us, rel=0.27)


PATCHES = {"C": 3, "H": 224, "W": 224, "K": 768, "R": 16, "S": 16, "U": 16, "V": 16, "layout": "NCHW"}


@pytest.mark.parametrize(
    ("N", "us"),
    [(4, 121.3), (128, 1200.0)],  # the trace, transposes included, and a report
)
def test_patch_embeddings_walk_their_taps(N, us):
    layer = with_output(replace(conv(N=N, **PATCHES, dtype=Dtype.bf16), PadH=0, PadW=0, PadH_end=0, PadW_end=0))
    found = fprop(layer, load_gpu("h100"))
    assert found.main_loop_steps == 256
    assert found.time_us == pytest.approx(us, rel=0.15)


@pytest.mark.parametrize("gpu", ["a100", "rtx-4090", "h100", "b200"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_no_layout_and_no_fourth_channel_makes_a_patch_embedding_fast(gpu, layout):
    """Nobody timed either, and both would be promised."""
    three, four = (
        fprop(
            with_output(
                replace(conv(N=64, **{**PATCHES, "C": c}), layout=layout, PadH=0, PadW=0, PadH_end=0, PadW_end=0)
            ),
            load_gpu(gpu),
        )
        for c in (3, 4)
    )
    assert three.main_loop_steps == four.main_loop_steps == 256
    assert four.time_us > 0.7 * three.time_us


def test_volumes_with_groups_run_a_kernel_per_group():
    """281 us in 32 kernels on H200 (TileOPs); an image's groups take one."""
    layer = with_output(
        replace(conv(N=1, C=64, K=128, H=28, W=28, groups=32, layout="NCHW"), dims=3, D=8, T=3, PadD=1, PadD_end=1)
    )
    assert fprop(layer, load_gpu("h200")).time_us == pytest.approx(281.0, rel=0.15)
    assert fprop(layer, load_gpu("v100")).time_us < 100  # not timed
    image = conv(N=1, C=128, K=256, H=28, W=28, groups=32, layout="NCHW")
    assert fprop(image, load_gpu("h200")).time_us == pytest.approx(19.0, rel=0.15)


def test_narrow_groups_in_nchw_have_the_direct_kernel_alone():
    for width, algorithm in ((4, "direct"), (16, "direct"), (64, "implicit-gemm")):
        layer = conv(N=64, C=8 * width, K=8 * width, H=28, W=28, groups=8, layout="NCHW")
        assert fprop(layer, A100).algorithm == algorithm
        assert fprop(replace(layer, layout="NHWC"), A100).algorithm == "implicit-gemm"


@pytest.mark.parametrize(("cudnn", "tensor_cores"), [("7.6.2", False), ("7.6.3", True), (None, True)])
def test_the_release_that_pads(cudnn, tensor_cores):
    runtime = Runtime(cudnn=None if cudnn is None else Version(cudnn))
    assert fprop(conv(C=62, K=128), load_gpu("v100"), runtime).tensor_cores is tensor_cores


@pytest.mark.parametrize(("C", "loads"), [(60, 1.05), (62, 1.12)])
def test_narrow_vectors_are_loaded_where_that_is_less_than_a_copy(C, loads):
    """Large tensors would take longer to copy; CUTLASS' prices of 8, 4 and 2 bytes bound what is left."""
    odd, even = (fprop(conv(N=256, H=56, W=56, C=c, K=256)) for c in (C, 64))
    assert odd.padding_us == 0
    assert 1 < odd.time_us / even.time_us <= loads
    assert fprop(conv(N=1, H=7, W=7, C=61, K=512, dtype=Dtype.int8), A100).padding_us > 0  # no such kernels


def test_a_copy_that_l2_holds_is_not_written_out():
    """Six tenths of an A100's 40 MiB: 12 x 2^20 halves."""
    board = board_of(A100)
    small, large = (
        copies(problem_of(conv(N=n, C=160, K=8, H=256, W=256, layout="NCHW")), "fprop", 160, 8, pads=True, board=board)
        for n in (1, 2)
    )
    elements = 160 * 256 * 256
    rate = 13.0 * board.clocks_per_us  # bytes per us, read and written, where L2 holds both
    weights_us = 2.0 + 2 * 2 * 8 * 160 * 32 / rate  # 9 taps fill a tile of 32
    assert small.transposes_us == pytest.approx(2 * 2 * elements / rate + 2.0 + weights_us)
    assert large.transposes_us == pytest.approx(2 * 2 * 2 * elements * board.copy_us_per_byte + 2.0 + weights_us)


@pytest.mark.parametrize(
    ("gpu", "batch", "filters", "biased_us"),
    [
        ("h100-pcie", 100, 96, 1200),
        ("h100-pcie", 256, 96, 2965),
        ("rtx-a6000", 256, 96, 14800),
        ("a100", 128, 64, 1221),
    ],
)
def test_alexnets_first_layer_takes_what_it_was_timed_with(gpu, batch, filters, biased_us):
    """KernelBench, with what the bias adds; A100: a trace of PyTorch's profiler, both kernels."""
    layer = conv(N=batch, C=3, H=224, W=224, K=filters, R=11, S=11, U=4, V=4, pad=(2, 2), dtype=Dtype.fp32)
    layer = replace(layer, layout="NCHW", bias=True)
    eager = Runtime(framework="pytorch", cudnn_benchmark=False)
    assert fprop(layer, load_gpu(gpu), eager).time_us == pytest.approx(biased_us, rel=0.05)


def test_transforms_that_do_not_fit_are_left_to_others() -> None:
    """Beside the layer's own tensors, in the memory of the GPU."""
    layer = conv(N=512, C=64, K=64, H=112, W=112, dtype=Dtype.fp32, layout="NCHW")
    k80 = load_gpu("k80")
    assert estimate_pass(layer, "fprop", k80, RUNTIME).algorithm == "winograd"
    large = with_output(replace(layer, N=2048))
    one = estimate_pass(large, "fprop", k80, RUNTIME)
    assert (one.algorithm, one.workspace_bytes) == ("implicit-gemm", 0)
