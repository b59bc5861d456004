"""Watches a forward pass: records each operator that torch dispatches, and the dtype under autocast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import prod
from types import FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from convlint.readers.operations import ConvFlow, ValueOrigin
from convlint.readers.torch.building import CHANNELS_LAST
from convlint.readers.torch.kinds import CONVOLUTIONS, DETACHES, NORM, is_frozen, role, runs_nothing
from convlint.readers.torch.layers import DTYPES, ConvCall, Tensor, TracedOperations
from convlint.readers.torch.places import (
    SITE,
    CodeSpan,
    LayoutChange,
    LayoutChanges,
    UserLines,
    frames,
    is_view,
    layout_of,
    line_at,
    line_of,
    sites,
    suggests_channels_last,
)
from convlint.readers.torch.user_code import patched

_NAMED = {"fp16": torch.float16, "bf16": torch.bfloat16}


def _noting(began: Callable[..., None]) -> Callable[..., None]:
    """The constructor of `torch.autocast` that remembers its arguments, for `recorded_autocast`."""

    def begin(it: Any, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: Any = None) -> None:
        it.__dict__[_MEANT] = (device_type, dtype, enabled)
        on = enabled and device_type != "cuda"  # torch would warn where there is no CUDA
        began(it, device_type, dtype if device_type != "cuda" else None, on, cache_enabled)

    return begin


@contextmanager
def noted_autocast() -> Iterator[None]:
    """While modules are built, `torch.autocast` remembers its arguments: without CUDA it would disable itself."""
    kind = torch.amp.autocast_mode.autocast
    with patched((kind, "__init__", _noting(kind.__init__))):
        yield


@contextmanager
def recorded_autocast(outer: str | None) -> Iterator[Sequence[torch.dtype | None]]:
    """While active, `torch.autocast` for CUDA is recorded instead of applied.

    Yields the dtypes of those entered, the last of which is the one that convolutions of floating point tensors run in;
    None: that of their tensors. `outer` is that of an autocast around the whole forward pass. This machine need not
    have CUDA, and what runs on the meta device is not cast.
    """
    kind = torch.amp.autocast_mode.autocast
    original_init, original_enter, original_exit = kind.__init__, kind.__enter__, kind.__exit__
    dtypes = [None if outer is None else _NAMED[outer]]

    def enter(it: Any) -> Any:
        device_type, dtype, enabled = it.__dict__.get(_MEANT, ("", None, False))
        if device_type == "cuda":
            dtypes.append((dtype or torch.float16) if enabled else None)
        return original_enter(it)

    def leave(it: Any, *error: Any) -> Any:
        if it.__dict__.get(_MEANT, ("",))[0] == "cuda" and len(dtypes) > 1:
            dtypes.pop()
        return original_exit(it, *error)

    with patched((kind, "__init__", _noting(original_init)), (kind, "__enter__", enter), (kind, "__exit__", leave)):
        yield dtypes


_MEANT = "_convlint_meant"


def job_of(func: Any) -> tuple[str, str]:
    """An operator's name in its schema, and its role: that of `role`, "write" (in place), "view", or its name."""
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
    rest = func._schema.arguments[len(args) :]
    return (*args, *(kwargs.get(argument.name, argument.default_value) for argument in rest))


def argument_of(func: Any, args: Any, kwargs: Any, name: str) -> Any:
    """An argument by its name in the operator's schema; None where the schema has none of that name."""
    for position, argument in enumerate(func._schema.arguments):
        if argument.name == name:
            return args[position] if position < len(args) else (kwargs or {}).get(name, argument.default_value)
    return None


def tensors_of(values: Iterable[Any]) -> Iterator[Any]:
    """The tensors among arguments or results, and in lists among them."""
    for value in values:
        for inner in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(inner, torch.Tensor):
                yield inner


