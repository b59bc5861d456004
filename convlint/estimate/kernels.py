"""Single ways to run a pass, tiled and untiled, each with all of its time."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from convlint.estimate import constants as const
from convlint.estimate.board import Board, Unit
from convlint.estimate.constants import Split
from convlint.estimate.copies import NONE, Copies, input_copy
from convlint.estimate.lowering import Lowering
from convlint.estimate.problem import Problem
from convlint.estimate.search import Choice, Program, fastest, join
from convlint.model.layer import Pass

PASS_INDEX: dict[Pass, int] = {"fprop": 0, "dgrad": 1, "wgrad": 2}
# What is a batch of products already, or fused, is not split; a 1x1 wgrad is a plain GEMM, split as libraries like.
_SPLITS: dict[str, Split] = {"fft": "never", "fused winograd": "never", "pointwise wgrad": "free"}
# The fused Winograd kernel computes 8 x 16 positions of 32 channels at a time.
FUSED_TILE = (128, 32)
_UNTILED = Program(1, 1, 1, (0.0, 0.0), 0.0, 0.0, 1)


class Case(Struct, frozen=True, gc=False):
    """One pass of one problem on one unit of a board; its kernels see `c` and `k` channels per group, `moved` bytes."""

    problem: Problem
    which: Pass
    board: Board
    unit: Unit
    c: int
    k: int
    moved: float


class Priced(Struct, frozen=True, gc=False):
    """One way to run a pass, with all of its time."""

    unit: Unit
    choice: Choice
    time_us: float
    overhead_us: float
    copies: Copies


def moved_bytes(problem: Problem, which: Pass, c: int, k: int) -> float:
    """DRAM bytes of the GEMM kernel; what a stride skips of x is not read, but dgrad writes all of it."""
    c_all, k_all = c * problem.groups, k * problem.groups
    x: float = problem.pixels_in * c_all
    w = k_all * c * problem.taps
    y = problem.pixels_out * k_all
    if which != "dgrad" and problem.strided:
        for taps, stride in ((problem.T, problem.StrideD), (problem.R, problem.U), (problem.S, problem.V)):
            x *= min(1.0, taps / stride)
    if which == "fprop":
        y *= 1 + problem.residual_inputs
    return problem.element_bytes * (x + w + y)


def least_tiled(case: Case, lowerings: list[Lowering], around: Copies, below_us: float = float("inf")) -> list[Priced]:
    """The fastest of the lowerings, in a list of its own; an empty one if none takes less than `below_us`."""
    problem, which, board, unit, bytes_ = case.problem, case.which, case.board, case.unit, case.moved
    family = unit.family
    index = PASS_INDEX[which]
    setup = family.setup_us[index]
    if family.weight_writes[index]:
        bytes_ += family.weight_writes[index] * problem.groups * case.c * case.k * problem.taps
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
            known=unit.searched,
        )
        if choice is None:
            continue
        overhead = setup + choice.kernels * family.extra_kernel_us
        time = fixed + join(choice.compute_us, choice.memory_us) + (choice.split > 1) * family.extra_kernel_us
        if time < below_us:
            below_us = time
            least = Priced(unit, choice, time, overhead, around)
    return [] if least is None else [least]


def untiled(case: Case, compute_us: float, around: Copies = NONE) -> Priced:
    """A kernel without tiles: `compute_us` against its bytes."""
    problem, which, board = case.problem, case.which, case.board
    memory_us = (
        moved_bytes(problem, which, problem.C // problem.groups, problem.K // problem.groups) * board.us_per_byte
    )
    return priced_untiled(case, compute_us, memory_us, join(compute_us, memory_us), around)


def direct(case: Case) -> Priced:
    """The kernels for narrow groups: no Tensor Cores, no reuse beyond a filter's."""
    problem, which, board = case.problem, case.which, case.board
    factor = depthwise_factor(which)
    compute_us = problem.flops / (const.DIRECT_SHARE * board.fp32_peak) * 1e6
    bytes_ = moved_bytes(problem, which, problem.C // problem.groups, problem.K // problem.groups)
    compute_us, memory_us = factor * compute_us, factor * bytes_ * board.copy_us_per_byte
    return priced_untiled(case, compute_us, memory_us, join(compute_us, memory_us), NONE)


def depthwise_factor(which: Pass) -> float:
    """What a pass takes, compared with the direct kernel that reads and writes as much."""
    return const.DEPTHWISE_WGRAD if which == "wgrad" else 1.0


def priced_untiled(case: Case, compute_us: float, memory_us: float, kernel_us: float, around: Copies) -> Priced:
    """A kernel without tiles that takes `kernel_us`, which its two parts explain."""
    problem, which, unit = case.problem, case.which, case.unit
    outputs = problem.pixels_out * problem.K
    choice = Choice(
        Lowering("direct", "", 1, outputs, 1, 1, outputs), _UNTILED, 1, outputs, 1, compute_us, memory_us, 0
    )
    overhead = unit.family.setup_us[PASS_INDEX[which]]
    time = kernel_us + overhead + around.transposes_us + around.padding_us
    return Priced(unit, choice, time, overhead, around)


def calibrated(priced: Priced, factor: float) -> Priced:
    """The same, where everything takes `factor` times as long."""
    choice, copies = priced.choice, priced.copies
    lowering = replace(choice.lowering, peak_share=choice.lowering.peak_share / factor)
    return replace(
        priced,
        choice=replace(
            choice, lowering=lowering, compute_us=choice.compute_us * factor, memory_us=choice.memory_us * factor
        ),
        copies=replace(copies, transposes_us=copies.transposes_us * factor, padding_us=copies.padding_us * factor),
        overhead_us=priced.overhead_us * factor,
        time_us=priced.time_us * factor,
    )


def behind_copy(priced: Priced, problem: Problem, board: Board, *, transposed: bool) -> Priced:
    """The same, once the layer's input is copied into the layout that the kernel reads.

    PyTorch keeps the input as it came, so that wgrad copies it again (ATen/native/cudnn/ConvShared.cpp,
    cudnn_convolution_backward_weight).
    """
    elements = problem.pixels_out * problem.K if transposed else problem.pixels_in * problem.C
    added = input_copy(elements * problem.element_bytes, board)
    copied = replace(priced.copies, transposes_us=priced.copies.transposes_us + added.transposes_us,
                     bytes=priced.copies.bytes + added.bytes)  # fmt: skip
    return replace(priced, time_us=priced.time_us + added.transposes_us, copies=copied)


def workspace_bytes(priced: Priced) -> int:
    """What a pass keeps beside its tensors: copies in the kernel's layout, transforms, the partial sums of a split."""
    choice = priced.choice
    lowering = choice.lowering
    partial_sums = 4 * choice.split * lowering.batch * lowering.M * lowering.N if choice.split > 1 else 0
    return priced.copies.bytes + lowering.workspace_bytes + partial_sums


def is_quantized(priced: Priced) -> bool:
    """Whether the pass pays for what its tiles and waves leave empty: one bound by memory or without tiles does not."""
    choice = priced.choice
    return choice.lowering.algorithm != "direct" and choice.compute_us >= choice.memory_us


def tile_efficiency(choice: Choice) -> float:
    """Useful share of the tiles' outputs; a kernel without tiles wastes none."""
    lowering, program = choice.lowering, choice.program
    if lowering.algorithm == "direct":
        return 1.0
    if lowering.fused_tiles:
        return min(1.0, lowering.useful_outputs / (choice.tiles * FUSED_TILE[0] * FUSED_TILE[1]))
    return min(1.0, lowering.useful_outputs * choice.split / (choice.tiles * program.tm * program.tn))


def without_quantization(priced: Priced, board: Board, useful: float = 1.0) -> float:
    """The time of the pass if neither tiles nor waves were wasted, all else equal; us.

    Of the work that fills the tiles only the share `useful` counts.
    """
    if not is_quantized(priced):
        return priced.time_us
    choice = priced.choice
    ideal_us = without_waves(priced, board) * tile_efficiency(choice) * useful
    return priced.time_us - join(choice.compute_us, choice.memory_us) + join(ideal_us, choice.memory_us)


def without_waves(priced: Priced, board: Board) -> float:
    """Compute time if tiles filled their last wave and no SM idled, all else equal."""
    choice, program = priced.choice, priced.choice.program
    full = program.rounds_us[program.resident] * choice.steps + priced.unit.family.round_us
    ideal = choice.tiles / (board.sms * program.resident) * full + program.drain_us * choice.steps
    return min(choice.compute_us, ideal / choice.lowering.peak_share)
