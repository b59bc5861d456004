"""The kernels that may run a pass (implicit GEMM, direct, generic), their times, and the copies around them."""

from __future__ import annotations

from math import sqrt
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from convlint.estimate import constants as const
from convlint.estimate.board import ArithmeticUnit, Board
from convlint.estimate.constants import Family, Split
from convlint.estimate.results import Problem, is_volume
from convlint.estimate.search import Lowering, ProgramChoice, TileProgram, ceil_to, fastest, join
from convlint.model.layer import Dtype, Pass

# Output points per side that F(m x m, R x R) computes at once; both multiply (m + R - 1)^2 = 36 points.
_WINOGRAD_OUTPUT = {3: 4, 5: 2}
_FUSED_WINOGRAD_SHARE = 0.93  # of what the GEMM's inner loop reaches
LEAST_BATCH_NOT_FUSED = 12  # images from which on the kernel with a workspace may run
# cuFFT's 32 x 32 tiles: 32 * 17 complex points; 3 real multiplies of a complex one count as 4 real GEMM columns.
_FFT_TILE, _FFT_POINTS, _FFT_BYTES = 32, 544, 16


def transforms(problem: Problem, which: Pass, family: Family, board: Board, *, searched: bool) -> list[Lowering]:
    """The transform-based lowerings that apply to a 2-D, stride-1, ungrouped pass without dilation; none otherwise.

    (cuDNN API Reference, cudnnConvolutionForward: Winograd and FFT have "Dilation: 1 for all dimensions".)
    FFT is taken where all algorithms were `searched`: heuristics do not pick it. Assumed. What does not fit into the
    GPU's memory beside the layer's own tensors is left out, as libraries leave it out.
    """
    if problem.T != 1 or problem.D != 1 or problem.StrideD != 1 or problem.U != 1 or problem.V != 1:
        return []
    if problem.groups != 1 or problem.dilated:
        return []
    ways = []
    if problem.R == problem.S and problem.R in _WINOGRAD_OUTPUT:
        # Libraries keep to the fused kernel for small batches, also where the other one is faster; Kepler has none.
        fused = family.fused_winograd and which != "wgrad" and problem.R == 3
        if not fused or problem.N >= LEAST_BATCH_NOT_FUSED:
            ways.append(_winograd(problem, which, family, board.l2_bytes))
        if fused:
            ways.append(_fused_winograd(problem, which, family))
    if searched and 5 <= problem.R <= 9 and problem.S < _FFT_TILE:
        ways.append(_fft(problem, which, family))
    room = board.gpu.memory_bytes
    return [lowering for lowering in ways if room is None or lowering.workspace_bytes + _tensors_bytes(problem) <= room]


def _gemm_of(which: Pass, points: int, C: int, K: int) -> tuple[int, int, int]:
    """M, N and the reduction of the GEMM at one point of the transform."""
    if which == "fprop":
        return points, K, C
    return (points, C, K) if which == "dgrad" else (C, K, points)


def _tensors_bytes(problem: Problem) -> int:
    N, C, H, W, K, P, Q = problem.N, problem.C, problem.H, problem.W, problem.K, problem.P, problem.Q
    return problem.element_bytes * (N * C * H * W + N * K * P * Q)


