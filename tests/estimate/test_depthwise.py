"""Depthwise layers: laws, and published facts as tolerant bands."""

from __future__ import annotations

from math import isfinite, prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from convlint.estimate import estimate_layer, estimate_pass
from convlint.gpus.gpu import gpu_names, load_gpu
from convlint.model.layer import PASSES, ConvLayer, Dtype, with_output
from convlint.model.runtime import Runtime

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
