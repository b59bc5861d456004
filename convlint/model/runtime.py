"""What runs a network: the framework, its libraries and the settings that rules name."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from convlint.model.equality import equal_without
from convlint.model.layer import Mode
from convlint.model.location import Span
from convlint.model.version import Version


@equal_without("spans")
class Runtime(Struct, frozen=True, kw_only=True):
    """What runs the network. None means not given: rules that need it are skipped, never guessed."""

    framework: str | None = None  # pytorch, tensorflow, jax, tensorrt, onnxruntime, mxnet, cudnn
    framework_version: Version | None = None
    cuda: Version | None = None
    cudnn: Version | None = None
    tensorrt: Version | None = None
    compile: bool | None = None
    cudnn_benchmark: bool | None = None
    cudnn_enabled: bool | None = None
    fixed_input_size: bool | None = None
    deterministic: bool | None = None
    tf32: bool = True
    cudnn_conv_algo_search: str | None = None
    prefer_nhwc: bool | None = None
    tf_cudnn_use_autotune: bool | None = None
    mxnet_cudnn_autotune_default: int | None = None
    xla_gpu_autotune_level: int | None = None
    gpu_clock: str | None = None
    pinned_memory: bool | None = None
    optimizer: str | None = None  # whose state lies in memory; not given: none
    mixed_precision: bool | None = None  # 16-bit layers have fp32 weights, gradients and optimizer state beside
    cuda_graphs: bool | None = None  # the step is recorded once, and launched as one
    spans: Mapping[str, Span] = field(default_factory=dict)


# settings that one framework alone has: where one of them is given, so is the framework
OWNERS: Mapping[str, str] = {
    "cudnn_benchmark": "pytorch",
    "cudnn_enabled": "pytorch",
    "tf_cudnn_use_autotune": "tensorflow",
    "cudnn_conv_algo_search": "onnxruntime",
    "mxnet_cudnn_autotune_default": "mxnet",
    "xla_gpu_autotune_level": "jax",
}


def default_mode(runtime: Runtime) -> Mode:
    """Where none is stated: training, but for TensorRT, which has inference alone."""
    return "inference" if framework_of(runtime) == "tensorrt" else "training"


def framework_of(runtime: Runtime) -> str | None:
    """The framework that is given, or the one whose settings are."""
    if runtime.framework is not None:
        return runtime.framework
    owners = {owner for setting, owner in OWNERS.items() if getattr(runtime, setting) is not None}
    return owners.pop() if len(owners) == 1 else None
