"""Layers and networks estimated: all passes of a layer, and how its tiles fill the waves of the GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from convlint.estimate import constants as const
from convlint.estimate import kernels
from convlint.estimate.board import Board, board_of, compute_dtype
from convlint.estimate.kernels import (
    Priced,
    before_norm,
    behind_copy,
    calibrated,
    unfolding,
    with_columns,
    with_copy,
    without_quantization,
)
from convlint.estimate.price import Situation, Tiling, cheapest, described, tiling_of, with_bias
from convlint.estimate.results import TURNED, Problem, Runs, basis, is_volume, kind_of, problem_of, with_batch
from convlint.gpus.gpu import LEAST_OF_GROUP, Gpu, Kind
from convlint.gpus.support import lack_of
from convlint.model.estimates import BASES, Basis, LayerEstimate, PassEstimate
from convlint.model.layer import (
    MODES,
    PASSES,
    ConvLayer,
    Dtype,
    MeasuredPass,
    MeasuredScale,
    Mode,
    Op,
    Pass,
    as_product,
    gemm,
    tensor_elements,
)
from convlint.model.runtime import Runtime, Version, framework_of

_MOST_CACHED = 100_000  # layers per GPU; then the cache starts anew, so that memory stays bounded


def estimate_pass(layer: ConvLayer, which: Pass, gpu: Gpu, runtime: Runtime) -> PassEstimate | None:
    """The predicted time of one pass and what it consists of.

    None where a size or the dtype is unknown, where the layer has no valid output, and where the GPU has no unit for
    the dtype. int8 has no wgrad; its dgrad is the kernel that a transposed layer's inference runs.
    """
    passes = _passes_of(layer, gpu, runtime)
    return None if passes is None else passes.describe(layer, which)


def pass_time_us(layer: ConvLayer, which: Pass, gpu: Gpu, runtime: Runtime) -> float | None:
    """`estimate_pass(...).time_us` at about half the cost."""
    passes = _passes_of(layer, gpu, runtime)
    priced = None if passes is None else passes.price(which)
    return None if priced is None else priced.time_us


def timed_as(layer: ConvLayer, which: Pass, gpu: Gpu, runtime: Runtime) -> tuple[Kind, Dtype, Pass] | None:
    """The group that a timing of this pass belongs to: kind of layer, compute dtype, pass of the kernels.

    None where the layer has no problem.
    """
    problem = problem_of(layer)
    if problem is None:
        return None
    return kind_of(problem), compute_dtype(problem.dtype, gpu, runtime), _turned(which, layer.op)


def tiling(layer: ConvLayer, which: Pass, gpu: Gpu, runtime: Runtime, *, N: int) -> Tiling | None:
    """The tiling of `estimate_pass` for the layer at batch `N`, and nothing else of it. None where that is None."""
    passes = _passes_of(layer, gpu, runtime)
    if passes is None or passes.lacks(which):
        return None
    problem, board = with_batch(passes.problem, N), passes.board
    priced = cheapest(problem, _turned(which, layer.op), board, passes.situation)
    return None if priced is None else tiling_of(priced, board)


def estimate_layer(layer: ConvLayer, gpu: Gpu, runtime: Runtime, mode: Mode) -> LayerEstimate | None:
    """The passes that `mode` runs: fprop; in training also wgrad, and dgrad unless the layer is the first.

    int8 has fprop alone in training too: libraries have no int8 kernels for gradients, and none are made up here.
    None where `estimate_pass` gives None for one of them, and where the framework has no such convolution.
    """
    passes = _passes_of(layer, gpu, runtime)
    if passes is None or mode in passes.situation.absent:
        return None
    estimates = dict[Pass, PassEstimate]()
    time = unquantized = 0.0
    for which in running_passes(layer, mode):
        estimate = passes.describe(layer, which)
        if estimate is None:
            return None
        estimates[which] = estimate
        time += estimate.time_us
        unquantized += estimate.unquantized_us
    return LayerEstimate(
        passes=estimates,
        time_us=time * layer.calls,
        unquantized_us=unquantized * layer.calls,
        basis=_basis(layer, passes, mode),
        predicted={which: us for which, us in passes.predicted.items() if which in estimates},
    )


def _of_tensor_cores(
    layer: ConvLayer, which: Pass, gpu: Gpu, runtime: Runtime, timed: MeasuredPass, others_us: float
) -> float:
    """The measured time over the predicted one in NHWC, both on Tensor Cores; 1 where something else ran."""
    passes = _passes_of(replace(layer, measured=None, layout="NHWC"), gpu, runtime)
    priced = passes.price(which) if passes is not None and timed.tensor_cores else None
    if priced is None or not priced.unit.tensor:
        return 1.0
    return others_us / (priced.time_us - priced.copies.transposes_us)


def held_to_measurement(layer: ConvLayer, gpu: Gpu, runtime: Runtime) -> ConvLayer:
    """The layer with the factors that its predicted times are multiplied by, where it was measured on this GPU.

    Transposes have a ratio of their own, so that a layout costs what its transposes took.
    """
    measured = layer.measured
    passes = None if measured is None else _passes_of(replace(layer, measured=None), gpu, runtime)
    if measured is None or passes is None:
        return layer
    scales = []
    for which, timed in measured.passes:
        priced = passes.price(which)
        others_us = timed.us - timed.transpose
        if priced is None or others_us <= 0:
            continue
        turning_us, unit = priced.copies.transposes_us, priced.unit.tensor
        scale = MeasuredScale(
            transposes=timed.times * (timed.transpose / turning_us if turning_us else 1.0),
            others=timed.times * others_us / (priced.time_us - turning_us),
            unpredicted=0.0 if turning_us else timed.transpose / others_us, layout=passes.problem.layout,
            dtype=passes.problem.dtype,
        )  # fmt: skip
        if timed.tensor_cores is not None and timed.tensor_cores != unit:
            scale = replace(scale, changed=timed.times * _of_tensor_cores(layer, which, gpu, runtime, timed, others_us))
        scales.append((which, scale))
    return replace(layer, measured=replace(measured, scales=tuple(scales)))


def basis_of(layer: ConvLayer, gpu: Gpu, runtime: Runtime, mode: Mode) -> Basis:
    """`estimate_layer(...).basis`, without the estimate; "assumed" where there is none."""
    passes = _passes_of(layer, gpu, runtime)
    return BASES[-1] if passes is None else _basis(layer, passes, mode)


def _basis(layer: ConvLayer, passes: _Passes, mode: Mode) -> Basis:
    """The weakest basis among the passes that `mode` runs."""
    problem, running = passes.problem, running_passes(layer, mode)
    if passes.scales and all(which in passes.scales for which in running):
        return "measured"
    doubted = passes.refused or passes.runs_without_cudnn()
    key = kind_of(problem), problem.nchw, passes.situation, doubted, layer.op, running
    known: dict[object, Basis] = passes.board.bases
    if key not in known:
        known[key] = _basis_of_kind(*key, passes.board)
    return known[key]


def _basis_of_kind(
    kind: Kind, nchw: bool, situation: Situation, doubted: bool, op: Op, running: tuple[Pass, ...], board: Board
) -> Basis:
    """The same for all layers of a kind; it is `doubted` where PyTorch runs them without cuDNN."""
    capability, rests_on = board.gpu.compute_capability, 0
    tensor = board.units(situation.compute, situation.tensorrt)[0] is not None
    runs: Runs = "tensorrt" if situation.tensorrt else "nchw" if situation.native and nchw else "other"
    # Turing was timed with Tensor Cores alone: a GTX 16xx of the same compute capability has none.
    if not tensor and situation.compute != Dtype.fp32 and capability >= "7.5":
        runs = "without tensor cores"
    if doubted:  # the factor was seen on other layers, and on GPUs not named
        rests_on = BASES.index("extrapolated")
    for which in running:
        turned = _turned(which, op)
        timed = board.groups.get((kind, situation.compute, turned))
        # The user's own timings count as measured, whatever was timed for the model.
        if timed is None or timed.rows < LEAST_OF_GROUP:
            rests_on = max(rests_on, BASES.index(basis(kind, turned, situation.compute, capability, runs)))
    return BASES[rests_on]


def time_us(layer: ConvLayer, gpu: Gpu, runtime: Runtime, mode: Mode) -> float | None:
    """`estimate_layer(...).time_us` at about half the cost: tiles, waves and losses are not described."""
    return _sum(layer, gpu, runtime, mode, lambda priced, _: priced.time_us)


def unquantized_us(layer: ConvLayer, gpu: Gpu, runtime: Runtime, mode: Mode, useful: float = 1.0) -> float | None:
    """`estimate_layer(...).unquantized_us` at about half the cost; of the layer's work the share `useful` counts."""
    return _sum(layer, gpu, runtime, mode, lambda priced, board: without_quantization(priced, board, useful))


