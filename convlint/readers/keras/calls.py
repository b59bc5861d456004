"""From the calls of Keras convolutions to layers: one for all calls of the same sizes, with its role and its edge."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from convlint.model.layer import ConvLayer
from convlint.model.network import Edge
from convlint.readers.dataflow import Origin, Written, is_first
from convlint.readers.keras.layer import NORMS

Found = tuple[ConvLayer, Origin, Written]  # one call: the layer, where its input comes from, what becomes of its output


def read_by(origin: Origin, kind: str) -> None:
    """Notes that a layer of class `kind` reads the value."""
    if origin.direct is not None:
        origin.direct.readers.append(kind)


def without_copies(found: Sequence[Found]) -> tuple[tuple[ConvLayer, ...], tuple[Edge, ...], tuple[int, ...]]:
    """The layers, one for all calls of the same sizes, their edges, and the layer of each call."""
    groups: dict[ConvLayer, list[int]] = {}
    for position, (layer, _, _) in enumerate(found):
        groups.setdefault(layer, []).append(position)
    layer_of = {position: index for index, positions in enumerate(groups.values()) for position in positions}
    distinct = list(groups)
    layers: list[ConvLayer] = []
    edges: list[Edge] = []
    taken: dict[str, int] = {}
    for index, (layer, positions) in enumerate(groups.items()):
        sources = [found[position][1] for position in positions]
        written = [found[position][2] for position in positions]
        taken[layer.name] = count = taken.get(layer.name, 0) + 1
        layers.append(
            replace(
                layer, name=layer.name if count == 1 else f"{layer.name}#{count}", calls=len(positions),
                first=all(map(is_first, sources)), head=all(each.head for each in written),
                norm_follows=all(len(each.readers) == 1 and each.readers[0] in NORMS for each in written),
            )
        )  # fmt: skip
        before = dict.fromkeys(layer_of[position] for source in sources for position in source.producers)
        before.pop(index, None)
        if before:
            edges.append(
                Edge(consumer=index, producers=tuple(before), source=distinct[next(reversed(before))].name,
                     C=layer.C, H=layer.H, W=layer.W, D=layer.D)
            )  # fmt: skip
    return tuple(layers), tuple(edges), tuple([layer_of[position] for position in range(len(found))])
