"""What all layers of one network share on one target, under the vocabulary's names: GPU, runtime, network."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from convlint.estimate import LayerEstimate, compute_dtype
from convlint.gpus.gpu import Gpu
from convlint.model.layer import ConvLayer, Dtype, Mode
from convlint.model.runtime import Runtime
from convlint.model.version import Version
from convlint.rulebook.unknown import UNKNOWN

# Tensor Core vectors are 16 bytes wide: the guide's 8 for fp16 and 4 for tf32; TensorRT packs int8 by 32 (CG 4.4.3).
_ALIGN = {Dtype.fp16: 8, Dtype.bf16: 8, Dtype.tf32: 4, Dtype.int8: 16, Dtype.fp8: 16}
_LAYOUT_PICKERS = ("jax", "tensorrt", "tensorflow")


def known(value: Any) -> Any:
    """None, which stands for unknown in the model, as the value that no rule can use."""
    return UNKNOWN if value is None else value


def framework_picks_layout(runtime: Runtime) -> bool:
    """Whether the framework is known to choose the convolution's layout itself, whatever the user declares."""
    return (
        runtime.framework in _LAYOUT_PICKERS
        or runtime.compile is True
        or (runtime.framework == "onnxruntime" and runtime.prefer_nhwc is True)
    )


def alignment(compute: Dtype, runtime: Runtime) -> int:
    """The multiple that channels should have for Tensor Cores of this type (CG 1, 4.4.3)."""
    if compute == Dtype.int8 and (runtime.framework == "tensorrt" or runtime.tensorrt is not None):
        return 32
    return _ALIGN.get(compute, 1)


class TargetFacts:
    """What all layers of one network share on one target; `shared` is the namespace of network rules."""

    def __init__(self, label: str, gpu: Gpu, runtime: Runtime, mode: Mode) -> None:
        self.label, self.gpu, self.runtime, self.mode = label, gpu, runtime, mode
        self.time_us = 0.0
        self._precision: dict[Dtype, tuple[Dtype, int, bool]] = {}
        self.shared: dict[str, Any] = {
            "gpu": _gpu_view(label, gpu),
            "runtime": _runtime_view(runtime),
            "support": _SupportView(gpu, runtime),
            "mode": mode,
            "training": mode == "training",
            "framework_picks_layout": framework_picks_layout(runtime),
        }

    def precision(self, dtype: Dtype) -> tuple[Dtype, int, bool]:
        """(compute dtype, alignment, whether Tensor Cores multiply it)."""
        found = self._precision.get(dtype)
        if found is None:
            compute = compute_dtype(dtype, self.gpu, self.runtime)
            tensor = compute.value in self.gpu.tensor_dtypes and compute != Dtype.fp64
            found = self._precision[dtype] = (compute, alignment(compute, self.runtime) if tensor else 1, tensor)
        return found

    def _on_tensor_cores(self, layers: tuple[ConvLayer, ...]) -> Any:
        dtypes = {layer.dtype for layer in layers}
        if any(dtype is not None and self.precision(dtype)[2] for dtype in dtypes):
            return True
        return UNKNOWN if None in dtypes else False

    def _unaligned(self, layer: ConvLayer) -> bool:
        if layer.dtype is None or layer.groups > 1:
            return False
        multiple = self.precision(layer.dtype)[1]
        return any(channels is not None and channels % multiple for channels in (layer.C, layer.K))

    def add_network(self, layers: tuple[ConvLayer, ...], estimates: tuple[LayerEstimate | None, ...]) -> None:
        """Adds what only all layers together show: the network's time and where it goes."""
        priced = [(layer, estimate) for layer, estimate in zip(layers, estimates, strict=True) if estimate]
        total = sum(estimate.time_us for _, estimate in priced)
        self.time_us = total
        view = SimpleNamespace(
            layers=len(layers), time_us=UNKNOWN, memory_bound_percent=UNKNOWN, launch_percent=UNKNOWN,
            memory_bound_layers=UNKNOWN, on_tensor_cores=self._on_tensor_cores(layers),
            unaligned_nhwc=any(self._unaligned(layer) for layer in layers if layer.layout == "NHWC"),
        )  # fmt: skip
        if priced and len(priced) == len(layers) and total > 0:
            memory = []
            launch = 0.0
            for layer, estimate in priced:
                passes = estimate.passes.values()
                memory.append((layer.calls * sum(p.time_us for p in passes if p.bound_by == "memory"), layer.name))
                launch += layer.calls * sum(p.overhead_us for p in passes)
            top = [name for time, name in sorted(memory, reverse=True) if time > 0]
            view.time_us, view.launch_percent = total, 100 * launch / total
            view.memory_bound_percent = 100 * sum(time for time, _ in memory) / total
            view.memory_bound_layers = shortened(top, 5)
        self.shared["network"] = view


def shortened(names: list[str], most: int) -> str:
    """Names for a message: `a, b, c and 4 more`."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def _gpu_view(label: str, gpu: Gpu) -> SimpleNamespace:
    tensor = {
        f"tensor_{dtype}": dtype in gpu.tensor_dtypes for dtype in ("fp16", "bf16", "tf32", "int8", "fp8", "fp64")
    }
    fields = (
        "name", "architecture", "chip", "compute_capability", "dies_per_board", "sms", "pcie_gen", "concurrent_kernels",
        "hyper_q", "geforce", "integrated", "tensor_cores", "fast_fp16", "fp64_ratio",
    )  # fmt: skip
    return SimpleNamespace(id=label, **tensor, **{name: known(getattr(gpu, name)) for name in fields})


def _runtime_view(runtime: Runtime) -> SimpleNamespace:
    return SimpleNamespace(**{name: known(getattr(runtime, name)) for name in Runtime.__slots__ if name != "spans"})


class _SupportView:
    """Which given library supports the GPU; the table is read only when a rule asks about a version."""

    __slots__ = ("_gpu", "_runtime")

    def __init__(self, gpu: Gpu, runtime: Runtime) -> None:
        self._gpu, self._runtime = gpu, runtime

    def __getattr__(self, name: str) -> Any:
        from convlint.gpus import support  # reads its table: only for those who give a version

        key, what = name.split("_", 1)
        library = (self._runtime.framework or "") if key == "framework" else key
        version: Version | None = getattr(self._runtime, "framework_version" if key == "framework" else key)
        if what == "first":
            return str(support.first_version(library, self._gpu) or "") or UNKNOWN
        if what == "last":
            return support.last_version(library, self._gpu) or UNKNOWN
        if version is None:
            return UNKNOWN
        return known((support.dropped if what == "dropped" else support.too_old)(library, version, self._gpu))
