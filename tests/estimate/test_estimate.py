"""Laws that every estimate must obey, over random layers, GPUs and dtypes."""

from math import isfinite

import pytest
from convolutions import RUNTIME, conv
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from convlint.estimate import compute_dtype, estimate_layer, estimate_pass, nearest_full_waves, time_us, unquantized_us
from convlint.estimate.board import board_of
from convlint.gpus.gpu import gpu_names, load_gpu
from convlint.model.layer import PASSES, ConvLayer, Dtype, with_output
from convlint.model.runtime import Runtime

pytestmark = [pytest.mark.slow, pytest.mark.contract]

TENSOR_GPUS = ("v100", "t4", "a100", "rtx-3090", "rtx-4090", "l4", "h100")
GPUS = st.sampled_from(gpu_names()).map(load_gpu)
BIG_GPUS = st.sampled_from(TENSOR_GPUS).map(load_gpu)
OLDER_BIG_GPUS = st.sampled_from(["v100", "t4"]).map(load_gpu)
ANY_SIZE = st.integers(1, 2**31)
CHANNELS = st.integers(1, 2048)


@st.composite
def layers(draw: st.DrawFn, **fixed: object) -> ConvLayer:
    taps = draw(st.sampled_from([1, 3, 5, 7]))
    stride = draw(st.sampled_from([1, 1, 2, 3]))
    drawn = {
        "N": draw(st.integers(1, 256)), "C": draw(CHANNELS), "K": draw(CHANNELS), "H": draw(st.integers(7, 120)),
        "W": draw(st.integers(7, 120)), "R": taps, "S": taps, "U": stride, "V": stride,
        "dtype": draw(st.sampled_from(Dtype)),
    }  # fmt: skip
    return conv(**(drawn | fixed))


@given(layers(), GPUS, st.sampled_from(PASSES), st.sampled_from(["NHWC", "NCHW", "auto"]))
@settings(max_examples=400, deadline=None)
def test_every_estimate_is_coherent(layer, gpu, which, layout):
    estimate = estimate_pass(replace(layer, layout=layout), which, gpu, RUNTIME)
    if estimate is None:
        assert compute_dtype(layer.dtype, gpu, RUNTIME) in (Dtype.bf16, Dtype.fp8, Dtype.int8, Dtype.fp64)
        return
    assert isfinite(estimate.time_us)
    assert estimate.time_us > estimate.overhead_us > 0
    assert 0 < estimate.tile_efficiency <= 1
    assert 0 < estimate.wave_efficiency <= 1
    assert 0 <= estimate.lost_to_tiles_us < estimate.time_us
    assert 0 <= estimate.lost_to_waves_us < estimate.time_us
    assert 0 < estimate.unquantized_us <= estimate.time_us
    lost_to_either = max(estimate.lost_to_tiles_us, estimate.lost_to_waves_us)
    assert estimate.unquantized_us <= estimate.time_us - lost_to_either + 1e-9 * estimate.time_us
    assert estimate.peak_share > 0
    assert 0 <= estimate.last_wave_tiles < gpu.sms * estimate.resident_tiles
    assert estimate.tiles >= 1
    assert estimate.split_k >= 1
    assert estimate.main_loop_steps >= 1
    assert estimate.tflops * estimate.time_us * 1e6 == estimate.flops or (
        abs(estimate.tflops * estimate.time_us * 1e6 / estimate.flops - 1) < 1e-9
    )
    if estimate.last_wave_tiles == 0:
        assert estimate.wave_efficiency == 1


@given(layers(dtype=Dtype.fp16, layout="NHWC"), BIG_GPUS)
@settings(max_examples=150, deadline=None)
def test_useful_rate_stays_below_the_peak(layer, gpu):
    for which in PASSES:
        estimate = estimate_pass(layer, which, gpu, RUNTIME)
        assert estimate.tflops * 1e12 < gpu.peak_flops["fp16_tensor_fp32acc"]


@given(ANY_SIZE, ANY_SIZE, ANY_SIZE, ANY_SIZE, ANY_SIZE, st.sampled_from([1, 3, 4096, 2**31 - 1]), GPUS,
       st.sampled_from(PASSES), st.sampled_from([Dtype.fp16, Dtype.fp32, Dtype.int8]))  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_sizes_up_to_2_to_the_31_neither_overflow_nor_raise(n, c, h, w, k, taps, gpu, which, dtype):
    layer = conv(N=n, C=c, H=h, W=w, K=k, R=taps, S=taps, dtype=dtype)
    estimate = estimate_pass(layer, which, gpu, RUNTIME)
    assert estimate is None or isfinite(estimate.time_us)


