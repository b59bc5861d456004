"""Files that a cluster does not have: what of them can be sent there, and why the rest cannot."""

from __future__ import annotations

import os

from convlint.errors import InputFault
from convlint.files.bounded_file import open_regular
from convlint.readers.inputs import Input

_MIB = 1 << 20
_INDEX = ".safetensors.index.json"
_ABSENT = "is not on the cluster's disks"


def content_of(source: Input, most: int, room: int | None = None) -> bytes | None:
    """The content of a file, to be sent. None where it is sound, but takes more than `room`; None is room for any.

    Raises InputFault for one of more than `most` bytes, and what cannot be read or is more than one file.
    """
    if source.name.lower().endswith(_INDEX):
        raise InputFault(f"{_ABSENT}, and cannot be sent there: its shards are files of their own")
    with open_regular(source.name) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise InputFault(f"{_ABSENT}, and with {size / _MIB:.1f} MiB larger than --ship-limit ({most // _MIB} MiB)")
        if room is not None and size > room:
            return None
        return file.read(size)
