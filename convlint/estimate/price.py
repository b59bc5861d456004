"""The price of one pass: the fastest kernel that the library may take, and why it takes that long."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from convlint.estimate import constants as const
from convlint.estimate.board import ArithmeticUnit, Board
from convlint.estimate.kernels import (
    BY_TIME,
    FUSED_TILE,
    NONE,
    PASS_INDEX,
    Copies,
    KernelCase,
    Priced,
    calibrated,
    copies,
    direct,
    direct_us,
    few_channels,
    generic,
    has_odd_groups,
    is_odd_group,
    is_pair,
    is_quantized,
    least_tiled,
    moved_bytes,
    tile_efficiency,
    timed_groups_us,
    transforms,
    untiled,
    widened_groups,
    without_waves,
    workspace_bytes,
)
from convlint.estimate.results import Problem, is_depthwise, is_patch_embedding, is_volume
from convlint.estimate.search import THREADS_PER_TILE, Lowering, implicit_gemm, join, padded_channels
from convlint.model.estimates import Bound, Grid, PassEstimate, Roof
from convlint.model.layer import Dtype, Gemm, Mode, Pass

_STORED_IN_32_BITS = (Dtype.fp32, Dtype.tf32)
Transformed = Literal["never", "NCHW", "any layout"]
_TRANSFORMED = (Dtype.fp32, Dtype.tf32, Dtype.fp16)  # have Winograd and FFT kernels


class Situation(Struct, frozen=True, gc=False):
    """The parts of the runtime that times depend on."""

    compute: Dtype  # what multiplies
    tensorrt: bool  # whose kernels run, not cuDNN's
    pads_nhwc: bool  # cuDNN pads misaligned channels of NHWC itself
    searched: bool  # all algorithms were tried; else heuristics picked one
    native: bool  # PyTorch, which has kernels of its own; also where no framework is given
    xla: bool = False  # JAX, whose groups take the time of PyTorch's
    absent: tuple[Mode, ...] = ()  # in which the framework has no convolution of this dtype
    old_depthwise: bool = False  # PyTorch asks cuDNN for fewer depthwise layers: before 1.11 or with cuDNN before 8.2
    adds_bias: bool = False  # by a kernel of its own
    volumes_without_cudnn: bool = False  # in 16 bits and NCDHW
    refuses_dilation: bool = False  # PyTorch runs dilated layers in NCHW without cuDNN
    before_8: bool = False  # cuDNN before 8


# What half precision is taken to save at least, and a stride to cost at most, where they are predicted to cost time.
_LEAST_GAIN_OF_HALF = 1.08
_MOST_COST_OF_STRIDE = 1.04
_VECTOR_BYTES = 16
_FFT_TAPS = 5  # per side, from which on FFT may multiply less than Winograd


def cheapest(problem: Problem, which: Pass, board: Board, situation: Situation) -> Priced | None:
    """The fastest way to run this pass; None if there is none.

    Two limits keep kernels that were timed in a few shapes from contradicting each other elsewhere: a stride takes no
    longer than all positions would, and fp32 no less time than fp16 but for a tenth. What makes fp16 slow (transposes,
    narrow groups, taps of few channels) was timed, fp32 without TF32 was not. Timings stand: before cc 8.0 of fp32 in
    NCHW and its strided dgrad, which is slow, and of TensorRT; from cc 9.0 on of groups in PyTorch, depthwise ones too.
    """
    least = _cheapest(problem, which, board, situation)
    if least is None:
        return None
    timed = situation.tensorrt or (which == "dgrad" and situation.compute in _STORED_IN_32_BITS)
    groups = problem.groups > 1 and _has_timed_groups(problem, board, situation)
    if groups and is_depthwise(problem):
        return least
    if problem.strided and not groups and (board.modern or not timed):
        least = _at_most(least, _without_stride(problem), which, board, situation)
    stored_in_32 = problem.dtype in _STORED_IN_32_BITS  # tf32 is fp32 on a GPU without it
    if stored_in_32 and situation.compute == Dtype.fp32 and _may_cost_half_more(problem, board, situation):
        in_half = replace(problem, dtype=Dtype.fp16, element_bytes=2)
        theirs = replace(situation, compute=Dtype.fp16, pads_nhwc=True, before_8=False)
        half = cheapest(in_half, which, board, theirs)
        if half is not None and half.time_us > _LEAST_GAIN_OF_HALF * least.time_us:
            least = calibrated(least, half.time_us / (_LEAST_GAIN_OF_HALF * least.time_us))
    return least


def _at_most(priced: Priced, full: Problem, which: Pass, board: Board, situation: Situation) -> Priced:
    """The pass, taking no longer than `full`, the same one at all positions."""
    longest_us = priced.time_us / _MOST_COST_OF_STRIDE
    memory_us = moved_bytes(full, which, full.C // full.groups, full.K // full.groups) * board.us_per_byte
    tensor, simt = units = board.units(situation.compute, situation.tensorrt)
    setup_us = min(unit.family.setup_us[PASS_INDEX[which]] for unit in units if unit is not None)
    # Below the time of every kernel but FFT: `full` has a larger y, so that it copies no less than `problem` does.
    least_us = 0.0 if full.nchw and not board.modern and situation.searched and full.R >= _FFT_TAPS else longest_us
    if tensor is not None:
        copied = priced.unit.tensor and not board.modern and full.groups == 1
        copies_us = priced.copies.transposes_us + priced.copies.padding_us if copied else 0.0
        least_us = min(least_us, join(full.flops / tensor.best_flops_per_us, memory_us) + setup_us + copies_us)
    if simt is not None:
        rate = simt.best_flops_per_us * const.WINOGRAD_GAIN
        least_us = min(least_us, join(full.flops / rate, memory_us) + setup_us)
    if least_us >= longest_us:
        return priced
    priced_full = _cheapest(full, which, board, situation)
    if priced_full is None or priced_full.time_us >= longest_us:
        return priced
    return calibrated(replace(priced, unit=priced_full.unit), priced_full.time_us / longest_us)


def _may_cost_half_more(problem: Problem, board: Board, situation: Situation) -> bool:
    """Whether fp16 pays for something here that fp32 does not: transposes, padded channels, groups."""
    if board.units(Dtype.fp16, situation.tensorrt)[0] is None:
        return False
    if not board.modern and (problem.layout != "NHWC" or situation.tensorrt):
        return False
    aligned = problem.C % const.VECTOR == 0 == problem.K % const.VECTOR and problem.C > const.MOST_FEW_CHANNELS
    return problem.nchw or problem.groups > 1 or not aligned or (problem.taps == 1 and problem.padded)


@lru_cache(64)  # of a layer's passes, which are priced in turn
def _without_stride(problem: Problem) -> Problem:
    """The same on the same input, at every position."""
    Z = _positions(problem.Z, problem.StrideD, problem.D)
    P, Q = _positions(problem.P, problem.U, problem.H), _positions(problem.Q, problem.V, problem.W)
    pixels_out = problem.N * Z * P * Q
    return replace(
        problem, StrideD=1, U=1, V=1, Z=Z, P=P, Q=Q, strided=False, pixels_out=pixels_out,
        flops=problem.flops // problem.pixels_out * pixels_out,
    )  # fmt: skip


def _positions(outputs: int, stride: int, inputs: int) -> int:
    """Outputs at stride 1, of which every `stride`-th is one of `outputs`: as many as inputs where that may be."""
    return min(max(inputs, (outputs - 1) * stride + 1), outputs * stride)


def _cheapest(problem: Problem, which: Pass, board: Board, situation: Situation) -> Priced | None:
    """The fastest kernel of those that timings do not rule out.

    CUDA cores compete with Tensor Cores, which may have to pad or transpose too much.
    """
    tensor, simt = board.units(situation.compute, situation.tensorrt)
    if tensor is not None and _is_too_narrow(problem, which) and not situation.tensorrt:
        tensor = None
    unit = tensor or simt
    if unit is None:
        return None
    case = _case(problem, which, board, unit)
    if 1 < problem.groups == problem.C and not (situation.tensorrt and is_volume(problem)):
        from convlint.estimate.depthwise import depthwise  # most networks have none

        return depthwise(case, tensorrt=situation.tensorrt, native=situation.native, old=situation.old_depthwise)
    timed = problem.groups > 1 and _has_timed_groups(problem, board, situation)
    excluded = timed or situation.tensorrt
    only = None if excluded else _generic(case, situation)
    if only is not None:
        return _with_kernels_of_groups(only, case, situation)
    ways: list[Priced] = []
    widened = tensor is not None and problem.groups > 1 and _widens_groups(problem, which, board, situation)
    if situation.tensorrt and not board.modern and _reaches_over_input(problem, which):
        plain = board.units(Dtype.fp32, True)[1]
        if plain is not None:
            return _least(_on_cuda_cores(_case(problem, which, board, plain), "any layout"))
    if tensor is None:
        ways = _on_cuda_cores(case, _transformed(situation), searched=situation.searched)
    elif not (situation.pads_nhwc or problem.nchw or _aligned(case)):
        return _refused(case, simt, situation)
    else:
        ways = _measured_fallback(case, situation) or _on_tensor_cores(case, situation)
        if simt is not None and not (timed or widened or _keeps_to_tensor_cores(case, situation)):
            ways += _instead_of_tensor_cores(case, simt, situation, _least(ways).time_us)
    if problem.groups > 1:
        narrow = which == "fprop" and _has_narrow_groups(problem, board)
        if timed:
            return _as_timed(case, ways, situation, narrow=narrow)
        if narrow and board.modern and not situation.tensorrt:
            ways = []
        if not widened:
            ways.append(direct(case))
    elif problem.C == problem.K == 1 and which != "wgrad" and board.modern and not situation.tensorrt:
        ways.append(few_channels(case))  # 8.1 us forward and 9.6 back for 256 x 1 x 2048, 7 taps, on H200
    return _with_kernels_of_groups(_least(ways), case, situation)


def _generic(case: KernelCase, situation: Situation) -> Priced | None:
    return generic(case, native=situation.native, searched=situation.searched, before_8=situation.before_8)


def _as_timed(case: KernelCase, ways: list[Priced], situation: Situation, *, narrow: bool) -> Priced:
    """Groups of an image on cc 9.0: by tiles, in the time that such groups were measured to take.

    Pairs, and where that is faster `narrow` ones in NCHW, run cuDNN's direct kernel.
    """
    least, timed_us = _least(ways), timed_groups_us(case, situation.compute)
    pair = is_pair(case.problem)
    if pair:
        least = direct(case)
    if timed_us is not None and (situation.compute != Dtype.fp32 or timed_us > least.time_us):
        least = calibrated(least, timed_us / least.time_us)
    return min(least, direct(case), key=BY_TIME) if narrow and not pair else least


def _widens_groups(problem: Problem, which: Pass, board: Board, situation: Situation) -> bool:
    """Whether a layer's groups take as long as widened ones do, on Ampere, Ada and Blackwell for PCs (RegNets, DPN)."""
    seen = which == "fprop" and board.modern and not board.like_hopper and situation.native
    return seen and not problem.nchw and not is_volume(problem) and has_odd_groups(problem)


