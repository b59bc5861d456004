"""The time of one pass: every way that the GPU and the library have to run it, and the least of them."""

from __future__ import annotations

from typing import NamedTuple

from convlint.estimate import constants as const
from convlint.estimate.board import Board, Unit
from convlint.estimate.constants import Split
from convlint.estimate.copies import NONE, Copies, copies
from convlint.estimate.lowering import Lowering, implicit_gemm, padded_channels
from convlint.estimate.problem import Problem
from convlint.estimate.search import Choice, Program, fastest, join
from convlint.estimate.transforms import transforms
from convlint.model import Dtype, Pass

PASS_INDEX: dict[Pass, int] = {"fprop": 0, "dgrad": 1, "wgrad": 2}
# What is a batch of products already, or fused, is not split; a 1x1 wgrad is a plain GEMM, split as libraries like.
_SPLITS: dict[str, Split] = {"fft": "never", "fused winograd": "never", "pointwise wgrad": "free"}
_UNTILED = Program(1, 1, 1, (0.0, 0.0), 0.0)


class Situation(NamedTuple):
    """What of the runtime matters: the compute dtype, TensorRT, and whether cuDNN pads channels by itself."""

    compute: Dtype
    tensorrt: bool
    pads_nhwc: bool


class Case(NamedTuple):
    """One pass of one problem on one unit of a board."""

    problem: Problem
    which: Pass
    board: Board
    unit: Unit


class Priced(NamedTuple):
    """One way to run a pass, with all of its time."""

    unit: Unit
    choice: Choice
    time_us: float
    overhead_us: float
    copies: Copies


def cheapest(problem: Problem, which: Pass, board: Board, situation: Situation) -> Priced | None:
    """The least of all ways for this pass; None if there is none.

    CUDA cores stand beside Tensor Cores for tf32 alone: it permits Tensor Cores, and on GeForce they are no faster.
    """
    compute, tensorrt = situation.compute, situation.tensorrt
    ways: list[Priced] = []
    unit = tensor = board.unit(compute, tensor=True, tensorrt=tensorrt)
    if tensor is not None:
        ways = _on_tensor_cores(Case(problem, which, board, tensor), situation)
    if tensor is None or compute == Dtype.tf32:
        simt = board.unit(Dtype.fp32 if compute == Dtype.tf32 else compute, tensor=False, tensorrt=tensorrt)
        if simt is not None and (tensor is None or simt.peak * const.WINOGRAD_GAIN > tensor.peak):
            unit = unit or simt
            below_us = min((way.time_us for way in ways), default=float("inf"))
            ways += _on_cuda_cores(Case(problem, which, board, simt), below_us)
    if problem.groups > 1 and unit is not None:
        ways.append(_direct(Case(problem, which, board, unit)))
    return min(ways, key=lambda way: way.time_us) if ways else None


