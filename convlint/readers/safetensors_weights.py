"""Reading safetensors checkpoints: the header's shapes alone, no weights and no dependency.

A checkpoint knows K, R, S and the channels per group of each convolution, not its input: H, W, strides and padding
stay unknown, and so does C where the weight may well belong to a grouped convolution.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from convlint.errors import InputFault
from convlint.model import ConvLayer, Dtype, Network
from convlint.readers.bounded_file import file_size, open_regular
from convlint.readers.bounded_json import MOST_BYTES, entry, parse
from convlint.report import InputError

if TYPE_CHECKING:
    from convlint.readers import ReadOptions

_DTYPES = {
    "F64": Dtype.fp64, "F32": Dtype.fp32, "F16": Dtype.fp16, "BF16": Dtype.bf16, "I8": Dtype.int8, "U8": Dtype.int8,
    "F8_E4M3": Dtype.fp8, "F8_E5M2": Dtype.fp8, "F8_E4M3FNUZ": Dtype.fp8, "F8_E5M2FNUZ": Dtype.fp8,
}  # fmt: skip
_WEIGHT = re.compile(r"(?:^|[./])(?:weight|kernel|filters?|\w+_weight|weight_v)$")
_LAST_CHANNELS = re.compile(r"(?:^|[./])kernel$")  # Flax and Keras keep filters as R, S, C, K
_SHARD = re.compile(r"[^/\\\x00]+\.safetensors")
_WIDE = 64  # channels per group that a grouped convolution hardly has


def read(path: str, options: ReadOptions) -> tuple[Network | None, tuple[InputError, ...]]:
    """Every 3- to 5-dimensional weight as a convolution of unknown input size, in the order of the file."""
    try:
        if path.lower().endswith(".json"):
            return _read_index(path, options)
        layers = _layers(_header(path), path, options)
    except InputFault as fault:
        return None, (InputError(path=path, message=fault.message),)
    return Network(path=path, layers=layers), ()


def _read_index(path: str, options: ReadOptions) -> tuple[Network | None, tuple[InputError, ...]]:
    """A checkpoint in several files, through the index that lists them. Raises InputFault."""
    with open_regular(path) as stream:
        index = parse(stream.read(MOST_BYTES + 1), "the index")
    weight_map = entry(index, "weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(name, str) for name in weight_map.values()):
        raise InputFault("not an index of safetensors files: it has no weight_map")
    shards = sorted(set(weight_map.values()))
    for name in shards:
        if not _SHARD.fullmatch(name) or name.startswith(".."):
            raise InputFault(f"the index names {name[:100]!r}, which is not a safetensors file beside it: refused")
    tensors: dict[str, Any] = {}
    places: dict[str, str] = {}
    errors: list[InputError] = []
    for name in shards:
        shard = str(Path(path).parent / name)
        try:
            found = _header(shard)
        except InputFault as fault:
            errors.append(InputError(path=shard, message=fault.message))
            continue
        tensors |= found
        places |= dict.fromkeys(found, shard)
    return Network(path=path, layers=_layers(tensors, path, options, places)), tuple(errors)


def _header(path: str) -> dict[str, Any]:
    """The header of one file: tensors by name. Raises InputFault."""
    with open_regular(path) as stream:
        size = file_size(stream)
        start = stream.read(8)
        length = int.from_bytes(start, "little")
        if len(start) < 8 or length < 2:
            raise InputFault("not a safetensors file: it is too short")
        if length > size - 8:
            raise InputFault(f"not a safetensors file: it claims a header of {length:,} bytes and has {size:,} in all")
        if length > MOST_BYTES:
            raise InputFault(f"its header of {length:,} bytes is larger than {MOST_BYTES >> 20} MiB")
        content = stream.read(length)
    header = parse(content, "the header")
    if not isinstance(header, dict):
        raise InputFault("not a safetensors file: its header is no object")
    metadata = header.pop("__metadata__", None)
    try:
        end = max([tensor["data_offsets"][1] for tensor in header.values()], default=0)
        shapes_fit = all(type(tensor["shape"]) is list for tensor in header.values()) and type(end) is int
    except (TypeError, KeyError, IndexError):
        shapes_fit = False
    if not shapes_fit:
        raise InputFault("not a safetensors file: a tensor in its header has no shape or no data_offsets")
    if isinstance(metadata, dict):
        header["__metadata__"] = metadata
    if 8 + length + end > size:
        raise InputFault(f"the file is truncated: its tensors end at byte {8 + length + end:,}, it has {size:,}")
    return header


def _layers(
    header: Mapping[str, Any], path: str, options: ReadOptions, places: Mapping[str, str] | None = None
) -> tuple[ConvLayer, ...]:
    """The convolutions of a header. Raises InputFault where a shape is no list of sizes."""
    last_channels = entry(header, "__metadata__", "format") in ("flax", "tf")
    weights: list[tuple[str, Any, tuple[int, ...]]] = []
    for name, tensor in header.items():
        shape = tensor.get("shape", ())
        if 3 <= len(shape) <= 5 and _WEIGHT.search(name):
            if last_channels or _LAST_CHANNELS.search(name):
                shape = [shape[-1], shape[-2], *shape[:-2]]
            weights.append((name, tensor.get("dtype"), tuple(shape)))
    shapes = {shape for _, _, shape in weights}
    for shape in shapes:
        if not all(type(size) is int and 0 < size < 2**31 for size in shape):
            raise InputFault(f"a tensor in its header has the shape {str(list(shape))[:100]}")
    outputs = {shape[0] for shape in shapes}
    sizes = {shape: _sizes(shape, outputs) for shape in shapes}  # a network repeats a few shapes many times
    N = options.batch
    layers = []
    for name, dtype, shape in weights:
        stem, suffix = _split(name)
        layers.append(
            ConvLayer(
                name=stem, node=name, path=places[name] if places else path, N=N, dtype=_DTYPES.get(dtype),
                bias=f"{name[: len(name) - suffix]}bias" in header, **sizes[shape],
            )
        )  # fmt: skip
    return tuple(layers)


def _sizes(shape: tuple[int, ...], outputs: set[int]) -> dict[str, Any]:
    """The fields that a weight's shape gives: K, C and groups as far as they can be told, and the filter."""
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
        fields["C"] = None  # narrow, and nothing in the file writes so many: most likely one of several groups
    return fields


def _split(name: str) -> tuple[str, int]:
    """The layer's name, and how many characters of the tensor's name say that it is the weight."""
    at = max(name.rfind("."), name.rfind("/"))
    last = name[at + 1 :]
    suffix = len("weight") if last.endswith("weight") else len(last)
    return (name[:at].replace("/", ".") if at > 0 else name), suffix
