"""The reader of modules: builds the module that a reference names, runs its forward pass once, and reads that."""

from __future__ import annotations

import copy
import io
import linecache
import os
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib.machinery import SourceFileLoader
from importlib.util import decode_source
from types import BuiltinFunctionType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import torch
import torch.utils.checkpoint
from msgspec.structs import replace
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parameter import is_lazy
from torch.utils._pytree import tree_map

from convlint.files.languages import plural
from convlint.model.errors import AskedWrong, InputFault
from convlint.model.layer import ConvLayer
from convlint.model.network import Network
from convlint.model.report import InputError
from convlint.model.runtime import Runtime
from convlint.readers import Outcome, Reader, ReadOptions
from convlint.readers.references import parse_reference
from convlint.readers.torch import building, user_code
from convlint.readers.torch.building import CHANNELS_LAST, Arguments, leaves, on_meta
from convlint.readers.torch.layers import ConvCall, network_of, unbatched
from convlint.readers.torch.places import line_at
from convlint.readers.torch.trace import WRONG_CHANNELS, Trace, noted_autocast, recorded_autocast

MOST_OBJECTS = 100_000  # looked into for tensors
_NO_HOLDERS = (  # types whose attributes hold no result
    str, bytes, int, float, complex, type, ModuleType, FunctionType, MethodType, BuiltinFunctionType, torch.nn.Module,
)  # fmt: skip


def tensors_in(value: Any) -> list[torch.Tensor] | None:
    """The tensors in nested sequences, mappings and objects with attributes; None where there are too many objects.

    May raise anything, because iterating over these objects runs the user's code.
    """
    tensors: list[torch.Tensor] = []
    seen: dict[int, Any] = {}  # keeps the objects alive, because the id of a freed one is given to another
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if item is None or id(item) in seen:
            continue
        if len(seen) >= MOST_OBJECTS:
            return None
        seen[id(item)] = item
        if isinstance(item, torch.Tensor):
            tensors.append(item)
        elif isinstance(item, Mapping):
            waiting.extend(item.values())
        elif isinstance(item, (list, tuple, Set, deque)):
            waiting.extend(item)
        elif not isinstance(item, _NO_HOLDERS):
            waiting.extend(_attributes(item))
    return tensors


def _attributes(item: Any) -> list[Any]:
    slots = [name for kind in type(item).__mro__ for name in _names(kind.__dict__.get("__slots__", ()))]
    fields = getattr(item, "__dict__", None)
    return [*(fields.values() if isinstance(fields, dict) else ()), *(getattr(item, name, None) for name in slots)]


def _names(slots: Any) -> list[str]:
    return [slots] if isinstance(slots, str) else [name for name in slots if isinstance(name, str)]


_VIEW_REFUSED = "view size is not compatible"  # in torch's message for .view() of a tensor in channels_last
_MOST_NAMED = 4  # modules that a message names of those that a forward pass does not reach


def forward(module: Any, arguments: Arguments, options: ReadOptions) -> tuple[Trace, tuple[str, ...]]:
    """A forward pass on the meta device, and why it ends early, if it does. Raises InputFault.

    Where the code asks for values of tensors, which the meta device does not have, it is run again as if it were being
    exported, and then with real values for what is small; the run that got furthest counts.
    """
    args, kwargs = on_meta(arguments[0]), on_meta(arguments[1])
    device = torch.device("meta")
    fresh = _copy(module)  # a pass may change the module
    trace, fault = _traced(module, args, kwargs, options, device)
    if fault is None or fault.__cause__ is None or not user_code.needs_values(fault.__cause__):
        batched = _in_batches_of_one(trace, fresh, (args, kwargs), options, device)
        if batched is None and fault is not None:
            raise fault
        return trace if batched is None else batched, ()
    with user_code.as_if_exporting():  # many libraries use shapes only when they are being exported
        exporting, exported = _traced(_copy(fresh), args, kwargs, options, device)
    if exported is None:
        return exporting, ()
    # What is computed from sizes alone, and boxes and labels that were given, get real values.
    args, kwargs = on_meta(arguments[0], images_only=True), on_meta(arguments[1], images_only=True)
    with_values, early = _traced(fresh, args, kwargs, options, building.weights_on_meta(but_numbers=True))
    if early is None:
        return with_values, ()
    furthest = max(((with_values, early), (exporting, exported), (trace, fault)), key=lambda run: len(run[0].calls))
    return furthest[0], (_partly(module, *furthest, trains=bool(options.trains)),)


