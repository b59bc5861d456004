"""Family 5: which settings of which framework are worth a word, and when the question does not arise."""

from __future__ import annotations

import pytest
from rule_outcomes import SILENT, findings, outcome

LAYER = "{ name: x, N: 32, C: 64, H: 56, W: 56, K: 64, R: 3, S: 3, padding: 1, dtype: fp16 }"
FRAMEWORK = "runtime.framework"
FIXED = "runtime.fixed_input_size"
DETERMINISTIC = "runtime.deterministic"


def named(expected: object) -> object:
    return set(expected) if isinstance(expected, tuple) else expected


@pytest.mark.parametrize(
    ("runtime", "expected"),
    [
        ("framework: pytorch, cudnn_benchmark: false, fixed_input_size: true, deterministic: false", "warning"),
        ("framework: pytorch, cudnn_benchmark: true, fixed_input_size: true, deterministic: false", SILENT),
        ("framework: pytorch, cudnn_benchmark: false, fixed_input_size: false, deterministic: false", SILENT),
        ("framework: pytorch, cudnn_benchmark: false, fixed_input_size: true, deterministic: true", SILENT),
        # one setting settles it, whatever the others are
        ("framework: pytorch, cudnn_benchmark: true", SILENT),
        ("framework: pytorch, fixed_input_size: false", SILENT),
        ("framework: pytorch, deterministic: true", SILENT),
        ("framework: pytorch, cudnn_benchmark: false, fixed_input_size: true", (DETERMINISTIC,)),
        ("framework: pytorch", ("runtime.cudnn_benchmark", FIXED, DETERMINISTIC)),
        ("cudnn_benchmark: false, fixed_input_size: true, deterministic: false", (FRAMEWORK,)),
        *((f"framework: {name}", SILENT) for name in ("tensorflow", "jax", "tensorrt", "onnxruntime", "mxnet")),
    ],
)
def test_enable_autotune(runtime: str, expected: object) -> None:
    assert named(outcome("CL501", LAYER, runtime=runtime)) == named(expected)


def test_enable_autotune_points_at_the_setting_and_turns_it_on() -> None:
    runtime = "framework: pytorch, cudnn_benchmark: false, fixed_input_size: true, deterministic: false"
    (finding,) = findings("CL501", LAYER, runtime=runtime)
    assert finding.layer is None
    assert finding.location.line == 2
    assert finding.fix is not None
    assert finding.fix.set == {"runtime.cudnn_benchmark": True}
    assert "torch.backends.cudnn.benchmark = True" in finding.fix.describe


@pytest.mark.parametrize(
    ("runtime", "expected"),
    [
        ("framework: pytorch, cudnn_benchmark: true, fixed_input_size: false", "warning"),
        ("framework: pytorch, cudnn_benchmark: true, fixed_input_size: true", SILENT),
        ("framework: pytorch, cudnn_benchmark: false", SILENT),
        ("framework: pytorch, cudnn_benchmark: true", (FIXED,)),
        ("framework: pytorch, fixed_input_size: false", ("runtime.cudnn_benchmark",)),
        ("framework: onnxruntime, cudnn_conv_algo_search: EXHAUSTIVE, fixed_input_size: false", "warning"),
        ("framework: onnxruntime, cudnn_conv_algo_search: HEURISTIC, fixed_input_size: false", SILENT),
        ("framework: onnxruntime, cudnn_conv_algo_search: DEFAULT, fixed_input_size: false", SILENT),
        ("framework: onnxruntime, fixed_input_size: false", ("runtime.cudnn_conv_algo_search",)),
        ("framework: tensorflow, tf_cudnn_use_autotune: true, fixed_input_size: false", "warning"),
        ("framework: tensorflow, tf_cudnn_use_autotune: false, fixed_input_size: false", SILENT),
        ("framework: mxnet, mxnet_cudnn_autotune_default: 2, fixed_input_size: false", "warning"),
        ("framework: mxnet, mxnet_cudnn_autotune_default: 0, fixed_input_size: false", SILENT),
        ("framework: jax, fixed_input_size: false", SILENT),
        ("framework: tensorrt, fixed_input_size: false", SILENT),
        ("fixed_input_size: true", SILENT),
        ("cudnn_benchmark: true, fixed_input_size: false", (FRAMEWORK,)),
    ],
)
def test_autotune_varying_input(runtime: str, expected: object) -> None:
    assert named(outcome("CL502", LAYER, runtime=runtime)) == named(expected)


