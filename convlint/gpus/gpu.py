"""The GPUs that convlint knows: one small YAML file each, a source beside every number."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from convlint.errors import UsageError
from convlint.gpus.calibration import Calibration
from convlint.gpus.file import TENSOR_PEAKS, fields, read
from convlint.model.layer import Dtype
from convlint.model.version import Version

_FOLDER: Final = Path(__file__).parent / "data"


class Gpu(Struct, frozen=True, kw_only=True):
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
    peak_flops: Mapping[str, float]
    dram_bytes_per_s: float
    memory_bytes: int | None
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
    sources: Mapping[str, str]
    notes: tuple[str, ...]
    calibration: Calibration | None = None  # what timings on the user's own say; only times follow it

    def __hash__(self) -> int:
        return hash(self.id)  # mappings have none

    @property
    def tensor_cores(self) -> bool:
        """Not a matter of compute capability: GTX 16xx are 7.5 and have none."""
        return self.tensor_core_generation > 0

    @property
    def fast_fp16(self) -> bool:
        """Packed fp16 arithmetic at fp32's rate or more (CUDA guide, throughput): not Kepler, Maxwell and GP10x."""
        return self.compute_capability >= "7.0" or self.compute_capability.numbers in {(5, 3), (6,), (6, 2)}

    @property
    def fp64_ratio(self) -> float | None:
        """Peak of fp64 over fp32, both on CUDA cores; None if either is unknown."""
        fp64, fp32 = self.peak_flops.get("fp64"), self.peak_flops.get("fp32")
        return fp64 / fp32 if fp64 is not None and fp32 is not None else None

    def peak(self, dtype: Dtype, *, tensor: bool, fp16_accumulate: bool = False) -> float | None:
        """Dense FLOP/s (int8: OP/s) of a compute dtype on Tensor Cores or on CUDA cores.

        None: no such unit, or its rate is unknown. Tensor Cores accumulate fp16 in fp32 unless `fp16_accumulate`. On
        CUDA cores, types without arithmetic of their own are storage only and run at fp32's rate: fp16 where it is
        not fast, bf16, and int8 without DP4A.
        """
        peaks = self.peak_flops
        if tensor:
            if dtype == Dtype.fp16 and fp16_accumulate and "fp16_tensor_fp16acc" in peaks:
                return peaks["fp16_tensor_fp16acc"]
            return peaks.get(TENSOR_PEAKS.get(dtype.value, ""))
        if dtype == Dtype.fp8:
            return None
        if dtype == Dtype.fp64:
            return peaks.get("fp64")
        if dtype == Dtype.int8 or (dtype == Dtype.fp16 and self.fast_fp16):
            return peaks.get(dtype.value, peaks.get("fp32"))
        return peaks.get("fp32")


def occupancy_warps(
    gpu: Gpu, *, threads_per_block: int, registers_per_thread: int, shared_bytes_per_block: int = 0
) -> int:
    """Resident warps per SM of a kernel on `gpu`; 0 if it cannot be launched (KG 1.4.1, CUDA guide).

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
        warp_unit=2 if gpu.compute_capability == "6.0" else 4,
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
    """Return the GPU of that id or alias; case, spaces, hyphens and underscores do not matter.

    Raises UsageError for an unknown name, ConvlintError for a defect in the GPU's file.
    """
    return _load(_find(name))


@cache
def gpu_names() -> tuple[str, ...]:
    """Return the ids of all GPUs, sorted."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml") if path.stem != "aliases"))


@cache
def aliases() -> Mapping[str, str]:
    """Return the other names that people use, each with the id it stands for."""
    content = read(_FOLDER / "aliases.yaml")
    return MappingProxyType({str(alias): str(gpu_id) for gpu_id, names in content.items() for alias in names})


def _squeeze(name: str) -> str:
    return "".join(ch for ch in name.casefold() if ch not in " -_").removeprefix("nvidia")


@cache
def _squeezed_names() -> Mapping[str, str]:
    known = [*aliases().items(), *((gpu_id, gpu_id) for gpu_id in gpu_names())]
    return {_squeeze(name): gpu_id for name, gpu_id in known}


def _find(name: str) -> str:
    found = _squeezed_names().get(_squeeze(name))
    if found is not None:
        return found
    from difflib import get_close_matches

    near = get_close_matches(_squeeze(name[:60]), _squeezed_names(), n=5)
    nearest = ", ".join(dict.fromkeys(_squeezed_names()[match] for match in near))
    hint = f"did you mean {nearest}?" if nearest else "`convlint gpus` lists the known ones"
    raise UsageError(f"unknown GPU {name[:60]!r}; {hint}")


@cache
def _load(gpu_id: str) -> Gpu:
    path = _FOLDER / f"{gpu_id}.yaml"
    return parse_gpu(gpu_id, read(path), path=str(path))


def parse_gpu(gpu_id: str, content: Mapping[str, Any], *, path: str) -> Gpu:
    """Build a Gpu from its file's content; ConvlintError names `path` and the key in which a defect is."""
    return Gpu(id=gpu_id, **fields(content, path=path))
