"""Depthwise layers: whose kernel runs them, cuDNN's, TensorRT's or PyTorch's own, and what each takes."""

from __future__ import annotations

from operator import attrgetter
from typing import Final, NamedTuple

from convlint.estimate import constants as const
from convlint.estimate.kernels import NONE, KernelCase, Priced, priced_untiled
from convlint.estimate.results import Problem
from convlint.estimate.search import join
from convlint.model.layer import Dtype, Pass

_NARROW = (Dtype.fp16, Dtype.bf16, Dtype.int8, Dtype.fp8)
_TIME = attrgetter("time_us")
# The exponent that joins the instructions of depthwise kernels with their memory time. Fit: V100.
_OVERLAP: Final = 4.0
# Taps up to which TensorRT has faster kernels at stride 1. Fit: V100.
_SMALL_FILTER: Final = 9
# Output points below which planes share the start of a block. Fit: V100.
_POINTS_OF_A_PLANE: Final = 56
# Clocks per output and SM that a kernel adds which spreads few planes over all SMs. Fit: V100.
_UNSHARED_PLANE: Final = 2.7
# What is lost at most where rows are cut into pieces of fixed width. Fit: V100.
_MOST_ROW_WASTE: Final = 1.6

# PyTorch asks cuDNN for depthwise fp16 in NCHW from this many channels and, in two dimensions, this width on. Library:
# use_cudnn_depthwise and the functions it calls in ATen/native/Convolution.cpp, PyTorch 1.11 to 2.11.
_LEAST_CHANNELS: Final = 32
_LEAST_WIDTH: Final = 7
_FILTERS: Final = (1, 3, 5)
# Before cuDNN 8.2 and PyTorch 1.11 (pytorch/pytorch#58749): least N, C and W, by stride. Library.
_OLD_FILTERS: Final = (1, 3)
_OLD_WORKLOADS: Final = {
    1: ((1, 32, 112), (1, 1024, 56), (8, 512, 28), (8, 64, 56), (16, 1024, 14), (16, 256, 28), (16, 32, 56),
        (32, 1024, 7), (32, 256, 14), (32, 128, 28), (64, 32, 28), (128, 512, 7), (128, 64, 14)),
    2: ((1, 512, 112), (8, 1024, 28), (8, 256, 56), (16, 512, 28), (32, 1024, 14), (32, 256, 28), (64, 512, 14),
        (128, 1024, 7)),
}  # fmt: skip


def asks_cudnn(problem: Problem, *, volta: bool, old: bool) -> bool:
    """Whether PyTorch leaves a depthwise layer to cuDNN: all in channels-last, and of NCHW what its test names.

    `volta`: the GPU is one or newer; `old`: a version with the older test.
    """
    if not problem.nchw or problem.transposed:
        return True
    N, C, H, W, R, V = problem.N, problem.C, problem.H, problem.W, problem.R, problem.V
    equal = problem.U == V or (H == 1 and not old)
    if problem.dtype != Dtype.fp16 or C < _LEAST_CHANNELS or problem.dilated or not (volta and equal):
        return False
    if problem.T > 1 or problem.D > 1:
        return False
    if not old and H == 1 and V == 1:
        return True
    if R != problem.S or R not in (_OLD_FILTERS if old else _FILTERS) or (H if old else W) < _LEAST_WIDTH:
        return False
    if old:
        return any(n <= N and c <= C and w <= W for n, c, w in _OLD_WORKLOADS.get(V, ()))
    if V == 1:
        return True
    if V > 2:
        return False
    if R == 1:
        return W <= 28 if N == 1 else N <= 16 and C >= 128 and W <= 7
    return N == 1 or C >= 512 or (C >= 256 and W >= 28)


class Kernel(NamedTuple):
    """The cost of a TensorRT kernel, in clocks of one SM.

    It counts clocks, not FLOPs: most instructions find places and load, so that an SM's lanes matter little.
    """

    bandwidth: float  # share of the DRAM bandwidth
    per_output: float
    per_tap: float  # and output
    per_input: float = 0.0  # staging a point of x
    small_per_tap: float = 0.0  # and output of small filters at stride 1, instead of the above
    per_plane: float = 0.0  # start and end of one channel of one image
    planes_per_sm: float = 0.0  # that work at once, each on one SM
    row: int = 0  # points of x in the pieces that rows are cut into; 0: not cut


# Fit: V100, rows of TensorRT over 40 us in fp32, and in int8, which runs as fp32 there.
_FP32: Final = Kernel(
    bandwidth=0.72, per_output=1.9, per_tap=0.171, small_per_tap=0.155, per_plane=125.0, planes_per_sm=3.8,
)  # fmt: skip
# The same in fp16. Fit: V100, rows of TensorRT over 40 us, which cannot tell 0.04 from 0.085 for small filters, memory
# being in the way; bf16, and int8 from Turing on, assumed.
_FP16: Final = Kernel(bandwidth=0.83, per_output=1.0, per_tap=0.046, per_input=0.515, small_per_tap=0.045, row=20)
# Time of a weight gradient over that of fprop. Assumed: TensorRT runs none, cuDNN in fp32 was not timed.
_WGRAD: Final = 3.0