def _winograd(problem: Problem, which: Pass, family: Family, l2_bytes: int) -> Lowering:
    m = _WINOGRAD_OUTPUT[problem.R]
    C, K = problem.C, problem.K
    tiles = problem.N * -(-problem.P // m) * -(-problem.Q // m)
    M, N, reduction = _gemm_of(which, tiles, C, K)
    added = _tensors_bytes(problem) + _spilled(which, tiles, C, K, l2_bytes)
    workspace = sum(_transformed_bytes(tiles, C, K))
    return Lowering(
        "winograd", "winograd", 36, M, N, -(-reduction // family.granule), 36 * M * N, 3, added,
        workspace_bytes=workspace,
    )  # fmt: skip


def _transformed_bytes(tiles: int, C: int, K: int) -> tuple[int, int, int]:
    """Input, weights and output as 36 matrices of fp32 each."""
    return 144 * tiles * C, 144 * C * K, 144 * tiles * K


def _spilled(which: Pass, tiles: int, C: int, K: int, l2_bytes: int) -> float:
    """DRAM traffic of the transformed tensors that L2 cannot hold, in bytes.

    They are written and read. Of activations a part is read while L2 still holds it; the transform of weights, which
    scatters each 3x3 filter over 36 matrices, writes at half the rate of a stream. A weight gradient is only read. Fit.
    """
    weights = 1.0 if which == "wgrad" else 3.0
    sizes = _transformed_bytes(tiles, C, K)
    return sum(times * size for times, size in zip((1.5, weights, 1.5), sizes, strict=True) if size > l2_bytes)


def _fused_winograd(problem: Problem, which: Pass, family: Family) -> Lowering:
    if which == "fprop":
        height, width, columns, channels = problem.P, problem.Q, problem.K, problem.C
    else:
        height, width, columns, channels = problem.H, problem.W, problem.C, problem.K
    blocks = problem.N * -(-height // 8) * -(-width // 16)
    tiles = blocks * -(-columns // 32)
    useful = problem.N * height * width * columns
    return Lowering(
        "winograd",
        "fused winograd", 1, blocks * 128, columns, -(-channels // family.granule), useful,
        fused_tiles=tiles, peak_share=_FUSED_WINOGRAD_SHARE,
    )  # fmt: skip


def _fft(problem: Problem, which: Pass, family: Family) -> Lowering:
    C, K = problem.C, problem.K
    tiles = problem.N * -(-problem.P // (_FFT_TILE + 1 - problem.R)) * -(-problem.Q // (_FFT_TILE + 1 - problem.S))
    M, N, reduction = _gemm_of(which, tiles, C, K)
    workspace = _FFT_POINTS * _FFT_BYTES * (tiles * C + C * K + tiles * K)
    added = _tensors_bytes(problem) + workspace
    return Lowering(
        "fft", "fft", _FFT_POINTS, M, N, -(-reduction // family.granule), _FFT_POINTS * M * N, 3, added,
        workspace_bytes=workspace,
    )  # fmt: skip


class Copies(Struct, frozen=True, gc=False):
    """Time of the copies, by cause, and their size. A transpose into padded channels counts as one transpose."""

    transposes_us: float
    padding_us: float
    bytes: int = 0  # of workspace


NONE = Copies(0.0, 0.0)


def copies(
    problem: Problem, which: Pass, c: int, k: int, *, pads: bool, board: Board, by_compiler: bool = False
) -> Copies:
    """The copies of tensors in the wrong layout or with misaligned channels into what the kernel reads.

    `c` and `k` are padded channels per group; `pads`: copies are what makes them so (a TensorRT engine has its
    tensors padded already), `by_compiler`: its own kernels, at the speed of memory. Before cc 8.0 the activations are
    transposed, in dgrad the weights too (CG 4.1), and the weights are copied where C or K is misaligned (CG 4.4.3).
    From cc 8.0 on all tensors are transposed, but for the y of fprop, which kernels write in NCHW. From cc 9.0 on y is
    too, as traces show; not so in 32 bits and one dimension, where H100's times leave no room for it. Weights of one
    tap lie the same way in both layouts.
    """
    raw_c, raw_k = problem.C // problem.groups, problem.K // problem.groups
    nchw = problem.nchw
    if not nchw and ((c == raw_c and k == raw_k) or not pads):
        return NONE
    pixels_in, pixels_out, taps = problem.pixels_in, problem.pixels_out, problem.taps
    modern, us_per_byte, kernel_us = board.modern, board.copy_us_per_byte, board.copy_kernel_us
    element_bytes = problem.element_bytes
    in_all_groups = problem.groups * element_bytes
    kept_in_l2 = board.l2_bytes * const.COPY_IN_L2 if modern else 0
    transposes = padding = 0.0
    workspace = 0
    tensors = [
        ("w", taps * raw_c * raw_k, taps * c * k, nchw and taps > 1 and (modern or which == "dgrad")),
        ("x", pixels_in * raw_c, pixels_in * c, nchw),
    ]
    hopper = board.like_hopper
    turns_slower = const.HOPPER_TURNS_SLOWER if hopper and element_bytes == 2 else 1.0
    pads_slower, pad_kernel_us = 1.0, kernel_us
    if hopper:
        kernel_us = const.HOPPER_TURN_US
    if hopper and not by_compiler:
        pad_kernel_us, pads_slower = const.HOPPER_PAD_US, const.HOPPER_PADS_SLOWER
    turns_y = element_bytes == 2 or problem.H > 1
    if (hopper and turns_y) or not (modern and which == "fprop"):
        tensors.append(("y", pixels_out * raw_k, pixels_out * k, nchw))
    for tensor, raw, wide, transposed in tensors:
        if raw == wide and not transposed:
            continue
        size = wide * in_all_groups
        # A copy that L2 holds is read from there by the kernel that it was made for, and overwritten by the next one.
        in_l2 = size <= kept_in_l2 and (transposed or not hopper)
        time = (raw * in_all_groups + (0 if in_l2 else size)) * us_per_byte
        if transposed and modern:
            rows, points, channels = _transposed(problem, tensor, c, k)
            side = const.TRANSPOSE_TILE
            moved = 2 * element_bytes * rows * ceil_to(points, side) * ceil_to(channels, side)
            time = max(time * turns_slower, moved / (const.TRANSPOSE_BYTES_PER_CLOCK * board.clocks_per_us))
        if transposed:
            transposes += time + kernel_us
            if hopper and pads and raw != wide and tensor != "x" and which != "wgrad":
                padding += pad_kernel_us  # by a kernel of its own
            workspace += size
        elif pads:
            padding += time * pads_slower + pad_kernel_us
            workspace += size
    return Copies(transposes, padding, workspace)


def _transposed(problem: Problem, tensor: str, c: int, k: int) -> tuple[int, int, int]:
    """Matrices of a tensor that are transposed, and their sides: points, and channels as the kernel wants them."""
    N, groups = problem.N, problem.groups
    if tensor == "x":
        return N, problem.pixels_in // N, c * groups
    if tensor == "y":
        return N, problem.pixels_out // N, k * groups
    return problem.K, problem.taps, c


def input_copy(size: int, board: Board) -> Copies:
    """A tensor of `size` bytes, written once more in the layout that the kernel reads: the framework's own copy."""
    kept_in_l2 = board.l2_bytes * const.COPY_IN_L2 if board.modern else 0
    moved = size + (size if size > kept_in_l2 else 0)
    return Copies(moved * board.copy_us_per_byte + board.copy_kernel_us, 0.0, size)


PASS_INDEX: dict[Pass, int] = {"fprop": 0, "dgrad": 1, "wgrad": 2}
# A batch of products fills the SMs without a split, and a fused kernel has none; a 1x1 wgrad is a plain GEMM, which
# libraries split freely.
_SPLITS: dict[str, Split] = {"fft": "never", "fused winograd": "never", "pointwise wgrad": "free"}
# The fused Winograd kernel computes 8 x 16 positions of 32 channels at a time.
FUSED_TILE = (128, 32)
_UNTILED = TileProgram(1, 1, 1, (0.0, 0.0), 0.0, 0.0, 1)


class KernelCase(Struct, frozen=True, gc=False):
    """One pass of one problem on one unit of a board.

    Its kernels see `c` and `k` channels per group, padding included, and move `moved` bytes.
    """

    problem: Problem
    which: Pass
    board: Board
    unit: ArithmeticUnit
    c: int
    k: int
    moved: float


class Priced(Struct, frozen=True, gc=False):
    """One way to run a pass, with all of its time."""

    unit: ArithmeticUnit
    choice: ProgramChoice
    time_us: float
    overhead_us: float
    copies: Copies


BY_TIME = attrgetter("time_us")


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


def least_tiled(
    case: KernelCase, lowerings: list[Lowering], around: Copies, below_us: float = float("inf")
) -> list[Priced]:
    """The fastest of the lowerings, in a list of its own; an empty one if none takes less than `below_us`."""
    problem, which, board, unit, bytes_ = case.problem, case.which, case.board, case.unit, case.moved
    family = unit.family
    index = PASS_INDEX[which]
    setup = family.setup_us[index] + (family.taps_us if problem.taps > 1 else 0.0)
    if family.weight_writes[index]:
        bytes_ += family.weight_writes[index] * problem.groups * case.c * case.k * problem.taps
    us_per_byte, extra_us = board.us_per_byte, family.extra_kernel_us
    base = setup + around.transposes_us + around.padding_us
    # Volumes keep their reduction whole: 4 to 16 tiles take 113 to 116 us on V100 whatever their number (cuDNN 8.0.5).
    unsplit = which == "fprop" and is_volume(problem)
    least: ProgramChoice | None = None
    for lowering in lowerings:
        fixed, bytes_us = base, bytes_ * us_per_byte
        if lowering.extra_kernels:
            fixed += lowering.serial_bytes * us_per_byte + lowering.extra_kernels * extra_us
            bytes_us += max(0.0, lowering.zeroed_bytes - board.l2_bytes) * us_per_byte
        outputs = lowering.fused_tiles * const.FUSED_TILE_WORK or lowering.batch * lowering.M * lowering.N
        least_us = outputs * lowering.steps * unit.least_step_us[lowering.table] / lowering.peak_share
        # Most kernels that compete with a better one end here.
        if fixed + least_us >= below_us or fixed + bytes_us >= below_us:
            continue
        choice = fastest(
            lowering,
            unit.tables[lowering.table],
            "never" if unsplit else _SPLITS.get(lowering.table, family.split[index]),
            family,
            sms=board.sms,
            bytes_us=bytes_us,
            us_per_byte=us_per_byte,
            below_us=below_us - fixed,
            known=unit.searched,
        )
        if choice is None:
            continue
        time = fixed + join(choice.compute_us, choice.memory_us) + (choice.split > 1) * extra_us
        if time < below_us:
            below_us, least = time, choice
    if least is None:
        return []
    return [Priced(unit, least, below_us, setup + least.kernels * extra_us, around)]


def untiled(case: KernelCase, compute_us: float, around: Copies = NONE) -> Priced:
    """A kernel without tiles: `compute_us` against its bytes."""
    memory_us = _unpadded_bytes(case) * case.board.us_per_byte
    return priced_untiled(case, compute_us, memory_us, join(compute_us, memory_us), around)


def direct(case: KernelCase) -> Priced:
    """The kernels for narrow groups: no Tensor Cores, no reuse beyond a filter's."""
    factor = const.GROUPED_WGRAD if case.which == "wgrad" else 1.0
    alone_us = 0.0
    if case.board.modern and not is_volume(case.problem):
        images = case.problem.N * case.problem.groups
        alone_us = case.problem.flops / images / (const.DIRECT_IN_GROUP * case.board.clock_hz) * 1e6
    compute_us = factor * max(direct_us(case), alone_us)
    memory_us = factor * _unpadded_bytes(case) * case.board.copy_us_per_byte
    return priced_untiled(case, compute_us, memory_us, join(compute_us, memory_us), NONE)


def direct_us(case: KernelCase) -> float:
    """Compute time of a kernel without Tensor Cores and without tiles: never beyond the peak of its unit (fp64)."""
    return case.problem.flops / min(const.DIRECT_SHARE * case.board.fp32_peak, case.unit.peak) * 1e6


def _unpadded_bytes(case: KernelCase) -> float:
    """DRAM bytes with the channels as they are: kernels without tiles pad none."""
    problem = case.problem
    return moved_bytes(problem, case.which, problem.C // problem.groups, problem.K // problem.groups)


def priced_untiled(
    case: KernelCase, compute_us: float, memory_us: float, kernel_us: float, around: Copies,
    overhead_us: float | None = None,
) -> Priced:  # fmt: skip
    """A kernel without tiles that takes `kernel_us`; `compute_us` and `memory_us` are the parts of it.

    Beside it is `overhead_us`, or what its unit's kernels need.
    """
    problem, which, unit = case.problem, case.which, case.unit
    outputs = problem.pixels_out * problem.K
    choice = ProgramChoice(
        Lowering("direct", "", 1, outputs, 1, 1, outputs), _UNTILED, 1, outputs, 1, compute_us, memory_us, 0
    )
    overhead = unit.family.setup_us[PASS_INDEX[which]] if overhead_us is None else overhead_us
    time = kernel_us + overhead + around.transposes_us + around.padding_us
    return Priced(unit, choice, time, overhead, around)


def calibrated(priced: Priced, factor: float, transposes: float | None = None) -> Priced:
    """The same pass with all of its times multiplied by `factor`; `transposes` is that of transposes, if another."""
    choice, copies = priced.choice, priced.copies
    transposes_us = copies.transposes_us * (factor if transposes is None else transposes)
    lowering = replace(choice.lowering, peak_share=choice.lowering.peak_share / factor)
    return replace(
        priced,
        choice=replace(
            choice, lowering=lowering, compute_us=choice.compute_us * factor, memory_us=choice.memory_us * factor
        ),
        copies=replace(copies, transposes_us=transposes_us, padding_us=copies.padding_us * factor),
        overhead_us=priced.overhead_us * factor,
        time_us=(priced.time_us - copies.transposes_us) * factor + transposes_us,
    )


def with_copy(priced: Priced, time_us: float, bytes_: int = 0) -> Priced:
    """The same with another copy, which takes so long and keeps so many bytes."""
    copied = replace(
        priced.copies, transposes_us=priced.copies.transposes_us + time_us, bytes=priced.copies.bytes + bytes_
    )
    return replace(priced, time_us=priced.time_us + time_us, copies=copied)


def behind_copy(priced: Priced, problem: Problem, board: Board, *, transposed: bool) -> Priced:
    """The same, behind a copy of the layer's input into the layout that the kernel reads.

    PyTorch keeps the input as it came, so that wgrad copies it again (ATen/native/cudnn/ConvShared.cpp,
    cudnn_convolution_backward_weight).
    """
    elements = problem.pixels_out * problem.K if transposed else problem.pixels_in * problem.C
    added = input_copy(elements * problem.element_bytes, board)
    return with_copy(priced, added.transposes_us, added.bytes)


def permuted_us(elements: int, board: Board) -> float:
    """The time of PyTorch's own copy of so many elements into another layout."""
    us = max(const.PERMUTED_BYTES * board.us_per_byte, const.PERMUTED_CLOCKS / board.clocks_per_us)
    return elements * us + board.copy_kernel_us


def before_norm(priced: Priced, problem: Problem, board: Board, *, transposed: bool) -> Priced:
    """The same, with the copies by group norms of the layer's output from NHWC into NCHW.

    One forward; on the way back the norm's result is copied for the convolution, once for both of its passes: it counts
    for wgrad. A copy moves element by element, so that 16 bits take the time of 32.
    """
    elements = problem.pixels_in * problem.C if transposed else problem.pixels_out * problem.K
    copy_us = permuted_us(elements, board)
    return with_copy(priced, problem.norm_copies * copy_us)


def with_columns(priced: Priced, problem: Problem) -> Priced:
    """The same, with the matrix that each window of one sample is copied into (ATen/native/vol2col.h, im2col.h)."""
    columns = problem.pixels_out // problem.N * problem.C * problem.taps * problem.element_bytes
    return replace(priced, copies=replace(priced.copies, bytes=priced.copies.bytes + columns))


def unfolding(priced: Priced, problem: Problem, board: Board) -> Priced:
    """The same, with the copy that lays patches side by side before fprop, or takes them apart behind dgrad.

    The framework's own copy, element by element; wgrad reads what fprop has kept.
    """
    elements = problem.pixels_in * problem.C
    return with_copy(priced, permuted_us(elements, board))


def workspace_bytes(priced: Priced) -> int:
    """What a pass keeps beside its tensors: copies in the kernel's layout, transforms, the partial sums of a split."""
    choice = priced.choice
    lowering = choice.lowering
    partial_sums = 4 * choice.split * lowering.batch * lowering.M * lowering.N if choice.split > 1 else 0
    return priced.copies.bytes + lowering.workspace_bytes + partial_sums


def is_quantized(priced: Priced) -> bool:
    """Whether empty tiles and waves cost the pass time: not if it is bound by memory or has no tiles."""
    choice = priced.choice
    return choice.lowering.algorithm != "direct" and choice.compute_us >= choice.memory_us


def tile_efficiency(choice: ProgramChoice) -> float:
    """The share of the tiles' outputs that are results; a kernel without tiles wastes none."""
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


def generic(case: KernelCase, *, native: bool, searched: bool, before_8: bool) -> Priced | None:
    """The generic kernel of a pass that has no other; None for others. `native`: in PyTorch, where they were timed.

    `before_8`: with cuDNN before 8.

    A large strided filter on an image has it where heuristics pick, as AlexNet's first layer was timed; where all
    algorithms are `searched`, a better one is taken to be found.
    """
    problem, board = case.problem, case.board
    rate = _of_groups(case, native, before_8) if problem.groups > 1 else _of_few_channels(case, searched)
    if rate is None:
        return None
    return untiled(case, problem.flops / (rate * board.sms * board.clock_hz) * 1e6)


def few_channels(case: KernelCase) -> Priced:
    """The kernel on CUDA cores that reads at most three channels in NCHW as they stand."""
    board = case.board
    per_clock = const.FEW_CHANNELS_ON_CUDA_CORES if board.like_hopper else const.GENERIC_VOLUME[board.generation]
    rate = per_clock * board.sms * board.clock_hz
    return untiled(case, case.problem.flops / rate * 1e6 + const.FEW_CHANNELS_US)


def _of_groups(case: KernelCase, native: bool, before_8: bool) -> float | None:
    """Useful FLOPs per clock and SM of direct kernels for groups; depthwise layers have others."""
    problem, which, board = case.problem, case.which, case.board
    c, k = problem.C // problem.groups, problem.K // problem.groups
    if c == 1:
        return None
    if problem.element_bytes == 4:  # of strided transposed layers; ResNeXt in fp32 trains faster than that
        return const.GROUPED_DIRECT if which == "dgrad" and problem.strided and max(c, k) <= 32 else None
    if not native or problem.nchw or problem.element_bytes != 2:
        return None
    if is_pair(problem) and board.modern and not board.like_hopper and not is_volume(problem):
        return const.PAIRS / board.groups_slower
    if problem.layout != "NHWC":
        return None
    if before_8 and case.unit.tensor and not board.modern and min(c, k) >= const.SLOW_GROUP_BEFORE_CUDNN_8:
        return const.GROUPS_BEFORE_CUDNN_8[PASS_INDEX[which]]
    if which == "fprop" or not board.modern:
        return None
    narrow = max(c, k) <= const.VECTOR and problem.C % const.GROUPS_AT_ONCE == 0
    wide = c == k and problem.groups % const.GROUPS_AT_ONCE == 0
    has_kernels = c & (c - 1) == 0 == k & (k - 1) and (narrow or wide)
    if has_kernels:
        return None
    return const.WIDE_GROUPS if c == k == const.WIDE_GROUP else const.OTHER_GROUPS


def timed_groups_us(case: KernelCase, compute: Dtype) -> float | None:
    """What groups of an image take on cc 9.0, by timings of such groups; None where tiles predict it as well."""
    problem, board, (c, k) = case.problem, case.board, _widths(case.problem)
    layout, unit = "NCHW" if problem.nchw else "NHWC", "16 bits" if problem.element_bytes == 2 else str(compute)
    strided, width = problem.strided, "odd" if c * k < const.WIDE_ODD_GROUP**2 else "wide odd"
    if is_pair(problem):  # of which not all was timed; without Tensor Cores in any case
        width, unit = "pair", "16 bits" if unit == "16 bits" else "tf32"
        strided = strided and (layout, unit, width, True) in const.HOPPER_GROUPS
    elif unit == "fp32":
        width = "any"
    elif not is_odd_group(problem):
        width = "narrow" if c <= const.NARROW_GROUP else "wide"
    times = const.HOPPER_GROUPS.get((layout, unit, width, strided))
    if times is None:
        return None
    least_us, power, rates = times
    rate = rates[PASS_INDEX[case.which]] * sqrt(c * k) ** power
    if not rate:
        return None
    compute_us = problem.flops / min(rate * board.clocks_per_us, case.unit.best_flops_per_us)
    return least_us + join(compute_us, _unpadded_bytes(case) * board.us_per_byte)


def widened_groups(case: KernelCase) -> Copies:
    """The copies of x and y into groups as wide as cuDNN has kernels for, in NHWC on cc 9.0."""
    problem = case.problem
    slow = case.which == "dgrad" and problem.strided and problem.element_bytes == 4
    clocks = const.WIDENED_CLOCKS_OF_STRIDED_DGRAD if slow else const.WIDENED_CLOCKS * case.board.groups_slower
    elements = problem.pixels_in * problem.C + problem.pixels_out * problem.K
    return Copies(0.0, const.WIDENED_US + clocks * elements / case.board.clocks_per_us)


def is_pair(problem: Problem) -> bool:
    """Whether groups are of 2 channels to 2."""
    return _widths(problem) == (const.PAIR, const.PAIR)


def _widths(problem: Problem) -> tuple[int, int]:
    return problem.C // problem.groups, problem.K // problem.groups


def is_odd_group(problem: Problem) -> bool:
    """Whether the width of a group is no power of two, or is not that of the outputs."""
    c, k = _widths(problem)
    return c != k or bool(c & (c - 1))


def has_odd_groups(problem: Problem) -> bool:
    """Whether the layer has odd groups, in 16 bits, that fill no tile."""
    grouped = problem.groups > 1 and problem.element_bytes == 2
    return grouped and is_odd_group(problem) and max(_widths(problem)) <= const.WIDEST_ODD_GROUP


def _of_few_channels(case: KernelCase, searched: bool) -> float | None:
    """Useful FLOPs per clock and SM of generic kernels for at most three channels in NCHW and NCDHW.

    No vector load fits such tensors.
    """
    problem, which, board = case.problem, case.which, case.board
    if problem.element_bytes != 4 or problem.taps == 1:
        return None
    is_image = problem.D == 1 and problem.T == 1
    if is_image:
        large = problem.nchw and problem.strided and problem.taps > const.MOST_TAPS
        if searched or not large or which != "fprop":
            return None
    if problem.layout == "NHWC" or which == "wgrad" or board.generation not in const.GENERIC_VOLUME:
        return None
    if (problem.C if which == "fprop" else problem.K) >= const.FIRST_LAYER_CHANNELS:
        return None
    rates = const.GENERIC_IMAGE if is_image else const.GENERIC_VOLUME
    return (rates if which == "fprop" else const.GENERIC_VOLUME_DGRAD)[board.generation]
