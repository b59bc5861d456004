"""The child process that runs parsers written in C, within limits of memory and time; it may die of its input."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator

from convlint.model.report import InputError
from convlint.readers import format_of
from convlint.readers.children.child import Channel
from convlint.readers.children.wire import decode_request, encode, encode_defect

CPU_S = 1.5  # processor seconds for one input, beyond the import of the parser; ResNet-50 takes some 0.01
MEMORY_BYTES = 180 << 20  # beyond the import of the parser
WALL_S = 60.0  # for a child that waits rather than works, as on a file system that does not answer
TOO_MUCH_MEMORY = (
    f"reading it takes more than {MEMORY_BYTES >> 20} MiB of memory, weights not counted; no network that convlint "
    "can judge does"
)


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Ends this process where the block takes more than CPU_S, and refuses it more memory than MEMORY_BYTES.

    Linux enforces both, macOS the time alone, Windows neither: there the parent's WALL_S is the only limit.
    """
    timed = hasattr(signal, "setitimer")
    if timed:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)  # a handler in Python would not run until C code returns
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

    # RLIMIT_DATA counts memory that the process writes to, not the pages of a file that it has mapped.
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with open("/proc/self/statm", "rb") as status:
        pages = int(status.read().split()[5])
    limit = pages * resource.getpagesize() + MEMORY_BYTES
    allowed = limit if before[1] == resource.RLIM_INFINITY else min(limit, before[1])
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def work(channel: Channel) -> None:
    """Answers each request with the outcome of reading that file; entry point of the child."""
    while (request := channel.receive()) is not None:
        reader_name, path, options = decode_request(request)
        reader = format_of(reader_name).reader()
        reader.load_parser()  # before the limits begin, which are for the file alone
        try:
            with limited():
                answer = encode(reader.read(path, options))
        except MemoryError:
            answer = encode((None, (InputError(path=path, message=TOO_MUCH_MEMORY),)))
        except Exception as error:  # the files after this one are still to be read
            answer = encode_defect(path, error)
        channel.send(answer)