def _has_timed_groups(problem: Problem, board: Board, situation: Situation) -> bool:
    """Whether a layer with groups, depthwise or not, is of a kind that was timed on cc 9.0."""
    timed = situation.native or (situation.xla and problem.groups < problem.C)
    return board.like_hopper and timed and not is_volume(problem)


def _with_kernels_of_groups(priced: Priced, case: KernelCase, situation: Situation) -> Priced:
    """The same, with a kernel for each group of a volume in NCDHW."""
    problem = case.problem
    if problem.groups == 1 or not is_volume(problem) or not problem.nchw or not case.board.modern or situation.tensorrt:
        return priced
    more = problem.groups * const.VOLUME_OF_GROUP_US
    return replace(priced, time_us=priced.time_us + more, overhead_us=priced.overhead_us + more)


def _is_too_narrow(problem: Problem, which: Pass) -> bool:
    """Whether fp32 tensors in NCHW have so few channels that libraries run them on CUDA cores without a copy."""
    few = problem.C // problem.groups < const.FIRST_LAYER_CHANNELS
    return few and which == "fprop" and problem.nchw and problem.element_bytes == 4


def _has_narrow_groups(problem: Problem, board: Board) -> bool:
    """Whether cuDNN runs fprop of groups in NCHW with its direct kernel, as on H200: one kernel, nothing transposed."""
    widest = max(problem.C, problem.K) // problem.groups
    most = const.VECTOR if board.like_hopper else const.NARROW_GROUP
    return problem.nchw and problem.element_bytes == 2 and widest <= most


