"""The format of a GPU's file, <id>.yaml in this folder: read, checked, and turned into the fields of Gpu.

Every number is `{value: ..., source: ...}`. A source is a name from the file's `sources`, or `derived`, and may go on
after a comma. A rate or size that no source confirms is left out, and `notes` says so. Peaks are dense, in TFLOPS.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import yaml

from convlint.errors import ConvlintError
from convlint.model.version import Version

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
ARCHITECTURES: Final = ("kepler", "maxwell", "pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell")

# Where each dtype's Tensor Core rate stands among the peaks; fp32 has none, it is multiplied as tf32.
TENSOR_PEAKS: Final = {
    "fp64": "fp64_tensor", "tf32": "tf32_tensor", "fp16": "fp16_tensor_fp32acc",
    "bf16": "bf16_tensor", "fp8": "fp8_tensor", "int8": "int8_tensor",
}  # fmt: skip
_PEAKS: Final = {"fp64", "fp32", "fp16", "int8", "fp16_tensor_fp16acc", "fp4_tensor", *TENSOR_PEAKS.values()}

# A number's key in the file -> its field, where the two differ, and the factor to the field's unit:
# memory is counted in powers of two, rates in powers of ten.
_SCALED: Final = {
    "boost_clock_mhz": ("boost_clock_hz", 10**6),
    "dram_gb_per_s": ("dram_bytes_per_s", 10**9),
    "memory_gib": ("memory_bytes", 2**30),
    "l2_mib": ("l2_bytes", 2**20),
    "shared_kib_per_sm": ("shared_bytes_per_sm", 2**10),
    "max_shared_kib_per_block": ("max_shared_bytes_per_block", 2**10),
}
_OPTIONAL: Final = {"boost_clock_mhz", "memory_gib", "l2_mib", "registers_per_block", "concurrent_kernels", "pcie_gen"}
_NUMBERS: Final = {
    "dies_per_board", "sms", "registers_per_sm", "max_warps_per_sm", "max_blocks_per_sm", "max_registers_per_thread",
    *_SCALED, *_OPTIONAL,
}  # fmt: skip
_FLAGS: Final = {"hyper_q": True, "geforce": False, "integrated": False}  # with their defaults
_KEYS: Final = {
    "name", "architecture", "compute_capability", "chip", "tensor_core_generation", "tensor_dtypes",
    "peaks_tflops", "sources", "notes", *_NUMBERS, *_FLAGS,
}  # fmt: skip


def read(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file; ConvlintError if there is none."""
    try:
        content = yaml.load(path.read_bytes(), Loader=_LOADER)
    except (OSError, yaml.YAMLError) as error:
        raise ConvlintError(f"{path}: cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise ConvlintError(f"{path}: expected a mapping")
    return content


def fields(content: Mapping[str, Any], *, path: str) -> dict[str, Any]:
    """Return the fields of Gpu, all but its id; ConvlintError names `path` and the key in which a defect is."""
    named: dict[str, str] = content["sources"] if isinstance(content.get("sources"), dict) else {}
    peaks: dict[str, Any] = content["peaks_tflops"] if isinstance(content.get("peaks_tflops"), dict) else {}
    sources: dict[str, str] = {}

    def expect(good: bool, key: str, expected: str, value: object) -> None:
        if not good:
            raise ConvlintError(f"{path}: {key}: expected {expected}, got {value!r}")

    def sourced(key: str, entry: object) -> Any:
        """Return the value of `{value: ..., source: ...}`, and note the source; None where the entry is absent."""
        if entry is None:
            return None
        if not isinstance(entry, dict) or entry.keys() != {"value", "source"}:
            raise ConvlintError(f"{path}: {key}: expected {{value: ..., source: ...}}, got {entry!r}")
        name, _, remark = str(entry["source"]).partition(", ")
        expect(name in named or name == "derived", f"{key}: source", "one of those listed under sources", name)
        sources[key] = ", ".join(filter(None, (named.get(name, name), remark)))
        return entry["value"]

    def number(key: str, entry: object, factor: int) -> Any:
        value = sourced(key, entry)
        real = type(value) is int or (type(value) is float and factor != 1)
        expect(real and 0 < value < float("inf"), key, "a number above 0", value)
        return round(value * factor) if factor % 1000 else value * factor

    for key in content:
        expect(key in _KEYS, "key", "a known one", key)
    name, architecture, notes = content.get("name"), content.get("architecture"), content.get("notes", [])
    expect(isinstance(name, str), "name", "text", name)
    expect(architecture in ARCHITECTURES, "architecture", ", ".join(ARCHITECTURES), architecture)
    expect(isinstance(notes, list), "notes", "a list", notes)
    flags = {key: content.get(key, default) for key, default in _FLAGS.items()}
    for key, value in flags.items():
        expect(isinstance(value, bool), key, "true or false", value)
    cc = sourced("compute_capability", content.get("compute_capability"))
    expect(isinstance(cc, str) and cc.replace(".", "", 1).isdecimal(), "compute_capability", 'text such as "8.0"', cc)
    chip = sourced("chip", content.get("chip"))
    expect(chip is None or isinstance(chip, str), "chip", "text", chip)
    generation = sourced("tensor_core_generation", content.get("tensor_core_generation"))
    expect(type(generation) is int and generation >= 0, "tensor_core_generation", "0 or more", generation)
    dtypes = sourced("tensor_dtypes", content.get("tensor_dtypes")) or []
    good = isinstance(dtypes, list) and bool(dtypes) == bool(generation) and all(str(d) in TENSOR_PEAKS for d in dtypes)
    expect(good, "tensor_dtypes", "the dtypes of the Tensor Cores, none where there are none", dtypes)
    allowed = _PEAKS - {peak for dtype, peak in TENSOR_PEAKS.items() if dtype not in dtypes}
    for key in ("fp32", *peaks):
        expect(key in peaks and key in allowed, "peaks_tflops", f"fp32 and others of {sorted(allowed)}", list(peaks))
    numbers: dict[str, Any] = {}
    for key in _NUMBERS:
        entry, (attribute, factor) = content.get(key), _SCALED.get(key, (key, 1))
        numbers[attribute] = None if entry is None and key in _OPTIONAL else number(key, entry, factor)
    return {
        "name": name,
        "architecture": architecture,
        "compute_capability": Version(cc),
        "chip": chip,
        "peak_flops": MappingProxyType({key: number(f"peaks_tflops.{key}", peaks[key], 10**12) for key in peaks}),
        "tensor_core_generation": generation,
        "tensor_dtypes": frozenset(dtypes),
        "sources": MappingProxyType(sources),
        "notes": tuple(map(str, notes)),
        **flags,
        **numbers,
    }
