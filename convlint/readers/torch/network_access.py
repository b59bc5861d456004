"""No network for the code of a model: it sees a machine that is offline, and what it fetches is refused.

Libraries ask whether they are online and go on where they are not: what asks gets the error of an offline machine.
Weights are not wanted: a call told to load them, or a command that fetches something, ends the reading at once.
"""

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
from collections.abc import Iterator
from enum import Enum
from types import FrameType
from typing import Any, NoReturn

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