# cuDNN from 8.2 on in 16 bits. Clocks of one SM per point written, per tap that hits one, per point loaded; in wgrad
# per output and per tap of it; us to start a kernel, and to add up the parts of a weight gradient, which a kernel of its
# own does (wgrad2d_c1_k1_nhwc_reduction_kernel in traces). Fit: geometric means and extremes of native NCHW over cuDNN,
# forward and backward, on A100 and RTX A6000 (pytorch/pytorch#91735), and 5x5 on 8x64x1024x1008 (#125362: 3.2 ms
# forward; #129609: 26.4 ms backward). Those are of gradients as a whole: that wgrad takes most of it and dgrad the
# time of fprop is what the kernels do, not what was timed. Per tap it is an fp32 multiply-add of 64 lanes. Hardware.
_CUDNN_BANDWIDTH: Final = 0.68
_CUDNN_PER_POINT: Final = 0.2
_CUDNN_PER_TAP: Final = 1 / 64
_CUDNN_PER_LOAD: Final = 0.65
_CUDNN_WGRAD: Final = (0.7, 0.33)
_CUDNN_START_US: Final = 1.5
_CUDNN_SUM_US: Final = 3.0

# PyTorch's own kernels for NCHW (ATen/native/cuda/DepthwiseConv2d.cu and DepthwiseConv3d.cu): a thread per output, in
# dgrad per point of x, that finds its place by division and looks up every tap. Clocks of one SM. Fit: H100, RTX A6000
# (KernelBench); a volume of 27 taps in fp16 on A100 takes 0.94 of what follows (pytorch/pytorch#110885).
_NATIVE_BANDWIDTH: Final = 0.65
_NATIVE_PER_OUTPUT: Final = 1.15
_NATIVE_PER_TAP: Final = 0.17
_UNROLLED_FILTERS: Final = (1, 3, 5)  # square ones that the kernel is compiled for; others loop. Library.
_NATIVE_NOT_UNROLLED: Final = 1.2  # per output
# A point of x asks of every tap whether its output exists, and loads where it does. 1.43 times fprop's time per point
# and tap where a stride of 1 loops (#129609 over #125362).
_NATIVE_DGRAD_ASKED: Final = 0.03
_NATIVE_DGRAD_FOUND: Final = 0.25
# Volumes load for every tap, and divide by strides. Fit: all passes of 3x3x3 on V100, strides 1 and (1, 2, 2) (#40801).
_NATIVE_VOLUME_DGRAD: Final = 0.38
_NATIVE_STRIDED_VOLUME_DGRAD: Final = 0.85
# wgrad: a block per weight, a warp per image and at most eight; a step of a warp is 32 outputs of one image. Library.
_LANES: Final = 32
_MOST_WARPS: Final = 8
# Clocks of a step: 20 on A100 (#129609, less dgrad as above), 18 to 22 where one lane of 32 works (PaddlePaddle#46896
# times PyTorch), and V100's volumes come out with it. Half of what an earlier report of MobileNet's layers had (11.9
# times fprop), more than what leaves EfficientNet-B0's published steps no room.
_STEP_CLOCKS: Final = 20.0
# Of one warp alone, in us: two loads that nothing overlaps, from DRAM (6x1 in fp32 and fp16 alike, #129609) or from L2
# (assumed).
_STEP_US: Final = 0.47
_STEP_IN_L2_US: Final = 0.25


def depthwise(case: KernelCase, *, tensorrt: bool, native: bool, old: bool) -> Priced:
    """The depthwise kernel that the library has; `native`: PyTorch, which has its own for NCHW; `old`: its version."""
    problem, board = case.problem, case.board
    if tensorrt:
        wide_int8 = problem.dtype == Dtype.int8 and "int8" not in board.gpu.tensor_dtypes
        narrow = problem.dtype in _NARROW and not wide_int8
        return _tensorrt(case, _FP16 if narrow else _FP32, 4 if wide_int8 else problem.element_bytes)
    if not native or asks_cudnn(problem, volta=board.gpu.compute_capability >= "7.0", old=old):
        least = _cudnn(case)
        # PyTorch's test of NCHW rests on timings, where cuDNN was the slower one in ten of a thousand (#58749).
        own = native and problem.nchw and not problem.transposed
        return min(least, _native(case), key=_TIME) if own else least
    return _native(case)


def _memory_us(case: KernelCase, bandwidth: float, element_bytes: int) -> float:
    """The tensors read and written once, at a share of the DRAM bandwidth."""
    problem = case.problem
    # A sector holds neighbouring pixels, so that a stride skips whole rows of x at best.
    read = min(1.0, (problem.R + 1) / problem.U) if case.which != "dgrad" else 1.0
    elements = problem.pixels_in * problem.C * read + (problem.pixels_out + problem.taps) * problem.K
    return element_bytes * elements * case.board.us_per_byte * const.STREAM_BANDWIDTH / bandwidth


