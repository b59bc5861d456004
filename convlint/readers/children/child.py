"""A child process of the same interpreter that answers requests; whatever becomes of it is an answer, too.

Requests and answers are bytes in frames of their own pipes. What the child or the code it runs prints comes on a third
pipe. The child leads a process group of its own, so that it is ended with what it started and left there, and an
interrupt from the keyboard reaches the parent alone.
"""

from __future__ import annotations

import codecs
import os
import queue
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, BinaryIO

FRAME = struct.Struct(">Q")
LARGEST_ANSWER = 1 << 28  # bytes
_TAIL = 4096  # characters of what it printed last that are kept
_ROOT = str(Path(__file__).parents[3])  # the folder that holds the package, for runs from a checkout
_GRACE_S = 2.0  # for a process to end that has closed its pipe
_REST_S = 0.5  # for what it printed last to arrive


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
    """One message. Raises OSError where nobody reads any more."""
    rest = memoryview(FRAME.pack(len(content)) + content)
    while rest:
        rest = rest[stream.write(rest) :]
    stream.flush()


def read_frame(stream: BinaryIO | IO[bytes]) -> bytes | None:
    """The next message; None at the end of the stream, also in the middle of a message or where one is too large."""
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
    """One process that runs `module:function(channel)` of convlint until its requests end."""

    def __init__(self, entry: str, *, on_output: Callable[[str], None] | None = None, watched: bool = True) -> None:
        """`on_output` hears what the child prints, in whole lines; by default nobody does. Raises ChildDied."""
        module, _, function = entry.partition(":")
        code = (
            f"import sys; sys.path.append({_ROOT!r}); from convlint.readers.children.serve import serve; "
            f"serve({module!r}, {function!r}, watched={watched})"
        )
        self._on_output = on_output or (lambda _: None)
        self._tail = ""
        self._closed = False
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        try:
            self._process = subprocess.Popen(
                [sys.executable, *_flags(), "-c", code],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                bufsize=0,  # a buffer has a lock, which a thread that waits for a child would keep for ever
            )  # fmt: skip
        except OSError as error:
            raise ChildDied(signal_name=None, status=None, tail=error.strerror or str(error), unstarted=True) from None
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._collect, self._listen)]
        for thread in self._threads:
            thread.start()

    def ask(self, request: bytes, timeout_s: float | None = None) -> bytes:
        """The answer to a request. Raises ChildDied; the child is ended then, and answers no more."""
        asking = threading.Thread(target=self._send, args=(request,), daemon=True)
        asking.start()  # a child that does not read would keep us here for longer than the time that it has
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
        """Tells the child that nothing more comes, gives it the time to end by itself, and closes."""
        if not self._closed:
            self._send(b"")
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE_S)
        self.close()

    def close(self) -> None:
        """Ends the child and all that stayed in its group. What it printed until then has been passed on."""
        self._closed = True
        process = self._process
        with suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        with suppress(subprocess.TimeoutExpired):  # it hangs in the kernel, as on a file system that does not answer
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
        with suppress(OSError, ValueError):  # it is dead already: there will be no answer
            write_frame(requests, request)

    def _ended(self) -> int | None:
        try:
            return self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:  # it has closed its pipe, but goes on
            return None

    def _collect(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        with suppress(OSError, ValueError):  # closed under our hands
            while (answer := read_frame(stream)) is not None:
                self._answers.put(answer)
        self._answers.put(None)

    def _listen(self) -> None:
        stream = self._process.stderr
        assert stream is not None
        with suppress(OSError, ValueError):
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            held = ""
            while piece := os.read(stream.fileno(), 1 << 16):
                text = decoder.decode(piece)
                self._tail = (self._tail + text)[-_TAIL:]
                whole, newline, held = (held + text).rpartition("\n")
                if len(held) > _TAIL:
                    whole, newline, held = whole + newline + held, "", ""
                if whole or newline:
                    self._on_output(whole + newline)
            if held:
                self._on_output(held)


_SIGNALS = {int(known): known.name for known in signal.Signals}


def signal_name(status: int | None) -> str | None:
    """Of the signal that ended a process with this exit status; None where none did."""
    return None if status is None or status >= 0 else _SIGNALS.get(-status, f"number {-status}")


def _flags() -> list[str]:
    """Of the interpreter: the current folder, which may be a stranger's checkout, is not a place to import from."""
    flags = ["-P"]
    if sys.flags.ignore_environment:
        flags.append("-E")
    if sys.flags.no_user_site:
        flags.append("-s")
    return flags
