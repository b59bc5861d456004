"""Depthwise layers: whose kernel PyTorch's dispatch takes, what each takes, and what holds for all of them."""

import random
from math import exp, isfinite, log, prod

import pytest
from convolutions import RUNTIME, conv
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from convlint.estimate import estimate_layer, estimate_pass, time_us
from convlint.estimate.depthwise import asks_cudnn
from convlint.estimate.results import problem_of
from convlint.gpus.gpu import gpu_names, load_gpu
from convlint.model.layer import PASSES, ConvLayer, Dtype, with_output
from convlint.model.runtime import Runtime, Version


@pytest.mark.parametrize(("gpu", "bound"), [("l4", "memory"), ("a100", "compute")])
def test_it_loses_nothing_to_tiles(gpu, bound):
    """Bound by instructions where a GPU has much bandwidth for each SM."""
    for which in PASSES:
        estimate = estimate_pass(conv(C=96, K=96, groups=96), which, load_gpu(gpu), RUNTIME)
        assert estimate.algorithm == "direct"
        assert not estimate.tensor_cores
        assert (estimate.bound_by if which == "fprop" else bound, estimate.tile) == (bound, (1, 1))
        assert estimate.lost_to_tiles_us == estimate.lost_to_waves_us == 0
        assert estimate.unquantized_us == estimate.time_us


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


def asked_of(layer, *, volta=True, old=False):
    return asks_cudnn(problem_of(layer), volta=volta, old=old)


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
    if small is None or large is None:
        return
    asked = {asked_of(depthwise(**each)) for each in (sizes, sizes | {grows: sizes[grows] + by})}
    assert small.time_us > 0
    assert small.time_us <= large.time_us * (1 + 1e-9) or len(asked) > 1  # cuDNN takes over from PyTorch's kernel


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
    """MobileNet's layers. A report of 2017 has dgrad at 2.7 and wgrad at 11.9 times fprop: later kernels reduce by
    warps, and steps that were published of whole networks leave no room for that (tests/test_published_steps.py)."""
    shapes = [(32, 112, 1), (64, 112, 2), (128, 56, 1), (128, 56, 2), (256, 28, 1), (256, 28, 2)]
    shapes += [(512, 14, 1)] * 5 + [(512, 14, 2), (1024, 7, 1)]
    layers = [depthwise(C=C, N=32, H=H, W=H, U=U, V=U) for C, H, U in shapes]
    fprop, dgrad, wgrad = (sum(us(layer, "a100", which) for layer in layers) for which in PASSES)
    assert 1.2 <= dgrad / fprop <= 2.0
    assert 1.8 <= wgrad / fprop <= 3.0


# Of PyTorch's kernels in NCHW over cuDNN's in NHWC, bf16: pytorch/pytorch#91735.
GRID = [(N, C, H, R, U) for N in (1, 4, 16, 64) for C in (32, 128, 512) for H in (7, 14, 28, 56, 112)
        for R in (1, 3, 5) for U in (1, 2)]  # fmt: skip


@pytest.mark.parametrize(
    ("gpu", "passes", "mean", "least", "most"),
    [
        ("a100", ["fprop"], 1.227, 0.64, 3.90),
        ("a100", ["dgrad", "wgrad"], 1.297, 0.70, 5.75),
        ("rtx-a6000", ["fprop"], 1.216, 0.67, 3.69),
        ("rtx-a6000", ["dgrad", "wgrad"], 1.234, 0.69, 4.54),
    ],
)
def test_native_over_cudnn_as_published(gpu, passes, mean, least, most):
    ratios = []
    for N, C, H, R, U in GRID:
        layer = depthwise(C=C, N=N, H=H, W=H, R=R, S=R, U=U, V=U, dtype=Dtype.bf16)
        times = [sum(us(replace(layer, layout=layout), gpu, which) for which in passes) for layout in ("NCHW", "NHWC")]
        ratios.append(times[0] / times[1])
    assert exp(sum(map(log, ratios)) / len(ratios)) == pytest.approx(mean, rel=0.1)
    assert (min(ratios), max(ratios)) == pytest.approx((least, most), rel=0.25)


def test_pytorchs_own_kernel_runs_what_cudnn_is_not_asked_for():
    for gpu in ("a100", "h100"):
        for dtype in (Dtype.fp32, Dtype.bf16):
            assert us(depthwise(dtype=dtype), gpu) > us(depthwise(dtype=dtype, layout="NHWC"), gpu)
        half = depthwise(dtype=Dtype.fp16)
        in_nhwc = us(replace(half, layout="NHWC"), gpu)
        assert us(half, gpu) < us(replace(half, dtype=Dtype.bf16), gpu)
        # MobileNetV2's layers took 1.3 to 1.5 times as long in NCHW on H100.
        assert us(half, gpu) == pytest.approx(in_nhwc * (1.45 if gpu == "h100" else 1.0), rel=0.08)
        narrow = depthwise(C=31, dtype=Dtype.fp16)
        assert us(narrow, gpu) == us(replace(narrow, dtype=Dtype.bf16), gpu) > us(replace(narrow, layout="NHWC"), gpu)
        assert us(depthwise(), gpu, runtime=Runtime()) == us(depthwise(), gpu)


