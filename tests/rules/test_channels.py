"""Family 1, channels: the channels of the first layer, and dtypes that leave Tensor Cores idle."""

import pytest
from msgspec.structs import replace
from rule_outcomes import SILENT, findings, outcome
from sized_layers import layer

from convlint.engine.check import Target, check_network
from convlint.estimate import time_us
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import Dtype, Mode
from convlint.model.runtime import Runtime
from convlint.readers.spec.reader import read_spec
from convlint.rulebook.book import Rulebook, load_rulebook

TENSOR_CORES = ("v100", "t4", "a100", "h100")
OF_IMAGES = "the first layer reads C=3 channels; kernels made for images take C=4"
OF_STRIDE_2 = "the first layer reads C=3 channels; with stride 2, C=4 has kernels of its own"
STEM = "N: 64, C: 3, H: 224, W: 224, K: 64, dtype: fp16, layout: NHWC"
FP32 = "{ name: x, N: 32, C: 64, H: 56, W: 56, K: 64, kernel_size: 3, padding: 1, dtype: fp32 }"
FP64 = "{ name: x, N: 8, C: 64, H: 28, W: 28, K: 64, kernel_size: 3, dtype: fp64 }"


@pytest.mark.parametrize("mode", ["training", "inference"])
@pytest.mark.parametrize("gpu", TENSOR_CORES)
@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("kernel_size: 3, stride: 1, padding: 1", OF_IMAGES),
        ("kernel_size: 7, stride: 2, padding: 3", OF_STRIDE_2),
        ("kernel_size: 4, stride: 4", OF_IMAGES),
    ],
)
def test_an_image_is_filled_up_to_4_channels_at_any_stride(kernel: str, message: str, gpu: str, mode: str) -> None:
    (finding,) = findings("CL103", f"{{ {STEM}, {kernel} }}", gpu=gpu, mode=mode)
    assert (finding.severity, finding.message) == ("warning", message)
    assert (finding.fix.set, finding.fix.safety) == ({"C": 4}, "safe")
    assert finding.fix.time_change_us < 0


@pytest.mark.parametrize("mode", ["training", "inference"])
@pytest.mark.parametrize("gpu", TENSOR_CORES)
@pytest.mark.parametrize("stride", [1, 2, 4])
def test_4_channels_are_predicted_no_slower_than_3_or_8(stride: int, gpu: str, mode: Mode) -> None:
    stem = layer(
        N=64, C=3, H=224, W=224, K=64, R=3, S=3, U=stride, V=stride, PadH=1, PadW=1,
        dtype=Dtype.fp16, layout="NHWC", first=True,
    )  # fmt: skip
    times = {C: time_us(replace(stem, C=C), load_gpu(gpu), Runtime(), mode) for C in (3, 4, 8)}
    assert times[3] is not None
    assert times[8] is not None
    assert times[4] <= min(times[3], times[8])


@pytest.mark.parametrize(
    ("stem", "runtime", "expected"),
    [
        (STEM.replace("C: 3", "C: 4"), "", SILENT),
        (STEM.replace("C: 3", "C: 8"), "", SILENT),
        (STEM + ", first: false", "", SILENT),
        (STEM.replace("fp16", "fp32"), "", "warning"),  # TF32
        (STEM.replace("fp16", "fp32"), "tf32: false", SILENT),
        (STEM, "framework: tensorrt", "info"),
        (STEM, "framework: jax", "info"),
        # what it costs a layer of unknown size is not known
        ("C: 3, K: 64, dtype: fp16, layout: NHWC", "", "info"),
    ],
)
def test_first_layer_channels(stem: str, runtime: str, expected: str) -> None:
    assert outcome("CL103", f"{{ {stem}, kernel_size: 3, padding: 1 }}", runtime=runtime) == expected


