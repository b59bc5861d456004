"""The GPUs that convlint knows: one small YAML file each, a source beside every number."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import yaml

from convlint.errors import ConvlintError, UsageError
from convlint.model import Dtype, Version

ARCHITECTURES: Final = ("kepler", "maxwell", "pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell")

_FOLDER: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpus")
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# Where each dtype's Tensor Core rate stands among the peaks; fp32 has none, it is multiplied as tf32.
_TENSOR_PEAKS: Final = {
    "fp64": "fp64_tensor", "tf32": "tf32_tensor", "fp16": "fp16_tensor_fp32acc", "bf16": "bf16_tensor",
    "fp8": "fp8_tensor", "int8": "int8_tensor",
}  # fmt: skip
_PEAKS: Final = frozenset({"fp64", "fp32", "fp16", "int8", "fp16_tensor_fp16acc", "fp4_tensor", *_TENSOR_PEAKS.values()})

_POSITIVE_INTS: Final = (
    "dies_per_board", "sms", "registers_per_sm", "max_warps_per_sm", "max_blocks_per_sm", "max_registers_per_thread",
)  # fmt: skip
_OPTIONAL_INTS: Final = ("registers_per_block", "concurrent_kernels", "pcie_gen")
# key in the file -> (field, factor to the field's unit, may be absent). Memory sizes count in powers of two, rates in ten.
_SCALED: Final = {
    "boost_clock_mhz": ("boost_clock_hz", 1e6, True),
    "dram_gb_per_s": ("dram_bytes_per_s", 1e9, False),
    "memory_gib": ("memory_bytes", 2**30, False),
    "l2_mib": ("l2_bytes", 2**20, True),
    "shared_kib_per_sm": ("shared_bytes_per_sm", 2**10, False),
    "max_shared_kib_per_block": ("max_shared_bytes_per_block", 2**10, False),
}
_KEYS: Final = frozenset(
    {"name", "architecture", "compute_capability", "chip", "hyper_q", "geforce", "integrated", "tensor_core_generation",
     "tensor_dtypes", "peaks_tflops", "sources", "notes", *_POSITIVE_INTS, *_OPTIONAL_INTS, *_SCALED}
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One CUDA device: on a board with two dies, one die. Peaks are dense, in FLOP/s (OP/s for integers).

    None, and a peak that is absent although the unit exists, mean unknown; `notes` says why. `sources` maps each
    key of the GPU's file (peaks as `peaks_tflops.fp32`) to where its number was read.
    """

    id: str
    name: str
    architecture: str
    compute_capability: Version
    chip: str | None
    dies_per_board: int
    sms: int
    boost_clock_hz: float | None
    peak_flops: Mapping[str, float] = field(hash=False)
    dram_bytes_per_s: float
    memory_bytes: int
    l2_bytes: int | None
    registers_per_sm: int  # 32 bits each
    registers_per_block: int | None
    shared_bytes_per_sm: int
    max_shared_bytes_per_block: int
    max_warps_per_sm: int
    max_blocks_per_sm: int
    max_registers_per_thread: int
    concurrent_kernels: int | None  # resident grids per device
    hyper_q: bool  # 32 hardware queues between host and device
    pcie_gen: int | None
    tensor_core_generation: int  # 0: none
    tensor_dtypes: frozenset[str]  # names of Dtype that the Tensor Cores multiply
    geforce: bool  # the consumer line: its Tensor Cores, if any, run fp32 accumulation at half rate
    integrated: bool  # shares memory with the CPU (Jetson)
    sources: Mapping[str, str] = field(hash=False)
    notes: tuple[str, ...]

    @property
    def tensor_cores(self) -> bool:
        """Not a matter of compute capability: GTX 16xx are 7.5 and have none."""
        return self.tensor_core_generation > 0

    @property
    def fast_fp16(self) -> bool:
        """Packed fp16 arithmetic at fp32's rate or more: 6.0 and 7.0 on; not Kepler, Maxwell, GP10x (CUDA guide, throughput)."""
        return self.compute_capability >= "7.0" or self.compute_capability.numbers in {(5, 3), (6,), (6, 2)}

    @property
    def fp64_ratio(self) -> float | None:
        """Peak of fp64 over fp32, both on CUDA cores; None if either is unknown."""
        fp64, fp32 = self.peak_flops.get("fp64"), self.peak_flops.get("fp32")
        return fp64 / fp32 if fp64 is not None and fp32 is not None else None

    def peak(self, dtype: Dtype, *, tensor: bool, fp16_accumulate: bool = False) -> float | None:
        """Dense FLOP/s (int8: OP/s) of a compute dtype on Tensor Cores, or on CUDA cores; None: no such unit, or unknown.

        Tensor Cores accumulate fp16 in fp32 unless `fp16_accumulate`. On CUDA cores, types without arithmetic of
        their own are storage only and run at fp32's rate: fp16 where it is not fast, bf16, and int8 without DP4A.
        """
        peaks = self.peak_flops
        if tensor:
            if dtype == Dtype.fp16 and fp16_accumulate and "fp16_tensor_fp16acc" in peaks:
                return peaks["fp16_tensor_fp16acc"]
            return peaks.get(_TENSOR_PEAKS.get(dtype.value, ""))
        if dtype == Dtype.fp8:
            return None
        if dtype == Dtype.fp64:
            return peaks.get("fp64")
        if dtype == Dtype.int8 or (dtype == Dtype.fp16 and self.fast_fp16):
            return peaks.get(dtype.value, peaks.get("fp32"))
        return peaks.get("fp32")


