"""GPUs by name: their files, aliases and figures, and the user's calibrations of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Literal

import yaml
from msgspec import Struct

from convlint.files.cache import cached, stamp
from convlint.model.errors import ConvlintError, UsageError
from convlint.model.layer import Dtype, Pass
from convlint.model.report import CalibrationUse
from convlint.model.runtime import Version

Kind = Literal["dense", "depthwise", "grouped", "volume"]  # of layer, as far as other kernels run it
LEAST_OF_GROUP: Final = 4  # rows of one group: the median of fewer says nothing
KINDS: tuple[Kind, ...] = ("dense", "depthwise", "grouped", "volume")


class Constant(Struct, frozen=True):
    """One number that timings determine: how many of them, and their median distance from the prediction with it."""

    value: float
    rows: int
    spread: float  # a share: 0.08 is 8 %


class Group(Struct, frozen=True, kw_only=True):
    """Timings of one kind of layer in one compute dtype and pass (of the kernels: turned where transposed)."""

    kind: Kind
    dtype: Dtype
    which: Pass
    rows: int
    spread: float  # as of `Constant`
    factor: float | None = None  # on the time; None: not determined


class Calibration(Struct, frozen=True, kw_only=True):
    """Constants of one GPU by timings, relative to the cost model's; None where timings do not determine them.

    Clocks and bandwidth are factors on the model's sustained ones; `launch_us` is added to the launch of every pass.
    Errors are medians over all rows, as shares: predicted against measured time.
    """

    gpu: str  # id
    rows: int
    error_before: float
    error_after: float
    tensor_clock: Constant | None = None  # of Tensor Cores
    cuda_clock: Constant | None = None  # of CUDA cores
    bandwidth: Constant | None = None  # of DRAM
    launch_us: Constant | None = None
    groups: tuple[Group, ...] = ()


class CalibrationOrigin(Struct, frozen=True, kw_only=True):
    """The device and the libraries that were measured, and the convlint whose predictions were."""

    device: str
    compute_capability: Version
    convlint: Version
    cudnn: Version | None = None
    cuda: Version | None = None
    framework: str | None = None
    framework_version: Version | None = None
    date: str | None = None  # 2026-01-31


class CalibrationFile(Struct, frozen=True, kw_only=True):
    """A calibration and where it comes from; `path` as shown to the user."""

    path: str
    origin: CalibrationOrigin
    calibration: Calibration


def merged(uses: Iterable[CalibrationUse]) -> tuple[CalibrationUse, ...]:
    """The uses without repetitions.

    A calibration that is in force for one input is not also listed as one whose GPU is no target of another.
    """
    unique = tuple(dict.fromkeys(uses))
    used = {use.path for use in unique if not use.of_no_target}
    return tuple(use for use in unique if not (use.of_no_target and use.path in used))


class Factors(Struct, frozen=True):
    """The constants of a calibration as the cost model applies them; what is not determined changes nothing."""

    tensor_clock: float = 1.0
    cuda_clock: float = 1.0
    bandwidth: float = 1.0
    launch_us: float = 0.0


UNCALIBRATED: Final = Factors()


def factors_of(calibration: Calibration | None) -> Factors:
    """What a calibration changes; nothing where there is none."""
    if calibration is None:
        return UNCALIBRATED
    constants = {name: getattr(calibration, name) for name in Factors.__struct_fields__}
    return Factors(**{name: constant.value for name, constant in constants.items() if constant is not None})


# The loader in C is several times as fast; PyYAML may have been built without it.
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
# Compute capabilities of Jetson modules alone (CUDA guide); GB10's is that of a discrete GPU's family.
_JETSON: Final = {(3, 2), (5, 3), (6, 2), (7, 2), (8, 7), (11,)}
_FLAGS: Final = {"hyper_q": True, "geforce": False, "integrated": False}  # with their defaults
_KEYS: Final = {
    "name", "architecture", "compute_capability", "chip", "tensor_core_generation", "tensor_dtypes",
    "peaks_tflops", "sources", "notes", *_NUMBERS, *_FLAGS,
}  # fmt: skip


def table(path: str) -> dict[str, Any]:
    """The same as `read`, of a file that most runs need: it comes from the cache."""
    key = repr((path, *stamp(path)))
    content: dict[str, Any] = cached(
        f"table-{_stem(path)}", key, lambda: read(path), lambda value: isinstance(value, dict)
    )
    return content


def read(path: str) -> dict[str, Any]:
    """Return the mapping in a YAML file; ConvlintError if there is none."""
    try:
        with open(path, "rb") as file:
            content = yaml.load(file, Loader=_LOADER)
    except (OSError, yaml.YAMLError) as error:
        raise ConvlintError(f"{path}: cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise ConvlintError(f"{path}: expected a mapping")
    return content


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]


_FOLDER: Final = os.path.join(os.path.dirname(__file__), "data")


class Gpu(Struct, frozen=True, kw_only=True):
    """One CUDA device: on a board with several dies, one die. Peaks are dense, in FLOP/s (OP/s for integers).

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
    integrated: bool  # shares memory with the CPU (Jetson, GB10)
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
    def jetson(self) -> bool:
        """Whether it is a Jetson module: weaker host cores, libraries from JetPack, and code for it alone.

        GB10 shares memory with its CPU as they do, but runs the libraries of discrete GPUs.
        """
        return self.integrated and self.compute_capability.numbers in _JETSON

    @property
    def fast_fp16(self) -> bool:
        """Packed fp16 arithmetic at fp32's rate or more (CUDA guide, throughput): not Kepler, Maxwell and GP10x."""
        return self.compute_capability >= "7.0" or self.compute_capability.numbers in {(5, 3), (6,), (6, 2)}

    @property
    def dp4a(self) -> bool:
        """Whether CUDA cores multiply int8: from GP10x on, but not on Jetson TX2 (AlexeyAB/yolo2_light#26)."""
        return self.compute_capability >= "6.1" and self.compute_capability != "6.2"

    @property
    def fp64_ratio(self) -> float | None:
        """Peak of fp64 over fp32, both on CUDA cores; None if either is unknown."""
        fp64, fp32 = self.peak_flops.get("fp64"), self.peak_flops.get("fp32")
        return fp64 / fp32 if fp64 is not None and fp32 is not None else None

    @property
    def fast_tf32(self) -> bool:
        """TF32 on Tensor Cores at more than fp32's rate on CUDA cores: not on most GeForce boards."""
        fp32, tf32 = self.peak(Dtype.fp32, tensor=False), self.peak(Dtype.tf32, tensor=True)
        return "tf32" in self.tensor_dtypes and (fp32 is None or tf32 is None or tf32 > 1.01 * fp32)

    @property
    def fast_int8(self) -> bool:
        """int8 on Tensor Cores at the rate of 16 bits or more: not on Blackwell Ultra."""
        int8, half = self.peak(Dtype.int8, tensor=True), self.peak(Dtype.fp16, tensor=True)
        return "int8" in self.tensor_dtypes and (int8 is None or half is None or int8 >= half)

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


