"""What is worked out from files that rarely change, kept as marshal has it where nobody but the user can write."""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from zlib import crc32

from convlint import __version__
from convlint.files.private_folder import cache_folder, opened_private, read_private, write_private

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
