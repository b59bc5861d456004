"""A GPU as kernels see it: rates by dtype, clocks, bandwidths, and how many blocks run at once."""

from __future__ import annotations

from math import sqrt
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from convlint.estimate import constants as const
from convlint.estimate.constants import Family
from convlint.estimate.search import Searches, TileProgram, programs
from convlint.gpus.gpu import Factors, Gpu, Group, Kind, factors_of
from convlint.model.estimates import Roof
from convlint.model.layer import Dtype, Pass
from convlint.model.runtime import Runtime, framework_of

# Where a GPU's file lacks a Tensor Core rate, its ratio to fp16 with fp32 accumulation (CUDA guide, all generations).
_RATIO_TO_FP16 = {Dtype.tf32: 0.5, Dtype.bf16: 1.0, Dtype.fp8: 2.0, Dtype.int8: 2.0}


def compute_dtype(layer_dtype: Dtype, gpu: Gpu, runtime: Runtime) -> Dtype:
    """What multiplies where `layer_dtype` is stored: tf32 for fp32 where allowed, fp32 where a GPU lacks the type."""
    if layer_dtype == Dtype.fp32 and runtime.tf32 and "tf32" in gpu.tensor_dtypes:
        return Dtype.tf32
    if layer_dtype == Dtype.tf32 and "tf32" not in gpu.tensor_dtypes:
        return Dtype.fp32
    if layer_dtype == Dtype.fp16 and "fp16" not in gpu.tensor_dtypes and not gpu.fast_fp16:
        return Dtype.fp32
    if layer_dtype == Dtype.bf16 and converts_bf16(gpu, runtime):
        return Dtype.fp32
    return layer_dtype


def converts_bf16(gpu: Gpu, runtime: Runtime) -> bool:
    """Whether bf16, which the GPU lacks, runs all the same: PyTorch multiplies it in fp32 on Volta and Turing.

    So do TensorFlow and XLA on all before Ampere (IsBF16SupportedInOps of its convolutions; ConvBfloat16Support in
    xla/service/gpu/nvptx_compiler.cc). Which kernels those are was never timed: plain fp32 that moves half the bytes.
    """
    if "bf16" in gpu.tensor_dtypes or gpu.compute_capability >= "8.0":
        return False
    framework = framework_of(runtime)
    return framework in ("tensorflow", "jax") or (framework == "pytorch" and gpu.compute_capability >= "7.0")


def tensor_peak(gpu: Gpu, compute: Dtype, *, fp16_accumulate: bool) -> float | None:
    """Dense FLOP/s of the Tensor Cores for a compute dtype; None if they do not multiply it, or the rate is unknown."""
    if compute.value not in gpu.tensor_dtypes or compute == Dtype.fp64:  # cuDNN's fp64 convolutions stay on CUDA cores
        return None
    peak = gpu.peak(compute, tensor=True, fp16_accumulate=fp16_accumulate)
    if peak is None and compute in _RATIO_TO_FP16:
        fp16 = gpu.peak(Dtype.fp16, tensor=True)
        peak = None if fp16 is None else fp16 * _RATIO_TO_FP16[compute]
    return peak


def cuda_core_peak(gpu: Gpu, compute: Dtype, *, tensorrt: bool = False) -> float | None:
    """FLOP/s of the CUDA cores; None where no library has a kernel (bf16, fp8; int8 without DP4A).

    fp16 runs at fp32's rate: without Tensor Cores the libraries accumulate in fp32. TensorRT multiplies pairs of
    fp16 where the GPU can.
    """
    if compute in (Dtype.bf16, Dtype.fp8):
        return None
    if compute == Dtype.int8:
        fp32 = gpu.peak(Dtype.fp32, tensor=False)
        return gpu.peak_flops.get("int8", None if fp32 is None else _dp4a_per_fp32(gpu) * fp32) if gpu.dp4a else None
    in_pairs = tensorrt and multiplies_pairs(gpu, compute)
    return gpu.peak(compute if in_pairs or compute == Dtype.fp64 else Dtype.fp32, tensor=False)


