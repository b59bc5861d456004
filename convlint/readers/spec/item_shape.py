"""The shape that the reader of specs will see after an item that is being written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from convlint.errors import InputFault
from convlint.files.located_yaml import Value
from convlint.readers.spec.fields import read_fields
from convlint.readers.spec.layer import dims_of
from convlint.readers.spec.shapes import Shape, carried, carrier_of, latest

_NOWHERE = (1, 1, 1, 1)


def shape_after(item: Mapping[str, Any], inputs: Sequence[Shape], batch: int | None) -> Shape:
    """What an item that is no convolution hands on; `batch` is the N of the defaults. Raises InputFault."""
    mapping = {key: _value(value) for key, value in item.items() if key not in ("name", "input", "inputs")}
    op = item["op"]
    carrier = carrier_of(op, mapping["op"])
    dims = dims_of(mapping, op) or (inputs[0].dims if inputs else None) or 2
    fields = read_fields(mapping, dims, _refuse, where="a layer")
    fields.spans["layer"] = _NOWHERE
    if carrier in ("input", "declared"):
        fields.values["N"] = batch
    return latest(carried(carrier, item["name"], inputs, fields, mapping, dims))[0]


def _value(value: Any) -> Value:
    if isinstance(value, list):
        return Value([_value(item) for item in value], _NOWHERE)
    return Value(str(value), _NOWHERE, plain=isinstance(value, int))


def _refuse(error: InputFault) -> None:
    raise error
