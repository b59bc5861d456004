"""The values behind the vocabulary: what a rule reads of one layer, on one target, in one network.

Everything costly is worked out only when a rule asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from convlint.estimate import LayerEstimate, PassEstimate, compute_dtype, nearest_full_waves
from convlint.expr import UNKNOWN
from convlint.gpu import Gpu
from convlint.model import PASSES, ConvLayer, Dtype, Edge, Mode, Pass, Runtime, Version

# Tensor Core vectors are 16 bytes wide: the guide's 8 for fp16 and 4 for tf32; TensorRT packs int8 by 32 (CG 4.4.3).
_ALIGN = {Dtype.fp16: 8, Dtype.bf16: 8, Dtype.tf32: 4, Dtype.int8: 16, Dtype.fp8: 16}
_LAYOUT_PICKERS = ("jax", "tensorrt", "tensorflow")
_LETTERS = (
    "N", "C", "D", "H", "W", "K", "Z", "P", "Q", "T", "R", "S", "StrideD", "U", "V", "PadD", "PadH", "PadW",
    "PadD_end", "PadH_end", "PadW_end", "DilD", "DilH", "DilW", "groups", "dims", "calls", "declared_P", "declared_Q",
    "declared_Z", "dtype", "bias", "norm_follows",
)  # fmt: skip
# what a derived name needs, in the letters a user can supply
_ROOTS: Mapping[str, tuple[str, ...]] = {
    "P": ("H",), "Q": ("W",), "Z": ("D",), "C_group": ("C",), "K_group": ("K",), "depthwise": ("C",),
    "extent_T": ("T",), "extent_R": ("R",), "extent_S": ("S",), "NPQ": ("N", "H", "W"),
    "dead_taps": ("H", "W", "R", "S"), "live_R": ("H", "R"), "live_S": ("W", "S"), "pointwise_map": ("H", "W"),
    "declared_P": ("H",), "declared_Q": ("W",), "declared_Z": ("D",),
    "PadH": ("H",), "PadH_end": ("H",), "PadW": ("W",), "PadW_end": ("W",), "PadD": ("D",), "PadD_end": ("D",),
    "alignment": ("dtype",), "dtype.bytes": ("dtype",), "compute_dtype": ("dtype",), "on_tensor_cores": ("dtype",),
}  # fmt: skip
_SIZES = ("N", "C", "H", "W", "K", "R", "S")
# settings that one framework alone has: nobody who runs another is asked for them
_OWNERS: Mapping[str, str] = {
    "runtime.cudnn_benchmark": "pytorch", "runtime.cudnn_conv_algo_search": "onnxruntime",
    "runtime.tf_cudnn_use_autotune": "tensorflow", "runtime.mxnet_cudnn_autotune_default": "mxnet",
    "runtime.xla_gpu_autotune_level": "jax", "runtime.tensorrt": "tensorrt",
}  # fmt: skip


def _known(value: Any) -> Any:
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


class PassView:
    """One pass as rules see it: the estimate's numbers under the vocabulary's names."""

    __slots__ = ("_estimate", "_sms", "pass_name")

    def __init__(self, estimate: PassEstimate | None, pass_name: str, sms: int) -> None:
        self._estimate, self.pass_name, self._sms = estimate, pass_name, sms

    def __getattr__(self, name: str) -> Any:
        estimate = self._estimate
        if estimate is None:  # no pass has this flaw
            return 1.0 if name.endswith("efficiency") else UNKNOWN
        special = _SPECIAL.get(name)
        return special(estimate, self._sms) if special else getattr(estimate, name)


_SPECIAL: Mapping[str, Callable[[PassEstimate, int], Any]] = {
    "gemm_M": lambda e, _: e.gemm.M,
    "gemm_N": lambda e, _: e.gemm.N,
    "gemm_K": lambda e, _: e.gemm.K,
    "tile_m": lambda e, _: e.tile[0],
    "tile_n": lambda e, _: e.tile[1],
    "wave_tiles": lambda e, sms: sms * e.resident_tiles,
}


class LayerFacts(dict[str, Any]):
    """The namespace in which the rules' expressions about one layer are evaluated."""

    __slots__ = ("context", "estimate", "layer")

    def __init__(
        self, context: TargetFacts, layer: ConvLayer, edge: Edge | None, producers: tuple[ConvLayer, ...],
        estimate: LayerEstimate | None,
    ) -> None:  # fmt: skip
        super().__init__(context.shared)
        self.context, self.layer, self.estimate = context, layer, estimate
        for letter in _LETTERS:
            value = getattr(layer, letter)
            self[letter] = UNKNOWN if value is None else value
        self["name"], self["op"], self["layout"] = layer.name, layer.op, layer.layout
        self["first"], self["head"] = layer.first, layer.head
        self["transposed"] = layer.op == "conv_transpose"
        self["connected"] = edge is not None
        self["depthwise"] = layer.depthwise
        # A 1x1 filter on a map of unknown size may be squeeze-and-excite's; a larger one is not.
        unsure = layer.R == layer.S == 1 and (layer.H is None or layer.W is None)
        self["pointwise_map"] = UNKNOWN if unsure else layer.pointwise_map
        self["arriving"] = UNKNOWN if edge is None else _arriving(layer, edge, producers)
        if layer.dtype is None:
            self["compute_dtype"] = self["alignment"] = self["on_tensor_cores"] = UNKNOWN
        else:
            self["compute_dtype"], self["alignment"], self["on_tensor_cores"] = context.precision(layer.dtype)

    def __missing__(self, name: str) -> Any:
        make = _LAZY.get(name)
        if make is None:
            raise KeyError(name)
        value = self[name] = make(self)
        return value

    def pass_view(self, which: Pass) -> Any:
        """The pass, or UNKNOWN where it is not run or not predicted."""
        estimate = self.estimate.passes.get(which) if self.estimate else None
        return UNKNOWN if estimate is None else PassView(estimate, which, self.context.gpu.sms)

    def worst_tiles(self) -> Any:
        """The compute-bound pass with the emptiest tiles; a view without flaws where no pass is compute-bound."""
        return self._worst("tile_efficiency", lambda _, estimate: estimate.bound_by == "compute")

    def worst_waves(self) -> Any:
        """Of fprop and dgrad, whose tiles follow N, the one with the emptiest waves among those of one wave or more."""
        return self._worst("wave_efficiency", lambda which, estimate: which != "wgrad" and estimate.waves >= 1)

    def _worst(self, efficiency: str, counts: Callable[[str, PassEstimate], bool]) -> Any:
        if self.estimate is None:
            return UNKNOWN
        passes = [(which, entry) for which, entry in self.estimate.passes.items() if counts(which, entry)]
        which, worst = min(passes, default=("fprop", None), key=lambda entry: getattr(entry[1], efficiency))
        return PassView(worst, which, self.context.gpu.sms)

    def batches(self) -> tuple[int, int]:
        """The nearest smaller and larger N with full waves in the pass that loses most to waves; 0: none."""
        worst = self["waves_worst"]
        if worst is UNKNOWN:
            return UNKNOWN, UNKNOWN
        runtime, gpu = self.context.runtime, self.context.gpu
        below, above = nearest_full_waves(self.layer, worst.pass_name, gpu, runtime)
        return below or 0, above or 0

    def needs(self, names: frozenset[str]) -> tuple[str, ...]:
        """Which values a rule that reads `names` lacks, in words that a user can act on."""
        lacking: dict[str, None] = {}
        for name in sorted(names):
            first = name.split(".")[0]
            if first == "support":
                library = name.split(".")[1].rsplit("_", 1)[0].removesuffix("_too")
                setting = "framework_version" if library == "framework" else library
                bound = f"{library}_first" if name.endswith("_too_old") else f"{library}_last"
                asks = name.endswith(("_too_old", "_dropped")) and getattr(self[first], bound) is not UNKNOWN
                if asks and getattr(self.context.runtime, setting) is None:
                    lacking[f"runtime.{setting}"] = None
            elif first in ("runtime", "arriving", "gpu"):
                parent = self[first]
                if parent is not UNKNOWN and getattr(parent, name.split(".")[1]) is UNKNOWN:
                    lacking[name] = None
            elif first in _ESTIMATED:
                if self.estimate is None:
                    sizes = [size for size in _SIZES if getattr(self.layer, size) is None]
                    lacking.update(dict.fromkeys(sizes))
                    if self.layer.dtype is None:
                        lacking["dtype"] = None
                    if not lacking:
                        lacking["predicted time"] = None
            elif self[first] is UNKNOWN:
                roots = _ROOTS.get(name, (name,))
                lacking.update(dict.fromkeys(root for root in roots if self.get(root, UNKNOWN) is UNKNOWN))
            elif first == "network" and getattr(self[first], name.split(".")[1]) is UNKNOWN:
                lacking["dtype" if name == "network.on_tensor_cores" else "predicted time"] = None
        framework = self.context.runtime.framework
        return tuple(name for name in lacking if _OWNERS.get(name) in (None, framework)) or tuple(lacking)


