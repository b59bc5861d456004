"""The user's Python as it is to be read: from the disk, or as it has been edited and is not yet written."""

from __future__ import annotations

import io
import os
import tokenize
from collections.abc import Mapping

from convlint.errors import InputFault
from convlint.files.bounded_file import open_regular

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
