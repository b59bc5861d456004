"""Which tensors of a network are alive while each of its convolutions runs, in bytes; all sizes are known."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from convlint.model.layer import ConvLayer
from convlint.model.network import Edge

_MOST_COMPARED = 200  # later tensors that may be made of an earlier one


def alive(layers: Sequence[ConvLayer], edges: Sequence[Edge], *, copies: bool) -> list[int]:
    """Bytes while each layer runs: its input and output, and what later ones still read; or its norm's two tensors.

    `copies`: a normalisation behind a layer writes a tensor of its own, and a concatenation copies what it joins.
    """
    count = len(layers)
    outputs = [output_bytes(layer) for layer in layers]
    tensors, merged = _tensors(layers, edges)
    changes, ending = [0] * (count + 1), [0] * count
    for made, last, size in tensors:
        changes[made + 1] += size
        changes[last + 1] -= size
        ending[last] += size
    for index, until in enumerate(merged):
        if until > index:  # an output that waits for another branch
            changes[index + 1] += outputs[index]
            changes[until + 1] -= outputs[index]
    joined = _joined(layers, edges) if copies else {}
    alive, sizes = 0, []
    for index, layer in enumerate(layers):
        alive += changes[index]
        own = outputs[index]
        after = alive - ending[index] + 2 * own if copies and layer.norm_follows else 0
        sizes.append(max(alive + own, after, alive + joined.get(index, 0)))
    return sizes


def _joined(layers: Sequence[ConvLayer], edges: Sequence[Edge]) -> dict[int, int]:
    """The layers that read the concatenation of others' outputs, all of it in one place first, and its bytes."""
    found = {}
    for edge in edges:
        layer = layers[edge.consumer]
        if len(edge.producers) > 1 and (layer.C or 0) > max(layers[producer].K or 0 for producer in edge.producers):
            found[edge.consumer] = input_bytes(layer)
    return found


def _tensors(layers: Sequence[ConvLayer], edges: Sequence[Edge]) -> tuple[list[tuple[int, int, int]], list[int]]:
    """What the layers read, as (made after layer, read last by layer, bytes); and until when each output waits.

    What was joined to a later tensor, by an addition or a concatenation, is alive until that one is made.
    """
    count = len(layers)
    arriving = {edge.consumer: edge for edge in edges}
    spans: dict[object, list[int]] = {}
    producers: dict[object, frozenset[int]] = {}
    merged = list(range(count))
    for index, layer in enumerate(layers):
        edge, own = arriving.get(index), input_bytes(layer)
        if edge is None:
            spans[index] = [index - 1, index, own]
            continue
        earlier = frozenset(producer for producer in edge.producers if producer < index)
        name = tensor_name(edge, own)
        span = spans.setdefault(name, [max(earlier, default=-1), index, own])
        span[1] = max(span[1], index)
        producers[name] = earlier
    by_producer: dict[int, list[object]] = {}
    for name in sorted(producers, key=lambda name: spans[name][0]):
        for producer in producers[name]:
            by_producer.setdefault(producer, []).append(name)
    latest = {name: max(own, default=-1) for name, own in producers.items()}
    for producer, names in by_producer.items():
        merged[producer] = spans[names[0]][0]
        for position, name in enumerate(names, start=1):
            if latest[name] != producer:
                continue
            for other in names[position : position + _MOST_COMPARED]:
                if spans[other][0] > spans[name][0] and producers[name] < producers[other]:
                    spans[name][1] = max(spans[name][1], spans[other][0])
                    break
    return [(made, last, size) for made, last, size in spans.values()], merged


def tensor_name(edge: Edge, size: int) -> object:
    """Two layers that read as much from the same producers read the same tensor."""
    return edge.source, edge.producers, size


def input_bytes(layer: ConvLayer) -> int:
    """Of the layer's input; all sizes are known."""
    return prod((layer.N or 0, layer.C or 0, layer.D or 0, layer.H or 0, layer.W or 0, _bytes(layer)))


def output_bytes(layer: ConvLayer) -> int:
    """Of the layer's output; all sizes are known."""
    return prod((layer.N or 0, layer.K or 0, layer.Z or 0, layer.P or 0, layer.Q or 0, _bytes(layer)))


def _bytes(layer: ConvLayer) -> int:
    return layer.dtype.bytes if layer.dtype is not None else 0
