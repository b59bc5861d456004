"""A GPU as the search needs it: the kernels of its generation, and its clock under load."""

import pytest
from calibrated import calibration
from convolutions import A100, RUNTIME, conv, fprop
from msgspec.structs import replace

from convlint.estimate import compute_dtype, estimate_layer, estimate_pass
from convlint.estimate import constants as const
from convlint.estimate.board import board_of, clock_under_load, cuda_core_peak, simt_family, tensor_family, tensor_peak
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import Dtype
from convlint.model.runtime import Runtime


@pytest.mark.parametrize(
    ("dtype", "gpu", "tf32", "expected"),
    [
        ("fp32", "a100", True, "tf32"), ("fp32", "a100", False, "fp32"), ("fp32", "t4", True, "fp32"),
        ("tf32", "a100", False, "tf32"), ("tf32", "t4", True, "fp32"), ("tf32", "v100", True, "fp32"),
        ("fp16", "v100", True, "fp16"), ("fp16", "k80", True, "fp32"), ("fp16", "p4", True, "fp32"),
        ("fp16", "p100", True, "fp16"), ("bf16", "a100", True, "bf16"), ("int8", "t4", True, "int8"),
    ],
)  # fmt: skip
def test_compute_dtype(dtype, gpu, tf32, expected):
    assert compute_dtype(Dtype(dtype), load_gpu(gpu), Runtime(tf32=tf32)) == expected


@pytest.mark.parametrize(
    ("dtype", "gpu", "tensor_cores"),
    [
        ("bf16", "v100", None), ("bf16", "t4", None), ("bf16", "a100", True), ("fp8", "a100", None),
        ("fp8", "l4", True),
        ("fp8", "h100", True), ("int8", "k80", None), ("int8", "p100", None), ("int8", "p4", False),
        ("int8", "v100", False), ("int8", "t4", True), ("fp16", "gtx-1660-ti", False), ("fp32", "k80", False),
        ("fp64", "a100", False), ("tf32", "t4", False), ("tf32", "orin", True), ("bf16", "orin", True),
    ],
)  # fmt: skip
def test_what_runs_where(dtype, gpu, tensor_cores):
    estimate = fprop(conv(dtype=Dtype(dtype), C=128, K=128), load_gpu(gpu))
    assert (None if estimate is None else estimate.tensor_cores) == tensor_cores
    layer = estimate_layer(conv(dtype=Dtype(dtype), C=128, K=128), load_gpu(gpu), RUNTIME, "inference")
    assert (layer is None) == (tensor_cores is None)


def test_geforce_accumulates_at_half_rate_except_in_tensorrt():
    layer = conv(C=512, K=512, H=28, W=28)
    ratio = (
        fprop(layer, load_gpu("rtx-3090")).time_us
        / fprop(layer, load_gpu("rtx-3090"), Runtime(framework="tensorrt")).time_us
    )
    assert 1.5 < ratio < 2.1
    board = load_gpu("a100")
    assert fprop(layer, board).time_us / fprop(layer, board, Runtime(framework="tensorrt")).time_us < 1.05


@pytest.mark.parametrize(
    ("gpu", "framework", "gains"),
    [
        ("jetson-nano", "tensorrt", (1.7, 2.1)), ("jetson-tx2", "tensorrt", (1.7, 2.1)),
        ("p100", "tensorrt", (1.5, 2.1)),
        ("jetson-nano", "pytorch", (0.95, 1.15)), ("p4", "tensorrt", (0.95, 1.15)), ("k80", "tensorrt", (0.95, 1.15)),
    ],
)  # fmt: skip
def test_engines_multiply_pairs_of_fp16_where_the_gpu_can(gpu, framework, gains):
    layer, runtime = conv(C=256, K=256, R=1, S=1, H=28, W=28), Runtime(framework=framework)
    fp32 = fprop(replace(layer, dtype=Dtype.fp32), load_gpu(gpu), runtime).time_us
    fp16 = fprop(layer, load_gpu(gpu), runtime)
    assert gains[0] < fp32 / fp16.time_us < gains[1]
    assert fp16.peak_share < 1


@pytest.mark.parametrize(("dtype", "of_fp16"), [("tf32", 0.5), ("bf16", 1.0), ("int8", 2.0)])
def test_a_rate_that_no_source_gives_follows_from_fp16(dtype, of_fp16):
    known = load_gpu("a100")
    gpu = replace(known, peak_flops={"fp16_tensor_fp32acc": 100e12})
    assert tensor_peak(gpu, Dtype(dtype), fp16_accumulate=False) == of_fp16 * 100e12
    assert tensor_peak(replace(known, peak_flops={}), Dtype(dtype), fp16_accumulate=False) is None


