"""The events of a trace in Chrome's JSON, plain or packed by gzip, one at a time and within bounds of size."""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, BinaryIO, TypeGuard

from convlint.files.bounded_file import file_size, open_regular
from convlint.model.errors import InputFault

MOST_BYTES = 4 << 30  # unpacked
_MOST_UNPACKED, _FREE_BYTES = 300, 1 << 28  # times the size on disk, from so many bytes on; sound traces have 10 to 30
_MOST_VALUE = 6 << 20  # characters of one event, or of one entry beside them
_CHUNK = 4 << 20
_SNIFFED = 1 << 16
_ENGINE = re.compile(rb'\{\s*"Layers"\s*:|\[\s*\{\s*"count"\s*:')
_ARRAYS = {"traceEvents", "Layers"}
_KEPT = {"deviceProperties", "device_information"}
_SPACES = " \t\r\n"
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def is_trace(path: str) -> bool:
    """Whether a file looks like a trace, or like what trtexec says of an engine, by how it begins."""
    text = _beginning(path)
    return (
        (text[:1] == b"{" and (b'"traceEvents"' in text or b'"deviceProperties"' in text))
        or (text[:1] == b"[" and b'"ph"' in text)
        or is_engine(path)
    )


def is_engine(path: str) -> bool:
    """Whether a file looks like the layers of a TensorRT engine, or like their times."""
    return _ENGINE.match(_beginning(path)) is not None


def _beginning(path: str) -> bytes:
    """The first bytes of a file, unpacked; empty if it cannot be read."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return b""
    return _read_beginning(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=8)
def _read_beginning(path: str, _changed_ns: int, _size: int) -> bytes:
    """Cached until the file changes, since the format of each input is asked for several times."""
    try:
        with open_regular(path) as stream:
            start = stream.read(_SNIFFED)
    except InputFault:
        return b""
    if start[:2] == b"\x1f\x8b":
        try:
            start = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(start, _SNIFFED)
        except zlib.error:
            return b""
    return start.lstrip()


class TraceFile:
    """A trace, read once: `events` yields its events, and afterwards `top` holds the useful entries beside them.

    `others` counts events that are not objects, such as layers of an engine that are given by name only. `fault` says
    where a trace ends too early; everything before that was yielded.
    """

    def __init__(self, path: str) -> None:
        """Raises InputFault where it cannot be opened."""
        self.top: dict[str, Any] = {}
        self.fault, self.others = "", 0
        self._stream = open_regular(path)
        self._text = _Text(self._stream)

    def __enter__(self) -> TraceFile:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stream.close()

    def events(self) -> Iterator[dict[str, Any]]:
        """Each event that is an object. Raises InputFault for what is no trace at all."""
        text = self._text
        try:
            first = text.peek()
            if first == "[":
                yield from self._array()
            elif first == "{":
                text.take("{")
                while text.peek() != "}":
                    key = text.value()
                    text.take(":")
                    if key in _ARRAYS and text.peek() == "[":
                        yield from self._array()
                    elif key in _KEPT:
                        self.top[key] = text.value()
                    else:
                        text.value()
                    if text.peek() != "}":
                        text.take(",")
            else:
                raise InputFault("not a trace: no JSON object and no array")
        except _EndsEarly:
            self.fault = "it ends in the middle: what was recorded before that is read"

    def _array(self) -> Iterator[dict[str, Any]]:
        text = self._text
        text.take("[")
        while text.peek() != "]":
            event = text.value()
            if isinstance(event, dict):
                yield event
            else:
                self.others += 1
            if text.peek() != "]":
                text.take(",")
        text.take("]")


class _EndsEarly(Exception):
    """The text ends before the value does."""


def _unpacked(stream: BinaryIO) -> Iterator[bytes]:
    """The content of a gzip stream in pieces; of a truncated one, what can be had. Raises InputFault for garbage."""
    while True:
        inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        packed = stream.read(_CHUNK >> 2)
        while packed and not inflater.eof:
            try:
                yield inflater.decompress(packed, _CHUNK)
            except zlib.error as error:
                raise InputFault(f"not a sound trace: it cannot be unpacked ({error})") from None
            packed = inflater.unconsumed_tail or (b"" if inflater.eof else stream.read(_CHUNK >> 2))
        yield inflater.flush()
        if not inflater.unused_data.strip(b"\0"):
            return
        stream.seek(-len(inflater.unused_data), io.SEEK_CUR)  # files of gzip may stand one after the other


class _Text:
    """The text of a trace, read in chunks; values are taken from it one after the other."""

    def __init__(self, stream: BinaryIO) -> None:
        packed = stream.read(2) == b"\x1f\x8b"
        stream.seek(0)
        self._most = MOST_BYTES
        if packed:
            self._most = min(MOST_BYTES, max(_FREE_BYTES, _MOST_UNPACKED * file_size(stream)))
        self._chunks = _unpacked(stream) if packed else iter(lambda: stream.read(_CHUNK), b"")
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._buffer, self._at, self._read, self._over = "", 0, 0, False

    def peek(self) -> str:
        """The next character that is no space. Raises _EndsEarly where there is none."""
        if self._at < len(self._buffer) and (char := self._buffer[self._at]) not in _SPACES:
            return char
        while True:
            space = _SPACE.match(self._buffer, self._at)
            self._at = self._at if space is None else space.end()
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._more():
                raise _EndsEarly

    def take(self, char: str) -> None:
        """Skips that character. Raises InputFault if it is another one."""
        next_char = self.peek()
        if next_char != char:
            raise InputFault(f"not a sound trace: {next_char!r} where {char!r} should stand")
        self._at += 1

    def value(self) -> Any:
        """The next value. Raises InputFault where there is none, _EndsEarly where the text ends in it."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._buffer, self._at)
            except json.JSONDecodeError as error:
                # What ends with the buffer may go on in the file; what is wrong long before that end is wrong.
                if len(self._buffer) - self._at > _MOST_VALUE:
                    raise InputFault(f"not a sound trace: {error.msg}") from None
                if not self._more():
                    raise _EndsEarly from None
            except (RecursionError, ValueError):
                raise InputFault("not a sound trace: a value in it is nested too deeply or too long") from None
            else:
                if end < len(self._buffer) or not self._more():  # a number may go on
                    self._at = end
                    return value

    def _more(self) -> bool:
        """Reads the next piece; False at the end. Raises InputFault beyond the limit."""
        if self._over:
            return False
        chunk = next((chunk for chunk in self._chunks if chunk), b"")
        self._read += len(chunk)
        if self._read > self._most:
            raise InputFault(f"a trace of more than {self._most >> 20:,} MiB unpacked is not read")
        self._over = not chunk
        self._buffer, self._at = self._buffer[self._at :] + self._decoder.decode(chunk, final=self._over), 0
        return bool(chunk)


def listed(values: Mapping[str, Any], *names: str) -> Sequence[Any]:
    """The list that an event has by one of these names; an empty one where it has none."""
    value = next((values[name] for name in names if name in values), ())
    return value if isinstance(value, list) else ()


def is_count(value: Any) -> TypeGuard[int]:
    """Whether it is a whole number that counts something."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62


def text_at(values: Sequence[Any], place: int) -> str:
    """The text of the argument at a place; empty where there is none."""
    value = values[place] if place < len(values) else ""
    return value[:200] if isinstance(value, str) else ""