def as_iterated(arguments: Any, result: Any) -> Any:
    """The result of a pointwise operator with the strides that real kernels give it, where both layouts are the same.

    Kernels test whether all operands are contiguous before they test for channels_last (compute_fast_setup_type in
    aten/src/ATen/TensorIterator.cpp); the meta device copies the strides of the operands.
    """
    if not isinstance(result, torch.Tensor) or result.dim() not in (4, 5) or not result.is_contiguous():
        return result
    operands = [tensor for tensor in tensors_of(arguments) if tensor.dim()]
    if any(tensor is result or not tensor.is_contiguous() or tensor.shape != result.shape for tensor in operands):
        return result
    return torch.empty(result.shape, dtype=result.dtype, device=result.device)


# operators that copy their input, in a layout that the caller may choose
_REWRITES = frozenset(
    ("clone", "contiguous", "_reshape_copy", "reshape", "_to_copy", "to", "copy_", "flatten", "view_copy")
)
_SPOKEN = {"clone": "contiguous()", "contiguous": "contiguous()", "_reshape_copy": "reshape"}
WRONG_CHANNELS = "channels, but got"  # in torch's message for an input with other channels than the filters
_CAST = (torch.float16, torch.bfloat16, torch.float32)  # the dtypes that autocast casts; not float64


