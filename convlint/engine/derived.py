"""Quantities that rules read beside a layer's own fields, each worked out when a rule first asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from convlint.engine.sizes import SIZES
from convlint.engine.taps import TAPS
from convlint.engine.target_facts import known
from convlint.engine.tile_sides import TILE_SIDES
from convlint.estimate import PassEstimate
from convlint.model.layer import ConvLayer
from convlint.model.network import Edge
from convlint.rulebook.unknown import UNKNOWN

if TYPE_CHECKING:
    from convlint.engine.facts import LayerFacts


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


def arriving(layer: ConvLayer, edge: Edge, producers: tuple[ConvLayer, ...]) -> SimpleNamespace:
    """What arrives at a layer, and the producer whose layout differs from its own; a grouped one only if no other."""
    differing = [p for p in producers if p.layout not in (layer.layout, "auto")]
    other = min(differing, key=_grouped, default=None)
    differs = other is not None and layer.layout != "auto"
    return SimpleNamespace(
        C=known(edge.C), D=known(edge.D), H=known(edge.H), W=known(edge.W), source=edge.source,
        layout=other.layout if other is not None and differs else layer.layout,
        layout_of=other.name if other is not None and differs else edge.source,
        grouped=other is not None and differs and _grouped(other),
    )  # fmt: skip


def _grouped(layer: ConvLayer) -> bool:
    return layer.groups > 1 and not layer.depthwise


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
    """The smallest N at which fprop and dgrad have a tile for every SM, with the splits that they run with now."""
    if facts["fprop"] is UNKNOWN or facts["N"] is UNKNOWN:
        return UNKNOWN
    wanted = facts["N"]
    for view in (facts["fprop"], facts["dgrad"]):
        if view is not UNKNOWN and view.tiles < facts.context.gpu.sms:
            columns = view.gemm.batch * view.split_k * -(-view.gemm_N // view.tile_n)
            rows = -(-facts.context.gpu.sms // columns)
            wanted = max(wanted, (rows - 1) * view.tile_m * facts["N"] // view.gemm_M + 1)
    return wanted


def _wgrad_per_tap(facts: LayerFacts) -> bool:
    """Whether wgrad's tiles are those of one GEMM per tap, C high (CG 4.4.2); where it is not predicted, they are."""
    view, layer = facts["wgrad"], facts.layer
    if view is UNKNOWN or layer.C is None or layer.K is None:
        return True
    rows = -(-(layer.C // layer.groups) // view.tile_m)
    columns = -(-(layer.K // layer.groups) // view.tile_n)
    taps = (layer.T or 1) * (layer.R or 1) * (layer.S or 1)
    return bool(view.tiles == taps * layer.groups * rows * columns * view.split_k)


def _layer_percent(facts: LayerFacts) -> Any:
    total = facts.context.time_us
    return UNKNOWN if facts.estimate is None or not total else 100 * facts.estimate.time_us / total


LAZY: Mapping[str, Callable[[LayerFacts], Any]] = {
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
    "wgrad_per_tap": _wgrad_per_tap,
    "OutPadD": lambda facts: facts.layer.OutPadD,
    "OutPadH": lambda facts: facts.layer.OutPadH,
    "OutPadW": lambda facts: facts.layer.OutPadW,
    "tiles_worst": lambda facts: facts.worst_tiles(),
    "waves_worst": lambda facts: facts.worst_waves(),
    "tile": lambda facts: f"{facts['tiles_worst'].tile_m}x{facts['tiles_worst'].tile_n}",
    "batch_below": lambda facts: facts.batches()[0],
    "batch_above": lambda facts: facts.batches()[1],
    "batch_to_fill": _batch_to_fill,
    "layer_percent": _layer_percent,
    **TAPS,
    **TILE_SIDES,
    **SIZES,
}
