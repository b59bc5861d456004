"""A network as a YAML spec that reads back as the same layers, so that people can edit it and try ideas.

Every layer gives all its sizes and stands alone: what was wired through pooling, additions and the like in the model
is not written down. Edges, and with them the rules on pairs of layers, are therefore left behind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from convlint.files.flow_yaml import flow
from convlint.files.safe import clean_path
from convlint.model.layer import ConvLayer
from convlint.model.network import Network
from convlint.model.runtime import Runtime
from convlint.model.version import Version

_UNKNOWN = "input of unknown size"
_NORMALISED = "read by batch normalisation alone"
_READ_ON = "read by other operations"
_LONGEST_NAME = 480  # characters; the spec's own limit is 500
_SHARED = ("N", "dtype", "layout")
_ROLES = ("first", "head")


def spec_text(network: Network) -> str:
    """The spec, as YAML text."""
    names = _names(network.layers)
    entries = [_entry(layer, name) for layer, name in zip(network.layers, names, strict=True)]
    defaults = _shared(entries)
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
    lines.append("layers:")
    unknown = _free(_UNKNOWN, names)
    if any("input" in entry for entry in entries):
        lines.append(f"  - {flow({'name': unknown, 'op': 'input'})}")
    for layer, entry in zip(network.layers, entries, strict=True):
        if "input" in entry:
            entry["input"] = unknown
        lines.append(f"  - {flow(entry)}{_origin(layer, network.path)}")
    for op, title, wanted in (("batchnorm", _NORMALISED, True), ("identity", _READ_ON, False)):
        readers = [name for layer, name in zip(network.layers, names, strict=True) if layer.norm_follows is wanted]
        if readers:
            lines.append(f"  - {flow({'name': _free(title, names), 'op': op, 'inputs': readers})}")
    return "\n".join([*lines, ""])


def _names(layers: Iterable[ConvLayer]) -> list[str]:
    """A name for each layer that a spec can hold: not empty, not endless, given once."""
    taken: set[str] = set()
    counts: dict[str, int] = {}  # so that a name which many layers share is not counted up for each of them
    result = []
    for number, layer in enumerate(layers, start=1):
        stem = layer.name[:_LONGEST_NAME] if layer.name.strip() else f"layer{number}"
        name, count = stem, counts.get(stem, 1)
        while name in taken:
            count += 1
            name = f"{stem}#{count}"
        counts[stem] = count
        taken.add(name)
        result.append(name)
    return result


def _free(name: str, names: Collection[str]) -> str:
    taken = {other for other in names if other.startswith(name)}
    while name in taken:
        name += "'"
    return name


def _entry(layer: ConvLayer, name: str) -> dict[str, Any]:
    dims = layer.dims
    axes = slice(3 - dims, None)
    entry: dict[str, Any] = {"name": name}
    if layer.op != "conv":
        entry["op"] = layer.op
    if dims != 2:
        entry["dims"] = dims
    sizes = {"N": layer.N, "C": layer.C, "D": layer.D if dims == 3 else None, "H": layer.H, "W": layer.W, "K": layer.K}
    entry |= {letter: size for letter, size in sizes.items() if size is not None}
    if None in (layer.C, layer.H, layer.W):
        entry["input"] = _UNKNOWN  # else the layer before would be taken for its input
    if None not in (layer.T, layer.R, layer.S):
        entry["kernel_size"] = _compact([layer.T, layer.R, layer.S][axes])
    for key, values, neutral in (
        ("stride", [layer.StrideD, layer.U, layer.V], 1),
        ("dilation", [layer.DilD, layer.DilH, layer.DilW], 1),
        ("output_padding", [layer.OutPadD, layer.OutPadH, layer.OutPadW], 0),
    ):
        if any(value != neutral for value in values[axes]):
            entry[key] = _compact(values[axes])
    padding = _padding(layer)
    if padding not in (None, 0):
        entry["padding"] = padding
    if layer.groups != 1:
        entry["groups"] = layer.groups
    if layer.dtype is not None:
        entry["dtype"] = layer.dtype.value
    entry["layout"] = layer.layout
    entry |= {key: size for key, size in zip("ZPQ", _declared(layer), strict=True) if size is not None}
    if layer.bias is not None:
        entry["bias"] = layer.bias
    entry["first"], entry["head"] = layer.first, layer.head
    if layer.calls != 1:
        entry["calls"] = layer.calls
    if layer.residual_inputs:
        entry["residual_inputs"] = layer.residual_inputs
    return entry


def _declared(layer: ConvLayer) -> tuple[int | None, int | None, int | None]:
    return layer.declared_Z, layer.declared_P, layer.declared_Q


def _compact(values: list[Any]) -> Any:
    """One number where all axes agree."""
    return values[0] if len(set(values)) == 1 else values


def _padding(layer: ConvLayer) -> Any:
    """One number, one for each axis, or all sides: front, back, top, bottom, left, right. None where unknown."""
    begin = [layer.PadD, layer.PadH, layer.PadW][3 - layer.dims :]
    end = [layer.PadD_end, layer.PadH_end, layer.PadW_end][3 - layer.dims :]
    if None in begin or None in end:
        return None
    if begin == end:
        return _compact(begin)
    return [side for sides in zip(begin, end, strict=True) for side in sides]


def _shared(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Takes what all layers have in common out of them, to be written once."""
    shared: dict[str, Any] = {}
    for key in _SHARED:
        values = {entry.get(key) for entry in entries}
        if len(values) == 1 and None not in values and len(entries) > 1:
            shared[key] = values.pop()
            for entry in entries:
                del entry[key]
    for key in _ROLES:  # stated once for all, so that nothing is concluded from how the spec is wired
        if any(not entry[key] for entry in entries):
            shared[key] = False
            for entry in entries:
                if not entry[key]:
                    del entry[key]
    if shared.get("layout") == "auto":
        del shared["layout"]
    for entry in entries:
        if entry.get("layout") == "auto" and "layout" not in shared:
            del entry["layout"]
    return shared


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