def _reaches_over_input(problem: Problem, which: Pass) -> bool:
    """Whether the filter is larger than the map: TensorRT's fp16 and int8 rows of V100 run as slow as fp32 there."""
    return which == "fprop" and (problem.R > problem.H or problem.S > problem.W)


def _least(ways: list[Priced]) -> Priced:
    return ways[0] if len(ways) == 1 else min(ways, key=BY_TIME)


def _case(problem: Problem, which: Pass, board: Board, unit: ArithmeticUnit) -> KernelCase:
    """The pass with the channels that the kernels of `unit` see.

    First layers have no dgrad, so no library has kernels for one into few channels; an RGB head is padded to a vector.
    """
    few = unit.tensor and which != "dgrad" and (board.modern or problem.groups == 1) and not unit.family.vector_rows
    few = few and not (board.like_hopper and problem.dtype == Dtype.bf16)  # which has none there
    c, k = padded_channels(problem, unit.family.alignment, few)
    return KernelCase(problem, which, board, unit, c, k, moved_bytes(problem, which, c, k))


def _aligned(case: KernelCase) -> bool:
    groups = case.problem.groups
    return case.c * groups == case.problem.C and case.k * groups == case.problem.K


def _copies(case: KernelCase, situation: Situation) -> Copies:
    problem, board = case.problem, case.board
    if problem.groups > 1 and not problem.nchw and is_odd_group(problem):
        timed = _has_timed_groups(problem, board, situation)
        if timed or _widens_groups(problem, case.which, board, situation):
            return widened_groups(case)
    return copies(
        problem, case.which, case.c, case.k, pads=not situation.tensorrt, board=board,
        by_compiler=_xla_pads(case, situation),
    )  # fmt: skip


def _xla_pads(case: KernelCase, situation: Situation) -> bool:
    """Whether XLA pads the channels before cuDNN sees them: fp16 alone, while no tensor grows by more than 35 %.

    github openxla/xla:xla/service/gpu/transforms/cudnn_pad_for_convolutions.cc. The filter grows most.
    """
    problem = case.problem
    if not situation.xla or problem.dtype != Dtype.fp16 or problem.groups > 1:
        return False
    return case.c * case.k <= const.XLA_PADS_TO * problem.C * problem.K


