"""The limits that passes have over them: those of the unit that runs, and no pass reaches more without a reason."""

from __future__ import annotations

import pytest
from convolutions import FIRST, RUNTIME, conv

from convlint.estimate import PassEstimate, estimate_layer, estimate_pass
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import PASSES, ConvLayer, Dtype
from convlint.model.runtime import Runtime

TENSORRT = Runtime(framework="tensorrt")


def fprop(gpu: str, runtime: Runtime = RUNTIME, **sizes: object) -> PassEstimate:
    found = estimate_pass(conv(**sizes), "fprop", load_gpu(gpu), runtime)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("gpu", "runtime", "sizes", "unit", "tflops"),
    [
        ("a100", RUNTIME, {}, (Dtype.fp16, True, False), 312.0),
        ("a100", RUNTIME, {"C": 64, "K": 64, "groups": 64}, (Dtype.fp32, False, False), 19.5),
        ("a100", TENSORRT, {}, (Dtype.fp16, True, False), 312.0),  # sums in fp16 at the same rate
        ("h100", RUNTIME, {"dtype": Dtype.tf32}, (Dtype.tf32, True, False), 494.7),
        ("rtx-3090", RUNTIME, {}, (Dtype.fp16, True, False), 71.0),
        ("rtx-3090", TENSORRT, {}, (Dtype.fp16, True, True), 142.0),  # on GeForce at twice the rate
        ("p100", RUNTIME, {}, (Dtype.fp32, False, False), 10.6),  # fp16 is summed in fp32
        ("v100", RUNTIME, {"dtype": Dtype.fp32}, (Dtype.fp32, False, False), 15.7),
    ],
)
def test_the_roof_is_that_of_the_unit_that_runs(
    gpu: str, runtime: Runtime, sizes: dict[str, object], unit: tuple[Dtype, bool, bool], tflops: float
) -> None:
    one = fprop(gpu, runtime, **sizes)
    roof = one.roof
    assert (roof.dtype, roof.tensor_cores, roof.fp16_sums) == unit
    assert roof.tensor_cores == one.tensor_cores
    assert roof.peak * 1e-12 == pytest.approx(tflops, rel=0.02)
    assert 0 < roof.reached < roof.peak
    assert roof.reached_bandwidth == pytest.approx(0.85 * roof.bandwidth)


LAYERS: dict[str, ConvLayer] = {
    "plain": conv(),
    "deep": conv(N=32, C=512, K=512, H=14, W=14),
    "first": conv(**FIRST, C=3),
    "padded": conv(C=62, K=126),
    "strided": conv(U=2, V=2),
    "strided pointwise": conv(N=64, C=256, H=56, W=56, K=512, R=1, S=1, pad=(0, 0), U=2, V=2),
    "pointwise": conv(N=64, C=256, H=56, W=56, K=512, R=1, S=1, pad=(0, 0)),
    "groups": conv(C=64, K=64, groups=4),
    "depthwise": conv(C=64, K=64, groups=64),
    "fp32": conv(dtype=Dtype.fp32, layout="NCHW"),
}  # fmt: skip


@pytest.mark.parametrize("gpu", ["a100", "h100", "v100", "t4", "rtx-4090", "k80"])
@pytest.mark.parametrize("name", LAYERS)
def test_only_what_needs_less_than_is_counted_is_above_what_is_reached(name: str, gpu: str) -> None:
    layer = LAYERS[name]
    whole = estimate_layer(layer, load_gpu(gpu), RUNTIME, "training")
    assert whole is not None
    for which in PASSES:
        one = whole.passes.get(which)
        if one is None:
            continue
        achieved = one.flops / one.time_us * 1e6
        strided = (layer.R, layer.S) == (1, 1) and (layer.U, layer.V) != (1, 1)
        if one.algorithm not in ("winograd", "fft") and not (strided and one.algorithm == "direct"):
            assert achieved <= one.roof.reached
        if not (strided and which != "dgrad"):
            assert one.bytes / one.time_us * 1e6 <= one.roof.reached_bandwidth


def test_a_stride_that_skips_most_of_the_input_is_above_the_slope() -> None:
    one = estimate_layer(LAYERS["strided pointwise"], load_gpu("a100"), RUNTIME, "training")
    assert one is not None
    assert one.passes["fprop"].bytes / one.passes["fprop"].time_us * 1e6 > one.passes["fprop"].roof.reached_bandwidth
