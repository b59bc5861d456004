"""Watching a forward pass on the meta device: every convolution that torch dispatches, with where its input comes from.

Runs under `torch.inference_mode()`, where composite operators such as `aten.conv2d` arrive whole.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from convlint.readers.dataflow import Flow, Origin
from convlint.readers.torch.layers import DTYPES, Call
from convlint.readers.torch.operators import CONVOLUTIONS, NORM, role
from convlint.readers.torch.places import SITE, inside_torch

_TORCH = inside_torch()
_HERE = str(Path(__file__))


class Trace(TorchDispatchMode):  # type: ignore[misc]
    """Collects `calls` in order; `unknown` are operators that look like convolutions and are not understood."""

    def __init__(self, root: torch.nn.Module) -> None:
        super().__init__()
        self.flow = Flow()
        self._names = {id(module): name for name, module in root.named_modules()}
        self.calls: list[Call] = []
        self.unknown: dict[str, None] = {}
        self._origins: dict[int, Origin] = {}
        self._bases: dict[int, int] = {}  # a view's id -> the id of what it looks into
        self._alive: list[Any] = []  # ids stay unique only as long as the tensors live
        self._kinds: dict[Any, tuple[str, str]] = {}

    def watch(self, tensor: Any) -> None:
        """Declares an input of the network."""
        self._alive.append(tensor)
        self._origins[id(tensor)] = Origin()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs the operator and notes where its result comes from."""
        kind = self._kinds.get(func)
        if kind is None:
            kind = self._kinds[func] = _kind(func)
        name, job = kind
        arguments = args if not kwargs else (*args, *kwargs.values())
        result = func(*args, **(kwargs or {}))
        if job == "convolution":
            return self._convolution(name, _bound(func, args, kwargs) if kwargs else args, result)
        origins = self._origins
        found: Origin | None = None
        more: list[Origin] | None = None
        for tensor in _tensors(arguments):
            origin = origins.get(id(tensor))
            if origin is None:
                continue
            if origin.direct is not None:
                if tensor is not result or job == NORM:
                    origin.direct.readers.append(job)
                origin = origin.past
            if found is None:
                found = origin
            elif origin is not found:
                more = [*(more or ()), origin]
        if found is None:
            return result
        if job == "unknown":
            self.unknown[name] = None
        learned = job == "learned"
        if learned:
            for origin in (found, *(more or ())):
                self.flow.consume(origin)
        if more is not None or (learned and not found.learned):
            found = self.flow.merge((found, *(more or ())), learned=learned)
        for tensor in _tensors((result,)):
            self._note(tensor, found)
        if job == "view":
            for tensor in _tensors((result,)):
                self._bases[id(tensor)] = self._bases.get(id(args[0]), id(args[0]))
        elif job == "write" and id(args[0]) in self._bases:  # `out[:, :8] = y` writes into the whole of out
            base = self._bases[id(args[0])]
            old = origins.get(base)
            origins[base] = self.flow.merge((found, old.past)) if old is not None else found
        return result

    def _note(self, tensor: Any, origin: Origin) -> None:
        self._alive.append(tensor)
        self._origins[id(tensor)] = origin

    def _convolution(self, name: str, args: Any, result: Any) -> Any:
        stride, padding, dilation, transposed, output_padding, groups = CONVOLUTIONS[name]

        def argument(position: int, default: Any) -> Any:
            return args[position] if position < len(args) else default

        data, weight = args[0], args[1]
        source = self._origins.get(id(data))
        if source is not None and source.direct is not None:
            source.direct.readers.append("convolution")
        index, origin = self.flow.convolution(source)
        nhwc = _channels_last(data) or _channels_last(weight)
        if nhwc and result.dim() in (4, 5):  # cuDNN answers in the layout it is asked in; the meta device does not
            result = result.contiguous(memory_format=_order(result))
        module, place = _caller()
        owner = None if module is None else self._names.get(id(module), type(module).__name__)
        turned = bool(transposed if isinstance(transposed, bool) else argument(transposed, False))
        fixed = isinstance(weight, torch.nn.Parameter)
        self.calls.append(
            Call(
                arrives=tuple(data.shape), weight=tuple(weight.shape), output=tuple(result.shape),
                bias=argument(2, None) is not None, stride=argument(stride, 1), padding=argument(padding, 0),
                dilation=argument(dilation, 1), transposed=turned,
                output_padding=argument(output_padding, 0) if output_padding is not None and turned else 0,
                groups=argument(groups, 1), dtype=DTYPES.get(str(data.dtype)),
                nhwc=nhwc, owner=owner,
                modular=isinstance(module, torch.nn.modules.conv._ConvNd),
                identity=id(weight) if fixed else (place, id(module)), place=place, source=source,
                written=self.flow.written[index],
            )
        )  # fmt: skip
        self._alive.append(weight)
        self._note(result, origin)
        return result


def _kind(func: Any) -> tuple[str, str]:
    schema = func._schema
    known = role(schema.name)
    if known is not None:
        return schema.name, known
    if any(argument.alias_info is not None and argument.alias_info.is_write for argument in schema.arguments):
        return schema.name, "write"
    if any(value.alias_info is not None for value in schema.returns):
        return schema.name, "view"
    return schema.name, schema.name


def _bound(func: Any, args: Any, kwargs: Any) -> tuple[Any, ...]:
    """Positional and keyword arguments in the order of the operator's schema."""
    values = list(args)
    for argument in func._schema.arguments[len(args) :]:
        values.append(kwargs.get(argument.name, argument.default_value))
    return tuple(values)


def _tensors(values: Any) -> Any:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            for inner in value:
                if isinstance(inner, torch.Tensor):
                    yield inner


def _channels_last(tensor: Any) -> bool:
    if tensor.dim() not in (4, 5):
        return False
    return tensor.is_contiguous(memory_format=_order(tensor)) and not tensor.is_contiguous()


def _order(tensor: Any) -> Any:
    return torch.channels_last if tensor.dim() == 4 else torch.channels_last_3d


def _caller() -> tuple[Any, tuple[str, int] | None]:
    """The module whose forward calls the convolution, and the line to point at: of its construction, or of the call."""
    frame = sys._getframe(2)
    place: tuple[str, int] | None = None
    while frame is not None:
        code = frame.f_code
        outside = not code.co_filename.startswith(_TORCH) and code.co_filename != _HERE
        if outside and place is None:
            place = (code.co_filename, frame.f_lineno)
        owner = frame.f_locals.get("self")
        if isinstance(owner, torch.nn.Module):
            return owner, owner.__dict__.get(SITE, place) if SITE in owner.__dict__ else place
        frame = frame.f_back  # type: ignore[assignment]
    return None, place