def _measured_fallback(case: KernelCase, situation: Situation) -> list[Priced]:
    """The slow kernel that V100 and T4 were measured to run instead of a Tensor Core one; empty for other passes."""
    problem, which, board = case.problem, case.which, case.board
    if board.modern or which == "fprop" or problem.groups > 1 or problem.taps > 1:
        return []
    if problem.padded:
        return [untiled(case, direct_us(case), _copies(case, situation))]
    if which == "dgrad" and problem.strided and board.cc == "7.5":
        rate = const.STRIDED_POINTWISE_SHARE * 2 * board.fp32_peak
        return [untiled(case, problem.flops / rate * 1e6, _copies(case, situation))]
    return []


def _keeps_to_tensor_cores(case: KernelCase, situation: Situation) -> bool:
    """Whether no implicit GEMM on CUDA cores stands beside this pass, because timings say so.

    On V100 and T4 eight channels run tap by tap, although CUDA cores would often be faster, and a padded 1x1 has its
    own fallback; from cc 8.0 on what walks the taps of an image does so, however long it takes.
    """
    problem, which, board = case.problem, case.which, case.board
    if _walks_taps(problem, which, board, situation):
        return True
    if board.modern or problem.groups > 1 or problem.nchw:
        return False
    if which == "dgrad":
        return problem.taps == 1 and problem.padded
    return case.c == const.VECTOR or (which == "wgrad" and problem.taps == 1 and problem.padded)


def _on_tensor_cores(case: KernelCase, situation: Situation) -> list[Priced]:
    problem, which, board, unit, c, k = case.problem, case.which, case.board, case.unit, case.c, case.k
    around = _copies(case, situation)
    if _is_product(problem, which, board):
        # On cc 9.0 maps whose rows of positions fill no 16 bytes may be turned: 7x7 and 14x14 of ResNet-50 in 16 bits.
        # In TF32 all were that were timed with aligned channels and several images.
        turned = board.like_hopper and problem.pixels_out // problem.N * problem.element_bytes % _VECTOR_BYTES
        always = turned and problem.element_bytes == 4 and problem.N > 1 and _aligned(case) and not situation.tensorrt
        ways = [] if always else [_as_product(case, situation)]
        if turned:
            ways += least_tiled(case, implicit_gemm(problem, which, unit.family, c, k, tensor=True), around)
        return ways
    older = const.VECTOR if unit.family.vector_rows else const.FIRST_LAYER_CHANNELS
    few = const.MOST_FEW_CHANNELS if board.modern else older
    if _walks_taps(problem, which, board, situation):
        return _tap_by_tap(case, around)
    lowerings = implicit_gemm(problem, which, unit.family, c, k, tensor=True, few_channels=few)
    share = _peak_share(case, situation, few)
    if is_volume(problem) and is_patch_embedding(problem) and problem.element_bytes == 2 and not situation.tensorrt:
        slower = const.PATCHES_SLOWER[PASS_INDEX[which]]
        share /= slower
        case = replace(case, moved=case.moved * slower)
    if share != 1:
        lowerings = [replace(lowering, peak_share=share) for lowering in lowerings]
    is_narrow = board.modern and not situation.tensorrt and _loads_narrow_vectors(case)
    if is_narrow and board.like_hopper and problem.taps == 1:
        narrow = _with_narrow_vectors(case)
        return narrow + least_tiled(case, lowerings, around) if _xla_pads(case, situation) else narrow
    ways = least_tiled(case, lowerings, around)
    in_tf32 = board.like_hopper and situation.compute == Dtype.tf32 and not situation.tensorrt
    if in_tf32 and which == "wgrad" and problem.taps > 1 and not is_volume(problem):
        ways = [_summed_up(way) for way in ways]
    if is_narrow and not board.like_hopper:
        ways += _with_narrow_vectors(case, ways[0])
    many_taps = which == "wgrad" and problem.taps > const.MOST_TAPS and problem.groups == 1
    if many_taps and c <= const.VECTOR and not board.modern:
        ways.append(untiled(case, direct_us(case) * c / problem.C, around))
    return ways


def _peak_share(case: KernelCase, situation: Situation, few: int) -> float:
    """The share of the Tensor Cores' rate that implicit GEMMs have; `few` channels run in kernels of their own."""
    problem, which, board = case.problem, case.which, case.board
    if board.modern and is_volume(problem):
        return const.VOLUME_SHARE
    if problem.groups > 1 or situation.tensorrt or not board.like_hopper or problem.taps == 1:
        return 1.0
    if case.c <= few and case.unit.family.granule % case.c == 0 and problem.element_bytes > 1:
        share = board.of_amperes(const.FEW_CHANNELS_ON_HOPPER[which])
        return share * const.EIGHT_CHANNELS_ON_HOPPER if which == "fprop" and case.c == const.VECTOR else share
    return _hopper_share(case.c, case.k, which) if problem.element_bytes == 2 else 1.0


