"""What arrives at a layer from those that it reads."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from convlint.facts.quantity import Quantity, Table, View, known, number, text, truth
from convlint.facts.unknown import UNKNOWN
from convlint.model.layer import ConvLayer
from convlint.model.network import Edge

if TYPE_CHECKING:
    from convlint.facts.layer import LayerFacts


class Arrival(NamedTuple):
    """An edge, the layer that it leads to, and the producer whose layout differs, if one does."""

    edge: Edge
    layer: ConvLayer
    other: ConvLayer | None


def _size(name: str, meaning: str) -> Quantity:
    return number(meaning, lambda arrival: known(getattr(arrival.edge, name)))


ARRIVING: Table = {
    "C": _size("C", "channels that the connected layers deliver"),
    "D": _size("D", "depth that the connected layers deliver"),
    "H": _size("H", "height that the connected layers deliver"),
    "W": _size("W", "width that the connected layers deliver"),
    "source": text("the layer or operation that this one reads", attrgetter("edge.source")),
    "layout": text(
        "layout of the connected layer that differs, or this layer's own",
        lambda arrival: (arrival.other or arrival.layer).layout,
    ),
    "layout_of": text(
        "the connected layer whose layout differs",
        lambda arrival: arrival.other.name if arrival.other else arrival.edge.source,
    ),
    "copied": truth(
        "the tensor is written once more in another layout on its way",
        lambda arrival: (
            arrival.edge.copied is not False
            and (arrival.other is not None or (arrival.layer.copies_input and arrival.edge.changed_at != ""))
        ),
    ),
    "changed_at": text(
        "the operation that changes the layout and its line, empty where unknown", attrgetter("edge.changed_at")
    ),
    "inherent": truth(
        "what changes the layout is an operator that writes NCHW whatever it reads", attrgetter("edge.inherent")
    ),
    "grouped": truth(
        "the connected layer whose layout differs has 1 < groups < C",
        lambda arrival: arrival.other is not None and _grouped(arrival.other),
    ),
}


def arriving(facts: LayerFacts) -> Any:
    """What arrives, UNKNOWN where the layer stands alone; of producers that differ, a grouped one only if no other."""
    layer, edge = facts.layer, facts.edge
    if edge is None:
        return UNKNOWN
    differing = [p for p in facts.producers if p.layout not in (layer.layout, "auto")] if layer.layout != "auto" else []
    return View(ARRIVING, Arrival(edge, layer, min(differing, key=_grouped, default=None)))


def _grouped(layer: ConvLayer) -> bool:
    return layer.groups > 1 and not layer.depthwise
