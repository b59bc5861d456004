"""What all layers of one network share on one target."""

from typing import Any

import pytest
from convolutions import conv
from layer_facts import facts

from convlint.facts.quantity import UNKNOWN
from convlint.facts.target import DEFAULTS, OWNERS, assumptions, framework_of, layout_picks, setting_of
from convlint.model.layer import Dtype, Mode
from convlint.model.runtime import Runtime

TUNING = frozenset(("runtime.framework", "runtime.cudnn_benchmark", "runtime.deterministic"))


def test_every_default_is_of_a_setting_and_documented() -> None:
    for framework, settings in DEFAULTS.items():
        for name, (value, source) in settings.items():
            assert name in Runtime.__struct_fields__
            assert value is not None
            assert len(source) > 20, (framework, name)
    assert set(OWNERS) <= set(Runtime.__struct_fields__)
    assert set(OWNERS.values()) <= set(DEFAULTS)
    assert "cudnn_benchmark" not in DEFAULTS["pytorch"]  # its absence does not say that it is off


@pytest.mark.parametrize(
    ("given", "framework"),
    [
        ({}, None),
        ({"framework": "jax"}, "jax"),
        ({"cudnn_benchmark": False}, "pytorch"),
        ({"tf_cudnn_use_autotune": False}, "tensorflow"),
        ({"cudnn_conv_algo_search": "DEFAULT"}, "onnxruntime"),
        ({"mxnet_cudnn_autotune_default": 0}, "mxnet"),
        ({"xla_gpu_autotune_level": 0}, "jax"),
        ({"framework": "tensorflow", "cudnn_benchmark": True}, "tensorflow"),  # what is said goes first
        ({"cudnn_benchmark": True, "tf_cudnn_use_autotune": True}, None),  # of two owners nobody can tell
        ({"deterministic": True, "fixed_input_size": True}, None),
    ],
)
def test_the_framework_is_the_one_that_is_given_or_whose_settings_are(
    given: dict[str, Any], framework: str | None
) -> None:
    assert framework_of(Runtime(**given)) == framework


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({}, "deterministic", None),
        ({"framework": "cudnn"}, "deterministic", None),  # no framework: nothing is documented
        ({"framework": "pytorch"}, "deterministic", False),
        ({"cudnn_benchmark": False}, "deterministic", False),
        ({"framework": "pytorch", "deterministic": True}, "deterministic", True),
        ({"framework": "pytorch"}, "cudnn_benchmark", None),
        ({"framework": "pytorch"}, "tf_cudnn_use_autotune", None),
        ({"framework": "tensorflow"}, "tf_cudnn_use_autotune", True),
        ({"framework": "tensorflow", "tf_cudnn_use_autotune": False}, "tf_cudnn_use_autotune", False),
        ({"framework": "mxnet"}, "mxnet_cudnn_autotune_default", 1),
        ({"framework": "mxnet", "mxnet_cudnn_autotune_default": 0}, "mxnet_cudnn_autotune_default", 0),
        ({"framework": "jax"}, "xla_gpu_autotune_level", 4),
        ({"framework": "onnxruntime"}, "cudnn_conv_algo_search", "EXHAUSTIVE"),
        ({"framework": "pytorch"}, "fixed_input_size", None),
    ],
)
def test_a_setting_that_is_left_out_has_its_frameworks_default(given: dict[str, Any], name: str, value: object) -> None:
    assert setting_of(Runtime(**given), name) == value


@pytest.mark.parametrize(
    ("given", "names", "words"),
    [
        ({"cudnn_benchmark": False}, TUNING,
         ["cudnn_benchmark is a setting of pytorch", "deterministic is not given: pytorch's default is off"]),
        ({"cudnn_benchmark": False}, {"runtime.cudnn_benchmark"}, []),  # what a rule does not read it does not assume
        ({"framework": "pytorch", "cudnn_benchmark": False}, TUNING,
         ["deterministic is not given: pytorch's default is off"]),
        ({"framework": "pytorch", "cudnn_benchmark": False, "deterministic": False}, TUNING, []),
        ({"framework": "tensorflow"}, {"runtime.tf_cudnn_use_autotune"},
         ["tf_cudnn_use_autotune is not given: tensorflow's default is on"]),
        ({"framework": "mxnet"}, {"runtime.mxnet_cudnn_autotune_default"},
         ["mxnet_cudnn_autotune_default is not given: mxnet's default is 1"]),  # a number, not a truth
        ({"framework": "onnxruntime"}, {"runtime.cudnn_conv_algo_search"},
         ["cudnn_conv_algo_search is not given: onnxruntime's default is EXHAUSTIVE"]),
        ({}, TUNING, []),
    ],
)  # fmt: skip
def test_what_is_taken_for_granted_is_said(given: dict[str, Any], names: set[str], words: list[str]) -> None:
    assert assumptions(Runtime(**given), frozenset(names)) == words


