"""No network for the code of a model: weights are not wanted, and a hub that does not answer takes half a minute."""

from __future__ import annotations

import contextlib
import socket
import traceback
from collections.abc import Iterator
from typing import Any, NoReturn

# arguments by which libraries are told to load weights, and what each is set to so that they do not
_ASK_FOR_WEIGHTS = {
    "pretrained": "False", "weights_backbone": "None", "weights": "None", "encoder_weights": "None",
    "pretrained_backbone": "False", "backbone_weights": "None",
}  # fmt: skip


class NoNetwork(BaseException):
    """Raised instead of a connection; nothing that retries on errors takes it for one."""

    def __init__(self, host: str) -> None:
        super().__init__(host)
        self.host = host

    @property
    def advice(self) -> str:
        """The argument that asked for weights, as far as the calls tell, and what to say instead."""
        for frame, _ in traceback.walk_tb(self.__traceback__):
            for name, instead in _ASK_FOR_WEIGHTS.items():
                if frame.f_locals.get(name) not in (None, False):
                    return f"pass {name}={instead}"
        return "build it without weights, as with pretrained=False or weights=None"


@contextlib.contextmanager
def no_network() -> Iterator[None]:
    """While active, no name is looked up and no connection made, but to sockets of this machine's file system."""
    kinds: tuple[tuple[Any, str], ...] = (
        (socket.socket, "connect"), (socket.socket, "connect_ex"), (socket, "getaddrinfo"),
        (socket, "create_connection"),
    )  # fmt: skip
    before = [(owner, name, getattr(owner, name)) for owner, name in kinds]

    def refuse(host: object) -> NoReturn:
        raise NoNetwork(str(host[0] if isinstance(host, tuple) else host))

    def connect(original: Any) -> Any:
        def guarded(self: socket.socket, address: Any) -> Any:
            return original(self, address) if self.family == getattr(socket, "AF_UNIX", None) else refuse(address)

        return guarded

    socket.socket.connect = connect(socket.socket.connect)  # type: ignore[method-assign]
    socket.socket.connect_ex = connect(socket.socket.connect_ex)  # type: ignore[method-assign]
    socket.getaddrinfo = lambda host, *_, **__: refuse(host)
    socket.create_connection = lambda address, *_, **__: refuse(address)
    try:
        yield
    finally:
        for owner, name, original in before:
            setattr(owner, name, original)