def workspace_bytes(layer: ConvLayer, gpu: Gpu, runtime: Runtime, mode: Mode) -> int | None:
    """The largest `workspace_bytes` among the passes of `estimate_layer`, at about half the cost."""
    sizes = _per_pass(layer, gpu, runtime, mode, lambda priced, _: kernels.workspace_bytes(priced))
    return None if sizes is None else int(max(sizes))


def _sum(
    layer: ConvLayer, gpu: Gpu, runtime: Runtime, mode: Mode, time_of: Callable[[Priced, Board], float]
) -> float | None:
    times = _per_pass(layer, gpu, runtime, mode, time_of)
    return None if times is None else sum(times) * layer.calls


def _per_pass(
    layer: ConvLayer, gpu: Gpu, runtime: Runtime, mode: Mode, of: Callable[[Priced, Board], float]
) -> list[float] | None:
    """`of` each pass that `mode` runs; None where one of them has no time."""
    passes = _passes_of(layer, gpu, runtime)
    if passes is None or mode in passes.situation.absent:
        return None
    values = []
    for which in running_passes(layer, mode):
        priced = passes.price(which)
        if priced is None:
            return None
        values.append(of(priced, passes.board))
    return values


def of_products(runtime: Runtime) -> Runtime:
    """The runtime of matrix products: PyTorch allows TF32 in convolutions alone.

    (torch.backends.cuda.matmul.allow_tf32 is False, torch.backends.cudnn.allow_tf32 True.)
    """
    return replace(runtime, tf32=False) if framework_of(runtime) in (None, "pytorch") else runtime


