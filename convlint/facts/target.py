"""What rules may ask of the target: the GPU, the framework and its defaults, what both support."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from convlint.estimate import compute_dtype, time_us
from convlint.estimate.board import converts_bf16
from convlint.estimate.host import NO_HOST, Hosted, can_compile, left_us, runtime_on
from convlint.estimate.results import problem_of
from convlint.facts.network import NETWORK, MemoryFacts, NetworkFacts
from convlint.facts.quantity import UNKNOWN, Quantity, Table, Type, UnknownValue, View, known, number, text, truth
from convlint.gpus import support
from convlint.gpus.gpu import Gpu
from convlint.model.estimates import LayerEstimate
from convlint.model.layer import Allowance, ConvLayer, Dtype, Mode, layer_identity
from convlint.model.network import Edge, Operation
from convlint.model.runtime import OWNERS, Runtime, Version, framework_of
from convlint.model.text import Text

if TYPE_CHECKING:
    from convlint.facts.layer import LayerFacts


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


def assumptions(runtime: Runtime, names: frozenset[str]) -> list[Text]:
    """What rules that read `names`, such as runtime.deterministic, take for granted, in words."""
    framework = framework_of(runtime)
    words = []
    if runtime.framework is None and framework is not None and "runtime.framework" in names:
        own = next(setting for setting, owner in OWNERS.items() if getattr(runtime, setting) is not None)
        words.append(Text("{setting} is a setting of {framework}", setting=own, framework=framework))
    for name, (value, _) in DEFAULTS.get(framework or "", {}).items():
        if f"runtime.{name}" in names and getattr(runtime, name) is None:
            shown = (Text("on") if value else Text("off")) if isinstance(value, bool) else value
            words.append(
                Text(
                    "{setting} is not given: {framework}'s default is {value}",
                    setting=name,
                    framework=framework,
                    value=shown,
                )
            )
    return words


class Libraries(Struct, frozen=True):
    """What runs, and on what."""

    gpu: Gpu
    runtime: Runtime


def _named(library: str, runtime: Runtime) -> tuple[str, Version | None]:
    """The library's name in the table, and the version given."""
    if library == "framework":
        return framework_of(runtime) or "", runtime.framework_version
    version: Version | None = getattr(runtime, library)
    return library, version


def _bound(of: Callable[[str, Gpu], Version | str | None], library: str, libraries: Libraries) -> Any:
    """The first or the last version for the GPU."""
    name, _ = _named(library, libraries.runtime)
    return str(of(name, libraries.gpu) or "") or UNKNOWN


def _excluded(by: Callable[[str, Version, Gpu], bool | None], library: str, libraries: Libraries) -> Any:
    """Whether the given version is too old for the GPU, or has dropped it."""
    name, version = _named(library, libraries.runtime)
    return UNKNOWN if version is None else known(by(name, version, libraries.gpu))


def _version(
    bound: Callable[[Libraries], Any], excluded: Callable[[Libraries], Any], library: str, facts: LayerFacts
) -> tuple[str, ...]:
    """What a user has to give: the library's version, or a source on it, if support begins or ends at one."""
    runtime = facts.context.runtime
    libraries = Libraries(facts.context.gpu, runtime)
    if bound(libraries) is UNKNOWN:
        return ()
    name, version = _named(library, runtime)
    if version is None:
        return ("runtime.framework_version" if library == "framework" else f"runtime.{library}",)
    return () if excluded(libraries) is not UNKNOWN else (f"a source on {name} {version}",)


def _wheel_lacks(libraries: Libraries) -> Any:
    """Whether PyTorch's own wheel has no code for the GPU; unknown where another wheel of the release may be in use."""
    runtime, gpu = libraries.runtime, libraries.gpu
    if framework_of(runtime) != "pytorch" or gpu.jetson:
        return False
    version = runtime.framework_version
    built = runtime.wheel if version is None else support.wheel_cuda(version) or runtime.wheel
    if version is not None and built is not None:
        codes = support.wheel_codes(built, version)
        return bool(codes) and not _has_code(codes, gpu)
    return False if all(_has_code(codes, gpu) for codes in support.wheels(version)) else UNKNOWN


def _has_code(codes: Iterable[Version], gpu: Gpu) -> bool:
    """Whether code for one of these runs on a GPU: for its own major version, and a minor one up to its own."""
    own = gpu.compute_capability
    return any(code.numbers[0] == own.numbers[0] and code <= own for code in codes)


