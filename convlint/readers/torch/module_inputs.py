"""What a module's forward pass is called with: shapes from the command line or the config, or tensors of the user's."""

from __future__ import annotations

import difflib
import inspect
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from convlint.errors import AskedWrong, InputFault
from convlint.readers import ReadOptions
from convlint.readers.input_shapes import InputShape, looks_like_shapes, parse_shapes, refuse_lists
from convlint.readers.inputs import parse_reference
from convlint.readers.torch import building, user_code

_IMAGE = 2  # axes that an image has more than
_MOST_VALUES = 1_000_000
Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def inputs_of(module: Any, options: ReadOptions) -> Arguments:
    """Positional and keyword arguments of the forward pass; what has values keeps them. Raises InputFault."""
    if not options.inputs:
        example = getattr(module, "example_input_array", None)  # a LightningModule's
        if example is None:
            raise AskedWrong(
                'the input\'s shape is not known; give it, as in --input 256x3x224x224 or inputs = ["256x3x224x224"]',
                about="inputs",
            )
        return _as_arguments(example)
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    for name, text in options.inputs.items():
        try:
            refuse_lists(text)
        except InputFault as fault:
            raise AskedWrong(fault.message, about="inputs") from None
        if looks_like_shapes(text):
            try:
                tensors = tuple(_tensor(shape, module) for shape in parse_shapes(text, options.batch))
            except InputFault as fault:
                raise AskedWrong(fault.message, about="inputs") from None
            if not name:
                args = tensors
            elif len(tensors) != 1:
                raise AskedWrong(f"input {name!r} takes one shape, {text!r} gives {len(tensors)}", about="inputs")
            else:
                kwargs[name] = tensors[0]
            continue
        if name or ":" not in text:
            message = f"input {text[:60]!r} is neither a shape like 256x3x224x224 nor package.module:function"
            raise AskedWrong(message, about="inputs")
        made = building.load(parse_reference(text))
        if callable(made):
            with building.weights_on_meta():
                made = user_code.run(f"calling {text}", made)
        own, named = _as_arguments(made)
        args = own or args
        kwargs.update(named)
    return args, kwargs


def _as_arguments(value: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What is passed in order and by name: a mapping is by name, a tuple or a list in order, all else alone."""
    if isinstance(value, dict):
        return (), value
    return (tuple(value) if isinstance(value, (tuple, list)) else (value,)), {}


def refuse_inputs(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raises AskedWrong where the forward pass takes other inputs than are given."""
    try:
        signature = inspect.signature(module.forward)
    except (TypeError, ValueError):  # says nothing of itself
        return
    kinds = {each.kind for each in signature.parameters.values()}
    unknown = [name for name in kwargs if name not in signature.parameters]
    if unknown and inspect.Parameter.VAR_KEYWORD not in kinds:
        close = difflib.get_close_matches(unknown[0], signature.parameters, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else f"; it is forward{signature}"[:200]
        raise AskedWrong(f"its forward takes no {unknown[0]!r}{hint}", about="inputs")
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise AskedWrong(f"its inputs do not fit: {error}; it is forward{signature}"[:300], about="inputs") from None


def _tensor(shape: InputShape, module: Any) -> Any:
    dtype = getattr(torch, shape.dtype) if shape.dtype else None
    if dtype is None:  # as the weights are, so that a module in half precision needs no more words
        floating = (tensor.dtype for tensor in module.parameters() if tensor.dtype.is_floating_point)
        dtype = next(floating, torch.float32)
    tensor = torch.empty(shape.sizes, dtype=dtype, device="meta")
    if not shape.channels_last:
        return tensor
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if tensor.dim() not in formats:
        raise InputFault(f"channels_last needs 4 or 5 sizes, not {tensor.dim()}")
    return tensor.to(memory_format=formats[tensor.dim()])


def on_meta(value: Any, *, images_only: bool = False) -> Any:
    """The tensors in a structure without their values; or only those that may be images, and those that are large."""

    def moved(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or leaf.is_meta:
            return leaf
        image = leaf.dim() > _IMAGE and leaf.is_floating_point()
        keeps = images_only and not image and leaf.numel() <= _MOST_VALUES
        return leaf if keeps else leaf.to("meta")

    return tree_map(moved, value)


def leaves(value: Any) -> list[Any]:
    """The tensors in a structure. Raises InputFault where it holds itself."""
    try:
        return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]
    except RecursionError:
        raise InputFault("its inputs hold themselves, or are nested without end") from None