def running_passes(layer: ConvLayer, mode: Mode) -> tuple[Pass, ...]:
    """The passes of a layer that `mode` runs.

    Of an int8 layer fprop alone, of one in a trace those that ran, of a frozen one no wgrad.
    """
    if mode == "inference" or layer.dtype == Dtype.int8:
        return ("fprop",)
    if layer.measured is not None and layer.measured.trained:
        return tuple(which for which in PASSES if layer.measured.of(which) is not None)
    if layer.frozen or layer.no_dgrad:
        left_out = {"wgrad": layer.frozen, "dgrad": layer.first or layer.no_dgrad}
        return tuple(which for which in PASSES if not left_out.get(which))
    return ("fprop", "wgrad") if layer.first else PASSES


def _turned(which: Pass, op: Op) -> Pass:
    """The pass of the kernels: a transposed convolution's fprop is a dgrad."""
    return TURNED[which] if op == "conv_transpose" else which


def _situation(problem: Problem, board: Board, runtime: Runtime) -> Situation:
    """The parts of the runtime that matter for the problem's dtype.

    Kept for each dtype until another runtime comes, since one run rarely has two.
    """
    known = board.situations.get(problem.dtype)
    if known is not None and known[0] is runtime:
        situation: Situation = known[1]
        return situation
    # From 7.6.3 on cuDNN pads misaligned channels of NHWC itself (CG 4.4.3).
    pads = runtime.cudnn is None or runtime.cudnn >= "7.6.3"
    framework = framework_of(runtime)
    native = framework is None or framework == "pytorch"
    searched = runtime.cudnn_benchmark is not False
    compute = compute_dtype(problem.dtype, board.gpu, runtime)
    absent = _absent(problem.dtype, board.gpu, runtime)
    version = runtime.framework_version if framework == "pytorch" else None
    old = (runtime.cudnn is not None and runtime.cudnn < "8.2") or (version is not None and version < "1.11")
    # torch.compile takes the bias off the convolution and fuses it with what follows (torch/_inductor/kernel/conv.py),
    # its gradient with what comes before (pytorch/pytorch#89128); TensorRT has it in its kernels. Others: not known.
    adds_bias = framework == "pytorch" and not runtime.compile and problem.dtype != Dtype.int8
    situation = Situation(
        compute, framework == "tensorrt", pads, searched, native, framework == "jax", absent, old, adds_bias,
        keeps_volumes_from_cudnn(version, runtime.cudnn), keeps_dilated_from_cudnn(version, runtime),
        runtime.cudnn is not None and runtime.cudnn < "8.0",
    )  # fmt: skip
    board.situations[problem.dtype] = runtime, situation
    return situation


