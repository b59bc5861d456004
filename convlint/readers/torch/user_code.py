"""Running the user's own code, and saying clearly where it fails.

This is the only place of convlint that executes what it checks, only for `package.module:name`, and in a process of
its own (`readers/children/modules.py`), which the code may leave in whatever state it likes.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from convlint.errors import InputFault
from convlint.readers.torch.network_access import fetch_refused, no_network, refusal_behind
from convlint.readers.torch.places import (
    SITE,
    imported_as,
    inside_torch,
    is_of_project,
    remember_folders,
    shown,
    sites,
)

# how torch says that a value is needed which the meta device does not have
_VALUE_NEEDED = (
    "meta tensor", "meta device", "device meta", "no data", "data-dependent", "data dependent", "data-independent",
)  # fmt: skip


@contextlib.contextmanager
def guest(roots: Sequence[str] = ()) -> Iterator[None]:
    """While the user's code runs: the project is importable, and our command line is not seen.

    Importable are `roots`, else the current folder and its `src`, ahead of what is installed.
    """
    folders = remember_folders(roots)
    sys.path[:0] = folders
    arguments, sys.argv = sys.argv, sys.argv[:1]
    try:
        with no_network():
            yield
    finally:
        sys.argv = arguments
        for folder in folders:
            with contextlib.suppress(ValueError):
                sys.path.remove(folder)


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """While active, what this process prints, also by C code, goes nowhere."""
    kept = {number: os.dup(number) for number in (1, 2)}
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in kept:
        os.dup2(nowhere, number)
    os.close(nowhere)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, OSError, ValueError):  # the code has closed it, or has its own
                stream.flush()
        for number, before in kept.items():
            os.dup2(before, number)
            os.close(before)


@contextlib.contextmanager
def construction_sites() -> Iterator[None]:
    """While active, every module whose sizes follow the channels notes the line of the user's code that constructs it.

    These are convolutions, norms and PReLU.
    """
    from torch import nn
    from torch.nn.modules.batchnorm import _NormBase
    from torch.nn.modules.conv import _ConvNd

    originals = {kind: kind.__init__ for kind in (_ConvNd, _NormBase, nn.GroupNorm, nn.LayerNorm, nn.PReLU)}
    for kind, original in originals.items():
        kind.__init__ = _noting(original)
    try:
        yield
    finally:
        for kind, original in originals.items():
            kind.__init__ = original


def _noting(original: Callable[..., None]) -> Callable[..., None]:
    """A module's `__init__` after which the module knows its `Sites`."""

    def noting(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_locals.get("self") is self:
            frame = frame.f_back  # a subclass's own __init__ is not where the module was asked for
        found = sites(frame)
        if found is not None:
            self.__dict__[SITE] = found  # copies keep it

    return noting


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
        return alone(call)
    except InputFault:
        raise
    except BaseException as error:  # SystemExit and KeyboardInterrupt too: nobody else raises those in this process
        raise InputFault(f"{what} {ended_by(error)}") from error


def alone(call: Callable[[], Any]) -> Any:
    """Calls; a copy of this process that the code has forked, and that comes back from it, goes no further."""
    me = os.getpid()
    try:
        return call()
    finally:
        if os.getpid() != me:
            os._exit(0)


def ended_by(error: BaseException) -> str:
    """What the code raises, and where; where it got no network and ends for that, what it wanted there."""
    refusal = refusal_behind(error)
    if refusal is None:
        fetch = fetch_refused()
        before = "" if fetch is None else f"; before, it wanted to load something from {fetch.host}: {fetch.advice}"
        return described(error) + before
    if refusal.fetches:
        return f"wants to load something from {refusal.host}; {refusal.advice}"
    return f"wants to reach {refusal.host}, which models cannot here, and {described(error)}"


def described(error: BaseException) -> str:
    """What the code raises, and where."""
    ours = (inside_torch(), str(Path(__file__).parents[1]) + os.sep, "<frozen")
    try:
        extracted = traceback.extract_tb(error.__traceback__)
    except (RuntimeError, ValueError):  # code that says nothing of its lines
        extracted = traceback.StackSummary()
    frames = [frame for frame in extracted if not frame.filename.startswith(ours)]
    place = _where(frames)
    if isinstance(error, SystemExit):
        return f"calls sys.exit({error.code!r}){place}"
    text = str(error).strip().splitlines()
    first = text[0][:160] if text else ""
    if isinstance(error, SyntaxError) and error.filename:
        return f"raises SyntaxError: {error.msg} at {shown(error.filename)}:{error.lineno}"
    return f"raises {type(error).__name__}{': ' if first else ''}{first}{place}"


def _where(frames: Sequence[traceback.FrameSummary]) -> str:
    """The last frame inside the project, with that of the library that raised; or the last one."""
    if not frames:
        return ""
    last = frames[-1]
    own = next((frame for frame in reversed(frames) if is_of_project(frame.filename)), None)
    if own is None:
        return f" at {imported_as(last.filename)}:{last.lineno}"
    behind = "" if own is last else f", in {imported_as(last.filename)}:{last.lineno}"
    return f" at {shown(own.filename)}:{own.lineno}{behind}"