@pytest.mark.parametrize(
    ("gpu", "runtime", "expected"),
    [
        ("a100", "cuda: '10.2'", {"cuda_too_old": True, "cuda_dropped": False, "cuda_first": "11.0"}),
        ("a100", "cuda: '11.0'", {"cuda_too_old": False}),
        ("k80", "cuda: '12.1'", {"cuda_dropped": True, "cuda_last": "11.8"}),
        ("k80", "cuda: '11.8'", {"cuda_dropped": False, "cuda_too_old": False}),
        (
            "a100",
            "framework: pytorch",
            {"cuda_dropped": UNKNOWN, "cudnn_too_old": UNKNOWN, "framework_dropped": UNKNOWN},
        ),
        (
            "b200",
            "cudnn_benchmark: true, framework_version: '2.6'",  # PyTorch's, whose setting it is
            {"framework_too_old": True, "framework_first": "2.7"},
        ),
    ],
)
def test_versions(gpu: str, runtime: str, expected: dict[str, Any]) -> None:
    seen = facts("C: 8", gpu=gpu, runtime=runtime)["support"]
    for name, value in expected.items():
        found = getattr(seen, name)
        assert found is value if value is UNKNOWN else str(found) == str(value), name


@pytest.mark.parametrize(
    ("gpu", "name", "needs"),
    [
        ("k80", "support.cuda_dropped", ("runtime.cuda",)),
        ("a100", "support.cuda_too_old", ("runtime.cuda",)),
        ("a100", "support.cuda_dropped", ()),  # it is not: nobody need be asked
        ("k80", "support.cuda_first", ()),
    ],
)
def test_a_version_is_asked_for_where_there_is_a_bound(gpu: str, name: str, needs: tuple[str, ...]) -> None:
    assert facts("C: 8", gpu=gpu).needs(frozenset((name,))) == needs


def test_a_version_of_which_nothing_is_known_is_named() -> None:
    """No release notes at hand say whether cuDNN 8.6 still runs on Kepler: nobody is asked for what they gave."""
    known = facts("C: 8", gpu="k80", runtime="framework: pytorch, cudnn: '8.6'")
    assert known.needs(frozenset(("support.cudnn_dropped",))) == ("a source on cudnn 8.6",)
    assert facts("C: 8", gpu="k80", runtime="cudnn: '8.5'").needs(frozenset(("support.cudnn_dropped",))) == ()


@pytest.mark.parametrize(
    ("gpu", "dtype", "runtime", "compute", "alignment", "tensor"),
    [
        ("a100", "fp16", "", "fp16", 8, True), ("a100", "fp32", "", "tf32", 4, True),
        ("a100", "fp32", "tf32: false", "fp32", 1, False), ("a100", "int8", "", "int8", 16, True),
        ("a100", "int8", "framework: tensorrt", "int8", 32, True), ("a100", "fp64", "", "fp64", 1, False),
        ("p100", "fp16", "", "fp16", 1, False), ("titan-xp", "fp16", "", "fp32", 1, False),
        ("h100", "fp8", "", "fp8", 16, True), ("v100", "fp32", "", "fp32", 1, False),
    ],
)  # fmt: skip
def test_precision(gpu: str, dtype: str, runtime: str, compute: str, alignment: int, tensor: bool) -> None:
    found = facts(f"C: 8, dtype: {dtype}", gpu=gpu, runtime=runtime)
    assert (found["compute_dtype"], found["alignment"], found["on_tensor_cores"]) == (compute, alignment, tensor)


def test_precision_is_unknown_without_a_dtype() -> None:
    found = facts("C: 8")
    assert found["compute_dtype"] is found["alignment"] is found["on_tensor_cores"] is UNKNOWN


@pytest.mark.parametrize("mode", ["training", "inference"])
def test_mode(mode: Mode) -> None:
    found = facts("C: 8", mode=mode)
    assert (found["mode"], found["training"]) == (mode, mode == "training")


def test_gpus_and_settings_are_read_as_they_are_given() -> None:
    found = facts("C: 8", gpu="k80", runtime="framework: pytorch, cudnn_benchmark: true, deterministic: true")
    assert (found["gpu"].id, found["gpu"].architecture, found["gpu"].tensor_cores) == ("k80", "kepler", False)
    assert (found["gpu"].tensor_fp16, found["gpu"].dies_per_board) == (False, 2)
    assert (found["runtime"].framework, found["runtime"].cudnn_benchmark) == ("pytorch", True)
    assert found["runtime"].deterministic is True
    assert found["runtime"].fixed_input_size is UNKNOWN
    assert found["framework_picks_layout"] is False