def _summed_up(priced: Priced) -> Priced:
    """The same, with what it takes to add up a sum that was split, in TF32 and over several taps."""
    more = const.TF32_SUM_US if priced.choice.split > 1 else 0.0
    return replace(priced, time_us=priced.time_us + more, overhead_us=priced.overhead_us + more)


def _hopper_share(C: int, K: int, which: Pass) -> float:
    """The share of the tiles' speed that filters of several taps reach on cc 9.0 in 16 bits."""
    if which == "wgrad":
        return const.HOPPER_PARTLY_FILLED_WGRAD if C % 64 or K % 64 else 1.0
    inner, outputs = (C, K) if which == "fprop" else (K, C)
    share = const.HOPPER_HALF_STEP if inner == 32 else const.HOPPER_PARTLY_FILLED if inner % 32 else 1.0
    if outputs <= 64:
        share *= const.HOPPER_FEWEST_OUTPUTS if outputs <= 32 else const.HOPPER_FEW_OUTPUTS
    return share


def _walks_taps(problem: Problem, which: Pass, board: Board, situation: Situation) -> bool:
    """Whether Tensor Cores take the few channels of an image tap by tap, each a step of its own, mostly padding.

    On cc 9.0 all fprop of bf16 and tf32, and of fp16 in NCHW and small filters; before that volumes in NCHW; patch
    embeddings in either layout, for which H100 took a kernel of Ampere's (a trace; H20's times per patch agree). For
    other first layers a search finds better on RTX 3090.
    """
    if which != "fprop" or situation.tensorrt:
        return False
    if is_patch_embedding(problem):
        timed = problem.element_bytes == 2 or (board.like_hopper and situation.compute == Dtype.tf32)
        return problem.C <= const.VECTOR and timed
    if board.like_hopper and not is_volume(problem) and problem.groups == 1 and problem.taps > 1:
        if situation.compute in (Dtype.bf16, Dtype.tf32):
            return problem.C <= const.MOST_FEW_CHANNELS
        if problem.taps > const.FEW_CHANNELS_TAPS:
            return False
    few = problem.nchw and problem.C < const.FIRST_LAYER_CHANNELS and problem.element_bytes == 2
    return few and board.modern and (board.like_hopper or is_volume(problem))


def _tap_by_tap(case: KernelCase, around: Copies) -> list[Priced]:
    """Tensor Cores at one step per tap; small filters of an image also on CUDA cores, with nothing transposed."""
    problem = case.problem
    M = problem.pixels_out
    share = const.SHARE_BY_TAPS
    if case.board.like_hopper and problem.element_bytes == 2:
        share = case.board.of_amperes(const.HOPPER_SHARE_BY_TAPS)
    lowering = Lowering("implicit-gemm", "taps", 1, M, case.k, problem.taps, M * problem.K, peak_share=share)
    ways = least_tiled(case, [lowering], around)
    small = problem.taps <= const.FEW_CHANNELS_TAPS and problem.C < const.FIRST_LAYER_CHANNELS
    if small and problem.element_bytes == 2 and problem.nchw and not is_patch_embedding(problem):
        ways.append(few_channels(case))
    return ways


def _is_product(problem: Problem, which: Pass, board: Board) -> bool:
    """Whether the pass is a 1x1 that multiplies each image of an NCHW tensor as it stands, with nothing transposed."""
    if not board.modern or not problem.nchw or problem.taps > 1 or problem.groups > 1:
        return False
    if problem.padded or problem.strided:
        return False
    return board.like_hopper or (problem.element_bytes == 4 and which == "fprop")


