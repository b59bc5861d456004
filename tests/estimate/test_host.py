"""Hosts that start kernels too slowly: when they are the bound, and what that makes of the estimates."""

import pytest
from cases import for_each
from checkout import ROOT
from msgspec.structs import replace

from convlint.estimate import estimate_layer
from convlint.estimate.host import NO_HOST, SURELY, Hosted, host_us, hosted, is_eager, left_us
from convlint.gpus.gpu import gpu_names, load_gpu
from convlint.model.estimates import LayerEstimate
from convlint.model.layer import ConvLayer, Dtype, Mode
from convlint.model.runtime import Runtime
from convlint.readers.spec.reader import read_spec

EAGER = Runtime(framework="pytorch")


def resnet50(N: int, dtype: Dtype = Dtype.fp16) -> list[ConvLayer]:
    path = ROOT / "sample_configs" / "resnet50.yaml"
    network, errors = read_spec(path.read_text(encoding="utf-8"), str(path))
    assert not errors
    return [replace(layer, N=N, dtype=dtype) for layer in network.layers]


def run(layers: list[ConvLayer], gpu: str, runtime: Runtime, mode: Mode = "inference") -> Hosted:
    board = load_gpu(gpu)
    return hosted(layers, [estimate_layer(layer, board, runtime, mode) for layer in layers], host_us(board, runtime))


def total(found: Hosted) -> float:
    times = [estimate.time_us for estimate in found.estimates if estimate is not None]
    assert len(times) == len(found.estimates)
    return sum(times)


def whole(found: Hosted) -> float:
    """What a stopwatch would see: the convolutions and what usually follows them."""
    return max(found.whole_host_us or 0.0, found.whole_gpu_us or 0.0)


# ms of ResNet-50 at N = 1, eager inference: transformers, docs/source/en/perf_torch_compile.md (A100, V100, T4, torch
# 2.0.1) and, on slower hosts, NVIDIA DeepLearningExamples (V100, T4 with AMP, container 21.03): within a factor of 2.2.
@pytest.mark.parametrize(
    ("gpu", "runtime", "measured_ms"),
    [
        ("a100", EAGER, 6.53), ("v100", EAGER, 6.48), ("t4", EAGER, 6.03),
        ("v100", replace(EAGER, mixed_precision=True), 12.78), ("t4", replace(EAGER, mixed_precision=True), 12.96),
        ("a100", replace(EAGER, compile=True), 4.12), ("v100", replace(EAGER, compile=True), 3.82),
        ("v100", Runtime(framework="tensorflow"), 4.25),
    ],
)  # fmt: skip
def test_one_image_takes_what_its_host_takes(gpu: str, runtime: Runtime, measured_ms: float) -> None:
    predicted = whole(run(resnet50(1), gpu, runtime)) / 1000
    assert measured_ms / 2.2 < predicted < measured_ms * 1.3


@pytest.mark.parametrize("mode", ["inference", "training"])
def test_sixteen_images_take_no_longer_than_one_on_v100(mode: Mode) -> None:
    """NVIDIA DeepLearningExamples, ResNet-50 v1.5, PyTorch 21.03 with AMP on V100: 12.8 ms at N = 1, 14.0 at N = 16."""
    one, sixteen = (whole(run(resnet50(N), "v100", replace(EAGER, mixed_precision=True), mode)) for N in (1, 16))
    assert sixteen / one == pytest.approx(14.0 / 12.8, rel=0.1)


@for_each("gpu", gpu_names())
def test_tensorrt_is_faster_than_eager_pytorch_at_one_image(gpu: str) -> None:
    dtype = Dtype.fp16 if load_gpu(gpu).fast_fp16 else Dtype.fp32
    tensorrt, eager = (
        total(run(resnet50(1, dtype), gpu, Runtime(framework=framework))) for framework in ("tensorrt", "pytorch")
    )
    assert tensorrt < eager


@pytest.mark.parametrize(
    "runtime",
    [
        Runtime(), Runtime(framework="tensorrt"), Runtime(framework="jax"), Runtime(framework="onnxruntime"),
        Runtime(framework="mxnet"), replace(EAGER, cuda_graphs=True), Runtime(framework="cudnn"),
    ],
)  # fmt: skip
def test_what_nothing_is_known_of_has_no_host(runtime: Runtime) -> None:
    assert host_us(load_gpu("a100"), runtime) == NO_HOST
    found = run(resnet50(1), "a100", runtime)
    assert (found.host_us, found.is_bound) == (None, False)
    assert total(found) == pytest.approx(found.gpu_us)


def test_an_embedded_host_is_slower_and_a_compiled_step_needs_less_of_it() -> None:
    eager = sum(host_us(load_gpu("a100"), EAGER))
    assert sum(host_us(load_gpu("agx-xavier"), EAGER)) > 2 * eager
    assert sum(host_us(load_gpu("a100"), replace(EAGER, compile=True))) < eager
    assert (is_eager(EAGER), is_eager(replace(EAGER, compile=True)), is_eager(Runtime())) == (True, False, False)


