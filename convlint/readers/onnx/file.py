"""Reading an ONNX file without its weights: large tensors are cut out before anything is parsed.

A graph needs the shapes of its weights, never their values, so a file of gigabytes is read in megabytes. The same
pass counts what the file holds and stops where no real graph would be. External data is never opened.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from convlint.errors import InputFault
from convlint.files.bounded_file import file_size, open_regular

if TYPE_CHECKING:
    import onnx

MOST_NODES = 100_000
MOST_FIELDS = 2_000_000
SMALL_FILE = 1 << 18  # bytes; a smaller file cannot hold enough to hurt, so it is parsed as it is
LARGE_FIELD = 1 << 14  # bytes; constants that hold a shape are far smaller
LARGE_TEXT = 1 << 20
DEEPEST = 60
_WINDOW = 1 << 24  # bytes of the file that may stay in memory behind the place that is read

# message -> field number -> message, from onnx.proto; other fields are copied as they are
_FIELDS: dict[str, dict[int, str]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse_tensor"},
    "function": {7: "node"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse_tensor", 23: "sparse_tensor"},
    "sparse_tensor": {1: "tensor", 2: "tensor"},
}
_TENSOR_DATA = frozenset({4, 5, 6, 7, 9, 10, 11})
_EXTERNAL = 1  # TensorProto.data_location


def load(path: str) -> onnx.ModelProto:
    """The model in `path`, without the values of its large tensors. Raises InputFault."""
    import onnx
    from google.protobuf.message import DecodeError

    with open_regular(path) as stream:
        size = file_size(stream)
        if size == 0:
            raise InputFault("not an ONNX model: the file is empty")
        if size <= SMALL_FILE:
            content = stream.read(SMALL_FILE)
        else:
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as view:
                content = b"".join(_Slimmer(mapped).message(view, 0, size, "model", 0))
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError:
        raise InputFault("not an ONNX model: it cannot be decoded; the file is truncated or of another kind") from None
    if not model.graph.node:
        raise InputFault("not an ONNX model: it holds no graph")
    return model


def text(value: str | bytes) -> str:
    """A string of the file; protobuf hands over what is not UTF-8 as bytes."""
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def refuse_outside_data(tensors: Any) -> None:
    """Raises InputFault where a tensor keeps its data outside the model's folder; nothing is opened to find out."""
    for tensor in tensors:
        if tensor.data_location != _EXTERNAL:
            continue
        for entry in tensor.external_data:
            location = text(entry.value).replace("\\", "/")
            if entry.key == "location" and (location.startswith("/") or ":" in location or ".." in location.split("/")):
                raise InputFault(
                    f"tensor {tensor.name!r} keeps its data in {entry.value!r}, outside the model's folder: refused"
                )


class _Slimmer:
    """Copies a serialized message without the data of large tensors, counting as it goes."""

    def __init__(self, mapped: mmap.mmap) -> None:
        self.nodes = 0
        self.fields = 0
        self._mapped = mapped
        self._let_go = 0  # bytes of the file whose memory was given back

    def message(self, view: memoryview, start: int, end: int, kind: str, depth: int) -> list[bytes]:
        """The serialized parts of one message without its large data. Raises InputFault."""
        if depth > DEEPEST:
            raise InputFault(f"the graph nests deeper than {DEEPEST} levels")
        children = _FIELDS.get(kind, {})
        kept: list[bytes] = []
        for field, head, body, after in self._walk(view, start, end):
            child = children.get(field)
            if body is None:
                kept.append(bytes(view[head:after]))
            elif child is not None:
                if child == "node":
                    self._count_node()
                parts = self.message(view, body, after, child, depth + 1)
                kept += [_varint(field << 3 | 2), _varint(sum(map(len, parts))), *parts]
            elif after - body <= (LARGE_FIELD if kind == "tensor" and field in _TENSOR_DATA else LARGE_TEXT):
                kept.append(bytes(view[head:after]))
        return [b"".join(kept)]

    def _count_node(self) -> None:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise InputFault(f"the graph has more than {MOST_NODES:,} nodes; no network that convlint can judge has")

    def _walk(self, view: memoryview, start: int, end: int) -> Iterator[tuple[int, int, int | None, int]]:
        """The fields of a message: number, where the tag starts, where a length-delimited body starts, the end."""
        position = start
        while position < end:
            self.fields += 1
            if self.fields > MOST_FIELDS:
                raise InputFault("the graph has more parts than any network that convlint can judge")
            tag, body = _read_varint(view, position, end)
            wire = tag & 7
            content: int | None = None
            if wire == 2:
                length, content = _read_varint(view, body, end)
                after = content + length
            elif wire == 0:
                _, after = _read_varint(view, body, end)
            elif wire in (1, 5):
                after = body + (8 if wire == 1 else 4)
            else:
                raise InputFault("not an ONNX model: it cannot be decoded")
            if after > end:
                raise InputFault("not an ONNX model: it ends too early; the file is truncated or of another kind")
            yield tag >> 3, position, content, after
            position = after
            if position - self._let_go > _WINDOW:
                behind = self._let_go, position // mmap.PAGESIZE * mmap.PAGESIZE
                self._let_go = behind[1]
                if hasattr(self._mapped, "madvise"):
                    self._mapped.madvise(mmap.MADV_DONTNEED, behind[0], behind[1] - behind[0])


def _read_varint(view: memoryview, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while position < end and shift < 70:
        byte = view[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise InputFault("not an ONNX model: it cannot be decoded; the file is truncated or of another kind")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
