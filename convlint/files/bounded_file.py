"""Files opened within bounds, regular ones alone, Python files among them."""

from __future__ import annotations

import io
import os
import stat
import tokenize
from collections.abc import Mapping
from io import BufferedReader
from typing import BinaryIO

from convlint.errors import InputFault

TEST_FOLDERS = frozenset({"test", "tests", "testing", "unittests", "doc", "docs"})
VENDOR_FOLDERS = frozenset({"third_party", "thirdparty", "vendor", "vendored", "_vendor", "external", "extern"})


def is_quiet(path: str) -> bool:
    """Whether a path is that of a test, of documentation or of other people's code."""
    *folders, name = path.replace(os.sep, "/").lower().split("/")
    if not (TEST_FOLDERS | VENDOR_FOLDERS).isdisjoint(folders):
        return True
    return name.startswith("test_") or name.endswith(("_test.py", "_tests.py")) or name in ("conftest.py", "tests.py")


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


_LARGEST = 16 << 20  # bytes


def python_bytes(path: str, sources: Mapping[str, str]) -> bytes:
    """A module's content; `sources` have what is edited: real path -> each byte as one character. Raises InputFault."""
    edited = sources.get(os.path.realpath(path))
    if edited is not None:
        return edited.encode("latin-1")
    with open_regular(path) as stream:
        content = stream.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise InputFault(f"more than {_LARGEST >> 20} MiB of Python")
    return content


def python_encoding(content: bytes) -> str:
    """The encoding that a module declares; `utf-8-sig` where it begins with a byte order mark. Raises InputFault."""
    try:
        return tokenize.detect_encoding(io.BytesIO(content).readline)[0]
    except (SyntaxError, UnicodeDecodeError) as error:
        raise InputFault(f"not text: {error}") from None


def python_text(content: bytes) -> str:
    """A module's source in the encoding that it declares, its line breaks as they are read. Raises InputFault."""
    encoding = python_encoding(content)
    try:
        return io.TextIOWrapper(io.BytesIO(content), encoding).read()
    except (UnicodeDecodeError, LookupError) as error:
        raise InputFault(f"not text: {error}") from None