def test_fp64_stays_on_cuda_cores():
    a100 = load_gpu("a100")
    assert "fp64" in a100.tensor_dtypes
    assert tensor_peak(a100, Dtype.fp64, fp16_accumulate=False) is None
    assert cuda_core_peak(a100, Dtype.fp64) == a100.peak_flops["fp64"]


@pytest.mark.parametrize(
    ("gpu", "dtype", "of_fp32"),
    [
        ("v100", "fp16", 1.0), ("p100", "fp16", 1.0), ("k80", "fp32", 1.0), ("a100", "bf16", None),
        ("a100", "fp8", None), ("p100", "int8", None), ("p4", "int8", 4.0), ("k80", "int8", None),
        ("v100", "int8", 4.0),
    ],
)  # fmt: skip
def test_rates_of_cuda_cores(gpu, dtype, of_fp32):
    found = cuda_core_peak(load_gpu(gpu), Dtype(dtype))
    fp32 = load_gpu(gpu).peak_flops["fp32"]
    assert found is None if of_fp32 is None else found == pytest.approx(of_fp32 * fp32, rel=0.02)


def test_a_changed_gpu_of_the_same_id_is_not_mistaken():
    layer = conv(C=512, K=512, H=28, W=28)
    before = fprop(layer)
    halved = replace(A100, sms=54)
    assert fprop(layer, halved) != before
    assert fprop(layer) == before


@pytest.mark.parametrize("first", ["plain", "calibrated"])
def test_a_calibrated_gpu_and_its_plain_self_take_turns(first):
    layer = conv(C=512, K=512, H=28, W=28)
    gpus = {"plain": A100, "calibrated": replace(A100, calibration=calibration(A100, tensor_clock=0.5))}
    order = ["plain", "calibrated"] if first == "plain" else ["calibrated", "plain"]
    times = [(name, fprop(layer, gpus[name]).time_us) for name in order * 3]
    assert len(set(times)) == 2
    assert dict(times)["calibrated"] > 1.9 * dict(times)["plain"]
    assert board_of(gpus["plain"]) is board_of(gpus["plain"])


def test_orin_reaches_less_of_its_peaks_and_starts_kernels_later():
    orin = load_gpu("jetson-orin-nx-16gb")
    like_others = replace(orin, compute_capability=load_gpu("rtx-3090").compute_capability)
    small, large = conv(N=1, H=20, W=20, C=64, K=64), conv(N=16, H=80, W=80, C=512, K=512)
    times = {
        name: [fprop(layer, gpu).time_us for layer in (small, large)]
        for name, gpu in {"orin": orin, "other": like_others}.items()
    }
    assert times["orin"][0] - times["other"][0] == pytest.approx(const.ORIN.launch_us, abs=8)
    assert times["orin"][1] / times["other"][1] == pytest.approx(1 / const.ORIN.tensor_clock, rel=0.1)
    measured = board_of(replace(orin, calibration=calibration(orin, bandwidth=0.5, launch_us=2.0))).factors
    assert (measured.bandwidth, measured.launch_us) == (0.5 * const.ORIN.bandwidth, 2.0 + const.ORIN.launch_us)
    assert measured.tensor_clock == const.ORIN.tensor_clock


def test_a_calibration_that_says_nothing_changes_not_a_bit():
    neutral = replace(A100, calibration=calibration(A100, tensor_clock=1.0, cuda_clock=1.0, bandwidth=1.0))
    for layer in (conv(), conv(N=1, C=3), conv(groups=64), conv(C=62), conv(layout="NCHW"), conv(dtype=Dtype.fp32)):
        for which in ("fprop", "dgrad", "wgrad"):
            times = {estimate_pass(layer, which, gpu, RUNTIME) for gpu in (A100, neutral)}
            assert len(times) == 1


