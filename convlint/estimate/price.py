"""The time of one pass: every way to run it, copies for layout and alignment, setup; and what quantization costs."""

from __future__ import annotations

from typing import NamedTuple

from convlint.estimate import constants as const
from convlint.estimate.board import Board, Unit
from convlint.estimate.lowering import Lowering, implicit_gemm, padded_channels
from convlint.estimate.problem import Problem
from convlint.estimate.search import Choice, Program, compute_time, fastest, join
from convlint.estimate.transforms import transforms
from convlint.model import Dtype, Pass

PASS_INDEX: dict[Pass, int] = {"fprop": 0, "dgrad": 1, "wgrad": 2}


class Priced(NamedTuple):
    """One way to run a pass, with all of its time."""

    unit: Unit
    choice: Choice
    time_us: float
    overhead_us: float
    transposes_us: float
    padding_us: float


class Situation(NamedTuple):
    """What of the runtime matters: the compute dtype, TensorRT, and whether cuDNN pads channels by itself."""

    compute: Dtype
    tensorrt: bool
    pads_nhwc: bool


def cheapest(problem: Problem, which: Pass, board: Board, situation: Situation) -> Priced | None:
    """The least of all ways that the GPU and the library have for this pass; None if there is none."""
    ways = []
    tensor = board.unit(situation.compute, tensor=True, tensorrt=situation.tensorrt)
    if tensor is not None:
        ways += _on_tensor_cores(problem, which, board, tensor, situation)
    simt = board.unit(situation.compute, tensor=False, tensorrt=situation.tensorrt)
    if simt is not None and tensor is None:
        ways += _on_cuda_cores(problem, which, board, simt)
    if problem.groups > 1:
        ways += _direct(problem, which, board, tensor or simt)
    return min(ways, key=lambda way: way.time_us) if ways else None