def multiplies_pairs(gpu: Gpu, compute: Dtype) -> bool:
    """Whether TensorRT multiplies pairs of fp16 on CUDA cores, as on Jetson Nano and TX2 and P100.

    torch2trt's README has ResNet-18 in fp16 on Jetson Nano at 90 images/s with TensorRT, 1.4 times what fp32's peak
    allows, and at 29 with PyTorch, which sums in fp32.
    """
    return compute == Dtype.fp16 and gpu.compute_capability in ("5.3", "6.0", "6.2")


def _dp4a_per_fp32(gpu: Gpu) -> int:
    """FLOPs of DP4A, which integer lanes run, for one of fp32.

    From cc 8.6 on, 8.0's successors have half as many of those lanes (GA102 and H100 whitepapers; B300's file has the
    same rate for int8). Consumer Blackwell is said to have more again: nobody timed DP4A there.
    """
    return 2 if gpu.compute_capability >= "8.6" else 4


_GENERATIONS = ("9.0", "8.6", "8.0", "7.5", "7.0")  # least compute capabilities of those with own constants
_LEAST_SETUP_US = 1.5  # of a kernel, whatever a calibration takes off
_CLOCK_HZ = 1.5e9  # of boards that state none
# Elements of one main-loop step where the family's number is of 16-bit ones.
_GRANULE = {Dtype.tf32: 16, Dtype.fp8: 64}
# Elements of a 16-byte vector, the widest load; 8 for 16-bit types.
_ALIGNMENT = {Dtype.tf32: 4, Dtype.int8: 16, Dtype.fp8: 16}
# What CUDA cores multiply in place of Tensor Cores.
_SIMT_TYPE = {Dtype.tf32: Dtype.fp32, Dtype.bf16: Dtype.fp32, Dtype.fp16: Dtype.fp32}


class ArithmeticUnit(Struct, frozen=True):
    """One kind of arithmetic on one GPU."""

    tensor: bool
    family: Family
    peak: float  # FLOP/s at the clock under load
    best_flops_per_us: float  # what the largest tile sustains, without latency, rounds and quantization
    tables: dict[str, tuple[TileProgram, ...]]  # by Lowering.table
    least_step_us: dict[str, float]  # of a main-loop step for one output, of the best tile of each table
    searched: Searches  # the last ones among those tables
    roof: Roof


