"""What the reader of specs makes of a few layers."""

from typing import Any

from convlint.model.layer import ConvLayer
from convlint.model.network import Edge, Network
from convlint.model.report import InputError
from convlint.readers.spec.reader import read_spec

STEM = "C: 3, H: 224, W: 224, K: 64, kernel_size: 7, stride: 2, padding: 3"


def spec(*layers: str, **top: str) -> str:
    head = "".join(f"{key}: {value}\n" for key, value in {"version": "1", **top}.items())
    return f"{head}layers:\n" + "".join(f"  - {{ {layer} }}\n" for layer in layers)


def network(text: str, path: str = "net.yaml") -> Network:
    found, errors = read_spec(text, path)
    assert errors == ()
    assert found is not None
    return found


def only(text: str) -> ConvLayer:
    (layer,) = network(text).layers
    return layer


def errors(text: str) -> tuple[InputError, ...]:
    return read_spec(text, "net.yaml")[1]


def sizes(layer: ConvLayer, names: str) -> list[Any]:
    return [getattr(layer, name) for name in names.split()]


def arrives(edge: Edge) -> tuple[int | None, ...]:
    return edge.C, edge.H, edge.W