def _in_batches_of_one(
    trace: Trace, module: Any, arguments: Arguments, options: ReadOptions, device: Any
) -> Trace | None:
    """The pass again with a batch of one, where images came without a batch; None where it ends early.

    The axis of channels is known only for tensors with a batch, and so is which layers share a width; a batch norm
    refuses tensors without one.
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
    with user_code.unheard():  # the first pass has printed all this
        again, fault = _traced(module, args, kwargs, options, device)
    again.unbatched = sizes
    return again if fault is None else None


def _copy(module: Any) -> Any:
    """A deep copy of the module; the module itself where it cannot be copied."""
    try:
        return user_code.run("copying the module", lambda: copy.deepcopy(module))
    except InputFault:
        return module


def _partly(module: Any, trace: Trace, fault: InputFault, *, trains: bool) -> str:
    """The message for a forward pass that ends early. Raises InputFault where it reached no convolution."""
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
    missing = [name for name, layer in module.named_modules() if isinstance(layer, _ConvNd) and name not in owners]
    more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
    rest = f"not reached: {', '.join(missing[:_MOST_NAMED])}{more}" if missing else "which are all that the model has"
    return f"{message}; the {reached} checked, {rest}; what follows is unknown, and with it the time of the step"


def _explained(fault: InputFault, module: Any, *, trains: bool) -> InputFault:
    """The error that ended a forward pass, with the layer that raised it and, in train mode, what may be missing."""
    cause = fault.__cause__
    layer = "" if cause is None else _layer_that_raised(module, cause)
    hint = ""
    if cause is not None and _VIEW_REFUSED in str(cause):
        hint = (
            "; .view() takes what lies in one order in memory, and tensors in channels_last do not: .reshape(), or "
            ".contiguous() before, works in every layout"
        )
    elif trains and cause is not None and not user_code.needs_values(cause) and WRONG_CHANNELS not in fault.message:
        hint = (
            "; this is the forward pass in train mode, which may need more, such as targets or a larger batch: "
            "--input package.module:function may make its inputs, --trace eval follows it as inference does"
        )
    explained = InputFault(f"{fault.message}{layer}{hint}")
    explained.__cause__ = cause
    return explained


def _layer_that_raised(module: Any, error: BaseException) -> str:
    """The innermost layer of `module` that raised `error`, with its class; empty where none did."""
    names = {id(layer): name for name, layer in module.named_modules()}
    running: Any = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        owner = frame.f_locals.get("self")
        running = owner if isinstance(owner, torch.nn.Module) and names.get(id(owner)) else running
    if running is None or any(True for _ in running.children()):
        return ""
    return f", in {names[id(running)]} ({type(running).__name__})"


def _traced(
    module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: ReadOptions, context: Any
) -> tuple[Trace, InputFault | None]:
    """The trace of a forward pass, and the error that ended it; new tensors are made in `context`."""
    trace = Trace(module)
    for tensor in leaves((args, kwargs)):
        trace.watch(tensor)
    try:
        # A network may have an attribute `modules`, which PyTorch does not mind.
        lazy = (part for _, part in module.named_modules() if isinstance(part, LazyModuleMixin))
        if any(part.has_uninitialized_params() for part in lazy):
            # Parameters get their sizes in a first forward pass, which no trace may look at: they are set as data.
            with torch.no_grad(), context, recorded_autocast(options.autocast):
                user_code.run("the forward pass", lambda: module(*args, **kwargs))
        autocast = recorded_autocast(options.autocast)
        with torch.inference_mode(), context, _watched(trace), autocast as trace.autocast, trace:
            answer = user_code.run("the forward pass", lambda: module(*args, **kwargs))
        outputs = user_code.run("looking for tensors in what the forward pass returns", lambda: tensors_in(answer))
    except InputFault as fault:
        return trace, _explained(fault, module, trains=bool(options.trains))
    trace.operations.outputs(None if outputs is None else map(id, outputs))
    return trace, None


@contextmanager
def edited_sources(sources: Mapping[str, str]) -> Iterator[None]:
    """While active, imports read `sources` (real path -> content, a character for each byte) instead of the files."""
    if not sources:
        yield
        return
    edited = {path: source.encode("latin-1") for path, source in sources.items()}
    get_data, path_stats, updatecache = SourceFileLoader.get_data, SourceFileLoader.path_stats, linecache.updatecache

    def data(self: SourceFileLoader, path: str) -> bytes:
        content = edited.get(os.path.realpath(path))
        return get_data(self, path) if content is None else content

    def stats(self: SourceFileLoader, path: str) -> Mapping[str, Any]:
        if os.path.realpath(path) in edited:
            raise OSError("it is not as it is on disk")  # then the loader does not look for bytecode
        return path_stats(self, path)

    def lines(filename: str, module_globals: dict[str, Any] | None = None) -> list[str]:
        content = edited.get(os.path.realpath(filename))
        if content is None:
            return updatecache(filename, module_globals)
        read = io.StringIO(decode_source(content)).readlines()
        linecache.cache[filename] = len(content), None, read, filename
        return read

    with user_code.patched(
        (SourceFileLoader, "get_data", data), (SourceFileLoader, "path_stats", stats), (linecache, "updatecache", lines)
    ):
        yield


def read(path: str, options: ReadOptions) -> Outcome:
    """The convolutions that the module's forward pass reaches, in call order."""
    try:
        with (
            user_code.unheard() if options.again else nullcontext(),
            edited_sources(options.sources),
            user_code.guest(options.roots),
            user_code.construction_sites(),
        ):
            return _read(path, options)
    except InputFault as fault:
        about = fault.about if isinstance(fault, AskedWrong) else ""
        return None, (InputError(path=path, message=fault.message, asked_wrong=about),)


