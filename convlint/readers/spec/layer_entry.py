"""A convolution as an item of a spec: its fields, and what all of a network share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from convlint.model.layer import ConvLayer

_SHARED = ("N", "dtype", "layout")
_ROLES = ("first", "head")


def entry_of(layer: ConvLayer, name: str) -> dict[str, Any]:
    """The layer with all its sizes; the roles that all layers state are there whatever they are."""
    dims = layer.dims
    axes = slice(3 - dims, None)
    entry: dict[str, Any] = {"name": name}
    if layer.op != "conv":
        entry["op"] = layer.op
    if dims != 2:
        entry["dims"] = dims
    sizes = {"N": layer.N, "C": layer.C, "D": layer.D if dims == 3 else None, "H": layer.H, "W": layer.W, "K": layer.K}
    entry |= {letter: size for letter, size in sizes.items() if size is not None}
    if None not in (layer.T, layer.R, layer.S):
        entry["kernel_size"] = compact([layer.T, layer.R, layer.S][axes])
    for key, values, neutral in (
        ("stride", [layer.StrideD, layer.U, layer.V], 1),
        ("dilation", [layer.DilD, layer.DilH, layer.DilW], 1),
        ("output_padding", [layer.OutPadD, layer.OutPadH, layer.OutPadW], 0),
    ):
        if any(value != neutral for value in values[axes]):
            entry[key] = compact(values[axes])
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


def compact(values: Sequence[Any]) -> Any:
    """One number where all axes agree."""
    return values[0] if len(set(values)) == 1 else list(values)


def _padding(layer: ConvLayer) -> Any:
    """One number, one for each axis, or all sides: front, back, top, bottom, left, right. None where unknown."""
    begin = [layer.PadD, layer.PadH, layer.PadW][3 - layer.dims :]
    end = [layer.PadD_end, layer.PadH_end, layer.PadW_end][3 - layer.dims :]
    if None in begin or None in end:
        return None
    if begin == end:
        return compact(begin)
    return [side for sides in zip(begin, end, strict=True) for side in sides]


def shared_by(entries: list[dict[str, Any]]) -> dict[str, Any]:
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
