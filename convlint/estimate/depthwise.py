"""Depthwise layers: whose kernel runs them, cuDNN's, TensorRT's or PyTorch's own, and what each takes."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from convlint.estimate import constants as const
from convlint.estimate.kernels import BY_TIME, NONE, PASS_INDEX, KernelCase, Priced, calibrated, priced_untiled
from convlint.estimate.results import Problem, is_volume
from convlint.estimate.search import join
from convlint.model.layer import Dtype, Pass

_NARROW = (Dtype.fp16, Dtype.bf16, Dtype.int8, Dtype.fp8)
# The exponent that joins the instructions of depthwise kernels with their memory time. Fit: V100.
_OVERLAP: Final = 4.0
# Taps up to which TensorRT has faster kernels at stride 1. Fit: V100.
_SMALL_FILTER: Final = 9
# Output points below which planes share the start of a block. Fit: V100.
_POINTS_OF_A_PLANE: Final = 56
# Clocks per output and SM that a kernel adds which spreads few planes over all SMs. Fit: V100.
_UNSHARED_PLANE: Final = 2.7
_TIMED: Final = "7.0"  # compute capability of V100
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
    if problem.dtype != Dtype.fp16 or not volta or not _may_ask(problem):
        return False
    N, C, W, V = problem.N, problem.C, problem.W, problem.V
    if old:
        if problem.U != V or problem.R != problem.S or problem.R not in _OLD_FILTERS or problem.H < _LEAST_WIDTH:
            return False
        return any(n <= N and c <= C and w <= W for n, c, w in _OLD_WORKLOADS.get(V, ()))
    return _is_row(problem) or (_is_timed(problem) and _is_faster_in_cudnn(problem))


def _may_ask(problem: Problem) -> bool:
    return problem.C >= _LEAST_CHANNELS and not (problem.dilated or is_volume(problem))


def _is_row(problem: Problem) -> bool:
    """A layer in one dimension at stride 1, which the test lets pass untimed."""
    return problem.H == 1 and problem.V == 1


def _is_timed(problem: Problem) -> bool:
    """Whether the layer is one of those that the test knows from timings."""
    R, U, V = problem.R, problem.U, problem.V
    return R == problem.S and R in _FILTERS and problem.W >= _LEAST_WIDTH and V <= 2 and (U == V or problem.H == 1)


def _is_faster_in_cudnn(problem: Problem) -> bool:
    """The test itself, for layers that it knows."""
    N, C, W, R = problem.N, problem.C, problem.W, problem.R
    if problem.V == 1:
        return True
    if R == 1:
        return W <= 28 if N == 1 else N <= 16 and C >= 128 and W <= 7
    return N == 1 or C >= 512 or (C >= 256 and W >= 28)


class Kernel(Struct, frozen=True):
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

# cuDNN from 8.2 on in 16 bits, in clocks of one SM: per tap that meets a point, and per point of the larger tensor, as
# V100's rows of TensorRT have it for small filters and for staging; but for all filters and strides alike, since its
# kernels are specialised for them (dgrad2d_c1_k1_nhwc_kernel_specialized_window in traces).
_CUDNN_BANDWIDTH: Final = 0.83
_CUDNN_PER_TAP: Final = 0.045
_CUDNN_PER_POINT: Final = 0.515
# us to start one of its kernels, and to add up the parts of a weight gradient, which one of their own does
# (wgrad2d_c1_k1_nhwc_reduction_kernel); clocks of wgrad per output and tap. Fit: geometric means of the time of
# PyTorch's kernels in NCHW over these, forward and backward, on A100 and RTX A6000 (pytorch/pytorch#91735); the
# extremes come out within a fifth. What was timed are both gradients as one: that dgrad takes what fprop does, and
# wgrad the rest, follows from what the kernels do, and leaves published steps room (tests/test_published_steps.py).
_CUDNN_START_US: Final = 2.0
_CUDNN_SUM_US: Final = 2.0
_CUDNN_WGRAD_PER_TAP: Final = 0.34

# PyTorch's own kernels for NCHW (ATen/native/cuda/DepthwiseConv2d.cu and DepthwiseConv3d.cu): a thread per output, in
# dgrad per point of x, that finds its place by division and looks up every tap. Clocks of one SM. Fit: H100, RTX A6000
# (KernelBench); a volume of 27 taps in fp16 on A100 takes 0.94 of what follows (pytorch/pytorch#110885).
_NATIVE_BANDWIDTH: Final = 0.65
_NATIVE_PER_OUTPUT: Final = 1.15
_NATIVE_PER_TAP: Final = 0.17
_UNROLLED_FILTERS: Final = (1, 3, 5)  # square ones that the kernel is compiled for; others loop. Library.
_NATIVE_NOT_UNROLLED: Final = 1.2  # per output
# dgrad: a point of x asks of every tap whether its output exists, and loads where it does. 1.4 times the time of fprop
# where both loop (6x1, pytorch/pytorch#129609 and #125362, which name no GPU).
_NATIVE_DGRAD_ASKED: Final = 0.03
_NATIVE_DGRAD_FOUND: Final = 0.25
# Volumes load for every tap, and divide by strides. Fit: all passes of 3x3x3 on V100, strides 1 and (1, 2, 2) (#40801).
_NATIVE_VOLUME_DGRAD: Final = 0.38
_NATIVE_STRIDED_VOLUME_DGRAD: Final = 0.85
# wgrad: a block per weight, a warp per image and at most eight; a step of a warp is 32 outputs of one image. Library.
_LANES: Final = 32
_MOST_WARPS: Final = 8
# Clocks of a step. Fit: all passes of volumes on V100 (#40801), less the others. So does 5x5 in #129609, were its GPU
# an A100, and where one lane of 32 works (PaddlePaddle#46896 times PyTorch, 4.9 ms). An earlier report of MobileNet's
# layers had twice that.
_STEP_CLOCKS: Final = 20.0
# Of one warp alone, in us: two loads that nothing overlaps, from DRAM (6x1 takes as long in fp16 as in fp32, #129609),
# or from L2 (assumed).
_STEP_US: Final = 0.47
_STEP_IN_L2_US: Final = 0.25

# On cc 9.0 both libraries' kernels were timed (H100, cuDNN 9.19, PyTorch 2.11: `measured_h100-sxm.csv`), in 16 bits and
# in fp32, with filters of 3x3, 5x5 and 7x7 at strides 1 and 2. Clocks of one SM, as above. Fit.
_HOPPER_START_US: Final[dict[Pass, float]] = {"fprop": 5.0, "dgrad": 1.0, "wgrad": 10.0}  # in NHWC, beside others'
_HOPPER_PER_POINT: Final = 0.30
_HOPPER_FPROP_PER_POINT: Final = 0.15  # in 16 bits
_HOPPER_SMALL_FILTER: Final = 9  # taps, up to which a stride costs fprop nothing more
# What cuDNN takes of fp16 in NCHW, over the same in NHWC without its start; gradients with a stride take what PyTorch's
# own kernel does (MobileNetV2).
_HOPPER_NCHW_SLOWER: Final[dict[Pass, float]] = {"fprop": 1.65, "dgrad": 1.65, "wgrad": 2.2}
_HOPPER_PER_TAP: Final[dict[Pass, tuple[float, float]]] = {  # in 16 bits and in fp32
    "fprop": (0.030, 0.060), "dgrad": (0.060, 0.060), "wgrad": (0.023, 0.050),
}  # fmt: skip
_HOPPER_LARGE_FILTER: Final = 25  # taps, beyond which each takes longer
_HOPPER_LARGE_SLOWER: Final = 1.5
# wgrad has no good kernel for large filters in fp32. In 16 bits heuristics pick a bad one for 5x5 at stride 2 onto 7x7
# at N = 64 and 128 (96 to 1650 us), and good ones at 1, 8, 32 and 256 (4 to 101 us), which are predicted.
_HOPPER_LARGE_WGRAD: Final = 1.3  # per tap and point, in the mean of both tensors
# Filters that are no squares (rows, columns, layers in one dimension) have a slow kernel in NHWC: clocks per output,
# and of wgrad per tap where that is more. Fit: 1x5, 5x1 and dilated 1x3 of H100 and H200, which stood at 0.06 to 0.4 of
# their time; dilated, dgrad takes what fprop does. So have 1x5 and 5x1 on Ampere, Ada and Blackwell (GhostNetV2 on RTX
# 3090, 4090 and 5090: 8 to 13 clocks, with nothing fitted), where 1x11 and 11x1 are as fast as others (InceptionNeXt).
_BAND: Final = 8.3
_BAND_DGRAD: Final = 4.0
_BAND_WGRAD_PER_TAP: Final = 2.3
_SHORT_BAND: Final = 5  # taps
_HOPPER_NATIVE_PER_OUTPUT: Final = 1.4
_HOPPER_NATIVE_PER_TAP: Final = 0.12
_HOPPER_NATIVE_NOT_UNROLLED: Final = 1.5  # per output
_HOPPER_NATIVE_DGRAD: Final = (3.6, 0.075, 0.17)  # per point of x, and per tap where it is unrolled, or loops
_HOPPER_STEP_CLOCKS: Final = 12.0
_HOPPER_IMAGE_CLOCKS: Final = 20.0  # of wgrad, to begin with an image


def depthwise(case: KernelCase, *, tensorrt: bool, native: bool, old: bool) -> Priced:
    """The depthwise kernel that the library has; `native`: PyTorch, which has its own for NCHW; `old`: its version."""
    problem, board = case.problem, case.board
    if tensorrt:
        wide_int8 = problem.dtype == Dtype.int8 and "int8" not in board.gpu.tensor_dtypes
        narrow = problem.dtype in _NARROW and not wide_int8
        return _tensorrt(case, narrow=narrow, element_bytes=4 if wide_int8 else problem.element_bytes)
    if is_volume(problem):
        # In NCDHW; cuDNN, which runs the others, took 6 to 17 times as long (pytorch/pytorch#40801, cuDNN 7.6 and 8.0).
        # How newer ones fare is not known: they are taken to be no faster.
        return _native(case)
    if not native or not problem.nchw or problem.transposed:
        # cuDNN's kernels for NHWC were timed on A100 and A6000; before Volta they are taken to be no faster than NCHW.
        band = problem.R != problem.S  # timed in NHWC alone; in NCHW cuDNN is taken to be no faster
        if board.like_hopper:
            return _cudnn_on_hopper(case, start_us=_HOPPER_START_US["dgrad" if band else case.which], band=band)
        old_gpu = native and not problem.nchw and board.gpu.compute_capability < "7.0"
        band = band and native and board.modern and not problem.nchw and problem.taps <= _SHORT_BAND
        return max(_cudnn(case), _native(case), key=BY_TIME) if old_gpu else _cudnn(case, band=band)
    own = _native(case)
    in_cudnn = asks_cudnn(problem, volta=board.gpu.compute_capability >= "7.0", old=old)
    if board.like_hopper:
        # Of rows, fprop of 3 taps was timed: 200 us for 3072 x 128 x 202 (pytorch/pytorch#175280, by its sister #174989
        # on an H100), 208 by this. Longer filters were slow in cuDNN 9.10 (#170138).
        timed = case.which == "fprop" and problem.taps == 3 if problem.H == 1 else _is_timed(problem)
        if not in_cudnn or not timed or (case.which == "dgrad" and problem.strided):
            return own
        turned = replace(case, which="fprop") if case.which == "dgrad" else case
        theirs = calibrated(_cudnn_on_hopper(turned, start_us=0.0, band=False), _HOPPER_NCHW_SLOWER[case.which])
        return min(theirs, own, key=BY_TIME)
    # The test for NCHW rests on timings of fp16 (pytorch/pytorch#58749): where it asks cuDNN, PyTorch's kernel was
    # slower but for ten layers of a thousand; where it does not, it was faster, and is in bf16 too. Layers in one
    # dimension it lets pass untimed, and there cuDNN is reported to be slower (#170138).
    half = problem.dtype in (Dtype.fp16, Dtype.bf16) and _may_ask(problem) and _is_timed(problem)
    return min(_cudnn(case), own, key=BY_TIME) if half and (in_cudnn or not _is_faster_in_cudnn(problem)) else own


def _memory_us(case: KernelCase, bandwidth: float, element_bytes: int) -> float:
    """The tensors read and written once, at a share of the DRAM bandwidth."""
    problem = case.problem
    # A sector holds neighbouring pixels, so that a stride skips whole rows of x at best.
    read = min(1.0, (problem.R + 1) / problem.U) if case.which != "dgrad" else 1.0
    elements = problem.pixels_in * problem.C * read + (problem.pixels_out + problem.taps) * problem.K
    return element_bytes * elements * case.board.us_per_byte * const.STREAM_BANDWIDTH / bandwidth


def _priced(case: KernelCase, compute_us: float, memory_us: float, more_us: float = 0.0) -> Priced:
    """A kernel on CUDA cores, whatever unit other layers have: its launch takes the lesser of what the units' do."""
    board = case.board
    compute_us = max(compute_us, case.problem.flops / min(case.unit.peak, board.fp32_peak) * 1e6)
    index = PASS_INDEX[case.which]
    overhead_us = case.unit.family.setup_us[index]
    simt = board.units(Dtype.fp32, False)[1] if case.unit.tensor else None
    if simt is not None:
        overhead_us = min(overhead_us, simt.family.setup_us[index])
    overhead_us += more_us
    return priced_untiled(case, compute_us, memory_us, join(compute_us, memory_us, _OVERLAP), NONE, overhead_us)


