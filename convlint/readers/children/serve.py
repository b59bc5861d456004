"""The child's side: frames in, frames out, and standard streams that belong to nobody."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

from convlint.readers.children.child import read_frame, write_frame


class Channel:
    """To and from the parent."""

    def __init__(self, requests: int, answers: int) -> None:
        self._requests, self._answers = os.fdopen(requests, "rb"), os.fdopen(answers, "wb")

    def receive(self) -> bytes | None:
        """The next request; None when there will be none, which an empty one says."""
        return read_frame(self._requests) or None

    def send(self, content: bytes) -> None:
        """Answers. Raises BrokenPipeError where the parent is gone."""
        write_frame(self._answers, content)

    def number(self) -> int:
        """The descriptor of the parent's pipe."""
        return self._requests.fileno()

    def close(self) -> None:
        """For a fork that is not to speak here."""
        self._requests.close()
        self._answers.close()

    def parent_is_gone(self) -> bool:
        """While an answer is due: the parent asks one thing at a time, so that only the end of its pipe can come."""
        return bool(select.select([self._requests], [], [], 0)[0])


def serve(module: str, function: str, *, watched: bool) -> None:
    """Runs `function(channel)` of a module of convlint and leaves without a word.

    `watched`: also in the middle of its work, where the parent is gone; not for what forks, which threads do not suit.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The pipes of the protocol move out of reach: what is printed, also by C code, must not end up between answers.
    channel = Channel(os.dup(0), os.dup(1))
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    os.dup2(2, 1)
    if watched and hasattr(select, "poll"):
        threading.Thread(target=_leave_with, args=(channel,), daemon=True).start()
    with suppress(BrokenPipeError):  # the parent is gone
        getattr(import_module(module), function)(channel)
    leave()


def _leave_with(channel: Channel) -> None:
    """Waits for the other end of the pipe to be closed, however the parent ended, and ends this group then."""
    poll = select.poll()
    poll.register(channel.number(), 0)  # a hang-up is always told
    poll.poll()
    os.killpg(0, signal.SIGKILL)


def leave() -> NoReturn:
    """Ends this process at once: nothing that was registered to run at exit gets its turn."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with suppress(AttributeError, OSError, ValueError):  # None, closed, or something else in its place
            stream.flush()  # type: ignore[union-attr]
    os._exit(0)
