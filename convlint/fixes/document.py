"""A spec as what can be changed in it: its items, its defaults, its runtime."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from convlint.fixes import yaml_nodes as nodes
from convlint.fixes.forms import Data
from convlint.fixes.holders import Holder
from convlint.model.network import Network

_TAKES_N = ("input", "reshape")  # kinds of operations that are no convolution and yet may state N


class Document(Struct, eq=False, kw_only=True):
    """`items` are the mappings of `layers` by position, `holders` each of them once.

    `settings` are the changes of the runtime, by its own names; `new_settings` what its block has to say where the
    spec has none.
    """

    tree: nodes.Tree
    items: list[Holder]
    holders: list[Holder]
    defaults: nodes.Mapping | None
    runtime: Holder | None
    settings: dict[str, Any] = field(default_factory=dict)
    refused_settings: dict[str, str] = field(default_factory=dict)
    new_settings: dict[str, Data] = field(default_factory=dict)

    @property
    def all_holders(self) -> list[Holder]:
        """The items' and that of the runtime."""
        return [*self.holders, *([self.runtime] if self.runtime is not None else ())]

    def can_get(self, block: str) -> bool:
        """Whether a block that is not there, or is empty, can be written."""
        entry = self.tree.root.own.get(block)
        return entry is None or isinstance(entry.value, nodes.Alias) or not entry.value.aliased


def document_of(tree: nodes.Tree, network: Network) -> Document:
    """What `tree` holds, of which the reader made `network`."""
    found = tree.root.found
    layers = nodes.behind(found["layers"].value)
    holders: dict[nodes.Mapping, Holder] = {}
    items = []
    for number, (item, operation) in enumerate(zip(layers.items, network.operations, strict=True)):
        mapping = nodes.behind(item)
        holder = holders.get(mapping)
        if holder is None:
            holder = holders[mapping] = Holder(
                mapping=mapping, items=[], layers=[], dims=None, takes_N=operation.kind in _TAKES_N
            )
        if operation.layer is not None:
            layer = network.layers[operation.layer]
            holder.dims = layer.dims if not holder.items or holder.dims == layer.dims else None
            holder.layers.append(layer)
        holder.dims_read.add(operation.dims)
        holder.items.append(number)
        items.append(holder)
    runtime = _block(found, "runtime")
    return Document(
        tree=tree,
        items=items,
        holders=list(holders.values()),
        defaults=_block(found, "defaults"),
        runtime=Holder(mapping=runtime, items=[], layers=[], dims=None) if runtime is not None else None,
    )


def _block(found: dict[str, nodes.Entry], name: str) -> nodes.Mapping | None:
    block = nodes.behind(found[name].value) if name in found else None
    return block if isinstance(block, nodes.Mapping) else None
