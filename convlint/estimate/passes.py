"""Estimates of passes and layers: the public functions, on top of `price`."""

from __future__ import annotations

from msgspec import Struct

from convlint.estimate.basis import BASES, Runs, basis, kind_of
from convlint.estimate.board import Board, board_of
from convlint.estimate.kernels import Priced, depthwise_factor, without_waves
from convlint.estimate.precision import compute_dtype
from convlint.estimate.price import Situation, cheapest
from convlint.estimate.problem import TURNED, Problem, is_depthwise, problem_of, with_batch
from convlint.estimate.results import Bound, LayerEstimate, PassEstimate, grade
from convlint.estimate.search import THREADS_PER_TILE, join
from convlint.gpus.gpu import Gpu
from convlint.model.gemm import Gemm, gemm, tensor_elements
from convlint.model.layer import PASSES, ConvLayer, Dtype, Mode, Op, Pass
from convlint.model.runtime import Runtime


class Tiling(Struct, frozen=True, gc=False):
    """How a pass is dealt over the SMs; one without tiles counts threads, and wastes nothing."""

    tiles: int
    resident: int  # per SM
    wave: int  # tiles that run at once
    wave_efficiency: float


_MOST_CACHED = 4096  # estimates per GPU; then the cache starts anew, so that memory stays bounded


def estimate_pass(layer: ConvLayer, which: Pass, gpu: Gpu, runtime: Runtime) -> PassEstimate | None:
    """The predicted time of one pass and how it comes about.

    None where a size or the dtype is unknown, where the layer has no valid output, and where the GPU has no unit for
    the dtype. int8 has no wgrad; its dgrad is the kernel that a transposed layer's inference runs.
    """
    problem = problem_of(layer)
    if problem is None or (which == "wgrad" and problem.dtype == Dtype.int8):
        return None
    return _cached(layer, problem, which, board_of(gpu), _situation(problem, gpu, runtime))


def tiling(layer: ConvLayer, which: Pass, gpu: Gpu, runtime: Runtime, *, N: int) -> Tiling | None:
    """The tiling of `estimate_pass` for the layer at batch `N`, and nothing else of it. None where that is None."""
    problem = problem_of(layer)
    if problem is None or (which == "wgrad" and problem.dtype == Dtype.int8):
        return None
    turned = TURNED[which] if layer.op == "conv_transpose" else which
    board = board_of(gpu)
    priced = cheapest(with_batch(problem, N), turned, board, _situation(problem, gpu, runtime))
    return None if priced is None else _tiling(priced, board)


def estimate_layer(layer: ConvLayer, gpu: Gpu, runtime: Runtime, mode: Mode) -> LayerEstimate | None:
    """The passes that `mode` runs: fprop; in training also wgrad, and dgrad unless the layer is the first.

    int8 has fprop alone in training too: libraries have no int8 kernels for gradients, and none are made up here.
    None where `estimate_pass` gives None for one of them.
    """
    problem = problem_of(layer)
    if problem is None:
        return None
    board, situation = board_of(gpu), _situation(problem, gpu, runtime)
    kind, capability, rests_on = kind_of(problem), gpu.compute_capability, 0
    tensor = board.units(situation.compute, situation.tensorrt)[0] is not None
    runs: Runs = "tensorrt" if situation.tensorrt else "nchw" if situation.native and problem.nchw else "other"
    if not tensor and situation.compute != Dtype.fp32 and gpu.compute_capability >= "7.5":
        runs = "without tensor cores"
    passes: dict[Pass, PassEstimate] = {}
    time = attainable = 0.0
    for which in PASSES:
        if not _runs(which, layer, mode):
            continue
        estimate = _cached(layer, problem, which, board, situation)
        if estimate is None:
            return None
        passes[which] = estimate
        time += estimate.time_us
        attainable += estimate.attainable_us
        turned = TURNED[which] if layer.op == "conv_transpose" else which
        rests_on = max(rests_on, BASES.index(basis(kind, turned, situation.compute, capability, runs)))
    ratio = attainable / time
    return LayerEstimate(
        passes=passes,
        time_us=time * layer.calls,
        attainable_us=attainable * layer.calls,
        grade=grade(ratio),
        basis=BASES[rests_on],
    )


def time_us(layer: ConvLayer, gpu: Gpu, runtime: Runtime, mode: Mode) -> float | None:
    """`estimate_layer(...).time_us` at about half the cost: tiles, waves and losses are not described."""
    problem = problem_of(layer)
    if problem is None:
        return None
    board, situation, op = board_of(gpu), _situation(problem, gpu, runtime), layer.op
    total = 0.0
    for which in PASSES:
        if not _runs(which, layer, mode):
            continue
        time = _cached_time(problem, which, board, situation, op)
        if time is None:
            return None
        total += time
    return total * layer.calls


def _runs(which: Pass, layer: ConvLayer, mode: Mode) -> bool:
    if which == "fprop":
        return True
    return mode != "inference" and layer.dtype != Dtype.int8 and not (which == "dgrad" and layer.first)