def parse_gpu(gpu_id: str, content: Mapping[str, Any], *, path: str) -> Gpu:
    """Build a Gpu from its file's content; ConvlintError names `path` and the key in which a defect is."""
    listed: dict[str, str] = content["sources"] if isinstance(content.get("sources"), dict) else {}
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
        expect(name in listed or name == "derived", f"{key}: source", "one of those listed under sources", name)
        sources[key] = ", ".join(filter(None, (listed.get(name, name), remark)))
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
    return Gpu(
        id=gpu_id,
        name=str(name),
        architecture=str(architecture),
        compute_capability=Version(cc),
        chip=chip,
        peak_flops=MappingProxyType({key: number(f"peaks_tflops.{key}", peaks[key], 10**12) for key in peaks}),
        tensor_core_generation=generation,
        tensor_dtypes=frozenset(dtypes),
        sources=MappingProxyType(sources),
        notes=tuple(map(str, notes)),
        **flags,
        **numbers,
    )


def load_gpu(name: str) -> Gpu:
    """Return the GPU of that id or alias; case, spaces, hyphens and underscores do not matter.

    Raises UsageError for an unknown name, ConvlintError for a defect in the GPU's file.
    """
    return _load(_find(name))


@cache
def gpu_names() -> tuple[str, ...]:
    """Return the ids of all GPUs, sorted."""
    names = (name for name in os.listdir(_FOLDER) if name.endswith(".yaml"))
    return tuple(sorted(_stem(name) for name in names if name != "aliases.yaml"))


@cache
def aliases() -> Mapping[str, str]:
    """Return the other names that people use, each with the id it stands for."""
    content = table(os.path.join(_FOLDER, "aliases.yaml"))
    return MappingProxyType({str(alias): str(gpu_id) for gpu_id, names in content.items() for alias in names})


_DROPPED: Final = str.maketrans("", "", " -_")


def _squeeze(name: str) -> str:
    return name.casefold().translate(_DROPPED).removeprefix("nvidia")


@cache
def _squeezed_names() -> Mapping[str, str]:
    known = [*aliases().items(), *((gpu_id, gpu_id) for gpu_id in gpu_names())]
    return {_squeeze(name): gpu_id for name, gpu_id in known}


def _find(name: str) -> str:
    gpu_id = _squeezed_names().get(_squeeze(name))
    if gpu_id is not None:
        return gpu_id
    from difflib import get_close_matches

    near = get_close_matches(_squeeze(name[:60]), _squeezed_names(), n=5)
    nearest = ", ".join(dict.fromkeys(_squeezed_names()[match] for match in near))
    hint = f"did you mean {nearest}?" if nearest else "`convlint gpus` lists the known ones"
    raise UsageError(f"unknown GPU {name[:60]!r}; {hint}")


@cache
def _load(gpu_id: str) -> Gpu:
    path = os.path.join(_FOLDER, f"{gpu_id}.yaml")
    return parse_gpu(gpu_id, table(path), path=path)
