"""A cache of results from files that rarely change, as marshal writes them, where only the user can write.

Opened files and folders are judged, never paths, so that nothing can be put in their place in between. A folder is
private if this user owns it, nobody else may write to it, and nobody else may replace it: each folder above belongs to
this user or to root, and is either not writable to others or sticky.
"""

from __future__ import annotations

import marshal
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from zlib import crc32

from convlint import __version__

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
    seen = dict.fromkeys((*_parents(folder), *_parents(os.path.realpath(folder))))
    return (path for path in seen if os.path.lexists(path))


def _parents(folder: str) -> Iterator[str]:
    """The folders above an absolute path as it is written, the closest first."""
    while (above := os.path.dirname(folder.rstrip(os.sep)) or os.sep) != folder:
        yield above
        folder = above


def _cannot_be_swapped(folder: str) -> bool:
    """Whether only this user and root can rename entries of `folder`."""
    status = os.stat(folder)
    others = status.st_mode & _OTHERS_WRITE and not status.st_mode & stat.S_ISVTX  # sticky: owners alone rename
    return status.st_uid in (0, os.geteuid()) and not others


def is_below(path: str, folder: str) -> bool:
    """Whether an absolute path is `folder` or lies in it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


_MOST_BYTES = 8 * 2**20  # the built-in rules take some 300 KiB
_CHECKSUM_BYTES = 4


def cached(name: str, key: str, make: Callable[[], Any], is_sound: Callable[[Any], bool]) -> Any:
    """What `make` returns, or what the cache holds of that for `name` and `key`, where it `is_sound`.

    `name` tells what it is; `key` changes whenever that does.
    """
    if os.environ.get("CONVLINT_NO_CACHE"):
        return make()
    folder = None
    with suppress(OSError, ValueError):  # ValueError: a NUL in the path
        folder = opened_private(cache_folder())
    if folder is None:
        return make()
    try:
        # One file for each installation: several beside each other must not replace each other's at every run.
        here = crc32(os.fsencode(__file__))
        file = f"{name}-{__version__}-{sys.implementation.cache_tag}-{here:08x}.marshal"
        content = None
        with suppress(OSError):
            content = unpacked(read_private(folder, file, _MOST_BYTES), key)
        if content is None or not is_sound(content):
            content = make()
            with suppress(OSError, ValueError):  # a full disk, a read-only one, or what marshal does not know
                write_private(folder, file, packed(content, key))
        return content
    finally:
        os.close(folder)


def packed(content: Any, key: str) -> bytes:
    """The content of a cache file: a checksum, then the key and what is kept."""
    data = marshal.dumps((key, content))
    return _checksum(data) + data


def unpacked(raw: bytes, key: str) -> Any:
    """What is kept in a cache file's content; None where it is damaged, of another key, or holds anything else."""
    data = raw[_CHECKSUM_BYTES:]
    if raw[:_CHECKSUM_BYTES] != _checksum(data):  # what is damaged could bring the interpreter down
        return None
    try:
        stored = marshal.loads(data)
    except (ValueError, EOFError, TypeError):  # written by another version of Python
        return None
    match stored:
        case (str() as stored_key, content) if stored_key == key:
            return content
    return None


def _checksum(data: bytes) -> bytes:
    return crc32(data).to_bytes(_CHECKSUM_BYTES, "big")


def stamp(path: str) -> tuple[int, int]:
    """When a file was changed, and its size; zeros where it is not there."""
    try:
        status = os.stat(path)
    except OSError:  # Python can run without the sources
        return 0, 0
    return status.st_mtime_ns, status.st_size
