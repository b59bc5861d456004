"""Reads members of untrusted zip archives; sizes are checked before and while they are unpacked."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

from convlint.files.bounded_file import regular_descriptor
from convlint.model.errors import InputFault, shown

LARGEST_DIRECTORY = 4 << 20  # bytes; zipfile reads the whole of it
MOST_MEMBERS = 20_000  # a program's weights are one member each
LARGEST_EXTRA = 1024  # bytes of a member's extra field, which zipfile parses in quadratic time
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENTRY = struct.Struct("<4s24xHHH12x")  # of the directory: signature, lengths of name, extra and comment
_LOCAL_HEADER = 30  # bytes, at least, before a member's content
_FAULTS = (  # what zipfile raises for broken archives
    zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, OverflowError, ValueError,
    struct.error,
)  # fmt: skip


@contextmanager
def open_zip(path: str, kind: str) -> Iterator[zipfile.ZipFile]:
    """Opens a zip archive within limits; `kind` names the format in errors. Raises InputFault."""
    with _Guarded(io.FileIO(regular_descriptor(path)), kind) as guarded:
        try:
            archive = zipfile.ZipFile(guarded)
        except _FAULTS:
            raise InputFault(f"not a {kind} file: it is no zip archive, or a truncated one") from None
        guarded.opening = False
        with archive:
            _check_members(archive, kind)
            yield archive


def read_member(archive: zipfile.ZipFile, name: str, most_bytes: int) -> bytes:
    """The content of one member. Raises InputFault, also for more than `most_bytes`."""
    label = shown(name)
    try:
        member = archive.getinfo(name)
    except KeyError:
        raise InputFault(f"the archive has no {label}") from None
    declared = max(member.file_size, member.compress_size)
    if declared > most_bytes:
        raise InputFault(f"{label} in the archive is {declared:,} bytes large; the limit is {most_bytes:,}")
    if member.flag_bits & 1:
        raise InputFault(f"{label} in the archive is encrypted")
    if member.compress_type not in _METHODS:
        raise InputFault(f"{label} in the archive is packed by method {member.compress_type}, not stored or deflated")
    try:
        with archive.open(member) as stream:
            content = stream.read(most_bytes + 1)  # the declared size may be wrong
    except _FAULTS as error:
        raise InputFault(f"{label} in the archive cannot be unpacked: {shown(str(error))}") from None
    if len(content) > most_bytes:
        raise InputFault(f"{label} in the archive unpacks to more than {most_bytes:,} bytes")
    return content


class _Guarded(io.BufferedReader):
    """The archive's file, which refuses a directory that is too large while zipfile opens the archive.

    zipfile reads and parses the whole directory in its constructor, so that no limit can be set later.
    """

    def __init__(self, raw: io.FileIO, kind: str) -> None:
        super().__init__(raw)
        self.kind, self.opening = kind, True

    def read(self, size: int | None = -1, /) -> bytes:
        if not self.opening:
            return super().read(size)
        if size is not None and size > LARGEST_DIRECTORY:
            raise self._fault("its table of contents is too large")
        content = super().read(size)
        if content.startswith(b"PK\x01\x02"):
            self._check_directory(content)
        return content

    def _check_directory(self, content: bytes) -> None:
        at = count = 0
        while at + _ENTRY.size <= len(content):
            signature, name, extra, comment = _ENTRY.unpack_from(content, at)
            if signature != b"PK\x01\x02":
                return
            count += 1
            if count > MOST_MEMBERS:
                raise self._fault(f"it has more than {MOST_MEMBERS:,} members")
            if extra > LARGEST_EXTRA:
                raise self._fault(f"a member's entry adds {extra:,} bytes; the limit is {LARGEST_EXTRA:,}")
            at += _ENTRY.size + name + extra + comment

    def _fault(self, problem: str) -> InputFault:
        return InputFault(f"not a {self.kind} file: {problem}")


def _check_members(archive: zipfile.ZipFile, kind: str) -> None:
    """Raises InputFault for members that programs would read differently: two of one name, or two that overlap."""
    members = archive.infolist()
    names: set[str] = set()
    for member in members:
        if member.filename in names:
            raise InputFault(f"not a {kind} file: it has two members {shown(member.filename)!r}")
        names.add(member.filename)
    placed = sorted((member.header_offset, member.compress_size, member.filename) for member in members)
    for (start, size, name), (following, _, other) in pairwise(placed):
        if start + _LOCAL_HEADER + size > following:
            raise InputFault(f"not a {kind} file: {shown(name)!r} and {shown(other)!r} in it overlap")