def _wheel(facts: LayerFacts) -> tuple[str, ...]:
    if _wheel_lacks(Libraries(facts.context.gpu, facts.context.runtime)) is not UNKNOWN:
        return ()
    stated = facts.context.runtime.framework_version
    if stated is None:
        return ("runtime.framework_version",)
    release, _, _ = stated.text.partition("+")  # of 2.13.0+cpu
    return (Text("the CUDA of its wheel, as in {release}+cu126", release=release),)


def _nothing(_facts: LayerFacts) -> tuple[str, ...]:
    return ()


def _of(library: str) -> dict[str, Quantity]:
    first, last = (partial(_bound, of, library) for of in (support.first_version, support.last_version))
    dropped, too_old = (partial(_excluded, by, library) for by in (support.dropped, support.too_old))
    since, until = partial(_version, first, too_old, library), partial(_version, last, dropped, library)
    return {
        f"{library}_first": text(f"the first {library} that knows the GPU", first, _nothing, True),
        f"{library}_last": text(f"the last {library} for the GPU", last, _nothing, True),
        f"{library}_dropped": truth(f"the given {library} no longer supports the GPU", dropped, until, True),
        f"{library}_too_old": truth(f"the given {library} is older than the GPU", too_old, since, True),
    }


SUPPORT: Table = {
    **{name: row for library in ("cuda", "cudnn", "tensorrt", "framework") for name, row in _of(library).items()},
    "compiler": truth(
        "torch.compile is in PyTorch's release and has a compiler for the GPU",
        lambda libraries: can_compile(libraries.runtime, libraries.gpu),
        gpu=True,
    ),
    "wheel_lacks": truth("PyTorch's own wheel in use has no code for the GPU", _wheel_lacks, _wheel, True),
}


# Tensor Core vectors are 16 bytes wide: the guide's 8 for fp16 and 4 for tf32; TensorRT packs int8 by 32 (CG 4.4.3).
_ALIGN = {Dtype.fp16: 8, Dtype.bf16: 8, Dtype.tf32: 4, Dtype.int8: 16, Dtype.fp8: 16}
_LAYOUT_PICKERS = ("jax", "tensorrt", "tensorflow")


def _of_gpu(kind: Type, name: str, meaning: str) -> Quantity:
    return Quantity(kind, meaning, lambda target: known(getattr(target.gpu, name)), gpu=True)


def _multiplies(dtype: str, target: TargetFacts) -> bool:
    return dtype in target.gpu.tensor_dtypes


GPU: Table = {
    "id": text("the target, as the user named it", lambda target: target.label, gpu=True),
    "name": _of_gpu("text", "name", "the GPU's full name"),
    "architecture": _of_gpu(
        "text", "architecture", "kepler, maxwell, pascal, volta, turing, ampere, ada, hopper or blackwell"
    ),
    "chip": _of_gpu("text", "chip", "the chip, such as GK110"),
    "compute_capability": _of_gpu("version", "compute_capability", "compute capability"),
    "sms": _of_gpu("number", "sms", "streaming multiprocessors"),
    "fp64_ratio": _of_gpu("number", "fp64_ratio", "fp64 rate over fp32 rate"),
    "dies_per_board": _of_gpu("number", "dies_per_board", "CUDA devices on one board"),
    "pcie_gen": _of_gpu("number", "pcie_gen", "PCIe generation"),
    "memory_bytes": _of_gpu("number", "memory_bytes", "capacity of the memory"),
    "memory_gib": number(
        "capacity of the memory in GiB",
        lambda target: known(target.gpu.memory_bytes) / 2**30,
        ("gpu.memory_bytes",),
        gpu=True,
    ),
    "concurrent_kernels": _of_gpu("number", "concurrent_kernels", "kernels that can run at once"),
    "tensor_cores": _of_gpu("truth", "tensor_cores", "has Tensor Cores"),
    "fast_fp16": _of_gpu("truth", "fast_fp16", "fp16 arithmetic at fp32's rate or more"),
    "fast_tf32": _of_gpu("truth", "fast_tf32", "TF32 on Tensor Cores beyond fp32's rate on CUDA cores"),
    "fast_int8": _of_gpu("truth", "fast_int8", "int8 on Tensor Cores at the rate of 16 bits or more"),
    "hyper_q": _of_gpu("truth", "hyper_q", "32 hardware work queues"),
    "geforce": _of_gpu("truth", "geforce", "a consumer board"),
    "integrated": _of_gpu("truth", "integrated", "shares memory with the CPU (Jetson, GB10)"),
    **{
        f"tensor_{dtype}": truth(f"Tensor Cores multiply {dtype}", partial(_multiplies, dtype), gpu=True)
        for dtype in ("fp16", "bf16", "tf32", "int8", "fp8", "fp64")
    },
}


