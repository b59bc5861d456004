"""Writing files: all of one or nothing, with its mode, its owner and the links to it kept."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from contextlib import suppress

from convlint.errors import UsageError

_STREAM = re.compile(r"/dev/(?:(stdin|stdout|stderr)|fd/(\d{1,9}))|/proc/self/fd/(\d{1,9})")
_NUMBERS = {"stdin": 0, "stdout": 1, "stderr": 2}
# Errors of making or replacing a file, where the file itself may still be one to write to.
_FOLDER_IS_CLOSED = (errno.EACCES, errno.EPERM, errno.EBUSY)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def replace_file(path: str, content: str | bytes) -> None:
    """Writes all of `content` or nothing: what was there stays until all of the new is on the disk.

    A link keeps pointing where it does. A file keeps its mode and owner; one with other names, or with an owner that
    cannot be kept, is written in place. Raises UsageError where that cannot be done.
    """
    data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    try:
        _replace(path, data)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise unwritable(path, error) from error


def append(path: str, text: str) -> None:
    """Adds `text` to a file that others write to as well. Raises UsageError where that cannot be done."""
    try:
        _fill(_open(path, os.O_APPEND | os.O_CREAT), text.encode("utf-8", "replace"))
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from error


def unwritable(path: str, error: OSError | ValueError) -> UsageError:
    """What to raise where `path` cannot be written."""
    return UsageError(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}")


def open_stream(path: str) -> int | None:
    """The number of the open file that `path` stands for, as /dev/stdout does; None for other paths."""
    found = _STREAM.fullmatch(path)
    if found is None or os.name != "posix":
        return None
    return _NUMBERS[found[1]] if found[1] else int(found[2] or found[3])


def _replace(path: str, data: bytes) -> None:
    number = open_stream(path)
    real = os.path.realpath(path)
    before = None
    with suppress(FileNotFoundError):
        before = os.stat(real)
    if number is not None:
        _fill(os.dup(number), data)
    elif before is None:
        _swap(real, data, None)
    elif not stat.S_ISREG(before.st_mode):
        _fill(_open(real), data)
    elif before.st_nlink > 1:
        _overwrite(real, data)
    else:
        try:
            _swap(real, data, before)
        except OSError as error:
            if error.errno not in _FOLDER_IS_CLOSED:
                raise
            _overwrite(real, data)


def _swap(real: str, data: bytes, before: os.stat_result | None) -> None:
    """A new file in the place of `real`. Raises OSError; PermissionError where its owner cannot be kept."""
    # The name cannot be foreseen, so that nobody can lay a link in its place.
    temporary = os.path.join(os.path.dirname(real), f".convlint-{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(temporary, flags, 0o666 if before is None else 0o600)
    try:
        try:
            if before is not None:
                _take_over(descriptor, before)
        except BaseException:
            os.close(descriptor)
            raise
        _fill(descriptor, data, lasting=True)
        os.replace(temporary, real)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _take_over(descriptor: int, before: os.stat_result) -> None:
    """Gives an open file the owner and mode of another."""
    if os.name != "posix":
        return
    own = os.fstat(descriptor)
    if (own.st_uid, own.st_gid) != (before.st_uid, before.st_gid):
        os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))  # last: a new owner takes the special bits away


def _overwrite(real: str, data: bytes) -> None:
    """The content of a file that stays the same one. Room is made before anything of the old content goes."""
    descriptor = os.open(real, os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    try:
        size = os.fstat(descriptor).st_size
        if len(data) > size and hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(descriptor, size, len(data) - size)
            except OSError as error:
                os.ftruncate(descriptor, size)
                if error.errno in _NO_ROOM:  # else this file system knows no such thing
                    raise
        kept = os.dup(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    try:
        _fill(descriptor, data)
        os.ftruncate(kept, len(data))
    finally:
        os.close(kept)


def _open(path: str, flags: int = 0) -> int:
    """A file, device or pipe, open for writing. A pipe that nobody reads is an OSError, not a wait without end."""
    waiting_not = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, os.O_WRONLY | waiting_not | flags, 0o666)
    if os.name == "posix":
        os.set_blocking(descriptor, True)
    return descriptor


def _fill(descriptor: int, data: bytes, *, lasting: bool = False) -> None:
    """Writes everything and closes; `lasting`: once it is on the disk, where it is one."""
    with open(descriptor, "wb", buffering=0) as file:
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) :]
        if lasting:
            os.fsync(descriptor)