@pytest.mark.parametrize(
    ("runtime", "framework", "deterministic", "stated"),
    [
        ("framework: pytorch", "pytorch", False, False),
        ("framework: pytorch, deterministic: false", "pytorch", False, True),
        ("cudnn_benchmark: true", "pytorch", False, False),
        ("fixed_input_size: true", UNKNOWN, UNKNOWN, False),
        ("fixed_input_size: true, deterministic: true", UNKNOWN, True, True),
    ],
)
def test_what_is_left_out_has_its_default_and_what_is_given_can_be_told(
    runtime: str, framework: object, deterministic: object, stated: bool
) -> None:
    found = facts("C: 8", runtime=runtime)
    assert found["runtime"].framework is framework or found["runtime"].framework == framework
    assert found["runtime"].deterministic is deterministic
    assert found["stated"].deterministic is stated
    assert found["stated"].cudnn_benchmark is ("cudnn_benchmark" in runtime)


def test_the_same_network_under_other_settings() -> None:
    context = facts("N: 8, C: 64, H: 28, W: 28, K: 64, R: 3, S: 3, dtype: fp32, layout: NHWC").context
    other = context.with_runtime(Runtime(tf32=False, deterministic=True))
    assert (context.precision(Dtype.fp32)[0], other.precision(Dtype.fp32)[0]) == (Dtype.tf32, Dtype.fp32)
    assert (other.shared["runtime"].deterministic, other.shared["stated"].deterministic) == (True, True)
    assert context.shared["stated"].deterministic is False
    assert (other.time_us, other.network_us, other.network) == (context.time_us, context.network_us, context.network)
    assert other.shared["network"] is context.shared["network"]


@pytest.mark.parametrize(
    ("runtime", "runs"),
    [
        ('framework: pytorch, cudnn: "7.5"', False), ('framework: pytorch, cudnn: "7.6.3"', True),
        ('cudnn_benchmark: true, cudnn: "7.5"', False), ('cudnn: "7.5"', True),
        ('framework: onnxruntime, framework_version: "1.19"', False),
        ('cudnn_conv_algo_search: HEURISTIC, framework_version: "1.19"', False),
        ('cudnn_conv_algo_search: HEURISTIC, framework_version: "1.20"', True),
    ],
)  # fmt: skip
def test_versions_keep_a_framework_from_nhwc_that_is_named_by_its_settings_alone(runtime: str, runs: bool) -> None:
    assert facts("N: 8, C: 64, H: 28, W: 28, K: 64, R: 3, S: 3, dtype: fp16", runtime=runtime)["runs_nhwc"] is runs


@pytest.mark.parametrize(
    ("runtime", "picks"),
    [
        (Runtime(), False), (Runtime(framework="pytorch"), False), (Runtime(framework="jax"), True),
        (Runtime(framework="tensorflow"), True), (Runtime(framework="tensorrt"), True),
        (Runtime(framework="pytorch", compile=True), True), (Runtime(framework="pytorch", compile=False), False),
        (Runtime(framework="onnxruntime"), False), (Runtime(framework="onnxruntime", prefer_nhwc=True), True),
        (Runtime(framework="pytorch", prefer_nhwc=True), False),
        # the framework is the one whose settings are given, as rules see it
        (Runtime(tf_cudnn_use_autotune=True), True), (Runtime(cudnn_benchmark=True), False),
        (Runtime(cudnn_conv_algo_search="HEURISTIC", prefer_nhwc=True), True),
    ],
)  # fmt: skip
def test_who_picks_the_layout(runtime: Runtime, picks: bool) -> None:
    assert layout_picks(runtime, [], "training")[0] is picks


COMPILED = Runtime(framework="pytorch", compile=True)


@pytest.mark.parametrize(
    ("sizes", "in_training", "in_inference"),
    [
        ({}, True, True), ({"C": 96, "K": 96, "groups": 2}, False, False),
        ({"C": 64, "K": 64, "groups": 64}, True, True),  # depthwise
        ({"C": 256, "K": 128}, False, True), ({"C": 256, "K": 128, "R": 1, "S": 1}, True, True),
        ({"C": 128, "K": 256, "op": "conv_transpose"}, False, True),
    ],
)  # fmt: skip
def test_inductor_leaves_layouts_alone_for_groups_and_for_half_as_many_channels(
    sizes: dict[str, Any], in_training: bool, in_inference: bool
) -> None:
    """decide_layout_opt of PyTorch 2.13, which was asked."""
    assert layout_picks(COMPILED, [conv(**sizes)], "training") == (in_training, False)
    assert layout_picks(COMPILED, [conv(**sizes)], "inference") == (in_inference, False)


def test_a_few_groups_in_a_network_are_outweighed_in_inference() -> None:
    layers = [conv(C=64, K=64, groups=32), *[conv(C=64, K=64)] * 3]
    assert layout_picks(COMPILED, layers, "inference")[0]
    assert not layout_picks(COMPILED, layers, "training")[0]
