"""Functions of frameworks that give back what they were given, or call it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from convlint.readers.python.evaluator.library import Call
from convlint.readers.python.evaluator.values import Const, Instance, Tensor, Unknown, Value
from convlint.readers.python.nn.flow import Flow

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine
    from convlint.readers.python.nn.frameworks import Frameworks

_GIVES_BACK = frozenset((
    "torch.compile", "torch.jit.script", "torch.jit.trace", "torch.jit.freeze", "torch.nn.utils.weight_norm",
    "torch.nn.utils.spectral_norm", "torch.nn.utils.remove_weight_norm", "torch.nn.utils.remove_spectral_norm",
    "torch.nn.utils.parametrizations.weight_norm", "torch.nn.utils.parametrizations.spectral_norm",
    "torch.nn.SyncBatchNorm.convert_sync_batchnorm", "paddle.nn.SyncBatchNorm.convert_sync_batchnorm",
    "torch.jit.unused", "torch.jit.ignore", "paddle.nn.utils.spectral_norm", "paddle.nn.utils.weight_norm",
    "torch.jit.export", "torch.jit.script_if_tracing", "torch.no_grad", "torch.quantization.prepare_qat",
))  # fmt: skip
_INITIALIZES = ("torch.nn.init.", "paddle.nn.initializer.")
_CHECKPOINTS = ("torch.utils.checkpoint.checkpoint", "paddle.distributed.fleet.utils.recompute")


def transparent(library: Frameworks, machine: Machine, full: str, call: Call) -> Value | None:
    """What such a function gives; None for any other."""
    if full.startswith(_INITIALIZES):
        return Const(None)
    first = call.args[0] if call.args else None
    if first is None:
        return Unknown("call") if full in _GIVES_BACK else None
    if full in _GIVES_BACK:
        return first
    if full.startswith(_CHECKPOINTS):
        keywords = {
            name: value for name, value in call.keywords.items()
            if name not in ("use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug")
        }  # fmt: skip
        if full.endswith("checkpoint_sequential"):
            return library.call_instance(machine, first, call_of(call, call.args[2:3])) \
                if isinstance(first, Instance) else None  # fmt: skip
        return machine.call(first, list(call.args[1:]), keywords, call.node, call.file)
    if full in ("torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.autograd.Variable"):
        if full.endswith("Variable"):
            return first if isinstance(first, Tensor) else Tensor(Flow(raw=True))
        return Tensor(Flow(first.data.shape)) if isinstance(first, Tensor) else Tensor(Flow())
    return None


def call_of(call: Call, args: list[Value]) -> Call:
    """The same call with other arguments."""
    return Call(node=call.node, file=call.file, args=list(args), keywords={})