BANDS = [  # N, C, H, W, R, S, dilation, dtype, us of fprop, dgrad and wgrad on H200 and H100, NHWC
    (128, 200, 7, 7, 5, 1, 1, "bf16", 41.8, 22.8, 43.3),
    (256, 480, 7, 7, 5, 1, 1, "tf32", 206.1, 82.8, 264.3),
    (32, 156, 14, 14, 1, 5, 1, "tf32", 29.1, 11.3, 45.0),
    (8, 512, 1, 2048, 1, 3, 2, "bf16", 271.4, 267.1, 264.4),
    (16, 512, 1, 2048, 1, 3, 32, "fp16", 532.6, 510.7, 567.2),
]


@pytest.mark.parametrize("row", BANDS)
def test_filters_that_are_no_squares_are_slow_in_nhwc_on_hopper(row):
    N, C, H, W, R, S, dilation, dtype, *measured = row
    layer = depthwise(C=C, N=N, H=H, W=W, R=R, S=S, DilW=dilation, layout="NHWC", dtype=Dtype(dtype))
    for which, expected in zip(PASSES, measured, strict=True):
        assert us(layer, "h200", which) == pytest.approx(expected, rel=0.75 if expected < 20 else 0.4)
        if H > 1:
            square = depthwise(C=C, N=N, H=H, W=W, R=5, S=5, layout="NHWC", dtype=Dtype(dtype))
            assert us(square, "h200", which) < us(layer, "h200", which)


@pytest.mark.parametrize("gpu", ["rtx-3090", "rtx-4090", "rtx-5090"])
def test_short_filters_that_are_no_squares_are_slow_in_nhwc_elsewhere(gpu):
    """GhostNetV2 infers in NHWC at 8 to 13 clocks of an SM for an output, InceptionNeXt (1x11) as fast as others."""
    board = load_gpu(gpu)
    for R, S, slow in ((1, 5, True), (5, 1, True), (1, 11, False), (11, 1, False), (5, 5, False)):
        layer = depthwise(C=160, N=256, H=28, W=28, R=R, S=S, layout="NHWC", dtype=Dtype.fp16)
        clocks = us(layer, gpu) * board.sms * board.boost_clock_hz * 1e-6 / (256 * 160 * 28 * 28)
        assert (clocks > 7) is slow
        assert us(replace(layer, layout="NCHW"), gpu) < us(layer, gpu) or not slow


@pytest.mark.parametrize(("op", "framework"), [("conv_transpose", "pytorch"), ("conv", "jax"), ("conv", "onnxruntime")])
def test_such_filters_are_as_slow_in_nchw_where_cudnn_runs_them_there(op, framework):
    """It was timed in NHWC alone, and nothing says that another layout is faster."""
    row = depthwise(op=op, N=16, C=256, H=1, W=1024, R=1, S=12, dims=1, dtype=Dtype.fp16)
    runtime = Runtime(framework=framework)
    for which in PASSES:
        nchw, nhwc = (us(replace(row, layout=layout), "h100", which, runtime) for layout in ("NCHW", "NHWC"))
        assert nchw == nhwc


@pytest.mark.parametrize("dtype", [Dtype.bf16, Dtype.tf32])
def test_more_taps_of_such_filters_never_take_less(dtype):
    """So many that a square of them would take longer take as long as that."""
    for which in PASSES:
        times = [
            us(depthwise(N=16, C=256, H=1, W=1024, R=1, S=taps, layout="NHWC", dtype=dtype), "h100", which)
            for taps in (3, 5, 31, 127, 511)
        ]
        assert times == sorted(times)
        assert times[-1] > 1.5 * times[0]
        row = {"C": 256, "N": 16, "H": 1, "W": 2048, "R": 1, "S": 127, "layout": "NHWC", "dtype": dtype}
        strided, full = (us(depthwise(**row, V=step), "h100", which) for step in (2, 1))
        assert strided <= full


def test_rows_of_three_taps_run_in_cudnn_on_hopper():
    """200 us in NCHW and fp16 (pytorch/pytorch#175280); in bf16 PyTorch does not ask cuDNN."""
    row = depthwise(N=3072, C=128, H=1, W=202, R=1, S=3, dims=1, dtype=Dtype.fp16)
    assert us(row, "h100") == pytest.approx(200, rel=0.1)
    assert us(replace(row, dtype=Dtype.bf16), "h100") > 700


