"""Importing the user's modules and building their networks, on the meta device."""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

from convlint.errors import AskedWrong, InputFault
from convlint.readers.inputs import Reference
from convlint.readers.torch.places import importable
from convlint.readers.torch.user_code import alone, described, ended_by, needs_values, run


def load(reference: Reference) -> Any:
    """The object that a reference names, before any call. Raises InputFault."""
    import_module(reference.module)
    return _attributes(sys.modules[reference.module], reference.attributes, reference.module)


def _attributes(found: Any, names: Sequence[str], whose: str) -> Any:
    for part in names:
        holder = found
        try:
            found = getattr(holder, part)
        except AttributeError:
            close = difflib.get_close_matches(part, [name for name in dir(holder) if not name.startswith("_")], n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise AskedWrong(f"{whose} has no {part!r}{hint}", about="model") from None
        except Exception as error:  # libraries that load their parts when they are asked for
            raise InputFault(f"asking {whose} for {part!r} {described(error)}") from error
    return found


def import_module(name: str) -> None:
    """Imports a module with everything it builds on the meta device. Raises InputFault."""
    import torch

    before = set(sys.modules)
    try:
        with torch.device("meta"):
            alone(lambda: importlib.import_module(name))
    except BaseException as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name
        if missing and (name == missing or name.startswith(f"{missing}.")):
            imported = name.removesuffix(".py").replace("/", ".").strip(".")
            hint = f"; a module is named as it is imported: {imported}" if name.endswith(".py") else ""
            raise AskedWrong(
                f"there is no module {missing!r} in {' or '.join(importable())}, and none is installed{hint}",
                about="model",
            ) from None
        if not needs_values(error):
            raise InputFault(f"importing {name} {ended_by(error)}") from error
        top = name.partition(".")[0]
        for loaded in set(sys.modules) - before:  # start over, with real values
            if loaded == top or loaded.startswith(f"{top}."):
                del sys.modules[loaded]
        with weights_on_meta():
            run(f"importing {name}", lambda: importlib.import_module(name))


def weights_on_meta(*, but_numbers: bool = False) -> Any:
    """A context that allocates no weights, but lets small computed values (`torch.linspace(...).tolist()`) be real.

    `but_numbers`: and tensors of one element, such as `torch.empty(1).uniform_().item()` reads.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    fillers = {
        torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.randint, torch.empty_strided,
        torch.normal,
    }  # fmt: skip

    class Context(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = dict(kwargs or {})
            of_tensors = any(isinstance(value, torch.Tensor) for value in (*args, *kwargs.values()))
            if func in fillers and kwargs.get("device") is None and not of_tensors:
                if but_numbers:
                    made = func(*args, **{**kwargs, "device": "meta"})
                    return func(*args, **kwargs) if made.numel() == 1 else made
                kwargs["device"] = "meta"
            return func(*args, **kwargs)

    return Context()


def build(reference: Reference) -> Any:
    """The network that a reference names, on the meta device. Raises InputFault."""
    import torch

    name = f"{reference.module}:{'.'.join(reference.attributes)}"
    found = load(reference)
    if reference.called or not isinstance(found, torch.nn.Module):
        if not callable(found):
            raise AskedWrong(f"{name} is a {type(found).__name__}, not a module, a class or a function", about="model")
        _refuse_arguments(found, reference, name)
        factory = found
        found = call_on_meta(f"building {name}", lambda: factory(*reference.arguments, **reference.keywords))
    found = _attributes(found, reference.then, f"what {name} gives")
    if not isinstance(found, torch.nn.Module):
        raise AskedWrong(f"{name} gives a {type(found).__name__}, not a torch.nn.Module", about="model")
    return run(f"moving {name} to the meta device", lambda: _to_meta(found))


def _refuse_arguments(factory: Any, reference: Reference, name: str) -> None:
    """Raises InputFault where the call does not fit what is called."""
    try:
        signature = inspect.signature(factory)
    except (TypeError, ValueError):  # written in C, or says nothing of itself
        return
    try:
        signature.bind(*reference.arguments, **reference.keywords)
    except TypeError as error:
        takes = f"{reference.attributes[-1]}{signature}"[:200]
        raise AskedWrong(f"{name} is not called as it wants to be: {error}; it is {takes}", about="model") from None


def call_on_meta(what: str, call: Callable[[], Any]) -> Any:
    """Calls a factory without allocating weights; once more with real small values, where it needs them."""
    import torch

    try:
        with torch.device("meta"):
            return run(what, call)
    except InputFault as fault:
        if fault.__cause__ is None or not needs_values(fault.__cause__):
            raise
    with weights_on_meta():
        return run(what, call)


def _to_meta(module: Any) -> Any:
    on_meta = all(tensor.is_meta for tensor in module.parameters()) and all(
        tensor.is_meta for tensor in module.buffers()
    )
    return module if on_meta else module.to("meta")
