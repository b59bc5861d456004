"""What else refers to a value: names, inputs, elements of lists; anything that nobody asks to change."""

from __future__ import annotations

from collections.abc import Container

from msgspec import Struct, field

from convlint.fixes import yaml_nodes as nodes


class Foreign(Struct):
    """By the node referred to: the aliases that stand for it elsewhere, and whether it is itself written there."""

    aliases: dict[nodes.Target, list[nodes.Alias]] = field(default_factory=dict)
    direct: set[nodes.Target] = field(default_factory=set)


def foreign_references(tree: nodes.Tree, known: Container[nodes.Entry]) -> Foreign:
    """All references beside the values of the entries `known`. What stands under x- keys counts where it is used."""
    foreign = Foreign()
    seen: set[nodes.Target] = {tree.root}
    open_nodes: list[nodes.Target] = []

    def refer(node: nodes.Node, *, is_known: bool = False) -> None:
        target: nodes.Target = nodes.behind(node)
        if not is_known:
            if isinstance(node, nodes.Alias):
                foreign.aliases.setdefault(target, []).append(node)
            elif target.aliased:
                foreign.direct.add(target)
        if not isinstance(target, nodes.Scalar) and target not in seen:
            seen.add(target)
            open_nodes.append(target)

    for entry in tree.root.entries:
        if not nodes.behind(entry.key).text.startswith("x-"):
            refer(entry.key)
            refer(entry.value, is_known=entry in known)
    while open_nodes:
        node = open_nodes.pop()
        if isinstance(node, nodes.Sequence):
            for item in node.items:
                refer(item)
        elif isinstance(node, nodes.Mapping):
            for entry in node.entries:
                refer(entry.key)
                refer(entry.value, is_known=entry in known)
    return foreign