def _arriving(layer: ConvLayer, edge: Edge, producers: tuple[ConvLayer, ...]) -> SimpleNamespace:
    other = next((p for p in producers if p.layout not in (layer.layout, "auto")), None)
    differs = other is not None and layer.layout != "auto"
    return SimpleNamespace(
        C=_known(edge.C), D=_known(edge.D), H=_known(edge.H), W=_known(edge.W), source=edge.source,
        layout=other.layout if other is not None and differs else layer.layout,
        layout_of=other.name if other is not None and differs else edge.source,
    )  # fmt: skip


def _dead(size: int, out: int, stride: int, dilation: int, pad: int, taps: int) -> int:
    """Taps along one axis that lie in the padding for every output (the condition of CL005)."""
    before = min(taps, max(0, -((pad - (out - 1) * stride) // -dilation)))
    after = min(taps, max(0, taps - -((size + pad) // -dilation)))
    return min(taps, before + after)


def _live(facts: LayerFacts, size: str, out: str, stride: str, dilation: str, pad: str, taps: str) -> Any:
    values = [facts[name] for name in (size, out, stride, dilation, pad, taps)]
    if facts["transposed"]:  # every tap of a transposed convolution reads input
        return values[-1]
    return UNKNOWN if any(value is UNKNOWN for value in values) else values[-1] - _dead(*values)


def _dead_taps(facts: LayerFacts) -> Any:
    live = facts["live_T"], facts["live_R"], facts["live_S"]
    if any(value is UNKNOWN for value in (*live, facts["T"], facts["R"], facts["S"])):
        return UNKNOWN
    return facts["T"] * facts["R"] * facts["S"] - live[0] * live[1] * live[2]


def _product(*names: str) -> Callable[[LayerFacts], Any]:
    def product(facts: LayerFacts) -> Any:
        result = 1
        for name in names:
            if facts[name] is UNKNOWN:
                return UNKNOWN
            result *= facts[name]
        return result

    return product


def _extent(taps: str, dilation: str) -> Callable[[LayerFacts], Any]:
    return lambda facts: UNKNOWN if facts[taps] is UNKNOWN else facts[dilation] * (facts[taps] - 1) + 1


def _per_group(channels: str) -> Callable[[LayerFacts], Any]:
    return lambda facts: UNKNOWN if facts[channels] is UNKNOWN else facts[channels] // facts["groups"]


def _batch_to_fill(facts: LayerFacts) -> Any:
    """The smallest N at which fprop and dgrad have an unsplit tile for every SM."""
    if facts["fprop"] is UNKNOWN or facts["N"] is UNKNOWN:
        return UNKNOWN
    wanted = facts["N"]
    for view in (facts["fprop"], facts["dgrad"]):
        if view is not UNKNOWN and view.tiles < facts.context.gpu.sms:
            columns = view.gemm.batch * -(-view.gemm_N // view.tile_n)
            rows = -(-facts.context.gpu.sms // columns)
            wanted = max(wanted, (rows - 1) * view.tile_m * facts["N"] // view.gemm_M + 1)
    return wanted


def _layer_percent(facts: LayerFacts) -> Any:
    total = facts.context.time_us
    return UNKNOWN if facts.estimate is None or not total else 100 * facts.estimate.time_us / total


_LAZY: Mapping[str, Callable[[LayerFacts], Any]] = {
    "C_group": _per_group("C"),
    "K_group": _per_group("K"),
    "extent_T": _extent("T", "DilD"),
    "extent_R": _extent("R", "DilH"),
    "extent_S": _extent("S", "DilW"),
    "live_T": lambda facts: _live(facts, "D", "Z", "StrideD", "DilD", "PadD", "T"),
    "live_R": lambda facts: _live(facts, "H", "P", "U", "DilH", "PadH", "R"),
    "live_S": lambda facts: _live(facts, "W", "Q", "V", "DilW", "PadW", "S"),
    "dead_taps": _dead_taps,
    "NPQ": _product("N", "Z", "P", "Q"),
    "fprop": lambda facts: facts.pass_view("fprop"),
    "dgrad": lambda facts: facts.pass_view("dgrad"),
    "wgrad": lambda facts: facts.pass_view("wgrad"),
    "has_dgrad": lambda facts: facts["dgrad"] is not UNKNOWN,
    "has_wgrad": lambda facts: facts["wgrad"] is not UNKNOWN,
    "tiles_worst": lambda facts: facts.worst_tiles(),
    "waves_worst": lambda facts: facts.worst_waves(),
    "tile": lambda facts: f"{facts['tiles_worst'].tile_m}x{facts['tiles_worst'].tile_n}",
    "batch_below": lambda facts: facts.batches()[0],
    "batch_above": lambda facts: facts.batches()[1],
    "batch_to_fill": _batch_to_fill,
    "layer_percent": _layer_percent,
}
_ESTIMATED = (
    *PASSES,
    "tiles_worst",
    "waves_worst",
    "tile",
    "batch_below",
    "batch_above",
    "batch_to_fill",
    "layer_percent",
)


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

    def add_network(self, layers: tuple[ConvLayer, ...], estimates: tuple[LayerEstimate | None, ...]) -> None:
        """Adds what only all layers together show: the network's time and where it goes."""
        known = [(layer, estimate) for layer, estimate in zip(layers, estimates, strict=True) if estimate]
        total = sum(estimate.time_us for _, estimate in known)
        self.time_us = total
        view = SimpleNamespace(
            layers=len(layers), time_us=UNKNOWN, memory_bound_percent=UNKNOWN, launch_percent=UNKNOWN,
            memory_bound_layers=UNKNOWN, on_tensor_cores=self._on_tensor_cores(layers),
        )  # fmt: skip
        if known and len(known) == len(layers) and total > 0:
            memory = []
            launch = 0.0
            for layer, estimate in known:
                passes = estimate.passes.values()
                memory.append((layer.calls * sum(p.time_us for p in passes if p.bound_by == "memory"), layer.name))
                launch += layer.calls * sum(p.overhead_us for p in passes)
            top = [name for time, name in sorted(memory, reverse=True) if time > 0]
            view.time_us, view.launch_percent = total, 100 * launch / total
            view.memory_bound_percent = 100 * sum(time for time, _ in memory) / total
            view.memory_bound_layers = shortened(top, 5)
        self.shared["network"] = view


def shortened(names: list[str], most: int) -> str:
    """ "a, b, c and 4 more"."""
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
    return SimpleNamespace(id=label, **tensor, **{name: _known(getattr(gpu, name)) for name in fields})


def _runtime_view(runtime: Runtime) -> SimpleNamespace:
    return SimpleNamespace(**{name: _known(getattr(runtime, name)) for name in Runtime.__slots__ if name != "spans"})


class _SupportView:
    """Which given library supports the GPU; the table is read only when a rule asks about a version."""

    __slots__ = ("_gpu", "_runtime")

    def __init__(self, gpu: Gpu, runtime: Runtime) -> None:
        self._gpu, self._runtime = gpu, runtime

    def __getattr__(self, name: str) -> Any:
        from convlint import support  # reads its table: only for those who give a version

        key, what = name.split("_", 1)
        library = (self._runtime.framework or "") if key == "framework" else key
        version: Version | None = getattr(self._runtime, "framework_version" if key == "framework" else key)
        if what == "first":
            return str(support.first_version(library, self._gpu) or "") or UNKNOWN
        if what == "last":
            return support.last_version(library, self._gpu) or UNKNOWN
        if version is None:
            return UNKNOWN
        return _known((support.dropped if what == "dropped" else support.too_old)(library, version, self._gpu))
