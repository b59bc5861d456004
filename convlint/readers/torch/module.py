"""Reading PyTorch modules given as `package.module:name`: one forward pass on the meta device, nothing allocated.

This is the only form that runs code of the user's. Findings point at the line that constructs the convolution.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from convlint.errors import InputFault
from convlint.model.network import Network
from convlint.model.runtime import Runtime
from convlint.readers import Reader, ReadOptions
from convlint.readers.input_shapes import InputShape, parse_shapes
from convlint.report import InputError

if TYPE_CHECKING:
    from convlint.readers.torch.trace import Trace

_SHAPES = re.compile(r"\s*[0-9N]+(\s*[x×*]\s*[0-9N]+)*\s*(:\s*[\w.]+\s*)*(,.*)?")


def read(path: str, options: ReadOptions) -> tuple[Network | None, tuple[InputError, ...]]:
    """The convolutions that the module's forward pass reaches, in call order."""
    try:
        import torch  # noqa: F401
    except ImportError:
        return None, (InputError(path=path, message="reading modules needs PyTorch: pip install torch"),)
    from convlint.readers.torch import user_code as torch_user_code

    try:
        with torch_user_code.guest(), torch_user_code.construction_sites():
            return _read(path, options)
    except InputFault as fault:
        return None, (InputError(path=path, message=fault.message),)


def _read(path: str, options: ReadOptions) -> tuple[Network, tuple[InputError, ...]]:
    import torch

    from convlint.readers.torch import user_code as user
    from convlint.readers.torch.layers import network_of

    module = user.build(path)
    compiled = hasattr(module, "_orig_mod")  # torch.compile: look at what it wraps
    module = getattr(module, "_orig_mod", module)
    user.run("eval()", module.eval)
    args, kwargs = _inputs(module, options)
    _in_half_precision(module, (args, kwargs))
    trace = _forward(module, args, kwargs)
    runtime = Runtime(
        framework="pytorch",
        compile=True if compiled else None,
        cudnn_benchmark=True if torch.backends.cudnn.benchmark else None,  # False is also what nobody has set
        deterministic=True if torch.backends.cudnn.deterministic else None,
        tf32=bool(torch.backends.cudnn.allow_tf32),
    )
    layers, edges, messages = network_of(trace.calls, trace.unknown, path)
    network = Network(path=path, layers=layers, edges=edges, runtime=runtime)
    return network, tuple(InputError(path=path, message=message) for message in messages)


def _forward(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Trace:
    """One forward pass on the meta device. Raises InputFault."""
    from convlint.readers.torch import user_code as user

    try:
        return _traced(module, args, kwargs)
    except InputFault as fault:
        if fault.__cause__ is None or not user.needs_values(fault.__cause__):
            raise
        reason = fault.message.removeprefix("the forward pass ")
    try:  # many libraries keep to shapes when they believe that they are being exported
        with user.as_if_exporting():
            return _traced(module, args, kwargs)
    except InputFault:
        raise InputFault(
            f"the forward pass depends on the values of a tensor, and only shapes are known here ({reason}); "
            "export the model to ONNX or with torch.export and check that file, or give inputs that avoid this path"
        ) from None


def _traced(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Trace:
    import torch

    from convlint.readers.torch import user_code as user
    from convlint.readers.torch.trace import Trace

    trace = Trace(module)
    for tensor in _leaves((args, kwargs)):
        trace.watch(tensor)
    with torch.inference_mode(), torch.device("meta"), trace:
        user.run("the forward pass", lambda: module(*args, **kwargs))
    return trace


def _inputs(module: Any, options: ReadOptions) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments of the forward pass, on the meta device. Raises InputFault."""
    from convlint.readers.torch import user_code as user

    if not options.inputs:
        raise InputFault("the input's shape is not known; give it, as in --input 256x3x224x224")
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    for name, text in options.inputs.items():
        if _SHAPES.fullmatch(text):
            tensors = tuple(_tensor(shape, module) for shape in parse_shapes(text, options.batch))
            if not name:
                args = tensors
            elif len(tensors) != 1:
                raise InputFault(f"input {name!r} takes one shape, {text!r} gives {len(tensors)}")
            else:
                kwargs[name] = tensors[0]
            continue
        if name or ":" not in text:
            raise InputFault(f"input {text[:60]!r} is neither a shape like 256x3x224x224 nor package.module:function")
        made = user.load(text)
        if callable(made):
            made = user.call_on_meta(f"calling {text}", made)
        made = _on_meta(made)
        if isinstance(made, dict):
            kwargs.update(made)
        else:
            args = tuple(made) if isinstance(made, (tuple, list)) else (made,)
    return args, kwargs


def _tensor(shape: InputShape, module: Any) -> Any:
    import torch

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


def _in_half_precision(module: Any, inputs: Any) -> None:
    """Casts the module where its inputs are in half precision: what mixed precision would do to its convolutions."""
    import torch

    from convlint.readers.torch import user_code as user

    half = {tensor.dtype for tensor in _leaves(inputs) if tensor.dtype in (torch.float16, torch.bfloat16)}
    if len(half) == 1:
        user.run("casting the module", lambda: module.to(half.pop()))


def _on_meta(value: Any) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        return value if value.is_meta else value.to("meta")
    if isinstance(value, dict):
        return {key: _on_meta(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_on_meta(inner) for inner in value)
    return value


def _leaves(value: Any) -> list[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for inner in value for leaf in _leaves(inner)] if isinstance(value, (list, tuple)) else []


READER = Reader(read=read)