def _setting(kind: Type, name: str, meaning: str = "") -> Quantity:
    return Quantity(
        kind, meaning or f"the setting {name}", lambda runtime: known(setting_of(runtime, name)),
        framework=OWNERS.get(name),
    )  # fmt: skip


RUNTIME: Table = {
    "framework": text(
        "pytorch, tensorflow, jax, tensorrt, onnxruntime, mxnet, ...; not given, it is the one whose settings are",
        lambda runtime: known(framework_of(runtime)),
    ),
    "framework_version": _setting("version", "framework_version", "the framework's version"),
    "cuda": _setting("version", "cuda", "CUDA's version"),
    "cudnn": _setting("version", "cudnn", "cuDNN's version"),
    "tensorrt": replace(_setting("version", "tensorrt", "TensorRT's version"), framework="tensorrt"),
    "compile": _setting("truth", "compile"),
    "cudnn_benchmark": _setting("truth", "cudnn_benchmark"),
    "fixed_input_size": _setting("truth", "fixed_input_size"),
    "cudnn_enabled": _setting("truth", "cudnn_enabled"),
    "deterministic": _setting("truth", "deterministic"),
    "tf32": _setting("truth", "tf32"),
    "prefer_nhwc": _setting("truth", "prefer_nhwc"),
    "pinned_memory": _setting("truth", "pinned_memory"),
    "mixed_precision": _setting("truth", "mixed_precision"),
    "cuda_graphs": _setting("truth", "cuda_graphs"),
    "optimizer": _setting("text", "optimizer", "the optimizer, such as adam"),
    "tf_cudnn_use_autotune": _setting("truth", "tf_cudnn_use_autotune"),
    "cudnn_conv_algo_search": _setting(
        "text", "cudnn_conv_algo_search", "ONNX Runtime's EXHAUSTIVE, HEURISTIC or DEFAULT"
    ),
    "cudnn_conv_use_max_workspace": _setting("truth", "cudnn_conv_use_max_workspace"),
    "mxnet_cudnn_autotune_default": _setting("number", "mxnet_cudnn_autotune_default", "MXNET_CUDNN_AUTOTUNE_DEFAULT"),
    "xla_gpu_autotune_level": _setting("number", "xla_gpu_autotune_level"),
    "gpu_clock": _setting("text", "gpu_clock", "base or boost"),
}


def _stated(name: str) -> Quantity:
    return truth(f"runtime.{name} is given, not a default", lambda runtime: getattr(runtime, name) is not None)


STATED: Table = {
    name: _stated(name) for name in sorted({name for own in DEFAULTS.values() for name in own} | OWNERS.keys())
}
VIEWS: dict[str, Table] = {
    "gpu": GPU, "runtime": RUNTIME, "stated": STATED, "support": SUPPORT, "network": NETWORK,
}  # fmt: skip


def _precision(facts: LayerFacts) -> tuple[Dtype, int, bool]:
    dtype = facts.layer.dtype
    if dtype is None:
        raise UnknownValue
    return facts.context.precision(dtype)


def _has_no_kernel(facts: LayerFacts) -> bool:
    """bf16 came with Ampere, fp8 with Ada, int8 with DP4A (CUDA C++ Programming Guide, compute capabilities)."""
    gpu, dtype = facts.context.gpu, facts.layer.dtype
    if dtype is None:
        raise UnknownValue
    if dtype == Dtype.int8 and gpu.dp4a:
        return False
    if dtype == Dtype.bf16 and converts_bf16(gpu, facts.context.runtime):
        return False
    return dtype in (Dtype.bf16, Dtype.fp8, Dtype.int8) and dtype.value not in gpu.tensor_dtypes


def _runs_nhwc(facts: LayerFacts) -> bool:
    """Whether no version that is known keeps the framework from it.

    PyTorch runs channels_last as NCHW with a cuDNN below 7.6.3, in 3-D below 8.0.5 (cudnn_conv_suggest_memory_format in
    ATen/native/ConvUtils.h, in the releases that took such a cuDNN); ONNX Runtime's default builds have prefer_nhwc
    from 1.20 on (its pull requests 22648 and 23812).
    """
    runtime = facts.context.runtime
    framework = framework_of(runtime)
    if framework == "pytorch" and runtime.cudnn is not None:
        return runtime.cudnn >= ("8.0.5" if facts.layer.dims == 3 else "7.6.3")
    version = runtime.framework_version if framework == "onnxruntime" else None
    return version is None or version >= "1.20"


