"""Parsing in a child process that may die of it: its limits of memory and time."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from typing import NoReturn

from convlint.model.report import InputError
from convlint.readers import format_of
from convlint.readers.children.serve import Channel
from convlint.readers.children.wire import decode_request, encode, encode_defect

CPU_S = 1.5  # processor seconds for one input, beyond the import of the parser; ResNet-50 takes some 0.01
MEMORY_BYTES = 180 << 20  # beyond the import of the parser
TEXT_CPU_S = 10.0  # for what is read in the process itself; the largest sound spec takes 1 to 2
WALL_S = 60.0  # for a child that waits rather than works, as on a file system that does not answer
TOO_MUCH_MEMORY = (
    f"reading it takes more than {MEMORY_BYTES >> 20} MiB of memory, weights not counted; no network that convlint "
    "can judge does"
)


class OutOfTime(BaseException):
    """The processor time is up; no reader catches it, as it might catch a fault in what it reads."""


@contextlib.contextmanager
def time_bound(seconds: float) -> Iterator[None]:
    """Raises OutOfTime where what is inside takes more processor time, in the main thread of a platform with timers."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def over(_signal: int, _frame: object) -> NoReturn:
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Ends this process where what is inside takes more than CPU_S, and refuses memory past MEMORY_BYTES.

    Linux holds both; macOS only the time; Windows neither, so that the parent's WALL_S is the only bound there.
    """
    timed = hasattr(signal, "setitimer")
    if timed:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)  # a handler of Python's would wait for C code to return
        signal.setitimer(signal.ITIMER_PROF, CPU_S)
    try:
        with _memory_bound():
            yield
    finally:
        if timed:
            signal.setitimer(signal.ITIMER_PROF, 0)


@contextlib.contextmanager
def _memory_bound() -> Iterator[None]:
    if not sys.platform.startswith("linux"):
        yield
        return
    import resource

    # RLIMIT_DATA counts what the process writes to, not the pages of a file that it looks into.
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with open("/proc/self/statm", "rb") as status:
        pages = int(status.read().split()[5])
    wanted = pages * resource.getpagesize() + MEMORY_BYTES
    allowed = wanted if before[1] == resource.RLIM_INFINITY else min(wanted, before[1])
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def work(channel: Channel) -> None:
    """Answers each request with the outcome of reading that file."""
    while (request := channel.receive()) is not None:
        reader_name, path, options = decode_request(request)
        reader = format_of(reader_name).reader()
        reader.load_parser()
        try:
            with limited():
                answer = encode(reader.read(path, options))
        except MemoryError:
            answer = encode((None, (InputError(path=path, message=TOO_MUCH_MEMORY),)))
        except Exception as error:  # this process's last resort: the files after this one are still to be read
            answer = encode_defect(path, error)
        channel.send(answer)
