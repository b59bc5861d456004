"""What estimates say: sums over the passes that run, and equal ones are equal."""

import pytest
from calibrated import calibration
from convolutions import A100, FIRST, RUNTIME, conv
from convolutions import fprop as fprop_of_problem
from msgspec.structs import replace

from convlint.estimate import estimate_layer, estimate_pass
from convlint.estimate.results import basis, kind_of, problem_of
from convlint.gpus.gpu import Group, load_gpu
from convlint.model.estimates import LayerEstimate, PassEstimate
from convlint.model.layer import PASSES, ConvLayer, Dtype, gemm, with_output
from convlint.model.runtime import Runtime, Version

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
}


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
    assert one.passes["fprop"].bytes / one.passes["fprop"].time_us * 1e6 > one.passes["fprop"].roof.reached_bandwidth


def test_one_dimension_is_a_row_and_three_add_depth():
    line = conv(N=64, H=1, W=4096, R=1, S=5, C=256, K=256)
    assert fprop_of_problem(replace(line, dims=1)).time_us == fprop_of_problem(line).time_us
    flat = conv(N=32, C=128, K=128, H=28, W=28)
    deep = with_output(replace(flat, dims=3, N=4, D=8, T=1))
    for which in PASSES:
        one, two = estimate_pass(flat, which, A100, RUNTIME), estimate_pass(deep, which, A100, RUNTIME)
        # as much work, by kernels that find their positions in three dimensions
        assert 1.0 < two.time_us / one.time_us < 1.5
        assert (one.flops, one.bytes, one.tiles) == (two.flops, two.bytes, two.tiles)
    cube = with_output(replace(deep, T=3, PadD=1, PadD_end=1))
    assert fprop_of_problem(cube).flops == 3 * fprop_of_problem(deep).flops


def test_transposed_layers_take_the_roles_of_their_mirror():
    generator = with_output(
        ConvLayer(name="up", op="conv_transpose", N=64, C=512, H=8, W=8, K=256, R=4, S=4, U=2, V=2, PadH=1, PadW=1,
                  PadH_end=1, PadW_end=1, dtype=Dtype.fp16, layout="NHWC")
    )  # fmt: skip
    assert (generator.P, generator.Q) == (16, 16)
    layer = estimate_layer(generator, A100, RUNTIME, "training")
    assert layer.passes["fprop"].flops == 2 * 64 * 8 * 8 * 512 * 256 * 16
    assert layer.passes["fprop"].gemm == gemm(generator, "fprop")


UNKNOWN = [{name: None} for name in ("N", "C", "H", "W", "K", "R", "S", "P", "Q", "D", "T", "Z", "dtype")]


@pytest.mark.parametrize("change", [*UNKNOWN, {"P": 0}, {"C": 0}, {"K": -1}, {"groups": 5}, {"U": 0}])
def test_unknown_sizes_and_invalid_layers_give_no_estimate(change):
    assert fprop_of_problem(replace(conv(), **change)) is None


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"name": "other"}, True), ({"calls": 3}, True), ({"first": True}, True), ({"bias": True}, True),
        ({"DilH": 2}, False), ({"PadH": 2}, True), ({"PadH": 0, "PadH_end": 0, "PadW": 0, "PadW_end": 0}, False),
        ({"N": 2}, False), ({"layout": "NCHW"}, False), ({"U": 2}, False), ({"groups": 2}, False),
        ({"residual_inputs": 1}, False), ({"dtype": Dtype.fp32}, False),
    ],
)  # fmt: skip
def test_which_layers_are_one_problem(change, same):
    """P and Q stay as they are: what makes them is no part of it."""
    assert (problem_of(replace(conv(), **change)) == problem_of(conv())) is same


def test_a_transposed_layer_is_turned_around():
    layer = replace(conv(C=64, K=32), op="conv_transpose", P=112, Q=114)
    problem = problem_of(layer)
    assert (problem.C, problem.K) == (32, 64)
    assert (problem.H, problem.W, problem.P, problem.Q) == (112, 114, 56, 56)


@pytest.mark.parametrize(
    ("change", "name", "expected"),
    [
        ({}, "strided", False), ({"U": 2}, "strided", True), ({"V": 2}, "strided", True),
        ({"StrideD": 2}, "strided", True), ({"layout": "NCHW"}, "nchw", True), ({"layout": "NHWC"}, "nchw", False),
        ({"layout": "auto"}, "nchw", False),
    ],
)  # fmt: skip
def test_any_stride_counts_and_only_a_known_layout_is_nchw(change, name, expected):
    assert getattr(problem_of(replace(conv(), **change)), name) is expected


