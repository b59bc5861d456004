"""The child that runs the user's own modules: imports torch once, and forks for each model.

What a model's code does to its process (its folder, signals, threads, exit handlers) ends with the fork. Where
there is no fork to rely on, one child reads one model.
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
from convlint.readers.children.child import FRAME, signal_name
from convlint.readers.children.serve import Channel, leave
from convlint.readers.children.wire import decode_request, encode, encode_defect

# macOS has fork, but its frameworks, which torch loads, do not survive it
FORKS = sys.platform.startswith("linux")
READY = b"ready"
MEMORY_BYTES = 8 << 30  # models are built without their weights
_TICK_S = 0.2
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_MOST_GENERATIONS = 50


def work(channel: Channel) -> None:
    """Says that torch is loaded, then answers each request with the outcome of reading that model."""
    with suppress(ImportError):  # the reader says so
        _warm_up()
    if FORKS:
        _adopt_descendants()
    channel.send(READY)
    while (request := channel.receive()) is not None:
        _, reference, options = decode_request(request)
        if not FORKS:
            me = os.getpid()
            answer = _outcome(reference, options)
            if os.getpid() == me:  # else it is a fork of the model's own code
                channel.send(answer)
            return
        answer = _in_a_fork(reference, options, channel)
        _end_descendants()
        channel.send(answer)


def _warm_up() -> None:
    """Loads torch, and what it loads when it first works out shapes, for all models at once. Raises ImportError."""
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
        finally:  # whatever the model's code did to this process, it goes no further
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
                break  # it is dead, and whoever keeps its pipe open has nothing to say
            else:
                found, ended = os.waitpid(pid, os.WNOHANG)
                status = ended if found else None
            if channel.parent_is_gone():
                os.killpg(0, signal.SIGKILL)
    if status is None and not _complete(received):
        status = os.waitpid(pid, 0)[1]
    elif status is None:
        os.kill(pid, signal.SIGKILL)  # it has answered
        os.waitpid(pid, 0)
    if _complete(received):
        return bytes(received[FRAME.size :])
    return encode((None, (InputError(path=reference, message=_ending(os.waitstatus_to_exitcode(status or 0))),)))


def _adopt_descendants() -> None:
    """What a model's code starts becomes this process's child once its own parent is gone, also from other sessions."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end_descendants() -> None:
    """Of a model that has been read; ending one may bring up its own children."""
    for _ in range(_MOST_GENERATIONS):
        with suppress(OSError):
            children = Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text(encoding="ascii").split()
            for child in children:
                os.kill(int(child), signal.SIGKILL)
                os.waitpid(int(child), 0)
            if not children:
                return


def _bound_memory() -> None:
    """What a model's code may allocate: an error of that model, before the machine is out of memory."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    bound = MEMORY_BYTES if most == resource.RLIM_INFINITY else min(MEMORY_BYTES, most)
    resource.setrlimit(resource.RLIMIT_DATA, (bound, most))


def _complete(received: bytearray) -> bool:
    return len(received) >= FRAME.size and len(received) == FRAME.size + FRAME.unpack(received[: FRAME.size])[0]


def _ending(code: int) -> str:
    if code >= 0:
        return f"its code ends the process, with exit status {code}"
    name = signal_name(code)
    out_of_memory = "; the machine may be out of memory" if name == "SIGKILL" else ""
    return f"its code ends the process, by signal {name}{out_of_memory}"


def _read_and_leave(reference: str, options: ReadOptions, writable: int) -> NoReturn:
    me = os.getpid()
    answer = _outcome(reference, options)
    if os.getpid() == me:  # else it is a fork of the model's own code that came out here as well
        content = FRAME.pack(len(answer)) + answer
        with suppress(OSError, TypeError):  # the code has closed the pipe, or taken os.write away
            while content:
                content = content[os.write(writable, content) :]
    leave()


def _outcome(reference: str, options: ReadOptions) -> bytes:
    try:
        return encode(MODULE.reader().read(reference, options))
    except BaseException as error:  # the end of foreign code's reach: it may raise what it likes, wherever it likes
        return encode_defect(reference, error)
