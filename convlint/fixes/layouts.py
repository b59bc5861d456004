"""Which layers change their layout together: where one of those that are connected stays, tensors are copied."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from convlint.model.layer import ConvLayer
from convlint.model.network import Network


class Company(NamedTuple):
    """Layers that change their layout together, and the wishes that want it, by number.

    `loose` are sets of layers that no tensor connects with them, and that would have to state the layout which they
    draw from the same place; each may as well stay.
    """

    wishes: tuple[int, ...]
    layers: frozenset[int]
    loose: tuple[frozenset[int], ...] = ()


def is_its_own(layer: ConvLayer, layout: object) -> bool:
    """Whether a layer may have this layout beside others that have not: in NCHW, groups have other kernels."""
    return layout == "NCHW" and layer.groups > 1 and not layer.depthwise


class Layouts:
    """The layers of one network by what connects them."""

    def __init__(self, network: Network) -> None:
        self.layers, self._edges = network.layers, network.edges

    @cached_property
    def _part_of(self) -> list[int]:
        """For each layer one that stands for all that tensors connect it with, but where one is said to be no copy."""
        leader = list(range(len(self.layers)))

        def of(index: int) -> int:
            while leader[index] != index:
                leader[index] = index = leader[leader[index]]
            return index

        reading: dict[str, int] = {}  # what several read, the network's input too -> one of them
        for edge in self._edges:
            if edge.copied is not False:
                for other in (reading.setdefault(edge.source, edge.consumer), *edge.producers):
                    leader[of(other)] = of(edge.consumer)
        return [of(index) for index in range(len(self.layers))]

    @cached_property
    def _parts(self) -> Mapping[int, Sequence[int]]:
        found: dict[int, list[int]] = {}
        for index, part in enumerate(self._part_of):
            found.setdefault(part, []).append(index)
        return found

    def companies(
        self, layout: object, asking: Mapping[int, Sequence[int]], staying: Container[int]
    ) -> Iterator[Company]:
        """Who changes to `layout`, where `asking` has the wishes of layers for it; those that are `staying` do not."""
        moving: dict[int, list[int]] = {}  # part -> wishes
        for index, wishes in asking.items():
            if is_its_own(self.layers[index], layout):
                yield Company(tuple(wishes), frozenset((index,)))
            else:
                moving.setdefault(self._part_of[index], []).extend(wishes)
        loose = tuple(self._loose(layout, moving, staying)) if moving else ()
        for part, wishes in moving.items():
            asked = asking.keys() & self._parts[part]
            yield Company(tuple(wishes), self._changing(part, layout, staying).union(asked), loose)
            loose = ()

    def _changing(self, part: int, layout: object, staying: Container[int]) -> frozenset[int]:
        every = self._parts[part]
        return frozenset(i for i in every if self.layers[i].layout not in ("auto", layout) and i not in staying)

    def _loose(self, layout: object, moving: Container[int], staying: Container[int]) -> Iterator[frozenset[int]]:
        spans = {layer.spans.get("layout") for index, layer in enumerate(self.layers) if self._part_of[index] in moving}
        for part, every in self._parts.items():
            if part not in moving and any(self.layers[index].spans.get("layout") in spans for index in every):
                changing = self._changing(part, layout, staying)
                if changing:
                    yield changing