class Board:
    """Everything precomputed for one GPU, and the cache of the passes estimated on it."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.sms = gpu.sms
        self.l2_bytes = gpu.l2_bytes or 0
        self.cc = gpu.compute_capability
        self.modern = gpu.compute_capability >= "8.0"
        self.factors = _factors(gpu)
        bandwidth = gpu.dram_bytes_per_s * self.factors.bandwidth
        self.us_per_byte = 1e6 / (bandwidth * const.STREAM_BANDWIDTH)
        share = const.MODERN_COPY_BANDWIDTH if self.modern else const.COPY_BANDWIDTH
        self.copy_us_per_byte = 1e6 / (bandwidth * share)
        self.copy_kernel_us = const.MODERN_COPY_KERNEL_US if self.modern else const.COPY_KERNEL_US
        self.clock_hz = (gpu.boost_clock_hz or _CLOCK_HZ) * self.factors.cuda_clock
        cc = gpu.compute_capability
        # The SMs of consumer Blackwell are Ada's, with their instructions; CUDA calls them 12.0 all the same.
        self.generation = "8.6" if cc >= "12.0" else next((least for least in _GENERATIONS if cc >= least), "")
        on_paper = gpu.peak(Dtype.fp32, tensor=False) or 0.0
        # cc 9.0, and the data center's GPUs after it, which are taken to run the same kernels.
        self.like_hopper = self.generation == "9.0"
        self.groups_slower = const.GROUPS_ON_BLACKWELL if cc >= "12.0" else 1.0
        # How many times as fast H100's Tensor Cores multiply per clock and SM: H20's rate is lower, newer ones' is not.
        peak = tensor_peak(gpu, Dtype.fp16, fp16_accumulate=False) or 0.0
        rate = peak / (gpu.sms * (gpu.boost_clock_hz or _CLOCK_HZ))
        self.slower_than_hopper = max(1.0, const.HOPPER_RATE / rate) if self.like_hopper and rate else 1.0
        self.fp32_peak = on_paper * self.factors.cuda_clock
        clock = gpu.boost_clock_hz or on_paper / (256 * gpu.sms)  # 128 lanes, where the clock is unknown
        self.clocks_per_us = gpu.sms * clock * clock_under_load(gpu, tensor=False) * 1e-6  # of all SMs together
        groups = () if gpu.calibration is None else gpu.calibration.groups
        self.groups: dict[tuple[Kind, Dtype, Pass], Group] = {(fit.kind, fit.dtype, fit.which): fit for fit in groups}
        self.passes: dict[object, Any] = {}  # what `passes` worked out so far
        self.bases: dict[object, Any] = {}  # what it found that times of a kind of layer rest on
        self.situations: dict[Dtype, tuple[Runtime, Any]] = {}  # what it made of a dtype under the last runtime
        # By the id of a layer: the layer, its runtime, and what `passes` made of both.
        self.of_layer: dict[int, tuple[object, Runtime, Any]] = {}
        self._peaks: dict[tuple[Dtype, bool], float] = {}
        self._units: dict[tuple[Dtype, bool], tuple[ArithmeticUnit | None, ArithmeticUnit | None]] = {}

    def units(self, compute: Dtype, tensorrt: bool) -> tuple[ArithmeticUnit | None, ArithmeticUnit | None]:
        """The Tensor Cores and the CUDA cores for a compute dtype; None for those that do not multiply it."""
        key = compute, tensorrt
        units = self._units.get(key)
        if units is None:
            tensor = self._build(compute, True, tensorrt)
            simt = _SIMT_TYPE.get(compute, compute) if tensor else compute
            units = self._units[key] = tensor, self._build(simt, False, tensorrt)
        return units

    def peak(self, compute: Dtype, *, tensorrt: bool = False) -> float:
        """FLOP/s on paper of the best unit for a compute dtype; every dtype that has a time has a unit."""
        key = compute, tensorrt
        peak = self._peaks.get(key)
        if peak is None:
            tensor = tensor_peak(self.gpu, compute, fp16_accumulate=False)
            peak = tensor or cuda_core_peak(self.gpu, compute, tensorrt=tensorrt) or self.fp32_peak
            self._peaks[key] = peak
        return peak

    def of_amperes(self, share: float) -> float:
        """`share` of the peak, as Ampere's instructions reach it on H100, of this GPU's: all of H20's lower one."""
        return min(1.0, share * self.slower_than_hopper)

    def _build(self, compute: Dtype, tensor: bool, tensorrt: bool) -> ArithmeticUnit | None:
        gpu = self.gpu
        fp16_sums = tensor and tensorrt and compute == Dtype.fp16
        in_pairs = not tensor and tensorrt and multiplies_pairs(gpu, compute)
        if tensor:
            peak = tensor_peak(gpu, compute, fp16_accumulate=fp16_sums)
            if peak is not None and _runs_mma(gpu, compute, peak):
                peak *= const.MMA_ON_HOPPER
            family = tensor_family(gpu, compute, tensorrt)
        else:
            peak = cuda_core_peak(gpu, compute, tensorrt=tensorrt)
            family = simt_family(gpu, tensorrt)
            if compute == Dtype.int8:
                family = replace(family, granule=const.DP4A_GRANULE)
        if peak is None:
            return None
        on_paper = tensor_peak(gpu, compute, fp16_accumulate=fp16_sums) if tensor else peak
        faster = fp16_sums and on_paper != tensor_peak(gpu, compute, fp16_accumulate=False)
        if gpu.boost_clock_hz is not None:
            stored = compute.bytes if tensor or compute == Dtype.int8 or in_pairs else 4
            per_clock = peak / (gpu.sms * gpu.boost_clock_hz) * stored
            family = replace(family, operand_cost=family.operand_cost * per_clock / family.operand_rate)
        peak *= clock_under_load(gpu, tensor=tensor)
        launch_us = self.factors.launch_us
        first, second, third = (max(min(setup, _LEAST_SETUP_US), setup + launch_us) for setup in family.setup_us)
        family = replace(family, setup_us=(first, second, third))
        # Complex products do four real ones per pair of operands loaded, so a step works longer and costs less to feed.
        complex_steps = replace(family, granule=4 * family.granule, operand_cost=family.operand_cost / 2)
        wgrad = family
        if family.wgrad_sustained:
            wgrad = replace(family, sustained=min(family.sustained, self.of_amperes(family.wgrad_sustained)))
        pointwise = replace(wgrad, operand_cost=family.pointwise_wgrad_cost or family.operand_cost)
        taps = replace(family, granule=const.TAP_GRANULE)
        if self.like_hopper:
            granule = const.TAP_GRANULE * 2 // max(2, compute.bytes)
            taps = replace(taps, granule=granule, load_latency_us=const.TAP_LATENCY_US)
        kinds = {
            "fprop": (family.tiles, family),
            "dgrad": (family.dgrad_tiles, family),
            "wgrad": (family.wgrad_tiles, wgrad),
            "pointwise wgrad": (family.wgrad_tiles, pointwise),
            "winograd": (family.tiles if family.workspace else (), family),
            "fused winograd": ((const.FUSED_WINOGRAD_TILE,) if family.fused_winograd else (), family),
            "fft": (family.fft_tiles if family.workspace else (), complex_steps),
            "taps": (family.tiles, taps),
        }
        tables = {
            name: programs(
                tiles, kind, peak=peak, sms=gpu.sms, registers=gpu.registers_per_sm,
                thread_registers=gpu.max_registers_per_thread,
            )
            for name, (tiles, kind) in kinds.items()
        }  # fmt: skip
        least_step_us = {
            name: min((program.full_us / (program.wave * program.tm * program.tn) for program in table), default=0.0)
            for name, table in tables.items()
        }
        area, edges = max((tm * tn, tm + tn) for tm, tn in family.tiles)
        best = peak * family.sustained / (1 + family.operand_cost * edges / area) * 1e-6
        roof = Roof(
            dtype=compute if tensor or in_pairs else _SIMT_TYPE.get(compute, compute),
            tensor_cores=tensor, fp16_sums=faster,
            peak=on_paper or peak, reached=best * 1e6, bandwidth=gpu.dram_bytes_per_s,
            reached_bandwidth=1e6 / self.us_per_byte,
        )  # fmt: skip
        return ArithmeticUnit(tensor, family, peak, best, tables, least_step_us, {}, roof)


