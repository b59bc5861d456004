"""Reading safetensors checkpoints: the header's shapes alone, no weights and no dependency.

A checkpoint knows K, R, S and the channels per group of each convolution, not its input: H, W, strides and padding
stay unknown, and so does C where the weight may well belong to a grouped convolution.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from convlint.errors import InputFault, shown
from convlint.files.bounded_file import open_regular
from convlint.model.layer import ConvLayer, Dtype
from convlint.model.network import Network
from convlint.readers import Reader, ReadOptions
from convlint.readers.safetensors.header import MOST_TENSORS, Allowance, Header, read_header
from convlint.readers.untrusted.bounded_json import MOST_BYTES, parse
from convlint.readers.untrusted.limits import MOST_MESSAGES, MOST_SIZE, refuse_layers
from convlint.report import InputError

_DTYPES = {
    "F64": Dtype.fp64, "F32": Dtype.fp32, "F16": Dtype.fp16, "BF16": Dtype.bf16, "I8": Dtype.int8, "U8": Dtype.int8,
    "F8_E4M3": Dtype.fp8, "F8_E5M2": Dtype.fp8, "F8_E4M3FNUZ": Dtype.fp8, "F8_E5M2FNUZ": Dtype.fp8,
}  # fmt: skip
_WEIGHT = re.compile(r"(?:^|[./])(?:weight|kernel|filters?|\w+_weight|weight_v)$")
_LAST_CHANNELS = re.compile(r"(?:^|[./])kernel$")  # Flax and Keras keep filters as R, S, C, K
_SHARD = re.compile(r"[^/\\\x00]+\.safetensors")
_WIDE = 64  # channels per group that a grouped convolution hardly has
MOST_SHARDS = 1_000


def read(path: str, options: ReadOptions) -> tuple[Network | None, tuple[InputError, ...]]:
    """Every 3- to 5-dimensional weight as a convolution of unknown input size, in the order of the file."""
    try:
        if path.lower().endswith(".json"):
            return _read_index(path, options)
        layers = _layers([read_header(path, Allowance())], options)
    except InputFault as fault:
        return None, (InputError(path=path, message=fault.message),)
    return Network(path=path, layers=layers, weights_only=True), ()


def _read_index(path: str, options: ReadOptions) -> tuple[Network | None, tuple[InputError, ...]]:
    """A checkpoint in several files, through the index that lists them. Raises InputFault."""
    with open_regular(path) as stream:
        index = parse(stream.read(MOST_BYTES + 1), "the index")
    weight_map = index.get("weight_map") if index.is_object else None
    if weight_map is None or not weight_map.is_object:
        raise InputFault("not an index of safetensors files: it has no weight_map")
    if len(weight_map.value) > MOST_TENSORS:
        raise weight_map.fault(f"has more than {MOST_TENSORS:,} tensors, the limit for one checkpoint")
    shards: set[str] = set()
    for _, named in weight_map.items():
        name = named.text()
        if not _SHARD.fullmatch(name) or name.startswith(".."):
            raise named.fault(f"names {shown(name)!r}, which is not a safetensors file beside it: refused")
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
    sizes = {shape: _sizes(shape, outputs) for shape in shapes}  # a network repeats a few shapes many times
    biased = {name for header in headers for name in header.tensors if name.endswith("bias")}
    layers = []
    for name, dtype, shape, header in weights:
        stem, suffix = _split(name)
        layers.append(
            ConvLayer(
                name=stem, node=name, path=header.path, N=options.batch, dtype=_DTYPES.get(dtype),
                bias=f"{name[: len(name) - suffix]}bias" in biased, **sizes[shape],
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


READER = Reader(read=read)
