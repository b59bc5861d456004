"""Members of zip archives that nobody vouches for: sizes are checked before and while they are unpacked."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from convlint.errors import InputFault
from convlint.readers.bounded_file import file_size, open_regular

LARGEST_DIRECTORY = 16 << 20  # bytes; zipfile reads the whole of it
_END = struct.Struct("<4s4H2LH")
_LOCATOR = struct.Struct("<4sLQL")
_FAULTS = (
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,
    RuntimeError,
    EOFError,
    OSError,
    ValueError,
    struct.error,
)


@contextmanager
def open_zip(path: str, kind: str) -> Iterator[zipfile.ZipFile]:
    """Opens a zip archive; `kind` names the format in errors. Raises InputFault."""
    with open_regular(path) as stream:
        if _directory_size(stream) > LARGEST_DIRECTORY:
            raise InputFault(f"not a {kind} file: its table of contents is too large")
        stream.seek(0)
        try:
            archive = zipfile.ZipFile(stream)
        except _FAULTS:
            raise InputFault(f"not a {kind} file: it is no zip archive, or a truncated one") from None
        with archive:
            yield archive


def read_member(archive: zipfile.ZipFile, name: str, most_bytes: int) -> bytes:
    """The content of one member, never more than `most_bytes`. Raises InputFault."""
    try:
        declared = archive.getinfo(name).file_size
        if declared > most_bytes:
            raise InputFault(f"{name} in the archive is {declared:,} bytes large; the limit is {most_bytes:,}")
        with archive.open(name) as member:
            content = member.read(most_bytes + 1)
    except KeyError:
        raise InputFault(f"the archive has no {name}") from None
    except _FAULTS as error:
        raise InputFault(f"{name} in the archive cannot be unpacked: {error}") from None
    if len(content) > most_bytes:
        raise InputFault(f"{name} in the archive unpacks to more than {most_bytes:,} bytes")
    return content


def _directory_size(stream: BinaryIO) -> int:
    """Bytes of the archive's central directory, as its end records declare them; 0 where there is none."""
    size = file_size(stream)
    start = max(size - 66_000, 0)
    stream.seek(start)
    tail = stream.read(66_000)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or at + _END.size > len(tail):
        return 0
    declared = int(_END.unpack_from(tail, at)[5])
    if declared != 0xFFFFFFFF or at < _LOCATOR.size:
        return declared
    signature, _, where, _ = _LOCATOR.unpack_from(tail, at - _LOCATOR.size)
    if signature != b"PK\x06\x07" or where >= size:
        return 0
    stream.seek(where)
    record = stream.read(56)
    return int(struct.unpack_from("<Q", record, 40)[0]) if len(record) == 56 else 0
