"""A network as a YAML spec that reads back as the same layers, so that people can edit it and try ideas.

Every layer gives all its sizes. What connects them is written too, where the network's reader knows of it: a spec that
is checked has the findings of the model, and the same channels are one number in it. What a spec has no word for is
left out, and said at its top.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from convlint.files.flow_yaml import flow
from convlint.files.safe import clean, clean_path
from convlint.model.layer import ConvLayer
from convlint.model.network import Network
from convlint.model.runtime import Runtime
from convlint.model.version import Version
from convlint.readers.spec.items import CannotWire, Item, Items
from convlint.readers.spec.layer_entry import entry_of, shared_by
from convlint.readers.spec.naming import Names
from convlint.readers.spec.wiring import READ_ON, wired

_NORMALISED = "read by batch normalisation alone"
_LONGEST_COMMENT = 100


def spec_text(network: Network) -> str:
    """The spec, as YAML text."""
    names, given = _names(network.layers)
    entries = [entry_of(layer, name) for layer, name in zip(network.layers, given, strict=True)]
    defaults = shared_by(entries)
    lines = ["version: 1"]
    if network.targets:
        lines.append(f"target: {flow(list(network.targets))}")
    if network.mode is not None:
        lines.append(f"mode: {network.mode}")
    runtime = _runtime(network.runtime)
    if runtime:
        lines.append(f"runtime: {flow(runtime)}")
    if defaults:
        lines.append(f"defaults: {flow(defaults)}")
    if not entries:
        return "\n".join([*lines, "layers: []", ""])
    remarks = []
    items: list[Item] = []
    try:
        if network.operations:
            items = wired(network, entries, names, defaults.get("N"))
    except CannotWire as reason:
        remarks.append(f"# What connects the layers is left out: {reason}.")
        names, _ = _names(network.layers)
    if not items:
        items = _alone(network, entries, names)
    copying = sum(layer.copies_input for layer in network.layers)
    if copying:
        what = f"{copying} layers copy" if copying > 1 else "one layer copies"
        remarks.append(f"# Left out, with its time and its CL402: {what} what arrives into the layout that it runs in.")
    lines.append("layers:")
    lines += [f"  - {flow(item.mapping)}{_comment(item, network)}" for item in items]
    return "\n".join([*remarks, *lines, ""])


def _names(layers: Sequence[ConvLayer]) -> tuple[Names, list[str]]:
    """A name for each layer, and all those that are given."""
    names = Names()
    return names, [names.give(layer.name, f"layer{number}") for number, layer in enumerate(layers, start=1)]


def _alone(network: Network, entries: Sequence[dict[str, Any]], names: Names) -> list[Item]:
    """The layers without what connects them; each is told to be normalised, or not to be, by what reads it."""
    items = Items(names, None)
    for index, (layer, entry) in enumerate(zip(network.layers, entries, strict=True)):
        stated = None not in (layer.C, layer.H, layer.W)  # else the layer before would be taken for its input
        items.conv(index, entry, None if stated else items.nothing(layer.dims))
    for op, title, wanted in (("batchnorm", _NORMALISED, True), ("identity", READ_ON, False)):
        read = [entry["name"] for layer, entry in zip(network.layers, entries, strict=True)
                if layer.norm_follows is wanted]  # fmt: skip
        items.sink(title, read, op)
    return items.written


def _comment(item: Item, network: Network) -> str:
    """Where the layer stands in the user's code, or what a reshape was there."""
    if item.layer is not None:
        return _origin(network.layers[item.layer], network.path)
    return f"  # {clean(item.where)[:_LONGEST_COMMENT]}" if item.where.isprintable() and item.where else ""


def _runtime(runtime: Runtime) -> Mapping[str, Any]:
    settings: dict[str, Any] = {}
    usual = Runtime()
    for name in runtime.__struct_fields__:
        value = getattr(runtime, name)
        if name == "spans" or value is None or value == getattr(usual, name):
            continue
        settings[name] = str(value) if isinstance(value, Version) else value
    return settings


def _origin(layer: ConvLayer, path: str) -> str:
    """Where the layer stands in the user's code, as a comment."""
    place = layer.locate()
    if place.line is None or place.path == path or not place.path.isprintable():
        return ""
    return f"  # {clean_path(place.path)}:{place.line}"