FEW, WIDE = st.integers(1, 16), st.sampled_from([256, 512, 1024])
PAIRS = st.lists(FEW, min_size=2, max_size=2, unique=True).map(sorted)


@pytest.mark.parametrize(
    ("which", "pair", "other", "sizes"),
    [
        # Fact 9, Figs. 6, 7 and 9: from the smaller value to the larger one, at full tiles and waves
        ("fprop", PAIRS, WIDE, lambda few, k: {"C": 64 * few, "K": k, "R": 1, "S": 1}),
        (
            "fprop",
            st.sampled_from([(1, 3), (3, 5), (1, 5), (5, 7)]),
            FEW,
            lambda r, c: {"C": 64 * c, "K": 256, "R": r, "S": r},
        ),
        ("dgrad", PAIRS, WIDE, lambda few, c: {"C": c, "K": 64 * few}),
        (
            "fprop",
            st.sampled_from([(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]),
            FEW,
            lambda few, c: {"C": 64 * c, "K": 256 * few},
        ),
    ],
    ids=["C", "filter", "K of dgrad", "K in whole tiles"],
)
@given(data=st.data(), gpu=BIG_GPUS, waves=st.integers(1, 6))
@settings(max_examples=200, deadline=None)
def test_efficiency_grows_at_full_tiles(which, pair, other, sizes, data, gpu, waves):
    values, fixed = data.draw(pair), data.draw(other)
    small, large = (
        estimate_pass(conv(N=gpu.sms * 4 * waves, H=16, W=16, **sizes(value, fixed)), which, gpu, RUNTIME)
        for value in values
    )
    assert large.tflops >= small.tflops * (1 - 1e-9)


@given(layers(dtype=Dtype.fp16), BIG_GPUS, st.sampled_from(PASSES))
@settings(max_examples=300, deadline=None)
def test_nchw_is_never_faster_on_tensor_cores(layer, gpu, which):
    """Fact 11; before cc 8.0 small layers may run on CUDA cores in NCHW, as fp32 does, with nothing transposed.

    From cc 9.0 on a 1x1 is a product as it stands, whose positions align its loads where channels do not (256 to 250
    channels took 12 us in NCHW and 26 in NHWC on H100), and transposes of few channels pad them in passing.
    """
    aligned = layer.C % 8 == 0 == layer.K % 8 and max(layer.R, layer.S, layer.T) > 1
    assume(gpu.compute_capability < "9.0" or aligned)
    nchw, nhwc = (estimate_pass(replace(layer, layout=layout), which, gpu, RUNTIME) for layout in ("NCHW", "NHWC"))
    if nchw.tensor_cores:
        assert nchw.time_us >= nhwc.time_us * (1 - 1e-12)  # sums in another order


@given(OLDER_BIG_GPUS, st.integers(1, 32), st.integers(1, 32), st.integers(1, 16), st.sampled_from([14, 28, 56]))
@settings(max_examples=200, deadline=None)
def test_nchw_loses_relatively_more_with_1x1_filters(gpu, c, k, n, size):
    """Fact 11, Fig. 2: the same transposes, less work, but for the weights' of small 3x3 layers since cc 8.0.

    From cc 9.0 on a 1x1 is a product as it stands.
    """
    shares, on_tensor_cores = [], True
    for taps in (1, 3):
        layer = conv(N=8 * n, C=8 * c, K=8 * k, H=size, W=size, R=taps, S=taps)
        nchw, nhwc = (
            estimate_pass(replace(layer, layout=layout), "fprop", gpu, RUNTIME) for layout in ("NCHW", "NHWC")
        )
        shares.append(nchw.time_us / nhwc.time_us)
        on_tensor_cores &= nchw.tensor_cores
    assert not on_tensor_cores or shares[0] >= shares[1]


@given(layers(), GPUS, st.integers(2, 4))
@settings(max_examples=150, deadline=None)
def test_dilation_changes_neither_gemm_nor_time(layer, gpu, dilation):
    """Fact 6, Fig. 15: the padding grows along, so that sizes stay. For depthwise layers PyTorch has another kernel."""
    assume(layer.U == 1)
    assume(layer.groups == 1 or layer.groups != layer.C)
    reach = layer.PadH * dilation
    dilated = with_output(
        replace(layer, DilH=dilation, DilW=dilation, PadH=reach, PadW=reach, PadH_end=reach, PadW_end=reach)
    )
    for which in PASSES:
        assert estimate_pass(dilated, which, gpu, RUNTIME) == estimate_pass(layer, which, gpu, RUNTIME)


@given(layers(), GPUS)
@settings(max_examples=150, deadline=None)
def test_a_transposed_convolution_is_the_dgrad_of_its_mirror(layer, gpu):
    mirrored = replace(layer, op="conv_transpose", C=layer.K, H=layer.P, W=layer.Q, K=layer.C, P=layer.H, Q=layer.W)
    for which, other in (("fprop", "dgrad"), ("dgrad", "fprop"), ("wgrad", "wgrad")):
        one, two = estimate_pass(mirrored, which, gpu, RUNTIME), estimate_pass(layer, other, gpu, RUNTIME)
        assert (one is None) == (two is None)
        if one is not None:
            assert one.time_us == two.time_us
            assert one.flops == two.flops


@given(layers(), GPUS, st.sampled_from(["N", "C", "H", "W", "K", "R", "S", "P", "Q", "dtype"]))
def test_an_unknown_size_gives_no_estimate(layer, gpu, name):
    unknown = replace(layer, **{name: None})
    assert all(estimate_pass(unknown, which, gpu, RUNTIME) is None for which in PASSES)
    assert estimate_layer(unknown, gpu, RUNTIME, "training") is None
    assert nearest_full_waves(unknown, "fprop", gpu, RUNTIME) == (None, None)


@given(layers(), GPUS, st.integers(1, 5))
def test_names_places_and_calls_do_not_change_a_pass(layer, gpu, calls):
    other = replace(layer, name="other", path="x.yaml", calls=calls)
    one, two = (estimate_layer(each, gpu, RUNTIME, "training") for each in (layer, other))
    assert (one is None) == (two is None)
    if one is not None:
        assert one.passes == two.passes
        assert abs(two.time_us - calls * one.time_us) <= 1e-9 * two.time_us


@given(layers(), GPUS, st.sampled_from(["training", "inference"]), st.integers(1, 5), st.booleans(), st.booleans())
@settings(max_examples=200, deadline=None)
def test_the_time_alone_is_that_of_the_whole_estimate(layer, gpu, mode, calls, first, transposed):
    layer = replace(layer, calls=calls, first=first)
    if transposed:
        layer = replace(layer, op="conv_transpose", C=layer.K, H=layer.P, W=layer.Q, K=layer.C, P=layer.H, Q=layer.W)
    board_of(gpu).passes.clear()
    alone, ideal = time_us(layer, gpu, RUNTIME, mode), unquantized_us(layer, gpu, RUNTIME, mode)
    whole = estimate_layer(layer, gpu, RUNTIME, mode)
    assert (alone, ideal) == ((None, None) if whole is None else (whole.time_us, whole.unquantized_us))
    board_of(gpu).passes.clear()
    assert estimate_layer(layer, gpu, RUNTIME, mode) == whole  # whatever was asked for first
    assert time_us(layer, gpu, RUNTIME, mode) == alone


@given(layers(dtype=Dtype.fp16), BIG_GPUS)
@settings(max_examples=100, deadline=None)
def test_offered_batch_sizes_have_full_waves(layer, gpu):
    below, above = nearest_full_waves(layer, "fprop", gpu, RUNTIME)
    for offered in (below, above):
        if offered is not None:
            estimate = estimate_pass(replace(layer, N=offered), "fprop", gpu, RUNTIME)
            assert estimate.wave_efficiency >= 0.95
    assert below is None or below < layer.N
    assert above is None or above > layer.N


@st.composite
def usual_layers(draw: st.DrawFn, dims: int | None = None) -> ConvLayer:
    """Dense and grouped layers of one to three dimensions, small and large, in both layouts; none is depthwise."""
    axes = dims or draw(st.sampled_from([1, 2, 2, 3]))
    taps, groups = draw(st.sampled_from([1, 3, 5, 7])), draw(st.sampled_from([1, 1, 1, 2, 8, 32]))
    width, filters = (draw(st.sampled_from([2, 3, 4, 8, 16, 24, 32, 48, 64, 100, 256])) for _ in "CK")
    size = draw(
        st.sampled_from([{1: (100, 1000, 10000), 2: (7, 14, 56, 112), 3: (8, 16, 32)}[axes]]).flatmap(st.sampled_from)
    )
    sizes = {"W": size, "S": taps, "PadW": taps // 2, "PadW_end": taps // 2}
    sizes |= {"H": size, "R": taps, "PadH": taps // 2, "PadH_end": taps // 2} if axes > 1 else {"H": 1, "R": 1}
    sizes |= {"D": size, "T": taps, "PadD": taps // 2, "PadD_end": taps // 2} if axes > 2 else {}
    layout = draw(st.sampled_from(["NHWC", "NCHW"]))
    return with_output(
        ConvLayer(
            name="l", dims=axes, N=draw(st.sampled_from([1, 2, 8, 32, 128])), C=groups * width, K=groups * filters,
            groups=groups, dtype=Dtype.fp16, layout=layout, **sizes,
        )
    )  # fmt: skip


FRAMEWORKS = st.sampled_from([None, "pytorch", "jax"])


FFT_IS_FASTER = with_output(
    ConvLayer(
        name="l", N=8, C=100, K=256, H=112, W=112, R=7, S=7, PadH=3, PadH_end=3, PadW=3, PadW_end=3,
        dtype=Dtype.fp16, layout="NCHW",
    )
)  # fmt: skip


@given(usual_layers(), GPUS, st.sampled_from(PASSES), FRAMEWORKS, st.sampled_from([None, False, True]))
@example(FFT_IS_FASTER, load_gpu("titan-v"), "fprop", None, None)
@settings(max_examples=400, deadline=None)
def test_sixteen_bits_are_sixteen_bits_and_fp32_is_no_faster(layer, gpu, which, framework, searched):
    runtime = Runtime(framework=framework, tf32=False, cudnn_benchmark=searched)
    half = estimate_pass(layer, which, gpu, runtime)
    if "bf16" in gpu.tensor_dtypes:
        brain = estimate_pass(replace(layer, dtype=Dtype.bf16), which, gpu, runtime)
        # On H100 bf16 had no kernels for few channels: a stem of 3 took 466 us for fp16's 164.
        few = "9.0" <= gpu.compute_capability < "12.0" and (layer.C or 0) // layer.groups <= 16
        # XLA pads channels of fp16 alone, faster than cuDNN.
        padded = framework == "jax" and layer.groups == 1 and ((layer.C or 0) % 8 or (layer.K or 0) % 8)
        assert few or padded or brain.time_us == pytest.approx(half.time_us, rel=0.05)
    single = estimate_pass(replace(layer, dtype=Dtype.fp32), which, gpu, runtime)
    if "fp16" in gpu.tensor_dtypes and (layer.groups == 1 or gpu.compute_capability >= "8.0"):
        assert half.time_us <= 1.1 * single.time_us


@given(usual_layers(), GPUS, st.sampled_from(PASSES), FRAMEWORKS, st.sampled_from([Dtype.fp16, Dtype.fp32]))
@settings(max_examples=400, deadline=None)
def test_a_stride_costs_no_time(layer, gpu, which, framework, dtype):
    """But for fp32's dgrad before cc 8.0, and groups on cc 9.0 in PyTorch and JAX: strided kernels timed to be slow."""
    runtime, layer = Runtime(framework=framework), replace(layer, dtype=dtype)
    single = compute_dtype(dtype, gpu, runtime) == Dtype.fp32
    assume(not (single and which == "dgrad" and gpu.compute_capability < "8.0"))
    hopper = "9.0" <= gpu.compute_capability < "12.0" and framework in (None, "pytorch", "jax")
    assume(not (layer.groups > 1 and hopper))
    strides = {"V": 2, "U": 2 if layer.dims > 1 else 1, "StrideD": 2 if layer.dims > 2 else 1}
    strided = with_output(replace(layer, **strides))
    whole, skipped = (estimate_pass(each, which, gpu, runtime).time_us for each in (layer, strided))
    assert skipped <= 1.05 * whole