HALF = {"dtype": Dtype.fp16}
STRIDED = {"dtype": Dtype.fp16, "U": 2, "V": 2}
ROW = {"H": 1, "W": 512, "R": 1, "dims": 1, "dtype": Dtype.fp16}


@pytest.mark.parametrize(
    ("sizes", "asked", "before"),
    [
        ({}, False, False), ({"layout": "NHWC"}, True, True), ({"dtype": Dtype.bf16}, False, False),
        (HALF, True, True), ({**HALF, "C": 31}, False, False), ({**HALF, "C": 32, "H": 7, "W": 7}, True, False),
        ({**HALF, "W": 6}, False, False), ({**HALF, "H": 6}, True, False), ({**HALF, "V": 2}, False, False),
        ({**HALF, "R": 5, "S": 5}, True, False), ({**HALF, "R": 7, "S": 7}, False, False),
        ({**HALF, "R": 3, "S": 1}, False, False), ({**HALF, "DilH": 2, "DilW": 2}, False, False),
        ({**HALF, "multiplier": 2}, True, True), ({**HALF, "U": 3, "V": 3}, False, False),
        (STRIDED, False, False), ({**STRIDED, "C": 256}, True, True), ({**STRIDED, "C": 256, "W": 27}, False, False),
        ({**STRIDED, "C": 512, "W": 7}, True, False), ({**STRIDED, "N": 1}, True, False),
        ({**STRIDED, "N": 1, "R": 1, "S": 1}, False, False),
        ({**STRIDED, "N": 1, "R": 1, "S": 1, "W": 28}, True, False),
        ({**STRIDED, "N": 16, "R": 1, "S": 1, "W": 7}, True, False),
        ({**STRIDED, "N": 17, "R": 1, "S": 1, "W": 7}, False, False),
        ({**STRIDED, "N": 128, "C": 1024, "W": 7, "H": 7}, True, True),
        (ROW, True, False), ({**ROW, "V": 2}, False, False),
        ({**HALF, "op": "conv_transpose"}, True, True), ({"op": "conv_transpose"}, True, True),
        ({**HALF, "dims": 3, "D": 8, "T": 3}, False, False),
        ({**HALF, "dims": 3, "D": 8, "T": 3, "layout": "NHWC"}, True, True),
    ],
)  # fmt: skip
def test_the_dispatch_is_pytorchs(sizes, asked, before):
    """use_cudnn_depthwise of Convolution.cpp, and what it was with cuDNN before 8.2."""
    layer = depthwise(**sizes)
    assert (asked_of(layer), asked_of(layer, old=True)) == (asked, before)
    in_nchw = layer.layout == "NCHW" and layer.op == "conv"
    assert asked_of(layer, volta=False) == (asked and not in_nchw)


def test_versions_with_the_older_test():
    layer = depthwise(dtype=Dtype.fp16, R=5, S=5, N=128)
    now = us(layer, "a100")
    for changes in ({"cudnn": "8.1.1"}, {"framework_version": "1.10.2"}):
        versions = {name: Version(text) for name, text in changes.items()}
        then = us(layer, "a100", runtime=Runtime(framework="pytorch", **versions))
        assert now < then == us(replace(layer, dtype=Dtype.bf16), "a100")
    for changes in ({"cudnn": "8.2"}, {"framework_version": "1.11"}):
        versions = {name: Version(text) for name, text in changes.items()}
        assert us(layer, "a100", runtime=Runtime(framework="pytorch", **versions)) == now


# (C, D, H), stride of H and W: ms of all passes of 3x3x3 in fp32 on V100, N = 8 (pytorch/pytorch#40801)
@pytest.mark.parametrize(
    ("C", "D", "H", "stride", "ms"),
    [
        (64, 32, 56, 1, 14.221), (128, 32, 28, 1, 7.206), (256, 32, 14, 1, 3.994), (54, 13, 40, 1, 2.575),
        (54, 16, 56, 1, 6.228), (54, 16, 78, 2, 10.269), (108, 16, 39, 2, 5.276), (216, 16, 20, 2, 2.978),
    ],
)  # fmt: skip
def test_volumes_on_v100(C, D, H, stride, ms):
    layer = depthwise(C=C, N=8, D=D, H=H, W=H, dims=3, T=3, PadD=1, PadD_end=1, U=stride, V=stride)
    assert time_us(layer, load_gpu("v100"), PYTORCH, "training") == pytest.approx(ms * 1e3, rel=0.1)


