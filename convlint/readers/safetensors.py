"""The reader of weights in safetensors: reads headers alone, and tells convolutions by the shapes of their weights."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from convlint.files.bounded_file import file_size, open_regular
from convlint.model.errors import InputFault, shown
from convlint.model.layer import ConvLayer, Dtype
from convlint.model.network import Network
from convlint.model.report import InputError
from convlint.readers import Outcome, Reader, ReadOptions
from convlint.readers.bounded_json import (
    MOST_AXES,
    MOST_BYTES,
    MOST_MESSAGES,
    MOST_SIZE,
    MOST_TEXT,
    Node,
    described,
    parse,
    refuse_layers,
)

MOST_TENSORS = 50_000  # of one checkpoint, all of its files together
_LARGEST_NUMBER = 2**63 - 1
# bits of an element; the size of tensors with other dtypes is not checked
_BITS: Mapping[str, int] = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32,
    "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip


class Allowance(Struct):
    """The tensors and bytes of headers that the files of a checkpoint may still have, together."""

    tensors: int = MOST_TENSORS
    header_bytes: int = MOST_BYTES
    exceeded: bool = False

    def take(self, *, tensors: int = 0, header_bytes: int = 0) -> None:
        """Subtracts the tensors and bytes of a file. Raises InputFault where too few are left."""
        self.tensors -= tensors
        self.header_bytes -= header_bytes
        self.exceeded = self.tensors < 0 or self.header_bytes < 0
        if self.tensors < 0:
            raise InputFault(f"the checkpoint has more than {MOST_TENSORS:,} tensors, the limit")
        if self.header_bytes < 0:
            raise InputFault(f"its header of {header_bytes:,} bytes is larger than {MOST_BYTES >> 20} MiB, the limit")


class Header(Struct, frozen=True, kw_only=True):
    """The tensors of one file, dtype and shape by name, and whether filters have their channels last."""

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
    """dtype, shape, and where the bytes begin and end. Raises InputFault where these contradict each other."""
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
    """Raises InputFault unless each byte behind the header belongs to exactly one tensor, as the format demands."""
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


_DTYPES = {
    "F64": Dtype.fp64, "F32": Dtype.fp32, "F16": Dtype.fp16, "BF16": Dtype.bf16, "I8": Dtype.int8, "U8": Dtype.int8,
    "F8_E4M3": Dtype.fp8, "F8_E5M2": Dtype.fp8, "F8_E4M3FNUZ": Dtype.fp8, "F8_E5M2FNUZ": Dtype.fp8,
}  # fmt: skip
# weight_norm keeps a weight's direction, which has its shape, as weight_v or original1; spectral_norm and pruning keep
# what they change as weight_orig or original.
_PARAMETRIZED = re.compile(r"parametrizations\.weight\.original1?$")
_WEIGHT = re.compile(
    r"(?:^|[./])(?:(?:weight|kernel|filters?|\w+_weight|weight_v|weight_orig)$|" + _PARAMETRIZED.pattern + ")"
)
_LAST_CHANNELS = re.compile(r"(?:^|[./])kernel$")  # Flax and Keras keep filters as R, S, C, K
_SHARD = re.compile(r"[^/\\\x00]+\.safetensors")
_WIDE = 64  # channels per group; hardly any grouped convolution has as many
_COLOURS = 4
_LONGEST = 10  # digits of a number in a name
MOST_SHARDS = 1_000


def read(path: str, options: ReadOptions) -> Outcome:
    """Each weight of 3 to 5 dimensions as a convolution of unknown input size, in the order of the file."""
    try:
        if path.lower().endswith(".json"):
            return _read_index(path, options)
        layers = _layers([read_header(path, Allowance())], options)
    except InputFault as fault:
        return None, (InputError(path=path, message=fault.message),)
    return Network(path=path, layers=layers, weights_only=True), ()


def _read_index(path: str, options: ReadOptions) -> Outcome:
    """A checkpoint in several files, by the index that lists them. Raises InputFault."""
    with open_regular(path) as stream:
        index = parse(stream.read(MOST_BYTES + 1), "the index")
    weight_map = index.get("weight_map") if index.is_object else None
    if weight_map is None or not weight_map.is_object:
        raise InputFault("not an index of safetensors files: it has no weight_map")
    if len(weight_map.value) > MOST_TENSORS:
        raise weight_map.fault(f"has more than {MOST_TENSORS:,} tensors, the limit for one checkpoint")
    shards: set[str] = set()
    for _, node in weight_map.items():
        name = node.text()
        if not _SHARD.fullmatch(name) or name.startswith(".."):  # an index must not lead to files elsewhere
            raise node.fault(f"names {shown(name)!r}, which is not a safetensors file beside it: refused")
        shards.add(name)
    if len(shards) > MOST_SHARDS:
        raise weight_map.fault(f"names more than {MOST_SHARDS:,} files, the limit for one checkpoint")
    headers: list[Header] = []
    errors: list[InputError] = []
    allowance = Allowance()
    seen: set[str] = set()
    for name in sorted(shards):
        shard = str(Path(path).parent / name)
        try:
            header = read_header(shard, allowance)
            twice = next((tensor for tensor in header.tensors if tensor in seen), None)
            if twice is not None:
                raise InputFault(f"holds the tensor {shown(twice)!r}, which another file of the checkpoint holds")
            seen.update(header.tensors)
            headers.append(header)
        except InputFault as fault:
            errors.append(InputError(path=shard, message=fault.message))
            if allowance.exceeded or len(errors) >= MOST_MESSAGES:
                break
    return Network(path=path, layers=_layers(headers, options), weights_only=True), tuple(errors)


def _layers(headers: Sequence[Header], options: ReadOptions) -> tuple[ConvLayer, ...]:
    """The convolutions of a checkpoint. Raises InputFault where a weight has no element, or there are too many."""
    weights: list[tuple[str, str, tuple[int, ...], Header]] = []
    for header in headers:
        for name, (dtype, shape) in header.tensors.items():
            if 3 <= len(shape) <= 5 and _WEIGHT.search(name):
                if not all(1 <= size <= MOST_SIZE for size in shape):
                    raise InputFault(f"the weight {shown(name)!r} in its header has the shape {list(shape)}")
                if header.last_channels or _LAST_CHANNELS.search(name):
                    shape = (shape[-1], shape[-2], *shape[:-2])
                weights.append((name, dtype, shape, header))
    refuse_layers(len(weights))
    shapes = {shape for _, _, shape, _ in weights}
    outputs = {shape[0] for shape in shapes}
    linear = {size for header in headers for _, shape in header.tensors.values() if len(shape) == 2 for size in shape}
    gray = _of_gray_images({name: shape for name, _, shape, _ in weights}, linear)
    sizes = {shape: _sizes(shape, outputs) for shape in shapes}  # a network repeats a few shapes many times
    # A weight without a bias of the same name beside it has none, as torch saves all parameters of a layer.
    biased = {name for header in headers for name in header.tensors if name.endswith("bias")}
    layers = []
    for name, dtype, shape, header in weights:
        stem, suffix = _split(name)
        layers.append(
            ConvLayer(
                name=stem, node=name, path=header.path, N=options.batch, dtype=_DTYPES.get(dtype),
                bias=f"{name[: len(name) - suffix]}bias" in biased, **sizes[shape] | gray.get(name, {}),
            )
        )  # fmt: skip
    return tuple(layers)


def _of_gray_images(shape_of: Mapping[str, tuple[int, ...]], linear: Collection[int]) -> dict[str, dict[str, Any]]:
    """What the first filter has instead of the fields of `_sizes`, by its name, where that has one channel.

    It is no depthwise one where nothing in the file writes channels for it, and may be either where something does, a
    layer or one of the `linear` widths; unless another filter reads the colours of images.
    """
    shapes = set(shape_of.values())
    if not shapes or any(1 < channels <= _COLOURS for _, channels, *_ in shapes):
        return {}
    name = min(shape_of, key=_in_order)
    K, channels, *_ = shape_of[name]
    if channels > 1 or K == 1:
        return {}
    is_written = K in linear or any(shape[0] == K and shape[1] > 1 for shape in shapes)
    return {name: {"C": None, "groups": 1} if is_written else {"C": 1, "groups": 1, "first": True}}


def _in_order(name: str) -> list[tuple[int, str]]:
    """A key that sorts numbers in names as numbers."""
    parts: list[str] = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(int(part), "") if part.isdecimal() and len(part) < _LONGEST else (0, part) for part in parts]


def _sizes(shape: tuple[int, ...], outputs: set[int]) -> dict[str, Any]:
    """The fields that a weight's shape gives: the filter, K, and C and groups as far as they follow from it."""
    K, channels, *taps = shape
    fields: dict[str, Any] = {
        "dims": len(taps),
        "K": K,
        "R": taps[-2] if len(taps) > 1 else 1,
        "S": taps[-1],
        "PadW": None,
        "PadW_end": None,
        "first": channels == 3,  # three channels are an image's
    }
    if len(taps) == 1:
        fields |= {"H": 1, "P": 1}
    else:
        fields |= {"PadH": None, "PadH_end": None}
    if len(taps) == 3:
        fields |= {"T": taps[0], "D": None, "Z": None, "PadD": None, "PadD_end": None}
    if channels == 1 and K > 1:
        fields |= {"C": K, "groups": K}  # depthwise
    elif channels == 3 or channels >= _WIDE or channels in outputs or all(tap == 1 for tap in taps):
        fields["C"] = channels
    else:
        fields["C"] = None  # few channels, which no layer of the file writes: most likely those of one group
    return fields


def _split(name: str) -> tuple[str, int]:
    """The layer's name, and how many characters at the end of the tensor's name say that it is the weight."""
    last = name[max(name.rfind("."), name.rfind("/")) + 1 :]
    suffix = len("weight") if last.endswith("weight") else len(last)
    if match := _PARAMETRIZED.search(name):
        last = match[0]
        suffix = len(last)
    at = len(name) - len(last) - 1
    return (name[:at].replace("/", ".") if at > 0 else name), suffix


READER = Reader(read=read)
