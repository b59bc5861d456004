"""Operators as torch dispatches them: what they do, their arguments and their tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from convlint.readers.torch.operators import role


def job_of(func: Any) -> tuple[str, str]:
    """An operator's name in its schema, and its role; else whether it writes into what it reads, or is a view of it."""
    schema = func._schema
    known = role(schema.name)
    if known is not None:
        return schema.name, known
    if any(argument.alias_info is not None and argument.alias_info.is_write for argument in schema.arguments):
        return schema.name, "write"
    if any(value.alias_info is not None for value in schema.returns):
        return schema.name, "view"
    return schema.name, schema.name


def bound(func: Any, args: Any, kwargs: Any) -> tuple[Any, ...]:
    """Positional and keyword arguments in the order of the operator's schema."""
    values = list(args)
    for argument in func._schema.arguments[len(args) :]:
        values.append(kwargs.get(argument.name, argument.default_value))
    return tuple(values)


def argument_of(func: Any, args: Any, kwargs: Any, name: str) -> Any:
    """An argument by its name in the operator's schema; None where it has none of that name."""
    for position, argument in enumerate(func._schema.arguments):
        if argument.name == name:
            return args[position] if position < len(args) else (kwargs or {}).get(name, argument.default_value)
    return None


def tensors_of(values: Iterable[Any]) -> Iterator[Any]:
    """The tensors among arguments, or results, and in lists of them."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            for inner in value:
                if isinstance(inner, torch.Tensor):
                    yield inner


def as_iterated(arguments: Any, result: Any) -> Any:
    """A new tensor that both layouts lay out alike, with the strides that kernels give it: NCHW's where they may.

    aten/src/ATen/TensorIterator.cpp, compute_fast_setup_type, asks whether all operands are contiguous before it asks
    whether they are channels_last; the meta device keeps whatever strides came.
    """
    if not isinstance(result, torch.Tensor) or result.dim() not in (4, 5) or not result.is_contiguous():
        return result
    operands = [tensor for tensor in tensors_of(arguments) if tensor.dim()]
    if any(tensor is result or not tensor.is_contiguous() or tensor.shape != result.shape for tensor in operands):
        return result
    return torch.empty(result.shape, dtype=result.dtype, device=result.device)
