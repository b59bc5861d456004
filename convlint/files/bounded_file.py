"""Opens and reads regular files only, within bounds of size: any input, Python source, and files that set up a run."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Mapping
from io import BufferedReader
from typing import BinaryIO

from convlint.model.errors import InputFault, UsageError


def open_regular(path: str) -> BufferedReader:
    """Opens a regular file for reading, without ever waiting on a pipe or a device. Raises InputFault."""
    return _Faulting(io.FileIO(regular_descriptor(path)))


class _Faulting(io.BufferedReader):
    """A reader that raises InputFault where reading fails after opening did not, as for some files in /proc."""

    def read(self, size: int | None = -1, /) -> bytes:
        try:
            return super().read(size)
        except OSError as error:
            raise InputFault(f"cannot read the file: {error.strerror}") from None


def regular_descriptor(path: str) -> int:
    """A descriptor of a regular file, which the caller closes. Raises InputFault."""
    try:
        # O_NONBLOCK: opening a pipe would wait for a writer. Windows alone has O_BINARY.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputFault(f"cannot read the file: {reason}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # of what was opened: the path may lead elsewhere by now
        os.close(descriptor)
        raise InputFault("cannot read the file: it is not a regular file")
    return descriptor


def file_size(stream: BinaryIO) -> int:
    """The size of an open regular file, in bytes."""
    return os.fstat(stream.fileno()).st_size


_LARGEST = 16 << 20  # bytes of a Python file


def python_bytes(path: str, sources: Mapping[str, str]) -> bytes:
    """A module's content; edited modules are in `sources` (real path -> a character a byte). Raises InputFault."""
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
    import tokenize  # of Python files alone

    try:
        return tokenize.detect_encoding(io.BytesIO(content).readline)[0]
    except (SyntaxError, UnicodeDecodeError) as error:
        raise InputFault(f"not text: {error}") from None


def python_text(content: bytes) -> str:
    """A module's source, in the encoding that it declares, with its line breaks as LF. Raises InputFault."""
    encoding = python_encoding(content)
    try:
        return io.TextIOWrapper(io.BytesIO(content), encoding).read()
    except (UnicodeDecodeError, LookupError) as error:
        raise InputFault(f"not text: {error}") from None


MOST_CONFIG_BYTES = 2**20
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def read_settings(path: str, shown: str, most: int) -> bytes:
    """The content of a file that sets up a run. Raises UsageError, whose message begins with `shown`."""
    try:
        _refuse_irregular(os.stat(path), shown)
    except FileNotFoundError:
        problem = "is a link to nothing" if os.path.lexists(path) else "does not exist"
        raise UsageError(f"{shown} {problem}") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise _unreadable(shown, error) from error
    try:
        # Asked again of the opened file, because another may have taken its place. O_NONBLOCK: a pipe never waits.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            status = os.fstat(descriptor)
            _refuse_irregular(status, shown)
            content, size = b"", status.st_size
            while size <= most and (part := os.read(descriptor, most + 1 - len(content))):
                content += part
                size = max(size, len(content))
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _unreadable(shown, error) from error
    if size > most:
        raise UsageError(f"{shown} is larger than {most >> 20} MiB")
    return content


def is_there(path: str) -> bool:
    """Whether anything has this name, readable or not; False where the name cannot be looked up."""
    try:
        os.lstat(path)
    except (OSError, ValueError):  # absent, or behind a folder that cannot be searched
        return False
    return True


def _refuse_irregular(status: os.stat_result, shown: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for matches, name in _KINDS if matches(status.st_mode)), "something else")
        raise UsageError(f"{shown} is no file: it is {kind}")


def _unreadable(shown: str, error: Exception) -> UsageError:
    return UsageError(f"{shown} cannot be read: {getattr(error, 'strerror', None) or error}")