@pytest.mark.parametrize(
    ("layer", "constant"),
    [
        (conv(C=1024, K=1024), "tensor_clock"), (conv(C=512, K=512, dtype=Dtype.fp64), "cuda_clock"),
        (conv(C=512, K=512, groups=512, R=7, S=7), "cuda_clock"), (conv(N=2048, R=1, S=1), "bandwidth"),
        (conv(N=512, C=24, K=40, R=1, S=1, layout="NCHW"), "bandwidth"),
    ],
)  # fmt: skip
def test_a_constant_at_half_doubles_what_it_bounds_and_nothing_else(layer, constant):
    def time(**values):
        return fprop(layer, replace(A100, calibration=calibration(A100, **values))).time_us

    plain = fprop(layer).time_us
    others = {"tensor_clock", "cuda_clock", "bandwidth"} - {constant}
    assert time(**{constant: 0.5}) > 1.7 * plain
    assert all(time(**{other: 0.5}) < 1.3 * plain for other in others)


def test_the_launch_is_added_to_every_pass_and_never_below_nothing():
    layer = conv(N=1, C=64, K=64, H=7, W=7)
    for which in ("fprop", "dgrad", "wgrad"):
        plain = estimate_pass(layer, which, A100, RUNTIME)
        later, sooner = (
            estimate_pass(layer, which, replace(A100, calibration=calibration(A100, launch_us=us)), RUNTIME)
            for us in (25.0, -1000.0)
        )
        assert later.time_us - plain.time_us == pytest.approx(25.0)
        assert later.overhead_us - plain.overhead_us == pytest.approx(25.0)
        assert 0 <= sooner.overhead_us < plain.overhead_us
        assert sooner.time_us > 0


# the Tensor Core kernels and those on CUDA cores, by compute capability: at each step and beside it
GENERATIONS = [
    ("k80", None, const.SIMT_KEPLER), ("m40", None, const.SIMT), ("p100", None, const.SIMT),
    ("v100", const.VOLTA, const.SIMT_VOLTA), ("jetson-agx-xavier", const.VOLTA, const.SIMT_VOLTA),
    ("t4", const.TURING, const.SIMT_TURING), ("a100", const.AMPERE, const.SIMT_VOLTA),
    ("rtx-3090", const.AMPERE, const.SIMT_DOUBLED), ("orin", const.AMPERE, const.SIMT_DOUBLED),
    ("l4", const.AMPERE, const.SIMT_DOUBLED), ("h100", const.HOPPER, const.SIMT_HOPPER),
    ("b300", const.BLACKWELL, const.SIMT_HOPPER), ("thor", const.BLACKWELL, const.SIMT_HOPPER),
    ("gb10", const.AMPERE, const.SIMT_DOUBLED),
    ("b200", const.BLACKWELL, const.SIMT_HOPPER), ("rtx-5090", const.AMPERE, const.SIMT_DOUBLED),
]  # fmt: skip


@pytest.mark.parametrize(("gpu", "tensor", "simt"), GENERATIONS, ids=[name for name, _, _ in GENERATIONS])
def test_the_kernels_of_a_generation(gpu, tensor, simt):
    assert tensor is None or tensor_family(load_gpu(gpu), Dtype.fp16, tensorrt=False) == tensor
    assert simt_family(load_gpu(gpu), tensorrt=False) == simt


@pytest.mark.parametrize(
    ("dtype", "granule", "alignment"),
    [("fp16", 32, 8), ("bf16", 32, 8), ("tf32", 16, 4), ("int8", 32, 16), ("fp8", 32, 16)],
)
def test_a_step_of_the_main_loop_holds_so_many_channels(dtype, granule, alignment):
    family = tensor_family(A100, Dtype(dtype), tensorrt=False)
    assert (family.granule, family.alignment) == (granule, alignment)


def test_an_engine_launches_without_a_framework():
    for family in (tensor_family(A100, Dtype.fp16, tensorrt=True), simt_family(load_gpu("k80"), tensorrt=True)):
        assert family.setup_us[0] == 7.0
        assert family.setup_us[1:] != (7.0, 7.0)


@pytest.mark.parametrize("gpu", ["h100", "b200"])
@pytest.mark.parametrize("dtype", ["fp16", "tf32", "int8"])
def test_an_engine_starts_a_kernel_no_later_than_a_framework(gpu, dtype):
    layer = conv(N=1, C=256, K=1024, H=14, W=14, R=1, S=1, dtype=Dtype(dtype))
    eager, engine = (
        fprop(layer, load_gpu(gpu), Runtime(framework=name, cudnn_benchmark=True)) for name in ("pytorch", "tensorrt")
    )
    assert engine.time_us <= 1.05 * eager.time_us