def outcome_of_source(source: str, gpu: str, runtime: str) -> str:
    """What CL106 says of FP32 where its dtype comes from `source`."""
    network, errors = read_spec(f"version: 1\nruntime: {{ {runtime} }}\nlayers: [ {FP32} ]\n", "spec.yaml")
    assert network is not None, errors
    network = replace(network, layers=tuple(replace(each, dtype_source=source) for each in network.layers))
    rule = load_rulebook().find("CL106")
    assert rule is not None
    target = Target(label=gpu, gpu=load_gpu(gpu))
    (finding,) = check_network(network, Rulebook([rule]), [target], "training").findings
    return finding.severity


@pytest.mark.parametrize(("gpu", "runtime"), [("v100", ""), ("t4", ""), ("a100", ""), ("a100", "tf32: false")])
@pytest.mark.parametrize(("source", "expected"), [("stated", "warning"), ("storage", "info")])
def test_a_dtype_that_was_only_read_from_storage_warns_of_nothing(
    source: str, expected: str, gpu: str, runtime: str
) -> None:
    assert outcome_of_source(source, gpu, runtime) == expected


@pytest.mark.parametrize(
    ("gpu", "runtime", "message", "lesser"),
    [
        ("v100", "", "fp32 runs on CUDA cores; the Tensor Cores of NVIDIA Tesla V100 SXM2 16GB multiply fp16", False),
        (
            "a100", "", "fp32 runs as TF32 on the Tensor Cores; 16 bits run at twice the rate and move half the bytes",
            False,
        ),
        *(
            (
                gpu, "tf32: false",
                f"fp32 with TF32 switched off runs on CUDA cores; {name} multiplies TF32 on Tensor Cores", True,
            )
            for gpu, name in (("a100", "NVIDIA A100 SXM4 40GB"), ("h100", "NVIDIA H100 SXM5 80GB"))
        ),
    ],
)  # fmt: skip
def test_16_bits_are_set_and_tf32_is_the_lesser_step(gpu: str, runtime: str, message: str, lesser: bool) -> None:
    (finding,) = findings("CL106", FP32, gpu=gpu, runtime=runtime)
    assert (finding.severity, finding.message) == ("warning", message)
    assert finding.fix.set == {"dtype": "fp16"}
    assert finding.fix.describe.startswith("mixed precision with fp16")
    assert ("or at least TF32 (in PyTorch: torch.backends.cudnn.allow_tf32 = True)" in finding.fix.describe) == lesser
    assert ("tf32=True (time -" in finding.fix.describe) == lesser
    assert [each.set for each in finding.alternatives] == ([{"runtime.tf32": True}] if lesser else [])


@pytest.mark.parametrize(
    ("gpu", "message"),
    [
        *(
            (gpu, f"fp64 runs at 1/24 of the fp32 rate on {name}, a GK104; GK110 and GK210 run it at 1/3")
            for gpu, name in (
                ("k10", "NVIDIA Tesla K10 (per die; board = 2x)"),
                ("gtx-680", "NVIDIA GeForce GTX 680"),
            )
        ),
        ("m40", "fp64 runs at 1/32 of the fp32 rate on NVIDIA Tesla M40"),
        ("t4", "fp64 runs at 1/32 of the fp32 rate on NVIDIA T4"),
    ],
)
def test_slow_fp64_names_the_kepler_chips_that_are_fast(gpu: str, message: str) -> None:
    (finding,) = findings("CL108", FP64, gpu=gpu)
    assert (finding.severity, finding.message) == ("warning", message)
    (joined,) = findings("CL108", f"{FP64}, {FP64.replace('name: x', 'name: y')}", gpu=gpu)
    assert joined.message == message.replace("fp64 runs at", "2 layers run in fp64, at")


@pytest.mark.parametrize("gpu", ["k20", "k40", "k80", "p100", "v100", "a100"])
def test_slow_fp64_is_silent_where_fp64_is_fast(gpu: str) -> None:
    assert outcome("CL108", FP64, gpu=gpu) == SILENT