TARGET: Table = {
    "mode_stated": truth("the user, the input or the config names the mode", lambda facts: facts.context.mode_stated),
    "mode": text("training or inference", lambda facts: facts.context.mode),
    "training": truth("mode is training", lambda facts: facts.context.mode == "training"),
    "framework_picks_layout": truth(
        "the framework chooses the layout itself",
        lambda facts: facts.context.picks[facts.layer.dims != 2],
    ),
    "runs_nhwc": truth("the framework runs NHWC where it is asked to, for all that is known of versions", _runs_nhwc),
    "compute_dtype": text(
        "what multiplies on this GPU with this runtime",
        lambda facts: _precision(facts)[0],
        ("dtype",),
        gpu=True,
    ),
    "no_kernel": truth("the GPU has no convolution kernel for this dtype", _has_no_kernel, ("dtype",), gpu=True),
    "alignment": number(
        "multiple that the compute dtype's Tensor Core vectors want (1: none)",
        lambda facts: _precision(facts)[1],
        ("dtype",),
        gpu=True,
    ),
    "on_tensor_cores": truth(
        "compute_dtype multiplies on this GPU's Tensor Cores",
        lambda facts: _precision(facts)[2],
        ("dtype",),
        gpu=True,
    ),
}


def layout_picks(runtime: Runtime, layers: Sequence[ConvLayer], mode: Mode) -> tuple[bool, bool]:
    """Whether the framework is known to choose the layouts of a network itself, whatever the user declares.

    In two dimensions, and in three or one: torch.compile does so in two alone (`layout_opt and ndim == 2` in
    torch/_inductor/kernel/conv.py).
    """
    framework = framework_of(runtime)
    always = framework in _LAYOUT_PICKERS or (framework == "onnxruntime" and runtime.prefer_nhwc is True)
    compiled = runtime.compile is True and not _stays_as_it_is(layers, mode)
    return always or compiled, always


# What Inductor weighs FLOPs by in inference, of which NHWC is to take fewer than there are.
_GROUPED, _SMALL, _NARROWING, _OTHER = 1.358, 0.783, 0.725, 0.823
_SMALL_WIDTH = 64


def layout_weight(layer: ConvLayer, mode: Mode) -> tuple[float, float]:
    """What a layer adds to two sums by which Inductor decides (decide_layout_opt in torch/_inductor/graph.py, 2.13).

    It leaves the layouts of a network alone where the first is the greater. In training that is for the sake of a
    single layer with groups, or filter into half as many channels; in inference it weighs such layers by their FLOPs.
    That few channels throughout make it so too is left out: a part of a network says nothing of the whole.
    """
    if layer.C is None or layer.K is None:
        return 0.0, 0.0
    outer, inner = (layer.C, layer.K) if layer.op == "conv_transpose" else (layer.K, layer.C)
    inner //= layer.groups
    grouped, narrowing = layer.groups > 1 and inner > 1, 2 * outer <= inner and (layer.R or 1) > 1
    if mode == "training":
        return float(grouped or narrowing), 0.0
    problem = problem_of(layer)
    if problem is None:
        return 0.0, 0.0
    small = max(outer, inner) <= _SMALL_WIDTH
    weight = _GROUPED if grouped else _SMALL if small else _NARROWING if narrowing else _OTHER
    flops = problem.flops * layer.calls
    return weight * flops, flops


def _stays_as_it_is(layers: Sequence[ConvLayer], mode: Mode) -> bool:
    """Whether Inductor leaves the layouts of a network alone."""
    weights = [layout_weight(layer, mode) for layer in layers]
    return sum([weighed for weighed, _ in weights]) > sum([total for _, total in weights])


def alignment(compute: Dtype, runtime: Runtime) -> int:
    """The multiple that channels should have for Tensor Cores of this type (CG 1, 4.4.3)."""
    if compute == Dtype.int8 and (runtime.framework == "tensorrt" or runtime.tensorrt is not None):
        return 32
    return _ALIGN.get(compute, 1)


