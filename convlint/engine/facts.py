"""The values behind the vocabulary for one layer on one target, and what a rule lacks where one is unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from convlint.engine.derived import LAZY, PassView, arriving
from convlint.engine.target_facts import TargetFacts
from convlint.estimate import LayerEstimate, PassEstimate, nearest_full_waves
from convlint.model.layer import PASSES, ConvLayer, Pass
from convlint.model.network import Edge
from convlint.rulebook.named_sizes import OF_TILES_NUMBER, OF_TILES_TEXT, ROOTS
from convlint.rulebook.unknown import UNKNOWN

_LETTERS = (
    "N", "C", "D", "H", "W", "K", "Z", "P", "Q", "T", "R", "S", "StrideD", "U", "V", "PadD", "PadH", "PadW",
    "PadD_end", "PadH_end", "PadW_end", "DilD", "DilH", "DilW", "groups", "dims", "calls", "declared_P", "declared_Q",
    "declared_Z", "dtype", "bias", "norm_follows",
)  # fmt: skip
# what a derived name needs, in the letters a user can supply
_ROOTS: Mapping[str, tuple[str, ...]] = {
    "P": ("H",), "Q": ("W",), "Z": ("D",), "C_group": ("C",), "K_group": ("K",), "depthwise": ("C",),
    "extent_T": ("T",), "extent_R": ("R",), "extent_S": ("S",), "NPQ": ("N", "H", "W"),
    "dead_taps": ("D", "H", "W", "R", "S", "T"), "live_R": ("H", "R"), "live_S": ("W", "S"),
    "pointwise_map": ("H", "W"), "declared_P": ("H",), "declared_Q": ("W",), "declared_Z": ("D",),
    "PadH": ("H",), "PadH_end": ("H",), "PadW": ("W",), "PadW_end": ("W",), "PadD": ("D",), "PadD_end": ("D",),
    "alignment": ("dtype",), "dtype.bytes": ("dtype",), "compute_dtype": ("dtype",), "on_tensor_cores": ("dtype",),
    **ROOTS,
}  # fmt: skip
_SIZES = ("N", "C", "H", "W", "K", "R", "S")
# settings that one framework alone has: nobody who runs another is asked for them
_OWNERS: Mapping[str, str] = {
    "runtime.cudnn_benchmark": "pytorch", "runtime.cudnn_conv_algo_search": "onnxruntime",
    "runtime.tf_cudnn_use_autotune": "tensorflow", "runtime.mxnet_cudnn_autotune_default": "mxnet",
    "runtime.xla_gpu_autotune_level": "jax", "runtime.tensorrt": "tensorrt",
}  # fmt: skip

_ESTIMATED = (
    *PASSES,
    "tiles_worst",
    "waves_worst",
    "tile",
    "batch_below",
    "batch_above",
    "batch_to_fill",
    "layer_percent",
    *OF_TILES_NUMBER,
    *OF_TILES_TEXT,
)


class LayerFacts(dict[str, Any]):
    """The namespace in which the rules' expressions about one layer are evaluated."""

    __slots__ = ("context", "estimate", "layer")
    layer: ConvLayer  # said here, as modules that are imported first read it

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
        self["arriving"] = UNKNOWN if edge is None else arriving(layer, edge, producers)
        if layer.dtype is None:
            self["compute_dtype"] = self["alignment"] = self["on_tensor_cores"] = UNKNOWN
        else:
            self["compute_dtype"], self["alignment"], self["on_tensor_cores"] = context.precision(layer.dtype)

    def __missing__(self, name: str) -> Any:
        make = LAZY.get(name)
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