def keeps_volumes_from_cudnn(version: Version | None, cudnn: Version | None) -> bool:
    """Whether PyTorch of this version runs 16-bit volumes in NCDHW without this cuDNN (pytorch#163539, #166480).

    2.9.0 asks no cuDNN from 9.8 on, 2.9.1 none from 9.8 to 9.14; their wheels bring 9.10 and 9.13. Where the release is
    unknown, it is taken to ask.
    """
    if version is None or not "2.9" <= version < "2.10" or (cudnn is not None and cudnn < "9.8"):
        return False
    return cudnn is None or cudnn < "9.15" or version < "2.9.1"


def keeps_dilated_from_cudnn(version: Version | None, runtime: Runtime) -> bool:
    """Whether PyTorch of this version runs dilated layers in NCHW without cuDNN, since cuDNN's are not deterministic.

    That ended with 2.8 (pytorch#28777, #154292). Where the version is unknown, it is taken to ask.
    """
    return version is not None and version < "2.8" and runtime.deterministic is True and runtime.compile is not True


def _is_refused(layer: ConvLayer) -> bool:
    """Whether it is one of those dilated layers: depthwise ones have kernels of PyTorch's own."""
    dilated = layer.DilD > 1 or layer.DilH > 1 or layer.DilW > 1
    return dilated and layer.layout != "NHWC" and (layer.op == "conv_transpose" or not layer.depthwise)


def _absent(dtype: Dtype, gpu: Gpu, runtime: Runtime) -> tuple[Mode, ...]:
    """The modes in which the framework has no convolution of this dtype; int8 trains nowhere, but runs forward."""
    if dtype == Dtype.int8:
        return MODES if lack_of(runtime, dtype, "inference", gpu) is not None else ()
    return tuple(mode for mode in MODES if lack_of(runtime, dtype, mode, gpu) is not None)


