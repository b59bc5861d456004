"""Opening files that nobody vouches for: regular files only, and never more of them than asked for."""

from __future__ import annotations

import io
import os
import stat
from io import BufferedReader
from typing import BinaryIO

from convlint.errors import InputFault


def open_regular(path: str) -> BufferedReader:
    """Opens a regular file for reading; never waits on a FIFO or a device. Raises InputFault."""
    return _Faulting(io.FileIO(regular_descriptor(path)))


class _Faulting(io.BufferedReader):
    """Reading may fail although opening did not, as for what only looks like a file. Raises InputFault then."""

    def read(self, size: int | None = -1, /) -> bytes:
        try:
            return super().read(size)
        except OSError as error:
            raise InputFault(f"cannot read the file: {error.strerror}") from None


def regular_descriptor(path: str) -> int:
    """The same without a buffer: a descriptor that is the caller's to close."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputFault(f"cannot read the file: {reason}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputFault("cannot read the file: it is not a regular file")
    return descriptor


def file_size(stream: BinaryIO) -> int:
    """Bytes in an open regular file."""
    return os.fstat(stream.fileno()).st_size