class Trace(TorchDispatchMode):  # type: ignore[misc]
    """Collects the `calls` of convolutions in order; `unknown` are operators that are only named like one."""

    def __init__(self, root: torch.nn.Module) -> None:
        super().__init__()
        self.flow = ConvFlow()
        self.operations = TracedOperations(trains=root.training)
        self._names = {id(module): name for name, module in root.named_modules()}
        self._trains = root.training  # in eval mode, all norms are frozen
        self.calls: list[ConvCall] = []
        self.unbatched = ""  # see Network
        self.autocast: Sequence[torch.dtype | None] = (None,)  # see `recorded_autocast`
        self.checkpoints = 0  # parts that training runs again for their gradients
        self.detached = False  # whether torch.no_grad() is on
        self._learned: set[int] = set()  # ids of what is computed of parameters that learn
        self.on_weights = 0  # operations on filters alone, such as those of weight normalisation, in no step
        self.views_maps = False  # `.view()` is called of maps or filters, and may refuse them in channels_last
        self.unknown: dict[str, None] = {}
        self._origins: dict[int, ValueOrigin] = {}
        self._bases: dict[int, tuple[int, tuple[int, ...]]] = {}  # a view's id -> id and sizes of its base
        self._alive: list[Any] = []  # keeps tensors alive, because the id of a freed one is given to another
        self._kinds: dict[Any, tuple[str, str]] = {}
        self._changes = LayoutChanges()

    def watch(self, tensor: Any) -> None:
        """Notes an input of the network."""
        self._alive.append(tensor)
        self._origins[id(tensor)] = ValueOrigin()
        self._changes.start(tensor)
        self.operations.input((id(tensor), tuple(tensor.shape)))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs an operator, and notes what it does and where its result comes from."""
        kind = self._kinds.get(func)
        if kind is None:
            kind = self._kinds[func] = job_of(func)
        name, job = kind
        arguments = args if not kwargs else (*args, *kwargs.values())
        if job == "convolution":  # the meta device checks less than others, and transposed ones not at all
            refused = _wrong_channels(name, bound(func, args, kwargs) if kwargs else args)
            if refused:
                raise RuntimeError(refused)
        result = func(*args, **(kwargs or {}))
        if name == "aten::scaled_dot_product_attention":  # fused kernels write [batch, sequence, heads, width]
            result = result.transpose(1, 2).contiguous().transpose(1, 2)
        elif torch.Tag.pointwise in func.tags:
            result = as_iterated(arguments, result)
        if job == "convolution":
            return self._convolution(name, bound(func, args, kwargs) if kwargs else args, result)
        if job != "learned":
            self._changes.note(tensors_of(arguments), tensors_of((result,)), partial(self._change, name))
        origins = self._origins
        # An operator does not read the tensor that it changes in place, unless it is a norm.
        read = [
            origins[id(tensor)] if tensor is not result or job == NORM else origins[id(tensor)].past
            for tensor in tensors_of(arguments)
            if id(tensor) in origins
        ]
        if job == "view":
            _, shape = self._bases.get(id(args[0]), (0, args[0].shape))  # of `y` in `y.flatten(2).view(N, -1)`
            self._look(args[0], result)
            if name == "aten::view" and len(shape) in (4, 5) and min(shape[1], prod(shape[2:])) > 1:
                self.views_maps = True  # reshape and flatten are operators of their own
        if not read:
            self.on_weights += self._works_on_weights(name, job, func, args, kwargs)
            if not self._stops(name) and self._learns(arguments):
                self._alive.append(result)
                self._learned.update(map(id, tensors_of((result,))))
                if job == "write" and id(result) in self._bases:
                    self._learned.add(self._bases[id(result)][0])
            return result
        base = self._bases.get(id(result)) if job == "write" else None
        self._operation(func, args, kwargs, result, job == "write", base)
        if job == "unknown":
            self.unknown[name] = None
        frozen = job == NORM and self._trains and is_frozen(name, partial(argument_of, func, args, kwargs))
        origin = self.flow.operation(read, "frozen norm" if frozen else job, learned=job == "learned")
        for tensor in tensors_of((result,)):
            self._note(tensor, origin)
        if base is not None:  # `out[:, :8] = y` writes into the whole of out
            old = origins.get(base[0])
            origins[base[0]] = self.flow.merge((origin, old.past)) if old is not None else origin
        return result

    def _works_on_weights(self, name: str, job: str, func: Any, args: Any, kwargs: Any) -> bool:
        """Whether an operation that reads no activation computes something of a filter."""
        if job in ("view", "write") or runs_nothing(name, partial(argument_of, func, args, kwargs)):
            return False
        return any(tensor.dim() > 2 and tensor.dtype.is_floating_point for tensor in tensors_of(args))

    def _stops(self, name: str) -> bool:
        """Whether no gradient goes back through an operator."""
        return self.detached or name in DETACHES

    def _learns(self, arguments: Iterable[Any]) -> bool:
        """Whether there are parameters that learn among the arguments of an operator, or what is computed of them."""
        return any(tensor.requires_grad or id(tensor) in self._learned for tensor in tensors_of(arguments))

    def _runs_in(self, data: Any) -> Any:
        """The dtype of a convolution: that of autocast where it casts this tensor, else the tensor's."""
        dtype = self.autocast[-1]
        return data.dtype if dtype is None or data.dtype not in _CAST else dtype

    def _note(self, tensor: Any, origin: ValueOrigin) -> None:
        self._alive.append(tensor)
        self._origins[id(tensor)] = origin

    def _look(self, base: Any, result: Any) -> None:
        """Notes the base of a view; a view of a view has the base of that view."""
        for tensor in tensors_of((result,)):
            if tensor is not base:
                self._alive += [base, tensor]
                self._bases[id(tensor)] = self._bases.get(id(base), (id(base), tuple(base.shape)))

    def _operation(self, func: Any, args: Any, kwargs: Any, result: Any, writes: bool, base: Tensor | None) -> None:
        arguments = list(tensors_of(args if not kwargs else (*args, *kwargs.values())))
        constants = [tensor for tensor in arguments if not self.operations.knows(id(tensor))]
        written = list(tensors_of((result,))) or (arguments if writes else ())  # some that write return nothing
        self.operations.note(
            func._schema.name, map(id, arguments), [(id(tensor), tuple(tensor.shape)) for tensor in written],
            partial(argument_of, func, args, kwargs), lambda: line_at(sys._getframe()), in_place=writes, base=base,
            constants=[tuple(tensor.shape) for tensor in constants], built=_built,
            base_of=lambda key: self._bases[key][0] if key in self._bases else key,
            view=not writes and is_view(arguments, written),
            learned=0 if self.detached else sum(tensor.numel() for tensor in constants if self._learns([tensor])),
            detached=self._stops(func._schema.name),
        )  # fmt: skip

    def _change(self, operator: str) -> LayoutChange | None:
        """The running operation: the innermost module if it has no children, else the operator; and its place."""
        module, place = _caller()
        if place is None:
            return None
        what = operator.partition("::")[2]
        inherent = what not in _REWRITES
        if module is not None and not any(True for _ in module.children()):
            what = f"{type(module).__name__} {self._names.get(id(module), '')}".rstrip()
        return LayoutChange(_SPOKEN.get(what, what), place.own or place.innermost, inherent)

    def _convolution(self, name: str, args: Any, result: Any) -> Any:
        """Notes a convolution; returns its result in the layout that cuDNN would give it."""
        stride, padding, dilation, transposed, output_padding, groups = CONVOLUTIONS[name]

        def argument(position: int, default: Any) -> Any:
            return args[position] if position < len(args) else default

        data, weight = args[0], args[1]
        source = self._origins.get(id(data))
        index, origin = self.flow.convolution(source, "convolution")
        nhwc = any(suggests_channels_last(tensor.shape, tensor.stride()) for tensor in (data, weight))
        copies = nhwc and layout_of(data) == "NCHW" and source is not None and bool(source.producers)
        change = self._changes.of(data)
        if result.dim() in (4, 5):  # the meta device may write another layout than cuDNN
            order = CHANNELS_LAST[result.dim()] if nhwc else torch.contiguous_format
            result = torch.empty(result.shape, dtype=result.dtype, device="meta", memory_format=order)
        module, place = _caller()
        owner = None if module is None else self._names.get(id(module), type(module).__name__)
        turned = bool(transposed if isinstance(transposed, bool) else argument(transposed, False))
        fixed = isinstance(weight, torch.nn.Parameter)
        learns = self._learns(args[1:3]) or id(weight) in self._origins
        self.calls.append(
            ConvCall(
                arrives=tuple(data.shape), weight=tuple(weight.shape), output=tuple(result.shape),
                bias=argument(2, None) is not None, stride=argument(stride, 1), padding=argument(padding, 0),
                dilation=argument(dilation, 1), transposed=turned,
                output_padding=argument(output_padding, 0) if output_padding is not None and turned else 0,
                groups=argument(groups, 1), dtype=DTYPES.get(str(self._runs_in(data))),
                nhwc=nhwc, copies=copies, copied=copies or change is not None, changed=change, owner=owner,
                modular=isinstance(module, torch.nn.modules.conv._ConvNd),
                identity=id(weight) if fixed else (place and place.innermost[:2], id(module)), place=place,
                source=source, written=self.flow.written[index],
                frozen=self.detached or not learns, detached=self.detached,
            )
        )  # fmt: skip
        self.operations.convolution(
            len(self.calls) - 1, self.calls[-1], [id(tensor) for tensor in tensors_of(args[:3])], id(result),
            lambda: "" if place is None else line_of(place.own or place.innermost),
        )  # fmt: skip
        self._alive.append(weight)
        self._note(result, origin)
        self._changes.start(result)
        return result