class _Passes:
    """The passes of one problem in one situation: priced and described when first asked for."""

    __slots__ = (
        "board", "described", "has_bias", "op", "predicted", "priced", "problem", "refused", "scales", "situation",
        "unfolded",
    )  # fmt: skip

    def __init__(
        self, problem: Problem, board: Board, situation: Situation, op: Op, *, has_bias: bool, refused: bool,
        unfolded: bool, scales: Mapping[Pass, MeasuredScale],
    ) -> None:  # fmt: skip
        """`has_bias`: one that kernels of its own add and sum up. `refused`: PyTorch keeps it from cuDNN.

        `unfolded`: patches are copied side by side before they are multiplied. `scales` are measured times over
        predicted ones, of which `predicted` then keeps those without.
        """
        self.problem, self.board, self.situation, self.op = problem, board, situation, op
        self.has_bias, self.refused, self.unfolded, self.scales = has_bias, refused, unfolded, scales
        self.predicted: dict[Pass, float] = {}
        self.priced: dict[Pass, Priced | None] = {}
        self.described: dict[Pass, PassEstimate | None] = {}

    def lacks(self, which: Pass) -> bool:
        """Whether no library has this pass for the dtype: int8 has no wgrad."""
        return which == "wgrad" and self.problem.dtype == Dtype.int8

    def price(self, which: Pass) -> Priced | None:
        """The fastest way to run the pass; None if there is none."""
        if self.lacks(which):
            return None
        if which not in self.priced:
            self.priced[which] = self._priced(which)
        return self.priced[which]

    def _priced(self, which: Pass) -> Priced | None:
        problem, board, turned, transposed = self.problem, self.board, _turned(which, self.op), self.op != "conv"
        priced = cheapest(problem, turned, board, self.situation)
        if priced is None:
            return None
        if board.groups and not self.scales:
            group = board.groups.get((kind_of(problem), self.situation.compute, turned))
            if group is not None and group.factor is not None:
                priced = calibrated(priced, group.factor)
        if self.runs_without_cudnn():
            priced = with_columns(calibrated(priced, const.VOLUMES_WITHOUT_CUDNN), problem)
        if self.refused:
            priced = with_columns(calibrated(priced, const.DILATED_WITHOUT_CUDNN), problem)
        if self.unfolded and which != "wgrad":
            priced = unfolding(priced, problem, board)
        if self._copies(which):
            priced = behind_copy(priced, problem, board, transposed=transposed)
        if problem.norm_copies and which != "dgrad":
            priced = before_norm(priced, problem, board, transposed=transposed)
        if self.has_bias and which != "dgrad" and not self._adds_it_itself(which):
            priced = with_bias(priced, problem, which, board, transposed=transposed)
        if which in self.scales:
            self.predicted[which] = priced.time_us
            priced = self._as_measured(priced, self.scales[which])
        return priced

    def _as_measured(self, priced: Priced, scale: MeasuredScale) -> Priced:
        """The pass with its times scaled as a trace measured them, also where layout or dtype differ from what ran."""
        alike = self.problem.layout == scale.layout
        if scale.changed is not None and not (alike and self.problem.dtype == scale.dtype):
            return calibrated(priced, scale.changed)
        priced = calibrated(priced, scale.others, scale.transposes)
        if not alike or not scale.unpredicted:
            return priced
        return with_copy(priced, (priced.time_us - priced.copies.transposes_us) * scale.unpredicted)

    def _adds_it_itself(self, which: Pass) -> bool:
        """Whether PyTorch's own depthwise kernel runs fprop, which has the bias in it; cuDNN's has it nowhere."""
        problem, gpu = self.problem, self.board.gpu
        if which != "fprop" or not 1 < problem.groups == problem.C:
            return False
        from convlint.estimate.depthwise import asks_cudnn

        return not asks_cudnn(problem, volta=gpu.compute_capability >= "7.0", old=self.situation.old_depthwise)

    def runs_without_cudnn(self) -> bool:
        """Whether this version of PyTorch keeps the volume from cuDNN, as `use_cudnn` in Convolution.cpp does."""
        problem = self.problem
        slow = self.situation.volumes_without_cudnn and problem.element_bytes == 2
        slow = slow and (problem.dtype == Dtype.fp16 or "bf16" in self.board.gpu.tensor_dtypes)
        # A depthwise volume has a native kernel, which is asked first.
        native = 1 < problem.groups == problem.C and not problem.transposed
        return slow and is_volume(problem) and problem.layout != "NHWC" and problem.taps > 1 and not native

    def _copies(self, which: Pass) -> bool:
        """Whether the pass waits for a copy of the layer's input, or its gradient for one.

        PyTorch runs in NHWC where the input or the weights have it, and copies what has not, in wgrad again; whoever
        wants NCHW after NHWC copies himself, and that copy is kept (ATen/native/ConvUtils.h,
        cudnn_conv_suggest_memory_format). The gradient leaves dgrad in the layer's layout, and what made the input
        copies it into its own (cudnn_convolution_backward, cudnn_batch_norm_backward in ATen/native/cudnn).
        """
        return self.problem.copies_input and (which != "wgrad" or self.problem.layout == "NHWC")

    def describe(self, layer: ConvLayer, which: Pass) -> PassEstimate | None:
        """The pass of `layer`, whose problem this is."""
        if which not in self.described:
            layer = as_product(layer) if self.unfolded else layer
            product, elements, priced = gemm(layer, which), tensor_elements(layer), self.price(which)
            self.described[which] = (
                None
                if priced is None or product is None or elements is None
                else described(self.problem, product, sum(elements), priced, self.board, self.situation)
            )
        return self.described[which]


