"""The header of one safetensors file: its tensors, each checked against its own shape, the others and the file."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from msgspec import Struct, field

from convlint.errors import InputFault, shown
from convlint.files.bounded_file import file_size, open_regular
from convlint.readers.untrusted.bounded_json import MOST_BYTES, parse
from convlint.readers.untrusted.json_tree import Node, described
from convlint.readers.untrusted.limits import MOST_AXES, MOST_TEXT

MOST_TENSORS = 50_000  # of one checkpoint, all of its files together
_LARGEST_NUMBER = 2**63 - 1
# bits of an element; a dtype that is not here is taken as it comes
_BITS: Mapping[str, int] = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32,
    "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip


class Allowance(Struct):
    """What is left for the files of one checkpoint."""

    tensors: int = MOST_TENSORS
    header_bytes: int = MOST_BYTES
    exceeded: bool = False

    def take(self, *, tensors: int = 0, header_bytes: int = 0) -> None:
        """Takes a part of it. Raises InputFault where too little is left."""
        self.tensors -= tensors
        self.header_bytes -= header_bytes
        self.exceeded = self.tensors < 0 or self.header_bytes < 0
        if self.tensors < 0:
            raise InputFault(f"the checkpoint has more than {MOST_TENSORS:,} tensors, the limit")
        if self.header_bytes < 0:
            raise InputFault(f"its header of {header_bytes:,} bytes is larger than {MOST_BYTES >> 20} MiB, the limit")


class Header(Struct, frozen=True, kw_only=True):
    """The tensors of one file: dtype and shape by name, and whether filters keep their channels last."""

    path: str
    last_channels: bool = False
    tensors: Mapping[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)


def read_header(path: str, allowance: Allowance) -> Header:
    """The header of one file. Raises InputFault."""
    with open_regular(path) as stream:
        size = file_size(stream)
        start = stream.read(8)
        length = int.from_bytes(start, "little")
        if len(start) < 8 or length < 2:
            raise InputFault("not a safetensors file: it is too short")
        if length > size - 8:
            raise InputFault(f"not a safetensors file: it claims a header of {length:,} bytes and has {size:,} in all")
        allowance.take(header_bytes=length)
        content = stream.read(length)
    header = parse(content, "the header")
    if not header.is_object:
        raise InputFault("not a safetensors file: its header is no object")
    allowance.take(tensors=len(header.value))
    tensors: dict[str, tuple[str, tuple[int, ...]]] = {}
    ranges: list[tuple[int, int, str]] = []
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        if len(name) > MOST_TEXT or not name.isprintable():
            raise InputFault(
                f"the header names a tensor {shown(name)!r}: more than {MOST_TEXT} characters, or not text"
            )
        dtype, shape, begin, end = _tensor(tensor)
        tensors[name] = dtype, shape
        ranges.append((begin, end, name))
    _check_ranges(ranges, size - 8 - length, header)
    return Header(path=path, last_channels=_metadata(header).get("format") in ("flax", "tf"), tensors=tensors)


def _metadata(header: Node) -> dict[str, str]:
    given = header.get("__metadata__")
    return {} if given is None else {key: value.text(MOST_BYTES) for key, value in given.items()}


def _tensor(tensor: Node) -> tuple[str, tuple[int, ...], int, int]:
    """dtype, shape, and where its bytes begin and end; all of which must agree."""
    dtype = tensor.at("dtype").text()
    shape = tuple([size.integer(0, _LARGEST_NUMBER) for size in tensor.at("shape").elements(MOST_AXES)])
    offsets = tensor.at("data_offsets")
    if not offsets.is_list or len(offsets.value) != 2:
        raise offsets.must_be("a list of two numbers")
    begin, end = (offset.integer(0, _LARGEST_NUMBER) for offset in offsets.elements())
    if begin > end:
        raise offsets.fault(f"must not end at {end:,} before it begins at {begin:,}")
    bits = _BITS.get(dtype)
    if bits is not None and prod(shape) * bits != 8 * (end - begin):
        needed = -(-prod(shape) * bits // 8)
        raise offsets.fault(
            f"spans {end - begin:,} bytes, but {dtype} of shape {list(shape)} takes {described(needed)}"
        )
    return dtype, shape, begin, end


def _check_ranges(ranges: list[tuple[int, int, str]], size: int, header: Node) -> None:
    """The format's own rule: the tensors fill what follows the header, each byte belongs to one."""
    at = 0
    for begin, end, name in sorted(ranges):
        if begin != at:
            what = "overlaps the tensor before it" if begin < at else "leaves bytes before it that belong to none"
            raise header.at(name).at("data_offsets").fault(f"begins at byte {begin:,}, not {at:,}: it {what}")
        at = end
    if at > size:
        raise InputFault(f"the file is truncated: its tensors end at byte {at:,} of its data, it has {size:,}")
    if at < size:
        raise InputFault(f"the file has {size - at:,} bytes behind its last tensor that belong to none")