def _wrong_channels(name: str, args: Any) -> str:
    """Torch's message on other devices where the channels of input and filters differ; empty where they do not."""
    _, _, _, transposed, _, groups = CONVOLUTIONS[name]
    data, weight = args[0].shape, args[1].shape
    turned = transposed if isinstance(transposed, bool) else bool(args[transposed])
    into = args[groups] if groups < len(args) else 1
    shape = data if len(data) == len(weight) else (1, *data)
    expected = weight[0] if turned else weight[1] * into
    if len(shape) != len(weight) or shape[1] == expected:
        return ""
    how = f"transposed={int(turned)}" if turned else f"groups={into}"
    return (
        f"Given {how}, weight of size {list(weight)}, expected input{list(shape)} to have {expected} "
        f"{WRONG_CHANNELS} {shape[1]} channels instead"
    )


def _built() -> CodeSpan | None:
    """Where the user's code constructs the running module, if `construction_sites` has noted it."""
    module = _running(sys._getframe(1))
    lines = None if module is None else module.__dict__.get(SITE)
    return None if lines is None else lines.own


def _caller() -> tuple[Any, UserLines | None]:
    """The module whose forward calls the operator, and the code to point at: its construction, or else the call."""
    frame = sys._getframe(2)
    module, place = _running(frame), sites(frame)
    return module, place if module is None else module.__dict__.get(SITE, place)


def _running(frame: FrameType | None) -> Any:
    """The innermost module with a method on the stack; None where there is none."""
    owners = (caller.f_locals.get("self") for caller in frames(frame))
    return next((owner for owner in owners if isinstance(owner, torch.nn.Module)), None)