def test_a_busy_gpu_hides_its_host() -> None:
    found = run(resnet50(256), "a100", EAGER, "training")
    assert not found.is_bound
    assert total(found) == pytest.approx(found.gpu_us)


def test_a_network_with_an_unknown_time_has_no_host() -> None:
    layers = resnet50(1)
    found = run([replace(layers[0], C=None), *layers[1:]], "a100", EAGER)
    assert (found.host_us, found.gpu_us, found.is_bound) == (None, None, False)


def test_norms_count_as_operations_where_some_layer_is_known_to_have_one() -> None:
    bare = resnet50(1)
    plain, normed, half = (
        run(
            [replace(layer, norm_follows=number < count) for number, layer in enumerate(bare)], "a100", EAGER
        ).whole_host_us
        for count in (0, 53, 26)
    )
    assert plain == normed  # of the first nothing is known
    assert normed is not None
    assert half == pytest.approx(normed * (26 + 27 * 2 / 3) / 53)


def test_layers_share_the_hosts_time_and_none_is_faster_than_the_gpu() -> None:
    layers = resnet50(8)
    found = run(layers, "a100", EAGER)
    assert found.is_bound
    assert found.host_us is not None
    assert total(found) == pytest.approx(found.host_us)
    alone = [estimate_layer(layer, load_gpu("a100"), EAGER, "inference") for layer in layers]
    for before, after in zip(alone, found.estimates, strict=True):
        assert isinstance(before, LayerEstimate)
        assert isinstance(after, LayerEstimate)
        assert after.time_us >= before.time_us
        for which, one in after.passes.items():
            assert one.tflops * one.time_us == pytest.approx(before.passes[which].tflops * before.passes[which].time_us)


def test_where_the_host_is_surely_the_bound_nothing_is_wasted() -> None:
    found = run(resnet50(1), "a100", EAGER)
    assert found.is_surely_bound
    first = found.estimates[0]
    assert all(one.lost_to_waves_us == 0 == one.lost_to_tiles_us for one in first.passes.values())
    assert first.unquantized_us == first.time_us


def test_where_a_faster_host_would_keep_up_tiles_and_waves_still_count() -> None:
    layers = resnet50(32)
    found = run(layers, "a100", EAGER)
    assert found.is_bound
    assert not found.is_surely_bound
    assert found.gpu_us < found.host_us < SURELY * found.gpu_us
    first = found.estimates[0]
    assert first.unquantized_us < first.time_us


def test_what_follows_the_convolutions_keeps_the_gpu_busy() -> None:
    """Norms and activations, by their bytes in 16 bits; the convolutions wait for the rest of the host's time."""
    single, half = (run(resnet50(16, dtype), "a100", EAGER) for dtype in (Dtype.fp32, Dtype.fp16))
    assert single.following_us == half.following_us > 0  # so that another dtype changes the convolutions alone
    assert half.host_us == pytest.approx(half.whole_host_us - half.following_us)
    fused = run(resnet50(16), "a100", replace(EAGER, compile=True))
    assert fused.following_us < half.following_us / 1.9
    large = run(resnet50(512), "a100", EAGER)
    assert large.whole_host_us == half.whole_host_us < large.following_us
    assert large.host_us == 0
    memory = 53 * 3 * 3 + 4 * 2 * 16 * 11.1e6 / (0.95 * load_gpu("a100").dram_bytes_per_s * 1e-6)
    assert half.following_us == pytest.approx(memory, rel=0.25)  # 11.1 million activations, He et al.
    layers = resnet50(16)
    for mode in ("inference", "training"):
        found = run(layers, "a100", EAGER, mode)
        assert left_us(layers, mode, host_us(load_gpu("a100"), EAGER)) == pytest.approx(found.host_us)


def test_training_takes_a_host_several_times_what_inference_takes() -> None:
    """2.7 to 4 times in fp32 (pytorch/benchmark), under autocast 4 to 5.5 (H100 and H200, PyTorch 2.11)."""
    for runtime, least, most in ((EAGER, 2.7, 4.0), (replace(EAGER, mixed_precision=True), 3.3, 5.5)):
        host = host_us(load_gpu("h100"), runtime)
        assert least < (host.fprop + host.dgrad + host.wgrad) / host_us(load_gpu("h100"), EAGER).fprop < most
    compiled = host_us(load_gpu("h100"), replace(EAGER, compile=True, mixed_precision=True))
    eager = host_us(load_gpu("h100"), replace(EAGER, mixed_precision=True))
    assert compiled.fprop < eager.fprop
    assert compiled.wgrad == eager.wgrad  # the optimizer and autograd are the same
