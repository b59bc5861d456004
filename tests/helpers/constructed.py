"""Networks in Python source, with the constructor calls that a reader of live models reports."""

from collections.abc import Sequence
from typing import Any

from convlint.model.layer import ConvLayer
from convlint.model.location import Span
from convlint.model.network import Network, Operation

PATH = "net.py"
NN = "from torch import nn\n"


def span_of(text: str, part: str, number: int = 0) -> Span:
    """Where `part` stands in `text` for the time `number`, in lines and characters from 1."""
    start = -1
    for _ in range(number + 1):
        start = text.index(part, start + 1)
    place = []
    for offset in (start, start + len(part)):
        lines = text[:offset].replace("\r\n", "\n").replace("\r", "\n").split("\n")
        place += [len(lines), len(lines[-1]) + 1]
    return place[0], place[1], place[2], place[3]


def conv(text: str, part: str, *, number: int = 0, path: str = PATH, **fields: Any) -> ConvLayer:
    """A convolution that `part` of `text` constructs."""
    sizes: dict[str, Any] = {"C": 3, "K": 60, "H": 8, "W": 8, "R": 3, "S": 3, "bias": True}
    spans = {"layer": span_of(text, part, number)}
    return ConvLayer(**{"name": part, "path": path, "spans": spans, **sizes, **fields})


def norm(text: str, part: str | None, C: int, *, number: int = 0) -> Operation:
    """A norm that `part` of `text` constructs; nobody knows where if that is None."""
    span = None if part is None else span_of(text, part, number)
    return Operation(kind="batchnorm", name="batch_norm", C=C, H=8, W=8, sized=True, path=PATH, span=span)


def chain(*steps: ConvLayer | Operation) -> Network:
    """A network of steps that read each other in order, from an input to what the last hands out."""
    layers = [step for step in steps if isinstance(step, ConvLayer)]
    operations = [Operation(kind="input", name="input", C=layers[0].C, H=8, W=8)]
    for number, step in enumerate(steps):
        if isinstance(step, ConvLayer):
            operation = Operation(kind="conv", name=step.name, layer=layers.index(step), C=step.K, H=8, W=8)
        else:
            operation = step
        fields = {name: getattr(operation, name) for name in Operation.__struct_fields__}
        operations.append(Operation(**{**fields, "inputs": (number,), "output": number == len(steps) - 1}))
    return Network(path="net:Net", layers=tuple(layers), operations=tuple(operations))


def alone(layers: Sequence[ConvLayer]) -> Network:
    """Layers of which nobody knows what connects them."""
    return Network(path="net:Net", layers=tuple(layers))
