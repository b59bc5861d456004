"""Family 5, algorithms: which settings of which framework are reported, and when the rules stay silent."""

from typing import Any

import pytest
from rule_outcomes import SILENT, findings, outcome, rows

LAYER = "{ name: x, N: 32, C: 64, H: 56, W: 56, K: 64, R: 3, S: 3, padding: 1, dtype: fp16 }"
FRAMEWORK = "runtime.framework"
FIXED = "runtime.fixed_input_size"


OF_RUNTIME: dict[str, list[tuple[Any, ...]]] = {
    "CL501": [
        ("framework: pytorch, cudnn_benchmark: false, fixed_input_size: false, deterministic: false", SILENT),
        # one setting settles it, whatever the others are
        ("framework: pytorch, cudnn_benchmark: true", SILENT),
        ("framework: pytorch, fixed_input_size: false", SILENT),
        ("framework: pytorch, deterministic: true", SILENT),
        # PyTorch is not deterministic unless told, and nobody else has cudnn_benchmark, which may be set anywhere
        ("framework: pytorch, cudnn_benchmark: false, fixed_input_size: true", "warning"),
        ("cudnn_benchmark: false, fixed_input_size: true, deterministic: false", "warning"),
        ("cudnn_benchmark: false, fixed_input_size: true, deterministic: true", SILENT),
        ("cudnn_benchmark: true, fixed_input_size: true", SILENT),
        ("cudnn_benchmark: false", (FIXED,)),
        ("framework: pytorch", ("runtime.cudnn_benchmark", FIXED)),
        ("framework: pytorch, fixed_input_size: true", ("runtime.cudnn_benchmark",)),
        ("fixed_input_size: true, deterministic: false", (FRAMEWORK,)),
        # settings of two frameworks name none
        (
            "cudnn_benchmark: false, tf_cudnn_use_autotune: 1, fixed_input_size: true, deterministic: false",
            (FRAMEWORK,),
        ),
        *((f"framework: {name}", SILENT) for name in ("tensorflow", "jax", "tensorrt", "onnxruntime", "mxnet")),
    ],
    "CL502": [
        ("framework: pytorch, cudnn_benchmark: false", SILENT),
        ("framework: pytorch, cudnn_benchmark: true", (FIXED,)),
        ("framework: pytorch, fixed_input_size: false", ("runtime.cudnn_benchmark",)),
        ("framework: onnxruntime, cudnn_conv_algo_search: DEFAULT, fixed_input_size: false", SILENT),
        # what these do unless told
        ("framework: onnxruntime, fixed_input_size: false", "warning"),
        ("framework: tensorflow, fixed_input_size: false", "warning"),
        ("framework: mxnet, fixed_input_size: false", "warning"),
        *((f"framework: {name}, fixed_input_size: true", SILENT) for name in ("onnxruntime", "tensorflow", "mxnet")),
        *((f"framework: {name}", (FIXED,)) for name in ("onnxruntime", "tensorflow", "mxnet")),
        ("framework: mxnet, mxnet_cudnn_autotune_default: 2, fixed_input_size: false", "warning"),
        ("framework: mxnet, mxnet_cudnn_autotune_default: 0, fixed_input_size: false", SILENT),
        ("framework: jax, fixed_input_size: false", SILENT),
        ("fixed_input_size: true", SILENT),
        ("cudnn_benchmark: true, fixed_input_size: false", "warning"),
        ("fixed_input_size: false", (FRAMEWORK,)),
    ],
    "CL503": [
        # whoever states both asks for two things at once; who leaves one at its default may know what it costs
        ("deterministic: true, cudnn_benchmark: true", "warning"),
        ("framework: pytorch, deterministic: false", SILENT),
        ("framework: pytorch, cudnn_benchmark: false", SILENT),
        ("framework: pytorch, cudnn_benchmark: true", SILENT),
        ("framework: pytorch, deterministic: true", ("runtime.cudnn_benchmark",)),
        ("framework: jax, deterministic: true", "info"),
        ("framework: jax, xla_gpu_autotune_level: 4", SILENT),
        ("framework: jax", SILENT),
        ("framework: tensorflow, tf_cudnn_use_autotune: true", SILENT),
        ("framework: tensorflow", SILENT),
        ("framework: tensorflow, deterministic: true, tf_cudnn_use_autotune: false", SILENT),
        ("deterministic: false", SILENT),
        ("deterministic: true", (FRAMEWORK,)),
    ],
    "CL504": [
        ("framework: tensorflow, tf_cudnn_use_autotune: 1", SILENT),
        # no tuning is right where each shape would be tuned anew, and has no effect where results must repeat
        ("framework: tensorflow, tf_cudnn_use_autotune: 0, fixed_input_size: false", SILENT),
        ("framework: tensorflow, tf_cudnn_use_autotune: 0, fixed_input_size: true", "warning"),
        ("framework: tensorflow, tf_cudnn_use_autotune: 0, deterministic: true", SILENT),
        ("framework: tensorflow, tf_cudnn_use_autotune: 0, deterministic: false", "warning"),
        ("framework: mxnet, mxnet_cudnn_autotune_default: 0", "warning"),
        ("framework: mxnet, mxnet_cudnn_autotune_default: 1", SILENT),
        ("framework: onnxruntime, cudnn_conv_algo_search: EXHAUSTIVE", SILENT),
        # another framework's variable
        ("framework: jax, xla_gpu_autotune_level: 4, tf_cudnn_use_autotune: 0", SILENT),
        ("framework: pytorch, cudnn_benchmark: false, tf_cudnn_use_autotune: 0", SILENT),
        ("framework: tensorrt", SILENT),
    ],
}


