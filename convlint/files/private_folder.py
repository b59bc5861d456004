"""The cache folder, and files in it, if no other user can have written to it; else None or an OSError.

Opened files and folders are judged, never paths, so that nothing can be put in their place in between. A folder is
private if this user owns it, nobody else may write to it, and nobody else may replace it: each folder above belongs to
this user or to root, and is either not writable to others or sticky.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def cache_folder() -> str | None:
    """The folder for convlint's caches, in XDG_CACHE_HOME or else in ~/.cache; None where that lies in a checkout.

    A repository that is checked could have brought such a folder along, with rules of its own in it.
    """
    here = os.path.realpath(os.getcwd())
    checkout = checkout_of(here)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if base:
        if not os.path.isabs(base) or is_below(os.path.realpath(base), checkout or here):
            return None
    else:
        if os.environ.get("HOME") == "":
            return None
        home = os.path.expanduser("~")
        real = os.path.realpath(home)
        brought = is_below(real, checkout) if checkout is not None else real != here and is_below(real, here)
        if not os.path.isabs(home) or brought:
            return None
        base = os.path.join(home, ".cache")
    return os.path.join(base, "convlint")


def checkout_of(folder: str) -> str | None:
    """The git work tree that `folder` lies in; None where it lies in none."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder


def opened_private(folder: str | None) -> int | None:
    """A descriptor of `folder`, which is created if absent; None if it is not private. Raises OSError, ValueError."""
    if folder is None or not hasattr(os, "geteuid"):  # Windows has no cheap way to ask who may write to it
        return None
    if not all(map(_cannot_be_swapped, _above(folder))):
        return None
    os.makedirs(folder, mode=0o700, exist_ok=True)
    # Asked again, because folders that were just created may be writable to others under an open umask.
    if not all(map(_cannot_be_swapped, _above(folder))):
        return None
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    if _is_own(os.fstat(descriptor)):
        return descriptor
    os.close(descriptor)
    return None


def read_private(folder: int, name: str, most: int) -> bytes:
    """The content of a file in an opened private folder. Raises OSError where it is not private or too large."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        # A hard link to the file could lie in a folder where others write.
        if not stat.S_ISREG(status.st_mode) or not _is_own(status) or status.st_nlink != 1 or status.st_size > most:
            raise PermissionError("not a private file")
        return stream.read(most)


def write_private(folder: int, name: str, data: bytes) -> None:
    """Writes a file in an opened private folder, by a rename, so that no other run reads half of it."""
    temporary = f".{os.urandom(16).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _is_own(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & _OTHERS_WRITE


def _above(folder: str) -> Iterator[str]:
    """The existing folders above `folder`, both as named and with links resolved."""
    seen = dict.fromkeys(map(str, (*Path(folder).parents, *Path(os.path.realpath(folder)).parents)))
    return (path for path in seen if os.path.lexists(path))


def _cannot_be_swapped(folder: str) -> bool:
    """Whether only this user and root can rename entries of `folder`."""
    status = os.stat(folder)
    others = status.st_mode & _OTHERS_WRITE and not status.st_mode & stat.S_ISVTX  # sticky: owners alone rename
    return status.st_uid in (0, os.geteuid()) and not others


def is_below(path: str, folder: str) -> bool:
    """Whether an absolute path is `folder` or lies in it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