def _runs_mma(gpu: Gpu, compute: Dtype, peak: float) -> bool:
    """Whether 8-bit layers run Ampere's instructions, which newer Tensor Cores multiply below their rate on paper.

    H20 has so low a rate that they reach it. Hopper's is 4096 FLOPs per clock and SM in 16 bits.
    """
    most = const.MMA_ON_HOPPER * 8192 * gpu.sms * (gpu.boost_clock_hz or _CLOCK_HZ)
    return "9.0" <= gpu.compute_capability < "10.0" and compute.bytes == 1 and peak > most


def tensor_family(gpu: Gpu, compute: Dtype, tensorrt: bool) -> Family:
    """The Tensor Core kernels of a GPU's generation for a compute dtype."""
    cc = gpu.compute_capability
    of_16_bits = True  # as most constants are
    if cc >= "9.0":
        family = const.BLACKWELL if cc >= "10.0" and cc < "12.0" else const.HOPPER if cc < "10.0" else const.AMPERE
        if compute == Dtype.tf32 and cc < "12.0":
            family, of_16_bits = replace(const.HOPPER_TF32, operand_rate=family.operand_rate), False
    elif cc >= "8.0":
        family = const.AMPERE
    else:
        family = const.TURING if cc >= "7.5" else const.VOLTA
    granule = min(family.granule, _GRANULE.get(compute, family.granule)) if of_16_bits else family.granule
    latency, setup = family.load_latency_us, family.setup_us
    if compute == Dtype.int8:
        latency *= const.INT8_LATENCY
    if tensorrt:
        setup = (_tensorrt_setup_us(gpu, setup[0]), *setup[1:])
        family = replace(family, taps_us=0.0) if family.taps_us else family
        if family is const.VOLTA:
            family = const.VOLTA_TENSORRT
        elif family is const.TURING:
            family = const.TURING_TENSORRT
    return replace(
        family, granule=granule, alignment=_ALIGNMENT.get(compute, 8), load_latency_us=latency, setup_us=setup
    )


