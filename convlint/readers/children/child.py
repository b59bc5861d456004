"""Both ends of a child process of the same interpreter: `Child` asks it, `serve` and `Channel` answer inside it.

Requests and answers are bytes, framed, on two pipes of their own. What the child or the code it runs prints comes on a
third pipe. The child leads its own process group, so it can be killed together with the processes that it started, and
an interrupt from the keyboard reaches the parent alone. Whatever ends the child is reported as `ChildDied`.
"""

from __future__ import annotations

import codecs
import os
import queue
import select
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, BinaryIO, NoReturn

FRAME = struct.Struct(">Q")
LARGEST_ANSWER = 1 << 28  # bytes; a child that was taken over could claim any length
_TAIL = 4096  # characters: how much of the last output is kept for an error message
_ROOT = str(Path(__file__).parents[3])  # the folder that holds the package; not on the path in a checkout
_GRACE_S = 2.0  # for a process that has closed its pipe to end
_REST_S = 0.5  # for its last output to arrive


class ChildDied(Exception):
    """The child ended, or was ended, before it answered, or could not even be started.

    `signal_name` is None where it exited by itself; `tail` is what it printed last, or why it did not start.
    """

    def __init__(
        self,
        *,
        signal_name: str | None,
        status: int | None,
        tail: str,
        timed_out: bool = False,
        unstarted: bool = False,
    ) -> None:
        self.signal_name, self.status, self.tail = signal_name, status, tail
        self.timed_out, self.unstarted = timed_out, unstarted
        super().__init__(signal_name or (tail if unstarted else f"exit status {status}"))


def write_frame(stream: IO[bytes], content: bytes) -> None:
    """Writes one message. Raises OSError where the other end is closed."""
    rest = memoryview(FRAME.pack(len(content)) + content)
    while rest:
        rest = rest[stream.write(rest) :]
    stream.flush()


def read_frame(stream: BinaryIO | IO[bytes]) -> bytes | None:
    """The next message; None at the end of the stream, where a message is cut short, and where one is too large."""
    head = _read_all(stream, FRAME.size)
    if head is None:
        return None
    (length,) = FRAME.unpack(head)
    return None if length > LARGEST_ANSWER else _read_all(stream, length)


def _read_all(stream: BinaryIO | IO[bytes], size: int) -> bytes | None:
    content = bytearray()
    while len(content) < size:
        piece = stream.read(min(size - len(content), 1 << 20))
        if not piece:
            return None
        content += piece
    return bytes(content)


