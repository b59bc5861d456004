"""What only the whole graph shows of a layer: whether it is first, a head, or normalised."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from convlint.model.layer import ConvLayer
from convlint.model.network import Edge
from convlint.readers.spec.shapes import Shape


def with_roles(
    layers: Iterable[ConvLayer],
    edges: Sequence[Edge],
    shapes: Mapping[str, Shape],
    readers: Mapping[str, Sequence[str]],
    feeding: Collection[int],
    runs: Mapping[int, Sequence[str]],
) -> tuple[ConvLayer, ...]:
    """The layers with their roles, unless the spec states them.

    `readers` are the kinds of the operations that read each named one; `feeding` the layers that feed others beside
    those that the edges name; `runs` the names under which each layer runs.
    """
    feeds = {index for edge in edges for index in edge.producers}.union(feeding)
    fed = {edge.consumer: edge for edge in edges}
    inputs = {name for name, shape in shapes.items() if shape.from_input and not shape.producers}
    result = []
    for index, layer in enumerate(layers):
        edge = fed.get(index)
        first, head = layer.first, layer.head
        if "first" not in layer.spans:
            if edge is None:
                # Standing alone says nothing about where its input comes from; image channels or a graph do.
                first = index in feeds or (layer.C is not None and layer.C <= 4)
            else:
                first = not edge.producers and edge.source in inputs
        if "head" not in layer.spans:
            head = edge is not None and bool(edge.producers) and index not in feeds
        names = runs.get(index, (layer.name,))
        consumers = [list(readers.get(name, ())) for name in names]
        norm = all(kinds == ["batchnorm"] for kinds in consumers) if any(consumers) else None
        calls = layer.calls if "calls" in layer.spans else len(names)
        if (first, head, norm, calls) != (layer.first, layer.head, layer.norm_follows, layer.calls):
            layer = replace(layer, first=first, head=head, norm_follows=norm, calls=calls)
        result.append(layer)
    return tuple(result)