@pytest.mark.parametrize(
    ("runtime", "expected"),
    [
        ("framework: pytorch, deterministic: true, cudnn_benchmark: true", "info"),
        ("framework: pytorch, deterministic: true, cudnn_benchmark: false", SILENT),
        ("framework: pytorch, deterministic: false", SILENT),
        ("framework: pytorch, cudnn_benchmark: false", SILENT),
        ("framework: pytorch, cudnn_benchmark: true", (DETERMINISTIC,)),
        ("framework: pytorch, deterministic: true", ("runtime.cudnn_benchmark",)),
        ("framework: jax, deterministic: true, xla_gpu_autotune_level: 4", "info"),
        ("framework: jax, deterministic: true, xla_gpu_autotune_level: 0", SILENT),
        ("framework: tensorflow, deterministic: true, tf_cudnn_use_autotune: true", "info"),
        ("framework: tensorflow, deterministic: true, tf_cudnn_use_autotune: false", SILENT),
        ("framework: tensorrt, deterministic: true", SILENT),
        ("deterministic: false", SILENT),
        ("deterministic: true", (FRAMEWORK,)),
    ],
)
def test_deterministic_limits_autotune(runtime: str, expected: object) -> None:
    assert named(outcome("CL503", LAYER, runtime=runtime)) == named(expected)


@pytest.mark.parametrize(
    ("runtime", "expected"),
    [
        ("framework: tensorflow, tf_cudnn_use_autotune: 0", "warning"),
        ("framework: tensorflow, tf_cudnn_use_autotune: 1", SILENT),
        # no tuning is right where each shape would be tuned anew, and has no effect where results must repeat
        ("framework: tensorflow, tf_cudnn_use_autotune: 0, fixed_input_size: false", SILENT),
        ("framework: tensorflow, tf_cudnn_use_autotune: 0, fixed_input_size: true", "warning"),
        ("framework: tensorflow, tf_cudnn_use_autotune: 0, deterministic: true", SILENT),
        ("framework: tensorflow, tf_cudnn_use_autotune: 0, deterministic: false", "warning"),
        ("framework: mxnet, mxnet_cudnn_autotune_default: 0", "warning"),
        ("framework: mxnet, mxnet_cudnn_autotune_default: 1", SILENT),
        ("framework: jax, xla_gpu_autotune_level: 0", "warning"),
        ("framework: jax, xla_gpu_autotune_level: 1", SILENT),
        ("framework: onnxruntime, cudnn_conv_algo_search: DEFAULT", "warning"),
        ("framework: onnxruntime, cudnn_conv_algo_search: DEFAULT, fixed_input_size: false", "warning"),
        ("framework: onnxruntime, cudnn_conv_algo_search: EXHAUSTIVE", SILENT),
        # another framework's variable
        ("framework: jax, xla_gpu_autotune_level: 4, tf_cudnn_use_autotune: 0", SILENT),
        ("framework: pytorch, cudnn_benchmark: false, tf_cudnn_use_autotune: 0", SILENT),
        ("framework: tensorrt", SILENT),
    ],
)
def test_autotune_disabled(runtime: str, expected: object) -> None:
    assert named(outcome("CL504", LAYER, runtime=runtime)) == named(expected)


@pytest.mark.parametrize(
    ("framework", "setting"),
    [
        ("tensorflow", "runtime.tf_cudnn_use_autotune"),
        ("mxnet", "runtime.mxnet_cudnn_autotune_default"),
        ("jax", "runtime.xla_gpu_autotune_level"),
        ("onnxruntime", "runtime.cudnn_conv_algo_search"),
    ],
)
def test_autotune_disabled_asks_for_the_setting_of_this_framework_alone(framework: str, setting: str) -> None:
    needs = outcome("CL504", LAYER, runtime=f"framework: {framework}, fixed_input_size: true, deterministic: false")
    assert needs == (setting,)