def test_a_volume_on_a100():
    """0.805 ms: pytorch/pytorch#110885."""
    layer = depthwise(C=64, N=1, D=15, H=75, W=315, dims=3, T=3, PadD=1, PadD_end=1, dtype=Dtype.fp16)
    assert us(layer, "a100") == pytest.approx(805, rel=0.15)
    for runtime, layout in ((PYTORCH, "NHWC"), (JAX, "NCHW"), (JAX, "NHWC")):  # cuDNN's, which is taken to be no faster
        assert us(replace(layer, layout=layout), "a100", runtime=runtime) == us(layer, "a100")


@pytest.mark.parametrize("dtype", [Dtype.bf16, Dtype.fp16])
def test_transposed_layers_are_cudnns_in_both_layouts(dtype):
    layer = depthwise(op="conv_transpose", U=2, V=2, dtype=dtype)
    for which in PASSES:
        assert us(layer, "a100", which) == us(replace(layer, layout="NHWC"), "a100", which)


def test_few_warps_wait_for_their_loads():
    """A weight gradient has a warp for each image, up to eight: one image takes as long as eight."""
    times = [us(depthwise(C=32, N=N, H=112, W=112), "a100", "wgrad") for N in (1, 8, 16)]
    assert times[1] < 1.5 * times[0] < 1.5 * times[2]
    assert times[0] > 2 * us(depthwise(C=32, N=1, H=112, W=112, layout="NHWC"), "a100", "wgrad")


def test_laws_of_random_layers():
    """Stride 2 takes no longer than stride 1 on the same input, fp16 no longer than fp32, bf16 in NHWC what fp16 does.

    But for TensorRT on V100, whose strided kernels were timed, and for PyTorch on H100, of which all were.
    """
    rng, compared = random.Random(33), 0
    for _ in range(1500):
        gpu, layout = load_gpu(rng.choice(gpu_names())), rng.choice(("NCHW", "NHWC"))
        H, R, mode = (
            rng.choice((7, 14, 28, 56, 112)),
            rng.choice((1, 3, 3, 5, 7)),
            rng.choice(("inference", "training")),
        )
        sizes = {
            "C": rng.choice((16, 32, 96, 128, 240, 256, 512, 1024)), "multiplier": rng.choice((1, 1, 1, 2)),
            "N": rng.choice((1, 2, 8, 32, 128)), "H": H, "W": H, "R": R, "S": R, "layout": layout,
        }  # fmt: skip
        if rng.random() < 0.2:
            sizes |= {"H": 1, "W": rng.choice((64, 1024)), "R": 1, "dims": 1}
        elif rng.random() < 0.2:
            sizes |= {"D": 8, "T": 3, "PadD": 1, "PadD_end": 1, "dims": 3}
        runtime = rng.choice((replace(PYTORCH, tf32=False), replace(JAX, tf32=False), replace(TENSORRT, tf32=False)))
        capability, engines = gpu.compute_capability, runtime.framework == "tensorrt"
        timed_strides = str(capability) == "7.0" if engines else "9.0" <= capability < "12.0"
        volume = sizes.get("dims") == 3 and runtime.framework == "tensorrt"  # kernels of groups
        times = {}
        for dtype in (Dtype.fp32, Dtype.fp16, Dtype.bf16):
            for U in (1, 2):
                layer = depthwise(**sizes, U=1 if sizes["H"] == 1 else U, V=U, dtype=dtype)
                times[dtype, U] = time_us(layer, gpu, runtime, mode)
            once, twice = times[dtype, 1], times[dtype, 2]
            if once is None or twice is None or timed_strides or volume:
                continue
            assert twice <= 1.05 * once
            compared += 1
        for U in (1, 2):
            half, full, brain = times[Dtype.fp16, U], times[Dtype.fp32, U], times[Dtype.bf16, U]
            if half and full and not timed_strides and not volume:
                assert half <= 1.1 * full
            if half and brain and layout == "NHWC" and gpu.compute_capability >= "8.0":
                assert half == brain
    assert compared > 2000


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
    assert us(dilated, "a100", "wgrad") > 1.2 * us(plain, "a100", "wgrad")
    for layout, runtime in (("NHWC", PYTORCH), ("NCHW", JAX)):  # cuDNN's kernels in both
        times = [us(replace(layer, layout=layout), "a100", "wgrad", runtime) for layer in (plain, dilated)]
        assert times[0] == times[1]


@pytest.mark.parametrize("gpu", ["k80", "m60", "p100", "gtx-1080-ti"])
def test_channels_last_is_no_faster_on_gpus_where_nobody_timed_it(gpu):
    """The kernels for it that were timed ran on A100 and A6000."""
    nchw, nhwc = (
        time_us(conv(N=64, C=32, K=32, H=112, W=112, groups=32, layout=layout), load_gpu(gpu), Runtime(), "training")
        for layout in ("NCHW", "NHWC")
    )
    assert nhwc >= nchw
