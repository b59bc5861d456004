"""Reading PyTorch modules given as `package.module:name`: one forward pass on the meta device, nothing allocated.

This is the only form that runs code of the user's. Findings point at the line that constructs the convolution.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from convlint.errors import AskedWrong, InputFault
from convlint.model.network import Network
from convlint.model.runtime import Runtime
from convlint.readers import Reader, ReadOptions
from convlint.readers.references import parse_reference
from convlint.readers.torch.edited_sources import edited_sources
from convlint.report import InputError

NEEDS_TORCH = (
    "reading modules needs PyTorch 2.4 or later, of which a build for the CPU is enough: "
    "pip install torch --index-url https://download.pytorch.org/whl/cpu"
)


def read(path: str, options: ReadOptions) -> tuple[Network | None, tuple[InputError, ...]]:
    """The convolutions that the module's forward pass reaches, in call order."""
    try:
        import torch  # noqa: F401
    except ImportError:
        return None, (InputError(path=path, message=NEEDS_TORCH),)
    from convlint.readers.torch import user_code as torch_user_code

    try:
        with (
            torch_user_code.unheard() if options.again else nullcontext(),
            edited_sources(options.sources),
            torch_user_code.guest(options.roots),
            torch_user_code.construction_sites(),
        ):
            return _read(path, options)
    except InputFault as fault:
        about = fault.about if isinstance(fault, AskedWrong) else ""
        return None, (InputError(path=path, message=fault.message, asked_wrong=about),)


def _read(path: str, options: ReadOptions) -> tuple[Network, tuple[InputError, ...]]:
    import torch

    from convlint.readers.torch import building
    from convlint.readers.torch import user_code as user
    from convlint.readers.torch.forward import forward
    from convlint.readers.torch.layers import network_of
    from convlint.readers.torch.module_inputs import inputs_of, refuse_inputs

    module = building.build(parse_reference(options.reference or path))
    compiled = hasattr(module, "_orig_mod")  # torch.compile: look at what it wraps
    module = getattr(module, "_orig_mod", module)
    user.run("train()" if options.trains else "eval()", module.train if options.trains else module.eval)
    arguments = inputs_of(module, options)
    refuse_inputs(module, *arguments)
    _in_half_precision(module, arguments)
    if options.channels_last:
        _in_channels_last(module)
    trace, early = forward(module, arguments, options)
    runtime = Runtime(
        framework="pytorch",
        compile=True if compiled else None,
        cudnn_benchmark=True if torch.backends.cudnn.benchmark else None,  # False is also what nobody has set
        deterministic=True if torch.backends.cudnn.deterministic else None,
        tf32=bool(torch.backends.cudnn.allow_tf32),
    )
    layers, edges, messages = network_of(trace.calls, trace.unknown, path, entry=options.reference is not None)
    operations = trace.operations.finished(trace.calls, layers)
    network = Network(
        path=path,
        layers=layers,
        edges=edges,
        operations=operations,
        runtime=runtime,
        unbatched=trace.unbatched,
    )
    return network, tuple(InputError(path=path, message=message) for message in (*messages, *early))


def _in_half_precision(module: Any, inputs: Any) -> None:
    """Casts the module where its inputs are in half precision: what mixed precision would do to its convolutions."""
    import torch

    from convlint.readers.torch import user_code as user
    from convlint.readers.torch.module_inputs import leaves

    half = {tensor.dtype for tensor in leaves(inputs) if tensor.dtype in (torch.float16, torch.bfloat16)}
    if len(half) == 1:
        user.run("casting the module", lambda: module.to(half.pop()))


def _in_channels_last(module: Any) -> None:
    """What `module.to(memory_format=...)` does for filters of images, and for those of volumes beside them."""
    import torch

    orders = {4: torch.channels_last, 5: torch.channels_last_3d}
    for parameter in module.parameters():
        if parameter.dim() in orders:
            parameter.data = parameter.data.to(memory_format=orders[parameter.dim()])


READER = Reader(read=read)