def _as_product(case: KernelCase, situation: Situation) -> Priced:
    """A batch of products, one per image. Positions lie side by side, so that they align loads, not channels.

    Before cc 9.0 nobody timed it with channels that NHWC pads; it is taken to be no faster than NHWC there (CG 4.1).
    """
    problem, which, board, unit = case.problem, case.which, case.board, case.unit
    N, C, K, granule, points = problem.N, problem.C, problem.K, unit.family.granule, problem.pixels_out // problem.N
    load_bytes = (points | C) * problem.element_bytes
    load_bytes = max(2, load_bytes & -load_bytes)  # of 1 none were timed: at best as slow as those of 2
    timed = board.like_hopper and problem.element_bytes > 1
    slower = (const.NARROW_POINTWISE[which] if timed else const.NARROW_PRODUCT).get(load_bytes, 1.0)
    moved = moved_bytes(problem, which, problem.C, problem.K)
    if timed and problem.element_bytes == 2 and load_bytes < _VECTOR_BYTES:
        moved *= const.NARROW_HALVES_MOVE
        slower *= const.NARROW_PRODUCT_SLOWER
    if which == "wgrad":
        slower *= const.PRODUCT_WGRAD[problem.element_bytes == 4]
        lowering = Lowering("implicit-gemm", "pointwise wgrad", 1, C, K, N * -(-points // granule), C * K)
    else:
        outputs, inner = (K, C) if which == "fprop" else (C, K)
        useful = problem.pixels_out * outputs
        lowering = Lowering("implicit-gemm", which, N, points, outputs, -(-inner // granule), useful)
    lowering = replace(lowering, peak_share=1 / slower)
    here = KernelCase(problem, which, board, unit, problem.C, problem.K, moved)
    product = least_tiled(here, [lowering], NONE)[0]
    if _aligned(case) or problem.element_bytes == 4 or board.like_hopper:
        return product
    in_nhwc = _cheapest(replace(problem, layout="NHWC", nchw=False), which, board, situation)
    if in_nhwc is None or in_nhwc.time_us <= product.time_us:
        return product
    return calibrated(product, in_nhwc.time_us / product.time_us)


def _loads_narrow_vectors(case: KernelCase) -> bool:
    """Whether kernels may take misaligned NHWC as it stands, by loads of less than 16 bytes: none does of 8 bits."""
    problem = case.problem
    if problem.nchw or problem.groups > 1 or problem.C <= const.FIRST_LAYER_CHANNELS or problem.element_bytes == 1:
        return False
    return (case.c, case.k) != (problem.C, problem.K)


def _with_narrow_vectors(case: KernelCase, padded: Priced | None = None) -> list[Priced]:
    """Misaligned NHWC without a copy, where it takes less than `padded`.

    Without that it is the only way: from cc 9.0 on a 1x1 is not padded, and other filters always are.
    """
    problem, which, board, unit = case.problem, case.which, case.board, case.unit
    c, k = problem.C, problem.K
    load_bytes = (c | k) * problem.element_bytes
    load_bytes &= -load_bytes  # the largest power of two that divides both rows
    slower = (const.NARROW_VECTORS if padded else const.NARROW_POINTWISE)[which][min(load_bytes, 8)]
    moved = moved_bytes(problem, which, c, k)
    if padded is None and problem.element_bytes == 2:
        moved *= const.NARROW_HALVES_MOVE
        slower *= const.NARROW_HALVES_SLOWER[PASS_INDEX[which]]
    # What it saves is the copies: where they take so little, it is hopeless.
    if padded is not None and padded.copies.padding_us < (slower - 1) * padded.choice.compute_us / 2:
        return []
    unscaled = implicit_gemm(problem, which, unit.family, c, k, tensor=True)
    lowerings = [replace(lowering, peak_share=lowering.peak_share / slower) for lowering in unscaled]
    here = KernelCase(problem, which, board, unit, c, k, moved)
    return least_tiled(here, lowerings, NONE, float("inf") if padded is None else padded.time_us)


def _instead_of_tensor_cores(
    case: KernelCase, simt: ArithmeticUnit, situation: Situation, below_us: float
) -> list[Priced]:
    """CUDA-core kernels for what Tensor Cores may multiply, where they take less than `below_us`.

    fp16 and bf16 are multiplied as fp32: in NCHW by all that fp32 has before cc 8.0, by nothing on cc 9.0, where layers
    were timed to keep to Tensor Cores; else by implicit GEMM alone, in NHWC as Tensor Cores want it, since networks on
    RTX 3090 lose more to NCHW than a kernel that reads it would let them. No copy pads channels, but odd ones spoil
    vector loads here too and count as if they were padded.
    """
    problem, which, board, c, k = case.problem, case.which, case.board, case.c, case.k
    if problem.dtype in _STORED_IN_32_BITS:  # on GeForce, Tensor Cores are no faster at tf32
        enough = simt.peak * const.WINOGRAD_GAIN > case.unit.peak
        return _on_cuda_cores(_case(problem, which, board, simt), "never", below_us) if enough else []
    if problem.nchw and board.like_hopper:
        return []
    spare_us = below_us - simt.family.setup_us[PASS_INDEX[which]]
    if problem.nchw and not board.modern:
        may_transform = problem.taps > 1 and not problem.strided
        rate = simt.best_flops_per_us * (const.WINOGRAD_GAIN if may_transform else 1.0)
        may_be_fft = may_transform and situation.searched and problem.R >= _FFT_TAPS
        if problem.flops / rate >= spare_us and not may_be_fft:
            return []
        here = _case(problem, which, board, simt)
        ways = _on_cuda_cores(here, _transformed(situation), below_us, searched=situation.searched)
        if problem.groups == 1 and min(problem.C, problem.K) >= const.FIRST_LAYER_CHANNELS:
            return ways
        in_single = _case(replace(problem, dtype=Dtype.fp32, element_bytes=4), which, board, simt)
        only = _generic(in_single, situation)
        return ways if only is None else [*ways, only]
    here = KernelCase(problem, which, board, simt, c, k, case.moved)
    narrow = _narrow_dgrad(here, const.FIRST_LAYER_CHANNELS) if which == "dgrad" else []
    least_us = problem.flops / simt.best_flops_per_us
    if least_us >= spare_us or join(least_us, case.moved * board.us_per_byte) >= spare_us:
        return narrow
    groups = problem.groups
    around = copies(problem, which, problem.C // groups, problem.K // groups, pads=False, board=board)
    lowerings = implicit_gemm(problem, which, simt.family, c, k, tensor=False)
    return narrow + least_tiled(here, lowerings, around, below_us)


def _narrow_dgrad(case: KernelCase, c: int) -> list[Priced]:
    """The kernel for a strided dgrad into at most 4 channels, of which it computes `c`; empty for other passes."""
    problem, which, unit = case.problem, case.which, case.unit
    if which != "dgrad" or not problem.strided or problem.groups != 1 or problem.C > const.FIRST_LAYER_CHANNELS:
        return []
    flops = problem.flops * c / problem.C
    return [untiled(case, flops / (const.NARROW_DGRAD_SHARE * unit.peak) * 1e6)]


def _refused(case: KernelCase, simt: ArithmeticUnit | None, situation: Situation) -> Priced | None:
    """Misaligned NHWC before cuDNN 7.6.3: implicit GEMM on CUDA cores, and never faster than the library that pads."""
    newer = cheapest(case.problem, case.which, case.board, replace(situation, pads_nhwc=True))
    if newer is None or simt is None:
        return newer
    if case.problem.dtype in _STORED_IN_32_BITS:
        ways = _on_cuda_cores(_case(case.problem, case.which, case.board, simt), "NCHW")
    else:
        ways = _instead_of_tensor_cores(case, simt, situation, float("inf"))
    if case.problem.groups > 1:
        ways.append(direct(case))
    least = _least(ways)
    return replace(least, time_us=max(least.time_us, newer.time_us))


def _transformed(situation: Situation) -> Transformed:
    """The layouts in which Winograd and FFT compete: none in tf32 (KernelBench), any in an engine of TensorRT's."""
    return "never" if situation.compute == Dtype.tf32 else "any layout" if situation.tensorrt else "NCHW"


def _on_cuda_cores(
    case: KernelCase, transformed: Transformed, below_us: float = float("inf"), *, searched: bool = True
) -> list[Priced]:
    """The kernels on CUDA cores; `transformed` says in which layouts Winograd and FFT compete with the GEMMs."""
    problem, which, board, unit, c, k = case.problem, case.which, case.board, case.unit, case.c, case.k
    family = unit.family
    lowerings = implicit_gemm(problem, which, family, c, k, tensor=False)
    suits = transformed == "any layout" or (transformed == "NCHW" and problem.layout != "NHWC")
    if suits and problem.dtype in _TRANSFORMED:
        lowerings = transforms(problem, which, family, board, searched=searched) + lowerings
    ways = least_tiled(case, lowerings, NONE, below_us)
    return ways + _narrow_dgrad(case, c)


# The kernel that adds a bias: launch, elements per clock and SM, how the latter join with the memory time. It finds the
# place of each element by division, and no load is wide, since the bias is broadcast. Fit: half of the pairs of layers
# with and without a bias on H200, fp16 and bf16 (TileOPs), which come out at a factor of 1.06; the other half at 1.09.
# Held against such kernels in profiles: one in fp32 on V100 (predicted at 1.11 of it), four on A100 (0.91 to 0.94), one
# in bf16 on H100 (1.13).
_BIAS_KERNEL_US: Final = 2.8
_BIASED_PER_CLOCK: Final = 1.5
_BIAS_OVERLAP: Final = 2.5
# Elements per clock and SM that are summed up to a bias's gradient. Fit: ConvNeXt's training on H200 (bf16, NHWC).
_SUMMED_PER_CLOCK: Final = 2.0


def with_bias(priced: Priced, problem: Problem, which: Pass, board: Board, *, transposed: bool) -> Priced:
    """The same with what eager PyTorch runs for a bias: `output.add_` after fprop, `grad_output.sum` beside wgrad.

    cuDNN is given none (ATen/native/Convolution.cpp, and cudnn/ConvShared.cpp: "Bias is handled outside"), and neither
    kernel asks for the layout. The sum reads what it adds up once: 220 us for 179 MB on V100 in fp32, at the rate of a
    stream (github.com/zasdfgbnm/things, 2019/conv-backward-profile.md). PyTorch's own kernels for
    depthwise layers in NCHW add a bias before they write (cuda/DepthwiseConv2d.cu), and leave its gradient to the sum.
    """
    elements = problem.pixels_in * problem.C if transposed else problem.pixels_out * problem.K
    moved_us = elements * problem.element_bytes * board.us_per_byte
    if which == "wgrad":
        added = max(moved_us, summed_us(elements, board))
    else:
        added = join(elements / (_BIASED_PER_CLOCK * board.clocks_per_us), 2 * moved_us, _BIAS_OVERLAP)
    return replace(
        priced,
        time_us=priced.time_us + added + _BIAS_KERNEL_US,
        overhead_us=priced.overhead_us + _BIAS_KERNEL_US,
    )


def summed_us(elements: float, board: Board) -> float:
    """What PyTorch takes at least to sum up the gradient of a bias; before cc 8.0 memory alone is taken to count."""
    return elements / (_SUMMED_PER_CLOCK * board.clocks_per_us) if board.modern else 0.0


class Tiling(Struct, frozen=True, gc=False):
    """How the tiles of a pass are dealt over the SMs; a pass without tiles counts threads, and wastes none."""

    tiles: int
    resident: int  # per SM
    wave: int  # tiles that run at once
    wave_efficiency: float


def tiling_of(priced: Priced, board: Board) -> Tiling:
    """The tiling of the program that the pass runs."""
    choice = priced.choice
    tiles, direct = choice.tiles, choice.lowering.algorithm == "direct"
    resident = 32 * board.gpu.max_warps_per_sm if direct else choice.program.resident
    wave = board.sms * resident
    return Tiling(tiles, resident, wave, 1.0 if direct else tiles / (-(-tiles // wave) * wave))


def described(
    problem: Problem, product: Gemm, elements: int, priced: Priced, board: Board, situation: Situation
) -> PassEstimate:
    """The estimate of a pass whose way to run is decided; `elements` are those of its three tensors."""
    choice, unit = priced.choice, priced.unit
    lowering, program = choice.lowering, choice.program
    dealt = tiling_of(priced, board)
    tiles, resident, wave = dealt.tiles, dealt.resident, dealt.wave
    flops = problem.flops
    bytes_ = problem.element_bytes * elements
    direct = lowering.algorithm == "direct"
    last = 0 if direct else tiles % wave
    efficiency = tile_efficiency(choice)
    sides = FUSED_TILE if lowering.fused_tiles else (program.tm, program.tn)
    roof = _roof(unit, board, situation, direct=direct)
    computes_longer = choice.compute_us >= choice.memory_us
    moving_us = bytes_ / roof.reached_bandwidth * 1e6 + priced.copies.transposes_us + priced.copies.padding_us
    # CG 4.2; but what its kernel computes on padding, or one instruction at a time, is no wait for memory.
    waits = flops * roof.bandwidth < bytes_ * roof.peak and moving_us >= const.LEAST_OF_MOVING * priced.time_us
    if priced.overhead_us > (priced.time_us - priced.overhead_us):
        bound: Bound = "launch"
    elif computes_longer and not waits:
        bound = "compute"
    else:
        bound = "memory"
    lost_to_tiles = lost_to_waves = 0.0
    unquantized = priced.time_us
    if is_quantized(priced):  # the formula of `without_quantization`, whose parts are needed here
        kernel_us, filled_us = join(choice.compute_us, choice.memory_us), without_waves(priced, board)
        lost_to_tiles = kernel_us - join(choice.compute_us * efficiency, choice.memory_us)
        lost_to_waves = kernel_us - join(filled_us, choice.memory_us)
        unquantized = priced.time_us - kernel_us + join(filled_us * efficiency, choice.memory_us)
    resident_warps = THREADS_PER_TILE // 32 * min(resident, -(-tiles // board.sms))
    if direct:
        resident_warps = board.gpu.max_warps_per_sm
    return PassEstimate(
        gemm=product,
        flops=flops,
        bytes=bytes_,
        arithmetic_intensity=flops / bytes_,
        compute_dtype=situation.compute,
        tensor_cores=unit.tensor and not direct,
        algorithm=lowering.algorithm,
        tile=sides,
        split_k=choice.split,
        tiles=tiles,
        waves=tiles / wave,
        resident_tiles=resident,
        resident_warps=resident_warps,
        last_wave_tiles=last,
        tile_efficiency=efficiency,
        wave_efficiency=dealt.wave_efficiency,
        time_us=priced.time_us,
        tflops=flops / priced.time_us * 1e-6,
        peak_share=flops / priced.time_us * 1e6 / board.peak(situation.compute, tensorrt=situation.tensorrt),
        bound_by=bound,
        lost_to_tiles_us=max(0.0, lost_to_tiles),
        lost_to_waves_us=max(0.0, lost_to_waves),
        main_loop_steps=-(-product.K // unit.family.granule) if direct else lowering.steps,
        overhead_us=priced.overhead_us,
        transposes_us=priced.copies.transposes_us,
        padding_us=priced.copies.padding_us,
        unquantized_us=unquantized,
        workspace_bytes=workspace_bytes(priced),
        grid=None if direct else Grid(lowering.batch, lowering.M, lowering.N, *sides),
        roof=roof,
        computes_longer=computes_longer,
    )


def _roof(unit: ArithmeticUnit, board: Board, situation: Situation, *, direct: bool) -> Roof:
    """The roof of the unit that runs the pass: `direct` kernels run on CUDA cores, even if `unit` is another."""
    if direct and unit.tensor:
        simt = board.units(situation.compute, situation.tensorrt)[1] or board.units(Dtype.fp32, situation.tensorrt)[1]
        return (simt or unit).roof
    return unit.roof