class TargetFacts:
    """What all layers of one network share on one target; `shared` is what their facts begin with."""

    def __init__(
        self, label: str, gpu: Gpu, runtime: Runtime, mode: Mode, *, mode_stated: bool = True,
        allow: Collection[Allowance] = (),
    ) -> None:  # fmt: skip
        self.label, self.gpu, self.mode, self.mode_stated = label, gpu, mode, mode_stated
        self.runtime = runtime_on(runtime, gpu)  # rules read what is stated
        self.allow = allow
        self.layers: Sequence[ConvLayer] = ()
        self.time_us = 0.0  # of the layers whose time is predicted
        self.network_us: float | None = None  # where that is all of them
        self.step_us: float | None = None  # where all operations are known
        self.network: NetworkFacts | None = None
        self._precision: dict[Dtype, tuple[Dtype, int, bool]] = {}
        self._others: dict[Runtime, TargetFacts] = {}  # by runtime
        self.of_kinds: dict[object, dict[str, Any]] = {}  # the facts that few values of a layer decide, by these
        self.shared: dict[str, Any] = {
            "mode": mode,
            "training": mode == "training",
            "mode_stated": mode_stated,
            "gpu": View(GPU, self),
            "runtime": View(RUNTIME, runtime),
            "stated": View(STATED, runtime),
            "support": View(SUPPORT, Libraries(gpu, runtime)),
        }

    @cached_property
    def picks(self) -> tuple[bool, bool]:
        """Whether the framework chooses layouts: in two dimensions, and in others."""
        return layout_picks(self.runtime, self.layers, self.mode)

    def is_unaligned(self, dtype: Dtype | None, channels: int) -> bool:
        """Whether so many channels are no multiple of what the dtype's Tensor Cores want."""
        return dtype is not None and channels % self.precision(dtype)[1] != 0

    def with_runtime(self, runtime: Runtime) -> TargetFacts:
        """The same network on the same GPU under other settings; its times are left as they are.

        Each runtime is worked out once: so the network has to be there before.
        """
        if runtime is self.runtime:
            return self
        if runtime in self._others:
            return self._others[runtime]
        self._others[runtime] = other = TargetFacts(
            self.label, self.gpu, runtime, self.mode, mode_stated=self.mode_stated, allow=self.allow
        )
        other.time_us, other.network_us, other.network = self.time_us, self.network_us, self.network
        other.step_us, other.layers = self.step_us, self.layers
        other.shared.update({name: value for name, value in self.shared.items() if name == "network"})
        return other

    def add_network(
        self, layers: Sequence[ConvLayer], edges: Sequence[Edge], estimates: Sequence[LayerEstimate | None],
        running: Sequence[ConvLayer] | None = None, on_host: Hosted | None = None,
        operations: Sequence[Operation] = (), training_keeps: str = "",
    ) -> MemoryFacts:  # fmt: skip
        """Adds what only all layers together show: the network's time and memory, and where they go.

        `running` are the layers as the framework lays them out, where that is another layout; `on_host` says what its
        host adds to their estimates.
        """
        self.layers = layers
        memory = MemoryFacts(running or layers, edges, estimates, self.gpu, self.runtime, self.mode, operations,
                             training_keeps)  # fmt: skip
        kinds: dict[object, tuple[ConvLayer, int]] = {}
        for layer in running or layers:
            kind = layer_identity(layer)
            kinds[kind] = layer, kinds[kind][1] + 1 if kind in kinds else 1

        def waits_at(N: int) -> bool:
            times = ((n, time_us(replace(kind, N=N), self.gpu, self.runtime, self.mode)) for kind, n in kinds.values())
            host = NO_HOST if on_host is None else on_host.host
            limit_us = left_us([replace(layer, N=N) for layer in layers], self.mode, host)
            return sum(n * (time or 0.0) for n, time in times) <= limit_us

        network = NetworkFacts(layers, edges, estimates, self.precision, memory, on_host, waits_at)
        self.network = network
        self.time_us = network.time_us
        self.network_us = network.time_us if network.is_predicted else None
        self.step_us = None if on_host is None or on_host.step is None else on_host.step.time_us
        self.shared["network"] = View(NETWORK, network)
        return memory

    def precision(self, dtype: Dtype) -> tuple[Dtype, int, bool]:
        """(compute dtype, alignment, whether Tensor Cores multiply it)."""
        precision = self._precision.get(dtype)
        if precision is None:
            compute = compute_dtype(dtype, self.gpu, self.runtime)
            tensor = compute.value in self.gpu.tensor_dtypes and compute != Dtype.fp64
            precision = self._precision[dtype] = (compute, alignment(compute, self.runtime) if tensor else 1, tensor)
        return precision