def _tensorrt_setup_us(gpu: Gpu, of_cudnn_us: float) -> float:
    """The setup of an engine's kernel; where cuDNN's start sooner than any engine was timed to, it is theirs."""
    if "9.0" <= gpu.compute_capability < "12.0":
        return min(const.TENSORRT_SETUP_US, of_cudnn_us)
    return const.TENSORRT_SETUP_ON_VOLTA_US if gpu.architecture == "volta" else const.TENSORRT_SETUP_US


def simt_family(gpu: Gpu, tensorrt: bool) -> Family:
    """The kernels on CUDA cores of a GPU's generation."""
    cc = gpu.compute_capability
    # Thor (11.0) has the SMs of 10.x: CUDA 12 called it 10.1
    if cc >= "8.6" and gpu.architecture in ("ampere", "ada", "blackwell") and cc.numbers[0] not in (10, 11):
        family = const.SIMT_DOUBLED
    elif cc >= "9.0":
        family = const.SIMT_HOPPER
    elif cc >= "8.0":
        family = const.SIMT_VOLTA
    else:
        family = {
            "kepler": const.SIMT_KEPLER, "volta": const.SIMT_VOLTA, "turing": const.SIMT_TURING,
        }.get(gpu.architecture, const.SIMT)  # fmt: skip
    if not tensorrt:
        return family
    # 5x5 and 7x7 reach 13 to 15.5 TFLOP/s on V100, what implicit GEMM does: neither FFT nor Winograd with a workspace.
    return replace(
        family, setup_us=(_tensorrt_setup_us(gpu, family.setup_us[0]), *family.setup_us[1:]), workspace=False
    )


def _factors(gpu: Gpu) -> Factors:
    """What a calibration changes, on top of what GPUs of this kind were found to reach of others' constants."""
    measured = factors_of(gpu.calibration)
    if gpu.compute_capability != "8.7":
        return measured
    return Factors(
        tensor_clock=const.ORIN.tensor_clock * measured.tensor_clock, cuda_clock=measured.cuda_clock,
        bandwidth=const.ORIN.bandwidth * measured.bandwidth, launch_us=const.ORIN.launch_us + measured.launch_us,
    )  # fmt: skip


def clock_under_load(gpu: Gpu, *, tensor: bool) -> float:
    """Sustained over boost clock, as calibrated."""
    measured = _factors(gpu)
    if tensor:
        return const.TENSOR_CLOCK.get(gpu.id, 1.0) * measured.tensor_clock
    watts, fp32 = const.BOARD_WATTS.get(gpu.id), gpu.peak(Dtype.fp32, tensor=False)
    if watts is None or fp32 is None or gpu.compute_capability >= "8.0":
        return measured.cuda_clock
    return min(1.0, sqrt(watts / (fp32 * 1e-12) / const.WATTS_PER_TFLOP)) * measured.cuda_clock


_BOARDS: dict[str, Board] = {}
_CALIBRATED: dict[str, Board] = {}  # apart, so that a GPU with and without calibration can alternate


def board_of(gpu: Gpu) -> Board:
    """The board of a GPU, built once; a changed GPU of the same id gets its own."""
    boards = _BOARDS if gpu.calibration is None else _CALIBRATED
    board = boards.get(gpu.id)
    if board is None or (board.gpu is not gpu and board.gpu != gpu):
        board = boards[gpu.id] = Board(gpu)
    return board