def _situation(problem: Problem, gpu: Gpu, runtime: Runtime) -> Situation:
    pads = runtime.cudnn is None or runtime.cudnn >= "7.6.3"
    framework = runtime.framework
    native = framework is None or framework == "pytorch"
    searched = runtime.cudnn_benchmark is not False
    return Situation(compute_dtype(problem.dtype, gpu, runtime), framework == "tensorrt", pads, searched, native)


def _cached(layer: ConvLayer, problem: Problem, which: Pass, board: Board, situation: Situation) -> PassEstimate | None:
    key = (problem, which, situation, layer.op)
    if key not in board.estimates:
        if len(board.estimates) >= _MOST_CACHED:
            board.estimates.clear()
        board.estimates[key] = _estimate(layer, problem, which, board, situation)
    return board.estimates[key]


def _cached_time(problem: Problem, which: Pass, board: Board, situation: Situation, op: Op) -> float | None:
    key = (problem, which, situation, op)
    described = board.estimates.get(key)
    if described is not None:
        return described.time_us
    if key not in board.times_us:
        if len(board.times_us) >= _MOST_CACHED:
            board.times_us.clear()
        priced = cheapest(problem, TURNED[which] if op == "conv_transpose" else which, board, situation)
        board.times_us[key] = None if priced is None else priced.time_us
    return board.times_us[key]


def _estimate(
    layer: ConvLayer, problem: Problem, which: Pass, board: Board, situation: Situation
) -> PassEstimate | None:
    product, elements = gemm(layer, which), tensor_elements(layer)
    turned = TURNED[which] if layer.op == "conv_transpose" else which
    priced = cheapest(problem, turned, board, situation)
    if priced is None or product is None or elements is None:
        return None
    return _describe(problem, turned, product, sum(elements), priced, board, situation)


def _tiling(priced: Priced, board: Board) -> Tiling:
    choice = priced.choice
    tiles, direct = choice.tiles, choice.lowering.algorithm == "direct"
    resident = 32 * board.gpu.max_warps_per_sm if direct else choice.program.resident
    wave = board.sms * resident
    return Tiling(tiles, resident, wave, 1.0 if direct else tiles / (-(-tiles // wave) * wave))


def _describe(
    problem: Problem, which: Pass, product: Gemm, elements: int, priced: Priced, board: Board, situation: Situation
) -> PassEstimate:
    choice, unit = priced.choice, priced.unit
    lowering, program = choice.lowering, choice.program
    dealt = _tiling(priced, board)
    tm, tn, tiles, resident, wave = program.tm, program.tn, dealt.tiles, dealt.resident, dealt.wave
    flops = problem.flops
    bytes_ = problem.element_bytes * elements
    direct = lowering.algorithm == "direct"
    last = 0 if direct else tiles % wave
    tile_efficiency = 1.0 if direct else lowering.useful_outputs * choice.split / (tiles * tm * tn)
    if lowering.fused_tiles:
        tile_efficiency = lowering.useful_outputs / (tiles * 128 * 32)
    tile_efficiency = min(1.0, tile_efficiency)
    if priced.overhead_us > (priced.time_us - priced.overhead_us):
        bound: Bound = "launch"
    elif choice.compute_us >= choice.memory_us:
        bound = "compute"
    else:
        bound = "memory"
    lost_to_tiles = lost_to_waves = 0.0
    if not direct and choice.compute_us >= choice.memory_us:
        kernel_us = join(choice.compute_us, choice.memory_us)
        lost_to_tiles = kernel_us - join(choice.compute_us * tile_efficiency, choice.memory_us)
        lost_to_waves = kernel_us - join(without_waves(priced, board), choice.memory_us)
    resident_warps = THREADS_PER_TILE // 32 * min(resident, -(-tiles // board.sms))
    if direct:
        resident_warps = board.gpu.max_warps_per_sm
    best_compute = flops / unit.best_flops_per_us
    best_memory = bytes_ * board.us_per_byte
    if direct and is_depthwise(problem):
        slower = depthwise_factor(which)  # no flaw of the layer, but not what its best form would take either
        best_compute, best_memory = choice.compute_us / slower, choice.memory_us / slower
    attainable = min(priced.time_us, join(best_compute, best_memory) + min(priced.overhead_us, unit.family.setup_us[0]))
    return PassEstimate(
        gemm=product,
        flops=flops,
        bytes=bytes_,
        arithmetic_intensity=flops / bytes_,
        compute_dtype=situation.compute,
        tensor_cores=unit.tensor and not direct,
        algorithm=lowering.algorithm,
        tile=(tm, tn),
        split_k=choice.split,
        tiles=tiles,
        waves=tiles / wave,
        resident_tiles=resident,
        resident_warps=resident_warps,
        last_wave_tiles=last,
        tile_efficiency=tile_efficiency,
        wave_efficiency=dealt.wave_efficiency,
        time_us=priced.time_us,
        tflops=flops / priced.time_us * 1e-6,
        bound_by=bound,
        lost_to_tiles_us=max(0.0, lost_to_tiles),
        lost_to_waves_us=max(0.0, lost_to_waves),
        main_loop_steps=-(-product.K // unit.family.granule) if direct else lowering.steps,
        overhead_us=priced.overhead_us,
        transposes_us=priced.copies.transposes_us,
        padding_us=priced.copies.padding_us,
        attainable_us=attainable,
    )
