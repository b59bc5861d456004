"""Reads the files that set up a run: regular files only, never waited for, and their size known before the content."""

from __future__ import annotations

import os
import stat

from convlint.errors import UsageError

MAX_BYTES = 2**20  # of a config

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def read_settings(path: str, shown: str, most: int) -> bytes:
    """The content of the file at `path`. Raises UsageError, that begins with `shown`, where it cannot be had."""
    try:
        _regular(os.stat(path), shown)
    except FileNotFoundError:
        problem = "is a link to nothing" if os.path.lexists(path) else "does not exist"
        raise UsageError(f"{shown} {problem}") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise _unreadable(shown, error) from error
    try:
        # asked again of the opened file: another may have taken its place
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            status = os.fstat(descriptor)
            _regular(status, shown)
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
    """Whether anything has this name, readable or not; False too where no file of this name can be looked up."""
    try:
        os.lstat(path)
    except (OSError, ValueError):  # nothing there, or a folder on the way that the input is not readable in either
        return False
    return True


def _regular(status: os.stat_result, shown: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for matches, name in _KINDS if matches(status.st_mode)), "something else")
        raise UsageError(f"{shown} is no file: it is {kind}")


def _unreadable(shown: str, error: Exception) -> UsageError:
    return UsageError(f"{shown} cannot be read: {getattr(error, 'strerror', None) or error}")