@pytest.mark.parametrize(
    ("kind", "which", "compute", "capability", "expected"),
    [
        ("dense", "wgrad", "fp16", "7.0", "measured"),
        ("dense", "fprop", "fp16", "8.0", "measured"),
        ("dense", "wgrad", "fp16", "8.0", "extrapolated"),
        ("dense", "fprop", "fp16", "10.0", "extrapolated"),
        ("dense", "dgrad", "bf16", "9.0", "measured"),
        ("dense", "fprop", "tf32", "9.0", "measured"),
        ("dense", "wgrad", "tf32", "8.0", "extrapolated"),  # from fp16's, at another rate
        ("dense", "fprop", "bf16", "8.0", "extrapolated"),  # the same kernels as fp16's
        ("dense", "fprop", "fp8", "9.0", "assumed"),
        ("depthwise", "fprop", "fp16", "7.0", "extrapolated"),  # timed in TensorRT alone
        ("depthwise", "dgrad", "fp16", "7.0", "extrapolated"),  # within whole steps alone
        ("depthwise", "wgrad", "fp8", "9.0", "assumed"),
        ("grouped", "wgrad", "fp32", "8.0", "assumed"),
        ("volume", "dgrad", "tf32", "8.6", "measured"),
        ("volume", "fprop", "tf32", "8.9", "extrapolated"),
        ("volume", "wgrad", "fp16", "8.0", "extrapolated"),
        ("volume", "wgrad", "fp32", "7.5", "assumed"),
        ("volume", "wgrad", "fp16", "7.0", "measured"),
        ("volume", "fprop", "bf16", "7.0", "extrapolated"),
    ],
)
def test_what_a_pass_rests_on(kind, which, compute, capability, expected):
    assert basis(kind, which, Dtype(compute), Version(capability)) == expected


@pytest.mark.parametrize(
    ("kind", "which", "compute", "runs", "expected"),
    [
        ("dense", "fprop", "fp16", "nchw", "measured"),
        ("volume", "fprop", "bf16", "nchw", "measured"),
        ("grouped", "fprop", "fp16", "nchw", "measured"),
        ("dense", "fprop", "fp16", "other", "measured"),
        ("depthwise", "wgrad", "bf16", "nchw", "measured"),
        ("depthwise", "wgrad", "bf16", "other", "measured"),
        ("depthwise", "fprop", "bf16", "tensorrt", "extrapolated"),
        ("grouped", "wgrad", "fp32", "nchw", "assumed"),
        ("dense", "fprop", "int8", "nchw", "extrapolated"),
    ],
)
def test_hopper_was_timed_in_both_layouts(kind, which, compute, runs, expected):
    assert basis(kind, which, Dtype(compute), Version("9.0"), runs) == expected


@pytest.mark.parametrize(
    ("sizes", "kind"),
    [
        ({}, "dense"), ({"groups": 2}, "grouped"), ({"C": 32, "K": 64, "groups": 32}, "depthwise"),
        ({"dims": 3, "D": 8, "T": 3}, "volume"), ({"dims": 1, "H": 1, "R": 1}, "dense"),
    ],
)  # fmt: skip
def test_kinds(sizes, kind):
    assert kind_of(problem_of(conv(**sizes))) == kind


@pytest.mark.parametrize(
    ("gpu", "mode", "sizes", "expected"),
    [
        ("v100", "training", {}, "measured"), ("a100", "inference", {}, "measured"),
        ("a100", "training", {}, "extrapolated"), ("h100", "training", {"dtype": Dtype.fp8}, "assumed"),
        ("v100", "training", {"C": 64, "K": 64, "groups": 64}, "extrapolated"),
        # what a transposed layer runs forward is a dgrad
        ("h100", "inference", {"op": "conv_transpose", "dtype": Dtype.fp32}, "measured"),
    ],
)  # fmt: skip
def test_a_layer_rests_on_what_its_weakest_pass_does(gpu, mode, sizes, expected):
    estimate = estimate_layer(conv(**sizes), load_gpu(gpu), Runtime(), mode)
    assert estimate.basis == expected