@pytest.mark.parametrize(("code", "runtime", "expected"), rows(OF_RUNTIME))
def test_which_settings_are_worth_a_word(code: str, runtime: str, expected: object) -> None:
    assert outcome(code, LAYER, runtime=runtime) == expected


def test_enable_autotune_points_at_the_setting_and_turns_it_on() -> None:
    runtime = "framework: pytorch, cudnn_benchmark: false, fixed_input_size: true, deterministic: false"
    (finding,) = findings("CL501", LAYER, runtime=runtime)
    assert finding.layer is None
    assert finding.location.line == 2
    assert finding.fix.set == {"runtime.cudnn_benchmark": True}
    assert "torch.backends.cudnn.benchmark = True" in finding.fix.describe


@pytest.mark.parametrize("given", ["", ", fixed_input_size: true", ", fixed_input_size: true, deterministic: false"])
@pytest.mark.parametrize("framework", ["tensorflow", "mxnet", "jax", "onnxruntime"])
def test_frameworks_that_tune_by_default_do_where_nothing_is_said(framework: str, given: str) -> None:
    assert outcome("CL504", LAYER, runtime=f"framework: {framework}{given}") == SILENT


def test_autotune_disabled_asks_for_the_framework_and_for_nobodys_setting() -> None:
    assert outcome("CL504", LAYER, runtime="fixed_input_size: true, deterministic: false") == (FRAMEWORK,)


HEURISTICS = "every input has the same size, but cuDNN's algorithms are chosen by heuristics: cudnn_benchmark is off"
SEARCHES = "the input size varies, and the EXHAUSTIVE search of algorithms starts again for each new shape"
AGAIN = "times every algorithm again for each new shape"
ONE_SIZE, SIZES = "cudnn_benchmark: false, fixed_input_size: true", "fixed_input_size: false"
OF_BENCHMARK = "cudnn_benchmark is a setting of pytorch"
MEANT_OFF = "deterministic is not given: pytorch's default is off"
# what the message says in front of what it assumes, and what that is
ASSUMED: dict[str, list[tuple[str, str, str]]] = {
    "CL501": [
        (f"framework: pytorch, {ONE_SIZE}", HEURISTICS, MEANT_OFF),
        (f"{ONE_SIZE}, deterministic: false", HEURISTICS, OF_BENCHMARK),
    ],
    "CL502": [
        (f"framework: onnxruntime, {SIZES}", SEARCHES,
         "cudnn_conv_algo_search is not given: onnxruntime's default is EXHAUSTIVE"),
        (f"cudnn_conv_algo_search: EXHAUSTIVE, {SIZES}", SEARCHES,
         "cudnn_conv_algo_search is a setting of onnxruntime"),
        (f"framework: tensorflow, {SIZES}", f"the input size varies, and TF_CUDNN_USE_AUTOTUNE {AGAIN}",
         "tf_cudnn_use_autotune is not given: tensorflow's default is on"),
        (f"framework: mxnet, {SIZES}", f"the input size varies, and MXNET_CUDNN_AUTOTUNE_DEFAULT {AGAIN}",
         "mxnet_cudnn_autotune_default is not given: mxnet's default is 1"),
        (f"cudnn_benchmark: true, {SIZES}", f"the input size varies, and cudnn_benchmark {AGAIN}", OF_BENCHMARK),
    ],
    "CL504": [
        ("tf_cudnn_use_autotune: 0", "",
         "tf_cudnn_use_autotune is a setting of tensorflow; deterministic is not given: tensorflow's default is off"),
        ("mxnet_cudnn_autotune_default: 0", "", "mxnet_cudnn_autotune_default is a setting of mxnet"),
        ("cudnn_conv_algo_search: DEFAULT", "", "cudnn_conv_algo_search is a setting of onnxruntime"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("code", "runtime", "message", "assumed"), rows(ASSUMED))
def test_a_message_says_what_it_assumes(code: str, runtime: str, message: str, assumed: str) -> None:
    (finding,) = findings(code, LAYER, runtime=runtime)
    end = f" ({assumed})" if assumed else ""
    assert finding.severity == "warning"
    assert finding.message.endswith(end)
    assert message in ("", finding.message.removesuffix(end))


@pytest.mark.parametrize(
    ("runtime", "new"),
    [
        ("framework: onnxruntime", {"runtime.cudnn_conv_algo_search": "HEURISTIC"}),
        ("cudnn_conv_algo_search: EXHAUSTIVE", {"runtime.cudnn_conv_algo_search": "HEURISTIC"}),
        ("framework: tensorflow", {"runtime.tf_cudnn_use_autotune": False}),
        ("framework: mxnet", {}),
        ("cudnn_benchmark: true", {"runtime.cudnn_benchmark": False}),
    ],
)
def test_a_varying_input_turns_autotuning_off(runtime: str, new: dict[str, object]) -> None:
    (finding,) = findings("CL502", LAYER, runtime=f"{runtime}, fixed_input_size: false")
    assert finding.fix.set == new


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
    assert "9.10" in volta.fix.describe
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


def test_bias_before_norm_is_said_once_for_all_layers() -> None:
    layers = [
        f"{{ name: {name}, C: 8, H: 8, W: 8, K: 8, bias: {bias} }}, {{ name: bn_{name}, op: batchnorm }}"
        for name, bias in (("a", "true"), ("b", "true"), ("c", "false"), ("d", "true"))
    ]
    (finding,) = findings("CL506", ", ".join(layers))
    assert finding.layers == ("a", "b", "d")
    assert finding.severity == "info"
    assert finding.message == "the bias of 3 layers is cancelled by the normalisation that reads them: a, b, d"
    assert finding.fix.set == {"bias": False}