def useful_flops(problem: Problem) -> int:
    """2 x multiply-accumulates of any pass."""
    outputs = problem.N * problem.Z * problem.P * problem.Q * problem.K
    return 2 * outputs * (problem.C // problem.groups) * problem.taps


def moved_bytes(problem: Problem, which: Pass, c: int, k: int) -> float:
    """DRAM bytes of the GEMM kernel; what a stride skips of x is not read, but dgrad writes all of it."""
    groups = problem.groups
    x: float = problem.N * c * groups * problem.D * problem.H * problem.W
    w = k * groups * c * problem.taps
    y = problem.N * k * groups * problem.Z * problem.P * problem.Q
    if which != "dgrad" and problem.strided:
        for taps, stride in ((problem.T, problem.StrideD), (problem.R, problem.U), (problem.S, problem.V)):
            x *= min(1.0, taps / stride)
    if which == "fprop":
        y *= 1 + problem.residual_inputs
    return problem.dtype.bytes * (x + w + y)


def _on_tensor_cores(case: Case, situation: Situation) -> list[Priced]:
    problem, which, board, unit = case
    family = unit.family
    # First layers have no dgrad, so no library has kernels for one into few channels; an RGB head is padded to a vector.
    c, k = padded_channels(problem, family.alignment, board.modern and which != "dgrad")
    half_rate = useful_flops(problem) / (const.FALLBACK_SHARE * 2 * board.fp32_peak) * 1e6
    aligned = c * problem.groups == problem.C and k * problem.groups == problem.K
    if not (aligned or problem.nchw or situation.pads_nhwc):
        return [_untiled(case, half_rate)]
    around = copies(problem, which, c, k, pads=not situation.tensorrt, us_per_byte=board.copy_us_per_byte)
    slow = useful_flops(problem) / (const.DIRECT_SHARE * board.fp32_peak) * 1e6
    if not board.modern and which != "fprop" and problem.groups == 1 and problem.taps == 1:
        if problem.padded:
            return [_untiled(case, slow, around)]
        if which == "dgrad" and problem.strided and board.cc == "7.5":
            return [_untiled(case, half_rate, around)]
    bytes_ = moved_bytes(problem, which, c, k)
    ways = _least_tiled(
        case, implicit_gemm(problem, which, family, c, k, tensor=True, few_channels=board.modern), bytes_, around
    )
    if not board.modern and which == "wgrad" and c == 8 and problem.taps > const.MOST_TAPS and problem.groups == 1:
        ways.append(_untiled(case, slow, around))
    return ways


def _on_cuda_cores(case: Case, below_us: float) -> list[Priced]:
    problem, which, board, unit = case
    family = unit.family
    c, k = problem.C // problem.groups, problem.K // problem.groups
    bytes_ = moved_bytes(problem, which, c, k)
    lowerings = implicit_gemm(problem, which, family, c, k, tensor=False)
    if problem.dtype in (Dtype.fp32, Dtype.tf32, Dtype.fp16):
        lowerings = transforms(problem, which, family, board.l2_bytes) + lowerings
    ways = _least_tiled(case, lowerings, bytes_, NONE, below_us)
    if which == "dgrad" and c <= 4 and problem.strided and problem.groups == 1:
        ways.append(_untiled(case, useful_flops(problem) / (const.NARROW_DGRAD_SHARE * unit.peak) * 1e6))
    return ways


def _least_tiled(
    case: Case, lowerings: list[Lowering], bytes_: float, around: Copies, below_us: float = float("inf")
) -> list[Priced]:
    """The fastest of the lowerings, in a list of its own; an empty one if none takes less than `below_us`."""
    problem, which, board, unit = case
    family = unit.family
    index = PASS_INDEX[which]
    setup = family.setup_us[index]
    if family.weight_writes[index]:
        bytes_ += family.weight_writes[index] * problem.K * (problem.C // problem.groups) * problem.taps
    copied = around.transposes_us + around.padding_us
    least: Priced | None = None
    for lowering in lowerings:
        fixed = (
            setup + copied + lowering.serial_bytes * board.us_per_byte + lowering.extra_kernels * family.extra_kernel_us
        )
        choice = fastest(
            lowering,
            unit.tables[lowering.table],
            _SPLITS.get(lowering.table, family.split[index]),
            family,
            sms=board.sms,
            bytes_us=(bytes_ + max(0.0, lowering.zeroed_bytes - board.l2_bytes)) * board.us_per_byte,
            us_per_byte=board.us_per_byte,
            below_us=below_us - fixed,
        )
        if choice is None:
            continue
        overhead = setup + choice.kernels * family.extra_kernel_us
        time = fixed + join(choice.compute_us, choice.memory_us) + (choice.split > 1) * family.extra_kernel_us
        if time < below_us:
            below_us = time
            least = Priced(unit, choice, time, overhead, around)
    return [] if least is None else [least]


def _untiled(case: Case, compute_us: float, around: Copies = NONE) -> Priced:
    """A kernel without tiles: `compute_us` against its bytes."""
    problem, which, board, _unit = case
    memory_us = (
        moved_bytes(problem, which, problem.C // problem.groups, problem.K // problem.groups) * board.us_per_byte
    )
    return _priced_untiled(case, compute_us, memory_us, around)


def _direct(case: Case) -> Priced:
    """The kernels for depthwise and narrow groups: no Tensor Cores, no reuse beyond a filter's."""
    problem, which, board, _ = case
    factor = depthwise_factor(which)
    compute_us = useful_flops(problem) / (const.DIRECT_SHARE * board.fp32_peak) * 1e6
    bytes_ = moved_bytes(problem, which, problem.C // problem.groups, problem.K // problem.groups)
    return _priced_untiled(case, factor * compute_us, factor * bytes_ * board.copy_us_per_byte, NONE)


def depthwise_factor(which: Pass) -> float:
    """What a pass takes, compared with the direct kernel that reads and writes as much."""
    return const.DEPTHWISE_WGRAD if which == "wgrad" else 1.0


def _priced_untiled(case: Case, compute_us: float, memory_us: float, around: Copies) -> Priced:
    problem, which, _, unit = case
    outputs = problem.N * problem.Z * problem.P * problem.Q * problem.K
    choice = Choice(
        Lowering("direct", "", 1, outputs, 1, 1, outputs), _UNTILED, 1, outputs, 1, compute_us, memory_us, 0
    )
    overhead = unit.family.setup_us[PASS_INDEX[which]]
    time = join(compute_us, memory_us) + overhead + around.transposes_us + around.padding_us
    return Priced(unit, choice, time, overhead, around)


def without_waves(priced: Priced, board: Board) -> float:
    """Compute time if tiles filled their last wave and no SM idled, all else equal."""
    choice, program = priced.choice, priced.choice.program
    full = program.rounds_us[program.resident] * choice.steps + priced.unit.family.round_us
    ideal = choice.tiles / (board.sms * program.resident) * full + program.drain_us * choice.steps
    return min(choice.compute_us, ideal / choice.lowering.peak_share)
