"""How a network runs: mode, autotuning, library and framework with their versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache, total_ordering

from msgspec import field

from convlint.model.layer import Mode, equal_without
from convlint.model.location import Span, WireRecord

_VERSION = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})*")


@total_ordering
class Version:
    """A dotted version, compared number by number, also with text, so that rules can write `< "7.6.3"`."""

    __slots__ = ("numbers", "text")

    def __init__(self, text: str) -> None:
        """Reads the leading numbers ("2.1.0+cu118" is 2.1.0). Raises ValueError where there are none."""
        match = _VERSION.match(text.strip())
        if match is None:
            raise ValueError(f"not a version: {text!r}")
        numbers = [int(part) for part in match.group().split(".")]
        while len(numbers) > 1 and numbers[-1] == 0:
            numbers.pop()
        self.text, self.numbers = text, tuple(numbers)

    def __eq__(self, other: object) -> bool:
        that = _read(other) if isinstance(other, str) else other
        return isinstance(that, Version) and self.numbers == that.numbers

    def __lt__(self, other: object) -> bool:
        that = _read(other) if isinstance(other, str) else other
        return self.numbers < that.numbers if isinstance(that, Version) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.numbers)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Version({self.text!r})"


@lru_cache(maxsize=256)
def _read(text: str) -> Version:
    """The version in a text; cached, because a rule compares with the same text at every layer."""
    return Version(text)


@equal_without("spans")
class Runtime(WireRecord, frozen=True, kw_only=True):
    """What runs the network. None: not given, so that rules which need it are skipped; nothing is guessed."""

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
    optimizer: str | None = None  # its state takes memory; not given: no state
    mixed_precision: bool | None = None  # 16-bit layers have fp32 weights, gradients and optimizer state beside
    cuda_graphs: bool | None = None  # the step is recorded once, and launched as one
    cudnn_conv_use_max_workspace: bool | None = None
    wheel: str | None = None  # the CUDA that PyTorch's own wheel is built with, where it is known to be one
    spans: Mapping[str, Span] = field(default_factory=dict)


VERSIONS = ("framework_version", "cuda", "cudnn", "tensorrt")  # the settings that are a Version
STATED = "stated"  # the origin of what no lock file says
ASKED = "asked for"  # of a release that somebody wants to hear about
INSTALLED = "installed"  # of a live module's, which may run elsewhere

# settings that one framework alone has: one of them implies the framework
OWNERS: Mapping[str, str] = {
    "cudnn_benchmark": "pytorch",
    "cudnn_enabled": "pytorch",
    "tf_cudnn_use_autotune": "tensorflow",
    "cudnn_conv_algo_search": "onnxruntime",
    "cudnn_conv_use_max_workspace": "onnxruntime",
    "mxnet_cudnn_autotune_default": "mxnet",
    "xla_gpu_autotune_level": "jax",
}


_OWNED = tuple(OWNERS.items())  # asked for at every layer


def default_mode(runtime: Runtime) -> Mode:
    """The mode where none is stated: training, except for TensorRT, which only runs inference."""
    return "inference" if framework_of(runtime) == "tensorrt" else "training"


def framework_of(runtime: Runtime) -> str | None:
    """The framework that is given, or else the only one that a setting implies."""
    if runtime.framework is not None:
        return runtime.framework
    implied = None
    for setting, owner in _OWNED:
        if getattr(runtime, setting) is not None:
            if implied not in (None, owner):
                return None
            implied = owner
    return implied
