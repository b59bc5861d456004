"""A simple resolver of specs, to compare edits with: each layer gets all its values, and changes replace some."""

from collections.abc import Iterable
from typing import Any

from convlint.files.located_yaml import Value, parse
from convlint.fixes.plan import ValueChange
from convlint.model.network import Network
from convlint.readers.spec.fields import COMPOSITES, NEUTRAL, PADS, read_fields
from convlint.readers.spec.graph import Defaults

SIDES = ("front", "back", "top", "bottom", "left", "right")


def resolved(text: str, network: Network, changes: Iterable[ValueChange]) -> str:
    """The text of a spec without defaults, anchors and merges that says what `text` says after `changes`."""
    document = parse(text)
    top = document.data
    defaults = Defaults.read(top.get("defaults"), _fail)
    wanted: dict[int | None, dict[str, Any]] = {}
    for change in changes:
        wanted.setdefault(change.layer, {})[change.field] = change.value
    runtime = {key.lower(): value.data for key, value in _pairs(top.get("runtime"))}
    runtime = {{"benchmark": "cudnn_benchmark"}.get(key, key): value for key, value in runtime.items()}
    runtime |= {name.removeprefix("runtime."): _text(value) for name, value in wanted.get(None, {}).items()}
    lines = ["version: 1", *([f"mode: {network.mode}"] if network.mode else ())]
    lines += ["runtime: {" + ", ".join(f"{key}: '{value}'" if key == "cudnn" else f"{key}: {value}"
                                       for key, value in runtime.items()) + "}", "layers:"]  # fmt: skip
    for number, (item, operation) in enumerate(zip(top["layers"].data, network.operations, strict=True)):
        layer = network.layers[operation.layer] if operation.layer is not None else None
        dims = layer.dims if layer is not None else operation.dims
        values = read_fields(item.data, dims, _fail, where="a layer").values
        if layer is not None:
            _fill(values, defaults.of(dims).values)
        values = values | wanted.get(number, {})
        for pad in PADS:
            own = wanted.get(number, {})
            even = layer is not None and getattr(layer, pad) == getattr(layer, pad + "_end")
            if even and pad in own and pad + "_end" not in own:
                values[pad + "_end"] = values[pad]
        lines.append("  - {" + ", ".join(_written(values, item.data, dims)) + "}")
    return "\n".join(lines)


def _fill(values: dict[str, Any], defaults: dict[str, Any]) -> None:
    padded, same = any(pad in values for pad in PADS), "same" in values
    for name, value in defaults.items():
        if not (padded if name == "same" else same and name.startswith("Pad")):
            values.setdefault(name, value)


def _written(values: dict[str, Any], item: dict[str, Value], dims: int) -> Iterable[str]:
    values = dict(values)
    if dims != 2:
        yield f"dims: {dims}"
    for key in ("op", "type", "input", "inputs", "from", "scale", "size"):
        if key in item and not item[key].is_null:
            yield f"{key}: {_plain(item[key])}"
    letters = COMPOSITES["output_padding"]
    if any(letter in values for letter in letters):
        yield f"output_padding: {[values.pop(letter, NEUTRAL['output_padding']) for letter in letters][3 - dims :]}"
    sides = [values.pop(side, 0) for pad in PADS for side in (pad, pad + "_end")]
    if "same" in values:
        del values["same"]
        yield "padding: same"
    else:
        yield "padding: {" + ", ".join(f"{side}: {pad}" for side, pad in zip(SIDES, sides, strict=True)) + "}"
    for name, value in values.items():
        if name not in ("PadD", "T", "D", "StrideD", "DilD") or dims == 3:
            yield f"{name}: {_text(value)}"


def _plain(value: Value) -> str:
    return "[" + ", ".join(map(_plain, value.data)) + "]" if isinstance(value.data, list) else str(value.data)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pairs(value: Value | None) -> Iterable[tuple[str, Value]]:
    return value.data.items() if value is not None and isinstance(value.data, dict) else ()


def _fail(error: Exception) -> None:
    raise error
