"""The child process that runs the user's modules: it imports torch once, and forks for each model.

What a model's code does to its process (current folder, signals, threads, exit handlers) ends with the fork. On
platforms without a reliable fork, each child reads one model only.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from convlint.model.report import InputError
from convlint.readers import MODULE, ReadOptions
from convlint.readers.children.child import FRAME, Channel, leave, signal_name
from convlint.readers.children.wire import decode_request, encode, encode_defect

# macOS has fork, but its frameworks, which torch loads, do not survive it
FORKS = sys.platform.startswith("linux")
READY = b"ready"
MEMORY_BYTES = 8 << 30  # models are built without their weights, so that even large ones take far less
NEEDS_TORCH = (
    "reading modules needs PyTorch 2.4 or later, of which a build for the CPU is enough: "
    "pip install torch --index-url https://download.pytorch.org/whl/cpu"
)
_TICK_S = 0.2  # how often it is asked whether the fork, or the parent, has ended
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_MOST_GENERATIONS = 50  # code that starts processes as fast as they are killed must not hold up the next model


def work(channel: Channel) -> None:
    """Sends READY once torch is loaded, then answers each request with the outcome of reading that model."""
    with suppress(ImportError):  # `_outcome` reports it, for each model
        _warm_up()
    if FORKS:
        import ctypes

        # The parent of orphans can end what a model's code leaves, also as daemons.
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    channel.send(READY)
    while (request := channel.receive()) is not None:
        _, reference, options = decode_request(request)
        if not FORKS:
            me = os.getpid()
            answer = _outcome(reference, options)
            if os.getpid() == me:  # else this is a fork that the model's code has made
                channel.send(answer)
            return
        answer = _in_a_fork(reference, options, channel)
        _end_descendants()
        channel.send(answer)


def _warm_up() -> None:
    """Imports torch, and what torch imports for its first operation, once for all models. Raises ImportError."""
    import torch

    with torch.inference_mode():
        image = torch.empty(1, 1, 1, 1, device="meta")
        torch.relu(torch.nn.functional.conv2d(image, image))


def _in_a_fork(reference: str, options: ReadOptions, channel: Channel) -> bytes:
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(readable)
            channel.close()
            _bound_memory()
            _read_and_leave(reference, options, writable)
        finally:  # whatever the model's code did to this process, nothing below runs in it
            os._exit(1)
    os.close(writable)
    received = bytearray()
    status: int | None = None
    with os.fdopen(readable, "rb", buffering=0) as pipe:
        while not _complete(received):
            if select.select([pipe], [], [], _TICK_S)[0]:
                piece = pipe.read(1 << 20)
                if not piece:
                    break
                received += piece
            elif status is not None:
                break  # it has ended; another process that it started may keep its pipe open
            else:
                ended_pid, ended = os.waitpid(pid, os.WNOHANG)
                status = ended if ended_pid else None
            if channel.parent_is_gone():
                os.killpg(0, signal.SIGKILL)
    if status is None and not _complete(received):
        status = os.waitpid(pid, 0)[1]
    elif status is None:
        os.kill(pid, signal.SIGKILL)  # it has answered, but its threads or exit handlers may go on for ever
        os.waitpid(pid, 0)
    if _complete(received):
        return bytes(received[FRAME.size :])
    return encode((None, (InputError(path=reference, message=_ending(os.waitstatus_to_exitcode(status or 0))),)))


def _end_descendants() -> None:
    """Kills the processes that a model's code has left behind."""
    for _ in range(_MOST_GENERATIONS):  # the children of a killed process become children of this one
        with suppress(OSError):
            children = Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text(encoding="ascii").split()
            for child in children:
                os.kill(int(child), signal.SIGKILL)
                os.waitpid(int(child), 0)
            if not children:
                return


def _bound_memory() -> None:
    """Bounds what a model's code may allocate: a MemoryError there rather than a machine out of memory."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    bound = MEMORY_BYTES if most == resource.RLIM_INFINITY else min(MEMORY_BYTES, most)
    resource.setrlimit(resource.RLIMIT_DATA, (bound, most))


def _complete(received: bytearray) -> bool:
    return len(received) >= FRAME.size and len(received) == FRAME.size + FRAME.unpack(received[: FRAME.size])[0]


def _ending(code: int) -> str:
    """Why there is no answer, by the exit code of the fork."""
    if code >= 0:
        return f"its code ends the process, with exit status {code}"
    name = signal_name(code)
    out_of_memory = "; the machine may be out of memory" if name == "SIGKILL" else ""
    return f"its code ends the process, by signal {name}{out_of_memory}"


def _read_and_leave(reference: str, options: ReadOptions, writable: int) -> NoReturn:
    """In the fork: reads the model, writes the answer to the pipe and ends the process."""
    me = os.getpid()
    answer = _outcome(reference, options)
    if os.getpid() == me:  # else this is a fork that the model's code has made, and that returned as well
        content = FRAME.pack(len(answer)) + answer
        with suppress(OSError, TypeError):  # the model's code may have closed the pipe, or replaced os.write
            while content:
                content = content[os.write(writable, content) :]
    leave()


def _outcome(reference: str, options: ReadOptions) -> bytes:
    """The outcome of reading a model, encoded; an error where torch is not installed."""
    try:
        import torch  # noqa: F401
    except ImportError:
        return encode((None, (InputError(path=reference, message=NEEDS_TORCH),)))
    try:
        return encode(MODULE.reader().read(reference, options))
    except BaseException as error:  # the model's code may raise anything anywhere, and no other handler is above
        return encode_defect(reference, error)
