"""Convolutions of a spec with the same weights: one that runs more than once (`op: again`), or two of other sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from convlint.errors import shown
from convlint.files.located_yaml import Value, fault
from convlint.model.layer import ConvLayer
from convlint.model.location import Span
from convlint.model.network import Edge
from convlint.readers.dataflow import MOST_PRODUCERS
from convlint.readers.spec.shapes import AGAIN, Shape
from convlint.readers.spec.values import word


class _First(NamedTuple):
    """A convolution where it is written down: what it hands on, the place of its edge."""

    layer: int
    shape: Shape
    edge: int | None


class Repeats:
    """The convolutions met so far by name; `names` are those of all runs of each, by its index."""

    def __init__(self) -> None:
        self.names: dict[int, list[str]] = {}
        self.weights: dict[int, int] = {}  # layer -> the first with the same weights, for both of them
        self._first: dict[str, _First] = {}

    def first(self, name: str, index: int, shape: Shape, edge: int | None) -> None:
        """A convolution; `edge` is where among the edges its own stands, if anything arrives."""
        self.names[index] = [name]
        self._first.setdefault(name, _First(index, shape, edge))

    def share(self, name: str, of: Value, index: int, layers: Sequence[ConvLayer]) -> int:
        """The first layer that has the weights of this one, which says that those of `of` are its own."""
        known = self._named(of, before=index)
        layer, other = layers[index], layers[known.layer]
        for axis in ("K", "C", "groups"):
            own, its = getattr(layer, axis), getattr(other, axis)
            if None not in (own, its) and own != its:
                raise fault(f"{name}: {axis}={own}, but {other.name}, whose weights it has, has {axis}={its}", of.span)
        first = self.weights.setdefault(known.layer, known.layer)
        self.weights[index] = first
        return first

    def run(
        self, name: str, of: Value | None, inputs: Sequence[Shape], span: Span, layers: Sequence[ConvLayer],
        edges: list[Edge],
    ) -> Shape:  # fmt: skip
        """What one more run hands on; the layer's edge gets the producers that arrive here. Raises InputFault."""
        if of is None:
            raise fault(f"{name}: op: {AGAIN} needs weights: the name of a convolution before it", span)
        known = self._named(of, before=len(layers))
        if len(inputs) > 1:
            raise fault(f"{name}: a convolution reads one tensor; join its inputs with op: concat or add", span)
        layer = layers[known.layer]
        for incoming in inputs:
            for axis in ("CW", "CHW", "CDHW")[layer.dims - 1]:
                own, arriving = getattr(layer, axis), getattr(incoming, axis)
                if None not in (own, arriving) and own != arriving:
                    raise fault(f"{name}: {axis}={arriving} arrives, but {layer.name} reads {axis}={own}", span)
            if known.edge is not None:
                edge = edges[known.edge]
                others = [each for each in incoming.producers if each not in (known.layer, *edge.producers)]
                edges[known.edge] = replace(edge, producers=(*edge.producers, *others)[:MOST_PRODUCERS])
        self.names[known.layer].append(name)
        return replace(known.shape, source=name)

    def _named(self, of: Value, before: int) -> _First:
        name = word("weights", of)
        known = self._first.get(name)
        if known is None or known.layer >= before:
            raise fault(f"weights: no convolution before this one is named {shown(name)!r}", of.span)
        return known
