"""The network with some of B's members taken."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from convlint.engine.hits import with_fix
from convlint.engine.joint import Promise
from convlint.engine.levers import Lever
from convlint.model.layer import ConvLayer
from convlint.model.network import Edge, Network
from convlint.planning.steps import Members


def changed(network: Network, promise: Promise, taken: Members) -> Network:
    """The network that these members make of it: what is connected to a layer that changes follows."""
    setting = promise.search.setting(taken.choices)
    widths, forms = dict[int, int](), list[Lever]()
    for lever in taken.levers.values():
        number = group_of(promise, lever)
        if number is None or "copies_input" in lever.changes:
            forms.append(lever)
        else:
            widths[number] = lever.width or int(next(iter(lever.changes.values())))
    layers = list(setting.layers)
    for lever in forms:  # several may be one layer's
        layers[lever.layers[0]] = with_fix(layers[lever.layers[0]], lever.changes)
    laid_out = {
        index for index, pair in enumerate(zip(network.layers, layers, strict=True))
        if pair[0].layout != pair[1].layout or pair[0].copies_input != pair[1].copies_input
    }  # fmt: skip
    edges = tuple(_after(edge, network, layers, is_laid_out=edge.consumer in laid_out) for edge in network.edges)
    after = replace(network, layers=tuple(layers), edges=edges, runtime=setting.runtime)
    return promise.advice.widened(after, widths) if widths else after


def _after(edge: Edge, network: Network, layers: Sequence[ConvLayer], *, is_laid_out: bool) -> Edge:
    """What arrives once a layer and those before it have changed."""
    if is_laid_out:
        edge = replace(edge, copied=None, changed_at="")
    before, after = network.layers[edge.consumer].C, layers[edge.consumer].C
    return replace(edge, C=after) if edge.C is not None and edge.C == before != after else edge


def group_of(promise: Promise, lever: Lever) -> int | None:
    """The group of channels that a lever is; also one that is a single layer's own, as far as the network is wired."""
    if lever.group is not None:
        return lever.group
    return promise.advice.own_group(lever.layers[0], lever.changes)
