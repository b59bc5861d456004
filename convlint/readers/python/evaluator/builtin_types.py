"""isinstance: whether a value is of a class, a framework's or Python's own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from convlint.readers.python.evaluator.values import (
    Class,
    Const,
    Function,
    Instance,
    Items,
    Module,
    Name,
    Partial,
    Table,
    Tensor,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

_CONVOLUTION = re.compile(r"torch\.nn\.Conv(?:Transpose)?[123]d")
_KINDS = {"list": "list", "List": "list", "tuple": "tuple", "Tuple": "tuple", "set": "set", "Set": "set",
          "frozenset": "set", "range": "range"}  # fmt: skip
_SEQUENCES = frozenset({"Iterable", "Sequence", "Collection", "Sized", "Container", "MutableSequence"})
_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,), "float": (float,), "str": (str,), "bool": (bool,), "bytes": (bytes,), "NoneType": (type(None),),
    "Number": (int, float), "Integral": (int,), "Real": (int, float), "string_types": (str,),
}  # fmt: skip


def is_instance(machine: Machine, value: Value, of: Value) -> bool | None:
    """isinstance(value, of); None where nobody knows."""
    if isinstance(of, Items):
        found = [is_instance(machine, value, each) for each in of.items]
        return True if True in found else None if None in found or not of.complete else False
    if isinstance(value, Unknown) or isinstance(of, Unknown):
        return None
    if isinstance(of, Class):
        return _is_of_class(value, of)
    return _is_of_name(machine, value, of.name) if isinstance(of, Name) else None


def _is_of_class(value: Value, of: Class) -> bool | None:
    if not isinstance(value, Instance):
        return None if isinstance(value, (Name, Tensor)) else False
    if not isinstance(value.cls, Class):
        return False
    order = value.cls.order or [value.cls]
    if any(base is of for base in order):
        return True
    return None if any(isinstance(base, Unknown) for base in order) else False


def _is_of_name(machine: Machine, value: Value, name: str) -> bool | None:
    last = name.rsplit(".", 1)[-1]
    if name.startswith(("builtins.", "typing.", "collections.", "numbers.", "types.", "six.")):
        return _is_of_builtin(value, last)
    if isinstance(value, Instance) and isinstance(value.cls, Name):
        own = value.cls.name
        if own == name:
            return True
        if _CONVOLUTION.fullmatch(name) and own.startswith("torch.nn.") and "Lazy" not in own:
            return False  # no other layer of PyTorch is a kind of those
        return True if name == "torch.nn.Module" and own.startswith("torch.nn.") else None
    if isinstance(value, Instance) and isinstance(value.cls, Class):
        order = value.cls.order or []
        if any(isinstance(base, Name) and base.name == name for base in order):
            return True
        if machine.library.subclass_of(value.cls) == name:
            return True
        return None if any(isinstance(base, (Name, Unknown)) for base in order) else False
    if isinstance(value, Tensor):
        return True if last == "Tensor" else None
    return False if isinstance(value, (Const, Items, Table, Function, Class, Module)) else None


def _is_of_builtin(value: Value, last: str) -> bool | None:
    if last == "object":
        return True
    if isinstance(value, Const):
        if last in _TYPES:
            return isinstance(value.value, _TYPES[last])
        return isinstance(value.value, (str, bytes)) if last in _SEQUENCES else False
    if isinstance(value, Items):
        if last in _KINDS:
            return value.kind == _KINDS[last]
        return last in ("Iterable", "Collection", "Sized", "Container") or (
            last in _SEQUENCES and value.kind != "iterator"
        )
    if isinstance(value, Table):
        return last in ("dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "Iterable", "Collection", "Sized")
    if isinstance(value, (Function, Partial)):
        return last in ("Callable", "FunctionType", "LambdaType", "function", "MethodType")
    if isinstance(value, Class):
        return last in ("type", "Callable", "Type")
    if isinstance(value, (Instance, Name, Tensor)):
        return False if last in _TYPES or (last in _KINDS and not isinstance(value, Name)) else None
    return None
