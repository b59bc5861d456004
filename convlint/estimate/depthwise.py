"""Depthwise passes: kernels bound by instructions before they are bound by memory."""

from __future__ import annotations

from convlint.estimate import constants as const
from convlint.estimate.constants import DepthwiseKernel
from convlint.estimate.copies import NONE
from convlint.estimate.kernels import Case, Priced, priced_untiled
from convlint.estimate.problem import Problem
from convlint.model.layer import Dtype, Pass

_NARROW = (Dtype.fp16, Dtype.bf16, Dtype.int8, Dtype.fp8)


def is_depthwise(problem: Problem) -> bool:
    """One input channel per group, in one or two dimensions: 3-D layers have other kernels."""
    return problem.groups > 1 and problem.groups == problem.C and problem.T == 1 and problem.D == 1


def depthwise(case: Case, *, tensorrt: bool, native: bool) -> Priced:
    """The depthwise kernel that the library has; `native`: PyTorch, whose own one reads NCHW.

    PyTorch leaves channels-last tensors to cuDNN, and of NCHW those in fp16 with 32 channels or more where a table of
    its own says that cuDNN is faster (use_cudnn_depthwise in its Convolution.cpp): here, where it is predicted to be.
    """
    problem, board = case.problem, case.board
    narrow = problem.dtype in _NARROW
    wide_int8 = problem.dtype == Dtype.int8 and "int8" not in board.gpu.tensor_dtypes
    library = const.DEPTHWISE_FP16 if narrow and not wide_int8 else const.DEPTHWISE_FP32
    if not native or tensorrt or not problem.nchw:
        return _priced(case, library, 4 if wide_int8 else problem.element_bytes)
    own = _priced(case, const.DEPTHWISE_NATIVE, problem.element_bytes)
    if problem.dtype != Dtype.fp16 or problem.C < const.LEAST_CHANNELS_OF_CUDNN_DEPTHWISE:
        return own
    return min(own, _priced(case, library, problem.element_bytes), key=lambda priced: priced.time_us)


def _priced(case: Case, kernel: DepthwiseKernel, element_bytes: int) -> Priced:
    problem, which, board = case.problem, case.which, case.board
    factor = kernel.wgrad_factor if which == "wgrad" else 1.0
    compute_us = max(
        _clocks(problem, which, kernel, board.sms) / board.clocks_per_us, problem.flops / case.unit.peak * 1e6
    )
    # A sector holds neighbouring pixels, so that a stride skips whole rows of x at best.
    read = min(1.0, (problem.R + 1) / problem.U) if which != "dgrad" else 1.0
    bytes_ = element_bytes * (problem.pixels_in * problem.C * read + problem.pixels_out * problem.K)
    memory_us = (bytes_ + element_bytes * problem.taps * problem.K) * board.us_per_byte
    memory_us *= const.STREAM_BANDWIDTH / kernel.bandwidth
    power = const.DEPTHWISE_OVERLAP
    longer, shorter = (compute_us, memory_us) if compute_us > memory_us else (memory_us, compute_us)
    kernel_us = longer * (1 + (shorter / longer) ** power) ** (1 / power)
    return priced_untiled(case, factor * compute_us, factor * memory_us, factor * kernel_us, NONE)


def _clocks(problem: Problem, which: Pass, kernel: DepthwiseKernel, sms: int) -> float:
    """Clocks of all SMs together that the instructions take."""
    planes, points = problem.N * problem.K, problem.P * problem.Q
    outputs = problem.pixels_out * problem.K
    taps = problem.taps
    if kernel.wgrad_per_tap and which == "wgrad":
        return kernel.wgrad_per_tap * outputs * taps
    per_output = kernel.per_output + kernel.per_tap * taps
    if problem.R != problem.S or problem.R not in const.UNROLLED_FILTERS:
        per_output += kernel.not_unrolled
    if (
        kernel.dgrad_factor and which == "dgrad"
    ):  # each input point visits every tap, and asks whether its output exists
        return kernel.dgrad_factor * per_output * problem.pixels_in * problem.K
    if kernel.small_per_tap and taps <= const.SMALL_FILTER and not problem.strided:
        clocks = kernel.small_per_tap * taps * outputs
    else:
        staged = min(problem.U, problem.H) * min(problem.V, problem.W)  # points of x per output
        clocks = (per_output + kernel.per_input * staged) * outputs
        if kernel.row:
            width = max(1, kernel.row // problem.V)
            clocks *= min(const.MOST_ROW_WASTE, -(-problem.Q // width) * width / problem.Q)
    clocks += kernel.per_plane * planes * min(1.0, points / const.POINTS_OF_A_PLANE)
    idle = kernel.planes_per_sm * sms / planes
    if idle > 1:
        clocks += min(clocks * (idle - 1), const.UNSHARED_PLANE * outputs)
    return clocks