def _tensorrt(case: KernelCase, *, narrow: bool, element_bytes: int) -> Priced:
    """TensorRT's kernels as they were timed on V100.

    There strided ones in fp16 may take longer than unstrided ones on the same input and than those in fp32. Elsewhere,
    where none was timed, they are taken not to.
    """
    problem, which, board = case.problem, case.which, case.board
    kernel = _FP16 if narrow else _FP32
    clocks = _clocks(problem, which, kernel, board.sms)
    if problem.strided and board.cc != _TIMED:
        unstrided = _clocks(problem, which, kernel, board.sms, unstrided=True)
        clocks = min(clocks, unstrided, *([_clocks(problem, which, _FP32, board.sms)] if narrow else []))
    factor = _WGRAD if which == "wgrad" else 1.0
    compute_us = factor * max(clocks / board.clocks_per_us, problem.flops / case.unit.peak * 1e6)
    memory_us = factor * _memory_us(case, kernel.bandwidth, element_bytes)
    return priced_untiled(case, compute_us, memory_us, join(compute_us, memory_us, _OVERLAP), NONE)


def _clocks(problem: Problem, which: Pass, kernel: Kernel, sms: int, *, unstrided: bool = False) -> float:
    """Clocks of all SMs together that the instructions take, also of an `unstrided` layer on the same input."""
    planes, points = problem.N * problem.K, problem.P * problem.Q
    U, V, width, outputs, strided = problem.U, problem.V, problem.Q, problem.pixels_out * problem.K, problem.strided
    if unstrided:
        U, V, width, outputs, strided = 1, 1, problem.W, problem.pixels_in * problem.K, False
        points = problem.H * problem.W
    taps = problem.taps
    if taps <= _SMALL_FILTER and not strided:
        clocks = kernel.small_per_tap * taps * outputs
    else:
        # points of x that fprop stages per output; what gradients read does not grow with the stride
        staged = min(U, problem.H) * min(V, problem.W) if which == "fprop" else 1
        clocks = (kernel.per_output + kernel.per_tap * taps + kernel.per_input * staged) * outputs
        if kernel.row:
            piece = max(1, kernel.row // V)
            clocks *= min(_MOST_ROW_WASTE, -(-width // piece) * piece / width)
    clocks += kernel.per_plane * planes * min(1.0, points / _POINTS_OF_A_PLANE)
    idle = kernel.planes_per_sm * sms / planes
    if idle > 1:
        clocks += min(clocks * (idle - 1), _UNSHARED_PLANE * outputs)
    return clocks


def _cudnn(case: KernelCase, *, band: bool = False) -> Priced:
    """The kernels of cuDNN; in fp32 they take what V100's rows of TensorRT do, and no less than in 16 bits.

    `band`: the slow one for short filters that are no squares.
    """
    problem, which, board = case.problem, case.which, case.board
    x, y = problem.pixels_in * problem.K, problem.pixels_out * problem.K
    taps, more_us = problem.taps, _CUDNN_START_US
    if which == "wgrad":
        clocks = _CUDNN_WGRAD_PER_TAP * taps * y + _CUDNN_PER_POINT * x
        more_us += _CUDNN_SUM_US
    else:
        clocks = _CUDNN_PER_TAP * taps * y + _CUDNN_PER_POINT * max(x, y)
    if problem.dtype not in _NARROW:
        wide = min(_clocks(problem, which, _FP32, board.sms, unstrided=flag) for flag in (False, problem.strided))
        clocks = max(clocks, _WGRAD * wide if which == "wgrad" else wide)
    if band:
        clocks = max(clocks, _band_clocks(problem, which))
    memory_us = _memory_us(case, _CUDNN_BANDWIDTH, problem.element_bytes)
    return _priced(case, clocks / board.clocks_per_us, memory_us, more_us)


def _cudnn_on_hopper(case: KernelCase, *, start_us: float, band: bool) -> Priced:
    """The kernels of cuDNN 9 as they were timed on H100; `band`: the one for filters that are no squares."""
    problem, which = case.problem, case.which
    x, y, taps = problem.pixels_in * problem.K, problem.pixels_out * problem.K, problem.taps
    wide, large = problem.element_bytes >= 4, taps > _HOPPER_LARGE_FILTER
    per_tap = _HOPPER_PER_TAP[which][wide]
    if which == "dgrad" or (which == "fprop" and wide):
        per_tap *= _HOPPER_LARGE_SLOWER if large else 1.0
    elif which == "fprop" and problem.strided and taps > _HOPPER_SMALL_FILTER:
        per_tap *= _HOPPER_LARGE_SLOWER ** (1 + large)
    if which == "dgrad":
        clocks = (_HOPPER_PER_POINT + per_tap * taps * (2 if wide and problem.strided and not band else 1)) * max(x, y)
    else:
        per_point = _HOPPER_FPROP_PER_POINT if which == "fprop" and not wide else _HOPPER_PER_POINT
        clocks = per_point * max(x, y) + per_tap * taps * y
    if which == "wgrad" and wide and large:
        clocks = _HOPPER_LARGE_WGRAD * taps * (x + y) / 2
    if band:
        clocks = max(clocks, _band_clocks(problem, which))
    memory_us = _memory_us(case, _CUDNN_BANDWIDTH, problem.element_bytes)
    return _priced(case, clocks / case.board.clocks_per_us, memory_us, start_us)


def _band_clocks(problem: Problem, which: Pass) -> float:
    per_output = _BAND_DGRAD if which == "dgrad" and not problem.dilated else _BAND
    if which == "wgrad":
        per_output = max(per_output, _BAND_WGRAD_PER_TAP * problem.taps)
    return per_output * problem.pixels_out * problem.K


def _native(case: KernelCase) -> Priced:
    """PyTorch's own kernel, in two and in three dimensions."""
    compute_us = _weights_us(case) if case.which == "wgrad" else _points_us(case)
    return _priced(case, compute_us, _memory_us(case, _NATIVE_BANDWIDTH, case.problem.element_bytes))


def _points_us(case: KernelCase) -> float:
    """Instructions of fprop, by outputs, and of dgrad, by points of x."""
    problem = case.problem
    if case.board.like_hopper and not is_volume(problem):
        return _points_on_hopper(problem, case.which) * problem.K / case.board.clocks_per_us
    clocks = _NATIVE_PER_OUTPUT
    if problem.R != problem.S or problem.R not in _UNROLLED_FILTERS:
        clocks += _NATIVE_NOT_UNROLLED
    if case.which == "fprop":
        clocks = (clocks + _NATIVE_PER_TAP * problem.taps) * problem.pixels_out
    elif is_volume(problem):
        per_tap = _NATIVE_STRIDED_VOLUME_DGRAD if problem.strided else _NATIVE_VOLUME_DGRAD
        clocks = (clocks + per_tap * problem.taps) * problem.pixels_in
    else:
        clocks = (clocks + _NATIVE_DGRAD_ASKED * problem.taps) * problem.pixels_in
        clocks += _NATIVE_DGRAD_FOUND * problem.taps * problem.pixels_out
    return clocks * problem.K / case.board.clocks_per_us


def _points_on_hopper(problem: Problem, which: Pass) -> float:
    """Clocks for one channel in two dimensions."""
    looped = problem.R != problem.S or problem.R not in _UNROLLED_FILTERS
    if which == "fprop":
        clocks = _HOPPER_NATIVE_PER_OUTPUT + _HOPPER_NATIVE_NOT_UNROLLED * looped
        return (clocks + _HOPPER_NATIVE_PER_TAP * problem.taps) * problem.pixels_out
    per_point, unrolled, per_tap = _HOPPER_NATIVE_DGRAD
    return (per_point + (per_tap if looped else unrolled) * problem.taps) * problem.pixels_in


def _weights_us(case: KernelCase) -> float:
    """Instructions of wgrad, or the loads of its warps in turn, where warps are few: an image has one for a weight."""
    problem, board = case.problem, case.board
    images = problem.N * problem.Z
    steps = -(-problem.P * problem.Q // _LANES)
    clocks = _STEP_CLOCKS * steps
    if board.like_hopper and not is_volume(problem):
        clocks = _HOPPER_STEP_CLOCKS * steps + _HOPPER_IMAGE_CLOCKS
    issued_us = clocks * images * problem.taps * problem.K / board.clocks_per_us
    bytes_ = problem.element_bytes * (problem.pixels_in * problem.C + problem.pixels_out * problem.K)
    step_us = _STEP_US if bytes_ > board.l2_bytes else _STEP_IN_L2_US
    return join(issued_us, steps * -(-images // _MOST_WARPS) * step_us, _OVERLAP)
