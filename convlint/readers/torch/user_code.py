"""Running the user's own code: importing a module, building a network, and saying clearly where that fails.

This is the only place of convlint that executes what it checks, only for `package.module:name`, and in a process of
its own (`readers/children/modules.py`), which the code may leave in whatever state it likes.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from convlint.errors import InputFault
from convlint.readers.torch.places import SITE, inside_torch, relative, remember_folder

# how torch says that a value is needed which the meta device does not have
_VALUE_NEEDED = ("meta tensor", "meta device", "device meta", "no data", "data-dependent", "data dependent")


@contextlib.contextmanager
def guest() -> Iterator[None]:
    """While the user's code runs: the current directory is importable, and our command line is not seen."""
    here = str(remember_folder())
    sys.path.insert(0, here)
    arguments, sys.argv = sys.argv, sys.argv[:1]
    try:
        yield
    finally:
        sys.argv = arguments
        with contextlib.suppress(ValueError):
            sys.path.remove(here)


@contextlib.contextmanager
def construction_sites() -> Iterator[None]:
    """While active, every convolution module notes the line of the user's code that constructs it."""
    from torch.nn.modules.conv import _ConvNd

    original = _ConvNd.__init__
    inside = inside_torch()

    def noting(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        frame = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            # a subclass's own __init__ is not where the convolution was asked for
            if not code.co_filename.startswith(inside) and frame.f_locals.get("self") is not self:
                self.__dict__[SITE] = (code.co_filename, frame.f_lineno)  # copies keep it
                return
            frame = frame.f_back  # type: ignore[assignment]

    _ConvNd.__init__ = noting
    try:
        yield
    finally:
        _ConvNd.__init__ = original


@contextlib.contextmanager
def as_if_exporting() -> Iterator[None]:
    """Answers "yes" to `torch.compiler.is_exporting()`, by which code asks whether it must do without values."""
    import torch

    names = [name for name in ("_is_exporting_flag", "_is_compiling_flag") if hasattr(torch.compiler, name)]
    before = {name: getattr(torch.compiler, name) for name in names}
    for name in names:
        setattr(torch.compiler, name, True)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(torch.compiler, name, value)


def needs_values(error: BaseException) -> bool:
    """Whether this is torch asking for the value of a tensor that only has a shape."""
    text = str(error).lower()
    return isinstance(error, (RuntimeError, NotImplementedError, TypeError, ValueError)) and any(
        words in text for words in _VALUE_NEEDED
    )


def run(what: str, call: Callable[[], Any]) -> Any:
    """Calls into the user's code. Raises InputFault for whatever it raises."""
    try:
        return call()
    except InputFault:
        raise
    except BaseException as error:  # SystemExit and KeyboardInterrupt too: nobody else raises those in this process
        raise InputFault(f"{what} {_describe(error)}") from error


def _describe(error: BaseException) -> str:
    ours = (inside_torch(), str(Path(__file__).parents[1]) + os.sep, "<frozen")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(ours)]
    place = f" at {relative(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    if isinstance(error, SystemExit):
        return f"calls sys.exit({error.code!r}){place}"
    text = str(error).strip().splitlines()
    first = text[0][:300] if text else ""
    if isinstance(error, SyntaxError) and error.filename:
        return f"raises SyntaxError: {error.msg} at {relative(error.filename)}:{error.lineno}"
    return f"raises {type(error).__name__}{': ' if first else ''}{first}{place}"


def load(reference: str) -> Any:
    """The object that `package.module:name` names. Raises InputFault."""
    module_name, _, attribute = reference.partition(":")
    import_module(module_name)
    found: Any = sys.modules[module_name]
    for part in attribute.split("."):
        if not hasattr(found, part):
            close = difflib.get_close_matches(part, [name for name in dir(found) if not name.startswith("_")], n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise InputFault(f"{module_name} has no {part!r}{hint}")
        found = getattr(found, part)
    return found


def import_module(name: str) -> None:
    """Imports a module with everything it builds on the meta device. Raises InputFault."""
    import torch

    before = set(sys.modules)
    try:
        with torch.device("meta"):
            importlib.import_module(name)
    except BaseException as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name
        if missing and (name == missing or name.startswith(f"{missing}.")):
            raise InputFault(f"there is no module {missing!r} here; run from the folder that holds it") from None
        if not needs_values(error):
            raise InputFault(f"importing {name} {_describe(error)}") from error
        top = name.partition(".")[0]
        for loaded in set(sys.modules) - before:  # start over, with real values
            if loaded == top or loaded.startswith(f"{top}."):
                del sys.modules[loaded]
        with weights_on_meta():
            run(f"importing {name}", lambda: importlib.import_module(name))


def weights_on_meta() -> Any:
    """A context that allocates no weights, but lets small computed values (`torch.linspace(...).tolist()`) be real."""
    import torch
    from torch.overrides import TorchFunctionMode

    fillers = {
        torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.randint, torch.empty_strided,
        torch.normal,
    }  # fmt: skip

    class Context(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = dict(kwargs or {})
            if func in fillers and kwargs.get("device") is None:
                kwargs["device"] = "meta"
            return func(*args, **kwargs)

    return Context()


def build(reference: str) -> Any:
    """The network that `package.module:name` names, on the meta device. Raises InputFault."""
    import torch

    found = load(reference)
    if not isinstance(found, torch.nn.Module):
        if not callable(found):
            raise InputFault(f"{reference} is a {type(found).__name__}, not a module, a class or a function")
        found = call_on_meta(f"building {reference}", found)
        if not isinstance(found, torch.nn.Module):
            raise InputFault(f"{reference} gives a {type(found).__name__}, not a torch.nn.Module")
    return run(f"moving {reference} to the meta device", lambda: _to_meta(found))


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
