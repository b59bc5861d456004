"""Family 7, architecture: rules on the GPU itself, on limits of its generation, and on library support."""

from typing import Any

import pytest
from rule_outcomes import SILENT, findings, outcome, rows

from convlint.estimate import estimate_layer
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import ConvLayer, Dtype, with_output
from convlint.model.runtime import Runtime


def layer(N: int = 32, C: int = 64, H: int = 56, K: int = 64, R: int = 3, dtype: str = "fp32", name: str = "x") -> str:
    return (
        f"{{ name: {name}, N: {N}, C: {C}, H: {H}, W: {H}, K: {K}, R: {R}, S: {R}, padding: {R // 2}, dtype: {dtype} }}"
    )


BOARDS = {
    "CL701": {  # the last two are of compute capability 7.5, and yet have no Tensor Cores
        "info": ("k10", "k40", "k80", "m40", "p100", "p40", "gtx-1080-ti", "gtx-1650", "gtx-1660-ti"),
        SILENT: ("v100", "t4", "a100", "l4", "h100", "b200", "xavier"),
    },
    "CL703": {"info": ("k10", "k80", "m60"), SILENT: ("k40", "a100", "b200", "gb200")},
}


@pytest.mark.parametrize("code", BOARDS)
def test_no_tensor_cores_and_several_dies_are_said_of_a_board(code: str) -> None:
    layers = f"{layer()}, {layer(name='y')}"
    said = {gpu: outcome(code, layers, gpu=gpu) for gpus in BOARDS[code].values() for gpu in gpus}
    assert said == {gpu: expected for expected, gpus in BOARDS[code].items() for gpu in gpus}


@pytest.mark.parametrize(
    ("gpu", "dtype", "hit"),
    [
        *((gpu, "fp16", True) for gpu in ("k80", "m40", "m60", "p4", "p40", "gtx-1080-ti", "titan-xp")),
        *((gpu, "fp16", False) for gpu in ("p100", "v100", "gtx-1660-ti", "t4", "a100")),
        *((gpu, "fp32", False) for gpu in ("k80", "m40", "p40")),
        ("k80", "bf16", False),
    ],
)
def test_half_precision_storage_only(gpu: str, dtype: str, hit: bool) -> None:
    assert bool(findings("CL702", layer(dtype=dtype), gpu=gpu)) == hit


def test_half_precision_is_one_finding_where_all_layers_share_it() -> None:
    half = [layer(dtype="fp16", name=name) for name in "abc"]
    (finding,) = findings("CL702", ", ".join(half), gpu="p40")
    assert finding.layers == ("a", "b", "c")
    # compute-bound work is as fast in fp32: nothing is lost that would deserve a warning, and nothing gained by a fix
    assert (finding.severity, finding.lost_us, finding.fix) == ("info", 0.0, None)


@pytest.mark.parametrize(
    ("gpu", "sizes", "expected"),
    [
        ("k40", {"N": 64, "C": 128, "H": 28, "K": 128}, SILENT),
        ("k80", {"N": 1, "C": 512, "H": 7, "K": 512}, "info"),
        ("k10", {"N": 1, "C": 512, "H": 7, "K": 512}, "info"),
        # a single multiprocessor is soon full
        # no other generation
        *((gpu, {"N": 1, "C": 512, "H": 7, "K": 512}, SILENT) for gpu in ("m40", "p100", "v100", "a100")),
    ],
)
def test_low_occupancy(gpu: str, sizes: dict[str, int], expected: str) -> None:
    assert outcome("CL704", layer(**sizes), gpu=gpu) == expected


def test_low_occupancy_needs_the_sizes_on_kepler_only() -> None:
    assert set(outcome("CL704", "{ C: 64, K: 64, R: 3, S: 3, dtype: fp32 }", gpu="k40")) == {"N", "H", "W"}
    assert outcome("CL704", "{ C: 64, K: 64, R: 3, S: 3, dtype: fp32 }", gpu="a100") == SILENT