def occupancy_warps(gpu: Gpu, *, threads_per_block: int, registers_per_thread: int, shared_bytes_per_block: int = 0) -> int:
    """Resident warps per SM of a kernel on `gpu`; 0 if it cannot be launched (KG 1.4.1; CUDA guide, compute capabilities).

    From 8.0 on, each block's shared memory takes 1 KiB more than it asks for.
    """
    ampere_on = gpu.compute_capability >= "8.0"
    if registers_per_thread > gpu.max_registers_per_thread or shared_bytes_per_block > gpu.max_shared_bytes_per_block:
        return 0
    return resident_warps(
        threads_per_block=threads_per_block,
        registers_per_thread=registers_per_thread,
        shared_bytes_per_block=shared_bytes_per_block + (1024 if ampere_on else 0),
        registers_per_sm=gpu.registers_per_sm,
        registers_per_block=gpu.registers_per_block or gpu.registers_per_sm,
        shared_bytes_per_sm=gpu.shared_bytes_per_sm,
        max_warps_per_sm=gpu.max_warps_per_sm,
        max_blocks_per_sm=gpu.max_blocks_per_sm,
        shared_unit=128 if ampere_on else 256,
    )


def resident_warps(
    *,
    threads_per_block: int,
    registers_per_thread: int,
    shared_bytes_per_block: int,
    registers_per_sm: int,
    registers_per_block: int,
    shared_bytes_per_sm: int,
    max_warps_per_sm: int,
    max_blocks_per_sm: int,
    register_unit: int = 256,
    warp_unit: int = 4,
    shared_unit: int = 256,
) -> int:
    """Warps per SM under given limits, as the CUDA occupancy calculator counts them; 0 if one block does not fit.

    Registers are allotted per warp in multiples of `register_unit`, to warps in multiples of `warp_unit`
    (64 and 2 on Fermi); shared memory per block in multiples of `shared_unit` bytes.
    """
    if threads_per_block < 1 or threads_per_block > 1024:
        return 0
    warps = -(-threads_per_block // 32)
    blocks = min(max_blocks_per_sm, max_warps_per_sm // warps)
    if registers_per_thread > 0:
        per_warp = -(-registers_per_thread * 32 // register_unit) * register_unit
        allotted = -(-warps // warp_unit) * warp_unit
        if allotted * per_warp > registers_per_block:
            return 0
        blocks = min(blocks, registers_per_sm // per_warp // warp_unit * warp_unit // allotted)
    if shared_bytes_per_block > 0:
        blocks = min(blocks, shared_bytes_per_sm // (-(-shared_bytes_per_block // shared_unit) * shared_unit))
    return blocks * warps


def load_gpu(name: str) -> Gpu:
    """The GPU of that id or alias; case, spaces, hyphens and underscores do not matter.

    Raises UsageError for an unknown name, ConvlintError for a defect in the GPU's file.
    """
    return _load(_find(name))


@cache
def gpu_names() -> tuple[str, ...]:
    """The ids of all GPUs, sorted."""
    return tuple(sorted(entry[:-5] for entry in os.listdir(_FOLDER) if entry.endswith(".yaml") and entry != "aliases.yaml"))


@cache
def aliases() -> Mapping[str, str]:
    """Other names that people use -> id."""
    content = _read(os.path.join(_FOLDER, "aliases.yaml"))
    return MappingProxyType({str(alias): str(gpu_id) for gpu_id, names in content.items() for alias in names})


def _squeeze(name: str) -> str:
    return "".join(ch for ch in name.casefold() if ch not in " -_").removeprefix("nvidia")


@cache
def _squeezed_names() -> Mapping[str, str]:
    return {**{_squeeze(alias): gpu_id for alias, gpu_id in aliases().items()}, **{_squeeze(i): i for i in gpu_names()}}


def _find(name: str) -> str:
    found = _squeezed_names().get(_squeeze(name))
    if found is None:
        from difflib import get_close_matches

        shown = name if len(name) <= 60 else name[:60] + "..."
        near = get_close_matches(_squeeze(name[:60]), _squeezed_names(), n=5, cutoff=0.6)
        nearest = ", ".join(dict.fromkeys(_squeezed_names()[match] for match in near))
        hint = f"did you mean {nearest}?" if nearest else "`convlint gpus` lists the known ones"
        raise UsageError(f"unknown GPU {shown!r}; {hint}")
    return found


@cache
def _load(gpu_id: str) -> Gpu:
    path = os.path.join(_FOLDER, gpu_id + ".yaml")
    return parse_gpu(gpu_id, _read(path), path=path)


def parse_gpu(gpu_id: str, content: Mapping[str, Any], *, path: str) -> Gpu:
    """A Gpu from its file's content; raises ConvlintError that names `path` and the key in which the defect is."""

    def fail(message: str) -> ConvlintError:
        return ConvlintError(f"{path}: {message}")

    def sourced(key: str, entry: object, *, optional: bool = False) -> Any:
        if entry is None and optional:
            return None
        if not isinstance(entry, dict) or entry.keys() != {"value", "source"}:
            raise fail(f"{key}: expected {{value: ..., source: ...}}, got {entry!r}")
        head, _, rest = str(entry["source"]).partition(", ")
        if head not in named and head != "derived":
            raise fail(f"{key}: source {head!r} is not one of those listed under sources")
        sources[key] = ", ".join(part for part in (named.get(head, head), rest) if part)
        return entry["value"]

    def number(key: str, entry: object, *, whole: bool = False, optional: bool = False, least: float = 0) -> Any:
        value = sourced(key, entry, optional=optional)
        kinds: tuple[type, ...] = (int,) if whole else (int, float)
        if value is None and entry is None:
            return None
        if isinstance(value, bool) or not isinstance(value, kinds) or not least < value < float("inf"):
            raise fail(f"{key}: expected a {'whole ' if whole else ''}number above {least}, got {value!r}")
        return value

    if unknown := content.keys() - _KEYS:
        raise fail(f"unknown key {min(map(str, unknown))!r}")
    named, peaks_in, notes = content.get("sources"), content.get("peaks_tflops"), content.get("notes", [])
    if not isinstance(named, dict) or not isinstance(peaks_in, dict) or not isinstance(notes, list):
        raise fail("needs the mappings sources and peaks_tflops, and notes as a list")
    sources: dict[str, str] = {}
    for key in ("name", "architecture"):
        if not isinstance(content.get(key), str):
            raise fail(f"{key}: expected text, got {content.get(key)!r}")
    if content["architecture"] not in ARCHITECTURES:
        raise fail(f"architecture: expected one of {', '.join(ARCHITECTURES)}, got {content['architecture']!r}")
    for key in ("hyper_q", "geforce", "integrated"):
        if not isinstance(content.get(key, False), bool):
            raise fail(f"{key}: expected true or false, got {content[key]!r}")
    if unknown := peaks_in.keys() - _PEAKS:
        raise fail(f"peaks_tflops: unknown key {min(map(str, unknown))!r}")
    if "fp32" not in peaks_in:
        raise fail("peaks_tflops: fp32 is missing")
    capability = sourced("compute_capability", content.get("compute_capability"))
    if not isinstance(capability, str) or not capability.replace(".", "", 1).isdecimal():
        raise fail(f'compute_capability: expected text such as "8.0", got {capability!r}')
    generation = number("tensor_core_generation", content.get("tensor_core_generation"), whole=True, least=-1)
    dtypes = sourced("tensor_dtypes", content.get("tensor_dtypes"), optional=generation == 0) or []
    if not isinstance(dtypes, list) or not set(dtypes) <= _TENSOR_PEAKS.keys() or bool(dtypes) != bool(generation):
        raise fail(f"tensor_dtypes: expected dtypes if there are Tensor Cores, and else none, got {dtypes!r}")
    if surplus := {peak for dtype, peak in _TENSOR_PEAKS.items() if dtype not in dtypes} & peaks_in.keys():
        raise fail(f"peaks_tflops: {min(surplus)} is given, but tensor_dtypes lacks its dtype")
    values: dict[str, Any] = {key: number(key, content.get(key), whole=True) for key in _POSITIVE_INTS}
    values |= {key: number(key, content.get(key), whole=True, optional=True) for key in _OPTIONAL_INTS}
    for key, (target, factor, optional) in _SCALED.items():
        value = number(key, content.get(key), optional=optional)
        values[target] = None if value is None else value * factor if "_per_s" in target or "_hz" in target else round(value * factor)
    return Gpu(
        id=gpu_id,
        name=content["name"],
        architecture=content["architecture"],
        compute_capability=Version(capability),
        chip=sourced("chip", content.get("chip"), optional=True),
        peak_flops=MappingProxyType({key: number(f"peaks_tflops.{key}", entry) * 1e12 for key, entry in peaks_in.items()}),
        hyper_q=content.get("hyper_q", True),
        tensor_core_generation=generation,
        tensor_dtypes=frozenset(dtypes),
        geforce=content.get("geforce", False),
        integrated=content.get("integrated", False),
        sources=MappingProxyType(sources),
        notes=tuple(map(str, notes)),
        **values,
    )


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            content = yaml.load(file.read(), Loader=_LOADER)  # noqa: S506 - a safe loader in either case
    except (OSError, yaml.YAMLError) as error:
        raise ConvlintError(f"{path}: cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise ConvlintError(f"{path}: expected a mapping")
    return content
