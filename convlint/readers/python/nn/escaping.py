"""What becomes of values outside of layers: they go where nobody looks, or arithmetic makes others of them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from convlint.readers.python.evaluator.values import Instance, Items, Table, Tensor, Value
from convlint.readers.python.nn import operations
from convlint.readers.python.nn.arguments import Arguments
from convlint.readers.python.nn.flow import Reader
from convlint.readers.python.nn.recording import Convolution, Escaped

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

_DEEPEST = 5  # lists in each other


def escape(machine: Machine, value: Value, depth: int) -> None:
    """A value went where nobody looks: a tensor has an unknown reader, a convolution an unknown user."""
    if isinstance(value, Tensor):
        value.data.readers.append(Reader("unknown", (), tuple(machine.conditions)))
    elif isinstance(value, Instance):
        if isinstance(value.extra, Convolution):
            machine.record(Escaped(value.extra))
    elif isinstance(value, (Items, Table)) and depth < _DEEPEST:
        for item in value.items if isinstance(value, Items) else value.items.values():
            escape(machine, item, depth + 1)


def computed(operator: object, left: Value, given: Arguments, conditions: tuple[str, ...]) -> Value:
    """What arithmetic makes of tensors."""
    if isinstance(operator, (ast.Add, ast.Sub)):
        return operations.combined(given, conditions)
    if isinstance(operator, (ast.UnaryOp, ast.USub, ast.UAdd, ast.Invert)):
        return operations.pointwise(Arguments([left], {}), conditions)
    return operations.multiplied(given, conditions)