def useful_flops(problem: Problem) -> int:
    """2 x multiply-accumulates of any pass."""
    N, C, K, groups = problem.N, problem.C, problem.K, problem.groups
    return 2 * N * problem.Z * problem.P * problem.Q * K * (C // groups) * problem.T * problem.R * problem.S


def moved_bytes(problem: Problem, which: Pass, c: int, k: int, element_bytes: int) -> float:
    """DRAM bytes of the GEMM kernel: rows and columns that a stride skips are not read, except by dgrad's writes."""
    x = problem.N * c * problem.groups * problem.D * problem.H * problem.W
    w = k * problem.groups * c * problem.T * problem.R * problem.S
    y = problem.N * k * problem.groups * problem.Z * problem.P * problem.Q
    if which == "dgrad":
        read = 1.0
    else:
        read = min(1.0, problem.T / problem.StrideD) * min(1.0, problem.R / problem.U) * min(1.0, problem.S / problem.V)
    residual = problem.residual_inputs if which == "fprop" else 0
    return element_bytes * (x * read + w + y * (1 + residual))


def _on_tensor_cores(problem: Problem, which: Pass, board: Board, unit: Unit, situation: Situation) -> list[Priced]:
    family, groups = unit.family, problem.groups
    element_bytes = problem.dtype.bytes
    c, k = padded_channels(problem, family.alignment, board.modern)
    misaligned = c != problem.C // groups, k != problem.K // groups
    if any(misaligned) and not problem.nchw and not situation.pads_nhwc:
        flops = useful_flops(problem)
        return [_flat(problem, which, board, unit, flops / (const.FALLBACK_SHARE * 2 * board.fp32_peak) * 1e6)]
    transposes = _transposes(problem, which, board) if problem.nchw else 0.0
    padding = 0.0 if problem.nchw or situation.tensorrt else _padding(problem, which, board, c, k, misaligned)
    rule = family.fprop_split if which == "fprop" else "never" if which == "dgrad" else family.wgrad_split
    bytes_ = moved_bytes(problem, which, c, k, element_bytes)
    pointwise = problem.T == problem.R == problem.S == 1
    strided = problem.StrideD > 1 or problem.U > 1 or problem.V > 1
    if not board.modern and which != "fprop" and pointwise and problem.padded and groups == 1:
        flat = useful_flops(problem) / (const.DIRECT_SHARE * board.fp32_peak) * 1e6
        return [_flat(problem, which, board, unit, flat, transposes=transposes, padding=padding)]
    if which == "dgrad" and pointwise and strided and board.cc == "7.5":
        flat = useful_flops(problem) / (const.FALLBACK_SHARE * 2 * board.fp32_peak) * 1e6
        return [_flat(problem, which, board, unit, flat, transposes=transposes, padding=padding)]
    ways = []
    for lowering in implicit_gemm(problem, which, family, c, k, tensor=True, element_bytes=element_bytes):
        ways.append(_tiled(which, board, unit, lowering, rule, bytes_, problem, transposes, padding))
    if not board.modern and which == "wgrad" and c == 8 and groups == 1:
        flat = useful_flops(problem) / (const.DIRECT_SHARE * board.fp32_peak) * 1e6
        ways.append(_flat(problem, which, board, unit, flat, transposes=transposes, padding=padding))
    return ways


def _on_cuda_cores(problem: Problem, which: Pass, board: Board, unit: Unit) -> list[Priced]:
    family = unit.family
    element_bytes = problem.dtype.bytes
    c, k = problem.C // problem.groups, problem.K // problem.groups
    bytes_ = moved_bytes(problem, which, c, k, element_bytes)
    rule = family.fprop_split if which == "fprop" else "never" if which == "dgrad" else family.wgrad_split
    lowerings = implicit_gemm(problem, which, family, c, k, tensor=False, element_bytes=element_bytes)
    if problem.dtype in (Dtype.fp32, Dtype.tf32, Dtype.fp16):
        lowerings += transforms(problem, which, family, element_bytes, board.l2_bytes)
    ways = [_tiled(which, board, unit, lowering, rule, bytes_, problem, 0.0, 0.0) for lowering in lowerings]
    strided = problem.StrideD > 1 or problem.U > 1 or problem.V > 1
    if which == "dgrad" and c <= 4 and strided and problem.groups == 1:
        narrow = useful_flops(problem) / (const.NARROW_DGRAD_SHARE * unit.peak) * 1e6
        ways.append(_flat(problem, which, board, unit, narrow))
    return ways


def _tiled(
    which: Pass, board: Board, unit: Unit, lowering: Lowering, rule: const.Split, bytes_: float, problem: Problem,
    transposes: float, padding: float,
) -> Priced:  # fmt: skip
    family = unit.family
    index = PASS_INDEX[which]
    weights = problem.K * (problem.C // problem.groups) * problem.T * problem.R * problem.S
    bytes_us = (bytes_ + lowering.gemm_bytes + family.weight_writes[index] * weights) * board.us_per_byte
    if lowering.table in ("fft", "fused winograd"):
        rule = "never"
    table = unit.tables[lowering.table]
    choice = fastest(
        lowering,
        table,
        rule,
        family,
        sms=board.sms,
        bytes_us=bytes_us,
        us_per_byte=board.us_per_byte,
    )
    overhead = family.setup_us[index] + choice.kernels * family.extra_kernel_us
    serial = lowering.serial_bytes * board.us_per_byte
    time = join(choice.compute_us, choice.memory_us) + serial + overhead + transposes + padding
    return Priced(unit, choice, time, overhead, transposes, padding)


def _flat(
    problem: Problem, which: Pass, board: Board, unit: Unit, compute_us: float, *, transposes: float = 0.0,
    padding: float = 0.0, bandwidth_us: float | None = None,
) -> Priced:  # fmt: skip
    """A kernel without tiles: `compute_us` against its bytes."""
    c, k = problem.C // problem.groups, problem.K // problem.groups
    us_per_byte = board.us_per_byte if bandwidth_us is None else bandwidth_us
    memory_us = moved_bytes(problem, which, c, k, problem.dtype.bytes) * us_per_byte
    outputs = problem.N * problem.Z * problem.P * problem.Q * problem.K
    lowering = Lowering("direct", "", 1, outputs, 1, 1, outputs)
    program = Program(1, 1, 1, (0.0, 0.0), 0.0)
    choice = Choice(lowering, program, 1, outputs, 1, compute_us, memory_us, 0)
    overhead = unit.family.setup_us[PASS_INDEX[which]]
    return Priced(unit, choice, join(compute_us, memory_us) + overhead + transposes + padding, overhead, transposes, padding)


def _direct(problem: Problem, which: Pass, board: Board, unit: Unit | None) -> list[Priced]:
    if unit is None:
        return []
    compute_us = useful_flops(problem) / (const.DIRECT_SHARE * board.fp32_peak) * 1e6
    way = _flat(problem, which, board, unit, compute_us, bandwidth_us=board.copy_us_per_byte)
    if which != "wgrad":
        return [way]
    factor = const.DEPTHWISE_WGRAD
    choice = way.choice._replace(compute_us=way.choice.compute_us * factor, memory_us=way.choice.memory_us * factor)
    return [way._replace(choice=choice, time_us=way.overhead_us + (way.time_us - way.overhead_us) * factor)]


def _tensors(problem: Problem, which: Pass) -> tuple[int, ...]:
    """Elements of the tensors that a pass reads and writes in the layer's layout."""
    x = problem.N * problem.C * problem.D * problem.H * problem.W
    y = problem.N * problem.K * problem.Z * problem.P * problem.Q
    w = problem.K * (problem.C // problem.groups) * problem.T * problem.R * problem.S
    return (x, y, w) if which == "dgrad" else (x, y)


def _transposes(problem: Problem, which: Pass, board: Board) -> float:
    """NCHW on Tensor Cores: each tensor is read and written once more (CG 4.1)."""
    tensors = _tensors(problem, which)
    return 2 * problem.dtype.bytes * sum(tensors) * board.copy_us_per_byte + const.COPY_KERNEL_US * len(tensors)


def _padding(problem: Problem, which: Pass, board: Board, c: int, k: int, misaligned: tuple[bool, bool]) -> float:
    """Copies of misaligned tensors into aligned ones, and of results back (CG 4.4.3)."""
    groups, dtype_bytes = problem.groups, problem.dtype.bytes
    x = problem.N * problem.D * problem.H * problem.W * groups
    y = problem.N * problem.Z * problem.P * problem.Q * groups
    elements = kernels = 0
    if misaligned[0]:
        elements += x * (problem.C // groups + c)
        kernels += 1
    if misaligned[1]:
        elements += y * (problem.K // groups + k)
        kernels += 1
    if any(misaligned):
        w = problem.T * problem.R * problem.S * groups
        elements += w * ((problem.C // groups) * (problem.K // groups) + c * k)
        kernels += 1
    return elements * dtype_bytes * board.copy_us_per_byte + kernels * const.COPY_KERNEL_US


def without_waves(priced: Priced, board: Board) -> float:
    """Compute time if tiles filled their last wave and no SM idled, all else equal."""
    choice, family = priced.choice, priced.unit.family
    program, resident = choice.program, choice.program.resident
    if choice.lowering.algorithm == "direct":
        return choice.compute_us
    full = program.rounds_us[resident] * choice.steps + family.round_us
    ideal = choice.tiles / (board.sms * resident) * full + program.drain_us * choice.steps
    return min(choice.compute_us, ideal / choice.lowering.peak_share)


__all__ = ["Priced", "Situation", "cheapest", "compute_time", "join", "useful_flops", "without_waves"]