def test_limits_of_an_smx() -> None:
    for name, registers, shared in (("k10", 65536, 48), ("k20", 65536, 48), ("k40", 65536, 48), ("k80", 131072, 112)):
        gpu = load_gpu(name)
        assert (gpu.max_warps_per_sm, gpu.max_blocks_per_sm) == (64, 16)
        assert (gpu.registers_per_sm, gpu.shared_bytes_per_sm // 1024) == (registers, shared)
        assert gpu.max_shared_bytes_per_block // 1024 == 48
        assert gpu.max_registers_per_thread == (63 if name == "k10" else 255)


def test_twice_the_registers_hold_twice_the_warps() -> None:
    """GK210 (K80) against GK110B (K40), for a layer large enough that only registers limit."""
    pads = {"PadH": 1, "PadW": 1, "PadH_end": 1, "PadW_end": 1}
    conv = with_output(ConvLayer(name="x", N=256, C=256, H=28, W=28, K=256, R=3, S=3, dtype=Dtype.fp32, **pads))
    warps = {}
    for name in ("k40", "k80"):
        estimate = estimate_layer(conv, load_gpu(name), Runtime(), "inference")
        fprop = estimate.passes["fprop"]
        assert fprop.tile == (128, 128)
        warps[name] = fprop.resident_warps
    assert warps["k80"] == 2 * warps["k40"]


SMALL = {"N": 1, "C": 64, "H": 7, "K": 64, "R": 1}
KEPLER = ("k10", "gtx-680", "k20", "k20x", "k40", "k80")


def fed(name: str, source: str, K: int = 64, R: int = 1) -> str:
    """A layer that reads another, whose map is its own."""
    return f"{{ name: {name}, input: {source}, K: {K}, R: {R}, S: {R}, padding: {R // 2}, dtype: fp32 }}"


def fork(N: int = 1, K: int = 64, R: int = 1) -> str:
    """Two branches from one layer to another; K and R are the right one's."""
    stem = f"{{ name: stem, N: {N}, C: 64, H: 7, W: 7, K: 64, R: 1, S: 1, dtype: fp32 }}"
    both = "{ name: both, op: concat, inputs: [left, right] }"
    return ", ".join([stem, fed("left", "stem"), fed("right", "stem", K, R), both, fed("last", "both")])


CHAIN = ", ".join([layer(**SMALL, name="a"), fed("b", "a"), fed("c", "b")])


@pytest.mark.parametrize(
    ("gpu", "expected"),
    [
        *((gpu, "info") for gpu in KEPLER),
        # a single multiprocessor, or no Kepler
        *((gpu, SILENT) for gpu in ("gk20a", "m40", "p100", "a100")),
    ],
)
def test_concurrent_kernels(gpu: str, expected: str) -> None:
    assert outcome("CL705", fork(), gpu=gpu) == expected


@pytest.mark.parametrize("mode", ["training", "inference"])
@pytest.mark.parametrize("gpu", KEPLER)
@pytest.mark.parametrize(
    "layers",
    [
        pytest.param(CHAIN, id="chain"),
        pytest.param(layer(**SMALL), id="one layer"),
        pytest.param(f"{layer(**SMALL, name='a')}, {layer(**SMALL, name='b')}", id="not connected"),
        pytest.param(fork(N=256), id="branches that fill the GPU"),
        pytest.param(
            f"{CHAIN}, {{ name: sum, op: add, inputs: [a, c] }}, {fed('d', 'sum')}", id="a shortcut without a layer"
        ),
    ],
)
def test_layers_that_wait_for_one_another_share_no_gpu(layers: str, gpu: str, mode: str) -> None:
    assert outcome("CL705", layers, gpu=gpu, mode=mode) == SILENT


@pytest.mark.parametrize(("gpu", "kernels", "hyper_q"), [("k10", 16, False), ("k20", 32, True), ("k80", 32, True)])
def test_concurrent_kernels_says_what_this_chip_can_do(gpu: str, kernels: int, hyper_q: bool) -> None:
    (finding,) = findings("CL705", fork(), gpu=gpu)
    assert finding.layers == ("left", "right")
    sms = load_gpu(gpu).sms
    assert finding.message == (
        f"2 layers on branches have fewer tiles than {gpu} has SMX ({sms}),"
        f" while it runs up to {kernels} kernels at once: left, right"
    )
    (alone,) = findings("CL705", fork(K=4096, R=3), gpu=gpu)
    assert alone.layer == "left"
    assert alone.message == (
        f"fprop has 1 tile for {sms} SMX, and does not depend on right; {gpu} runs up to {kernels} kernels at once"
    )
    assert ("CUDA_DEVICE_MAX_CONNECTIONS" in finding.fix.describe) == hyper_q
    assert ("MPS" in finding.fix.describe) == hyper_q


OF_RUNTIME: dict[str, list[tuple[Any, ...]]] = {
    "CL706": [
        ("k40", "", ("runtime.gpu_clock",)),
        # K80 boosts by itself, the others do not have it or manage it themselves
        *((gpu, clock, SILENT) for gpu in ("k80", "k20x", "k10", "m40", "a100") for clock in ("", "gpu_clock: base")),
    ],
    "CL707": [
        ("k10", 'cuda: "11.0", cudnn: "7.6.5"', "error"),
        ("k10", 'cuda: "10.2", cudnn: "7.6.5", framework: pytorch', SILENT),
        ("k80", 'cuda: "11.8", cudnn: "8.5", framework: pytorch', SILENT),
        ("k80", 'cuda: "12.0"', "error"),
        ("v100", 'cuda: "12.9", cudnn: "9.10", framework: pytorch', SILENT),
        ("v100", 'cuda: "13.0"', "error"),
        ("v100", 'cuda: "12.9", cudnn: "9.11"', "error"),
        ("v100", 'cuda: "12.9", framework: pytorch', ("runtime.cudnn",)),
        ("v100", 'cuda: "12.9", cudnn: "9.10", framework: tensorrt, tensorrt: "10.5"', "error"),
        ("v100", 'cuda: "12.9", cudnn: "9.10", framework: tensorrt', ("runtime.framework_version", "runtime.tensorrt")),
        ("m40", 'framework: tensorrt, framework_version: "8.6"', "error"),
        # nothing has dropped these yet, so no version is asked for
        *((gpu, "", SILENT) for gpu in ("t4", "a100", "h100", "b200")),
        ("t4", 'cuda: "13.0", cudnn: "9.11", framework: tensorrt, tensorrt: "10.5"', SILENT),
        # cuDNN and TensorRT come with JetPack there
        ("orin", 'cuda: "12.6", cudnn: "9.11"', SILENT),
    ],
    "CL708": [
        ("a100", 'cuda: "10.2"', "error"),
        ("a100", 'cuda: "11.0", cudnn: "7.6.5"', "error"),
        ("a100", 'cuda: "11.0"', ("runtime.cudnn",)),
        ("b200", 'cuda: "12.6"', "error"),
        ("b200", 'cuda: "12.8", cudnn: "9.7", framework: pytorch, framework_version: "2.6"', "error"),
        ("b200", 'cuda: "12.8", cudnn: "9.7", framework: jax', SILENT),
    ],
    "CL709": [
        ("k20", "pinned_memory: false", "info"),
        ("a100", "", ("runtime.pinned_memory",)),
        # one memory for CPU and GPU
        ("gk20a", "", SILENT),
    ],
}


@pytest.mark.parametrize(("code", "gpu", "runtime", "expected"), rows(OF_RUNTIME))
def test_which_settings_a_gpu_asks_for(code: str, gpu: str, runtime: str, expected: object) -> None:
    assert outcome(code, layer(), gpu=gpu, runtime=runtime) == expected


@pytest.mark.parametrize(
    ("gpu", "runtime", "given", "last"),
    [
        ("k10", 'cuda: "11.2"', "CUDA 11.2", "CUDA 10.2"),
        ("k80", 'cuda: "12.1"', "CUDA 12.1", "CUDA 11.8"),
        ("p100", 'cuda: "13.0"', "CUDA 13.0", "CUDA 12.9"),
        ("p100", 'cudnn: "9.13"', "cuDNN 9.13", "cuDNN 9.10"),
        ("v100", 'tensorrt: "10.6"', "TensorRT 10.6", "TensorRT 10.4"),
    ],
)
def test_retired_architecture_names_what_is_given_and_the_last_that_works(
    gpu: str, runtime: str, given: str, last: str
) -> None:
    (finding,) = findings("CL707", layer(), gpu=gpu, runtime=runtime)
    assert given in finding.message
    assert gpu in finding.message
    assert finding.location.line == 2
    assert last in finding.fix.describe


def test_library_too_old_names_the_first_that_works() -> None:
    (hopper,) = findings("CL708", layer(), gpu="h100", runtime='cuda: "11.7"')
    (blackwell,) = findings(
        "CL708", layer(), gpu="rtx-5090",
        runtime='cuda: "12.8", cudnn: "9.7", framework: pytorch, framework_version: "2.6"',
    )  # fmt: skip
    assert "CUDA 11.8" in hopper.fix.describe
    assert "pytorch 2.7" in blackwell.fix.describe


@pytest.mark.parametrize(
    ("gpu", "narrow"), [("k20", True), ("k20x", True), ("k10", False), ("k40", False), ("k80", False)]
)
def test_host_transfer_names_the_boards_with_the_older_bus(gpu: str, narrow: bool) -> None:
    (finding,) = findings("CL709", layer(), gpu=gpu, runtime="pinned_memory: false")
    assert ("PCIe 2.0" in finding.message) == narrow
