"""The tensors that a module hands out, in whatever holds them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Set
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

MOST_OBJECTS = 100_000  # that are looked into
_NO_HOLDERS = (
    str, bytes, int, float, complex, type, ModuleType, FunctionType, MethodType, BuiltinFunctionType, torch.nn.Module,
)  # fmt: skip


def tensors_in(value: Any) -> list[torch.Tensor] | None:
    """Those in nested sequences, mappings and objects with attributes, such as dataclasses; None where it is too much.

    Runs code of whoever has made these objects, which may raise whatever it likes.
    """
    tensors: list[torch.Tensor] = []
    seen: dict[int, Any] = {}  # what is looked into stays, so that ids are its own
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if found is None or id(found) in seen:
            continue
        if len(seen) >= MOST_OBJECTS:
            return None
        seen[id(found)] = found
        if isinstance(found, torch.Tensor):
            tensors.append(found)
        elif isinstance(found, Mapping):
            waiting.extend(found.values())
        elif isinstance(found, (list, tuple, Set, deque)):
            waiting.extend(found)
        elif not isinstance(found, _NO_HOLDERS):
            waiting.extend(_attributes(found))
    return tensors


def _attributes(found: Any) -> list[Any]:
    slots = [name for kind in type(found).__mro__ for name in _names(kind.__dict__.get("__slots__", ()))]
    held = getattr(found, "__dict__", None)
    return [*(held.values() if isinstance(held, dict) else ()), *(getattr(found, name, None) for name in slots)]


def _names(slots: Any) -> list[str]:
    return [slots] if isinstance(slots, str) else [name for name in slots if isinstance(name, str)]