def _frozen(layers: Sequence[ConvLayer], calls: Sequence[ConvCall], *, trains: bool) -> tuple[str, ...]:
    """A note on layers that do not learn; none without any, or if none learns and the mode is not training."""
    frozen = sum(layer.frozen for layer in layers)
    if frozen:
        does = "does" if frozen == 1 else "do"
        why = "requires_grad, torch.no_grad()"
        return (f"{frozen} of {plural(len(layers), 'convolution')} {does} not learn ({why}): training runs no wgrad",)
    if trains and calls and all(call.frozen or call.detached for call in calls):
        return ("no convolution learns (requires_grad, torch.no_grad()); training is priced as if all did",)
    return ()


_RUN_AGAIN = "activation checkpointing is not priced: times are those without it"


def _watched(trace: Trace) -> AbstractContextManager[None]:
    """While active, `trace` knows what the module runs without gradients, and counts what it runs again for them.

    The latter as of torch/utils/checkpoint.py, 2.13. A function with a backward pass of its own, such as a reentrant
    checkpoint, has its gradients although it switches them off.
    """

    def switch(frame: FrameType, *, learns: bool) -> None:
        context = torch.autograd.function.FunctionCtx
        trace.detached = not learns and not any(isinstance(value, context) for value in frame.f_locals.values())

    def around(kind: Any, learns: Callable[[Any], bool]) -> Iterator[tuple[Any, str, Any]]:
        enter, leave, before = kind.__enter__, kind.__exit__, list[bool]()

        def entering(self: Any) -> None:
            before.append(trace.detached)
            enter(self)
            switch(sys._getframe(1), learns=learns(self))

        def leaving(self: Any, *error: Any) -> None:
            leave(self, *error)
            trace.detached = bool(before) and before.pop()  # it may have been entered before

        yield kind, "__enter__", entering
        yield kind, "__exit__", leaving

    def counted(inner: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            trace.checkpoints += 1
            return inner(*args, **kwargs)

        return call

    switched = torch.set_grad_enabled  # takes effect when it is constructed
    begin, leave, decorate = switched.__init__, switched.__exit__, switched.__call__

    def beginning(self: Any, mode: bool) -> None:
        self._convlint_before = trace.detached
        begin(self, mode)
        switch(sys._getframe(1), learns=mode)

    def leaving(self: Any, *error: Any) -> None:
        leave(self, *error)
        trace.detached = getattr(self, "_convlint_before", False)

    def decorating(self: Any, function: Any) -> Any:
        trace.detached = getattr(self, "_convlint_before", False)
        return decorate(self, function)

    own, generator = torch.utils.checkpoint, "_checkpoint_without_reentrant_generator"
    reentrant = own.CheckpointFunction
    return user_code.patched(
        (reentrant, "apply", counted(reentrant.apply)), (own, generator, counted(getattr(own, generator))),
        *around(torch.no_grad, lambda _: False), *around(torch.enable_grad, lambda _: True),
        *around(torch.inference_mode, lambda mode: not mode.mode),
        (switched, "__init__", beginning), (switched, "__exit__", leaving), (switched, "__call__", decorating),
    )  # fmt: skip


_MANY_OF_WEIGHTS = 0.1  # of the operations on activations; fewer operations on weights get no note


def _of_weights(count: int, beside: int) -> tuple[str, ...]:
    """A note on operations on weights alone, if they are many beside those on activations."""
    if count < _MANY_OF_WEIGHTS * beside or not beside:
        return ()
    operations = f"{plural(count, 'operation')} on weights alone, as of weight normalisation,"
    return (f"{operations} {'is' if count == 1 else 'are'} in no time of the step",)


def _uncompiled(module: Any) -> tuple[Any, bool, bool]:
    """The module without the wrapper of torch.compile, whether it or a part is compiled, and whether into CUDA graphs.

    Some modes of torch.compile record graphs; Inductor's config has that (torch/_dynamo/eval_frame.py, 2.13).
    """
    compiled = graphs = False
    for _, part in list(module.named_modules()):
        wrapped = hasattr(part, "_orig_mod")
        call: Any = None if wrapped else vars(part).pop("_compiled_call_impl", None)
        context = getattr(part, "dynamo_ctx", None) if wrapped else None
        config = getattr(context, "compiler_config", None)
        if hasattr(call, "get_compiler_config"):
            config = call.get_compiler_config()
        compiled = compiled or wrapped or call is not None
        graphs = graphs or (isinstance(config, dict) and config.get("triton.cudagraphs") is True)
    return getattr(module, "_orig_mod", module), compiled, graphs


def _set_mode(module: Any, *, trains: bool) -> None:
    """Puts a module into train or eval mode, unless it refuses both, as that of a program of torch.export does."""
    with suppress(NotImplementedError):
        (module.train if trains else module.eval)()


def _read(path: str, options: ReadOptions) -> tuple[Network, tuple[InputError, ...]]:
    with noted_autocast():
        built = building.build(parse_reference(options.reference or path))
    module, compiled, graphs = _uncompiled(built)
    user_code.run("train()" if options.trains else "eval()", lambda: _set_mode(module, trains=bool(options.trains)))
    arguments = building.inputs_of(module, options)
    building.refuse_inputs(module, *arguments)
    _in_half_precision(module, arguments)
    if options.channels_last:
        _in_channels_last(module)
    trace, early = forward(module, arguments, options)
    runtime = Runtime(
        framework="pytorch",
        compile=True if compiled else None,
        cuda_graphs=True if graphs else None,
        cudnn_benchmark=True if torch.backends.cudnn.benchmark else None,  # False is the default too
        deterministic=True if torch.backends.cudnn.deterministic else None,
        tf32=bool(torch.backends.cudnn.allow_tf32),
    )
    layers, edges, messages = network_of(trace.calls, trace.unknown, path, entry=options.reference is not None)
    operations = trace.operations.finished(trace.calls, layers)
    whole = bool(operations) and trace.operations.whole and not early
    rigid = trace.views_maps and not options.channels_last and not early
    trains = bool(options.trains)
    network = Network(
        path=path, layers=layers, edges=edges, operations=operations, runtime=runtime, unbatched=trace.unbatched,
        whole=whole, rigid_view=_rigid_view(module, arguments, options) if rigid else "",
    ).with_used_heads().with_frozen_layers()  # fmt: skip
    frozen = _frozen(network.layers, trace.calls, trains=trains)
    unlearned = frozen and not any(layer.frozen for layer in network.layers)
    network = replace(
        network,
        training_keeps="what frozen layers keep" if unlearned else "what checkpoints keep" if trace.checkpoints else "",
        notes=(
            *frozen, *_of_weights(trace.on_weights, len(operations)), *([_RUN_AGAIN] if trace.checkpoints else []),
        ),
    )  # fmt: skip
    return network, tuple(InputError(path=path, message=message) for message in (*messages, *early))


def _in_half_precision(module: Any, inputs: Any) -> None:
    """Casts the module where its inputs are in half precision, as mixed precision would cast its convolutions."""
    half = {tensor.dtype for tensor in leaves(inputs) if tensor.dtype in (torch.float16, torch.bfloat16)}
    if len(half) == 1:
        user_code.run("casting the module", lambda: module.to(half.pop()))


def _in_channels_last(module: Any) -> None:
    """Puts the filters of images and of volumes into channels_last; `module.to` would do so for one of them only."""
    for parameter in module.parameters():
        if not is_lazy(parameter) and parameter.dim() in CHANNELS_LAST:  # a lazy module learns its sizes from a map
            parameter.data = parameter.data.to(memory_format=CHANNELS_LAST[parameter.dim()])


def _rigid_view(module: Any, arguments: Arguments, options: ReadOptions) -> str:
    """The line of a `.view()` that refuses its input when the module is in channels_last; empty without one."""
    _in_channels_last(module)
    args, kwargs = map(on_meta, arguments)
    with user_code.unheard():  # the pass in NCHW has printed all this
        _, fault = _traced(module, args, kwargs, options, torch.device("meta"))
    cause = None if fault is None else fault.__cause__
    if cause is None or _VIEW_REFUSED not in str(cause):
        return ""
    *_, (frame, _) = traceback.walk_tb(cause.__traceback__)
    return line_at(frame)


READER = Reader(read=read)
