"""The `runtime` block of a spec: framework, library versions and the settings that rules name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from convlint.errors import InputFault, shown, suggestion
from convlint.files.located_yaml import Value, fault
from convlint.model.location import Span
from convlint.model.runtime import Runtime
from convlint.model.version import Version
from convlint.readers.spec.values import boolean, choice, integer, word

FRAMEWORKS: Mapping[str, str] = {
    "pytorch": "pytorch", "torch": "pytorch",
    "tensorflow": "tensorflow", "tf": "tensorflow",
    "jax": "jax", "xla": "jax", "flax": "jax",
    "tensorrt": "tensorrt", "trt": "tensorrt",
    "onnxruntime": "onnxruntime", "onnx runtime": "onnxruntime", "ort": "onnxruntime",
    "mxnet": "mxnet", "paddle": "paddle", "keras": "keras", "caffe": "caffe", "cudnn": "cudnn", "other": "other",
}  # fmt: skip
BOOLEANS = (
    "compile", "cudnn_benchmark", "cudnn_enabled", "fixed_input_size", "deterministic", "tf32", "prefer_nhwc",
    "tf_cudnn_use_autotune", "pinned_memory", "mixed_precision", "cuda_graphs",
)  # fmt: skip
VERSIONS = ("framework_version", "cuda", "cudnn", "tensorrt")
WORDS = ("optimizer",)
NUMBERS = ("mxnet_cudnn_autotune_default", "xla_gpu_autotune_level")
CHOICES: Mapping[str, Mapping[str, str]] = {
    "framework": FRAMEWORKS,
    "cudnn_conv_algo_search": {"exhaustive": "EXHAUSTIVE", "heuristic": "HEURISTIC", "default": "DEFAULT"},
    "gpu_clock": {"base": "base", "boost": "boost", "default": "base", "max": "boost"},
}
ALIASES = {
    "allow_tf32": "tf32", "use_tf32": "tf32", "benchmark": "cudnn_benchmark", "torch_compile": "compile",
    "amp": "mixed_precision", "cuda_graph": "cuda_graphs",
    "cuda_version": "cuda", "cudnn_version": "cudnn", "tensorrt_version": "tensorrt", "trt": "tensorrt",
}  # fmt: skip
OPTIMIZERS = {
    "sgd_momentum": "momentum",
    "momentum_sgd": "momentum",
    "sgd_with_momentum": "momentum",
    "nesterov": "momentum",
}
_MAX_SETTINGS = 200
SETTINGS = (*CHOICES, *VERSIONS, *BOOLEANS, *NUMBERS, *WORDS)


def runtime_of(value: Value | None) -> tuple[Runtime, list[InputFault]]:
    """The runtime, and every error in its block. What is not given stays unknown."""
    if value is None or value.is_null:
        return Runtime(), []
    if not isinstance(value.data, dict):
        return Runtime(), [fault(f"runtime must be a mapping, not {value.kind}", value.span)]
    if len(value.data) > _MAX_SETTINGS:
        return Runtime(), [fault(f"runtime: more than {_MAX_SETTINGS} settings", value.span)]
    settings: dict[str, Any] = {}
    spans: dict[str, Span] = {}
    errors: list[InputFault] = []
    for key, item in value.data.items():
        name = ALIASES.get(key.lower(), key.lower())
        try:
            if name not in SETTINGS:
                hint = suggestion(key, SETTINGS)
                raise fault(f"unknown runtime setting {shown(key)!r}{hint}", item.key_span or item.span)
            if name in settings:
                raise fault(f"{key} says again what line {spans[name][0]} says", item.key_span or item.span)
            settings[name] = _setting(name, item)
            spans[name] = item.span
        except InputFault as error:
            errors.append(error)
    return Runtime(**settings, spans=spans), errors


def _setting(name: str, item: Value) -> Any:
    if name in CHOICES:
        return choice(name, item, CHOICES[name])
    if name in VERSIONS:
        return _version(name, item)
    if name in WORDS:
        return _optimizer(word(name, item), item)
    if name in NUMBERS:
        return integer(name, item, minimum=0)
    if item.data in ("0", "1"):  # how environment variables and provider options spell a boolean
        return item.data == "1"
    return boolean(name, item)


def _optimizer(text: str, item: Value) -> str:
    """`torch.optim.AdamW` is adamw; SGD with momentum has several names."""
    name = text.rpartition(".")[2].strip().lower().replace("-", "_")
    if not name.replace("_", "").isalnum() or name.isdigit():
        raise fault(f"optimizer: {shown(text)!r} is no optimizer's name such as adamw", item.span)
    return OPTIMIZERS.get(name, name)


def _version(name: str, item: Value) -> Version:
    text = word(name, item)
    if name == "cudnn" and text.isdigit() and len(text) in (4, 5):  # 8902 and 90100, as the library itself reports
        number = int(text)
        major, rest = divmod(number, 1000) if len(text) == 4 else divmod(number, 10000)
        text = f"{major}.{rest // 100}.{rest % 100}"
    try:
        return Version(text)
    except ValueError:
        raise fault(f"{name}: {shown(text)!r} is not a version such as 8.9.2", item.span) from None
