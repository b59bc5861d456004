"""What frameworks do where a setting is left out, as far as they document it; and whose setting is whose.

`cudnn_benchmark` is not here: programs set it in too many places for its absence to say that it is off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from convlint.files.languages.saying import say
from convlint.model.runtime import OWNERS, Runtime, framework_of

# setting: (value, where it is documented)
_PYTORCH: Mapping[str, tuple[Any, str]] = {
    "cudnn_enabled": (True, "PyTorch: torch.backends.cudnn.enabled, whether cuDNN is used"),
    "deterministic": (False, "PyTorch: torch.backends.cudnn.deterministic, torch.use_deterministic_algorithms"),
}
_TENSORFLOW: Mapping[str, tuple[Any, str]] = {
    "deterministic": (False, "TensorFlow: tf.config.experimental.enable_op_determinism has to be called"),
    "tf_cudnn_use_autotune": (True, "TensorFlow: CudnnUseAutotune() reads TF_CUDNN_USE_AUTOTUNE with default true"),
}
_JAX: Mapping[str, tuple[Any, str]] = {
    "deterministic": (False, "XLA: xla_gpu_deterministic_ops is false in DefaultDebugOptionsIgnoringFlags"),
    "xla_gpu_autotune_level": (4, "XLA: xla_gpu_autotune_level is 4 in DefaultDebugOptionsIgnoringFlags"),
}
_MXNET: Mapping[str, tuple[Any, str]] = {
    "mxnet_cudnn_autotune_default": (1, "MXNet: environment variables, MXNET_CUDNN_AUTOTUNE_DEFAULT"),
}
_ONNXRUNTIME: Mapping[str, tuple[Any, str]] = {
    "cudnn_conv_algo_search": ("EXHAUSTIVE", "ONNX Runtime: CUDA execution provider, cudnn_conv_algo_search"),
}
DEFAULTS: Mapping[str, Mapping[str, tuple[Any, str]]] = {
    "pytorch": _PYTORCH, "tensorflow": _TENSORFLOW, "jax": _JAX, "mxnet": _MXNET, "onnxruntime": _ONNXRUNTIME,
}  # fmt: skip


def setting_of(runtime: Runtime, name: str) -> Any:
    """The setting as it is given, else the default of its framework; None where neither is known."""
    value = getattr(runtime, name)
    if value is not None:
        return value
    return DEFAULTS.get(framework_of(runtime) or "", {}).get(name, (None, ""))[0]


def assumptions(runtime: Runtime, names: frozenset[str]) -> list[str]:
    """What rules that read `names`, such as runtime.deterministic, take for granted, in words."""
    framework, words = framework_of(runtime), []
    if runtime.framework is None and framework is not None and "runtime.framework" in names:
        own = next(setting for setting, owner in OWNERS.items() if getattr(runtime, setting) is not None)
        words.append(say("{setting} is a setting of {framework}", setting=own, framework=framework))
    for name, (value, _) in DEFAULTS.get(framework or "", {}).items():
        if f"runtime.{name}" in names and getattr(runtime, name) is None:
            shown = (say("on") if value else say("off")) if isinstance(value, bool) else value
            words.append(
                say(
                    "{setting} is not given: {framework}'s default is {value}",
                    setting=name,
                    framework=framework,
                    value=shown,
                )
            )
    return words
