"""What follows from a layer's own fields: groups, extents, taps that read only padding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from convlint.facts.quantity import AXES, Axis, Table, number, truth
from convlint.facts.unknown import UNKNOWN

if TYPE_CHECKING:
    from convlint.facts.layer import LayerFacts


def _dead(axis: Axis, facts: LayerFacts) -> int:
    """Taps along one axis that lie in the padding for every output (the condition of CL005)."""
    size, out, taps, stride, dilation, pad, _ = axis.values(facts)
    before = min(taps, max(0, -((pad - (out - 1) * stride) // -dilation)))
    after = min(taps, max(0, taps - -((size + pad) // -dilation)))
    return int(min(taps, before + after))


def _live(axis: Axis, facts: LayerFacts) -> Any:
    # every tap of a transposed convolution reads input
    return facts[axis.taps] if facts["transposed"] else facts[axis.taps] - _dead(axis, facts)


def _dead_taps(facts: LayerFacts) -> Any:
    live = facts["live_T"] * facts["live_R"] * facts["live_S"]
    return facts["T"] * facts["R"] * facts["S"] - live


def _pointwise_map(facts: LayerFacts) -> Any:
    layer = facts.layer
    # A 1x1 filter on a map of unknown size may be squeeze-and-excite's; a larger one is not.
    unsure = layer.R == layer.S == 1 and (layer.H is None or layer.W is None)
    return UNKNOWN if unsure else layer.pointwise_map


_DEPTH, _HEIGHT, _WIDTH = AXES
SHAPES: Table = {
    "C_group": number("input channels of one group", lambda facts: facts["C"] // facts["groups"], ("C",)),
    "K_group": number("output channels of one group", lambda facts: facts["K"] // facts["groups"], ("K",)),
    "extent_T": number(
        "effective filter depth, DilD·(T-1)+1", lambda facts: facts["DilD"] * (facts["T"] - 1) + 1, ("T",)
    ),
    "extent_R": number(
        "effective filter height, DilH·(R-1)+1", lambda facts: facts["DilH"] * (facts["R"] - 1) + 1, ("R",)
    ),
    "extent_S": number(
        "effective filter width, DilW·(S-1)+1", lambda facts: facts["DilW"] * (facts["S"] - 1) + 1, ("S",)
    ),
    "live_T": number(
        "filter slices in depth that read input for some output", lambda facts: _live(_DEPTH, facts), ("D", "T")
    ),
    "live_R": number("filter rows that read input for some output", lambda facts: _live(_HEIGHT, facts), ("H", "R")),
    "live_S": number("filter columns that read input for some output", lambda facts: _live(_WIDTH, facts), ("W", "S")),
    "dead_taps": number(
        "filter taps that read only padding for every output", _dead_taps, ("D", "H", "W", "R", "S", "T")
    ),
    "NPQ": number(
        "N·Z·P·Q, the rows of fprop's GEMM",
        lambda facts: facts["N"] * facts["Z"] * facts["P"] * facts["Q"],
        ("N", "H", "W", "R", "S"),
    ),
    "depthwise": truth("groups = C", lambda facts: facts.layer.depthwise, ("C",)),
    "pointwise_map": truth("works on 1x1 maps (squeeze-and-excite)", _pointwise_map, ("H", "W")),
    "transposed": truth("a transposed convolution", lambda facts: facts.layer.op == "conv_transpose"),
    "connected": truth("reads another layer or operation", lambda facts: facts.edge is not None),
}
