"""A layer and a runtime after a fix: what a rule's `set` makes of them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from convlint.model.layer import ConvLayer, Dtype, with_output
from convlint.model.runtime import Runtime
from convlint.report import Scalar

_FIELDS = frozenset(ConvLayer.__struct_fields__)
_SHAPELESS = frozenset(
    ("N", "C", "K", "groups", "dtype", "layout", "bias", "copies_input")
)  # leave the output's size alone
_DECLARED = {"P": "declared_P", "Q": "declared_Q", "Z": "declared_Z"}


def with_fix(layer: ConvLayer, changes: Mapping[str, Scalar]) -> ConvLayer:
    """The layer after `changes` to its fields (those of the runtime are not its own)."""
    values: dict[str, object] = {}
    for name, value in sorted(changes.items(), reverse=True):  # PadH_end before PadH
        if name in _DECLARED:
            values[_DECLARED[name]] = value
        elif name == "dtype":
            values[name] = Dtype(str(value))
        elif name in _FIELDS:
            values[name] = value
            if name in ("PadD", "PadH", "PadW") and getattr(layer, name) == getattr(layer, name + "_end"):
                values.setdefault(name + "_end", value)
    if not values:
        return layer
    fixed = replace(layer, **values)
    return fixed if _SHAPELESS.issuperset(values) else with_output(fixed)


def with_settings(runtime: Runtime, changes: Mapping[str, Scalar]) -> Runtime:
    """The runtime after those of `changes` that start with `runtime.`."""
    values = {name.removeprefix("runtime."): value for name, value in changes.items() if name.startswith("runtime.")}
    return replace(runtime, **values) if values else runtime
