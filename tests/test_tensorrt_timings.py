"""TensorRT on V100, as public timings of one-convolution engines have it."""

import pytest
from msgspec.structs import replace

from convlint.estimate import estimate_pass
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import ConvLayer, Dtype, with_output
from convlint.model.runtime import Runtime

V100, TENSORRT = load_gpu("v100"), Runtime(framework="tensorrt", tf32=False)


def conv(**changes):
    sizes = {"N": 64, "C": 128, "H": 28, "W": 28, "K": 128, "R": 3, "S": 3, "dtype": Dtype.fp16} | changes
    pad = sizes["R"] // 2
    return with_output(ConvLayer(name="l", PadH=pad, PadH_end=pad, PadW=pad, PadW_end=pad, layout="auto", **sizes))


def fprop(layer, gpu=V100, runtime=TENSORRT):
    return estimate_pass(layer, "fprop", gpu, runtime)


@pytest.mark.parametrize(
    ("sizes", "measured"),
    [
        ({"N": 1, "C": 384, "K": 96, "H": 56, "W": 56, "R": 5, "S": 5, "U": 2, "V": 2}, 246.5),
        ({"N": 1, "C": 2560, "K": 1280, "H": 6, "W": 6, "U": 2, "V": 2}, 577.5),
        ({"N": 128, "C": 1024, "K": 512, "H": 14, "W": 14, "U": 2, "V": 2}, 752.9),
        ({"N": 64, "C": 128, "K": 512, "H": 28, "W": 28, "R": 5, "S": 5, "dtype": Dtype.fp32}, 10784.5),
        ({"N": 128, "C": 96, "K": 192, "H": 28, "W": 28, "R": 7, "S": 7, "dtype": Dtype.fp32}, 12444.1),
        ({"N": 128, "C": 64, "K": 256, "H": 12, "W": 12, "dtype": Dtype.int8}, 118.8),
    ],
)
def test_measured_layers(sizes, measured):
    assert fprop(conv(**sizes)).time_us == pytest.approx(measured, rel=0.3)


def test_no_split_and_no_workspace():
    assert fprop(conv(N=1, C=2048, H=7, W=7)).split_k == 1
    for taps in (5, 7):
        layer = conv(R=taps, S=taps, dtype=Dtype.fp32)
        assert fprop(layer).algorithm == "implicit-gemm"
        assert fprop(layer, runtime=Runtime(framework="pytorch", tf32=False)).algorithm != "implicit-gemm"


def test_three_channels_take_the_time_of_eight():
    for taps in (3, 7):
        three, eight = (fprop(conv(C=C, K=64, H=112, W=112, R=taps, S=taps)) for C in (3, 8))
        assert three.main_loop_steps == eight.main_loop_steps
        assert eight.time_us == pytest.approx(three.time_us, rel=0.1)


@pytest.mark.parametrize("dtype", [Dtype.fp16, Dtype.int8])
def test_a_filter_that_reaches_over_its_map_runs_as_fp32(dtype):
    small = conv(C=640, K=2560, H=5, W=5, R=7, S=7, dtype=dtype)
    estimate = fprop(small)
    assert not estimate.tensor_cores
    assert estimate.tflops * 1e12 < V100.peak_flops["fp32"]
    fits = fprop(replace(small, H=7, W=7, P=7, Q=7))
    assert fits.tflops > 2 * estimate.tflops
    assert fprop(small, load_gpu("a100")).tensor_cores
