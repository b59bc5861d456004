"""The user's code, imported and run: what it may not do, and what it raises, as values."""

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
from types import FrameType
from typing import Any, NoReturn

from convlint.errors import InputFault
from convlint.readers.torch.places import SITE, imported_as, inside_torch, is_of_project, remember_folders, shown, sites

# arguments by which libraries are told to load weights, and what each is set to so that they do not
_ASK_FOR_WEIGHTS = {
    "pretrained": "False", "weights_backbone": "None", "weights": "None", "encoder_weights": "None",
    "pretrained_backbone": "False", "backbone_weights": "None",
}  # fmt: skip
# libraries through which something is fetched; what connects without them only asks whether anybody answers
_CLIENTS = frozenset(("urllib", "http", "urllib3", "requests", "httpx", "httpcore", "aiohttp", "ftplib", "botocore"))
_ADDRESS = re.compile(r"\b(?:https?|ftps?|s3|gs|git|ssh)://(?:[^/@\s'\"]*@)?([^/:\s'\"]+)")
_FILE = re.compile(r"\.(?:pth?|ckpt|bin|safetensors|onnx|h5|npz|tar)$")  # rather than the name of a set of weights
_FETCHERS = frozenset(("curl", "wget", "git", "aria2c", "pip", "pip3", "gsutil", "aws", "rclone", "azcopy", "hf"))
_LOOKUPS = ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr")
_MOST_REFUSALS = 100  # of one model: whoever tries on and on would do so until the time is over


class NoNetwork(BaseException):
    """Raised where weights were asked for; nothing that retries on errors takes it for one."""

    def __init__(self, host: str) -> None:
        """`advice`: the argument that asked for weights, as far as the calls tell, and what to say instead."""
        super().__init__(host)
        self.host, self.advice, self.fetches = host, _advice(), True


class _Unresolved(socket.gaierror):
    """A name that was not looked up."""

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
    found: BaseException | None = error
    seen: set[int] = set()
    while found is not None and id(found) not in seen:
        if isinstance(found, NoNetwork | _Unresolved | _Unreachable):
            return found
        seen.add(id(found))
        found = found.__cause__ or found.__context__
    return None


def fetch_refused() -> Refusal | None:
    """The latest refusal of something that a library wanted to fetch, whatever it then made of that."""
    return next((each for each in reversed(_refusals) if each.fetches), None)


@contextlib.contextmanager
def no_network() -> Iterator[None]:
    """While active, no name is looked up and no connection made, but to sockets of this machine's file system.

    Who was refused does not sleep either: there is nothing to wait for.
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

    own_names = {None, "", b"", "localhost", socket.gethostname()}  # which a machine that is offline knows

    def lookup(original: Any) -> Any:
        def guarded(host: Any, *rest: Any, **named: Any) -> Any:
            if host in own_names or (original.__name__ != "gethostbyaddr" and not _is_name(host)):
                return original(host, *rest, **named)
            raise refused(_Unresolved, host)

        return guarded

    def connection(address: Any, *_: Any, **__: Any) -> NoReturn:
        raise refused(_Unresolved if _is_name(address) else _Unreachable, address)

    def connect(original: Any) -> Any:
        def guarded(self: socket.socket, address: Any) -> Any:
            if _is_local(self):
                return original(self, address)
            raise refused(_Unreachable, address)

        return guarded

    def connect_ex(original: Any) -> Any:
        def guarded(self: socket.socket, address: Any) -> Any:
            if _is_local(self):
                return original(self, address)
            refusal = refused(_Unreachable, address)
            if isinstance(refusal, NoNetwork):
                raise refusal
            return refusal.errno

        return guarded

    def sendto(original: Any) -> Any:
        def guarded(self: socket.socket, *arguments: Any) -> Any:
            if _is_local(self):
                return original(self, *arguments)
            raise refused(_Unreachable, arguments[-1] if arguments else "")

        return guarded

    def sendmsg(original: Any) -> Any:
        def guarded(self: socket.socket, *arguments: Any) -> Any:
            if _is_local(self) or len(arguments) < 4:  # without an address it goes where the socket is connected to
                return original(self, *arguments)
            raise refused(_Unreachable, arguments[3])

        return guarded

    def sleep(original: Any) -> Any:
        return lambda seconds: original(0 if threading.get_ident() in refused_threads else seconds)

    def command(original: Any) -> Any:
        def guarded(*arguments: Any, **keywords: Any) -> Any:
            text = _as_text([*arguments, keywords.get("args", ()), keywords.get("command", ())])
            found = _ADDRESS.search(text)
            if found is not None and not _FETCHERS.isdisjoint(os.path.basename(word) for word in text.split()):
                _refusals.append(NoNetwork(found[1]))
                raise _refusals[-1]
            return original(*arguments, **keywords)

        return guarded

    one = socket.socket
    guards: tuple[tuple[Any, str, Any], ...] = (
        (one, "connect", connect(one.connect)), (one, "connect_ex", connect_ex(one.connect_ex)),
        (one, "sendto", sendto(one.sendto)), (one, "sendmsg", sendmsg(one.sendmsg)),
        (socket, "create_connection", connection),
        *((socket, name, lookup(getattr(socket, name))) for name in _LOOKUPS),
        (time, "sleep", sleep(time.sleep)), (os, "system", command(os.system)),
*((os, name, command(getattr(os, name))) for name in ("posix_spawn", "posix_spawnp") if hasattr(os, name)),
        (subprocess.Popen, "__init__", command(subprocess.Popen.__init__)),
    )  # fmt: skip
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in guards]
    for owner, name, guard in guards:
        setattr(owner, name, guard)
    try:
        yield
    finally:
        for owner, name, original in before:
            setattr(owner, name, original)


def _is_local(one: socket.socket) -> bool:
    return one.family == getattr(socket, "AF_UNIX", None)


def _is_name(address: object) -> bool:
    """Whether the host of an address would have to be looked up."""
    host = address[0] if isinstance(address, tuple) and address else address
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError, ValueError, TypeError):
            socket.inet_pton(family, host)  # type: ignore[arg-type]
            return False
    return True


def _as_text(value: Any) -> str:
    """The words of a command, however it is given."""
    if isinstance(value, list | tuple):
        return " ".join(map(_as_text, value))
    return os.fsdecode(value) if isinstance(value, str | bytes | os.PathLike) else ""


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _by_a_client() -> bool:
    return any(str(frame.f_globals.get("__name__", "")).partition(".")[0] in _CLIENTS for frame in _frames())


def _asked_for_weights() -> str:
    """What a caller that was told to load weights should be told instead; empty where none was."""
    for frame in _frames():
        names = frame.f_code.co_varnames[: frame.f_code.co_argcount + frame.f_code.co_kwonlyargcount]
        for name, instead in _ASK_FOR_WEIGHTS.items():
            value = frame.f_locals.get(name) if name in names else None
            if value is True or (isinstance(value, str | Enum) and value != ""):  # a list may weigh classes
                if isinstance(value, str) and _FILE.search(value):
                    return f"{value[:60]!r} names weights; build it without them"
                return f"pass {name}={instead}"
    return ""


def _advice() -> str:
    return _asked_for_weights() or "build it without weights, as with pretrained=False or weights=None"


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