def _priced(case: KernelCase, compute_us: float, memory_us: float, more_us: float = 0.0) -> Priced:
    compute_us = max(compute_us, case.problem.flops / case.unit.peak * 1e6) + more_us
    return priced_untiled(case, compute_us, memory_us, join(compute_us, memory_us, _OVERLAP), NONE)


def _tensorrt(case: KernelCase, kernel: Kernel, element_bytes: int) -> Priced:
    factor = _WGRAD if case.which == "wgrad" else 1.0
    clocks = _clocks(case.problem, case.which, kernel, case.board.sms)
    compute_us = max(clocks / case.board.clocks_per_us, case.problem.flops / case.unit.peak * 1e6)
    return _priced(case, factor * compute_us, factor * _memory_us(case, kernel.bandwidth, element_bytes))


def _clocks(problem: Problem, which: Pass, kernel: Kernel, sms: int) -> float:
    """Clocks of all SMs together that the instructions of a TensorRT kernel take."""
    planes, points = problem.N * problem.K, problem.P * problem.Q
    outputs = problem.pixels_out * problem.K
    taps = problem.taps
    if taps <= _SMALL_FILTER and not problem.strided:
        clocks = kernel.small_per_tap * taps * outputs
    else:
        # points of x that fprop stages per output; what gradients read does not grow with the stride
        staged = min(problem.U, problem.H) * min(problem.V, problem.W) if which == "fprop" else 1
        clocks = (kernel.per_output + kernel.per_tap * taps + kernel.per_input * staged) * outputs
        if kernel.row:
            width = max(1, kernel.row // problem.V)
            clocks *= min(_MOST_ROW_WASTE, -(-problem.Q // width) * width / problem.Q)
    clocks += kernel.per_plane * planes * min(1.0, points / _POINTS_OF_A_PLANE)
    idle = kernel.planes_per_sm * sms / planes
    if idle > 1:
        clocks += min(clocks * (idle - 1), _UNSHARED_PLANE * outputs)
    return clocks


def _cudnn(case: KernelCase) -> Priced:
    """The kernels of cuDNN; in fp32 they take what V100's rows of TensorRT do, and no less than in 16 bits."""
    problem, which, board = case.problem, case.which, case.board
    x, y = problem.pixels_in * problem.K, problem.pixels_out * problem.K
    hits = problem.taps * y
    more_us = _CUDNN_START_US
    if which == "wgrad":
        per_output, per_tap = _CUDNN_WGRAD
        clocks = per_output * y + per_tap * hits + _CUDNN_PER_LOAD * x
        more_us += _CUDNN_SUM_US
    else:
        written, loaded = (y, x) if which == "fprop" else (x, y)
        clocks = _CUDNN_PER_POINT * written + _CUDNN_PER_TAP * hits + _CUDNN_PER_LOAD * loaded
    bandwidth = _CUDNN_BANDWIDTH
    if problem.dtype not in _NARROW:
        wide = _clocks(problem, which, _FP32, board.sms)
        clocks = max(clocks, _WGRAD * wide if which == "wgrad" else wide)
    memory_us = _memory_us(case, bandwidth, problem.element_bytes)
    return _priced(case, clocks / board.clocks_per_us, memory_us, more_us)


def _native(case: KernelCase) -> Priced:
    """PyTorch's own kernel, in two and in three dimensions."""
    compute_us = _weights_us(case) if case.which == "wgrad" else _points_us(case)
    return _priced(case, compute_us, _memory_us(case, _NATIVE_BANDWIDTH, case.problem.element_bytes))


def _points_us(case: KernelCase) -> float:
    """Instructions of fprop, by outputs, and of dgrad, by points of x."""
    problem = case.problem
    clocks = _NATIVE_PER_OUTPUT
    if problem.R != problem.S or problem.R not in _UNROLLED_FILTERS:
        clocks += _NATIVE_NOT_UNROLLED
    if case.which == "fprop":
        clocks = (clocks + _NATIVE_PER_TAP * problem.taps) * problem.pixels_out
    elif problem.T > 1 or problem.D > 1:
        per_tap = _NATIVE_STRIDED_VOLUME_DGRAD if problem.strided else _NATIVE_VOLUME_DGRAD
        clocks = (clocks + per_tap * problem.taps) * problem.pixels_in
    else:
        clocks = (clocks + _NATIVE_DGRAD_ASKED * problem.taps) * problem.pixels_in
        clocks += _NATIVE_DGRAD_FOUND * problem.taps * problem.pixels_out
    return clocks * problem.K / case.board.clocks_per_us


def _weights_us(case: KernelCase) -> float:
    """Instructions of wgrad, or the loads of its warps in turn, where warps are few: an image has one for a weight."""
    problem, board = case.problem, case.board
    images = problem.N * problem.Z
    steps = -(-problem.P * problem.Q // _LANES)
    issued_us = _STEP_CLOCKS * steps * images * problem.taps * problem.K / board.clocks_per_us
    bytes_ = problem.element_bytes * (problem.pixels_in * problem.C + problem.pixels_out * problem.K)
    step_us = _STEP_US if bytes_ > board.l2_bytes else _STEP_IN_L2_US
    return join(issued_us, steps * -(-images // _MOST_WARPS) * step_us, _OVERLAP)