@pytest.mark.parametrize(
    ("gpu", "framework", "sizes", "expected"),
    [
        ("v100", "tensorrt", {"C": 64, "groups": 64}, "measured"),
        ("v100", "pytorch", {"C": 64, "groups": 64, "layout": "NCHW"}, "extrapolated"),
        ("a100", "pytorch", {"C": 64, "groups": 64, "layout": "NCHW", "dtype": Dtype.fp32}, "measured"),
        ("a100", "pytorch", {"C": 64, "groups": 64, "dtype": Dtype.fp32}, "extrapolated"),  # cuDNN's kernels
        ("t4", "pytorch", {}, "measured"),
        ("gtx-1650", "pytorch", {}, "extrapolated"),  # of T4's generation, without its Tensor Cores
        ("gtx-1650", "pytorch", {"dtype": Dtype.fp32}, "measured"),
        ("a100", "pytorch", {"C": 64, "groups": 64, "dims": 3, "D": 8, "T": 3, "dtype": Dtype.fp32}, "extrapolated"),
    ],
)
def test_what_runs_a_layer_counts(gpu, framework, sizes, expected):
    estimate = estimate_layer(conv(**sizes), load_gpu(gpu), Runtime(framework=framework), "inference")
    assert estimate.basis == expected


def test_what_was_calibrated_is_measured_and_nothing_else():
    groups = tuple(Group(kind="depthwise", dtype=Dtype.bf16, which=which, rows=4, spread=0.1) for which in PASSES)
    gpu = load_gpu("b200")
    there = replace(gpu, calibration=calibration(gpu, groups=groups))

    def of(gpu, mode="training", **sizes):
        return estimate_layer(conv(**sizes), gpu, Runtime(), mode).basis

    layer = {"groups": 64, "dtype": Dtype.bf16}
    assert (of(gpu, **layer), of(there, **layer)) == ("extrapolated", "measured")
    for other in ({"dtype": Dtype.bf16}, {"groups": 64}, {"groups": 32, "dtype": Dtype.bf16}):
        assert of(there, **other) == of(gpu, **other) != "measured"
    forward = replace(gpu, calibration=calibration(gpu, groups=groups[:1]))
    assert (of(forward, **layer), of(forward, "inference", **layer)) == ("extrapolated", "measured")


def test_too_few_timings_of_a_group_say_nothing_of_it():
    gpu, layer = load_gpu("b200"), conv(groups=64, dtype=Dtype.bf16)
    for rows, expected in ((3, "extrapolated"), (4, "measured")):
        groups = tuple(
            Group(kind="depthwise", dtype=Dtype.bf16, which=which, rows=rows, spread=0.1) for which in PASSES
        )
        there = replace(gpu, calibration=calibration(gpu, groups=groups))
        assert estimate_layer(layer, there, Runtime(), "training").basis == expected


def estimate(**sizes) -> LayerEstimate:
    return estimate_layer(conv(**sizes), A100, RUNTIME, "training")


@pytest.mark.parametrize("calls", [1, 3])
@pytest.mark.parametrize("sizes", [{"N": 55}, {"C": 512, "K": 72}, {"C": 96, "K": 96, "groups": 96}, {"first": True}])
def test_a_layer_is_the_sum_of_its_passes(sizes, calls):
    whole = estimate(calls=calls, **sizes)
    each = whole.passes.values()
    assert whole.time_us == pytest.approx(calls * sum(one.time_us for one in each))
    assert whole.unquantized_us == pytest.approx(calls * sum(one.unquantized_us for one in each))
    assert list(whole.passes) == [which for which in PASSES if which != "dgrad" or not sizes.get("first")]
    assert list(estimate_layer(conv(**sizes), A100, RUNTIME, "inference").passes) == ["fprop"]


def test_a_pass_says_in_numbers_what_it_pays_for():
    one = estimate(C=512, K=72, H=28, W=28).passes["fprop"]
    assert isinstance(one, PassEstimate)
    assert one.tflops == pytest.approx(one.flops / one.time_us * 1e-6)
    assert one.arithmetic_intensity == pytest.approx(one.flops / one.bytes)
    assert one.waves == pytest.approx(one.tiles / (A100.sms * one.resident_tiles))
    assert one.last_wave_tiles == one.tiles % (A100.sms * one.resident_tiles)
    assert one.time_us - one.unquantized_us >= max(one.lost_to_tiles_us, one.lost_to_waves_us) > 0


def test_equal_layers_have_equal_estimates():
    assert estimate(N=55) == estimate(N=55)
    assert estimate(N=55) != estimate(N=56)