@pytest.mark.parametrize(
    ("dtype", "gpu", "runtime", "expected"),
    [
        ("fp16", "v100", 'cudnn: "7.6.2"', "warning"),
        ("fp16", "v100", 'cudnn: "7.6.3"', SILENT),
        ("fp16", "v100", 'cudnn: "7.6"', "warning"),
        ("fp16", "t4", 'cudnn: "7.5"', "warning"),
        ("int8", "t4", 'cudnn: "7.5"', "warning"),
        ("fp16", "t4", 'cudnn: "8.9"', SILENT),
        ("fp16", "t4", "framework: pytorch", ("runtime.cudnn",)),
        # nothing runs on Tensor Cores, so the version does not matter, known or not
        ("fp32", "t4", "", SILENT),
        ("int8", "v100", "", SILENT),
        ("bf16", "v100", "", SILENT),
        ("fp16", "p100", "", SILENT),
        ("fp16", "gtx-1660-ti", 'cudnn: "7.5"', SILENT),
        ("fp16", "a100", "", SILENT),
        ("fp16", "h100", 'cudnn: "7.5"', SILENT),
        ("fp16", "t4", "framework: tensorrt", SILENT),
    ],
)
def test_outdated_cudnn(dtype: str, gpu: str, runtime: str, expected: object) -> None:
    layer = LAYER.replace("fp16", dtype).replace("C: 64", "C: 60, layout: NHWC")
    assert outcome("CL505", f"{layer}, {layer.replace('name: x', 'name: y')}", gpu=gpu, runtime=runtime) == expected


@pytest.mark.parametrize(
    ("layer", "needs_padding"),
    [
        ("C: 60, K: 64, layout: NHWC", True),
        ("C: 64, K: 60, layout: NHWC", True),
        ("C: 3, K: 64, layout: NHWC, first: true", True),
        # nothing is lost yet: aligned, padded inside the transpose of NCHW, or in no Tensor Core's reach anyhow
        ("C: 64, K: 64, layout: NHWC", False),
        ("C: 60, K: 60, layout: NCHW", False),
        ("C: 60, K: 60, groups: 60, layout: NHWC", False),
    ],
)
def test_outdated_cudnn_says_whether_a_layer_needs_padding(layer: str, needs_padding: bool) -> None:
    (finding,) = findings("CL505", f"{{ {layer}, dtype: fp16 }}", gpu="v100", runtime='cudnn: "7.5"')
    assert finding.severity == "warning"
    assert ("no NHWC layer here needs that" not in finding.message) == needs_padding


def test_outdated_cudnn_names_the_last_one_that_the_gpu_runs() -> None:
    (volta,) = findings("CL505", LAYER, gpu="v100", runtime='cudnn: "7.4"')
    (turing,) = findings("CL505", LAYER, gpu="t4", runtime='cudnn: "7.4"')
    assert volta.fix is not None
    assert "9.10" in volta.fix.describe
    assert turing.fix is not None
    assert "9.10" not in turing.fix.describe


BN = ", { name: bn, op: batchnorm }"


@pytest.mark.parametrize(
    ("layers", "mode", "expected"),
    [
        ("{ name: a, C: 8, H: 8, W: 8, K: 8, bias: true }" + BN, "training", "info"),
        ("{ name: a, C: 8, H: 8, W: 8, K: 8, bias: true }" + BN, "inference", SILENT),
        ("{ name: a, C: 8, H: 8, W: 8, K: 8, bias: false }" + BN, "training", SILENT),
        ("{ name: a, C: 8, H: 8, W: 8, K: 8 }" + BN, "training", ("bias",)),
        ("{ name: a, C: 8, H: 8, W: 8, K: 8, bias: true }, { name: r, op: relu }" + BN, "training", SILENT),
        ("{ name: a, C: 8, H: 8, W: 8, K: 8, bias: true }, { name: n, op: layernorm }", "training", SILENT),
        ("{ name: a, C: 8, H: 8, W: 8, K: 8, bias: true }" + BN + ", { name: s, op: add, inputs: [a, bn] }",
         "training", SILENT),
        ("{ name: a, C: 8, H: 8, W: 8, K: 8, bias: false }", "training", SILENT),
        ("{ name: a, C: 8, H: 8, W: 8, K: 8, bias: true }", "training", ("norm_follows",)),
    ],
)  # fmt: skip
def test_bias_before_norm(layers: str, mode: str, expected: object) -> None:
    assert outcome("CL506", layers, mode=mode) == expected
