"""Runs the user's code: without a network, with its output dropped if need be, and with what it raises as messages."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NoReturn

from convlint.model.errors import InputFault
from convlint.readers.torch.places import (
    SITE,
    frames,
    imported_as,
    inside_torch,
    is_of_project,
    remember_folders,
    shown,
    sites,
)

# arguments that make libraries load weights -> the value with which they do not
_ASK_FOR_WEIGHTS = {
    "pretrained": "False", "weights_backbone": "None", "weights": "None", "encoder_weights": "None",
    "pretrained_backbone": "False", "backbone_weights": "None",
}  # fmt: skip
# libraries that fetch something; code that connects without them mostly asks whether a server is up
_CLIENTS = frozenset(("urllib", "http", "urllib3", "requests", "httpx", "httpcore", "aiohttp", "ftplib", "botocore"))
_ADDRESS = re.compile(r"\b(?:https?|ftps?|s3|gs|git|ssh)://(?:[^/@\s'\"]*@)?([^/:\s'\"]+)")
_FILE = re.compile(r"\.(?:pth?|ckpt|bin|safetensors|onnx|h5|npz|tar)$")  # a file, not the name of a set of weights
_FETCHERS = frozenset(("curl", "wget", "git", "aria2c", "pip", "pip3", "gsutil", "aws", "rclone", "azcopy", "hf"))
_LOOKUPS = ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr")
_MOST_REFUSALS = 100  # of one model; code that retries for ever would use up all its time


class NoNetwork(BaseException):
    """Code has asked for weights from the network; a BaseException, which code that retries does not catch."""

    def __init__(self, host: str) -> None:
        """`advice` names the argument that asked for weights, if the stack has one, and what to pass instead."""
        super().__init__(host)
        self.host, self.advice, self.fetches = host, _advice(), True


class _Unresolved(socket.gaierror):
    """A host name that was not looked up."""

    def __init__(self, host: str) -> None:
        super().__init__(socket.EAI_AGAIN, "Temporary failure in name resolution")
        self.host, self.advice, self.fetches = host, _advice(), _by_a_client()


class _Unreachable(OSError):
    """A connection that was not made."""

    def __init__(self, host: str) -> None:
        super().__init__(errno.ENETUNREACH, os.strerror(errno.ENETUNREACH))
        self.host, self.advice, self.fetches = host, _advice(), _by_a_client()


Refusal = NoNetwork | _Unresolved | _Unreachable
_refusals: list[Refusal] = []  # since `no_network` began


def refusal_behind(error: BaseException) -> Refusal | None:
    """The refusal that led to `error`; None where it has another cause."""
    cause: BaseException | None = error
    seen: set[int] = set()
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, NoNetwork | _Unresolved | _Unreachable):
            return cause
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__
    return None


def fetch_refused() -> Refusal | None:
    """The latest refusal of a fetch, also where the library has caught it and gone on."""
    return next((refusal for refusal in reversed(_refusals) if refusal.fetches), None)


@contextlib.contextmanager
def patched(*patches: tuple[Any, str, Any]) -> Iterator[None]:
    """While active, each attribute (holder, name, value) has that value."""
    before = [(holder, name, getattr(holder, name)) for holder, name, _ in patches]
    for holder, name, value in patches:
        setattr(holder, name, value)
    try:
        yield
    finally:
        for holder, name, value in before:
            setattr(holder, name, value)


@contextlib.contextmanager
def no_network() -> Iterator[None]:
    """While active, host names are not looked up, and connections fail, except to Unix sockets.

    After a refusal `time.sleep` returns at once in that thread, because code that retries would wait for nothing.
    """
    refused_threads: set[int] = set()
    _refusals.clear()

    def refused(kind: type[_Unresolved] | type[_Unreachable], address: object) -> Refusal:
        host = str(address[0] if isinstance(address, tuple) else address)
        refusal: Refusal = kind(host)
        if len(_refusals) >= _MOST_REFUSALS or (refusal.fetches and _asked_for_weights()):
            refusal = NoNetwork(host)
        _refusals.append(refusal)
        refused_threads.add(threading.get_ident())
        return refusal

    own_names = {None, "", b"", "localhost", socket.gethostname()}  # resolved without a network

    def lookup(original: Any) -> Any:
        def guarded(host: Any, *rest: Any, **keywords: Any) -> Any:
            if host in own_names or (original.__name__ != "gethostbyaddr" and not _is_name(host)):
                return original(host, *rest, **keywords)
            raise refused(_Unresolved, host)

        return guarded

    def connection(address: Any, *_: Any, **__: Any) -> NoReturn:
        raise refused(_Unresolved if _is_name(address) else _Unreachable, address)

    def method(name: str, position: int, least: int = 0) -> tuple[Any, str, Any]:
        """A method of sockets, guarded; the argument at `position` is the address, if there are `least` arguments."""
        original = getattr(socket.socket, name)

        def guarded(self: socket.socket, *arguments: Any) -> Any:
            if self.family == getattr(socket, "AF_UNIX", None) or len(arguments) < least:
                return original(self, *arguments)
            refusal = refused(_Unreachable, arguments[position] if arguments else "")
            if name == "connect_ex" and not isinstance(refusal, NoNetwork):  # which returns errors instead
                return refusal.errno
            raise refusal

        return socket.socket, name, guarded

    def sleep(original: Any) -> Any:
        return lambda seconds: original(0 if threading.get_ident() in refused_threads else seconds)

    def command(original: Any) -> Any:
        def guarded(*arguments: Any, **keywords: Any) -> Any:
            text = _as_text([*arguments, keywords.get("args", ()), keywords.get("command", ())])
            match = _ADDRESS.search(text)
            if match is not None and not _FETCHERS.isdisjoint(os.path.basename(word) for word in text.split()):
                _refusals.append(NoNetwork(match[1]))
                raise _refusals[-1]
            return original(*arguments, **keywords)

        return guarded

    guards: tuple[tuple[Any, str, Any], ...] = (
        method("connect", 0), method("connect_ex", 0), method("sendto", -1),
        method("sendmsg", 3, least=4),  # without an address it sends to where the socket is connected
        (socket, "create_connection", connection),
        *((socket, name, lookup(getattr(socket, name))) for name in _LOOKUPS),
        (time, "sleep", sleep(time.sleep)), (os, "system", command(os.system)),
        *((os, name, command(getattr(os, name))) for name in ("posix_spawn", "posix_spawnp") if hasattr(os, name)),
        (subprocess.Popen, "__init__", command(subprocess.Popen.__init__)),
    )  # fmt: skip
    with patched(*guards):
        yield


def _is_name(address: object) -> bool:
    """Whether the host of an address would have to be looked up."""
    host = address[0] if isinstance(address, tuple) and address else address
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError, ValueError, TypeError):
            socket.inet_pton(family, host)  # type: ignore[arg-type]
            return False
    return True


def _as_text(value: Any) -> str:
    """A command as text, from a string, a list of words, or lists of these."""
    if isinstance(value, list | tuple):
        return " ".join(map(_as_text, value))
    return os.fsdecode(value) if isinstance(value, str | bytes | os.PathLike) else ""


def _by_a_client() -> bool:
    modules = (str(frame.f_globals.get("__name__", "")) for frame in frames(sys._getframe()))
    return any(name.partition(".")[0] in _CLIENTS for name in modules)


def _asked_for_weights() -> str:
    """Advice on the argument, of any function on the stack, that asks for weights; empty where there is none."""
    for frame in frames(sys._getframe()):
        names = frame.f_code.co_varnames[: frame.f_code.co_argcount + frame.f_code.co_kwonlyargcount]
        for name, instead in _ASK_FOR_WEIGHTS.items():
            value = frame.f_locals.get(name) if name in names else None
            if value is True or (isinstance(value, str | Enum) and value != ""):  # a list may be weights of classes
                if isinstance(value, str) and _FILE.search(value):
                    return f"{value[:60]!r} names weights; build it without them"
                return f"pass {name}={instead}"
    return ""


def _advice() -> str:
    return _asked_for_weights() or "build it without weights, as with pretrained=False or weights=None"


# words in torch's messages where code needs a value, which tensors on the meta device do not have
_VALUE_NEEDED = (
    "meta tensor", "meta device", "device meta", "no data", "data-dependent", "data dependent", "data-independent",
)  # fmt: skip


@contextlib.contextmanager
def guest(roots: Sequence[str] = ()) -> Iterator[None]:
    """While active, modules of the project can be imported, there is no network, and `sys.argv` has no arguments.

    Modules are imported from `roots`, or else from the current folder and its `src`, before installed ones.
    """
    folders = remember_folders(roots)
    sys.path[:0] = folders
    try:
        with patched((sys, "argv", sys.argv[:1])), no_network():
            yield
    finally:
        for folder in folders:
            with contextlib.suppress(ValueError):
                sys.path.remove(folder)


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """While active, what this process prints, also from C code, is dropped."""
    copies = {number: os.dup(number) for number in (1, 2)}
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in copies:
        os.dup2(nowhere, number)
    os.close(nowhere)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, OSError, ValueError):  # the code may have closed or replaced it
                stream.flush()
        for number, before in copies.items():
            os.dup2(before, number)
            os.close(before)


@contextlib.contextmanager
def construction_sites() -> Iterator[None]:
    """While active, each convolution, norm, linear layer and PReLU records the line that constructs it in user's code.

    These are the modules whose arguments have to change with the number of channels.
    """
    from torch import nn
    from torch.nn.modules.batchnorm import _NormBase
    from torch.nn.modules.conv import _ConvNd

    kinds = (_ConvNd, _NormBase, nn.GroupNorm, nn.LayerNorm, nn.Linear, nn.PReLU)
    with patched(*((kind, "__init__", _noting(kind.__init__)) for kind in kinds)):
        yield


def _noting(original: Callable[..., None]) -> Callable[..., None]:
    """The `__init__` of a module class, wrapped so that the module records its `UserLines`."""

    def noting(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        # The first frame that is no __init__ of a subclass.
        lines = sites(next((call for call in frames(sys._getframe(1)) if call.f_locals.get("self") is not self), None))
        if lines is not None:
            self.__dict__[SITE] = lines  # in the dict, so that deepcopy keeps it

    return noting


@contextlib.contextmanager
def as_if_exporting() -> Iterator[None]:
    """While active, `torch.compiler.is_exporting()` is true, by which code asks whether it has to do without values."""
    import torch

    names = [name for name in ("_is_exporting_flag", "_is_compiling_flag") if hasattr(torch.compiler, name)]
    with patched(*((torch.compiler, name, True) for name in names)):
        yield


def needs_values(error: BaseException) -> bool:
    """Whether an error is torch's for code that needs the value of a tensor on the meta device."""
    text = str(error).lower()
    return isinstance(error, (RuntimeError, NotImplementedError, TypeError, ValueError)) and any(
        words in text for words in _VALUE_NEEDED
    )


