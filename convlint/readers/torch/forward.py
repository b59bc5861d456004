"""One forward pass of a module on the meta device, as far as shapes lead it."""

from __future__ import annotations

import copy
import traceback
from typing import Any

import torch
from torch.nn.modules.conv import _ConvNd
from torch.utils._pytree import tree_map

from convlint.errors import InputFault
from convlint.readers import ReadOptions
from convlint.readers.torch import building, user_code
from convlint.readers.torch.autocast import Autocast
from convlint.readers.torch.layers import unbatched
from convlint.readers.torch.module_inputs import Arguments, leaves, on_meta
from convlint.readers.torch.returned import tensors_in
from convlint.readers.torch.trace import WRONG_CHANNELS, Trace

_MOST_NAMED = 4  # modules that a forward pass does not reach


def forward(module: Any, arguments: Arguments, options: ReadOptions) -> tuple[Trace, tuple[str, ...]]:
    """One forward pass on the meta device, and why it ends early, if it does. Raises InputFault."""
    args, kwargs = on_meta(arguments[0]), on_meta(arguments[1])
    device = torch.device("meta")
    fresh = _copy(module)  # a pass may leave something behind in the module
    trace, fault = _traced(module, args, kwargs, options, device)
    if fault is None or fault.__cause__ is None or not user_code.needs_values(fault.__cause__):
        batched = _in_batches_of_one(trace, fresh, (args, kwargs), options, device)
        if batched is not None:
            return batched, ()
    if fault is None:
        return trace, ()
    if fault.__cause__ is None or not user_code.needs_values(fault.__cause__):
        raise fault
    with user_code.as_if_exporting():  # many libraries keep to shapes when they believe that they are being exported
        exporting, exported = _traced(_copy(fresh), args, kwargs, options, device)
    if exported is None:
        return exporting, ()
    # what is computed from sizes alone, and the boxes and labels that were given, may have values
    args, kwargs = on_meta(arguments[0], images_only=True), on_meta(arguments[1], images_only=True)
    with_values, early = _traced(fresh, args, kwargs, options, building.weights_on_meta(but_numbers=True))
    if early is None:
        return with_values, ()
    furthest = max(((with_values, early), (exporting, exported), (trace, fault)), key=lambda each: len(each[0].calls))
    return furthest[0], (_partly(module, *furthest, trains=bool(options.trains)),)


def _in_batches_of_one(
    trace: Trace, module: Any, arguments: Arguments, options: ReadOptions, device: Any
) -> Trace | None:
    """The pass again with a batch of one, where images came without a batch; None where they did not, or it ends early.

    Only of tensors with a batch it is known which axes are channels, and so which widths layers share; and a batch
    norm refuses all others.
    """
    sizes = unbatched(trace.calls, [tensor.dim() for tensor in leaves(arguments)])
    if not sizes:
        return None
    trace.unbatched = sizes
    axes = sizes.count("x") + 1

    def with_batch(leaf: Any) -> Any:
        is_image = isinstance(leaf, torch.Tensor) and leaf.is_floating_point() and leaf.dim() == axes
        return leaf.unsqueeze(0) if is_image else leaf

    args, kwargs = tree_map(with_batch, arguments)
    with user_code.unheard():  # it has printed what it prints
        again, fault = _traced(module, args, kwargs, options, device)
    again.unbatched = sizes
    return again if fault is None else None


def _copy(module: Any) -> Any:
    """The module as it is before anything runs; itself where it cannot be copied."""
    try:
        return user_code.run("copying the module", lambda: copy.deepcopy(module))
    except InputFault:
        return module


def _partly(module: Any, trace: Trace, fault: InputFault, *, trains: bool) -> str:
    """What a forward pass that ends early leaves unread. Raises InputFault where that is all of it."""
    reason = fault.message.removeprefix("the forward pass ")
    mode = "" if trains else ", --trace train follows another path where the model has one"
    message = (
        f"the forward pass depends on the values of a tensor, and only shapes are known here ({reason}); "
        f"export the model to ONNX or with torch.export and check that file, or give inputs that avoid this path{mode}"
    )
    if not trace.calls:
        raise InputFault(message)
    count = len(trace.calls)
    reached = "1 convolution before that is" if count == 1 else f"{count} convolutions before that are"
    owners = {call.owner for call in trace.calls}
    missing = [name for name, each in module.named_modules() if isinstance(each, _ConvNd) and name not in owners]
    more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
    left = f"not reached: {', '.join(missing[:_MOST_NAMED])}{more}" if missing else "which are all that the model has"
    return f"{message}; the {reached} checked, {left}"


def _explained(fault: InputFault, module: Any, *, trains: bool) -> InputFault:
    """What ended a forward pass, with the layer that did, and what may be missing in train mode."""
    cause = fault.__cause__
    layer = "" if cause is None else _layer_that_raised(module, cause)
    hint = ""
    if trains and cause is not None and not user_code.needs_values(cause) and WRONG_CHANNELS not in fault.message:
        hint = (
            "; this is the forward pass in train mode, which may need more, such as targets or a larger batch: "
            "--input package.module:function may make its inputs, --trace eval follows it as inference does"
        )
    explained = InputFault(f"{fault.message}{layer}{hint}")
    explained.__cause__ = cause
    return explained


def _layer_that_raised(module: Any, error: BaseException) -> str:
    """The innermost layer of `module` in which `error` was raised, with its kind; empty where that is in none."""
    names = {id(each): name for name, each in module.named_modules()}
    running: Any = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        owner = frame.f_locals.get("self")
        running = owner if isinstance(owner, torch.nn.Module) and names.get(id(owner)) else running
    if running is None or any(True for _ in running.children()):
        return ""
    return f", in {names[id(running)]} ({type(running).__name__})"


def _traced(
    module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: ReadOptions, made: Any
) -> tuple[Trace, InputFault | None]:
    """What a forward pass reached, and what ended it; new tensors are `made` on the meta device."""
    trace = Trace(module)
    for tensor in leaves((args, kwargs)):
        trace.watch(tensor)
    try:
        with torch.inference_mode(), made, Autocast(options.autocast) as trace.autocast, trace:
            answer = user_code.run("the forward pass", lambda: module(*args, **kwargs))
        outputs = user_code.run("looking for tensors in what the forward pass returns", lambda: tensors_in(answer))
    except InputFault as fault:
        return trace, _explained(fault, module, trains=bool(options.trains))
    trace.operations.outputs(None if outputs is None else map(id, outputs))
    return trace, None