_MOST_FP8_TAPS = 32  # for which TensorRT has kernels, without groups (CL824 has the source)


def _falls_back(problem: Problem, runtime: Runtime) -> bool:
    """Whether TensorRT runs an fp8 layer in 16 bits, for want of a kernel."""
    return framework_of(runtime) == "tensorrt" and (problem.groups > 1 or problem.taps > _MOST_FP8_TAPS)


def _passes_of(layer: ConvLayer, gpu: Gpu, runtime: Runtime) -> _Passes | None:
    """The passes of the layer's problem, from the board's cache; None where the layer has no problem."""
    measured = layer.measured
    if gpu.calibration is not None and measured is not None and measured.gpu == gpu.id and measured.scales:
        gpu = replace(gpu, calibration=None)  # its own timings say it better
    board = board_of(gpu)
    cached = board.of_layer.get(id(layer))
    if cached is not None and cached[0] is layer and cached[1] is runtime:  # a layer is asked for several times
        known: _Passes = cached[2]
        return known
    problem = problem_of(as_product(layer) if layer.unfolded else layer)
    if problem is None:
        return None
    if problem.dtype == Dtype.fp8 and "fp8" in gpu.tensor_dtypes and _falls_back(problem, runtime):
        problem = replace(problem, dtype=Dtype.fp16, element_bytes=2)
    situation = _situation(problem, board, of_products(runtime) if layer.unfolded else runtime)
    has_bias = situation.adds_bias and layer.bias is True and not layer.unfolded
    spread = situation.refuses_dilation and _is_refused(layer)
    # What was measured of a convolution says nothing of the matrix product in its place.
    scales = measured.scales if measured is not None and measured.gpu == gpu.id and not layer.unfolded else ()
    key = (problem, situation, layer.op, has_bias, spread, layer.unfolded, scales)
    passes: _Passes | None = board.passes.get(key)
    if passes is None:
        if len(board.passes) >= _MOST_CACHED:
            board.passes.clear()
        passes = board.passes[key] = _Passes(
            problem, board, situation, layer.op, has_bias=has_bias, refused=spread, unfolded=layer.unfolded,
            scales=dict(scales),
        )  # fmt: skip
    if len(board.of_layer) >= _MOST_CACHED:
        board.of_layer.clear()
    board.of_layer[id(layer)] = layer, runtime, passes
    return passes


FULL_ENOUGH = 0.95  # wave efficiency at which a batch size is offered
_MOST_WAVES = 5  # fewer or more than the layer has now, among which one is looked for


def nearest_full_waves(layer: ConvLayer, which: Pass, gpu: Gpu, runtime: Runtime) -> tuple[int | None, int | None]:
    """The nearest N below and above the layer's whose waves are at least 95 % full; None where there is none.

    Found for the tile that the layer runs with, and kept only where the model still holds that to be the case.
    """
    N = layer.N
    now = None if N is None else tiling(layer, which, gpu, runtime, N=N)
    if N is None or now is None:
        return None, None
    tiles, wave = now.tiles, now.wave
    full = tiles // wave

    def nearest(waves: range, counts: Callable[[int], bool]) -> int | None:
        for count in waves:
            n = int(count * wave / (tiles / N) + 1e-9)
            if n < 1 or not counts(n):
                continue
            there = tiling(layer, which, gpu, runtime, N=n)
            if there is not None and there.wave_efficiency >= FULL_ENOUGH:
                return n
        return None

    below = nearest(range(full, max(0, full - _MOST_WAVES - 1), -1), lambda n: n < N)
    above = nearest(range(full + 1, full + 1 + _MOST_WAVES), lambda n: n > N)
    return below, above
