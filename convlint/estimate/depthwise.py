"""Depthwise passes: kernels bound by instructions before they are bound by memory."""

from __future__ import annotations

from typing import Final, NamedTuple

from convlint.estimate import constants as const
from convlint.estimate.copies import NONE
from convlint.estimate.kernels import Case, Priced, priced_untiled
from convlint.estimate.problem import Problem
from convlint.model.layer import Dtype, Pass

_NARROW = (Dtype.fp16, Dtype.bf16, Dtype.int8, Dtype.fp8)
# The exponent that joins the instructions of depthwise kernels with their memory time. Fit: V100.
_OVERLAP: Final = 4.0
# PyTorch asks cuDNN for depthwise fp16 in NCHW from this many channels on. Library.
_LEAST_CHANNELS_OF_CUDNN: Final = 32
# Square filters that PyTorch's kernel is compiled for; others loop. Library.
_UNROLLED_FILTERS: Final = (1, 3, 5)
# Taps up to which libraries have faster kernels at stride 1. Fit: V100.
_SMALL_FILTER: Final = 9
# Output points below which planes share the start of a block. Fit: V100.
_POINTS_OF_A_PLANE: Final = 56
# Clocks per output and SM that a kernel adds which spreads few planes over all SMs. Fit: V100.
_UNSHARED_PLANE: Final = 2.7
# What is lost at most where rows are cut into pieces of fixed width. Fit: V100.
_MOST_ROW_WASTE: Final = 1.6


class Kernel(NamedTuple):
    """What a depthwise kernel spends, in clocks of one SM: on FLOPs it depends little, whichever lanes an SM has."""

    bandwidth: float  # share of the DRAM bandwidth
    per_output: float
    per_tap: float  # and output
    per_input: float = 0.0  # staging a point of x
    small_per_tap: float = 0.0  # and output of small filters at stride 1, instead of the above; 0: no such kernel
    not_unrolled: float = 0.0  # more per output, where the filter is not compiled in
    per_plane: float = 0.0  # start and end of one channel of one image
    planes_per_sm: float = 0.0  # that work at once, each on one SM
    row: int = 0  # points of x in the pieces that rows are cut into; 0: not cut
    dgrad_factor: float = 0.0  # on fprop's clocks per output, for each point of x; 0: as fprop
    wgrad_per_tap: float = 0.0  # and output; 0: as fprop, times wgrad_factor
    wgrad_factor: float = 1.0


# cuDNN's and TensorRT's kernels. Fit: V100, rows of TensorRT over 40 us in fp32, and in int8, which runs as fp32 there;
# wgrad assumed.
_FP32: Final = Kernel(
    bandwidth=0.72, per_output=1.9, per_tap=0.171, small_per_tap=0.155, per_plane=125.0, planes_per_sm=3.8,
    wgrad_factor=3.0,
)  # fmt: skip
# The same in fp16. Fit: V100, rows of TensorRT over 40 us, which cannot tell 0.04 from 0.085 for small filters, memory
# being in the way; bf16, int8 from Turing on, and wgrad assumed.
_FP16: Final = Kernel(
    bandwidth=0.83, per_output=1.0, per_tap=0.046, per_input=0.515, small_per_tap=0.045, row=20, wgrad_factor=3.0
)
# PyTorch's own kernel for NCHW: a thread per output that finds its place by division and looks up every tap; in wgrad a
# block per tap and channel. Fit: H100, RTX A6000 (KernelBench); dgrad: 2.7 times fprop in one report. wgrad: what
# leaves EfficientNet-B0's published steps room for the rest (DeepLearningExamples: 1078 images/s on A100 in TF32, 655
# on V100 in fp32); the report has 11.9 times fprop, which does not.
_NATIVE: Final = Kernel(
    bandwidth=0.65, per_output=1.15, per_tap=0.17, not_unrolled=1.2, dgrad_factor=1.55, wgrad_per_tap=1.3
)


def depthwise(case: Case, *, tensorrt: bool, native: bool) -> Priced:
    """The depthwise kernel that the library has; `native`: PyTorch, whose own one reads NCHW.

    PyTorch leaves channels-last tensors to cuDNN, and of NCHW those in fp16, not dilated, of 32 channels or more, where
    a table of its own says that cuDNN is faster (use_cudnn_depthwise in its Convolution.cpp): here, where cuDNN is
    predicted to be.
    """
    problem, board = case.problem, case.board
    narrow = problem.dtype in _NARROW
    wide_int8 = problem.dtype == Dtype.int8 and "int8" not in board.gpu.tensor_dtypes
    library = _FP16 if narrow and not wide_int8 else _FP32
    if not native or tensorrt or not problem.nchw:
        return _priced(case, library, 4 if wide_int8 else problem.element_bytes)
    own = _priced(case, _NATIVE, problem.element_bytes)
    if problem.dtype != Dtype.fp16 or problem.C < _LEAST_CHANNELS_OF_CUDNN or problem.dilated:
        return own
    return min(own, _priced(case, library, problem.element_bytes), key=lambda priced: priced.time_us)


def _priced(case: Case, kernel: Kernel, element_bytes: int) -> Priced:
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
    power = _OVERLAP
    longer, shorter = (compute_us, memory_us) if compute_us > memory_us else (memory_us, compute_us)
    kernel_us = longer * (1 + (shorter / longer) ** power) ** (1 / power)
    return priced_untiled(case, factor * compute_us, factor * memory_us, factor * kernel_us, NONE)


def _clocks(problem: Problem, which: Pass, kernel: Kernel, sms: int) -> float:
    """Clocks of all SMs together that the instructions take."""
    planes, points = problem.N * problem.K, problem.P * problem.Q
    outputs = problem.pixels_out * problem.K
    taps = problem.taps
    if kernel.wgrad_per_tap and which == "wgrad":
        return kernel.wgrad_per_tap * outputs * taps
    per_output = kernel.per_output + kernel.per_tap * taps
    if problem.R != problem.S or problem.R not in _UNROLLED_FILTERS:
        per_output += kernel.not_unrolled
    if (
        kernel.dgrad_factor and which == "dgrad"
    ):  # each input point visits every tap, and asks whether its output exists
        return kernel.dgrad_factor * per_output * problem.pixels_in * problem.K
    if kernel.small_per_tap and taps <= _SMALL_FILTER and not problem.strided:
        clocks = kernel.small_per_tap * taps * outputs
    else:
        # points of x that fprop stages per output; what gradients read does not grow with the stride
        staged = min(problem.U, problem.H) * min(problem.V, problem.W) if which == "fprop" else 1
        clocks = (per_output + kernel.per_input * staged) * outputs
        if kernel.row:
            width = max(1, kernel.row // problem.V)
            clocks *= min(_MOST_ROW_WASTE, -(-problem.Q // width) * width / problem.Q)
    clocks += kernel.per_plane * planes * min(1.0, points / _POINTS_OF_A_PLANE)
    idle = kernel.planes_per_sm * sms / planes
    if idle > 1:
        clocks += min(clocks * (idle - 1), _UNSHARED_PLANE * outputs)
    return clocks