def test_engines_on_turing_split_fprop_where_sms_idle():
    """A bottleneck of ResNets: published throughput of ResNet-50-D and 152-D on T4 (N = 1, fp16) says 51.6 us."""
    engine = Runtime(framework="tensorrt")
    sizes = (1024, 256, 1), (256, 256, 3), (256, 1024, 1)
    block = [conv(N=1, C=C, K=K, H=14, W=14, R=R, S=R) for C, K, R in sizes]
    in_engine = [fprop(layer, load_gpu("t4"), engine) for layer in block]
    assert [estimate.split_k > 1 for estimate in in_engine] == [True, True, False]
    assert sum(estimate.time_us for estimate in in_engine) == pytest.approx(51.6, rel=0.4)
    assert all(fprop(layer, load_gpu("t4")).split_k == 1 for layer in block)


def test_int8_waits_less():
    plain, packed = (tensor_family(load_gpu("t4"), dtype, tensorrt=False) for dtype in (Dtype.fp16, Dtype.int8))
    assert packed.load_latency_us == pytest.approx(0.45 * plain.load_latency_us)


@pytest.mark.parametrize(
    ("gpu", "tensor", "share"),
    [("t4", True, 0.9), ("t4", False, 0.673), ("p4", False, 0.845), ("a100", True, 1.0), ("v100", False, 1.0),
     ("l4", False, 1.0), ("l4", True, 0.56)],
)  # fmt: skip
def test_the_clock_under_load(gpu, tensor, share):
    assert clock_under_load(load_gpu(gpu), tensor=tensor) == pytest.approx(share, abs=1e-3)


def test_what_a_gpu_does_not_multiply_has_no_unit():
    board = board_of(load_gpu("v100"))
    assert board.units(Dtype.bf16, False) == (None, None)
    units = board.units(Dtype.fp16, False)
    unit = units[0]
    assert units is board.units(Dtype.fp16, False)
    assert unit.peak == pytest.approx(125e12, rel=0.02)
    assert unit.tables.keys() >= {"fprop", "dgrad", "wgrad", "pointwise wgrad", "winograd", "fused winograd", "fft"}


@pytest.mark.parametrize(
    ("gpu", "share"), [("a100", 1.0), ("l40s", 1.0), ("h100", 0.5), ("b200", 0.595), ("rtx-5090", 1.0)]
)
def test_wgrad_of_tf32_runs_amperes_instructions_on_hopper_and_its_heirs(gpu, share):
    """So H100 was timed; consumer Blackwell has no others to begin with."""
    board = board_of(load_gpu(gpu))
    unit = board.units(Dtype.tf32, False)[0]
    assert unit.peak == pytest.approx(tensor_peak(board.gpu, Dtype.tf32, fp16_accumulate=False))
    fprop, wgrad = (
        next(one for one in unit.tables[table] if (one.tm, one.tn) == (128, 128)) for table in ("fprop", "wgrad")
    )
    assert fprop.rounds_us[1] / wgrad.rounds_us[1] == pytest.approx(share, rel=0.03)  # latency is the same


@pytest.mark.parametrize(
    ("gpu", "dtype", "share"),
    [
        ("h100", Dtype.fp16, 1.0), ("h200", Dtype.bf16, 1.0), ("b200", Dtype.fp16, 1.0),
        ("h100", Dtype.fp8, 0.63), ("h20", Dtype.fp8, 1.0), ("b200", Dtype.fp8, 1.0),
    ],
)  # fmt: skip
def test_8_bits_are_taken_to_do_so_on_hopper_alone_where_its_rate_is_not_cut(gpu, dtype, share):
    board = board_of(load_gpu(gpu))
    unit = board.units(dtype, False)[0]
    assert unit.peak == pytest.approx(share * tensor_peak(board.gpu, dtype, fp16_accumulate=False))


@pytest.mark.parametrize("gpu", ["v100", "t4", "a100", "rtx-3090", "h100", "b200", "b300", "rtx-5090"])
def test_int8_is_multiplied_no_faster_than_its_units_can(gpu):
    """Blackwell Ultra's Tensor Cores are as slow at int8 as its integer lanes, which are half of its fp32 lanes."""
    board = board_of(load_gpu(gpu))
    estimate = fprop(conv(dtype=Dtype.int8, N=64, C=512, K=512, H=28, W=28), board.gpu)
    assert estimate.tflops * 1e12 <= board.peak(Dtype.int8)
    assert cuda_core_peak(load_gpu("b300"), Dtype.int8) == pytest.approx(153.5e12, rel=0.03)
