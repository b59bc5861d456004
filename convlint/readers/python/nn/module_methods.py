"""Methods that modules inherit from a framework: those that hand out their parts, change them, or do nothing here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from convlint.readers.python.evaluator.library import Call
from convlint.readers.python.evaluator.values import Const, Instance, Items, Unknown, Value
from convlint.readers.python.nn import modules
from convlint.readers.python.nn.kinds import CONTAINERS
from convlint.readers.python.nn.layers import Layer
from convlint.readers.python.source_file import SourceFile

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

_GIVES_ITSELF = frozenset((
    "to", "cuda", "cpu", "eval", "train", "half", "float", "double", "bfloat16", "type", "requires_grad_",
    "share_memory", "to_empty", "apply", "ipu", "xpu",
))  # fmt: skip
_UNKNOWN = frozenset((
    "parameters", "named_parameters", "buffers", "named_buffers", "state_dict", "extra_repr", "__repr__",
    "_get_name", "zero_grad",
))  # fmt: skip
_NOTHING = frozenset((
    "register_buffer", "load_state_dict", "zero_grad", "register_forward_hook", "register_forward_pre_hook",
    "compile", "register_full_backward_hook", "reset_parameters", "init_weights", "_init_weights",
    "load_from_state_dict", "set_state_dict", "set_dict", "add_parameter", "clear_gradients",
))  # fmt: skip
_ADDS = frozenset(("add_module", "register_module", "add_sublayer"))
# Files whose loops over modules change what convolutions do; elsewhere such a loop sets weights, and is not unrolled.
_CHANGES = re.compile(rb"\.(?:stride|dilation|padding|groups|in_channels|out_channels)\s*=[^=]")


def module_method(machine: Machine, receiver: Instance, name: str, call: Call) -> Value | None:
    """What `receiver.name(...)` gives; None where nothing is known of such a method."""
    args = call.args
    if name == "apply" and args and _CHANGES.search(call.file.content):
        for _, each in modules.everything(receiver):
            machine.call(args[0], [each], {}, call.node, call.file)
        return receiver
    if name in _GIVES_ITSELF:
        return receiver
    if name in _NOTHING:
        return Const(None)
    if name in _UNKNOWN:
        return Unknown("call")
    if name in _ADDS:
        return _add(machine, receiver, call)
    if name in ("children", "named_children"):
        return _parts(receiver, list(modules.children(receiver).items()), named=name == "named_children")
    if name in ("modules", "named_modules", "sublayers", "named_sublayers"):
        if not _worth_a_loop(call.file):
            return Unknown("call")
        return _parts(receiver, [*modules.everything(receiver)], named=name.startswith("named"))
    if not isinstance(receiver.extra, Layer) or receiver.extra.kind not in CONTAINERS:
        return None
    if name in ("__getitem__", "__len__"):
        if name == "__len__":
            return Const(len(modules.children(receiver))) if receiver.complete else Unknown("call")
        return modules.part(machine, receiver, args[0])
    if name == "add" and args and receiver.extra.name.startswith(("keras.", "mxnet.")):
        modules.extend(machine, receiver, Items("list", list(args), complete=call.exact))
        return Const(None)
    if name == "append" and args:
        modules.extend(machine, receiver, Items("list", [args[0]]))
        return receiver
    if name in ("extend", "update") and args:
        modules.extend(machine, receiver, args[0])
        return receiver
    if name in ("keys", "values", "items") and receiver.complete:
        return _view(receiver, name)
    if name == "__setitem__" and len(args) == 2:
        return _set(machine, receiver, args[0], args[1])
    if name in ("insert", "pop", "__delitem__", "clear") and receiver.complete:
        return modules.edit(machine, receiver, name, args)
    return None


def _worth_a_loop(file: SourceFile) -> bool:
    return _CHANGES.search(file.content) is not None


def _add(machine: Machine, receiver: Instance, call: Call) -> Value:
    given = [*call.args, *call.keywords.values()]
    if len(given) == 2:
        text = given[0].value if isinstance(given[0], Const) else None
        if isinstance(text, str):
            modules.put(machine, receiver, text, given[1])
        else:
            machine.touch(receiver)
            receiver.complete = False
        return given[1]
    return Const(None)


def _set(machine: Machine, receiver: Instance, key: Value, value: Value) -> Value:
    at = key.value if isinstance(key, Const) else None
    names = list(modules.children(receiver))
    if isinstance(at, int) and not isinstance(at, bool) and -len(names) <= at < len(names):
        modules.put(machine, receiver, names[at], value)
    elif isinstance(at, str):
        modules.put(machine, receiver, at, value)
    else:
        machine.touch(receiver)
        receiver.complete = False
    return Const(None)


def _parts(receiver: Instance, held: list[tuple[str, Instance]] | list[tuple[str, Value]], *, named: bool) -> Value:
    found: list[Value] = [
        Items("tuple", [Const(name), value]) if named else value for name, value in held
    ]  # fmt: skip
    return Items("list", found, complete=receiver.complete)


def _view(receiver: Instance, name: str) -> Value:
    held = modules.children(receiver)
    if name == "values":
        return Items("list", list(held.values()))
    if name == "keys":
        return Items("list", [Const(key) for key in held])
    return Items("list", [Items("tuple", [Const(key), value]) for key, value in held.items()])