def run(what: str, call: Callable[[], Any]) -> Any:
    """Calls the user's code. Raises InputFault, with `what` in front, for anything that it raises."""
    try:
        return alone(call)
    except InputFault:
        raise
    except (
        BaseException
    ) as error:  # SystemExit and KeyboardInterrupt too: in this process only the user's code raises them
        raise InputFault(f"{what} {ended_by(error)}") from error


def alone(call: Callable[[], Any]) -> Any:
    """Calls the user's code; a fork that it has made, and that returns from it, is ended here."""
    me = os.getpid()
    try:
        return call()
    finally:
        if os.getpid() != me:
            os._exit(0)


def ended_by(error: BaseException) -> str:
    """What the code raises, and where; or, if the cause is the missing network, the host that it tried to reach."""
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
    except (RuntimeError, ValueError):  # code without valid line numbers
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
    """The innermost line of the project, with that of the library that raised; or else the innermost line."""
    if not frames:
        return ""
    last = frames[-1]
    own = next((frame for frame in reversed(frames) if is_of_project(frame.filename)), None)
    if own is None:
        return f" at {imported_as(last.filename)}:{last.lineno}"
    behind = "" if own is last else f", in {imported_as(last.filename)}:{last.lineno}"
    return f" at {shown(own.filename)}:{own.lineno}{behind}"