class Child:
    """A process that runs `module:function(channel)` until it gets no more requests."""

    def __init__(self, entry: str, *, on_output: Callable[[str], None] | None = None, watched: bool = True) -> None:
        """`on_output` gets what the child prints, in whole lines; by default it is dropped. Raises ChildDied."""
        module, _, function = entry.partition(":")
        code = (
            f"import sys; sys.path.append({_ROOT!r}); "
            "from convlint.files.libraries import load_msgspec; load_msgspec(); "
            f"from convlint.readers.children.child import serve; serve({module!r}, {function!r}, watched={watched})"
        )
        self._on_output = on_output or (lambda _: None)
        self._tail = ""
        self._closed = False
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        try:
            self._process = subprocess.Popen(
                [sys.executable, *_flags(), "-c", code],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                bufsize=0,  # a buffer has a lock, which a thread waiting for the child would hold for ever
            )  # fmt: skip
        except OSError as error:
            raise ChildDied(signal_name=None, status=None, tail=error.strerror or str(error), unstarted=True) from None
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._collect, self._listen)]
        for thread in self._threads:
            thread.start()

    def ask(self, request: bytes, timeout_s: float | None = None) -> bytes:
        """The answer to a request. Raises ChildDied, and ends the child, where none comes in time."""
        asking = threading.Thread(target=self._send, args=(request,), daemon=True)
        asking.start()  # in a thread: a child that does not read would block the write beyond `timeout_s`
        return self.answer(timeout_s)

    def answer(self, timeout_s: float | None = None) -> bytes:
        """The next answer. Raises ChildDied."""
        timed_out = False
        try:
            answer = None if self._closed else self._answers.get(timeout=timeout_s)
        except queue.Empty:
            answer, timed_out = None, True
        if answer is not None:
            return answer
        status = None if timed_out else self._ended()
        self.close()
        raise ChildDied(signal_name=signal_name(status), status=status, timed_out=timed_out, tail=self._tail)

    def finish(self) -> None:
        """Sends the empty request that ends the child, gives it time to end by itself, and closes."""
        if not self._closed:
            self._send(b"")
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE_S)
        self.close()

    def close(self) -> None:
        """Kills the child and its process group, after passing on what it printed."""
        self._closed = True
        process = self._process
        with suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        with suppress(subprocess.TimeoutExpired):  # it may hang in the kernel, as on a dead network file system
            process.wait(_GRACE_S)
        for thread in self._threads:
            thread.join(_REST_S)  # a process that left the group may keep a pipe open for ever
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.close()

    def _send(self, request: bytes) -> None:
        requests = self._process.stdin
        assert requests is not None
        with suppress(OSError, ValueError):  # it has ended already; `answer` reports that
            write_frame(requests, request)

    def _ended(self) -> int | None:
        try:
            return self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:  # it has closed its pipe, but goes on
            return None

    def _collect(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        with suppress(OSError, ValueError):  # `close` has closed the stream meanwhile
            while (answer := read_frame(stream)) is not None:
                self._answers.put(answer)
        self._answers.put(None)

    def _listen(self) -> None:
        stream = self._process.stderr
        assert stream is not None
        with suppress(OSError, ValueError):
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            pending = ""
            while piece := os.read(stream.fileno(), 1 << 16):
                text = decoder.decode(piece)
                self._tail = (self._tail + text)[-_TAIL:]
                lines, newline, pending = (pending + text).rpartition("\n")
                if len(pending) > _TAIL:  # a line without end would take all memory
                    lines, newline, pending = lines + newline + pending, "", ""
                if lines or newline:
                    self._on_output(lines + newline)
            if pending:
                self._on_output(pending)


_SIGNALS = {int(known): known.name for known in signal.Signals}


def signal_name(status: int | None) -> str | None:
    """The name of the signal that ended a process with this status; None where it exited by itself."""
    return None if status is None or status >= 0 else _SIGNALS.get(-status, f"number {-status}")


def _flags() -> list[str]:
    """Flags for the interpreter: as this one has them, and without imports from the current folder."""
    flags = ["-P"]  # the current folder may be a checkout of somebody else's code, with a json.py of its own
    if sys.flags.ignore_environment:
        flags.append("-E")
    if sys.flags.no_user_site:
        flags.append("-s")
    return flags


class Channel:
    """The child's pipes: requests come from the parent, answers go to it."""

    def __init__(self, requests: int, answers: int) -> None:
        self._requests, self._answers = os.fdopen(requests, "rb"), os.fdopen(answers, "wb")

    def receive(self) -> bytes | None:
        """The next request; None after the last, which the parent marks by an empty one."""
        return read_frame(self._requests) or None

    def send(self, content: bytes) -> None:
        """Sends an answer. Raises BrokenPipeError where the parent has ended."""
        write_frame(self._answers, content)

    def close(self) -> None:
        """Closes both pipes, in a fork that must not answer."""
        self._requests.close()
        self._answers.close()

    def parent_is_gone(self) -> bool:
        """Whether the parent has ended; asked only while an answer is due.

        The parent asks one thing at a time, so its pipe becomes readable only by being closed.
        """
        return bool(select.select([self._requests], [], [], 0)[0])


def serve(module: str, function: str, *, watched: bool) -> None:
    """Runs `function(channel)` of a module in this process, and ends the process afterwards.

    `watched`: a thread ends the process as soon as the parent has ended, also in the middle of work. Children that fork
    are not watched, because a fork does not copy threads.
    """
    # The parent decides what an interrupt from the keyboard ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The pipes move to other descriptors: what is printed, also by C code, must not end up between answers.
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
    """Kills this process group as soon as the parent has ended, however it did."""
    poll = select.poll()
    poll.register(channel._requests.fileno(), 0)  # no events asked for: a hang-up is reported all the same
    poll.poll()
    os.killpg(0, signal.SIGKILL)


def leave() -> NoReturn:
    """Ends this process at once, without running what was registered to run at exit."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with suppress(AttributeError, OSError, ValueError):  # None, closed, or something else in its place
            stream.flush()  # type: ignore[union-attr]
    os._exit(0)
